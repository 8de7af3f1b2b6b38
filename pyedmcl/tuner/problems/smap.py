"""Tuning problems of S-map and of its maps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...device.quirks import quirks_for
from ...engines.smap import LocalFits
from ...engines.smap_device import basis_of
from ...engines.smap_maps import SmapMap, SmapMapData
from ...reference import edm
from ...reference.edm import map_rho, map_slopes
from ...tuning.parameters import using
from ..problem import Answer, Close, OneWayProblem, TuningCase, maps, releasing, scalar

Doubles = NDArray[np.float64]

_KNN, _RIDGE = 40, 0.7
_THETAS = (0.0, 0.5, 2.0)
_SHOWN = 64
# Of distances and weights; sums of their products are taken in doubles.
_ROUNDING = {"float32": 2e-6, "float64": 1e-12}


class SmapProblem(OneWayProblem):
    """Local fits around every row of a library of delays."""

    # Weights are exponentials of float32, which vectors may round otherwise than scalars, and sums are split.
    tolerance = (1e-4, 1e-4)
    rapid: Sequence[Mapping[str, Any]] = ({"E": 3},)
    # Regressors from which sums are shared by a group, where the kernel belongs to one layout of them.
    share_from: ClassVar[int | None] = None

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s, E = specialisation, int(specialisation["coordinates"])
        n = min(int(sizes.get("library", _rows(info))), _rows(info))
        if int(s.get("regressors", E + 1)) != E + 1 or n < 2 * E + 10:
            return None
        return self.case(info, n, E=E, dtype=s["dtype"], limited=s.get("limited", False),
                         ridge=s.get("penalised", False))  # fmt: skip

    def case(
        self, info: DeviceInfo, n: int = 0, *, E: int, thetas: int = 1, dtype: str = "float32", limited: bool = False,
        ridge: bool = False, part: int = 1,
    ) -> TuningCase:  # fmt: skip
        """A case of ``n`` library rows, or a part of the usual number."""
        n = n or _rows(info)
        n = n if part == 1 else max(n // part, 300)
        specialisation = {
            "coordinates": E, "regressors": E + 1, "limited": limited, "matrix_units": quirks_for(info).matrix_units,
            "dtype": dtype,
        }  # fmt: skip
        return self.named(
            f"E={E}", f"{n:,} rows", f"{thetas} theta", f"knn={_KNN}" * limited, "ridge" * ridge,
            rows=n, thetas=thetas, ridge=ridge, given=specialisation,
        )  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n, E = case.numbers, case.given["coordinates"]
        series = maps(n["rows"] + E + 1, 1, "float64")[:, 0].astype(np.float64)
        states = np.lib.stride_tricks.sliding_window_view(series[1:-1], E)[:, ::-1]
        x, at = np.ascontiguousarray(states[-n["rows"] :]), np.arange(n["rows"])
        return (x, series[-n["rows"] :], at, x, at, 0), np.linspace(0.0, 4.0, n["thetas"] + 1)[1:], _SHOWN

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        E = case.given["coordinates"]
        for m, radius in ((45, 2), (83, -1)):
            # A library among twice as many query rows.
            rng, rows = np.random.default_rng(m), max(m, 3 * E + 20)
            points = rng.standard_normal((2 * rows, E)) + 3.0
            at = np.sort(rng.choice(2 * rows, rows, replace=False))
            y = np.sin(points).sum(axis=1) + 0.1 * rng.standard_normal(2 * rows)
            yield f"{m} library rows, E={E}", ((points[at], y[at], at, points, np.arange(2 * rows), radius), _THETAS, 0)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        """Fits around all query rows; ``shown`` of those of the last launch, or, where it is 0, all."""
        (x, y, at, points, query, radius), thetas, shown = small
        with ExitStack() as stack:
            if self.share_from is not None:
                stack.enter_context(using(smap={"share_from": self.share_from}))
            limits = _restrictions(case)
            engine = LocalFits(executor, x, y, at, exclusion_radius=radius, dtype=case.given["dtype"], **limits)
            stack.callback(engine.release)
            device, n = engine.device, len(points)
            if not shown:
                device.units = 13  # of these tiles some are cut into parts
            step = min(device.block(device.layout, len(thetas)), n) if shown else n

            def go() -> Answer:
                device.pool.put("thetas", np.asarray(thetas, device.dtype))
                for a in range(0, n, step):
                    solved = device.run(points[a : a + step], query[a : a + step], len(thetas), device.layout)
                answer = {
                    "neighbours": solved.counts.astype(np.int64), "predicted": solved.predicted,
                    "variance": solved.variance,
                }  # fmt: skip
                if shown:
                    return {name: values[..., :shown].copy() for name, values in answer.items()}
                unit = 2.0**device.basis.exponent
                nearest, rate = (device.get(name, (n,), device.dtype).astype(float) for name in ("nearest", "rate"))
                answer |= {"nearest distances": nearest * unit, "mean distances": unit / rate,
                           "coefficients": solved.coefficients}  # fmt: skip
                if device.library.knn is None:
                    answer[f"sums by {device.layout}"] = np.array(device.moments(n, len(thetas), device.layout))[:, ::7]
                return answer

            yield go

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        fitted, _, _ = small
        x, y, at, points, query, radius = fitted
        limits, basis = _restrictions(case), basis_of(x, y)
        rounding, unit = _ROUNDING[case.given["dtype"]], 2.0**basis.exponent
        nearest, mean, number = edm.scales(x, at, points, query, exclusion_radius=radius, knn=limits["knn"])
        right: dict[str, NDArray[Any] | Close] = {
            "neighbours": number.astype(np.int64), "nearest distances": Close(nearest, rounding, rounding * unit),
            "mean distances": Close(mean, 2 * rounding),
        }  # fmt: skip
        fit: Any = functools.partial(edm.smap_rows, *fitted[:5], exclusion_radius=radius, **limits)
        fits = [fit(theta=theta) for theta in _THETAS]
        for name in ("predicted", "variance", "coefficients"):
            values = np.array([getattr(fit, name) for fit in fits])
            largest = np.abs(values).max(axis=tuple(range(1, values.ndim)), keepdims=True)
            right[name] = Close(values, 0.0, 60 * rounding * largest)
        # The layout of lanes takes regressors relative to the query's.
        for layout in ("lanes", "shared"):
            sums = _sums(fitted, layout == "lanes")
            largest = np.abs(sums).max(axis=2, keepdims=True)
            right[f"sums by {layout}"] = Close(sums, 20 * rounding, 20 * rounding * largest)
        return right


def _rows(info: DeviceInfo) -> int:
    """Library rows of a common problem."""
    return 8000 if scalar(info) else 1500


def _restrictions(case: TuningCase) -> dict[str, Any]:
    return {"knn": _KNN if case.given["limited"] else None, "alpha": _RIDGE if case.numbers["ridge"] else 0.0}


def _sums(fitted: Any, centred: bool) -> Doubles:
    """Sums of products (theta, every seventh query row, sum)."""
    x, y, at, points, query, radius = fitted
    basis = basis_of(x, y)
    target = (y - basis.target_shift) / basis.target_scale
    by_row = []
    for t in query[::7]:
        far_in_time = np.abs(at - t) > radius
        d = np.sqrt(((x[far_in_time] - points[t]) ** 2).sum(axis=1))
        z = basis.regressors(x[far_in_time]) - (basis.regressors(points[t : t + 1]) if centred else 0)
        weights = [np.exp(-theta * (d - d.min()) / d.mean()) for theta in _THETAS]
        by_row.append([edm.moments(z, target[far_in_time], w) for w in weights])
    return np.array(by_row).swapaxes(0, 1)


class ScaleProblem(SmapProblem):
    """The unit of each row's weights."""

    kernel = "smap_scale"
    normal = ({"E": 10}, {"E": 1}, {"E": 3, "limited": True})
    exhaustive = ({"E": 20}, {"E": 3, "dtype": "float64"})


class LanesProblem(SmapProblem):
    """Sums of a work-item's own rows, and shared ones: a parameter says from how many regressors on these take over."""

    kernel, entries = "smap", ("smap", "smap_shared", "smap_solve")
    rapid = ({"E": 3}, {"E": 10})
    normal = ({"E": 3, "thetas": 15}, {"E": 1, "thetas": 15}, {"E": 6}, {"E": 3, "part": 5})
    exhaustive = ({"E": 20}, {"E": 3, "limited": True}, {"E": 3, "dtype": "float64"})


class SharedProblem(SmapProblem):
    """Sums that a group shares."""

    kernel, entries, share_from = "smap_shared", ("smap_shared", "smap_solve"), 4
    rapid = ({"E": 10},)
    normal = ({"E": 20}, {"E": 10, "thetas": 15}, {"E": 40})
    exhaustive = ({"E": 20, "limited": True}, {"E": 20, "dtype": "float64"})


class SolveProblem(SmapProblem):
    """Solutions of the systems."""

    kernel = "smap_solve"
    normal = ({"E": 10}, {"E": 20})
    exhaustive = ({"E": 1}, {"E": 3, "ridge": True})


SMAP_PROBLEMS = (ScaleProblem(), LanesProblem(), SharedProblem(), SolveProblem())


# Tuning problems of S-map's maps: states, systems and predictions are kernels of one engine.


_THETA, _RADIUS, _SMAP_MAP_RIDGE = 2.0, 2, 0.3
_COMPARED = [0, 3]
_SMAP_MAP_SHOWN = 4


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
        return maps(n["rows"], n["targets"], case.given["dtype"]), n["libraries"], slice(_SMAP_MAP_SHOWN)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        E = case.given["E"]
        for rows, targets in ((4 * E + 83, 5), (4 * E + 150, 37)):
            values = maps(rows, targets, case.given["dtype"], seed=3)
            yield f"{targets} targets of {rows} rows, E={E}", (values, targets, _COMPARED)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        values, libraries, shown = small
        n, ridge = values.shape[1], _SMAP_MAP_RIDGE if case.numbers["ridge"] else 0.0
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
        ridge = _SMAP_MAP_RIDGE if case.numbers["ridge"] else 0.0
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


SMAP_MAP_PROBLEMS = (WhiteProblem(), SlopesProblem(), GramProblem(), MapProblem())
