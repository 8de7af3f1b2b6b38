"""Workload of dense distances: a block of one series against another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.distances import distance_block
from ...errors import InputError
from ...reference import fma32, fma64
from ..memory import Keeping
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import Floats, maps, on_gpu


class DistancesWorkload(Workload):
    """One block; compiled from texts of loopy's, of which a few are shipped."""

    kernel = "distances"

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = 4000 if on_gpu(info) else 2000
        cases = [_case(3, 1, "euclidean", "float32", n)]
        if mode == "exhaustive":
            cases += [_case(3, 1, metric, "float32", n) for metric in ("manhattan", "maximum")]
            if info.fp64:
                cases.append(_case(3, 1, "euclidean", "float64", n))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        return _case(int(s["E"]), int(s["tau"]), s["metric"], s["dtype"], 2000)

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        values = maps(n["rows"], 2, n["given"]["dtype"])
        keeping = Keeping(executor)

        def go() -> Answer:
            block = distance_block(keeping, values[:, 0], values[:, 1], **n["given"])
            return {"distances": block[-64:]}

        try:
            yield go
        finally:
            keeping.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        rng = np.random.default_rng(11)
        front = (given["E"] - 1) * given["tau"]
        for n, m in ((1, 1), (front + 5, front + 65), (front + 131, front + 257)):
            x, y = (rng.standard_normal(length).astype(given["dtype"]) for length in (n, m))
            if n > front + 100:
                x[[front + 3, front + 50]] = np.nan
            got = distance_block(executor, x, y, **given)
            require_equal(f"distances of {n} and {m} rows", got, _oracle(x, y, **given))


def _case(E: int, tau: int, metric: str, dtype: str, rows: int) -> Case:
    name = f"E={E}, {metric}, {rows} x {rows}" + ("" if dtype == "float32" else f", {dtype}")
    given = {"E": E, "tau": tau, "metric": metric, "dtype": dtype}
    return Case("distances", name, {"rows": rows, "given": given})


def _oracle(x: Floats, y: Floats, *, E: int, tau: int, metric: str, dtype: str) -> Floats:
    """Every cell by the definition; NaN where a row has no coordinates."""
    if metric not in ("euclidean", "manhattan", "maximum"):
        raise InputError(f"metric={metric!r}: one of euclidean, manhattan, maximum is needed")
    fma: Any = fma32 if dtype == "float32" else fma64
    out = np.full((len(x), len(y)), np.nan, dtype)
    first = (E - 1) * tau
    if min(len(x), len(y)) <= first:
        return out
    acc = np.zeros((len(x) - first, len(y) - first), dtype)
    for e in range(E):
        diff = x[first - e * tau : len(x) - e * tau, None] - y[None, first - e * tau : len(y) - e * tau]
        if metric == "euclidean":
            acc = fma(diff, diff, acc)
        else:
            acc = acc + np.abs(diff) if metric == "manhattan" else np.maximum(acc, np.abs(diff))
    out[first:, first:] = acc
    return out


WORKLOAD = DistancesWorkload()
