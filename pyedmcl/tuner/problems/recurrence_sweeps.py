"""Tuning problems of recurrence quantification: bits, their transposition, and lines are kernels of one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.engine import combine, quantify
from ...recurrence.sweep import TileSweep
from ..problem import Answer, TuningCase
from .common import releasing, units
from .recurrence import OTHER_METRICS, RecurrenceProblem, counts_of, lines_of


class SweepProblem(RecurrenceProblem):
    """All measures: bits, their transposition, and lines are kernels of one engine."""

    common: ClassVar[Mapping[str, Any]] = {
        "m": 5, "tau": 3, "metric": "euclidean", "dtype": "float32", "exact": True, "strict": True, "n_radii": 1,
        "corridor": False, "per_column": False, "embedded": False, "second_partner": False,
    }  # fmt: skip
    least = 1000

    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        """A tenth of a second on a processor, some tens of milliseconds on a GPU."""
        most = units(info, 8_000, 1_500, most=200_000)
        return min(int((sizes or {}).get("rows", most)), most)

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n = case.numbers["points"]
        problem = self.rqa_problem(case, n)
        x = self.smooth(problem, n)
        sweep = TileSweep(executor, problem, x, None)
        with releasing(sweep):
            yield lambda: counts_of(combine(problem, [sweep.run(0, n)], x), "radius")

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        # Rows and columns that fill no word, block of words or tile; None: a series with itself.
        for rows, columns in ((3, None), (391, None), (70, 203)):
            problem = self.rqa_problem(case, rows, columns)
            other = None if columns is None else self.series(problem, columns, 14)
            yield f"{rows} x {columns or rows} points", (problem, self.series(problem, rows), other)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        return counts_of(quantify(executor, *small), "radius")

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x, y = small
        answer: dict[str, Any] = {}
        for place, limit in enumerate(problem.outer_limits()):
            answer |= lines_of(self.distances(problem, x, y), limit, problem, f"radius {place}")
        return answer


class BitsProblem(SweepProblem):
    """Cells of a tile, and all launches that depend on how the tile was cut and on who transposes words."""

    kernel = "recurrence_bits"
    entries = ("recurrence_bits", "transpose_to_rows", "transpose_to_columns", "recurrence_lines", "recurrence_fold")
    normal = ({"exact": False}, {"m": 1}, {"m": 20}, {"part": 8})
    exhaustive = (*OTHER_METRICS, {"n_radii": 4}, {"dtype": "float64", "exact": False})


class TransposeProblem(SweepProblem):
    """Shuffles of 32 x 32 bits; whatever the points are, they take the same time."""

    kernel = "recurrence_transpose"
    entries = ("transpose_to_rows", "transpose_to_columns")
    rapid = ({"m": 3, "exact": False},)


class LinesProblem(SweepProblem):
    """Lines along diagonals, rows and columns. The engine asks for the same parameters whatever the series is."""

    kernel = "recurrence_lines"
    entries = ("recurrence_lines", "recurrence_fold")
    rapid = ({"exact": False},)


PROBLEMS = (BitsProblem(), TransposeProblem(), LinesProblem())
