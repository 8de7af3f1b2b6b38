"""How many of the true neighbours an approximate search finds: measured on samples, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .index import candidate_counts, sufficient_count
from .index_faiss import brute_force

if TYPE_CHECKING:
    from .index import Index
    from .plan import SearchProblem
    from .series import HostStates

_ROUNDS = (64, 256, 1024, 4096)  # queries looked at, until it is clear whether the recall suffices
_WIDTH = 1 << 26  # true neighbours looked at, those in the exclusion radius with them, likewise
_HELD = 1 << 22  # of them at a time
_CELLS = 1 << 32  # pairs times coordinates compared at most, while more than the least number of queries are left
_Z = 1.959963984540054  # 95 %
# Each of four looks may err with a quarter of 5 % (Bonferroni), so that looking again does not help a bad index.
_Z_LOOK = 2.497705474412374
# Where so few queries miss anything that the design effect cannot be known, it is taken to be at least this. Measured
# at recalls above 0.99 (Lorenz with and without noise, E = 3 and 20): 1 to 3.4, mostly below 2.
_FEW, _EFFECT = 8, 2.0


@dataclass(frozen=True)
class Measured:
    """Recall on a sample of queries.

    Attributes
    ----------
    recall : float
        Share of the sampled neighbour slots whose neighbour was found.
    interval : (float, float)
        Wilson's score interval, 95 %, for as many independent slots as the sample is worth.
    queries, slots : int
    reached : bool
        Whether the sample shows that the recall is what was asked for: the lower end of an interval, which is wider for
        looking several times, lies at or above it.
    """

    recall: float
    interval: tuple[float, float]
    queries: int
    slots: int
    reached: bool

    @property
    def how(self) -> str:
        return f"{self.slots:,} neighbours of {self.queries} queries; Wilson interval, 95 %, for clustered samples"


def wilson(hits: float, slots: float, z: float = _Z) -> tuple[float, float]:
    """Wilson's score interval (JASA 22, 209, 1927) of a share, 95 % by default; (0, 1) where nothing was sampled."""
    if slots <= 0:
        return 0.0, 1.0
    p, z2 = hits / slots, z * z
    middle = (p + z2 / (2 * slots)) / (1 + z2 / slots)
    half = z / (1 + z2 / slots) * float(np.sqrt(p * (1 - p) / slots + z2 / (4 * slots * slots)))
    # At the ends the formula gives them exactly, but rounding does not.
    return max(middle - half, 0.0) if hits else 0.0, min(middle + half, 1.0) if hits < slots else 1.0


def effective_slots(hits: NDArray[np.int64], slots: NDArray[np.int64], population: int) -> float:
    """Independent slots that a sample of queries is worth.

    Slots of one query are found or missed together, so that they are worth fewer: their number is divided by the design
    effect (Kish, Survey Sampling, 1965), the variance of the share among queries over that of independent slots.
    Queries drawn without replacement from few are worth more.

    Parameters
    ----------
    hits, slots : ndarray of int (n,)
        Neighbours found, and those there are, of each sampled query.
    population : int
        Queries drawn from; infinity is worth where all of them are in the sample.
    """
    n, total = len(hits), int(slots.sum())
    if n >= population:
        return float("inf")
    if n < 2 or not total:
        return float(total)
    p = float(hits.sum()) / total
    alone = p * (1 - p) / total
    among = n / (n - 1) * float(((hits - p * slots) ** 2).sum()) / total**2
    least = min(_EFFECT, total / n) if (hits < slots).sum() < _FEW else 1.0
    effect = max(among / alone, least) if alone > 0 else least
    return total / (effect * (1 - n / population))


def judged(hits: NDArray[np.int64], slots: NDArray[np.int64], population: int, target: float) -> tuple[Measured, bool]:
    """What a sample says of the recall, and whether a larger one could say something else.

    Parameters
    ----------
    hits, slots, population
        As for :func:`effective_slots`.
    target : float
    """
    total = int(slots.sum())
    share = float(hits.sum()) / total if total else 1.0
    worth = effective_slots(hits, slots, population)
    if not total or np.isinf(worth):  # nobody is left out: there is nothing to be unsure of
        return Measured(share, (share, share), len(hits), total, share >= target), False
    low, high = wilson(share * worth, worth, _Z_LOOK)
    return Measured(share, wilson(share * worth, worth), len(hits), total, low >= target), low < target <= high


def measure(index: Index, library: HostStates, queries: HostStates, problem: SearchProblem, target: float) -> Measured:
    """Recall of an index; it is refined until a sample of queries shows that it suffices.

    A sample grows while its interval holds the target, up to 4,096 queries or some seconds of comparing. Where not even
    a perfect sample could show so high a recall, the index is not refined.

    Parameters
    ----------
    index : Index
    library, queries : HostStates
    problem : SearchProblem
        Of one dimension.
    target : float
    """
    sample = _Sample(library, queries, problem)
    perfect = np.full(sample.sizes[-1], problem.ks[0])
    hopeful = judged(perfect, perfect, len(queries.rows), target)[0].reached
    while True:
        hits = np.empty(0, np.int64)
        for size in sample.sizes if hopeful else sample.sizes[:1]:
            hits = np.concatenate([hits, sample.hits(index, len(hits), size)])
            measured, undecided = judged(hits, sample.slots[:size], len(queries.rows), target)
            if not undecided:
                break
        if measured.reached or not hopeful or not index.refine():
            return measured


class _Sample:
    """Queries drawn at random, in a fixed order, and their true neighbours, which are computed when first needed.

    Each setting of an index is measured on the same queries: the settings do not depend on them.
    """

    def __init__(self, library: HostStates, queries: HostStates, problem: SearchProblem) -> None:
        self._library, self._queries = library, queries
        self._k, self._exclusion_radius, n = problem.ks[0], problem.exclusion_radius, len(library.rows)
        # As many that the nearest outside the exclusion radius are among them, however many it excludes.
        self._m = min(sufficient_count(self._k, self._exclusion_radius), n)
        most = min(_CELLS // max(n * problem.dims[0], 1), _WIDTH // max(self._m, 1))
        most = min(max(most, _ROUNDS[0]), _ROUNDS[-1], len(queries.rows))
        self.sizes = sorted({min(size, most) for size in _ROUNDS})
        # The same sample for the same data, so that a result can be had again.
        self._rows = np.random.default_rng(n).choice(queries.rows, most, replace=False)
        self._points = library.points(library.rows)
        self._true = np.empty((0, self._k))

    @property
    def slots(self) -> NDArray[np.int64]:
        """How many true neighbours each query so far has."""
        counts: NDArray[np.int64] = np.isfinite(self._true).sum(axis=1)
        return counts

    def hits(self, index: Index, a: int, b: int) -> NDArray[np.int64]:
        """True neighbours that an index finds for queries a to b of the sample."""
        rows = self._rows[a:b]
        points = self._queries.points(rows)
        if len(self._true) < b:
            self._true = np.concatenate([self._true, self._nearest(points, rows)])
        true = self._true[a:b]
        last = np.where(np.isfinite(true), true, -1).max(axis=1, keepdims=True, initial=-1)
        squared = self._of_index(index, points, rows, true)
        # Another row as near as the last one would do as well: which of them comes first is decided by the row.
        hits: NDArray[np.int64] = np.minimum((squared <= last).sum(axis=1), self.slots[a:b])
        return hits

    def _nearest(self, points: NDArray[Any], rows: NDArray[np.int32]) -> NDArray[Any]:
        """Squared distances (n, k) of the true neighbours, by comparing all pairs."""
        out, step = np.full((len(points), self._k), np.inf), max(_HELD // max(self._m, 1), 1)
        for a in range(0, len(points), step):
            part = slice(a, a + step)
            kept = self._kept(brute_force(self._points, points[part], self._m), points[part], rows[part])
            out[part, : kept.shape[1]] = kept
        return out

    def _of_index(
        self, index: Index, points: NDArray[Any], rows: NDArray[np.int32], true: NDArray[Any]
    ) -> NDArray[Any]:
        """Squared distances (n, k) that the search would find.

        It asks the index again for queries that lack neighbours, and at last compares all pairs.
        """
        n, short = len(self._points), np.arange(len(points))
        out = np.full((len(points), self._k), np.inf)
        for m in candidate_counts(self._k, self._exclusion_radius, n, index.exact):
            if not len(short):
                break
            if m >= n and not index.exact:
                out[short] = true[short]
                break
            kept = self._kept(index.search(points[short], m)[0], points[short], rows[short])
            out[short, : kept.shape[1]] = kept
            short = short[np.isfinite(kept).sum(axis=1) < self._k]
        return out

    def _kept(self, place: NDArray[np.int64], points: NDArray[Any], rows: NDArray[np.int32]) -> NDArray[Any]:
        """Squared distances (n, k) of the k nearest candidates outside the exclusion radius, inf for none."""
        library, at = self._points, np.maximum(place, 0)
        squared = np.zeros(place.shape, library.dtype)
        for e in range(library.shape[1]):
            difference = points[:, e, None] - library[at, e]
            squared += difference * difference
        excluded = place < 0
        if self._exclusion_radius >= 0:
            excluded |= np.abs(self._library.rows[at].astype(np.int64) - rows[:, None]) <= self._exclusion_radius
        squared[excluded] = np.inf
        return np.sort(squared, axis=1)[:, : self._k]
