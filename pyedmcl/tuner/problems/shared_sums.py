"""Workload of the sweep over all pairs that shares sums along diagonals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...device.info import DeviceInfo
from ...neighbors.shared_sums import SharedSumsSearcher
from ..workload import Case
from .common import on_gpu, units
from .searches import SearchWorkload

_SIDE = 8


class SharedWorkload(SearchWorkload):
    """Neighbours of states of many dimensions."""

    kernel = "shared_sums"
    searcher = SharedSumsSearcher

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = _points(info)
        cases = [_case(self, n, 20)]
        if mode != "rapid":
            cases += [_case(self, n, 8), _case(self, n // 4, 20)]
            if on_gpu(info):  # a million states want other groups than a hundred thousand
                cases.append(_case(self, 8 * n, 20))
        if mode == "exhaustive":
            cases.append(_case(self, n, 20, own=False))
            if info.fp64:
                cases.append(_case(self, n, 20, dtype="float64"))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s, most = specialisation, (1 << 17) if on_gpu(info) else (1 << 14)  # grows with the square
        least = 64 + (int(s["E"]) - 1) * int(s["tau"])
        rows, library = (min(max(int(sizes.get(name, 0)), least), most) for name in ("rows", "library"))
        return _case(self, rows, int(s["E"]), k=int(s["k"]), tau=int(s["tau"]), dtype=s["dtype"], own=rows == library,
                     library=library)  # fmt: skip


def _points(info: DeviceInfo) -> int:
    """Steps: tens of milliseconds, whose pairs grow with the square."""
    return units(info, 4_000, 1_000, most=1 << 17)


def _case(work: SharedWorkload, rows: int, E: int, **more: Any) -> Case:
    return work.case(rows, E, **more, side=min(_SIDE, E))


WORKLOAD = SharedWorkload()
