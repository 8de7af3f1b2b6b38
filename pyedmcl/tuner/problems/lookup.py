"""Workload of the cross-map lookup: skill of all targets from the tables of some libraries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.crossmap import CrossMap, MapData
from ...launch.staging import Staging
from ...reference import knn_float32_exact, knn_float64_exact, skill
from ..verify import require_close
from ..workload import Answer, Case, Workload
from .common import Floats, maps, on_gpu, units

_SHOWN = 4
_AT_ONCE = 32
# Libraries that are compared; the second has rows without neighbours.
_GAPPY = 7
_ORACLE_LIBRARIES = (0, _GAPPY)


class LookupWorkload(Workload):
    """rho of every target from one library's neighbours, for targets of one dimension."""

    kernel = "lookup"
    tolerance = (0.0, 2e-5)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        # k, steps, targets, and libraries of a launch, as E = 3 for all and E = 1..20 evenly ask for them. Jobs of
        # 2,000 series x 3,780 steps, 1,000 x 8,528, 154 x 1,600, 8,000 x 96 and 82 x 10,608; on processors
        # 1,000 x 1,000, 154 x 1,600 and 82 x 4,000. Most of a mixed job's lookups have 12 to 21 neighbours.
        jobs: tuple[tuple[int, int, int, int], ...] = (
            ((4, 3780, 2000, 2000), (16, 3780, 100, 127), (4, 8528, 1000, 1000), (16, 8528, 50, 64), (16, 96, 400, 578),
             (4, 96, 8000, 2048), (4, 1600, 154, 154), (16, 1600, 8, 35), (16, 10608, 4, 5), (4, 10608, 82, 82),
             (8, 3780, 100, 127), (8, 96, 400, 578), (4, 600, 1000, 1000))
            if on_gpu(info) else
            ((4, 1000, 1000, 1000), (16, 1000, 50, 127), (4, 1600, 154, 154), (16, 1600, 8, 35), (4, 4000, 82, 82),
             (16, 4000, 4, 16), (8, 1000, 50, 127), (8, 1600, 8, 35), (4, 96, 4000, 1000), (16, 96, 400, 578))
        )  # fmt: skip
        if mode == "rapid":
            jobs = jobs[:2]
        cases = [_case(k, rows, targets, info, libraries) for k, rows, targets, libraries in jobs]
        if mode == "exhaustive" and info.fp64:
            cases += [_case(*job[:3], info, job[3], dtype="float64") for job in jobs[:2]]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        k, rows = int(specialisation.get("k", 0)), min(int(sizes.get("rows", 0)), 4096)
        targets = min(int(sizes.get("targets", specialisation.get("columns", 0))), 4096)
        if k < 2 or targets < 1 or rows < k + 10:
            return None
        return _case(k, rows, targets, info, 512, dtype=specialisation["dtype"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n, given = case.numbers, case.numbers["given"]
        values = maps(n["rows"], max(n["targets"], n["libraries"]), given["dtype"])
        mapping = _mapping(executor, values[:, : n["targets"]], n["E"], given["k"], gaps=given["gaps"])
        if n["libraries"] > n["targets"]:  # few targets of this k among many series
            mapping.data.release()
            mapping.data = Staging(executor, values)

        def go() -> Answer:
            return {"rho": mapping.skill(0, n["libraries"])[:_SHOWN]}

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


def _case(k: int, rows: int, targets: int, info: DeviceInfo, libraries: int, *, dtype: str = "float32") -> Case:
    # Some tens of milliseconds on a processor, some milliseconds on a GPU, the search before it included.
    lookups, search = k * rows * targets, 40.0 * rows * rows
    wanted = max(int(units(info, 30, 24, 1 << 20) * 4e6 / lookups), int(units(info, 500, 1200, 1 << 30) * 1e6 / search))
    # Whole rounds of the most that a group looks up at once: what is left over counts for little in a job.
    libraries = max(min(wanted // _AT_ONCE * _AT_ONCE or wanted, libraries), 1)
    name = f"k={k}, {libraries} x {targets} targets, {rows} rows" + ("" if dtype == "float32" else f", {dtype}")
    return Case("lookup", name, {
        "rows": rows, "targets": targets, "libraries": libraries, "E": max(min(k - 1, 20), 1),
        "given": {"k": k, "dtype": dtype, "gaps": False, "columns": targets},
    })  # fmt: skip


def _mapping(executor: Executor, values: Floats, E: int, k: int, *, Tp: int = 0, gaps: bool = False) -> CrossMap:
    n = values.shape[1]
    return CrossMap(executor, MapData(values, np.full(n, E), Tp=Tp, k=k, gaps=gaps))


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
