"""Workload of small random sub-libraries, whose members are all looked at."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sampled_skill import CcmWorkload, steps, wanted


class DirectWorkload(CcmWorkload):
    """Small sub-libraries."""

    kernel = "ccm_direct"

    def shares(self) -> tuple[float, float]:
        return 0.01, 0.05

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        cases = [self.case(steps(info), E, k) for E, k in wanted(mode)]
        if mode == "exhaustive" and info.fp64:
            cases.append(self.case(steps(info), 3, 4, dtype="float64"))
        return cases


WORKLOAD = DirectWorkload()
