"""Tuning problems of recurrence quantification, and what all of recurrence analysis share: decided to the last bit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.counts import Counts
from ...recurrence.engine import combine, quantify
from ...recurrence.metrics import METRICS
from ...recurrence.problem import RqaProblem
from ...recurrence.sweep import TileSweep
from ...reference import rqa
from ..problem import Answer, TuningCase, TuningProblem
from .common import Floats, maps, releasing, units

_RADIUS = 0.25
#: Beside the one that is tuned first; metrics of prepared points run as Euclidean ones of given points.
OTHER_METRICS = tuple(
    {"metric": name} for name, metric in METRICS.items() if name != "euclidean" and metric.prepare is None
)


class RecurrenceProblem(TuningProblem):
    """What the kernels share.

    Attributes
    ----------
    common : mapping
        The specialisation of the most common problem.
    refused : tuple of str
        Parts of a specialisation that no case has.
    unit : str
        What the size of a case counts.
    least : int
        Smallest size of a case that is a part of the common one.
    theiler : int
    gaps : bool
        Whether the series that are verified have gaps.
    """

    common: ClassVar[Mapping[str, Any]]
    refused: ClassVar[tuple[str, ...]] = ("embedded", "corridor", "per_column", "second_partner")
    unit: ClassVar[str] = "points"
    least: ClassVar[int] = 1
    theiler: ClassVar[int] = 1
    gaps: ClassVar[bool] = True

    @abstractmethod
    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        """Of a common problem, or of one for which an engine asks with these sizes."""

    def case(self, info: DeviceInfo, n: int = 0, *, part: int = 1, **given: Any) -> TuningCase:
        """A case of ``n`` points or windows, or of a part of those of a common problem."""
        n = n or max(self.size(info) // part, self.least)
        g = self.given(info, {**self.common, **given})
        radii = g.get("n_radii", 1)
        case = self.named(
            g.get("mode", ""), f"m={g['m']}", g["metric"], self.words(n), f"{radii} radii" * (radii > 1),
            given=g, **{self.unit: n},
        )  # fmt: skip
        return replace(case, name=f"{case.name}, exact") if g.get("exact") else case

    def given(self, info: DeviceInfo, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The specialisation that a case has where these values are wanted."""
        return given

    def words(self, n: int) -> str:
        """The size, in words."""
        return f"{n:,} points"

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        if any(s.get(name) for name in self.refused) or int(s.get("stride", 1)) > 1:
            return None
        return self.case(info, self.size(info, sizes), **{name: s[name] for name in self.common if name in s})

    def rqa_problem(self, case: TuningCase, rows: int, columns: int | None = None) -> RqaProblem:
        """The case's problem for ``rows`` points; of a series with itself where no number of columns is given."""
        g = case.given
        return RqaProblem(
            m=g["m"], tau=g["tau"] if "tau" in g else g["step"], metric=g["metric"], dtype=g["dtype"],
            exact=g.get("exact", False), radii=tuple(_RADIUS * (1 + i) for i in range(g.get("n_radii", 1))), inner=None,
            strict=g.get("strict", True), theiler=self.theiler, theiler_everywhere=False, n_rows=rows,
            n_columns=columns or rows, symmetric=columns is None,
        )  # fmt: skip

    def series(self, problem: RqaProblem, points: int, seed: int = 13) -> Floats:
        """Values with two decimals, so that many distances equal the radius but for their last bit, and gaps."""
        x: Floats = np.round(np.random.default_rng(seed).random(points + (problem.m - 1) * problem.tau) * 20) / 20
        if self.gaps and points > 100:
            x[[points // 3, points // 2]] = np.nan
        return x.astype(problem.arithmetic)

    def smooth(self, problem: RqaProblem, points: int) -> Floats:
        """The series that is timed."""
        return maps(points + (problem.m - 1) * problem.tau, 1)[:, 0].astype(problem.arithmetic)

    def distances(self, problem: RqaProblem, x: Floats, y: Floats | None = None) -> NDArray[Any]:
        """All distances as they are compared, by the oracle."""
        columns, rows = (
            rqa.points_of(side, problem.m, problem.tau, problem.arithmetic) for side in (x, x if y is None else y)
        )
        return rqa.compared(columns, rows, problem.metric)


def counts_of(many: Iterable[Counts], what: str) -> Answer:
    """Of each radius or window, whichever ``what`` is."""
    return {f"{field.name}, {what} {place}": np.asarray(getattr(counts, field.name))
            for place, counts in enumerate(many) for field in fields(Counts)}  # fmt: skip


def lines_of(distances: NDArray[Any], limit: float, problem: RqaProblem, where: str) -> Answer:
    matrix = rqa.recurrence_matrix(distances, limit, strict=problem.strict)
    lines = rqa.line_counts(matrix, theiler=problem.theiler)
    return {f"{name}, {where}": np.asarray(values) for name, values in lines.items()}


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
