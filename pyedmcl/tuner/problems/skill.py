"""Workload of skill sums: rho, MAE and RMSE of many predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...codegen.sentinels import GAP, PRESENT
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.skill import scores, skill_sums
from ...reference import pearson
from ..verify import require_close
from ..workload import Answer, Case, Workload
from .common import Floats, on_gpu, units


class SkillWorkload(Workload):
    """Pairs of a prediction and an observed series."""

    kernel = "skill"
    # Sums over many values of both signs: what is added in another order differs by rounding of the terms, not the sum.
    tolerance = (1e-5, 1e-2)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        rows = 2000 if on_gpu(info) else 1000
        cases = [_case("float32", rows, units(info, 500, 60, 1 << 14))]
        if mode == "exhaustive" and info.fp64:
            cases.append(_case("float64", rows, units(info, 500, 60, 1 << 14)))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        return _case(specialisation["dtype"], 1000, units(info, 500, 60, 1 << 14))

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        predicted, observed, series = _problem(n["pairs"], n["rows"], n["given"]["dtype"])
        held = [executor.upload(array) for array in (predicted, observed)]

        def go() -> Answer:
            sums = skill_sums(executor, *held, observed_of=series, n_rows=n["rows"],
                              observed_stride=observed.shape[1], dtype=n["given"]["dtype"])  # fmt: skip
            return {"sums": sums}

        try:
            yield go
        finally:
            for buffer in held:
                buffer.release()

    def verify(self, executor: Executor, case: Case) -> None:
        dtype = case.numbers["given"]["dtype"]
        for n_rows in (3, 257, 700):
            predicted, observed, series = _problem(9, n_rows, dtype)
            held = [executor.upload(array) for array in (predicted, observed)]
            try:
                sums = skill_sums(executor, *held, observed_of=series, n_rows=n_rows,
                                  observed_stride=observed.shape[1], dtype=dtype)  # fmt: skip
            finally:
                for buffer in held:
                    buffer.release()
            got = np.stack(scores(sums, dtype))
            wanted = np.array([_scores(p, observed[s, :n_rows]) for p, s in zip(predicted, series, strict=True)]).T
            for name, mine, theirs in zip(("rho", "MAE", "RMSE"), got, wanted, strict=True):
                require_close(f"{name} of pairs with {n_rows} rows", mine, theirs, 0.0, 2e-6)


def _case(dtype: str, rows: int, pairs: int) -> Case:
    name = f"{pairs:,} x {rows}" + ("" if dtype == "float32" else f", {dtype}")
    return Case("skill", name, {"rows": rows, "pairs": pairs, "given": {"dtype": dtype}})


def _problem(n_pairs: int, n_rows: int, dtype: str) -> tuple[Floats, Floats, Any]:
    """Predictions with gaps, padded observations with gaps, and which belongs to which."""
    rng = np.random.default_rng(5)
    n_series = min(max(n_pairs // 2, 1), 200)
    observed = rng.standard_normal((n_series, n_rows + 13)).astype(dtype)
    series = rng.integers(0, n_series, n_pairs)
    noise = rng.standard_normal((n_series, n_rows)).astype(dtype)
    predicted = np.asarray(0.6, dtype) * observed[series, :n_rows] + np.asarray(0.5, dtype) * noise[series[::-1]]
    if n_rows > 10:
        predicted[:, 5::97] = np.nan
        observed[:, 7::89] = GAP
    return predicted, observed, series


def _scores(predicted: Floats, observed: Floats) -> tuple[float, float, float]:
    there = np.isfinite(predicted) & (np.abs(observed) < PRESENT)
    p, o = predicted[there].astype(np.float64), observed[there].astype(np.float64)
    return pearson(p, o), float(np.abs(p - o).mean()), float(np.sqrt(((p - o) ** 2).mean()))


WORKLOAD = SkillWorkload()
