"""Threads that share a pass over many bytes, and are kept for the next one."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
T = TypeVar("T")

_MOST = 8  # more threads than that gain little: they wait for the same memory


def side_by_side(work: Callable[[Piece], T], pieces: Sequence[Piece]) -> list[T]:
    """What ``work`` gives for each piece, several at once where there are cores for it.

    The caller's thread does its part. So it never waits for others to begin, be they busy with another pass. To gain by
    it, a piece must be work that lets other threads run: NumPy on some thousand numbers, a digest.

    Parameters
    ----------
    work : callable
        Raises what the caller gets.
    pieces : sequence
    """
    if len(pieces) == 1:
        return [work(pieces[0])]
    results: dict[int, T] = {}
    numbers = itertools.count()  # of which no two threads get the same

    def share() -> None:
        while (number := next(numbers)) < len(pieces):
            results[number] = work(pieces[number])

    helpers: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # no thread is to be had, or the process ends: the caller's does it all
        helpers += (_threads.pool().submit(share) for _ in range(min(len(pieces), n_threads()) - 1))
    share()
    for helper in helpers:
        if not helper.cancel():
            helper.result()
    return [results[number] for number in range(len(pieces))]


@functools.cache
def n_threads() -> int:
    """How many threads share a pass: no more than there are cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, _MOST)


class _Threads:
    """The threads, which begin when they are asked for: starting one takes a tenth of a millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max(n_threads() - 1, 1), "pyedmcl pass")
            return self._pool


_threads = _Threads()


def _after_fork() -> None:
    # The threads are the parent's only.
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
