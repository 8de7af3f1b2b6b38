"""Sizes of launches and buffers."""

from __future__ import annotations

_OPEN_STEP = 64


def round_up(value: int, to: int) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return -(-value // to) * to


def open_size(first: int, *more: int) -> tuple[int, ...]:
    """Work-items of a launch that leaves the size of its groups to the driver; those behind the last one idle.

    A multiple of 64 along the first axis can be cut into groups that suit any device. PoCL, which compiles a kernel for
    each size of its groups, gets by with one: see ``group_left_open`` in :mod:`pyedmcl.device.quirks`.
    """
    return (round_up(first, _OPEN_STEP), *more)
