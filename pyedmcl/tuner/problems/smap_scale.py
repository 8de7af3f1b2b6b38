"""Workload of the scales of S-map's weights."""

from __future__ import annotations

import numpy as np

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class ScaleWorkload(SmapWorkload):
    """Nearest and mean distance of each row, whatever is fitted then."""

    kernel = "smap_scale"

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 3)]
        if mode != "rapid":
            cases += [self.case(n, 10), self.case(n, 1), self.case(n, 3, limited=True)]
        if mode == "exhaustive":
            cases += [self.case(n, 20), self.case(n, 3, dtype="float64")]
        return cases

    def pairs(self, case: Case) -> float:
        """Pairs of a query and a library row."""
        return float(case.numbers["rows"] ** 2)

    def operations(self, case: Case) -> float:
        """Per pair a difference and a multiply-add for each coordinate, a root, a sum and a minimum."""
        given = case.numbers["given"]
        return 0.0 if given["limited"] else self.pairs(case) * (2.0 * given["coordinates"] + 3)

    def bytes(self, case: Case) -> float:
        """Library and query rows, and five results, once."""
        n, given = case.numbers["rows"], case.numbers["given"]
        return float(n * (2 * given["coordinates"] + 5) * np.dtype(given["dtype"]).itemsize)


WORKLOAD = ScaleWorkload()
