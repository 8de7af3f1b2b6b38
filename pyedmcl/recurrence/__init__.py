"""Recurrence quantification: counts of lines in a matrix that is never held, and measures computed from them."""
