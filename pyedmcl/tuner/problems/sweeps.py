"""What the workloads of a recurrence sweep share: bits, their turning, and lines are kernels of one engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.counts import Counts
from ...recurrence.engine import combine, quantify
from ...recurrence.problem import RqaProblem
from ...recurrence.sweep import TileSweep
from ...reference.rqa import compared, line_counts, points_of, recurrence_matrix
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import Floats, maps, units

_RADIUS = 0.25
# (rows, columns) that fill no word, block of words or tile; None: a series with itself.
_RAGGED: tuple[tuple[int, int | None], ...] = ((3, None), (391, None), (70, 203))


class SweepWorkload(Workload):
    """A series against itself, all measures."""


    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        if s.get("embedded") or s.get("corridor") or s.get("per_column") or s.get("also"):
            return None
        most = points(info)
        given = {name: s[name] for name in ("m", "tau", "metric", "dtype", "exact", "strict", "n_radii") if name in s}
        return self.case(min(int(sizes.get("rows", most)), most), **given)

    def case(
        self, n: int, m: int = 5, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float32",
        exact: bool = True, strict: bool = True, n_radii: int = 1,
    ) -> Case:  # fmt: skip
        """A case of ``n`` points."""
        words = [f"m={m}", metric, f"{n:,} points"]
        words += [f"{n_radii} radii"] * (n_radii > 1) + [dtype] * (dtype != "float32") + ["exact"] * exact
        given = {
            "m": m, "tau": tau, "metric": metric, "dtype": dtype, "exact": exact, "strict": strict, "n_radii": n_radii,
            "corridor": False, "per_column": False, "embedded": False, "also": False,
        }  # fmt: skip
        return Case(self.kernel, ", ".join(words), {"points": n, "given": given})

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers["points"]
        problem = _problem(case.numbers["given"], n, None)
        x = maps(n + (problem.m - 1) * problem.tau, 1)[:, 0].astype(problem.arithmetic)
        sweep = TileSweep(executor, problem, x, None)

        def go() -> Answer:
            whole = combine(problem, [sweep.run(0, n)], x)
            return {f"{field.name}, radius {place}": np.asarray(getattr(counts, field.name))
                    for place, counts in enumerate(whole) for field in fields(Counts)}  # fmt: skip

        try:
            yield go
        finally:
            sweep.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for rows, columns in _RAGGED:
            problem = _problem(given, rows, columns)
            x, y = _series(problem)
            found = quantify(executor, problem, x, y)
            wanted = _oracle(rows, columns, tuple(sorted(given.items())))
            for place, (got, right) in enumerate(zip(found, wanted, strict=True)):
                for name, values in right.items():
                    what = f"{name} of {rows} x {columns or rows} points, radius {place}"
                    require_equal(what, np.asarray(getattr(got, name)), np.asarray(values))


def points(info: DeviceInfo) -> int:
    """Points of a series: a tenth of a second on a processor, some tens of milliseconds on a GPU."""
    return units(info, 8_000, 1_500, most=200_000)


def _problem(given: Mapping[str, Any], rows: int, columns: int | None) -> RqaProblem:
    return RqaProblem(
        m=given["m"], tau=given["tau"], metric=given["metric"], dtype=given["dtype"], exact=given["exact"],
        radii=tuple(_RADIUS * (1 + place) for place in range(given["n_radii"])), inner=None, strict=given["strict"],
        theiler=1, theiler_everywhere=False, n_rows=rows, n_columns=columns or rows, symmetric=columns is None,
    )  # fmt: skip


def _series(problem: RqaProblem) -> tuple[Floats, Floats | None]:
    """Values with two decimals, so that many distances equal the radius but for their last bit, and gaps."""
    front, rng = (problem.m - 1) * problem.tau, np.random.default_rng(13)
    x, y = (np.round(rng.random(front + n) * 20) / 20 for n in (problem.n_rows, problem.n_columns))
    if problem.n_rows > 300:
        x[[problem.n_rows // 3, problem.n_rows // 2]] = np.nan
    x, y = x.astype(problem.arithmetic), y.astype(problem.arithmetic)
    return x, None if problem.symmetric else y


@functools.lru_cache(maxsize=64)
def _oracle(rows: int, columns: int | None, numbers: tuple[tuple[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    problem = _problem(dict(numbers), rows, columns)
    x, y = _series(problem)
    at = points_of(x, problem.m, problem.tau, problem.arithmetic)
    others = at if y is None else points_of(y, problem.m, problem.tau, problem.arithmetic)
    distances = compared(at, others, problem.metric)
    return tuple(
        line_counts(recurrence_matrix(distances, limit, strict=problem.strict), theiler=problem.theiler)
        for limit in problem.outer_limits()
    )
