"""Counts of a whole matrix on the device that walked it: only what the counts hold comes to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.quirks import quirks_for
from ..kernels import spec
from ..launch.sizes import open_size
from .cells import identity_lines, sum_of
from .counts import Counts, Histogram
from .line_buffers import LINE_KINDS, WALKED_KINDS, LineBuffers, field_offset, lines_in
from .partial import COUNT

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem

# (work-items of a group, groups at most): each work-item takes some lines, since a group has counts of its own to add.
_SHAPES = {"cpu": (1, 32), "gpu": (128, 1024)}
_TOTALS = 5


class Finish:
    """Finishes the lines of ``problem``'s matrices, where a sweep has seen all rows.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
    longest : int
        Length of the longest line that is possible.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, longest: int) -> None:
        self.executor, self.problem, self.lengths = executor, problem, longest + 1
        self._wg, groups = _SHAPES[quirks_for(executor.info).defaults_for]
        self._groups = min(groups, -(-self.lengths // self._wg))
        entries = ("finish_join", "finish_begin", "finish_diagonals", "finish_columns", "finish_end")
        values = {"wg": self._wg}
        self._kernels = {name: build(executor, spec("recurrence_finish"), values, name) for name in entries}
        self._longest = executor.allocate(4 * LINE_KINDS)
        self._totals = executor.allocate(8 * _TOTALS * self._groups)

    def counts(self, buffers: LineBuffers, identity: NDArray[np.bool_] | None) -> Counts:
        """Of one radius, whose counts since the last fold are zero.

        Parameters
        ----------
        buffers : LineBuffers
            What all tiles gave; the segments of the columns are changed.
        identity : ndarray of bool, optional
            Recurrent cells of the main diagonal where its lines count: once, others twice.
        """
        p = self.problem
        self._launch(buffers)
        longest = self.executor.download(self._longest, np.empty(LINE_KINDS, np.int32)).tolist()
        diagonals, black, white, border = (
            self._histogram(buffers.sums, kind, end) for kind, end in enumerate(longest)
        )
        per_diagonal = self._black_cells(buffers.diagonals)
        totals = self.executor.download(self._totals, np.empty((self._groups, _TOTALS), np.uint64))
        filled, first, last, end, points = (int(total) for total in totals.sum(axis=0))
        if p.symmetric:
            diagonals *= 2
            per_diagonal = np.concatenate([per_diagonal[:0:-1], per_diagonal])
        if identity is not None:
            diagonals = sum_of(diagonals, identity_lines(identity))
        return Counts(
            n_rows=p.n_rows, n_columns=p.n_columns, points=points, diagonals=diagonals, verticals=black, whites=white,
            white_borders=border, columns=self._black_cells(buffers.columns).astype(np.int64),
            per_diagonal=per_diagonal.astype(np.int64), period_sum=last - first,
            period_count=int(black.sum()) - filled, gap_sum=end - first - filled, gap_count=points - filled,
        )  # fmt: skip

    def histograms(self, buffers: LineBuffers) -> NDArray[np.int64]:
        """What all tiles gave (3, longest + 1), up to the longest line; the counts since the last fold are zero."""
        self._sum(buffers, begin=True)
        longest = self.executor.download(self._longest, np.empty(LINE_KINDS, np.int32)).tolist()[:WALKED_KINDS]
        out = np.zeros((WALKED_KINDS, max(longest) + 1), np.int64)
        for kind, end in enumerate(longest):
            out[kind, : end + 1] = self._histogram(buffers.sums, kind, end)
        return out

    def join(self, a: Buffer, b: Buffer, n: int, counts: Buffer, *, verticals: bool, held: tuple[int, int]) -> None:
        """Segments ``a`` of ``n`` lines become those of their rows and of the rows behind them, which ``b`` has.

        Parameters
        ----------
        a, b : Buffer
        n : int
        counts : Buffer
            Of all lines; those that become final are added.
        verticals : bool
            Columns or rows; else diagonals.
        held : (int, int)
            The first line that ``b`` has, and how many it has.
        """
        p = self.problem
        self.executor.launch(
            self._kernels["finish_join"], (self._groups * self._wg,), (self._wg,), a=a, b=b, n=n,
            first=held[0], held=held[1], k_first=p.k_first, theiler=p.line_window, verticals=verticals, counts=counts,
            n_lengths=self.lengths,
        )  # fmt: skip

    def _launch(self, buffers: LineBuffers) -> None:
        p, launch, kernels = self.problem, self.executor.launch, self._kernels
        counts, n = buffers.counts, self.lengths
        size, local = (self._groups * self._wg,), (self._wg,)
        self._begin(buffers)
        launch(
            kernels["finish_diagonals"], size, local, segments=buffers.diagonals, n=lines_in(buffers.diagonals),
            k_first=p.k_first, theiler=p.line_window, lengths=counts,
        )  # fmt: skip
        launch(
            kernels["finish_columns"], size, local, columns=buffers.columns, rows=buffers.rows, n=p.n_columns,
            n_rows=p.n_rows, symmetric=p.symmetric, counts=counts, n_lengths=n, totals=self._totals,
        )  # fmt: skip
        self._sum(buffers)

    def _sum(self, buffers: LineBuffers, *, begin: bool = False) -> None:
        """Add the counts since the last fold to the sums, and find the longest lines."""
        n = self.lengths
        if begin:
            self._begin(buffers)
        self.executor.launch(
            self._kernels["finish_end"], (self._groups * self._wg, LINE_KINDS), (self._wg, 1), counts=buffers.counts,
            sums=buffers.sums, longest=self._longest, n=n,
        )  # fmt: skip

    def _begin(self, buffers: LineBuffers) -> None:
        # A matrix of two points has fewer lengths than kinds of lines, each of which begins without a longest one.
        size = open_size(max(self.lengths, LINE_KINDS))
        self.executor.launch(
            self._kernels["finish_begin"], size, None, counts=buffers.counts, longest=self._longest, n=self.lengths
        )

    def _histogram(self, sums: Buffer, kind: int, longest: int) -> Histogram:
        """Up to the longest line; length 0 counts for nothing."""
        histogram = self.executor.download(sums, np.empty(longest + 1, np.int64), 8 * kind * self.lengths)
        histogram[0] = 0
        return histogram

    def _black_cells(self, segments: Buffer) -> NDArray[np.int32]:
        counts = np.empty(lines_in(segments), np.int32)
        return self.executor.download(segments, counts, field_offset(segments, COUNT))

    def release(self) -> None:
        """Give the device memory back."""
        self._longest.release()
        self._totals.release()
