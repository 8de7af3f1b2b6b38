"""Threads of this process that share a pass over many bytes, or do something beside the caller."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Piece = TypeVar("Piece")
T = TypeVar("T")

_MOST = 8  # more threads than that gain little in a pass: they wait for the same memory


@functools.cache
def n_threads(most: int = _MOST) -> int:
    """How many threads share some work: no more than there are cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, most)


class KeptThreads:
    """Threads that begin when they are asked for, and are kept: starting one takes a tenth of a millisecond.

    Parameters
    ----------
    n : int
    """

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
    pieces : sequence
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
