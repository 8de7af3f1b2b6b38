"""Surrogates of recordings that stand one below the other: each has those of its own rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...data.groups import Layout
from ...data.series import Series
from .surrogate_makers import Doubles, Maker
from .surrogate_streams import Streams


def grouped(code: NDArray[np.int64], makers: Sequence[Maker]) -> Maker:
    """What makes surrogates (n, n_rows) from those of each group.

    Parameters
    ----------
    code : ndarray of int (n_rows,)
        Group of each row; -1 for none, where surrogates have gaps.
    makers : sequence
        Of each group. Group g of series j has random streams of its own, those of series j * n_groups + g.
    """
    rows = [np.flatnonzero(code == number) for number in range(len(makers))]

    def make(streams: Streams) -> Doubles:
        out = np.full((len(streams), len(code)), np.nan)
        for number, (where, own) in enumerate(zip(rows, makers, strict=True)):
            out[:, where] = own(replace(streams, number=streams.number * len(makers) + number))
        return out

    return make


def parts_of(series: Series, layout: Layout | None, what: str) -> list[tuple[str, Series]]:
    """The rows of each group, and how messages call them: all rows where there are no groups."""
    if layout is None:
        return [(what, series)]
    named = enumerate(layout.groups.names.tolist())
    return [
        (f"{what}, group {name}", Series(series.values[layout.code == number], series.names)) for number, name in named
    ]


def said_together(reasons: Sequence[str]) -> str:
    """What was taken for a series in each of its groups, the most frequent first."""
    most_common = Counter(reasons).most_common()
    if len(most_common) == 1:
        return most_common[0][0]
    return "; ".join(f"in {count} of {len(reasons)} groups {reason}" for reason, count in most_common)
