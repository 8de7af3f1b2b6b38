"""How many of the true neighbours an approximate search finds: measured on a sample, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..plan import Search
    from .index import Index

_LEAST, _MOST = 64, 256  # queries of a sample
_CELLS = 1 << 25  # pairs compared at most, while more than the least number of queries are left
_Z = 1.959963984540054  # 95 %


@dataclass(frozen=True)
class Measured:
    """Recall on a sample of queries.

    Attributes
    ----------
    recall : float
        Share of the sampled neighbour slots whose neighbour was found.
    interval : (float, float)
        Wilson score interval, 95 %.
    queries, slots : int
    """

    recall: float
    interval: tuple[float, float]
    queries: int
    slots: int

    @property
    def how(self) -> str:
        return f"{self.slots:,} neighbours of {self.queries} queries; Wilson interval, 95 %"


def wilson(found: int, slots: int) -> tuple[float, float]:
    """Wilson's score interval (JASA 22, 209, 1927) of a share, 95 %; (0, 1) where nothing was sampled.

    Slots count as independent, which neighbours of one query are only roughly.
    """
    if slots < 1:
        return 0.0, 1.0
    p, z2 = found / slots, _Z * _Z
    middle = (p + z2 / (2 * slots)) / (1 + z2 / slots)
    half = _Z / (1 + z2 / slots) * float(np.sqrt(p * (1 - p) / slots + z2 / (4 * slots * slots)))
    # At the ends the formula gives them exactly, but rounding does not.
    return max(middle - half, 0.0) if found else 0.0, min(middle + half, 1.0) if found < slots else 1.0


def measure(index: Index, states: Any, queries: Any, search: Search, target: float) -> Measured:
    """Recall of an index on samples of queries; it is refined, and measured on another sample, until it suffices.

    Parameters
    ----------
    index : Index
    states, queries
        Rows, and the coordinates of rows, of library and query.
    search : Search
        Of one dimension.
    target : float
    """
    from .index_faiss import brute_force

    k, radius, n = search.counts[0], search.exclusion_radius, len(states.rows)
    rng = np.random.default_rng(n)  # the same sample for the same data, so that a result can be had again
    points = states.points(states.rows)
    near = min(2 * radius + 1, 2 * k + 16) if radius >= 0 else 0
    m = min(k + 1 + near, n)
    while True:
        size = min(max(_CELLS // max(n, 1), _LEAST), _MOST, len(queries.rows))
        times = np.sort(rng.choice(queries.rows, size, replace=False))
        asked = queries.points(times)
        true = _kept(brute_force(points, asked, m), points, asked, states.rows, times, k, radius)
        found = _kept(index.search(asked, m)[0], points, asked, states.rows, times, k, radius)
        last = np.where(np.isfinite(true), true, -1).max(axis=1, keepdims=True, initial=-1)
        slots = int(np.isfinite(true).sum())
        # Another row as near as the last one would do as well: which of them comes first is decided by the row.
        hits = min(int((found <= last).sum()), slots)
        share = hits / slots if slots else 1.0
        if share >= target or not index.refine():
            return Measured(share, wilson(hits, slots), len(times), slots)


def _kept(
    place: NDArray[np.int64], points: NDArray[Any], asked: NDArray[Any], rows: NDArray[np.int32],
    times: NDArray[np.int32], k: int, radius: int,
) -> NDArray[Any]:  # fmt: skip
    """Squared distances (n, k) of the k nearest legal candidates, inf for none."""
    at = np.maximum(place, 0)
    squared = np.zeros(place.shape, points.dtype)
    for e in range(points.shape[1]):
        step = asked[:, e, None] - points[at, e]
        squared += step * step
    barred = place < 0
    if radius >= 0:
        barred |= np.abs(rows[at].astype(np.int64) - times[:, None]) <= radius
    squared[barred] = np.inf
    return np.sort(squared, axis=1)[:, :k]
