"""Workload of S-map's sums for many regressors."""

from __future__ import annotations

from ...device.info import DeviceInfo
from ..workload import Case
from .local_fits import SmapWorkload, rows


class SharedWorkload(SmapWorkload):
    """Sums of products, shared among the work-items of a group."""

    kernel, layout = "smap_shared", "shared"
    own = ("smap_shared",)
    entries = ("smap_shared", "smap_solve")

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = rows(info)
        cases = [self.case(n, 10)]
        if mode != "rapid":
            cases += [self.case(n, 20), self.case(n, 10, 15), self.case(n, 40)]
        if mode == "exhaustive":
            cases += [self.case(n, 20, limited=True), self.case(n, 20, dtype="float64")]
        return cases

    def arithmetic(self, case: Case) -> str:
        """Sums are doubles whatever the data are."""
        return "float64"

    def operations(self, case: Case) -> float:
        """A multiply-add for each sum of a fit, for each pair."""
        return self.pairs(case) * self.entries_of(case)

    def bytes(self, case: Case) -> float:
        """Sums written."""
        return self.sums_bytes(case)


WORKLOAD = SharedWorkload()
