"""PyRQA's kinds of analysis."""

from __future__ import annotations


class Classic:
    """A series against itself."""


class Cross:
    """Two series against each other."""


class Joint:
    """Two recurrence matrices at once."""
