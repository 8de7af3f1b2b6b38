"""Workload of the pruned search: order and walk, since the states of a block change both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...device.info import DeviceInfo
from ...neighbors.pruned import PrunedSearcher
from ..workload import Case
from .pruned_order import ENTRIES
from .searches import SearchWorkload, points

_STEPS_MOST = 1 << 20


class PrunedWorkload(SearchWorkload):
    """Neighbours of a smooth series. Of noise nearly all pairs are looked at, and nobody takes this search."""

    kernel = "pruned"
    entries = ("pruned", "nothing", *ENTRIES)
    searcher = PrunedSearcher

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = points(info)
        cases = [self.case(n, 3, excluding=True)]
        if mode != "rapid":
            cases += [self.case(n, E, excluding=True) for E in (1, 6, 20)] + [self.case(n // 8, 3, excluding=True)]
        if mode == "exhaustive":
            cases += [self.case(n, 3, own=False, excluding=False), self.case(n // 8, 20, excluding=True)]
            if info.fp64:
                cases += [self.case(n, E, dtype="float64", excluding=True) for E in (3, 20)]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s, least = specialisation, 64 + (int(specialisation["E"]) - 1) * int(specialisation["tau"])
        rows, library = (min(max(int(sizes.get(name, 0)), least), _STEPS_MOST) for name in ("rows", "library"))
        return self.case(
            rows, int(s["E"]), k=int(s["k"]), tau=int(s["tau"]), dtype=s["dtype"], own=bool(s["excluding"]),
            library=library, excluding=bool(s["excluding"]),
        )  # fmt: skip


WORKLOAD = PrunedWorkload()
