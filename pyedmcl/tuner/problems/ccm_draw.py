"""Workload of drawing random sub-libraries."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sampled_skill import CcmWorkload, steps


class DrawWorkload(CcmWorkload):
    """Members, of which the oracle draws the same."""

    kernel, unit = "ccm_draw", "rows"
    entries = ("ccm_draw", "ccm_list")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        cases = [self.case(steps(info), 3, 4)]
        if mode != "rapid":
            cases.append(self.case(steps(info) // 4, 3, 4))
        return cases

    def pairs(self, case: Case) -> float:
        """Rows that are drawn or not."""
        return self.draws(case) * float(case.numbers["steps"])

    def bytes(self, case: Case) -> float:
        """A bit for each row and sample."""
        return self.pairs(case) / 8


WORKLOAD = DrawWorkload()
