"""Workload of recurrence bits: the whole sweep, since the edge of a tile and who turns words change all of it."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .sweeps import SweepWorkload, bits_bytes, points


class BitsWorkload(SweepWorkload):
    """Cells of a tile, and all launches that depend on how the tile was cut."""

    kernel = "recurrence_bits"
    own = ("recurrence_bits",)
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
        """Per cell of a half: a difference and a square, shared along the diagonal, m - 1 sums, and for each radius a
        comparison, two where cells near the radius are to be decided in float64."""
        given = case.numbers["given"]
        return float(self.pairs(case) / 2 * (given["m"] + 1.0 + given["n_radii"] * (1 + given["exact"])))

    def bytes(self, case: Case) -> float:
        """Bits written; on some devices those along rows, too, which are not counted."""
        return bits_bytes(case, 1.0)


WORKLOAD = BitsWorkload()
