"""Tuning problems of S-map's maps: states, systems and predictions are kernels of one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.smap_map import SmapMap
from ...engines.smap_map_data import SmapMapData
from ...reference.smap import map_rho, map_slopes
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import maps, releasing, scalar

_THETA, _RADIUS, _RIDGE = 2.0, 2, 0.3
_COMPARED = [0, 3]
_SHOWN = 4


_COMMON: Mapping[str, Any] = {"E": 5, "rows": 1000, "targets": 100}


class SmapMapProblem(OneWayProblem):
    """rho of all targets from some libraries, and of the kernel of slopes their means."""

    # As the map promises; float64 is held to its own digits by the tests.
    tolerance = (0.0, 1e-5)
    rapid = (_COMMON,)
    normal: Sequence[Mapping[str, Any]] = ({**_COMMON, "E": 10},)
    exhaustive: Sequence[Mapping[str, Any]] = ({**_COMMON, "E": 3, "dtype": "float64"},)

    @property
    def _slopes(self) -> bool:
        """Whether mean slopes are computed, too."""
        return self.kernel == "smap_slopes"

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s, E = specialisation, int(specialisation["E"])
        rows = min(int(sizes.get("rows", 1000)), 1000 if scalar(info) else 500)
        if rows < 4 * E + 20:
            return None
        targets = min(int(sizes.get("targets", 100)), 512)
        return self.case(info, E=E, rows=rows, targets=targets, dtype=s["dtype"], ridge=s.get("penalised", False))

    def case(
        self, info: DeviceInfo, *, E: int, rows: int, targets: int, dtype: str = "float32", ridge: bool = False
    ) -> TuningCase:
        # Some tens of milliseconds.
        most = int((2e12 if scalar(info) else 2e9) / rows**2 / (targets + 60 * E))
        specialisation = {"E": E, "gaps": False, "dtype": dtype}
        if self.kernel in ("smap_white", "smap_gram"):
            specialisation["penalised"] = ridge
        if self.kernel == "smap_gram":
            specialisation["slopes"] = False
        if self.kernel == "smap_map":
            # Matrix units prescribe all that could be tuned.
            specialisation.update(matrix_units=False, halves=False)
        return self.named(
            f"E={E}", f"{targets} targets", f"{rows:,} rows", "ridge" * ridge, rows=rows, targets=targets,
            libraries=max(min(most, targets), 1), ridge=ridge, given=specialisation,
        )  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        return maps(n["rows"], n["targets"], case.given["dtype"]), n["libraries"], slice(_SHOWN)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        E = case.given["E"]
        for rows, targets in ((4 * E + 83, 5), (4 * E + 150, 37)):
            values = maps(rows, targets, case.given["dtype"], seed=3)
            yield f"{targets} targets of {rows} rows, E={E}", (values, targets, _COMPARED)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        values, libraries, shown = small
        n, ridge = values.shape[1], _RIDGE if case.numbers["ridge"] else 0.0
        none, E = np.zeros(n, int), case.given["E"]
        engine = SmapMap(executor, SmapMapData(
            values, values.astype(np.float64), none, np.full(n, E), 1, 1, _RADIUS, none, {}, False,
            (_THETA,), ridge, slopes=none if self._slopes else None,
        ))  # fmt: skip

        def go() -> Answer:
            rho = np.empty((libraries, n), values.dtype)
            slopes = np.empty((libraries, n, E)) if self._slopes else None
            engine.skill(0, libraries, [rho], slopes=slopes)
            return {"rho": rho[shown]} | ({} if slopes is None else {"slopes": slopes[shown]})

        with releasing(engine):
            yield go

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        values, _, shown = small
        ridge = _RIDGE if case.numbers["ridge"] else 0.0
        fits = {"Tp": 1, "exclusion_radius": _RADIUS, "ridge": ridge, "libraries": shown}
        expected = {"rho": Close(map_rho(values, case.given["E"], _THETA, **fits), *self.tolerance)}
        if self._slopes:
            expected["slopes"] = Close(map_slopes(values, case.given["E"], _THETA, **fits), *self.tolerance)
        return expected


class WhiteProblem(SmapMapProblem):
    """States, and regressors in which a library is white."""

    kernel = "smap_white"


class SlopesProblem(SmapMapProblem):
    """What each row adds to the mean slopes."""

    kernel = "smap_slopes"


class GramProblem(SmapMapProblem):
    """A system for each row."""

    kernel = "smap_gram"
    normal = ({**_COMMON, "E": 3}, {**_COMMON, "E": 10}, {**_COMMON, "rows": 4000})
    exhaustive = (*SmapMapProblem.exhaustive, {**_COMMON, "E": 3, "ridge": True})


class MapProblem(SmapMapProblem):
    """Predictions of all targets."""

    kernel = "smap_map"
    normal = ({**_COMMON, "rows": 4000}, {**_COMMON, "rows": 500, "targets": 800}, {**_COMMON, "E": 10})


PROBLEMS = (WhiteProblem(), SlopesProblem(), GramProblem(), MapProblem())
