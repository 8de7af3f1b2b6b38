"""Workload of scans of sorted neighbours for the members of random sub-libraries."""

from __future__ import annotations

import numpy as np

from ...device.info import DeviceInfo
from ..workload import Case
from .sampled_skill import CcmWorkload, steps, wanted


class ScanWorkload(CcmWorkload):
    """Larger sub-libraries."""

    kernel, unit = "ccm", "predictions"
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

    def pairs(self, case: Case) -> float:
        """Rows of all sub-libraries' predictions."""
        return self.draws(case) * float(case.numbers["steps"])

    def bytes(self, case: Case) -> float:
        """k neighbours with their distances, the value of each, and a bit of membership for each that is looked at."""
        given, n = case.numbers["given"], case.numbers
        item = np.dtype(given["dtype"]).itemsize
        looked = sum(given["k"] * n["steps"] / size for size in n["sizes"]) / len(n["sizes"])
        return float(self.pairs(case) * (given["k"] * (2 * item + 4) + looked / 8))


WORKLOAD = ScanWorkload()
