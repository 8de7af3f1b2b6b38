"""Neighbour search by an index on the host: the protocol, and the k-d tree.

An index proposes rows; the device computes their distances, so that an index never decides bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import missing_extra
from ..launch.progress import report_progress
from .index_faiss import Graph, InvertedLists

Points = NDArray[np.floating[Any]]
_AGAIN = 8  # An approximate index is asked for this many times the candidates that would do if none were missed.


class Index(Protocol):
    """States in an order that is fast to search.

    Attributes
    ----------
    exact : bool
        Whether the rows returned are the nearest, up to rounding.
    """

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
    k : int
    exclusion_radius : int
        -1 for none.
    n : int
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
