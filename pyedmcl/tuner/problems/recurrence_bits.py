"""Workload of recurrence bits: the whole sweep, since the edge of a tile and who turns words change all of it."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .common import OTHER_METRICS
from .sweeps import SweepWorkload, points


class BitsWorkload(SweepWorkload):
    """Cells of a tile, and all launches that depend on how the tile was cut."""

    kernel = "recurrence_bits"
    entries = ("recurrence_bits", "turn_to_rows", "turn_to_columns", "recurrence_lines", "recurrence_fold")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = points(info)
        cases = [self.case(n)]
        if mode != "rapid":
            cases += [self.case(n, exact=False), self.case(n, 1), self.case(n, 20), self.case(max(n // 8, 1000))]
        if mode == "exhaustive":
            cases += [self.case(n, metric=metric) for metric in OTHER_METRICS]
            cases.append(self.case(n, n_radii=4))
            if info.fp64:
                cases.append(self.case(n, dtype="float64", exact=False))
        return cases


WORKLOAD = BitsWorkload()
