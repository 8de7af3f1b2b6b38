"""Tuning problem of skill sums: rho, MAE and RMSE of many predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...codegen.sentinels import GAP
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.skill import scores, skill_sums
from ...reference import pearson
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import Floats, releasing, scalar, units


class SkillProblem(OneWayProblem):
    """Pairs of a prediction and an observed series."""

    kernel = "skill"
    # Sums over many values of both signs: what is added in another order differs by rounding of the terms, not the sum.
    tolerance = (1e-5, 1e-2)

    exhaustive = ({"dtype": "float64"},)

    def case(self, info: DeviceInfo, *, rows: int = 0, dtype: str = "float32") -> TuningCase:
        rows, pairs = rows or (2000 if scalar(info) else 1000), units(info, 500, 60, 1 << 14)
        return self.named(f"{pairs:,} x {rows}", rows=rows, pairs=pairs, given={"dtype": dtype})

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        return self.case(info, rows=1000, dtype=specialisation["dtype"])

    def usual(self, case: TuningCase) -> Any:
        return case.numbers["pairs"], case.numbers["rows"]

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for rows in (3, 257, 700):
            yield f"pairs with {rows} rows", (9, rows)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        predicted, observed, series = _pairs(small, case.given["dtype"])
        held = [executor.upload(array) for array in (predicted, observed)]

        def go() -> Answer:
            sums = skill_sums(executor, *held, observed_of=series, n_rows=predicted.shape[1],
                              observed_stride=observed.shape[1], dtype=case.given["dtype"])  # fmt: skip
            return {"sums": sums}

        with releasing(*held):
            yield go

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        sums = super().computed(executor, case, small)["sums"]
        return dict(zip(("rho", "MAE", "RMSE"), scores(sums, case.given["dtype"]), strict=True))

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        predicted, observed, series = _pairs(small, case.given["dtype"])
        of_pairs = [_scores(p, observed[s, : len(p)]) for p, s in zip(predicted, series, strict=True)]
        return {name: Close(np.array(values), 0.0, 2e-6)
                for name, values in zip(("rho", "MAE", "RMSE"), zip(*of_pairs, strict=True), strict=True)}  # fmt: skip


def _pairs(size: tuple[int, int], dtype: str) -> tuple[Floats, Floats, Any]:
    """Predictions with gaps, padded observations with gaps, and which belongs to which."""
    (n_pairs, n_rows), rng = size, np.random.default_rng(5)
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
    present = np.isfinite(predicted) & (np.abs(observed) < GAP / 10)
    p, o = predicted[present].astype(np.float64), observed[present].astype(np.float64)
    return pearson(p, o), float(np.abs(p - o).mean()), float(np.sqrt(((p - o) ** 2).mean()))


PROBLEMS = (SkillProblem(),)
