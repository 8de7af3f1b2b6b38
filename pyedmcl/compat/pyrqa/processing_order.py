"""PyRQA's orders in which parts of a matrix are processed; accepted, without effect."""

from __future__ import annotations


class Bulk:
    """All at once."""


class Diagonal:
    """Along diagonals."""


class Vertical:
    """Along columns."""
