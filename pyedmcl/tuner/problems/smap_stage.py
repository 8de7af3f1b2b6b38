"""Workload of bringing coordinates into the layouts of S-map's kernels."""

from __future__ import annotations

import numpy as np

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SmapStageWorkload(SmapWorkload):
    """Query rows; the library's are staged once. There is nothing to tune."""

    kernel, unit = "smap_stage", "values"
    entries = ("stage_points",)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        return [self.case(rows(info), 3)]

    def pairs(self, case: Case) -> float:
        """Values."""
        return float(case.numbers["rows"] * case.numbers["given"]["coordinates"])

    def bytes(self, case: Case) -> float:
        """Doubles read, coordinates and regressors written."""
        return float(self.pairs(case) * (16.0 + np.dtype(case.numbers["given"]["dtype"]).itemsize))


WORKLOAD = SmapStageWorkload()
