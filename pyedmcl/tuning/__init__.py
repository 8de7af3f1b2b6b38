"""Tuned parameters: which a launch uses, and where they are kept."""
