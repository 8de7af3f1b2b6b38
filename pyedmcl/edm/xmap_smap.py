"""All-pairs cross mapping by local linear fits: its arguments, what it needs of the data, and its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import shown
from ..data.condition import condition
from ..engines.smap_map import SmapMap, SmapMapData
from ..errors import InputError
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from . import arguments
from .ccm_directions import METHODS
from .pairs import PairsProblem, gap_patterns
from .predict_nonlinear import THETAS
from .regression import MOST_COORDINATES, check_thetas
from .xmap_data import row_patterns

if TYPE_CHECKING:
    from ..device.executor import Executor

KERNELS = ("stage", "smap_white", "smap_gram", "smap_map")
COEFFICIENTS = ("mean",)
_NAMED = 5


@dataclass(frozen=True)
class LinearFits:
    """How rows are predicted where that is by local linear fits.

    Attributes
    ----------
    thetas : tuple of float
        Localisations that are computed.
    ridge : float
        Penalty on squared slopes.
    several : bool
        Whether a map for each theta is asked for.
    best : bool
        Whether the largest rho of each pair is asked for, with its theta.
    slopes : bool
        Whether mean slopes are a further layer of the result, (n_libraries, n_targets, largest E).
    """

    thetas: tuple[float, ...]
    ridge: float
    several: bool = False
    best: bool = False
    slopes: bool = False

    @property
    def layers(self) -> int:
        """Layers of the result."""
        return 2 if self.best else len(self.thetas) + self.slopes

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return (*KERNELS, "smap_slopes") if self.slopes else KERNELS

    def arguments(self) -> dict[str, Any]:
        """What identifies the fits; plain numbers and text."""
        theta: Any = "best" if self.best else list(self.thetas) if self.several else self.thetas[0]
        named = {"method": "smap", "theta": theta, "ridge": self.ridge}
        return named | ({"coefficients": "mean"} if self.slopes else {})

    def operations(self, n_rows: int, n_series: int, n_targets: int, E: int) -> float:
        """Arithmetic operations of a whole map, roughly."""
        pairs = float(n_rows) ** 2 * n_series * len(self.thetas)
        slopes = 2 * E * (E + 2) if self.slopes else 0
        return pairs * (2.0 * n_targets + 11 * E + 24 + (E + 1) * (E + 2) + slopes)


def linear_fits(method: Any, theta: Any, ridge: Any, knn: Any) -> LinearFits | None:
    """The fits that were asked for, checked; None for method "simplex".

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    method = arguments.choice("method", method, METHODS)
    best = isinstance(theta, str)
    if best and theta != "best":
        raise InputError(f"theta={shown(theta)}: a number of at least 0, several of them, or 'best' is needed")
    thetas = THETAS if best else tuple(check_thetas(theta).tolist())
    ridge = arguments.real("ridge", ridge, "a finite number of at least 0", lambda value: 0 <= value < np.inf)
    if method == "simplex":
        return None
    if knn is not None:
        raise InputError(
            f"knn={shown(knn)} with method='smap': all library rows enter a fit, weighted by theta; leave knn out"
        )
    return LinearFits(thetas, ridge, not best and np.ndim(theta) > 0, best)


def single_fits(method: Any, theta: Any, ridge: Any, knn: Any) -> LinearFits | None:
    """As :func:`linear_fits`, of one theta.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    if isinstance(theta, str) or np.ndim(theta) > 0:
        raise InputError(f"theta={shown(theta)}: one number of at least 0 is needed")
    return linear_fits(method, theta, ridge, knn)


def with_slopes(fits: LinearFits | None, coefficients: Any, alone: Mapping[str, Any]) -> LinearFits | None:
    """The fits, which are of one theta, with mean slopes where these are asked for.

    Parameters
    ----------
    fits : LinearFits or None
    coefficients : {None, "mean"}
    alone : mapping
        What mean slopes cannot be had with, by name; None where it was not given.

    Raises
    ------
    InputError
        They cannot be had.
    """
    if coefficients is None:
        return fits
    arguments.choice("coefficients", coefficients, COEFFICIENTS)
    asked = f"coefficients={shown(coefficients)}"
    if fits is None:
        raise InputError(f"{asked}: slopes are those of linear fits; take method='smap'")
    for name, given in alone.items():
        if given is not None:
            raise InputError(f"{asked} with {name}: slopes are held in memory; leave one of them out")
    return replace(fits, slopes=True)


def require_double(executor: Executor) -> None:
    """Refuse a device without double precision.

    Raises
    ------
    InputError
        Naming it.
    """
    if not executor.info.fp64:
        raise InputError(
            f"method='smap': {executor.info.name} lacks double precision, which sums of products need; choose "
            "another device, such as device='cpu'"
        )


def theta_of(named: Mapping[str, Any]) -> Any:
    """theta of a problem with these arguments: one or several numbers; None without."""
    theta = named.get("theta")
    return np.array(theta) if isinstance(theta, list) else theta


def smap_map_data(problem: PairsProblem, fits: LinearFits) -> SmapMapData:
    """What the device gets of a problem whose E is known.

    Raises
    ------
    InputError
        Some fit has fewer rows than coefficients.
    """
    series, aimed, E = problem.data.series, problem.aimed, np.array(problem.E, int)
    gap_pattern, masks = gap_patterns(problem)
    libraries = condition(series.values, "float64", series.extent, quiet=True)
    in_double = libraries
    if problem.targets is not None:
        in_double = condition(aimed.series.values, "float64", aimed.series.extent, quiet=True)
    gaps, asked = bool(problem.data.conditioned.gaps.any() or aimed.conditioned.gaps.any()), None
    if problem.rows is not None:
        patterns, masks = row_patterns(problem, E[None], gap_pattern, masks)
        gap_pattern, gaps, asked = patterns[0], True, problem.rows.predicted_mask(series.n_steps)
    data = SmapMapData(
        aimed.conditioned.values, libraries.values, libraries.exponent, E, problem.tau, problem.Tp,
        problem.exclusion_radius, gap_pattern, masks, gaps, fits.thetas, fits.ridge, in_double.values, asked,
        in_double.exponent if fits.slopes else None,
    )  # fmt: skip
    require_fits(problem, data)
    return data


def require_fits(problem: PairsProblem, data: SmapMapData) -> None:
    """Refuse pairs that have a row whose fit has fewer library rows than coefficients, and name them.

    Raises
    ------
    InputError
        Naming them, with the rows that there are.
    """
    series, n, tau, Tp, radius = problem.data.series, len(data.values), data.tau, data.Tp, data.exclusion_radius
    short: list[str] = []
    gappy = problem.data.conditioned.gaps
    for E, pattern in sorted({*zip(data.E.tolist(), data.gap_pattern.tolist(), strict=True)}):
        first, end = max((E - 1) * tau, -Tp), min(n, n - Tp)
        mask = data.library_masks.get(pattern, np.ones(n, bool))
        asked = np.ones(n, bool) if data.asked is None else data.asked
        # Libraries without gaps are alike.
        for library in np.flatnonzero(~gappy)[:1].tolist() + np.flatnonzero(gappy).tolist():
            there = np.isfinite(series.values[:, library])
            states = np.ones(max(end - first, 0), bool)
            for e in range(E):
                states &= there[first - e * tau : end - e * tau]
            least = fewest(states & mask[first:end], states & asked[first:end], radius)
            if least <= E:
                alike = np.flatnonzero((data.E == E) & (data.gap_pattern == pattern))
                target = problem.aimed.series.names[int(alike[0])]
                short.append(f"{series.names[library]} -> {target} (E={E}: {least})")
    if short:
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        raise InputError(
            f"method='smap': a fit with E slopes and an intercept needs E + 1 library rows at least; fewer are left at "
            f"some row of library -> target: {', '.join(short[:_NAMED])}{more}. Use a smaller E, E_max or "
            "exclusion_radius, or leave out series with many gaps"
        )
    require_coordinates(int(max(data.E)))


def require_coordinates(E: int) -> None:
    """Refuse a dimension that the kernels are not made for.

    Raises
    ------
    InputError
        Naming it.
    """
    if E > MOST_COORDINATES:
        raise InputError(f"method='smap': E up to {E}; at most {MOST_COORDINATES} are supported")


def fewest(legal: NDArray[np.bool_], asked: NDArray[np.bool_], radius: int) -> int:
    """Legal rows that are farther than ``radius`` from an asked one, where these are fewest; 0 where none is asked."""
    if not asked.any():
        return 0
    n = len(legal)
    upto = np.concatenate([[0], np.cumsum(legal)])
    rows = np.flatnonzero(asked)
    near = upto[np.minimum(rows + radius + 1, n)] - upto[np.maximum(rows - radius, 0)]
    return int(upto[-1] - near.max())


class SmapXmapEngine:
    """All libraries and targets of local linear fits on a device."""

    def __init__(self, problem: PairsProblem, fits: LinearFits, executor: Executor) -> None:
        self._fits = fits
        require_double(executor)
        self._map, self._highest = SmapMap(executor, smap_map_data(problem, fits)), problem.highest

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A matrix (libraries of the block, n_targets) for each theta; or the largest rho, and its theta.

        With slopes their means (libraries of the block, n_targets, largest E) follow.
        """
        shape, fits = (len(block), self._map.n), self._fits
        dtype = np.dtype(self._map.dtype)
        if into is None:
            into = [np.empty(shape, dtype) for _ in range(fits.layers - fits.slopes)]
            into += [np.empty((*shape, self._highest))] * fits.slopes
        layers = [np.empty(shape, dtype) for _ in fits.thetas] if fits.best else into[: len(fits.thetas)]
        self._map.skill(block.begin, block.end, layers, report, into[-1] if fits.slopes else None)
        if fits.best:
            _keep_best(layers, fits.thetas, *into)
        return BlockResult(into, Record(self._map.parameters))

    def release(self) -> None:
        """Give the device memory back."""
        self._map.release()


def _keep_best(layers: Arrays, thetas: tuple[float, ...], rho: NDArray[Any], theta: NDArray[Any]) -> None:
    """The largest rho of each pair, of equal ones that of the smaller theta; NaN where there is none."""
    rho[...], theta[...] = np.nan, np.nan
    for layer, value in zip(layers, thetas, strict=True):
        better = (layer > rho) | (np.isnan(rho) & np.isfinite(layer))
        rho[better], theta[better] = layer[better], value
