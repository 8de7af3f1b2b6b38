"""Workload of recurrence networks: links as bits, and the triangles of each node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.network import count_links
from ...recurrence.problem import RqaProblem
from ...reference.rqa import compared, network, points_of, recurrence_matrix
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import OTHER_METRICS, Floats, maps, on_gpu

_RADIUS = 0.25
_RAGGED = (2, 67, 301)


class NetworkWorkload(Workload):
    """A series; integers are equal for every configuration."""

    kernel = "recurrence_network"
    entries = ("recurrence_network", "recurrence_triangles")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n, dtype = 12_000 if on_gpu(info) else 2_000, "float64" if info.fp64 else "float32"
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
        n = 12_000 if on_gpu(info) else 2_000
        return _case(n, int(s["m"]), tau=s["step"], metric=s["metric"], dtype=s["dtype"], strict=s["strict"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        problem = _problem(case.numbers["given"], case.numbers["points"])
        x = maps(problem.n_rows + (problem.m - 1) * problem.tau, 1, problem.dtype)[:, 0]

        def go() -> Answer:
            degree, closed = count_links(executor, problem, x)
            return {"degree": degree, "closed": closed}

        yield go

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for n in _RAGGED:
            problem = _problem(given, n)
            found = count_links(executor, problem, _series(problem))
            wanted = _oracle(n, tuple(sorted(given.items())))
            for name, got in zip(("degree", "closed"), found, strict=True):
                require_equal(f"{name} of {n} points", got, wanted[name])


def _case(
    n: int, m: int, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float64", strict: bool = True
) -> Case:
    given = {"m": m, "step": tau, "stride": 1, "metric": metric, "dtype": dtype, "strict": strict}
    return Case("recurrence_network", f"m={m}, {metric}, {n:,} points", {"points": n, "given": given})


def _problem(given: Mapping[str, Any], n: int) -> RqaProblem:
    return RqaProblem(
        m=given["m"], tau=given["step"], metric=given["metric"], dtype=given["dtype"], exact=False, radii=(_RADIUS,),
        inner=None, strict=given["strict"], theiler=2, theiler_everywhere=False, n_rows=n, n_columns=n, symmetric=True,
    )  # fmt: skip


def _series(problem: RqaProblem) -> Floats:
    """Values with two decimals, so that many distances equal the radius but for their last bit, and a gap."""
    x = np.round(np.random.default_rng(13).random(problem.n_rows + (problem.m - 1) * problem.tau) * 20) / 20
    if problem.n_rows > 100:
        x[problem.n_rows // 2] = np.nan
    return x.astype(problem.dtype)


@functools.lru_cache(maxsize=32)
def _oracle(n: int, numbers: tuple[tuple[str, Any], ...]) -> Mapping[str, Any]:
    problem = _problem(dict(numbers), n)
    points = points_of(_series(problem), problem.m, problem.tau, problem.dtype)
    distances = compared(points, points, problem.metric)
    matrix = recurrence_matrix(distances, problem.outer_limits()[0], strict=problem.strict)
    return network(matrix, problem.theiler)


WORKLOAD = NetworkWorkload()
