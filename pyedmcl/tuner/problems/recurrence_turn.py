"""Workload of turning recurrence words from diagonals to rows and columns."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sweeps import SweepWorkload, points


class TurnWorkload(SweepWorkload):
    """Shuffles of 32 x 32 bits; whatever the points are, they take the same time."""

    kernel = "recurrence_turn"
    entries = ("turn_to_rows", "turn_to_columns")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        return [self.case(points(info), 3, exact=False)]


WORKLOAD = TurnWorkload()
