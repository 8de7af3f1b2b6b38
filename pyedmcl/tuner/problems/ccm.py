"""Workload of scans of sorted neighbours for the members of random sub-libraries."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sampled_skill import CcmWorkload, steps, wanted


class ScanWorkload(CcmWorkload):
    """Larger sub-libraries."""

    kernel = "ccm"
    entries = ("ccm", "ccm_prepare", "ccm_rho")

    def shares(self) -> tuple[float, float]:
        return 0.2, 0.95

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        cases = [self.case(steps(info), E, k) for E, k in wanted(mode)]
        if mode != "rapid":
            cases.append(self.case(steps(info) // 4, 3, 4))
        if mode == "exhaustive" and info.fp64:
            cases.append(self.case(steps(info), 3, 4, dtype="float64"))
        return cases


WORKLOAD = ScanWorkload()
