"""Indices on the host that propose neighbours: k-d tree and Faiss, and how many true neighbours they miss."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import missing_extra
from ..launch.progress import report_progress

if TYPE_CHECKING:
    from .plan import SearchProblem
    from .tables import HostStates


# Approximate indices of Faiss: inverted lists (IVF) and a hierarchical graph (HNSW).
#
# Johnson, Douze & Jegou, IEEE Trans. Big Data 7, 535 (2021); Malkov & Yashunin, IEEE TPAMI 42, 824 (2020).


_PER_LIST = 32  # states a list is trained with
_DIRECT = 16  # queries at a time for which Faiss subtracts coordinates; with more it expands squares and loses digits
_ADDED = 1 << 16  # states that are put into lists at a time, after which progress is told
_LINKS, _BUILD_EFFORT = 16, 40


def _faiss(purpose: str) -> Any:
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("faiss-cpu", "approximate", purpose) from error
    return faiss


@contextmanager
def threads(faiss: Any) -> Iterator[None]:
    """All cores for Faiss while the device waits, and as many as before afterwards."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _single(points: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(points, np.float32)


def brute_force(points: NDArray[Any], query_points: NDArray[Any], m: int) -> NDArray[np.int64]:
    """Places (n, m) of the nearest states of a few queries, by comparing all."""
    faiss = _faiss("measuring recall")
    states, queries = _single(points), _single(query_points)
    with threads(faiss):
        parts = [faiss.knn(queries[a : a + _DIRECT], states, m)[1] for a in range(0, len(queries), _DIRECT)]
    return np.concatenate(parts) if parts else np.empty((0, m), np.int64)


class InvertedLists:
    """IVF: states in lists around centres; the lists nearest to a query are searched.

    Parameters
    ----------
    points : ndarray (n, E)
    """

    exact = False

    def __init__(self, points: NDArray[Any]) -> None:
        self._faiss = faiss = _faiss("neighbors='ivf'")
        states = _single(points)
        n, E = states.shape
        self.lists = max(int(2 * n**0.5), 1)
        self.probes = min(4, self.lists)
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(E), E, self.lists)
        self._index.cp.max_points_per_centroid = _PER_LIST
        self._index.cp.min_points_per_centroid = 1
        self._index.cp.niter = 5
        with threads(faiss):
            report_progress(0, n, "states")
            self._index.train(states)
            for a in range(0, n, _ADDED):
                self._index.add(states[a : a + _ADDED])
                report_progress(min(a + _ADDED, n), n, "states")

    def search(self, points: NDArray[Any], m: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        self._index.nprobe = self.probes
        with threads(self._faiss):
            squared, place = self._index.search(_single(points), m)
        return place, squared[:, -1].astype(np.float64)

    def refine(self) -> bool:
        """Twice as many lists; False beyond an eighth of them, where comparing all pairs costs little more."""
        if 8 * self.probes > self.lists:
            return False
        self.probes *= 2
        return True


class Graph:
    """HNSW: a graph of near states, walked greedily from coarse to fine.

    Parameters
    ----------
    points : ndarray (n, E)
    """

    exact = False

    def __init__(self, points: NDArray[Any]) -> None:
        self._faiss = faiss = _faiss("neighbors='hnsw'")
        states = _single(points)
        self.effort = 32
        self._index = faiss.IndexHNSWFlat(states.shape[1], _LINKS)
        self._index.hnsw.efConstruction = _BUILD_EFFORT
        report_progress(0, len(states), "states")
        with threads(faiss):
            # All at once: Faiss begins with the coarse levels of all states. Grown in pieces of 2^15 a graph of 2^16 or
            # more took 1.3 times as long to search and found 95 % where this one finds 99.8 % (E = 1).
            self._index.add(states)
        report_progress(len(states), len(states), "states")

    def search(self, points: NDArray[Any], m: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        self._index.hnsw.efSearch = max(self.effort, m)
        with threads(self._faiss):
            squared, place = self._index.search(_single(points), m)
        return place, squared[:, -1].astype(np.float64)

    def refine(self) -> bool:
        """Twice the candidates kept while walking; False beyond 1,024."""
        if self.effort >= 1024:
            return False
        self.effort *= 2
        return True


# An index proposes rows; the device computes their distances, so that an index never decides bits.


Points = NDArray[np.floating[Any]]
_AGAIN = 8  # An approximate index is asked for this many times the candidates that would do if none were missed.


class Index(Protocol):
    """States in an order that is fast to search."""

    # Whether the rows returned are the nearest, up to rounding.
    exact: bool

    def search(self, points: Points, m: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places of up to ``m`` near states (n, m), -1 for none, and the squared distance (n,) of the last of them.

        Of an exact index no other state is nearer than that, as double precision sees it.
        """

    def refine(self) -> bool:
        """Look at more states from now on; False where all of worth are looked at."""


class KDTree:
    """A k-d tree (Friedman, Bentley & Finkel 1977) of SciPy, on all cores.

    Parameters
    ----------
    points : ndarray (n, E)
    """

    exact = True

    def __init__(self, points: Points) -> None:
        try:
            from scipy.spatial import cKDTree
        except ImportError as error:
            raise missing_extra("scipy", "approximate", "neighbors='kdtree'") from error
        report_progress(0, len(points), "states")
        # Cells are cut in the middle: twice as fast to build as by medians, and as fast to search.
        self._tree = cKDTree(np.ascontiguousarray(points, np.float64), balanced_tree=False, compact_nodes=True)
        report_progress(len(points), len(points), "states")

    def search(self, points: Points, m: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        queries, cores = np.ascontiguousarray(points, np.float64), os.cpu_count() or 1
        # Ctrl-C would end SciPy's call while its threads still write into what it then frees. In a thread of our own it
        # comes to its end first, since only the main thread is interrupted.
        with ThreadPoolExecutor(1) as thread:
            distance, place = thread.submit(self._tree.query, queries, k=m, workers=cores).result()
        shape = (len(points), m)
        distance, place = distance.reshape(shape), place.reshape(shape)
        return np.where(place < self._tree.n, place, -1), distance[:, -1] ** 2

    def refine(self) -> bool:
        return False


def make_index(name: str, points: Points) -> Index:
    """Build an index of states (n, E). Raises MissingExtraError where its package is not there."""
    kinds: dict[str, Callable[[Points], Index]] = {"kdtree": KDTree, "ivf": InvertedLists, "hnsw": Graph}
    return kinds[name](points)


def candidate_counts(k: int, exclusion_radius: int, n: int, exact: bool) -> Iterator[int]:
    """How many candidates to ask an index of ``n`` states for: few, then twice as many for queries that are still open.

    The last is ``n``, for which an approximate index is not asked, since it may not find all: states are compared.

    Parameters
    ----------
    exclusion_radius : int
        -1 for none.
    exact : bool
        Whether the index is exact.
    """
    excluded = 2 * exclusion_radius + 1 if exclusion_radius >= 0 else 0
    m = min(k + 1 + min(excluded, 2 * k + 16), n)
    last = n if exact else _AGAIN * sufficient_count(k, exclusion_radius)
    while m < min(last, n):
        yield m
        m *= 2
    yield n


def sufficient_count(k: int, exclusion_radius: int) -> int:
    """Nearest states that hold the ``k`` nearest outside the exclusion radius, whichever it excludes, and one more."""
    return k + 1 + (2 * exclusion_radius + 1 if exclusion_radius >= 0 else 0)


def index_bytes(name: str, n: int, E: int) -> int:
    """Host memory that an index of ``n`` states takes, with the states themselves, in bytes; an upper estimate."""
    if name == "kdtree":
        return n * (8 * E * 2 + 8 + 24)  # states twice while the tree is built, places, nodes of at most 16 states
    if name == "hnsw":
        return n * (4 * E * 2 + 4 * 2 * 32 + 64)
    return n * (4 * E * 2 + 8 + 16)


# How many of the true neighbours an approximate search finds: measured on samples, with an interval.


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
    """Recall on a sample of queries."""

    # Share of the sampled neighbour slots whose neighbour was found.
    recall: float
    # (float, float). Wilson's score interval, 95 %, for as many independent slots as the sample is worth.
    interval: tuple[float, float]
    queries: int
    slots: int
    # Whether the sample shows that the recall is what was asked for: the lower end of an interval, which is wider for
    # looking several times, lies at or above it.
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
    problem : SearchProblem
        Of one dimension.
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
