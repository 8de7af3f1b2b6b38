"""Workload of finding lines in recurrence bits."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sweeps import SweepWorkload, points


class LinesWorkload(SweepWorkload):
    """Lines along diagonals, rows and columns; how many there are depends on the series."""

    kernel = "recurrence_lines"
    entries = ("recurrence_lines", "recurrence_fold")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        # One: the engine asks for the same parameters whatever the series is.
        return [self.case(points(info), 5, exact=False)]


WORKLOAD = LinesWorkload()
