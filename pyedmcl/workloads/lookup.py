"""Workload of the cross-map lookup: skill of all targets from the tables of some libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.executor import Executor
from ..device.info import DeviceInfo
from ..neighbors.crossmap import CrossMap
from ..reference import knn_float32_exact, knn_float64_exact, skill
from ..tuning.verify import require_close
from ..tuning.workload import Answer, Case, Workload
from .common import Floats, maps, on_gpu, units

_SHOWN = 4
# Libraries that are compared; the second has rows without neighbours.
_GAPPY = 7
_ORACLE_LIBRARIES = (0, _GAPPY)


class LookupWorkload(Workload):
    """rho of every target from one library's neighbours, for targets of one dimension."""

    kernel = "lookup"
    tolerance = (0.0, 2e-5)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        rows = 3780 if on_gpu(info) else 1600
        # Narrow classes take longer to search for than to look up, so their series are short for their size bucket.
        short = 2100 if on_gpu(info) else 600
        cases = [_case(4, rows, 1000, info), _case(11, short, 100, info)]
        if mode == "rapid":
            return cases
        cases += [_case(k, length, targets, info)
                  for k, length, targets in ((21, short, 100), (4, 96, 4000), (21, 96, 400), (4, 600, 154),
                                             (6, 600, 8), (21, 600, 8), (11, 96, 400))]  # fmt: skip
        if mode == "exhaustive" or on_gpu(info):
            cases += [_case(k, 8528, targets, info) for k, targets in ((4, 1000), (11, 50), (21, 50))]
        if mode == "exhaustive" and info.fp64:
            cases += [_case(k, rows, targets, info, dtype="float64") for k, targets in ((4, 1000), (21, 100))]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        k, rows = int(specialisation.get("k", 0)), min(int(sizes.get("rows", 0)), 4096)
        targets = min(int(sizes.get("targets", specialisation.get("columns", 0))), 4096)
        if k < 2 or targets < 1 or rows < k + 10:
            return None
        return _case(k, rows, targets, info, dtype=specialisation["dtype"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n, given = case.numbers, case.numbers["given"]
        # Libraries are targets, too: there are as many series as the larger of both numbers.
        values = maps(n["rows"], n["targets"], given["dtype"])
        mapping = _mapping(executor, values, n["E"], given["k"], gaps=given["gaps"])
        libraries = min(n["libraries"], n["targets"])

        def go() -> Answer:
            # Few targets: the same libraries several times, which is what many libraries cost.
            for _ in range(n["repeats"]):
                rho = mapping.skill(0, libraries)
            return {"rho": rho[:_SHOWN]}

        try:
            yield go
        finally:
            mapping.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given, E = case.numbers["given"], case.numbers["E"]
        for length, targets, Tp, gappy in ((83 + E, 150, 0, False), (131 + E, 19, -2, True)):
            values = _problem(length, targets, given["dtype"], gappy)
            mapping = _mapping(executor, values, E, given["k"], Tp=Tp, gaps=gappy)
            try:
                rho = mapping.skill(0, targets)
            finally:
                mapping.release()
            for library in _ORACLE_LIBRARIES:
                wanted = _oracle(length, targets, given["dtype"], gappy, E, given["k"], Tp, library)
                if gappy:  # as a target it would need a mask of its own, which is the search's affair
                    wanted = wanted.copy()
                    rho[library, _GAPPY], wanted[_GAPPY] = np.nan, np.nan
                what = f"rho of {targets} targets of {length} rows with k={given['k']} from library {library}"
                require_close(what, rho[library], wanted, *self.tolerance)

    def pairs(self, case: Case) -> float:
        """Cells of the map, times rows: predictions that are made."""
        n = case.numbers
        return float(min(n["libraries"], n["targets"]) * n["repeats"] * n["targets"] * n["rows"])

    def operations(self, case: Case) -> float:
        """k multiply-adds and the five sums of rho for each prediction."""
        return float(self.pairs(case) * (case.numbers["given"]["k"] + 5.0))

    def bytes(self, case: Case) -> float:
        """k neighbours of each prediction, from whatever memory is nearest."""
        item = np.dtype(case.numbers["given"]["dtype"]).itemsize
        return float(self.pairs(case) * (case.numbers["given"]["k"] + 1.0) * item)


def _case(k: int, rows: int, targets: int, info: DeviceInfo, *, dtype: str = "float32") -> Case:
    wanted = max(int(units(info, 30, 24, 1 << 20) * 4e6 / (k * rows * targets)), 1)
    libraries = min(wanted, targets, 2048)
    repeats = max(min(wanted // libraries, 4), 1)
    name = f"k={k}, {libraries} x {targets} targets, {rows} rows" + ("" if dtype == "float32" else f", {dtype}")
    return Case("lookup", name, {
        "rows": rows, "targets": targets, "libraries": libraries, "repeats": repeats, "E": max(min(k - 1, 20), 1),
        "given": {"k": k, "dtype": dtype, "gaps": False, "columns": targets},
    })  # fmt: skip


def _mapping(executor: Executor, values: Floats, E: int, k: int, *, Tp: int = 0, gaps: bool = False) -> CrossMap:
    n = values.shape[1]
    return CrossMap(executor, values, np.full(n, E), np.zeros(n, int), {}, k=k, tau=1, Tp=Tp, exclusion_radius=0,
                    gaps=gaps)  # fmt: skip


def _problem(length: int, targets: int, dtype: str, gappy: bool) -> Floats:
    values = maps(length, targets, dtype, seed=3)
    if gappy:
        values = values.copy()
        values[[length // 2, length // 2 + 1], _GAPPY] = np.nan
    return values


@functools.lru_cache(maxsize=256)
def _oracle(length: int, targets: int, dtype: str, gappy: bool, E: int, k: int, Tp: int, library: int) -> NDArray[Any]:
    values = _problem(length, targets, dtype, gappy)
    exact: Any = knn_float32_exact if dtype == "float32" else knn_float64_exact
    x = values[:, library]
    # Gaps of the target play no part, so a target without any stands for all.
    squared, rows = exact(x, E=E, k=k, Tp=Tp, target=np.zeros_like(x))
    distances = np.sqrt(squared.astype(np.float64))
    return np.array([skill(rows, distances, values[:, target], Tp) for target in range(targets)])


WORKLOAD = LookupWorkload()
