"""Surrogates of many series at a time: the threads that draw them, and the memory that they fill."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.side_by_side import KeptThreads, n_threads
from ...jobs.blocks import cut
from ..shared import arguments
from .surrogate_makers import Doubles, Maker
from .surrogate_streams import TOGETHER, Streams

_CELLS = 1 << 16  # of surrogates that are made together: what they are made of fits into a cache, and is used again
# Threads take turns at the interpreter after each step of NumPy: more of them wait longer, and longer steps wait less.
# 16,384 surrogates of 3,000 steps took 1.2 s on one core, 0.90 on 16, 0.73 on 4, and with longer steps 0.31 on 4.
# With threads and memory that are kept, numbers take 14.8 ns on a host of 8 cores with two threads each; on 8 threads
# 3.35, on 12 3.04, on 16 2.92, where the thread that launches kernels is to have one, too.
_THREADS, _LONGER = 12, 8


class Drawer:
    """Draws surrogates. Its threads, and memory that it gets back, serve from one draw to the next.

    A system clears each page of memory that is asked for afresh: where that is dear, as on virtual machines, it takes
    as long as to draw what the page will hold.
    """

    def __init__(self) -> None:
        self._threads = KeptThreads(n_threads(_THREADS))  # NumPy lets others work while it transforms an array
        self._free: list[NDArray[np.uint8]] = []

    def draw(self, several: Sequence[tuple[NDArray[Any], Maker, int]], seed: int, first: int) -> None:
        """Surrogates from ``first`` on of several series: (out, make, number) of each.

        ``out`` (n, n_steps) may be of any type and layout. How the random streams of series are kept apart is said in
        :mod:`pyedmcl.edm.surrogates.surrogate_streams`.
        """

        cells = _CELLS * (_LONGER if self._threads.n > 2 else 1)
        parts = []
        for out, make, number in several:
            rows = max(cells // out.shape[1], 1)  # whole streams where there are many
            rows -= rows % TOGETHER if rows > TOGETHER else 0
            for part in cut(len(out), rows):
                streams = Streams(seed, number, first + part.begin, first + part.end)
                parts.append(functools.partial(_fill, out[part.begin : part.end], make, streams))
        self.run(parts)

    def run(self, parts: Sequence[Callable[[], None]]) -> None:
        """Do all parts of some work, side by side where there are several."""
        self._threads.share(lambda part: part(), parts)

    def room(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array of unknown content, in memory that was given back where that is large enough."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        held = self._free.pop() if self._free else None
        if held is None or held.nbytes < nbytes:
            held = np.empty(nbytes, np.uint8)
        array: NDArray[Any] = held[:nbytes].view(dtype).reshape(shape)
        return array

    def give_back(self, array: NDArray[Any]) -> None:
        """Have the memory of an array from :meth:`room` used again."""
        if array.base is not None:
            self._free.append(array.base)

    def release(self) -> None:
        """Give all memory back to the system, and end the threads; the next draw begins others."""
        self._free.clear()
        self._threads.end()


def _fill(out: NDArray[Any], make: Maker, streams: Streams) -> None:
    out[...] = make(streams).astype(out.dtype, copy=False)  # where time is the first axis, turned


def draw(make: Maker, n: int, seed: int, number: int, n_steps: int, first: int = 0) -> Doubles:
    """n surrogates (n, n_steps) of series ``number`` from ``first`` on."""
    out = arguments.room("n", (n, n_steps))
    drawer = Drawer()
    try:
        drawer.draw([(out, make, number)], seed, first)
    finally:
        drawer.release()
    return out
