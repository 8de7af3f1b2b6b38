"""Workload of S-map's local systems."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SolveWorkload(SmapWorkload):
    """A small system for each row and theta."""

    kernel = "smap_solve"

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 3)]
        if mode != "rapid":
            cases += [self.case(n, 10), self.case(n, 20)]
        if mode == "exhaustive":
            cases += [self.case(n, 1), self.case(n, 3, ridge=True)]
        return cases


WORKLOAD = SolveWorkload()
