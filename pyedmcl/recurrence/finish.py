"""Counts of a whole matrix on the device that walked it: only what the counts hold comes to the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.quirks import quirks_for
from ..device.slots import in_order
from ..kernels import spec
from .cells import identity_lines, sum_of
from .counts import Counts, Histogram
from .partial import COUNT

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem

# (work-items of a group, groups at most): each work-item takes some lines, since a group has counts of its own to add.
_SHAPES = {"cpu": (1, 32), "gpu": (128, 1024)}
_TOTALS = 5
_KINDS = 4  # of lines: diagonal, black and white vertical, white at the border


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
        entries = ("finish_begin", "finish_diagonals", "finish_columns", "finish_end")
        values = {"wg": self._wg}
        self._kernels = {name: build(executor, spec("recurrence_finish"), values, name) for name in entries}
        self._longest = executor.allocate(4 * _KINDS)
        self._totals = executor.allocate(8 * _TOTALS * self._groups)

    def counts(
        self, known: Sequence[Buffer], counts: Buffer, sums: Buffer, identity: NDArray[np.bool_] | None
    ) -> Counts:
        """Of one radius.

        Parameters
        ----------
        known : sequence of Buffer
            Diagonals, rows, columns: what all tiles gave; those of the columns are changed.
        counts, sums : Buffer
            Counts of 32 bits since the last fold, [4][longest + 1], all zero; sums of 64 bits, of the same shape.
        identity : ndarray of bool, optional
            Recurrent cells of the main diagonal where its lines count: once, others twice.
        """
        p = self.problem
        lengths = [buffer.nbytes // 20 for buffer in known]
        self._launch(known, lengths, counts, sums)
        longest = self.executor.download(self._longest, np.empty(4, np.int32)).tolist()
        diagonals, black, white, border = (self._histogram(sums, kind, end) for kind, end in enumerate(longest))
        per_diagonal = self._black_cells(known[0], lengths[0])
        totals = self.executor.download(self._totals, np.empty((self._groups, _TOTALS), np.uint64))
        filled, first, last, end, points = (int(total) for total in totals.sum(axis=0))
        if p.symmetric:
            diagonals *= 2
            per_diagonal = np.concatenate([per_diagonal[:0:-1], per_diagonal])
        if identity is not None:
            diagonals = sum_of(diagonals, identity_lines(identity))
        return Counts(
            n_rows=p.n_rows, n_columns=p.n_columns, points=points, diagonals=diagonals, verticals=black, whites=white,
            white_borders=border, columns=self._black_cells(known[2], lengths[2]).astype(np.int64),
            per_diagonal=per_diagonal.astype(np.int64), period_sum=last - first,
            period_count=int(black.sum()) - filled, gap_sum=end - first - filled, gap_count=points - filled,
        )  # fmt: skip

    def _launch(self, known: Sequence[Buffer], lengths: Sequence[int], counts: Buffer, sums: Buffer) -> None:
        p, n = self.problem, self.lengths
        whole, group = (self._groups * self._wg,), (self._wg,)
        theiler = max(p.theiler, 1) if p.symmetric else p.theiler
        # A matrix of two points has fewer lengths than kinds of lines, each of which begins with nothing found.
        self._run("finish_begin", (max(self.lengths, _KINDS),), None, counts, self._longest, n)
        self._run(
            "finish_diagonals", whole, group, known[0], lengths[0], 0 if p.symmetric else 1 - p.n_rows, theiler, counts
        )
        self._run(
            "finish_columns", whole, group, known[2], known[1], p.n_columns, p.n_rows, p.symmetric, counts, n,
            self._totals,
        )  # fmt: skip
        self._run("finish_end", (*whole, 4), (*group, 1), counts, sums, self._longest, n)

    def _run(self, name: str, size: tuple[int, ...], local: tuple[int, ...] | None, *arguments: Any) -> None:
        kernel = self._kernels[name]
        self.executor.launch(kernel, size, local, **in_order(kernel, arguments))

    def _histogram(self, sums: Buffer, kind: int, longest: int) -> Histogram:
        """Up to the longest line; length 0 counts for nothing."""
        histogram = self.executor.download(sums, np.empty(longest + 1, np.int64), 8 * kind * self.lengths)
        histogram[0] = 0
        return histogram

    def _black_cells(self, known: Buffer, n: int) -> NDArray[np.int32]:
        return self.executor.download(known, np.empty(n, np.int32), 4 * COUNT * n)

    def release(self) -> None:
        """Give the device memory back."""
        self._longest.release()
        self._totals.release()
