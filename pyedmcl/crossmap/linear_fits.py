"""Maps by local linear fits (S-map), and maps that differ in E, tau, Tp, theta or rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engines.crossmap import CrossMap
from ..engines.smap_maps import SmapMap, SmapMapData, whole_smap_map
from ..errors import InputError, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..series.scaling import Conditioned, Prepared, condition
from ..states.rows import fewest, fewest_of_all
from ..states.states import MOST_COORDINATES, THETAS, check_thetas
from .pairs import PairsProblem, gap_patterns, layered_map_data, row_patterns

if TYPE_CHECKING:
    from ..device.executor import Executor
    from .problem import XmapProblem


KERNELS = ("stage", "smap_white", "smap_gram", "smap_map")


@dataclass(frozen=True)
class LinearFits:
    """How rows are predicted where that is by local linear fits."""

    # Localisations that are computed.
    thetas: tuple[float, ...]
    # Penalty on squared slopes.
    ridge: float
    # Whether a map for each theta is asked for.
    several: bool = False
    # Whether the largest rho of each pair is asked for, with its theta.
    best: bool = False
    # Whether mean slopes are a further layer of the result, (n_libraries, n_targets, largest E).
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
    """The fits that were asked for, checked; None for method "simplex"."""
    best = isinstance(theta, str)
    if best and theta != "best":
        raise InputError(f"theta={shown(theta)}: a number of at least 0, several of them, or 'best' is needed")
    thetas = THETAS if best else tuple(check_thetas(theta).tolist())
    if method == "simplex":
        return None
    if knn is not None:
        raise InputError(
            f"knn={shown(knn)} with method='smap': all library rows enter a fit, weighted by theta; leave knn out"
        )
    return LinearFits(thetas, ridge, not best and np.ndim(theta) > 0, best)


def single_fits(method: Any, theta: Any, ridge: Any, knn: Any) -> LinearFits | None:
    """As :func:`linear_fits`, of one theta."""
    if isinstance(theta, str) or np.ndim(theta) > 0:
        raise InputError(f"theta={shown(theta)}: one number of at least 0 is needed")
    return linear_fits(method, theta, ridge, knn)


def with_slopes(fits: LinearFits | None, coefficients: Any, alone: Mapping[str, Any]) -> LinearFits | None:
    """The fits, which are of one theta, with mean slopes where these are asked for.

    Parameters
    ----------
    alone : mapping
        What mean slopes cannot be had with, by name; None where it was not given.
    """
    if coefficients is None:
        return fits
    argument = f"coefficients={shown(coefficients)}"
    if fits is None:
        raise InputError(f"{argument}: slopes are those of linear fits; take method='smap'")
    for name, given in alone.items():
        if given is not None:
            raise InputError(f"{argument} with {name}: slopes are held in memory; leave one of them out")
    return replace(fits, slopes=True)


def require_double(executor: Executor) -> None:
    """Refuse a device without double precision."""
    if not executor.info.fp64:
        raise InputError(
            f"method='smap': {executor.info.name} lacks double precision, which sums of products need; choose "
            "another device, such as device='cpu'"
        )


def theta_of(named: Mapping[str, Any]) -> Any:
    """theta of a problem with these arguments: one or several numbers; None without."""
    theta = named.get("theta")
    return np.array(theta) if isinstance(theta, list) else theta


def require_coordinates(E: int) -> None:
    """Refuse a dimension that the kernels are not made for."""
    if E > MOST_COORDINATES:
        raise InputError(f"method='smap': E up to {E}; at most {MOST_COORDINATES} are supported")


# Maps by local linear fits: from the problem to plain arrays, whether each fit has rows enough, and the engine.
#
# What is computed is described in :mod:`pyedmcl.engines.smap_maps`, what can be asked for in
# :mod:`pyedmcl.crossmap.linear_fits`.


_NAMED = 5  # pairs in a message


def smap_map_data(problem: PairsProblem, fits: LinearFits) -> SmapMapData:
    """What the device gets of a problem whose E is known."""
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
    """Refuse pairs that have a row whose fit has fewer library rows than coefficients, and name them."""
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


# Maps that differ in E, tau, Tp, theta or rows, computed together: what they share is found once.


Layers = tuple[int, ...]


class MapCells:
    """Some maps of the same libraries and targets on a device.

    Maps that differ in E only share the search: distances of dimension E are those of E - 1 and one term. Maps of local
    linear fits that differ in theta only share what is loaded. One such group is on the device at a time.

    Parameters
    ----------
    cells : sequence of XmapProblem
        Each of one map, E known.
    """

    def __init__(self, executor: Executor, cells: Sequence[XmapProblem]) -> None:
        self._executor, self._cells = executor, list(cells)
        self._held: tuple[Layers, CrossMap | SmapXmapEngine] | None = None

    def maps(self, begin: int, end: int, layers: Sequence[int], into: Arrays, report: Report) -> Record:
        """rho of libraries ``begin`` to ``end - 1`` in some of the maps, each in its array of ``into``.

        ``report`` is called with the rows that are done, of all maps together.
        """
        record, done, place = Record(), 0, {layer: at for at, layer in enumerate(layers)}
        for together in self._groups(layers):
            engine = self._engine(together)
            out = [into[place[layer]] for layer in together]
            if isinstance(engine, CrossMap):
                engine.skills(begin, end, out, functools.partial(_report, report, done, len(together)))
                record = record.joined(Record(engine.parameters, "", tuple(engine.searched)))
            else:
                block = Block(0, begin, end, tuple(range(len(together))))
                record = record.joined(engine.block(block, out, lambda n: None).record)
            done += len(together) * (end - begin)
            report(done)
        return record

    def _groups(self, layers: Sequence[int]) -> list[Layers]:
        cells: dict[Any, list[int]] = {}
        for layer in layers:
            cells.setdefault(_shared(self._cells[layer]), []).append(layer)
        return [tuple(group) for group in cells.values()]

    def _engine(self, layers: Layers) -> CrossMap | SmapXmapEngine:
        if self._held is None or self._held[0] != layers:
            self.release()
            self._held = layers, self._open([self._cells[layer] for layer in layers])
        return self._held[1]

    def _open(self, cells: list[XmapProblem]) -> CrossMap | SmapXmapEngine:
        first = cells[0]
        if first.fits is None:
            E: NDArray[np.int_] = np.array([cell.E for cell in cells], int)
            return CrossMap(self._executor, layered_map_data(first, E))
        thetas = tuple(cell.fits.thetas[0] for cell in cells if cell.fits is not None)
        return SmapXmapEngine(first, replace(first.fits, thetas=thetas, several=True), self._executor, first.compact)

    def release(self) -> None:
        """Give the device memory back."""
        if self._held is not None:
            self._held[1].release()
            self._held = None


def _report(report: Report, before: int, maps: int, rows: int) -> None:
    report(before + maps * rows)


def _shared(cell: XmapProblem) -> Any:
    """Equal for maps that are computed together."""
    common = cell.tau, cell.Tp, id(cell.rows), id(cell.data)
    return common if cell.fits is None else (*common, cell.E)
