"""Tuned parameters: their lookup now, their search later."""
