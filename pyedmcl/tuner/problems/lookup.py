"""Tuning problem of the cross-map lookup: skill of all targets from the tables of some libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.crossmap import CrossMap, MapData
from ...launch.staging import Staging
from ...reference import skill
from ..problem import Answer, OneWayProblem, TuningCase, up_to
from ..verify import Close
from .common import exact_knn, maps, releasing, scalar, units

_SHOWN = 4
_AT_ONCE = 32
# Libraries that are compared; the second has rows without neighbours.
_GAPPY = 7
_COMPARED = [0, _GAPPY]
# k, steps, targets, and libraries of a launch, as E = 3 for all and E = 1..20 evenly ask for them. On GPUs jobs of
# 2,000 series x 3,780 steps, 1,000 x 8,528, 154 x 1,600, 8,000 x 96 and 82 x 10,608; on processors 1,000 x 1,000,
# 154 x 1,600 and 82 x 4,000. Most of a mixed job's lookups have 12 to 21 neighbours. A large map of one
# E looks up many neighbours of all targets, for which parameters of 100 targets take up to twice as long
# (docs/design/lookup.md).
_JOBS_OF_GPUS = (
    (4, 3780, 2000, 2000), (16, 3780, 100, 127), (4, 8528, 1000, 1000), (16, 8528, 50, 64), (16, 96, 400, 578),
    (4, 96, 8000, 2048), (4, 1600, 154, 154), (16, 1600, 8, 35), (16, 10608, 4, 5), (4, 10608, 82, 82),
    (8, 3780, 100, 127), (8, 96, 400, 578), (4, 600, 1000, 1000), (16, 3780, 1000, 500), (16, 1600, 1000, 500),
    (8, 1600, 1000, 500),
)  # fmt: skip
_JOBS_OF_PROCESSORS = (
    (4, 1000, 1000, 1000), (16, 1000, 50, 127), (4, 1600, 154, 154), (16, 1600, 8, 35), (4, 4000, 82, 82),
    (16, 4000, 4, 16), (8, 1000, 50, 127), (8, 1600, 8, 35), (4, 96, 4000, 1000), (16, 96, 400, 578),
)  # fmt: skip


class LookupProblem(OneWayProblem):
    """rho of every target from one library's neighbours, for targets of one dimension."""

    kernel = "lookup"
    tolerance = (0.0, 2e-5)

    def wanted(self, mode: str, info: DeviceInfo) -> list[Mapping[str, Any]]:
        jobs = [dict(zip(("k", "rows", "targets", "libraries"), job, strict=True))
                for job in (_JOBS_OF_GPUS if scalar(info) else _JOBS_OF_PROCESSORS)]  # fmt: skip
        return up_to(mode, jobs[:2], jobs[2:], [{**job, "dtype": "float64"} for job in jobs[:2]])

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        k, rows = int(specialisation.get("k", 0)), min(int(sizes.get("rows", 0)), 4096)
        targets = min(int(sizes.get("targets", specialisation.get("columns", 0))), 4096)
        if k < 2 or targets < 1 or rows < k + 10:
            return None
        return self.case(info, k=k, rows=rows, targets=targets, libraries=512, dtype=specialisation["dtype"])

    def case(
        self, info: DeviceInfo, *, k: int, rows: int, targets: int, libraries: int, dtype: str = "float32"
    ) -> TuningCase:
        # Some tens of milliseconds on a processor, some milliseconds on a GPU, the search before it included.
        lookups, search = k * rows * targets, 40.0 * rows * rows
        most = max(int(units(info, 30, 24, 1 << 20) * 4e6 / lookups),
                   int(units(info, 500, 1200, 1 << 30) * 1e6 / search))  # fmt: skip
        # Whole rounds of the most that a group looks up at once: what is left over counts for little in a job.
        libraries = max(min(most // _AT_ONCE * _AT_ONCE or most, libraries), 1)
        specialisation = {"k": k, "dtype": dtype, "gaps": False, "columns": targets}
        return self.named(f"k={k}", f"{libraries} x {targets} targets", f"{rows} rows", rows=rows, targets=targets,
                          libraries=libraries, E=max(min(k - 1, 20), 1), given=specialisation)  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        values = maps(n["rows"], max(n["targets"], n["libraries"]), case.given["dtype"])
        return values, n["targets"], n["libraries"], 0, False, slice(_SHOWN)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for rows, targets, Tp, gaps in ((83, 150, 0, False), (131, 19, -2, True)):
            values = np.array(maps(rows + case.numbers["E"], targets, case.given["dtype"], seed=3))
            middle = len(values) // 2
            if gaps:
                values[[middle, middle + 1], _GAPPY] = np.nan
            words = f"{targets} targets of {len(values)} rows with k={case.given['k']}"
            yield words, (values, targets, targets, Tp, gaps, _COMPARED)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        values, targets, libraries, Tp, gaps, shown = small
        E = np.full(targets, case.numbers["E"])
        mapping = CrossMap(executor, MapData(
            values[:, :targets], E, Tp=Tp, k=case.given["k"], gaps=gaps, n_libraries=case.numbers["libraries"]
        ))  # fmt: skip
        if libraries > targets:  # few targets of this k among many series
            mapping.data.release()
            mapping.data = Staging(executor, values)
        with releasing(mapping):
            yield lambda: {"rho": _without_gappy(mapping.skill(0, libraries)[shown], gaps)}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        values, _, _, Tp, gaps, _ = small
        exact, rho = exact_knn(case.given["dtype"]), []
        for library in _COMPARED:
            x = values[:, library]
            # Gaps of the target play no part, so a target without any stands for all.
            squared, rows = exact(x, E=case.numbers["E"], k=case.given["k"], Tp=Tp, target=np.zeros_like(x))
            distances = np.sqrt(squared.astype(np.float64))
            rho.append([skill(rows, distances, target, Tp) for target in values.T])
        return {"rho": Close(_without_gappy(np.array(rho), gaps), *self.tolerance)}


def _without_gappy(rho: Any, gaps: bool) -> Any:
    """rho less that of the target with gaps: it would need a mask of its own, which is the search's affair."""
    return np.delete(rho, _GAPPY, axis=1) if gaps else rho


PROBLEMS = (LookupProblem(),)
