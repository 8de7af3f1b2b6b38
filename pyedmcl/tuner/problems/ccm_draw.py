"""Workload of drawing random sub-libraries."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sampled_skill import CcmWorkload, steps


class DrawWorkload(CcmWorkload):
    """Members, of which the oracle draws the same."""

    kernel = "ccm_draw"
    entries = ("ccm_draw", "ccm_list")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        cases = [self.case(steps(info), 3, 4)]
        if mode != "rapid":
            cases.append(self.case(steps(info) // 4, 3, 4))
        return cases


WORKLOAD = DrawWorkload()
