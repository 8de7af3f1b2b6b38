"""Passes over large arrays, shared by threads that are kept: any work in parts, least and greatest values, digests."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# Threads of this process that share a pass over many bytes, or do something beside the caller.


Piece = TypeVar("Piece")
T = TypeVar("T")

_MOST = 8  # more threads than that gain little in a pass: they wait for the same memory


@functools.cache
def n_threads(most: int = _MOST) -> int:
    """How many threads share some work: no more than there are cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, most)


class KeptThreads:
    """Threads that begin when they are asked for, and are kept: starting one takes a tenth of a millisecond."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def share(self, work: Callable[[Piece], T], pieces: Sequence[Piece]) -> list[T]:
        """See :func:`side_by_side`."""
        if len(pieces) == 1:
            return [work(pieces[0])]
        results: dict[int, T] = {}
        numbers = itertools.count()  # of which no two threads get the same

        def share() -> None:
            while (number := next(numbers)) < len(pieces):
                results[number] = work(pieces[number])

        helpers = list(filter(None, (self._submit(share) for _ in range(min(len(pieces), self.n) - 1))))
        try:
            share()
        finally:  # where a piece fails, too, nothing is under way afterwards
            wait([helper for helper in helpers if not helper.cancel()])
        for helper in helpers:
            if not helper.cancelled():
                helper.result()
        return [results[number] for number in range(len(pieces))]

    def begin(self, work: Callable[[], T]) -> Callable[[], T]:
        """See :func:`meanwhile`."""
        future = self._submit(work)
        return work if future is None else lambda: work() if future.cancel() else future.result()

    def end(self) -> None:
        """Wait until all is done. Threads that are asked for afterwards begin anew."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _submit(self, work: Callable[[], T]) -> Future[T] | None:
        """Work for one of the threads; None where none is to be had, or the process ends."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.n, "pyedmcl pass")
            try:
                return self._pool.submit(work)
            except RuntimeError:
                return None


_threads = KeptThreads(n_threads())


def side_by_side(work: Callable[[Piece], T], pieces: Sequence[Piece]) -> list[T]:
    """What ``work`` gives for each piece, several at once where there are cores for it.

    The caller's thread does its part, so that it never waits for threads that are busy elsewhere. A piece must be work
    that lets other threads run: NumPy on a megabyte or more, a digest.

    Parameters
    ----------
    work : callable
        Raises what the caller gets.
    """
    return _threads.share(work, pieces)


def meanwhile(work: Callable[[], T]) -> Callable[[], T]:
    """The same work, done by another thread from now on, or by the caller where that asks for it first."""
    return _threads.begin(work)


def _after_fork() -> None:
    # The threads are the parent's only, and one of them may have held the lock.
    global _threads
    _threads = KeptThreads(n_threads())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# What a digest of many bytes is made from, so that several threads share the work.


PIECE = 16 << 20  # bytes that are digested by themselves: some hundredths of a second


def digested(values: NDArray[np.uint8]) -> Iterable[Any]:
    """The bytes themselves where they are few, else the SHA-256 of each piece of them."""
    if values.nbytes <= PIECE:
        return [values.data]
    pieces = [values[at : at + PIECE].data for at in range(0, values.nbytes, PIECE)]
    return side_by_side(lambda piece: hashlib.sha256(piece).digest(), pieces)


# Least and largest value of each series, in one pass over the data; series that never change.


_BLOCK_CELLS = 1 << 19  # what both reductions find in the cache, and enough to keep threads from waiting for each other
_LEAST_BYTES = 1 << 20  # that repay handing them to another thread
_WIDE = 512  # NumPy reduces rows as short as a few numbers some hundred times slower


def extent(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Minimum and maximum of each column.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        C-contiguous, of at least one step.

    Returns
    -------
    low, high : ndarray (n_series,)
        NaN where a column has a NaN.
    """
    n_steps, most = len(values), values.nbytes // _LEAST_BYTES
    if most < 2:
        return _extent(values)
    rows = -(-n_steps // min(most, n_threads(), n_steps))
    several = side_by_side(_extent, [values[a : a + rows] for a in range(0, n_steps, rows)])
    return np.minimum.reduce([low for low, _ in several]), np.maximum.reduce([high for _, high in several])


def _extent(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    n_steps, n = values.shape
    fold = min(max(_WIDE // n, 1), n_steps)
    folded_steps = n_steps // fold * fold
    wide = values[:folded_steps].reshape(-1, fold * n)  # several steps side by side
    low, high = wide[0].copy(), wide[0].copy()
    rows = max(1, _BLOCK_CELLS // wide.shape[1])
    for start in range(0, len(wide), rows):
        block = wide[start : start + rows]
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    rest = values[folded_steps:]
    low = np.concatenate([low.reshape(fold, n), rest]).min(axis=0)
    high = np.concatenate([high.reshape(fold, n), rest]).max(axis=0)
    return low, high


def bounds(
    values: NDArray[Any], known: tuple[NDArray[Any], NDArray[Any]] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Minimum and maximum of what is present of each column, 0 and 0 where nothing is, and which columns have gaps.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
    known : (ndarray, ndarray), optional
        Their :func:`extent`, where it has been found before.
    """
    low, high = (bound.astype(np.float64) for bound in known or extent(values))
    gaps = np.isnan(low)
    for column in np.flatnonzero(gaps):
        present = values[~np.isnan(values[:, column]), column]
        low[column], high[column] = (present.min(), present.max()) if present.size else (0.0, 0.0)
    return low, high, gaps


def present_extent(values: NDArray[Any]) -> tuple[float, float]:
    """Minimum and maximum of all values that are present; NaN and NaN where none is.

    Parameters
    ----------
    values : ndarray
        C-contiguous, of at least one value.
    """
    flat = values.reshape(-1)
    if values.nbytes <= _LEAST_BYTES:
        return float(np.fmin.reduce(flat)), float(np.fmax.reduce(flat))
    blocks = [flat[a : a + _BLOCK_CELLS] for a in range(0, len(flat), _BLOCK_CELLS)]
    several = side_by_side(lambda block: (np.fmin.reduce(block), np.fmax.reduce(block)), blocks)
    return float(np.fmin.reduce([low for low, _ in several])), float(np.fmax.reduce([high for _, high in several]))
