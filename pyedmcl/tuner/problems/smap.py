"""Tuning problems of S-map: scales of weights, sums, and solutions are kernels of one engine."""

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
from ...engines.smap_basis import basis_of
from ...reference import smap as oracle
from ...tuning.parameters import using
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import maps, scalar

Doubles = NDArray[np.float64]

_KNN, _RIDGE = 40, 0.7
_THETAS = (0.0, 0.5, 2.0)
_SHOWN = 64
# Of distances and weights; sums of their products are taken in doubles.
_ROUNDING = {"float32": 2e-6, "float64": 1e-12}


class SmapProblem(OneWayProblem):
    """Local fits around every row of a library of delays.

    Attributes
    ----------
    share_from : int or None
        Regressors from which sums are shared by a group, where the kernel belongs to one layout of them.
    """

    # Weights are exponentials of float32, which vectors may round otherwise than scalars, and sums are split.
    tolerance = (1e-4, 1e-4)
    rapid: Sequence[Mapping[str, Any]] = ({"E": 3},)
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
        nearest, mean, number = oracle.scales(x, at, points, query, exclusion_radius=radius, knn=limits["knn"])
        right: dict[str, NDArray[Any] | Close] = {
            "neighbours": number.astype(np.int64), "nearest distances": Close(nearest, rounding, rounding * unit),
            "mean distances": Close(mean, 2 * rounding),
        }  # fmt: skip
        fit: Any = functools.partial(oracle.smap_rows, *fitted[:5], exclusion_radius=radius, **limits)
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
        by_row.append([oracle.moments(z, target[far_in_time], w) for w in weights])
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


PROBLEMS = (ScaleProblem(), LanesProblem(), SharedProblem(), SolveProblem())
