"""Parts of a matrix that several devices have walked, joined and finished on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from .counts import Counts
from .finish import Finish, RadiusBuffers
from .partial import Partial, in_order

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem


class DeviceJoin:
    """Joins and finishes on a device, so that the host, which all devices would wait for, only hands parts on.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
    lines : sequence of int
        Diagonals, rows and columns of a part, as its segments have them.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, lines: Sequence[int]) -> None:
        self._executor, self._problem = executor, problem
        self._longest = max(problem.n_rows, problem.n_columns)
        self._held: list[Buffer] = []
        self._finish = Finish(executor, problem, self._longest)
        new = self._new
        self._buffers = RadiusBuffers(
            new(20 * lines[0]), new(20 * lines[1]), new(20 * lines[2]), new(16 * (self._longest + 1)),
            new(32 * (self._longest + 1)),
        )  # fmt: skip
        self._other = new(20 * max(lines))

    @staticmethod
    def fits(executor: Executor, problem: RqaProblem, lines: Sequence[int]) -> bool:
        """Whether the device has room for it."""
        room, longest = budget(executor.info), max(problem.n_rows, problem.n_columns) + 1
        buffers = [*(20 * n for n in lines), 20 * max(lines), 16 * longest, 32 * longest]
        return sum(buffers) <= room.total and max(buffers) <= room.largest

    def _new(self, nbytes: int) -> Buffer:
        self._held.append(self._executor.allocate(nbytes))
        return self._held[-1]

    def counts(self, parts: Sequence[Partial], identity: NDArray[np.bool_] | None) -> Counts:
        """Of one radius.

        Parameters
        ----------
        parts : sequence of Partial
            Of all rows, in any order.
        identity : ndarray of bool, optional
            As for :meth:`Finish.counts`.
        """
        upload, buffers = self._executor.upload, self._buffers
        first, *others = in_order(parts)
        sums = np.zeros((4, self._longest + 1), np.uint64)
        for part in (first, *others):
            sums[:3, : part.histograms.shape[1]] += part.histograms.view(np.uint64)
        upload(sums, buffers.sums)
        upload(np.zeros(buffers.counts.nbytes // 4, np.uint32), buffers.counts)
        segments = (("diagonals", buffers.diagonals), ("rows", buffers.rows), ("columns", buffers.columns))
        for name, buffer in segments:
            n = getattr(first, name).shape[1]
            if n == 0:  # rows of a matrix that is not symmetric
                continue
            upload(np.ascontiguousarray(getattr(first, name)), buffer)
            for part in others:
                upload(np.ascontiguousarray(getattr(part, name)), self._other)
                self._finish.join(buffer, self._other, n, buffers.counts, verticals=name != "diagonals")
        return self._finish.counts(buffers, identity)

    def release(self) -> None:
        """Give the device memory back."""
        self._finish.release()
        for buffer in self._held:
            buffer.release()
        self._held.clear()
