"""What the workloads of S-map share: scales of weights, sums, and solutions are kernels of one engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.smap import LocalFits
from ...engines.smap_basis import basis_of
from ...engines.smap_device import Sweeps
from ...reference import smap as oracle
from ...tuning.parameters import source
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import maps, on_gpu

Doubles = NDArray[np.float64]

_KNN = 40
_THETAS = (0.0, 0.5, 2.0)
_SHOWN = 64
# Of distances and weights; sums of their products are taken in doubles.
_ROUNDING = {"float32": 2e-6, "float64": 1e-12}
# Library rows and exclusion radius of what is verified; each has query rows between those of the library.
_RAGGED = ((45, 2), (83, -1))


class SmapWorkload(Workload):
    """Local fits around every row of a library of delays.

    Attributes
    ----------
    layout : str
        The layout of sums that the case must run in, where its kernel belongs to one.
    """

    # Weights are exponentials of float32, which vectors may round otherwise than scalars, and sums are split.
    tolerance = (1e-4, 1e-4)
    layout: ClassVar[str] = ""

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        dims = int(s["coordinates"])
        most = rows(info)
        n = min(int(sizes.get("library", most)), most)
        if int(s.get("regressors", dims + 1)) != dims + 1 or n < 2 * dims + 10:
            return None
        return self.case(n, dims, dtype=s["dtype"], limited=s.get("limited", False), ridge=s.get("penalised", False))

    def case(
        self, n: int, dims: int, thetas: int = 1, *, dtype: str = "float32", limited: bool = False, ridge: bool = False
    ) -> Case:
        """A case of ``n`` library rows."""
        words = [f"E={dims}", f"{n:,} rows", f"{thetas} theta"]
        words += [f"knn={_KNN}"] * limited + ["ridge"] * ridge + [dtype] * (dtype != "float32")
        given = {"coordinates": dims, "regressors": dims + 1, "limited": limited, "dtype": dtype}
        return Case(self.kernel, ", ".join(words), {"rows": n, "thetas": thetas, "ridge": ridge, "given": given})

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n, given = case.numbers, case.numbers["given"]
        series: Doubles = maps(n["rows"] + given["coordinates"] + 1, 1, "float64")[:, 0].astype(np.float64)
        x, at = _delays(series[:-1], given["coordinates"]), np.arange(n["rows"])
        with self._engine(executor, case, x, series[-n["rows"] :], at, 0) as engine:
            thetas = np.linspace(0.0, 4.0, n["thetas"] + 1)[1:]
            step = min(engine.device.block(engine.device.layout, len(thetas)), len(x))

            def go() -> Answer:
                engine.device.put("thetas", thetas.astype(engine.dtype))
                for a in range(0, len(x), step):
                    solved = engine.device.run(x[a : a + step], at[a : a + step], len(thetas), engine.device.layout)
                found: dict[str, NDArray[Any]] = {"predicted": solved.predicted, "variance": solved.variance}
                found["neighbours"] = solved.counts
                return {name: values[..., :_SHOWN].copy() for name, values in found.items()}

            yield go

    def verify(self, executor: Executor, case: Case) -> None:
        given, ridge = case.numbers["given"], case.numbers["ridge"]
        dims, dtype = given["coordinates"], given["dtype"]
        for m, radius in _RAGGED:
            x, y, at, points, query = _problem(m, dims)
            with self._engine(executor, case, x, y, at, radius) as engine:
                device = engine.device
                device.units = 13  # of these tiles some are cut into parts
                device.put("thetas", np.asarray(_THETAS, dtype))
                solved = device.run(points, query, len(_THETAS), device.layout)
                what = f"{m} library rows, E={dims}"
                _verify_scales(device, m, radius, dims, solved.counts, f"of {what}")
                if device.library.knn is None:
                    _verify_sums(device, m, radius, dims, f"of {what}")
            for s, theta in enumerate(_THETAS):
                wanted = _fits(m, dims, radius, theta, _KNN if given["limited"] else None, ridge)
                for name in ("predicted", "variance", "coefficients"):
                    right = getattr(wanted, name)
                    scale = 60 * _ROUNDING[dtype] * float(np.abs(right).max())
                    require_close(f"{name} of {what}, theta={theta:g}", getattr(solved, name)[s], right, 0.0, scale)

    @contextmanager
    def _engine(
        self, executor: Executor, case: Case, x: Doubles, y: Doubles, at: NDArray[Any], radius: int
    ) -> Iterator[LocalFits]:
        given = case.numbers["given"]
        with ExitStack() as stack:
            if self.layout:
                stack.enter_context(source.using(smap={"share_from": 4 if self.layout == "shared" else 48}))
            engine = LocalFits(
                executor, x, y, at, exclusion_radius=radius, knn=_KNN if given["limited"] else None,
                alpha=0.7 if case.numbers["ridge"] else 0.0, dtype=given["dtype"],
            )  # fmt: skip
            stack.callback(engine.release)
            yield engine


def rows(info: DeviceInfo) -> int:
    """Library rows of a common problem."""
    return 8000 if on_gpu(info) else 1500


def _delays(x: Doubles, dims: int) -> Doubles:
    n = len(x) - dims
    return np.ascontiguousarray(np.column_stack([x[dims - e : dims - e + n] for e in range(dims)]))


@functools.lru_cache(maxsize=16)
def _problem(m: int, dims: int) -> tuple[Doubles, Doubles, NDArray[np.int_], Doubles, NDArray[np.int_]]:
    """Coordinates, targets and rows of a library among twice as many query rows."""
    rng = np.random.default_rng(m)
    m = max(m, 3 * dims + 20)
    x = rng.standard_normal((2 * m, dims)) + 3.0
    rows = np.sort(rng.choice(2 * m, m, replace=False))
    y = np.sin(x).sum(axis=1) + 0.1 * rng.standard_normal(2 * m)
    return x[rows], y[rows], rows, x, np.arange(2 * m)


@functools.lru_cache(maxsize=128)
def _fits(m: int, dims: int, radius: int, theta: float, knn: int | None, ridge: bool) -> oracle.Fit:
    return oracle.smap_rows(*_problem(m, dims), theta, exclusion_radius=radius, knn=knn, alpha=0.7 if ridge else 0.0)


@functools.lru_cache(maxsize=64)
def _scales(m: int, dims: int, radius: int, knn: int | None) -> tuple[Any, ...]:
    x, _, rows, points, at = _problem(m, dims)
    return oracle.scales(x, rows, points, at, exclusion_radius=radius, knn=knn)


def _verify_scales(device: Sweeps, m: int, radius: int, dims: int, counts: Any, what: str) -> None:
    nearest, mean, number = _scales(m, dims, radius, device.library.knn)
    tolerance, unit, n = _ROUNDING[device.dtype], 2.0**device.basis.exponent, len(number)
    got = [device.get(name, (n,), device.dtype).astype(np.float64) for name in ("nearest", "rate")]
    require_equal(f"neighbours {what}", counts, number.astype(counts.dtype))
    require_close(f"nearest distances {what}", got[0] * unit, nearest, tolerance, tolerance * unit)
    require_close(f"mean distances {what}", unit / got[1], mean, 2 * tolerance, 0.0)


def _verify_sums(device: Sweeps, m: int, radius: int, dims: int, what: str) -> None:
    _, _, _, points, _ = _problem(m, dims)
    found = device.moments(len(points), len(_THETAS), device.layout)
    tolerance = 20 * _ROUNDING[device.dtype]
    for t, wanted in _sums(m, dims, radius, device.layout == "lanes"):
        for s, right in enumerate(wanted):
            largest = float(np.abs(right).max())
            require_close(f"sums {what}, query {t}, theta={_THETAS[s]:g}", found[s, t], right, tolerance,
                          tolerance * largest)  # fmt: skip


@functools.lru_cache(maxsize=64)
def _sums(m: int, dims: int, radius: int, centred: bool) -> Sequence[tuple[int, Doubles]]:
    """Sums of some query rows for each theta; the layout of lanes takes regressors relative to the query's."""
    x, y, rows, points, at = _problem(m, dims)
    basis = basis_of(x, y)
    aim = (y - basis.aim_shift) / basis.aim_scale
    found = []
    for t in range(0, len(at), 7):
        legal = np.abs(rows - at[t]) > radius
        d = np.sqrt(((x[legal] - points[t]) ** 2).sum(axis=1))
        z = basis.regressors(x[legal]) - (basis.regressors(points[t : t + 1]) if centred else 0)
        weights = [np.exp(-theta * (d - d.min()) / d.mean()) for theta in _THETAS]
        found.append((t, np.array([oracle.moments(z, aim[legal], w) for w in weights])))
    return found
