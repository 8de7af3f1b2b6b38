"""The device's part of S-map: bases, layouts, sums and solutions, and rows that are fitted by singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs.smap import largest_tile, local_bytes
from ..launch.replay import NamedNumber
from ..launch.staging import Pacer, Pool, open_size, round_up
from ..reference.edm import nearest_first
from ..series.scaling import far_exponent, run_of
from ..series.scaling import largest as largest_of
from ..tuning.parameters import adjusted, parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# How the query rows of S-map are divided among work-groups.


@dataclass(frozen=True)
class Tiling:
    """A block of query rows, as work-groups share it."""

    # Query rows with padding.
    padded: int
    # Query rows of a tile, which is what a work-group sums for.
    rows: int
    # tiles, uncut: Tiles, and how many of them (the first ones) one work-group sums for the whole library.
    tiles: int
    uncut: int
    # Parts of the library for each of the others, each with a work-group and sums of its own.
    parts: int

    @property
    def slots(self) -> int:
        """Places for sums of a tile, those of parts included."""
        return self.tiles + (self.parts - 1) * (self.tiles - self.uncut)


# One row of an S-map by singular values in float64: the way out for rows whose normal equations cannot be trusted.


Doubles = NDArray[np.float64]
# The nearest row's weight stays 1 where theta / mean is infinite; of a NaN among the weights LAPACK comes to no end.
_MOST_RATE = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Library:
    """Legal library rows on the host."""

    # x, y: ndarray (m, D), (m,). Rows whose target is NaN count as neighbours (for ``knn`` and the mean distance) but
    # not in fits.
    x: Doubles
    y: Doubles
    # ndarray of int (m,). Ascending row numbers.
    rows: NDArray[np.int64]
    # Rows with |t - j| up to this are left out; -1 where none is.
    radius: int
    # Neighbours per query; None for all.
    knn: int | None
    # Ridge penalty on the slopes; 0 for least squares.
    alpha: float = 0.0

    @cached_property
    def _exponent(self) -> int:
        return far_exponent(self.x)

    def weights(self, point: Doubles, row: int, theta: float) -> tuple[NDArray[np.int_], Doubles, float]:
        """Neighbours of a query, nearest first, their weights relative to the nearest one's, and that one's weight.

        Solvers by reflections keep the digits of heavy rows only where these come first.
        """
        apart = self.x - point
        if self._exponent:  # weights depend on ratios of distances only
            apart = np.ldexp(apart, -self._exponent)
        squared = (apart**2).sum(axis=1)
        rows_left = np.flatnonzero(np.abs(self.rows - row) > self.radius)
        rows_left = rows_left[nearest_first(squared[rows_left], self.knn)]
        d = np.sqrt(squared[rows_left])
        if not len(rows_left):
            return rows_left, d, 1.0
        mean = d.mean()
        present = np.isfinite(self.y[rows_left])
        with np.errstate(over="ignore"):
            rate = min(theta / mean, _MOST_RATE) if mean > 0 else 0.0
            w: Doubles = np.exp(-rate * (d - d.min()))[present]
            return rows_left[present], w, float(np.exp(-rate * d.min()))

    def fit(
        self, point: Doubles, row: int, theta: float, *, singular_values: bool = True, unit: int = 0
    ) -> tuple[Doubles, float, float, Doubles]:
        """Coefficients (D + 1,), prediction, variance, singular values (D + 1,) of one row; NaN without neighbours.

        Singular values are those of coordinates multiplied by ``2**unit``.
        """
        near, w, top = self.weights(point, row, theta)
        width = self.x.shape[1] + 1
        if not len(near):
            return np.full(width, np.nan), np.nan, np.nan, np.full(width, np.nan)
        a = w[:, None] * np.column_stack([np.ones(len(near)), self.x[near]])
        b = w * self.y[near]
        sizes = np.zeros(width)
        if singular_values:
            columns = np.full(width, unit)
            columns[0] = 0
            singular = np.linalg.svd(np.ldexp(a, columns), compute_uv=False)
            sizes[: len(singular)] = singular * top
        if self.alpha:
            a = np.vstack([a, np.sqrt(self.alpha) / max(top, 1e-300) * np.eye(width)[1:]])
            b = np.concatenate([b, np.zeros(width - 1)])
        c = np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], np.float64)
        predicted = float(c[0] + c[1:] @ point)
        variance = float((w * (self.y[near] - predicted) ** 2).sum() / w.sum())
        return c, predicted, variance, sizes


# A basis in which the library of an S-map is white, so that normal equations do not square the data's own condition.
#
# Delay coordinates of a smooth series are nearly collinear: their Gram matrix has a condition of 1e10 and more. A fit
# does not depend on the basis its regressors are given in, hence one is chosen in which the whole library has unit
# covariance; what is left is the condition of a neighbourhood.


# Above this ratio of variances the eigenvectors of the covariance are accurate enough to whiten with.
_SAFE_RATIO = 1e-9
# Directions this much smaller than the largest one are read off differences of large numbers: more digits are needed.
_FLAT = 1e-6
_ENOUGH = 1000
_EXTENDED = np.finfo(np.longdouble).eps < 1e-18


@dataclass(frozen=True)
class WhiteBasis:
    """``z = (x - shift) @ map`` and ``v = (y - target_shift) / target_scale``."""

    # ndarray (D,)
    shift: Doubles
    # ndarray (D, rank). Directions in which the library does not vary (to rounding) are left out.
    map: Doubles
    # ndarray (rank, D). ``x = shift + z @ inverse`` within the library's own plane.
    inverse: Doubles
    # Coordinates for distances are ``(x - shift) * 2**-exponent``, of magnitude 1 or so in the library.
    exponent: int
    target_shift: float
    target_scale: float
    # Some directions are less than 1e-6 of the largest one.
    flat: bool = False

    @property
    def sound(self) -> bool:
        """Whether regressors have enough digits on this machine."""
        return not self.flat or bool(_EXTENDED)

    @property
    def rank(self) -> int:
        return int(self.map.shape[1])

    @cached_property
    def by_rows(self) -> Doubles:
        """``map`` as the device reads it, row by row."""
        return np.ascontiguousarray(self.map)

    @cached_property
    def null(self) -> Doubles:
        """Orthonormal directions (D + 1, D - rank) of (intercept, coefficients) that no library row can tell apart."""
        full = np.linalg.svd(np.vstack([self.inverse, np.zeros_like(self.shift)]), full_matrices=True)[2]
        free = full[self.rank :].T
        if free.shape[1] == 0:
            return np.zeros((len(self.shift) + 1, 0))
        out: Doubles = np.linalg.qr(np.vstack([-(self.shift @ free)[None], free]))[0]
        return out

    def regressors(self, x: Doubles) -> Doubles:
        """Rows (n, D) of coordinates in the basis: (n, rank)."""
        if self.flat:
            x = x.astype(np.longdouble)
        return np.asarray((x - self.shift) @ self.map, np.float64)


def basis_of(x: Doubles, y: Doubles) -> WhiteBasis:
    """The basis of a library (m, D) with targets (m,), all finite.

    Some rows are enough for it, unless they leave a doubt whether all directions are there.
    """
    if len(x) > 2 * _ENOUGH:
        of_sample = _basis_of(x[:: len(x) // _ENOUGH], y)
        if of_sample is not None:
            return of_sample
    basis = _basis_of(x, y, final=True)
    assert basis is not None
    return basis


def _basis_of(x: Doubles, y: Doubles, *, final: bool = False) -> WhiteBasis | None:
    m, dims = x.shape
    shift = x.mean(axis=0)
    scaled = x - shift  # the one array of this size: the system takes back the memory of several after each call
    largest = max(float(scaled.max(initial=0.0)), -float(scaled.min(initial=0.0)))
    exponent = math.frexp(largest)[1]
    if abs(exponent) < 1000:  # a product takes a tenth of the time, and has the same bits where the factor is a number
        scaled *= 2.0**-exponent
    else:
        np.ldexp(scaled, -exponent, out=scaled)
    squares, directions = np.linalg.eigh(scaled.T @ scaled)
    if squares[0] > _SAFE_RATIO * squares[-1]:
        sizes = np.sqrt(squares)
    elif final:
        _, sizes, rows = np.linalg.svd(scaled, full_matrices=False)
        directions = rows.T
    else:
        return None
    # What is left of a constant column is the rounding of its mean.
    rounding = 4 * np.finfo(float).eps * math.ldexp(largest_of(run_of(x)), -exponent) * math.sqrt(m)
    kept = sizes > max(np.finfo(float).eps * max(m, dims + 1) * float(sizes.max(initial=0.0)), rounding)
    if not (final or kept.all()):
        return None
    directions, sizes = directions[:, kept], sizes[kept] / np.sqrt(m)
    flat = bool(len(sizes)) and float(sizes.min()) < _FLAT * float(sizes.max())
    target_shift = float(y.mean())
    target_scale = float(np.abs(y - target_shift).max(initial=0.0)) or 1.0
    return WhiteBasis(
        shift=shift,
        map=np.ldexp(directions / sizes, -exponent),
        inverse=np.ldexp((directions * sizes).T, exponent),
        exponent=exponent,
        target_shift=target_shift,
        target_scale=target_scale,
        flat=flat,
    )


# What S-map's host and device exchange: where rows lie, numbers of a basis, and arrays that fits are copied to.


@dataclass(frozen=True)
class Solved:
    """Fits as the device has them, for n rows."""

    # predicted, variance, doubt: ndarray (n_thetas, n). The last: what the prediction may be off by, in roundings of
    # the scaled targets.
    predicted: Doubles
    variance: Doubles
    doubt: Doubles
    # ndarray (n_thetas, n, D + 1). Intercept and slopes in the data's units.
    coefficients: Doubles
    # ndarray of int (n,). Legal neighbours.
    counts: NDArray[np.int32]


@dataclass(frozen=True)
class Fitted:
    """Where a block's fits are copied to: fits (n_thetas, 3, n), coefficients (n_thetas, n, D + 1) and counts (n,).

    Of fits the prediction comes first, then its variance and what it may be off by.
    """

    fits: Doubles
    coefficients: Doubles
    counts: NDArray[np.int32]

    @classmethod
    def empty(cls, n_thetas: int, n: int, dims: int, coefficients: Doubles | None = None) -> Fitted:
        """Arrays of these sizes; ``coefficients`` serves as its own where its memory is in one piece."""
        if coefficients is None or not coefficients.flags.c_contiguous:
            coefficients = np.empty((n_thetas, n, dims + 1))
        return cls(np.empty((n_thetas, 3, n)), coefficients, np.empty(n, np.int32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By the names of the buffers that they are copied from."""
        return {"fits": self.fits, "coefficients": self.coefficients, "count": self.counts}

    def solved(self) -> Solved:
        """The fits, once they were copied."""
        return Solved(self.fits[:, 0], self.fits[:, 1], self.fits[:, 2], self.coefficients, self.counts)


def numbers_of(basis: WhiteBasis) -> dict[str, float]:
    """The numbers that kernels are told of a basis."""
    return {
        "unit": 2.0**-basis.exponent, "target_shift": basis.target_shift, "target_unit": 1 / basis.target_scale,
        "target_scale": basis.target_scale,
    }  # fmt: skip


def series_of(x: Doubles) -> tuple[Doubles, dict[str, int]] | None:
    """The series that rows (n, D) of delays are a view of, and where they lie in it; None where they are no such view.

    The latter as the kernels are told: first element, steps from row to row and from column to column.
    """
    base = x.base
    if not (isinstance(base, np.ndarray) and base.ndim == 1 and base.dtype == x.dtype and base.flags.c_contiguous):
        return None
    start = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 8
    step, lag = (stride // 8 for stride in x.strides)
    return base, {"start": start, "step": step, "lag": lag}


LAYOUTS = ("lanes", "shared")
_NO_ROW = -(2**30)  # farther from every row than any radius
_MOST_MOMENTS = 256 << 20
_MOST_ROWS = 1 << 26


class Sweeps:
    """A library on the device."""

    def __init__(self, executor: Executor, library: Library, basis: WhiteBasis, dtype: str) -> None:
        self.executor, self.library, self.basis, self.dtype = executor, library, basis, dtype
        self.regressors = basis.rank + 1
        self.entries = self.regressors * (self.regressors + 1) // 2 + self.regressors + 3
        self.limited = library.knn is not None and library.knn < len(library.rows)
        self._numbers = {name: NamedNumber(name, value) for name, value in numbers_of(basis).items()}
        self._whole: Any = np.int64 if dtype == "float64" else np.int32
        self._fitted = np.isfinite(library.y)
        self.units = executor.info.compute_units
        self._series: NDArray[Any] | None = None  # which one lies on the device
        info = executor.info
        specialisation: dict[str, Any] = {"coordinates": library.x.shape[1], "regressors": self.regressors}
        specialisation |= {"limited": self.limited, "dtype": dtype}
        sizes = {"library": len(library.rows)}
        chosen = parameters(spec("smap"), specialisation, info, sizes)
        self.grade = chosen.grade
        self.layout = "shared" if self.regressors >= int(chosen.parameters["share_from"]) else "lanes"
        self._values = {"lanes": {**specialisation, **chosen.parameters}}
        if self.layout == "shared":
            summing = {**specialisation, "matrix_units": quirks_for(info).matrix_units}
            chosen = parameters(spec("smap_shared"), summing, info, sizes)
            self._values["shared"] = shared = {**summing, **chosen.parameters}
            local = quirks_for(info).local_bytes
            tile = largest_tile(shared, local)
            if not tile:
                raise DeviceMemoryError(
                    f"a fit of {self.regressors} regressors takes {local_bytes(shared):,} bytes of local memory per "
                    f"work-group; {info.name} has {local:,}. Fit fewer coordinates, or take parameters of smap_shared "
                    f"with smaller work-groups."
                )
            shared["tile"] = tile
            fitted = {**chosen.parameters, "tile": shared["tile"]}
            adjusted(chosen, fitted, "a tile of library rows must fit into local memory")
        self.parameters = dict(chosen.parameters)
        self._scale = {**specialisation, **parameters(spec("smap_scale"), specialisation, info, sizes).parameters}
        solving = {**specialisation, "penalised": library.alpha > 0}
        self._given = specialisation
        self._solve = {**solving, **parameters(spec("smap_solve"), solving, info, sizes).parameters}
        self._pacers = {name: Pacer(info, f"smap {name}", library.x.shape[1], dtype) for name in ("scale", *LAYOUTS)}
        self.pool = Pool(executor, "smap", library.x.shape, self.entries, dtype)

    def load(self) -> None:
        """Put the library on the device."""
        lib, basis = self.library, self.basis
        self.pool.put("shift", basis.shift)
        self.pool.put("basis", basis.by_rows)
        self.pool.constant("library_rows", lib.rows.astype(np.int32))
        self._stage(lib.x, lib.y, "library")
        if not self._fitted.all():
            self.pool.constant("fitted_rows", lib.rows[self._fitted].astype(np.int32))
            self._stage(lib.x[self._fitted], lib.y[self._fitted], "fitted")
        penalty = np.zeros((self.regressors, self.regressors))
        if lib.alpha:
            penalty[1:, 1:] = lib.alpha * basis.map.T @ basis.map
        self.pool.constant("penalty", penalty)

    def _raw(self, name: str, x: Doubles) -> tuple[Buffer, dict[str, int]]:
        """Rows (n, D) on the device: the buffer, and where its rows lie, as :func:`series_of` says it.

        Delays of a series are a view of it (see ``embed``): the series is sent, and only once.
        """
        delays = series_of(x)
        if delays is not None:
            if delays[0] is not self._series:
                self.pool.put("series", delays[0])
                self._series = delays[0]
            return self.pool.get("series", 0), delays[1]
        return self.pool.put(name, x), {"start": 0, "step": x.shape[1], "lag": 1}

    def _stage(self, x: Doubles, y: Doubles, name: str) -> None:
        basis, m = self.basis, len(x)
        near = self.pool.get(name, m * round_up(x.shape[1], 4) * np.dtype(self.dtype).itemsize)
        regressors = self.pool.get("regressors", m * self.regressors * 8)
        points, place = self._raw("raw", x)
        kernel = build(self.executor, spec("smap_stage"), self._given, "stage_library")
        self.executor.launch(
            kernel, open_size(m), None, x=points, **place, target=self.pool.put("raw_target", y), n=m,
            shift=self.pool.get("shift", 0), basis=self.pool.get("basis", 0), unit=self._numbers["unit"],
            target_shift=self._numbers["target_shift"], target_unit=self._numbers["target_unit"], near=near,
            regressors=regressors,
        )  # fmt: skip
        if basis.flat:
            future_target = (y - basis.target_shift) / basis.target_scale
            self.pool.put("regressors", np.column_stack([basis.regressors(x), future_target]))

    def get(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """Download the beginning of the buffer called ``name``."""
        return self.executor.download(self.pool.get(name, 0), np.empty(shape, dtype))

    def rows(self, layout: str) -> int:
        """Query rows of a work-group."""
        v = self._values[layout]
        return int(v["lanes"] * v["wg"] if layout == "lanes" else v["wg"] // v["lanes_p"] * v["rq"])

    def tiling(self, n: int, n_thetas: int, layout: str) -> Tiling:
        """How n query rows are divided among work-groups.

        A work-group of the shared layout fills a compute unit, so that the tiles of the last wave are cut into parts
        where they are too few to keep all units busy.
        """
        padded, rows = round_up(n, self.align(layout)), self.rows(layout)
        tiles, most = padded // rows, int(self._values[layout]["parts"])
        if layout == "lanes":
            return Tiling(padded, rows, tiles, 0, most)
        groups_of_tile = n_thetas * self._blocks(layout)
        uncut = tiles * groups_of_tile // self.units * self.units // groups_of_tile
        last_wave = (tiles - uncut) * groups_of_tile
        if not last_wave:
            return Tiling(padded, rows, tiles, tiles, 1)
        return Tiling(padded, rows, tiles, uncut, min(max(self.units // last_wave, 1), most))

    def _blocks(self, layout: str) -> int:
        """Work-groups that share the sums of a tile."""
        v = self._values[layout]
        return 1 if layout == "lanes" else -(-(self.entries - 3) // (int(v["lanes_p"]) * int(v["rp"])))

    def align(self, layout: str) -> int:
        """Blocks of query rows are padded to a multiple of this."""
        per_scale = int(self._scale["wg"]) // int(self._scale["slices"]) * int(self._scale["lanes"])
        return math.lcm(self.rows(layout), per_scale)

    def block(self, layout: str, n_thetas: int, most: int = _MOST_ROWS) -> int:
        """Query rows at a time, as memory for their moments allows: as many as make ``most`` rows one block at least.

        Raises DeviceMemoryError where none fit.
        """
        allowed = budget(self.executor.info)
        room = min(_MOST_MOMENTS, allowed.largest, allowed.total // 4)

        def needed(rows: int) -> int:
            tiling = self.tiling(rows, n_thetas, layout)
            return tiling.slots * tiling.rows * self.entries * n_thetas * 8

        rows = self.align(layout)
        if room < needed(rows):
            raise DeviceMemoryError(
                f"the sums of {rows} rows for {n_thetas} theta need {needed(rows):,} bytes; {room:,} may be used on "
                f"{self.executor.info.name}. Ask for fewer theta at once or raise PYEDMCL_MEMORY_LIMIT."
            )
        while rows < most and needed(2 * rows) <= room:
            rows *= 2
        return rows

    def run(
        self, points: Doubles, rows: NDArray[np.int64], n_thetas: int, layout: str, into: Fitted | None = None
    ) -> Solved:
        """Fit around one block of query rows; thetas were put before."""
        n, tiling = len(points), self.tiling(len(points), n_thetas, layout)
        padded = tiling.padded
        radius = self.library.radius
        reach = np.full(padded, _NO_ROW, self._whole)
        if radius >= 0:
            reach[:n] = rows + min(radius, 2**29)
            reach[n:] = reach[n - 1]
        self.pool.constant("query_rows", reach)
        self._points(points, padded)
        self._scales(padded)
        self._sums(tiling, n_thetas, layout)
        self._solved(n, tiling, n_thetas, layout)
        if into is None:
            into = Fitted.empty(n_thetas, n, points.shape[1])
        for name, array in into.arrays().items():
            self.executor.download(self.pool.get(name, 0), array)
        return into.solved()

    def _points(self, points: Doubles, padded: int) -> None:
        n, dims = points.shape
        query = self.pool.get("query", padded * dims * np.dtype(self.dtype).itemsize)
        query_z = self.pool.get("query_z", max(padded * self.basis.rank * 8, 1))
        kernel = build(self.executor, spec("smap_stage"), self._given, "stage_points")
        self._placed = raw, place = self._raw("points", points)
        self.executor.launch(
            kernel, open_size(padded), None, x=raw, **place, n=n, n_padded=padded,
            shift=self.pool.get("shift", 0), basis=self.pool.get("basis", 0), unit=self._numbers["unit"],
            query=query, query_z=query_z,
        )  # fmt: skip
        if self.basis.flat:
            z = self.basis.regressors(points)
            self.pool.put("query_z", np.concatenate([z, np.repeat(z[-1:], padded - n, axis=0)]).T)

    def moments(self, n: int, n_thetas: int, layout: str) -> Doubles:
        """Moments (n_thetas, n, entries) of the last block."""
        tiling = self.tiling(n, n_thetas, layout)
        slots = self.get("moments", (tiling.slots, n_thetas, self.entries, tiling.rows))
        summed, further = slots[: tiling.tiles].copy(), slots[tiling.tiles :]
        cut = tiling.tiles - tiling.uncut
        summed[tiling.uncut :] += further.reshape(tiling.parts - 1, cut, *slots.shape[1:]).sum(axis=0)
        out: Doubles = np.moveaxis(summed, 1, 0).swapaxes(2, 3).reshape(n_thetas, tiling.padded, self.entries)[:, :n]
        return out

    def _reach(self) -> int:
        return min(max(self.library.radius, 0), 2**29)

    def _scales(self, padded: int) -> None:
        item, get = np.dtype(self.dtype).itemsize, self.pool.get
        lib, m, wg = self.library, len(self.library.rows), int(self._scale["wg"])
        kernel = build(self.executor, spec("smap_scale"), self._scale)
        per_group = wg // int(self._scale["slices"]) * int(self._scale["lanes"])
        sizes = {"nearest": item, "rate": item, "count": 4, "limit_squared": item, "limit_row": item}
        outs = [get(name, padded * size) for name, size in sizes.items()]
        fixed: dict[str, Any] = {
            "query": get("query", 0), "query_rows": get("query_rows", 0), "query_stride": padded,
            "library": get("library", 0), "library_rows": get("library_rows", 0), "n_library": m,
            "radius": self._reach(), "k": min(lib.knn or m, m), "row_steps": int(lib.rows[-1]).bit_length() + 1,
            **dict(zip(("out_nearest", "out_rate", "out_count", "out_squared", "out_row"), outs, strict=True)),
        }  # fmt: skip
        sweeps = 1 + (8 * item + 34 if self.limited else 0)
        cost = float(2 * lib.x.shape[1] + 12) * m * per_group * sweeps
        pacer, begin, tiles = self._pacers["scale"], 0, padded // per_group
        while begin < tiles:
            end = min(begin + pacer.units(cost), tiles)
            event = self.executor.launch(kernel, ((end - begin) * wg,), (wg,), first_tile=begin, **fixed)
            pacer.launched(event, cost * (end - begin))
            begin = end

    def _sums(self, tiling: Tiling, n_thetas: int, layout: str) -> None:
        get, v = self.pool.get, self._values[layout]
        m, wg = int(self._fitted.sum()), int(v["wg"])
        all_fitted = m == len(self._fitted)
        kernel = build(self.executor, spec("smap" if layout == "lanes" else "smap_shared"), v)
        moments = get("moments", tiling.slots * tiling.rows * n_thetas * self.entries * 8)
        together, blocks = layout == "lanes" and bool(v["tile"]), self._blocks(layout)
        fixed: dict[str, Any] = {
            "query": get("query", 0), "query_rows": get("query_rows", 0), "query_stride": tiling.padded,
            "library": get("library" if all_fitted else "fitted", 0),
            "library_rows": get("library_rows" if all_fitted else "fitted_rows", 0), "regressors": get("regressors", 0),
            "query_z": get("query_z", 0), "n_library": m, "radius": self._reach(), "nearest_of": get("nearest", 0),
            "rate_of": get("rate", 0), "squared_of": get("limit_squared", 0), "row_of": get("limit_row", 0),
            "thetas": get("thetas", 0), "n_thetas": n_thetas, "n_slots": tiling.tiles, "moments": moments,
        }  # fmt: skip
        per_theta = 2 * self.library.x.shape[1] + 28 + 2.0 * self.entries / blocks
        pacer = self._pacers[layout]
        for first, n, parts in ((0, tiling.uncut, 1), (tiling.uncut, tiling.tiles - tiling.uncut, tiling.parts)):
            tasks, begin = n * parts * blocks * (1 if together else n_thetas), 0
            cost = tiling.rows * (m / parts) * per_theta * (n_thetas if together else 1)
            while begin < tasks:
                end = min(begin + pacer.units(cost), tasks)
                event = self.executor.launch(
                    kernel, ((end - begin) * wg,), (wg,), n_parts=parts, first_tile=first, n_tiles=n, task_begin=begin,
                    **fixed,
                )  # fmt: skip
                pacer.launched(event, cost * (end - begin))
                begin = end

    def _solved(self, n: int, tiling: Tiling, n_thetas: int, layout: str) -> None:
        get, wg = self.pool.get, int(self._solve["wg"])
        values = {**self._solve, "rows": tiling.rows, "centred": layout == "lanes"}
        kernel = build(self.executor, spec("smap_solve"), values)
        fits = get("fits", n_thetas * 3 * n * 8)
        coefficients = get("coefficients", n_thetas * n * (self.library.x.shape[1] + 1) * 8)
        groups = min(n * n_thetas, self.executor.info.compute_units * 64)
        points, place = self._placed
        self.executor.launch(
            kernel, (groups * wg,), (wg,), moments=get("moments", 0), n_parts=tiling.parts, n_head=tiling.uncut,
            n_thetas=n_thetas, n_rows=n, n_padded=tiling.padded, penalty=get("penalty", 0), points=points, **place,
            query_z=get("query_z", 0), nearest=get("nearest", 0), rate=get("rate", 0), thetas=get("thetas", 0),
            basis=get("basis", 0), target_shift=self._numbers["target_shift"],
            target_scale=self._numbers["target_scale"], fits=fits, coefficients=coefficients,
        )  # fmt: skip
