"""Recurrence and distance plots: cells counted, or distances averaged, per pixel without the matrix."""
