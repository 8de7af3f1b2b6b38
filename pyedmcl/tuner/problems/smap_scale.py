"""Workload of the scales of S-map's weights."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class ScaleWorkload(SmapWorkload):
    """Nearest and mean distance of each row, whatever is fitted then."""

    kernel = "smap_scale"

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 3)]
        if mode != "rapid":
            cases += [self.case(n, 10), self.case(n, 1), self.case(n, 3, limited=True)]
        if mode == "exhaustive":
            cases += [self.case(n, 20), self.case(n, 3, dtype="float64")]
        return cases


WORKLOAD = ScaleWorkload()
