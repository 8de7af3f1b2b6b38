"""Targets of maps at several lags: as the device reads them, and what is wanted of them in pieces and ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP
from .target_layout import layout_of_lookup

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int_]
_FAR = 1000  # beyond this binary exponent a power of two is no float64


@dataclass(frozen=True)
class Span:
    """Columns ``begin`` to ``end - 1`` of targets that are gaps in the same rows.

    Attributes
    ----------
    begin, end : int
    missing : ndarray of bool (n_steps,) or None
        Those rows; None where there is none.
    """

    begin: int
    end: int
    missing: Mask | None = None


def room_for(
    n_steps: int, width: int, dtype: str, room: Callable[[tuple[int, ...], str], NDArray[Any]] = np.empty
) -> NDArray[Any]:
    """An array from ``room`` for ``width`` targets as the device reads them; zeros behind the last row and column."""
    layout = layout_of_lookup(n_steps, width)
    values = room((layout.rows, layout.stride), dtype)
    values[n_steps:] = 0
    values[:, width:] = 0
    return values


def centred(values: NDArray[Any]) -> tuple[float, int]:
    """Shift and binary exponent by which a target (n_steps,) is brought around 0 and below 1 in magnitude."""
    finite = values[np.isfinite(values)].astype(np.float64)
    shift = float(finite.mean()) if finite.size else 0.0
    return shift, int(np.frexp(np.abs(finite - shift).max(initial=0.0))[1])


def laid_out(values: NDArray[np.float64], shift: float, exponent: int, *, gaps: bool = True) -> NDArray[np.float64]:
    """Targets of one series as the device reads them, in place of ``values``; ``gaps``: whether there may be any."""
    values -= shift
    if abs(exponent) < _FAR:
        values *= 2.0**-exponent  # as exact as ldexp, which takes six times as long
    else:
        np.ldexp(values, -exponent, out=values)
    if gaps:
        values[np.isnan(values)] = GAP
    return values


def rectangles(wanted: Mask, spans: Sequence[Span], launch: int) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Launches that compute what is wanted: ((first library, end), first column, end).

    Parameters
    ----------
    wanted : ndarray of bool (n_libraries, n_spans)
    spans : sequence of Span
        Those beside each other may share a launch.
    launch : int
        Lookups that nobody wants take less time than another launch, up to this number.
    """
    held: tuple[tuple[int, int], int, int] | None = None
    for number, span in enumerate(spans):
        width = span.end - span.begin
        rows = np.flatnonzero(wanted[:, number])
        if not len(rows):
            continue
        ends = np.flatnonzero((np.diff(rows) - 1) * width > launch)
        runs = list(zip(rows[np.append(0, ends + 1)].tolist(), (rows[np.append(ends, -1)] + 1).tolist(), strict=True))
        for first, end in runs:
            if held is not None:
                (a, b), begin, last = held
                both = min(a, first), max(b, end)
                apart = (b - a) * (last - begin) + (end - first) * width
                if last == span.begin and (both[1] - both[0]) * (span.end - begin) <= apart + launch:
                    held = both, begin, span.end
                    continue
                yield held
            held = (first, end), span.begin, span.end
    if held is not None:
        yield held
