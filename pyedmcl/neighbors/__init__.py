"""Neighbour search."""
