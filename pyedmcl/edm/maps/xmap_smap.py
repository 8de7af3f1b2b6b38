"""Maps by local linear fits: from the problem to plain arrays, whether each fit has rows enough, and the engine.

What is computed is described in :mod:`pyedmcl.engines.smap_map`, what can be asked for in
:mod:`pyedmcl.edm.maps.linear_fits`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import Conditioned, Prepared, condition
from ...engines.smap_map import SmapMap
from ...engines.smap_map_data import SmapMapData
from ...engines.whole_smap_map import whole_smap_map
from ...errors import InputError
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..shared.masks import fewest, fewest_of_all
from .linear_fits import LinearFits, require_coordinates, require_double
from .pairs import PairsProblem, gap_patterns
from .xmap_data import row_patterns

if TYPE_CHECKING:
    from ...device.executor import Executor

_NAMED = 5  # pairs in a message


def smap_map_data(problem: PairsProblem, fits: LinearFits) -> SmapMapData:
    """What the device gets of a problem whose E is known.

    Raises
    ------
    InputError
        Some fit has fewer rows than coefficients.
    """
    series, target_data, E = problem.data.series, problem.target_data, np.array(problem.E, int)
    gap_pattern, masks = gap_patterns(problem)
    libraries = in_double = _for_double(problem.data)
    if problem.targets is not None:
        in_double = _for_double(target_data)
    gaps, asked = bool(problem.data.conditioned.gaps.any() or target_data.conditioned.gaps.any()), None
    if problem.rows is not None:
        patterns, masks = row_patterns(problem, E[None], gap_pattern, masks)
        gap_pattern, gaps, asked = patterns[0], True, problem.rows.predicted_mask(series.n_steps)
    data = SmapMapData(
        target_data.conditioned.values, libraries.values, libraries.exponent, E, problem.tau, problem.Tp,
        problem.exclusion_radius, gap_pattern, masks, gaps, fits.thetas, fits.ridge, in_double.values, asked,
        in_double.exponent if fits.slopes else None,
    )  # fmt: skip
    require_fits(problem, data)
    return data


def _for_double(data: Prepared) -> Conditioned:
    """What double precision has of series: where float32 holds these as they are, the device makes it double."""
    single = data.conditioned.values.dtype == data.series.values.dtype == np.float32
    if single and not data.conditioned.exponent.any():
        return data.conditioned
    return condition(data.series.values, "float64", data.series.extent, quiet=True)


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
    without_gaps = data.asked is None and not gappy.any()
    for E, pattern in sorted({*zip(data.E.tolist(), data.gap_pattern.tolist(), strict=True)}):
        first, end = max((E - 1) * tau, -Tp), min(n, n - Tp)
        if without_gaps and pattern not in data.library_masks and fewest_of_all(max(end - first, 0), radius) > E:
            continue
        mask = data.library_masks.get(pattern, np.ones(n, bool))
        asked = np.ones(n, bool) if data.asked is None else data.asked
        # Libraries without gaps are alike.
        for library in np.flatnonzero(~gappy)[:1].tolist() + np.flatnonzero(gappy).tolist():
            present = np.isfinite(series.values[:, library])
            states = np.ones(max(end - first, 0), bool)
            for e in range(E):
                states &= present[first - e * tau : end - e * tau]
            least = fewest(states & mask[first:end], states & asked[first:end], radius)
            if least <= E:
                alike = np.flatnonzero((data.E == E) & (data.gap_pattern == pattern))
                target = problem.target_data.series.names[int(alike[0])]
                short.append(f"{series.names[library]} -> {target} (E={E}: {least})")
    if short:
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        raise InputError(
            f"method='smap': a fit with E slopes and an intercept needs E + 1 library rows at least; fewer are left at "
            f"some row of library -> target: {', '.join(short[:_NAMED])}{more}. Use a smaller E, E_max or "
            "exclusion_radius, or leave out series with many gaps"
        )
    require_coordinates(int(max(data.E)))


class SmapXmapEngine:
    """All libraries and targets of local linear fits on a device."""

    def __init__(self, problem: PairsProblem, fits: LinearFits, executor: Executor, compact: bool = False) -> None:
        self._executor, self._fits, self._highest = executor, fits, problem.highest
        require_double(executor)
        self._data = replace(smap_map_data(problem, fits), compact=compact)
        self._map: SmapMap | None = None

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A matrix (libraries of the block, n_targets) for each theta; or the largest rho, and its theta.

        With slopes their means (libraries of the block, n_targets, largest E) follow.
        """
        values, fits = self._data.values, self._fits
        shape, dtype = (len(block), values.shape[1]), values.dtype
        if into is None:
            into = [np.empty(shape, dtype) for _ in range(fits.layers - fits.slopes)]
            into += [np.empty((*shape, self._highest))] * fits.slopes
        layers = [np.empty(shape, dtype) for _ in fits.thetas] if fits.best else into[: len(fits.thetas)]
        record = whole_smap_map(self._executor, self._data, block.begin, layers)
        if record is None:
            record = self._in_batches(block, layers, report, into[-1] if fits.slopes else None)
        else:
            report(len(block))
        if fits.best:
            _keep_best(layers, fits.thetas, *into)
        return BlockResult(into, record)

    def _in_batches(self, block: Block, layers: Arrays, report: Report, slopes: NDArray[Any] | None) -> Record:
        mapping = self._map = self._map or SmapMap(self._executor, self._data)
        mapping.skill(block.begin, block.end, layers, report, slopes)
        return Record(mapping.parameters, "", tuple(mapping.precision))

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()


def _keep_best(layers: Arrays, thetas: tuple[float, ...], rho: NDArray[Any], theta: NDArray[Any]) -> None:
    """The largest rho of each pair, of equal ones that of the smaller theta; NaN where there is none."""
    rho[...], theta[...] = np.nan, np.nan
    for layer, value in zip(layers, thetas, strict=True):
        better = (layer > rho) | (np.isnan(rho) & np.isfinite(layer))
        rho[better], theta[better] = layer[better], value
