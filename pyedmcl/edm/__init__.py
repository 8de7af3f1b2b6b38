"""Empirical dynamic modelling: the functions of the field."""
