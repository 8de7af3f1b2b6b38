"""Approximate indices of Faiss: inverted lists (IVF) and a hierarchical graph (HNSW).

Johnson, Douze & Jegou, IEEE Trans. Big Data 7, 535 (2021); Malkov & Yashunin, IEEE TPAMI 42, 824 (2020).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import missing_extra
from ..launch.progress import report_progress

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
