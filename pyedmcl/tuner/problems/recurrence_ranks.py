"""Workload of selecting thresholds among the distances of a recurrence matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.metrics import metric_named
from ...recurrence.problem import RqaProblem
from ...recurrence.ranks import Ranks
from ...reference.rqa import compared, points_of
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import OTHER_METRICS, Floats, maps, on_gpu

_WINDOW = 2
_SHARE, _NEIGHBOURS = 0.05, 20
_RAGGED = (40, 203)


class RanksWorkload(Workload):
    """The distance that a share of all cells reaches, and that of some nearest points of each column."""

    kernel = "recurrence_ranks"
    entries = ("recurrence_ranks", "recurrence_gather", "recurrence_next")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n, dtype = _points(info), "float64" if info.fp64 else "float32"
        cases = [_case(n, 5, dtype=dtype)]
        if mode != "rapid":
            cases += [_case(n, 1, dtype=dtype), _case(n, 20, dtype=dtype)]
        if mode == "exhaustive":
            cases += [_case(n, 5, metric=metric, dtype=dtype) for metric in OTHER_METRICS]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        if int(s.get("stride", 1)) > 1:
            return None
        return _case(_points(info), int(s["m"]), tau=s["step"], metric=s["metric"], dtype=s["dtype"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        problem = _problem(case.numbers["given"], case.numbers["points"])
        x = maps(problem.n_rows + (problem.m - 1) * problem.tau, 1, problem.dtype)[:, 0]
        ranks = Ranks(executor, problem, x, None, window=_WINDOW)
        try:
            yield lambda: _selected(ranks, problem, x)
        finally:
            ranks.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for n in _RAGGED:
            problem = _problem(given, n)
            x = _series(problem)
            ranks = Ranks(executor, problem, x, None, window=_WINDOW)
            try:
                found = _selected(ranks, problem, x)
            finally:
                ranks.release()
            for name, right in _oracle(n, tuple(sorted(given.items()))).items():
                require_equal(f"{name} of {n} points", np.asarray(found[name]), right)


def _points(info: DeviceInfo) -> int:
    return 30_000 if on_gpu(info) else 1_500


def _case(n: int, m: int, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float64") -> Case:
    given = {"m": m, "step": tau, "stride": 1, "metric": metric, "dtype": dtype}
    return Case("recurrence_ranks", f"m={m}, {metric}, {n:,} points", {"points": n, "given": given})


def _problem(given: Mapping[str, Any], n: int) -> RqaProblem:
    return RqaProblem(
        m=given["m"], tau=given["step"], metric=given["metric"], dtype=given["dtype"], exact=False, radii=(),
        inner=None, strict=True, theiler=1, theiler_everywhere=False, n_rows=n, n_columns=n, symmetric=True,
    )  # fmt: skip


def _counted(n: int) -> Any:
    """Cells of each column outside the window."""
    at = np.arange(n)
    return n - (np.minimum(at + _WINDOW - 1, n - 1) - np.maximum(at - _WINDOW + 1, 0) + 1)


def _selected(ranks: Ranks, problem: RqaProblem, x: Floats) -> Answer:
    points = points_of(x, problem.m, problem.tau, problem.dtype)

    def sample(n: int) -> Any:
        a, b = np.random.default_rng(3).integers(0, len(points), (2, n))
        return metric_named(problem.metric).compared(iter((points[a] - points[b]).T))

    cells = _counted(problem.n_rows)
    whole = ranks.kth(int(_SHARE * cells.sum()), int(cells.sum()), sample)
    return {"threshold": np.array([whole]), "thresholds": ranks.kth_of_columns(_NEIGHBOURS, cells, sample)}


def _series(problem: RqaProblem) -> Floats:
    """Values with two decimals: many distances are equal but for their last bit."""
    x = np.round(np.random.default_rng(13).random(problem.n_rows + (problem.m - 1) * problem.tau) * 20) / 20
    return x.astype(problem.dtype)


@functools.lru_cache(maxsize=32)
def _oracle(n: int, numbers: tuple[tuple[str, Any], ...]) -> Answer:
    problem = _problem(dict(numbers), n)
    points = points_of(_series(problem), problem.m, problem.tau, problem.dtype)
    distances = compared(points, points, problem.metric).astype(np.float64)
    at = np.arange(n)
    distances[np.abs(at[:, None] - at[None, :]) < _WINDOW] = np.inf
    cells = _counted(n)
    whole = np.sort(distances, axis=None)[int(_SHARE * cells.sum()) - 1]
    columns = np.sort(distances, axis=0)[np.minimum(_NEIGHBOURS, cells) - 1, at]
    return {"threshold": np.array([whole]), "thresholds": columns}


WORKLOAD = RanksWorkload()
