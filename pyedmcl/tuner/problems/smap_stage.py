"""Workload of bringing coordinates into the layouts of S-map's kernels."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SmapStageWorkload(SmapWorkload):
    """Query rows; the library's are staged once. There is nothing to tune."""

    kernel = "smap_stage"
    entries = ("stage_points",)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        return [self.case(rows(info), 3)]


WORKLOAD = SmapStageWorkload()
