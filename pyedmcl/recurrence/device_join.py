"""Parts of a matrix that several devices have walked, joined and finished on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..kernels import spec
from ..launch.sizes import open_size
from ..tuning.parameters import parameters
from .counts import Counts
from .finish import Finish, RadiusBuffers
from .partial import KINDS, Partial, in_order

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
        values = dict(parameters(spec("recurrence_lines"), {}, executor.info).parameters)
        entries = ("recurrence_clear", "recurrence_zero")
        self._kernels = {entry: build(executor, spec("recurrence_lines"), values, entry) for entry in entries}

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
        ordered = in_order(parts)
        for numbers in (buffers.counts, buffers.sums):
            n = numbers.nbytes // 4
            self._executor.launch(self._kernels["recurrence_zero"], open_size(n), None, numbers=numbers, n=n)
        sums = np.zeros((3, max(part.histograms.shape[1] for part in ordered)), np.int64)
        for part in ordered:
            sums[:, : part.histograms.shape[1]] += part.histograms
        for number, row in enumerate(sums):
            upload(row, buffers.sums, 8 * number * (self._longest + 1))
        for number, kind in enumerate(KINDS):
            buffer: Buffer = getattr(buffers, kind)
            n = buffer.nbytes // 20
            self._executor.launch(self._kernels["recurrence_clear"], open_size(n), None, segments=buffer, n=n)
            for part in ordered:
                segments = np.ascontiguousarray(getattr(part, kind))
                upload(segments, self._other)
                held = int(part.lines[number, 0]), segments.shape[1]
                self._finish.join(buffer, self._other, n, buffers.counts, verticals=number > 0, held=held)
        return self._finish.counts(buffers, identity)

    def release(self) -> None:
        """Give the device memory back."""
        self._finish.release()
        for buffer in self._held:
            buffer.release()
        self._held.clear()
