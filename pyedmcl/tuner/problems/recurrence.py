"""What the tuning problems of recurrence analysis share: one series against itself, decided to the last bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...recurrence.counts import Counts
from ...recurrence.metrics import METRICS
from ...recurrence.problem import RqaProblem
from ...reference import rqa
from ..problem import Answer, TuningCase, TuningProblem
from .common import Floats, maps

_RADIUS = 0.25
#: Beside the one that is tuned first; metrics of prepared points run as Euclidean ones of given points.
OTHER_METRICS = tuple(name for name, metric in METRICS.items() if name != "euclidean" and metric.prepare is None)


class RecurrenceProblem(TuningProblem):
    """What the kernels share.

    Attributes
    ----------
    theiler : int
    gaps : bool
        Whether the series that are verified have gaps.
    """

    theiler: ClassVar[int] = 1
    gaps: ClassVar[bool] = True

    def rqa_problem(self, case: TuningCase, rows: int, columns: int | None = None) -> RqaProblem:
        """The case's problem for so many points; of a series with itself where no number of columns is given."""
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

    def usual(self, problem: RqaProblem, points: int) -> Floats:
        """The series that is timed."""
        return maps(points + (problem.m - 1) * problem.tau, 1)[:, 0].astype(problem.arithmetic)

    def distances(self, problem: RqaProblem, x: Floats, y: Floats | None = None) -> NDArray[Any]:
        """All distances as they are compared, by the oracle."""
        columns, rows = (
            rqa.points_of(side, problem.m, problem.tau, problem.arithmetic) for side in (x, x if y is None else y)
        )
        return rqa.compared(columns, rows, problem.metric)


def counts_of(counts: Counts, where: str) -> Answer:
    return {f"{field.name}, {where}": np.asarray(getattr(counts, field.name)) for field in fields(Counts)}


def lines_of(distances: NDArray[Any], limit: float, problem: RqaProblem, where: str) -> Answer:
    matrix = rqa.recurrence_matrix(distances, limit, strict=problem.strict)
    lines = rqa.line_counts(matrix, theiler=problem.theiler)
    return {f"{name}, {where}": np.asarray(values) for name, values in lines.items()}
