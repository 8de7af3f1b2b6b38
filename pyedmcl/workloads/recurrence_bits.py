"""Workload of recurrence bits: the whole sweep, since the edge of a tile and who turns words change all of it."""

from __future__ import annotations

from ..device.info import DeviceInfo
from ..tuning.workload import Case
from .sweeps import SweepWorkload, bits_bytes, points


class BitsWorkload(SweepWorkload):
    """Cells of a tile, and all launches that depend on how the tile was cut."""

    kernel = "recurrence_bits"
    entries = ("recurrence_bits", "turn_to_rows", "turn_to_columns", "recurrence_lines", "recurrence_fold")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = points(info)
        cases = [self.case(n)]
        if mode != "rapid":
            cases += [self.case(n, exact=False), self.case(n, 1), self.case(n, 20), self.case(max(n // 8, 1000))]
        if mode == "exhaustive":
            cases += [self.case(n, metric=metric) for metric in ("maximum", "manhattan")]
            cases.append(self.case(n, n_radii=4))
            if info.fp64:
                cases.append(self.case(n, dtype="float64", exact=False))
        return cases

    def operations(self, case: Case) -> float:
        """Per cell of a half: a difference, a square and a sum for each coordinate, a comparison for each radius."""
        given = case.numbers["given"]
        return float(self.pairs(case) / 2 * (3.0 * given["m"] + given["n_radii"]))

    def bytes(self, case: Case) -> float:
        """Bits written, turned twice (read and written), and read along three directions."""
        return bits_bytes(case, 7.0)


WORKLOAD = BitsWorkload()
