"""Workload of S-map's sums, in whichever layout the number of regressors asks for."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SumsWorkload(SmapWorkload):
    """Sums of products; a parameter says from how many regressors on another kernel takes over, so both are timed."""

    kernel = "smap"
    entries = ("smap", "smap_shared", "smap_solve")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 3), self.case(n, 10)]
        if mode != "rapid":
            cases += [self.case(n, 3, 15), self.case(n, 1, 15), self.case(n, 6), self.case(max(n // 5, 300), 3)]
        if mode == "exhaustive":
            cases += [self.case(n, 20), self.case(n, 3, limited=True), self.case(n, 3, dtype="float64")]
        return cases


WORKLOAD = SumsWorkload()
