"""Sizes of launches and buffers."""

from __future__ import annotations


def round_up(value: int, to: int) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return -(-value // to) * to
