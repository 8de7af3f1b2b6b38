"""The device's part of S-map: from query rows to the coefficients of their fits, in one of two layouts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..kernels.smap_shared import largest_tile, local_bytes
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..launch.sizes import open_size, round_up
from ..launch.steps import NamedNumber
from ..tuning.parameters import adjusted, parameters
from .smap_arrays import Fitted, Solved, numbers_of, series_of
from .smap_basis import WhiteBasis
from .smap_exact import Library
from .smap_tiling import Tiling

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Doubles = NDArray[np.float64]

LAYOUTS = ("lanes", "shared")
_NO_ROW = -(2**30)  # farther from every row than any radius
_MOST_MOMENTS = 256 << 20
_MOST_ROWS = 1 << 26


class Sweeps:
    """A library on the device.

    Parameters
    ----------
    executor : Executor
    library : Library
    basis : WhiteBasis
    dtype : str
    """

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
