"""Tuning problem of dense distances: a block of one series against another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.distances import distance_block
from ...reference import fma32, fma64
from ..executors import Keeping
from ..problem import Answer, TuningCase, TuningProblem, up_to
from .common import maps, releasing, scalar


class DistancesProblem(TuningProblem):
    """One block; compiled from texts of loopy's, of which a few are shipped."""

    kernel = "distances"

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n = 4000 if scalar(info) else 2000
        double = [_case(3, 1, "euclidean", "float64", n)] if info.fp64 else []
        others = [_case(3, 1, metric, "float32", n) for metric in ("manhattan", "maximum")]
        return up_to(mode, [_case(3, 1, "euclidean", "float32", n)], [], others + double)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        return _case(int(s["E"]), int(s["tau"]), s["metric"], s["dtype"], 2000)

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        values, keeping = maps(case.numbers["rows"], 2, case.given["dtype"]), Keeping(executor)
        with releasing(keeping):
            yield lambda: {"distances": distance_block(keeping, values[:, 0], values[:, 1], **case.given)[-64:]}

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        rng, front = np.random.default_rng(11), (case.given["E"] - 1) * case.given["tau"]
        for n, m in ((1, 1), (front + 5, front + 65), (front + 131, front + 257)):
            x, y = (rng.standard_normal(length).astype(case.given["dtype"]) for length in (n, m))
            if n > front + 100:
                x[[front + 3, front + 50]] = np.nan
            yield f"{n} and {m} rows", (x, y)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        return {"distances": distance_block(executor, *small, **case.given)}

    def expected(self, case: TuningCase, small: Any) -> Answer:
        """Every cell by the definition; NaN where a row has no coordinates."""
        (x, y), g = small, case.given
        fma: Any = fma32 if g["dtype"] == "float32" else fma64
        first = (g["E"] - 1) * g["tau"]
        out = np.full((len(x), len(y)), np.nan, g["dtype"])
        if min(len(x), len(y)) <= first:
            return {"distances": out}
        acc = np.zeros((len(x) - first, len(y) - first), g["dtype"])
        for lag in range(0, g["E"] * g["tau"], g["tau"]):
            diff = x[first - lag : len(x) - lag, None] - y[None, first - lag : len(y) - lag]
            if g["metric"] == "euclidean":
                acc = fma(diff, diff, acc)
            else:
                acc = acc + np.abs(diff) if g["metric"] == "manhattan" else np.maximum(acc, np.abs(diff))
        out[first:, first:] = acc
        return {"distances": out}


def _case(E: int, tau: int, metric: str, dtype: str, rows: int) -> TuningCase:
    name = f"E={E}, {metric}, {rows} x {rows}" + ("" if dtype == "float32" else f", {dtype}")
    given = {"E": E, "tau": tau, "metric": metric, "dtype": dtype}
    return TuningCase("distances", name, {"rows": rows, "given": given})


PROBLEMS = (DistancesProblem(),)
