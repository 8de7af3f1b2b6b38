"""Parts of a matrix that several devices have walked, joined and finished on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..kernels import spec
from ..tuning.parameters import parameters
from .counts import Counts
from .finish import Finish
from .line_buffers import WALKED_KINDS, LineBuffers, lines_in, segment_bytes
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
        self._buffers = LineBuffers.allocated(self._new, lines, self._longest)
        self._other = self._new(segment_bytes(max(lines)))
        values = dict(parameters(spec("recurrence_lines"), {}, executor.info).parameters)
        entries = ("recurrence_clear", "recurrence_zero")
        self._kernels = {entry: build(executor, spec("recurrence_lines"), values, entry) for entry in entries}

    @staticmethod
    def fits(executor: Executor, problem: RqaProblem, lines: Sequence[int]) -> bool:
        """Whether the device has room for it."""
        room, longest = budget(executor.info), max(problem.n_rows, problem.n_columns)
        buffers = [*LineBuffers.sizes(lines, longest).values(), segment_bytes(max(lines))]
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
        buffers.clear(self._executor, self._kernels)
        sums = np.zeros((WALKED_KINDS, max(part.histograms.shape[1] for part in ordered)), np.int64)
        for part in ordered:
            sums[:, : part.histograms.shape[1]] += part.histograms
        for number, row in enumerate(sums):
            upload(row, buffers.sums, 8 * number * (self._longest + 1))
        for number, kind in enumerate(KINDS):
            buffer: Buffer = getattr(buffers, kind)
            n = lines_in(buffer)
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
