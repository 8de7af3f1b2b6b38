"""Tuning problems of recurrence quantification: bits, their transposition, and lines are kernels of one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.engine import combine, quantify
from ...recurrence.sweep import TileSweep
from ..problem import Answer, TuningCase, up_to
from .common import units
from .recurrence import OTHER_METRICS, RecurrenceProblem, counts_of, lines_of


class SweepProblem(RecurrenceProblem):
    """All measures: bits, their transposition, and lines are kernels of one engine."""

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        if s.get("embedded") or s.get("corridor") or s.get("per_column") or s.get("second_partner"):
            return None
        most = self.points(info)
        given = {name: s[name] for name in ("m", "tau", "metric", "dtype", "exact", "strict", "n_radii") if name in s}
        return self.case(min(int(sizes.get("rows", most)), most), **given)

    def points(self, info: DeviceInfo) -> int:
        """A tenth of a second on a processor, some tens of milliseconds on a GPU."""
        return units(info, 8_000, 1_500, most=200_000)

    def case(
        self, n: int, m: int = 5, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float32",
        exact: bool = True, strict: bool = True, n_radii: int = 1,
    ) -> TuningCase:  # fmt: skip
        """A case of ``n`` points."""
        words = [f"m={m}", metric, f"{n:,} points"]
        words += [f"{n_radii} radii"] * (n_radii > 1) + [dtype] * (dtype != "float32") + ["exact"] * exact
        given = {
            "m": m, "tau": tau, "metric": metric, "dtype": dtype, "exact": exact, "strict": strict, "n_radii": n_radii,
            "corridor": False, "per_column": False, "embedded": False, "second_partner": False,
        }  # fmt: skip
        return TuningCase(self.kernel, ", ".join(words), {"points": n, "given": given})

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n = case.numbers["points"]
        problem = self.rqa_problem(case, n)
        x = self.usual(problem, n)
        sweep = TileSweep(executor, problem, x, None)

        def go() -> Answer:
            answer: dict[str, Any] = {}
            for place, counts in enumerate(combine(problem, [sweep.run(0, n)], x)):
                answer |= counts_of(counts, f"radius {place}")
            return answer

        try:
            yield go
        finally:
            sweep.release()

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        # Rows and columns that fill no word, block of words or tile; None: a series with itself.
        for rows, columns in ((3, None), (391, None), (70, 203)):
            problem = self.rqa_problem(case, rows, columns)
            other = None if columns is None else self.series(problem, columns, 14)
            yield f"{rows} x {columns or rows} points", (problem, self.series(problem, rows), other)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        answer: dict[str, Any] = {}
        for place, counts in enumerate(quantify(executor, *small)):
            answer |= counts_of(counts, f"radius {place}")
        return answer

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

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n = self.points(info)
        normal = [self.case(n, exact=False), self.case(n, 1), self.case(n, 20), self.case(max(n // 8, 1000))]
        rare = [*(self.case(n, metric=metric) for metric in OTHER_METRICS), self.case(n, n_radii=4)]
        rare += [self.case(n, dtype="float64", exact=False)] if info.fp64 else []
        return up_to(mode, [self.case(n)], normal, rare)


class TransposeProblem(SweepProblem):
    """Shuffles of 32 x 32 bits; whatever the points are, they take the same time."""

    kernel = "recurrence_transpose"
    entries = ("transpose_to_rows", "transpose_to_columns")

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        return [self.case(self.points(info), 3, exact=False)]


class LinesProblem(SweepProblem):
    """Lines along diagonals, rows and columns. The engine asks for the same parameters whatever the series is."""

    kernel = "recurrence_lines"
    entries = ("recurrence_lines", "recurrence_fold")

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        return [self.case(self.points(info), 5, exact=False)]


PROBLEMS = (BitsProblem(), TransposeProblem(), LinesProblem())
