"""Counts of overlapping windows along a series: distances are evaluated once, lines are counted for each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..kernels import spec
from ..launch.invariants import wrong_result
from ..launch.pacing import Pacer
from ..tuning.parameters import parameters
from .counts import Counts, trimmed

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem

_POINTS = 8192  # of a part of the series at least, where it is that long: so that launches are worth their start
_COUNTED = 64 << 20  # bytes of counts fetched at once
_GROUPS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535


@dataclass(frozen=True)
class Part:
    """Windows that are counted together: the first one, how many, and the points they span."""

    first: int
    windows: int
    points: int

    @property
    def words(self) -> int:
        """Words of a row of bits, one to spare."""
        return -(-self.points // 32) + 1


def windows_together(size: int, step: int, windows: int) -> int:
    """Windows that are worth counting together, whatever the device: parts share no work, so that the more they overlap
    beyond a window, the less is evaluated twice."""
    most = (max(2 * size, _POINTS) - size) // step + 1
    return max(min(most, _COUNTED // _bytes_of(size), windows), 1)


def part_size(executor: Executor, size: int, step: int, windows: int, x_bytes: int) -> int:
    """Windows whose bits fit together; 0 where not even those of one do.

    Parameters
    ----------
    size, step, windows : int
        Points of a window, between the starts of two, number of windows.
    x_bytes : int
        What a part's points take at most.
    """
    room = budget(executor.info)

    def fits(count: int) -> bool:
        part = Part(0, count, size + (count - 1) * step)
        bits = 4 * part.words * (part.points + size)
        counted = _bytes_of(size) * count
        return bits + counted + x_bytes <= room.total and max(4 * part.words * part.points, counted) <= room.largest

    if not fits(1):
        return 0
    count = windows_together(size, step, windows)
    while not fits(count):
        count = max(count // 2, 1)
    return count


def _bytes_of(size: int) -> int:
    return 4 * (4 * (size + 1) + 2 * size)


class WindowSweep:
    """Counts windows of ``size`` points, ``step`` apart, of a symmetric problem with one radius.

    Parameters
    ----------
    executor : Executor
    problem : RqaProblem
        Of a single window.
    x : ndarray
        The whole series or all points, as in :class:`pyedmcl.recurrence.problem.RqaProblem`.
    step : int
    """

    def __init__(self, executor: Executor, problem: RqaProblem, x: NDArray[Any], step: int) -> None:
        self.executor, self.problem, self.step = executor, problem, step
        with np.errstate(over="ignore"):
            self._x = x.astype(problem.arithmetic, copy=False)
        self._values: dict[str, Any] = {**problem.cell, "strict": problem.strict}
        kernel_spec = spec("recurrence_windows")
        self._values |= parameters(kernel_spec, self._values, executor.info).parameters
        self._kernels = {
            entry: build(executor, kernel_spec, self._values, entry)
            for entry in ("column_bits", "diagonal_bits", "recurrence_windows")
        }
        self._pacers = {entry: Pacer(executor.info) for entry in self._kernels}

    def counts(self, first: int, windows: int) -> list[Counts]:
        """Counts of some windows, at most as many as :func:`part_size` says."""
        return self._part(Part(first, windows, self.problem.n_rows + (windows - 1) * self.step))

    def _part(self, part: Part) -> list[Counts]:
        size = self.problem.n_rows
        begin = part.first * self.step
        lag = 0 if self.problem.embedded else (self.problem.m - 1) * self.problem.tau
        held: list[Buffer] = []
        lanes = self._values["counting_wg"]
        histograms = np.zeros((part.windows, 4, size + 1), np.uint32)
        columns, diagonals = (np.empty((part.windows, size), np.uint32) for _ in range(2))
        sums = np.empty((part.windows, lanes, 4), np.uint64)
        try:
            x = self.executor.upload(np.ascontiguousarray(self._x[begin : begin + part.points + lag]))
            held.append(x)
            held.append(self.executor.allocate(4 * part.words * part.points))
            held.append(self.executor.allocate(4 * part.words * size))
            self._evaluate("column_bits", x, held[1], part, part.points, (2 * size) // 32 + 2)
            self._evaluate("diagonal_bits", x, held[2], part, size, part.words)
            held.append(self.executor.upload(histograms))
            held += [self.executor.allocate(array.nbytes) for array in (columns, diagonals, sums)]
            self._count(held[1:], part)
            for buffer, array in zip(held[3:], (histograms, columns, diagonals, sums), strict=True):
                self.executor.download(buffer, array)
        finally:
            for buffer in held:
                buffer.release()
        # As Counts.contradiction, for all windows at once.
        held_cells = histograms[:, 1].astype(np.int64) @ np.arange(size + 1)
        points = columns.sum(axis=1, dtype=np.int64)
        if (held_cells != points).any():
            wrong = int(np.argmax(held_cells != points))
            raise wrong_result(
                self.executor.info,
                f"vertical lines of {held_cells[wrong]:,} cells in all, where {points[wrong]:,} cells are recurrent "
                "(kernel recurrence_windows)",
            )
        totals = sums.sum(axis=1).astype(np.int64)
        return [self._counts(*found) for found in zip(histograms, columns, diagonals, totals.tolist(), strict=True)]

    def _evaluate(self, entry: str, x: Buffer, bits: Buffer, part: Part, across: int, words: int) -> None:
        """Bits of a part; a launch takes some of its words, or diagonals' words, per row."""
        p, wg = self.problem, self._values["wg"]
        inner = p.inner_limits()
        low, high = (-1.0 if inner is None else inner[0]), p.outer_limits()[0]
        dropped = p.theiler if p.theiler_everywhere else 0
        into = {"columns" if entry == "column_bits" else "diagonals": bits}
        groups = -(-across // wg) * wg
        cost = float(across) * 32 * 4 * self._values["m"]
        pacer, word = self._pacers[entry], 0
        while word < words:
            count = min(pacer.units(cost), words - word, _GROUPS_MOST)
            event = self.executor.launch(
                self._kernels[entry], (groups, count), (wg, 1), x=x, n=part.points, words=part.words, reach=p.n_rows,
                dropped=dropped, inner=low, outer=high, word_begin=word, **into,
            )  # fmt: skip
            pacer.launched(event, cost * count)
            word += count

    def _count(self, buffers: list[Buffer], part: Part) -> None:
        lanes, size = self._values["counting_wg"], self.problem.n_rows
        names = ("columns", "diagonals", "histograms", "per_column", "per_diagonal", "sums")
        held = dict(zip(names, buffers, strict=True))
        kernel, pacer = self._kernels["recurrence_windows"], self._pacers["recurrence_windows"]
        cost = float(size) * size
        window = 0
        while window < part.windows:
            count = min(pacer.units(cost), part.windows - window)
            event = self.executor.launch(
                kernel, (count * lanes,), (lanes,), words=part.words, size=size, step=self.step,
                theiler=self.problem.theiler, first_window=window, **held,
            )  # fmt: skip
            pacer.launched(event, cost * count)
            window += count

    def _counts(
        self, histograms: NDArray[np.uint32], columns: NDArray[np.uint32], diagonals: NDArray[np.uint32],
        totals: list[int],
    ) -> Counts:  # fmt: skip
        size = self.problem.n_rows
        diagonal, vertical, white, border = (trimmed(h) for h in histograms)
        upper = diagonals.astype(np.int64)
        return Counts(
            n_rows=size,
            n_columns=size,
            points=int(columns.sum(dtype=np.int64)),
            diagonals=diagonal,
            verticals=vertical,
            whites=white,
            white_borders=border,
            columns=columns.astype(np.int64),
            per_diagonal=np.concatenate([upper[:0:-1], upper]),
            period_sum=totals[0],
            period_count=totals[1],
            gap_sum=totals[2],
            gap_count=totals[3],
        )
