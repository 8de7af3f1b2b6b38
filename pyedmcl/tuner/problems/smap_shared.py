"""Workload of S-map's sums for many regressors."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SharedWorkload(SmapWorkload):
    """Sums of products, shared among the work-items of a group."""

    kernel, layout = "smap_shared", "shared"
    entries = ("smap_shared", "smap_solve")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 10)]
        if mode != "rapid":
            cases += [self.case(n, 20), self.case(n, 10, 15), self.case(n, 40)]
        if mode == "exhaustive":
            cases += [self.case(n, 20, limited=True), self.case(n, 20, dtype="float64")]
        return cases


WORKLOAD = SharedWorkload()
