"""Workload of staging: raw data into the time-major layout of targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.sizes import round_up
from ...launch.staging import Staging
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import maps, units


class StageWorkload(Workload):
    """Centring and rearranging; there is nothing to tune, and its time is part of every job."""

    kernel = "stage"
    entries = ("centre", "stage_targets", "stage_series")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        return [_case(info)]

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        return _case(info, specialisation["dtype"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        values = maps(n["rows"], n["series"], n["given"]["dtype"])
        stride = round_up(n["series"], 16)
        into = executor.allocate(n["rows"] * stride * values.itemsize)
        columns = np.arange(n["series"], dtype=np.int32)

        def go() -> Answer:
            data = Staging(executor, values)
            try:
                data.targets(columns, stride, into)
                return {"targets": executor.download(into, np.empty((4, stride), values.dtype))[:, : n["series"]]}
            finally:
                data.release()

        try:
            yield go
        finally:
            into.release()

    def verify(self, executor: Executor, case: Case) -> None:
        dtype = case.numbers["given"]["dtype"]
        values = maps(61, 37, dtype)
        order = np.random.default_rng(1).permutation(37).astype(np.int32)
        into = executor.upload(np.full((63, 48), np.nan, dtype))
        data = Staging(executor, values)
        try:
            data.targets(order, 48, into, 63)
            held = executor.download(into, np.empty((63, 48), dtype))
            shift, exponent = data.scaling()
        finally:
            data.release()
            into.release()
        padding = np.concatenate([held[:, 37:].ravel(), held[61:].ravel()])
        require_equal("padding of staged targets", padding, np.zeros_like(padding))
        got = held[:61, order]
        back = got.astype(np.float64) * 2.0**exponent + shift
        require_close("staged targets", back, values.astype(np.float64), 0.0, 2e-7)


def _case(info: DeviceInfo, dtype: str = "float32") -> Case:
    series = units(info, 256, 16)
    name = f"{series} x 2000" + ("" if dtype == "float32" else f", {dtype}")
    return Case("stage", name, {"rows": 2000, "series": series, "given": {"dtype": dtype}})


WORKLOAD = StageWorkload()
