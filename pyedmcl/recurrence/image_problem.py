"""Images of recurrence plots as a job: cells counted, or distances averaged, per pixel without the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError, InputError
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..jobs.runner import ArraySink, DeviceSink, LocalRunner, Runner
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import DeviceRows, Pacer, Pixels, deliver_counts, deliver_means, open_size
from ..series.scaling import condition
from ..tuning.parameters import adjusted, parameters
from .arguments import metric_named
from .engine import operations
from .problem import guard_band, value_error

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..device.info import DeviceInfo
    from .problem import RqaProblem


# Series and limits as the sweep of a recurrence plot needs them.


Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class SweepData:
    """Both sides as the kernel reads them, coordinate by coordinate, shape (coordinates, n); NaN for gaps.

    ``limits`` are compared by "less than": those of the sweep and those of float64.
    """

    rows: Floats
    columns: Floats
    dtype: str
    exact: bool
    limits: tuple[Floats, ...] = ()
    limits64: tuple[Floats, ...] = ()
    rows64: Floats | None = None
    columns64: Floats | None = None
    reach: float = 0.0
    exponent: int = 0

    def scale(self, largest: int) -> float:
        """What distances are multiplied with before they are added as integers: no pixel's sum exceeds 2^62."""
        # Where all distances are 0, any finite factor does; it must be one in float32, too.
        return 2.0 ** (61 - int(np.frexp(max(self.reach, 2.0**-60))[1]) - int(largest).bit_length())

    def distance_of_one(self, largest: int) -> float:
        """The distance, in the unit of the data, that 1 stands for in a sum."""
        return float(2.0**self.exponent / self.scale(largest))


def prepare(problem: RqaProblem, x: Floats, y: Floats, mean: bool) -> SweepData:
    """Values and limits of the sweep, and, where float64 decides the open cells, what it needs."""
    rows, columns = (np.atleast_2d(side.T if side.ndim == 2 else side) for side in (x, y))
    arithmetic = problem.dtype if mean else problem.arithmetic
    limits64 = () if mean else _less_than(problem, arithmetic)
    if not mean and (arithmetic == problem.dtype):
        # The cells are those of this arithmetic: the values are rounded to it and nothing else.
        with np.errstate(over="ignore"):
            return SweepData(rows.astype(arithmetic), columns.astype(arithmetic), arithmetic, False, limits64)
    both = np.concatenate([rows, columns], axis=1).T
    ready = condition(both, problem.dtype, quiet=not mean)
    power = int(ready.exponent.max())
    values = ready.values
    if (ready.exponent != power).any():
        values = np.ldexp(values, (ready.exponent - power).astype(np.int32)).astype(problem.dtype)
    reach = float(np.nanmax(np.abs(values), initial=0.0))
    split = rows.shape[1]
    sides = values[:split].T, values[split:].T
    if mean:
        return SweepData(*sides, problem.dtype, False, reach=2 * reach * problem.coordinates, exponent=power)
    back = np.ldexp(values.astype(np.float64), power) + ready.shift
    rounded = not np.array_equal(back, both, equal_nan=True)
    before = float(np.ldexp(np.nanmax(np.abs(both), initial=0.0), -power))
    error = value_error(reach, before) if rounded else 0.0
    metric = metric_named(problem.metric)
    scaled = (np.ldexp(limit, -power * metric.degree) for limit in limits64)
    bands = (guard_band(limit, metric, problem.coordinates, error) for limit in scaled)
    limits = tuple(bound.astype(np.float32) for band in bands for bound in band)
    wide = rows.astype(np.float64), columns.astype(np.float64)
    return SweepData(*sides, problem.dtype, True, limits, limits64, *wide)


def _less_than(problem: RqaProblem, arithmetic: str) -> tuple[Floats, ...]:
    """Outer and, in a corridor, inner limit such that a cell counts if it is below the one and not below the other.

    Shape (), or (n_columns,) where each column has its own.
    """
    column_limits = problem.column_limits
    outer: Floats = np.asarray(problem.outer_limits()[0] if column_limits is None else column_limits, arithmetic)
    above = np.asarray(np.inf, arithmetic)
    limits = [outer if problem.strict else np.nextafter(outer, above)]
    corridor = problem.inner_limits()
    if corridor is not None:
        inner: Floats = np.asarray(corridor[0], arithmetic)
        limits.append(np.nextafter(inner, above) if problem.strict else inner)
    return tuple(limits)


def complete_at(side: Floats, problem: RqaProblem, n: int) -> NDArray[np.bool_]:
    """Which points of a side (coordinates, n) have no gap."""
    present: NDArray[np.bool_] = np.logical_not(np.isnan(side).any(axis=0))
    if problem.embedded:
        return present
    complete = present[:n].copy()
    for e in range(1, problem.m):
        complete &= present[e * problem.tau : e * problem.tau + n]
    return complete


# Which kernel renders an image, and with which parameters.


_REGISTERS = 48  # coordinates that a work-item of a GPU may keep


@dataclass(frozen=True)
class ImageParameters:
    """The choice for one image."""

    # Specialisation of ``recurrence_image``.
    given: dict[str, Any]
    # Its tuned parameters.
    parameters: dict[str, Any]
    # How well these are known to suit the device and the problem.
    grade: str

    @property
    def values(self) -> dict[str, Any]:
        """Specialisation and parameters."""
        return {**self.given, **self.parameters}


def image_parameters(
    info: DeviceInfo, problem: RqaProblem, data: SweepData, *, mean: bool, largest: int
) -> ImageParameters:
    """Tuned parameters, adapted to the coordinates of a point and to the device's local memory.

    Parameters
    ----------
    mean : bool
        Distances are added, not cells counted.
    largest : int
        Cells of the largest pixel.
    """
    values: dict[str, Any] = {
        "m": problem.coordinates, "tau": 1 if problem.embedded else problem.tau, "metric": problem.metric,
        "dtype": data.dtype, "mode": "mean" if mean else "count", "embedded": problem.embedded, "exact": data.exact,
        "corridor": problem.inner is not None and not mean,
        "per_column": problem.column_limits is not None and not mean,
        "listed": data.exact and not info.fp64, "wide": mean or largest >= 2**32,
    }  # fmt: skip
    sizes = {"rows": problem.n_rows, "columns": problem.n_columns}
    choice = parameters(spec("recurrence_image"), values, info, sizes)
    chosen = dict(choice.parameters)
    if choice.grade == "default" and quirks_for(info).scalar_work_items:
        while chosen["vectors"] > 1 and chosen["vectors"] * values["m"] > _REGISTERS:
            chosen["vectors"] //= 2
    item = 8 if values["dtype"] == "float64" else 4
    halo = (values["m"] - 1) * values["tau"]
    rows = chosen["tile"] * values["m"] if values["embedded"] else chosen["tile"] + halo
    places = 12 * chosen["wg"] * chosen["lanes"] * chosen["vectors"]
    if chosen["staged"] and rows * item + places > quirks_for(info).local_bytes // 2:
        chosen["staged"] = 0
    why = "fewer vectors where the compiler would run out of registers, nothing staged that local memory cannot hold"
    return ImageParameters(values, dict(adjusted(choice, chosen, why)), choice.grade)


# Cells near the radius, decided on the host where the device has no double precision.


_RUNS_MOST = 1 << 21  # of a launch: 32 MB
_CELLS = 1 << 20  # decided at a time


class OpenCells:
    """Collects runs of cells that a launch left open, and counts what recurs in them.

    Parameters
    ----------
    data : SweepData
        With what float64 needs.
    across : int
        Columns of pixels.
    symmetric : bool
        Pixels whose column is less than their row are not counted.

    Attributes
    ----------
    counts : ndarray of int64 (pixel rows, pixel columns)
        Of the rows of pixels that were begun last.
    """

    def __init__(self, problem: RqaProblem, data: SweepData, across: int, symmetric: bool) -> None:
        self._problem, self._data, self._symmetric = problem, data, symmetric
        self._across = across
        self._capacity = 0
        self.begin(0)

    def begin(self, rows: int) -> None:
        """Count from here on what recurs in ``rows`` rows of pixels."""
        self.counts = np.zeros((rows, self._across), np.int64)

    def room(self, columns: int) -> int:
        """Runs that the list must hold, given the columns of a launch: at least one for each of them."""
        self._capacity = max(_RUNS_MOST, columns)
        return self._capacity

    def fitting(self, at: int, end: int, steps: NDArray[np.int64], columns: int) -> int:
        """The end of the pieces from ``at``, at most ``end``, whose runs surely fit; one piece of one step does."""
        most = max(self._capacity // max(columns, 1), 1)
        return at + max(int(np.searchsorted(np.cumsum(steps[at:end]), most, side="right")), 1)

    def take(self, executor: Executor, listed: Buffer, counter: Buffer) -> None:
        """Decide what a launch has left open, and empty the list."""
        n = np.empty(1, np.uint32)
        executor.download(counter, n)
        if not n[0]:
            return
        runs = executor.download(listed, np.empty((int(n[0]), 4), np.int32))
        executor.upload(np.zeros(1, np.uint32), counter)
        pixel = ((runs[:, 2].astype(np.int64) + 1) * self._across - 1) // self._problem.n_columns
        if self._symmetric:
            kept = pixel >= runs[:, 3]
            runs, pixel = runs[kept], pixel[kept]
        step = max(_CELLS // max(int(runs[:, 1].max(initial=1)), 1), 1)
        for a in range(0, len(runs), step):
            part = runs[a : a + step]
            np.add.at(self.counts, (part[:, 3], pixel[a : a + step]), self._recurrent(part))

    def _recurrent(self, runs: NDArray[np.int32]) -> NDArray[np.int64]:
        """Recurrent cells of each run (first row, rows, column): each operation rounded on its own."""
        longest = int(runs[:, 1].max())
        down = np.arange(longest)
        inside = down[None, :] < runs[:, 1:2]
        i = np.where(inside, runs[:, 0:1] + down[None, :], runs[:, 0:1])
        j = runs[:, 2]
        with np.errstate(over="ignore", under="ignore"):
            differences = (rows - columns[:, None] for rows, columns in self._coordinates(i, j))
            total = metric_named(self._problem.metric).compared(differences)
        outer, *inner = (limit if limit.ndim == 0 else limit[j][:, None] for limit in self._data.limits64)
        recurrent = (total < outer) & inside
        for limit in inner:
            recurrent &= ~(total < limit)
        counts: NDArray[np.int64] = recurrent.sum(axis=1)
        return counts

    def _coordinates(self, i: NDArray[np.int_], j: NDArray[np.int32]) -> Iterator[tuple[Floats, Floats]]:
        rows, columns = self._data.rows64, self._data.columns64
        assert rows is not None and columns is not None
        for e in range(self._problem.coordinates):
            if self._problem.embedded:
                yield rows[e][i], columns[e][j]
            else:
                yield rows[0][i + e * self._problem.tau], columns[0][j + e * self._problem.tau]


# The launches of an image: rows in pieces, columns in chunks, as much at once as a launch may take.


_GROUPS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535


def pixel_edges(n: int, pixels: int) -> NDArray[np.int64]:
    """First cells of ``pixels`` pixels over ``n`` cells, and the end: floor(p * n / pixels)."""
    edges: NDArray[np.int64] = np.arange(pixels + 1, dtype=np.int64) * n // pixels
    return edges


@dataclass(frozen=True, eq=False)
class Raster:
    """Which cells fall into which pixels."""

    # n_rows, n_columns: Cells.
    n_rows: int
    n_columns: int
    # (int, int). Rows and columns of pixels.
    pixels: tuple[int, int]
    # Only pixels on and above the diagonal are computed.
    symmetric: bool

    @cached_property
    def down(self) -> NDArray[np.int64]:
        """First rows of the rows of pixels, and the end."""
        return pixel_edges(self.n_rows, self.pixels[0])

    @cached_property
    def across(self) -> NDArray[np.int64]:
        """First columns of the columns of pixels, and the end."""
        return pixel_edges(self.n_columns, self.pixels[1])

    @property
    def largest(self) -> int:
        """Cells of the largest pixel."""
        return int(np.diff(self.down).max()) * int(np.diff(self.across).max())


class ImageSweep:
    """One image on one device, which keeps the series.

    Parameters
    ----------
    values : mapping
        Specialisation and parameters of ``recurrence_image``.
    """

    def __init__(
        self, executor: Executor, problem: RqaProblem, data: SweepData, raster: Raster, values: dict[str, Any]
    ) -> None:
        self.executor, self.data, self.raster, self.values = executor, data, raster, values
        self._open = OpenCells(problem, data, raster.pixels[1], raster.symmetric) if values["listed"] else None
        self._kernel = build(executor, spec("recurrence_image"), values)
        self._clear = build(executor, spec("recurrence_image"), values, "clear_image")
        self._width = values["wg"] * values["lanes"] * values["vectors"]  # columns of a chunk
        self._chunks = -(-raster.n_columns // self._width)
        self._pieces = _pieces(raster.down, values["tile"] if values["listed"] else values["piece"])
        self._per_group: int = max(1, values["piece"] // max(int(_heights(self._pieces).mean()), 1))
        self._held: dict[str, Buffer] = {}
        try:
            self._upload()
        except BaseException:
            self.release()
            raise

    @property
    def listed(self) -> bool:
        """Whether cells near a limit are decided on the host."""
        return self._open is not None

    def run(self, block: Block, report: Report, deliver: Callable[[Pixels], None] | None = None) -> NDArray[np.int64]:
        """Recurrent cells, or fixed-point sums of distances, of each pixel; below the diagonal of symmetric ones, 0.

        Parameters
        ----------
        block : Block
            Rows of pixels.
        report : callable
            Is told how many rows of the matrix are done.
        deliver : callable, optional
            Gets the image on the device; what is returned is empty then.
        """
        begin, end = (int(at) for at in np.searchsorted(self._pieces[:, 0], (block.begin, block.end)))
        pieces = self._pieces[begin:end] - np.array([block.begin, 0, 0, 0], np.int32)
        words = 2 if self.values["wide"] else 1
        image = np.empty((len(block), self.raster.pixels[1], words), np.uint32)
        self._check_room(pieces, image)
        held: dict[str, Buffer] = {}
        try:
            held["image"] = self.executor.allocate(image.nbytes)
            held["pieces"] = self.executor.upload(pieces)
            self.executor.launch(self._clear, open_size(image.size), None, image=held["image"], n=image.size)
            if self._open is not None:
                self._open.begin(len(block))
            self._launch_all(pieces, held, report)
            if deliver is not None:
                deliver(Pixels(held["image"], self.raster.symmetric, words))
                return np.empty((0, 0), np.int64)
            self.executor.download(held["image"], image)
        finally:
            for buffer in held.values():
                buffer.release()
        sums = image[..., 0].astype(np.int64)
        if self.values["wide"]:
            sums |= image[..., 1].astype(np.int64) << 32
        if self._open is not None:
            sums += self._open.counts
        # The kernel leaves out pixels whose column is less than their row, which it counts from the block's first one:
        # of a later block, some that lie below the diagonal are left, with a part of their cells.
        return np.triu(sums, block.begin) if self.raster.symmetric and block.begin else sums

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._held.values():
            buffer.release()
        self._held.clear()

    def _upload(self) -> None:
        """Put what all blocks read on the device, by the names of the kernel's arguments."""
        data, width = self.data, self._width
        arrays: dict[str, NDArray[Any]] = {
            "rows": _side(data.rows, 0, np.inf), "columns": _side(data.columns, width, -np.inf)
        }  # fmt: skip
        if self._open is not None:
            arrays["open_cells"] = np.empty((self._open.room(self._chunks * width), 4), np.int32)
            arrays["n_open"] = np.zeros(1, np.uint32)
        elif data.rows64 is not None and data.columns64 is not None:
            arrays["rows64"] = _side(data.rows64, 0, np.inf)
            arrays["columns64"] = _side(data.columns64, width, -np.inf)
        arrays |= {name: np.pad(limit, (0, width)) for name, limit in self._limits().items() if limit.ndim}
        self._sizes = [array.nbytes for array in arrays.values()]
        self._check_room()
        self._strides = {f"{side[:-1]}_stride": arrays[side].shape[1] for side in ("rows", "columns")}
        for name, array in arrays.items():
            self._held[name] = self.executor.upload(array)

    def _limits(self) -> dict[str, Floats]:
        """Limits by the names of the kernel's arguments: a number each, or one for each column."""
        if self.values["mode"] == "mean":
            return {}
        sweeps = range(2 if self.data.exact else 1)  # the two ends of a guard band
        sides = ("limit", "inner") if self.values["corridor"] else ("limit",)
        plural = "s" if self.values["per_column"] else ""
        names = [f"{side}{sweep}{plural}" for side in sides for sweep in sweeps]
        limits = dict(zip(names, self.data.limits, strict=True))
        if self.data.exact and self._open is None:
            limits |= zip([f"{side}{plural}64" for side in sides], self.data.limits64, strict=True)
        return limits

    def _launch_all(self, pieces: NDArray[np.int32], held: dict[str, Buffer], report: Report) -> None:
        """All pieces of a block, some of them at a time."""
        v, raster = self.values, self.raster
        buffers = {**self._held, **held}
        heights = _heights(pieces)
        numbers = {name: float(limit) for name, limit in self._limits().items() if not limit.ndim}
        if v["mode"] == "mean":
            numbers["scale"] = self.data.scale(raster.largest)
        pacer = Pacer(self.executor.info)
        cost = 3.0 * v["m"] + 4 + (20 if v["mode"] == "mean" else 0)
        at = 0
        while at < len(pieces):
            chunk = int(pieces[at, 3]) // self._width if raster.symmetric else 0
            columns = (self._chunks - chunk) * self._width
            end = self._end(heights, at, max(pacer.units(cost) // columns, 1), columns)
            groups = (self._chunks - chunk) * v["wg"], -(-(end - at) // self._per_group)
            event = self.executor.launch(
                self._kernel, groups, (v["wg"], 1), **buffers, **self._strides, **numbers, n_columns=raster.n_columns,
                piece_begin=at, piece_end=end, per_group=self._per_group, chunk_begin=chunk, pixels=raster.pixels[1],
                symmetric=raster.symmetric,
            )  # fmt: skip
            pacer.launched(event, cost * columns * float(heights[at:end].sum()))
            if self._open is not None:
                self._open.take(self.executor, buffers["open_cells"], buffers["n_open"])
            at = end
            report(int(pieces[at - 1, 2] - pieces[0, 1]))

    def _end(self, heights: NDArray[np.int64], at: int, rows: int, columns: int) -> int:
        """The end of the pieces of a launch that begins with piece ``at`` and takes about ``rows`` rows."""
        so_far = np.cumsum(heights[at : at + _GROUPS_MOST * self._per_group])
        end = at + int(np.searchsorted(so_far, rows, side="right"))
        end = min(max(end, at + self._per_group), len(heights))
        if self._open is None:
            return end
        steps: NDArray[np.int64] = -(-heights // self.values["tile"])
        return self._open.fitting(at, end, steps, columns)

    def _check_room(self, *more: NDArray[Any]) -> None:
        """Refuse what does not fit beside the series; ``more`` are arrays of a block."""
        allowed = budget(self.executor.info)
        sizes = [*self._sizes, *(array.nbytes for array in more)]
        if sum(sizes) > allowed.total or max(sizes) > allowed.largest:
            raise DeviceMemoryError(
                f"the image and the series need {sum(sizes):,} bytes, the largest buffer {max(sizes):,}; on "
                f"{self.executor.info.name} {allowed.total:,} may be used and {allowed.largest:,} in one buffer. Use "
                "fewer pixels, or raise PYEDMCL_MEMORY_LIMIT or PYEDMCL_MEMORY_FRACTION."
            )


def _pieces(down: NDArray[np.int64], most: int) -> NDArray[np.int32]:
    """Rows cut at the edges of pixels and to at most ``most``: (pixel row, first, end, first of that pixel row)."""
    heights = np.diff(down)
    parts = -(-heights // most)
    pixel = np.repeat(np.arange(len(heights)), parts)
    part = np.arange(len(pixel)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = down[pixel] + part * most
    end = np.minimum(begin + most, down[pixel + 1])
    return np.ascontiguousarray(np.stack([pixel, begin, end, down[pixel]], axis=1), dtype=np.int32)


def _heights(pieces: NDArray[np.int32]) -> NDArray[np.int64]:
    """Rows of each piece."""
    return (pieces[:, 2] - pieces[:, 1]).astype(np.int64)


def _side(values: Floats, padding: int, gap: float) -> Floats:
    """Padded and with gaps marked so that a difference to anything is infinite."""
    padded: Floats = np.pad(values, ((0, 0), (0, padding)), constant_values=gap)
    padded[np.isnan(padded)] = gap
    return np.ascontiguousarray(padded)


# Images of recurrence and distance plots as a job: the problem, and the engine that renders rows of pixels.


_BLOCK_PIXELS = 1 << 24  # whose sums the host holds in 128 MB


@dataclass(frozen=True, eq=False)
class ImageProblem:
    """The recurrence plot of a matrix as an image; blocks are ranges of its rows of pixels.

    Pixel (p, q) holds rows floor(p * n_rows / P) to floor((p + 1) * n_rows / P) - 1, and columns likewise.
    """

    # Not joint, with one radius, which ``mean`` ignores.
    matrix: RqaProblem
    # Both sides, as kernels read them.
    data: SweepData
    # Which cells fall into which pixels.
    raster: Raster
    # Pixels are mean distances (float64, NaN where a pixel has no cell without a gap); else numbers of recurrent cells
    # (int64).
    mean: bool
    # Means are multiplied by this power of two, by which the data were divided.
    exponent: int

    @property
    def unit(self) -> str:
        return "rows"

    @property
    def total(self) -> int:
        return self.matrix.n_rows

    def size(self, block: Block) -> int:
        return int(self.raster.down[block.end] - self.raster.down[block.begin])

    @property
    def operations(self) -> float:
        return operations(self.matrix)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of rows of pixels, to be shared by ``devices``."""
        down, across = self.raster.pixels
        return cut(down, rows_of_a_block(down, max(_BLOCK_PIXELS // across, 1), devices))

    @property
    def dtype(self) -> type[np.generic]:
        """Of the pixels."""
        return np.float64 if self.mean else np.int64

    def complete_points(self, begin: int, end: int) -> list[NDArray[np.float64]]:
        """Points without a gap in each of the rows of pixels ``begin`` to ``end - 1``, and in each column of pixels."""
        down, across = self._complete_points
        return [down[begin:end], across]

    @cached_property
    def _complete_points(self) -> list[NDArray[np.float64]]:
        """The same of all rows and columns of pixels, which each block asks for."""
        raster, matrix = self.raster, self.matrix
        sides = (self.data.rows, matrix.n_rows, raster.down), (self.data.columns, matrix.n_columns, raster.across)
        return [
            np.add.reduceat(complete_at(side, matrix, n).astype(np.float64), edges[:-1]) for side, n, edges in sides
        ]

    @property
    def power(self) -> int:
        """2**power is the distance, in the unit of the data, that a sum of 1 means."""
        return int(np.frexp(self.data.distance_of_one(self.raster.largest))[1]) - 1 + self.exponent

    def means(self, sums: NDArray[np.int64], block: Block) -> NDArray[np.float64]:
        """Mean distances of a block from their fixed-point sums; NaN where a pixel has no cell without a gap."""
        cells = np.outer(*self.complete_points(block.begin, block.end))
        with np.errstate(invalid="ignore", divide="ignore"):
            means: NDArray[np.float64] = np.where(cells > 0, sums.astype(np.float64) / cells, np.nan)
        return np.ldexp(means, self.power)

    def open(self, executor: Executor) -> ImageEngine:
        return ImageEngine(self, executor)


def image_problem(
    matrix: RqaProblem, x: Floats, y: Floats | None = None, *, pixels: tuple[int, int], mean: bool = False,
    exponent: int = 0,
) -> ImageProblem:  # fmt: skip
    """The image of a matrix.

    Parameters
    ----------
    x, y : ndarray (n,) or (n_points, n_features)
        Series, or points where the matrix is ``embedded``, of the rows and of the columns; ``y`` None where they are
        the same. NaN for gaps.
    pixels : (int, int)
        Rows and columns of pixels, at most the numbers of points.
    mean, exponent
        As for :class:`ImageProblem`.
    """
    if matrix.joint is not None:
        raise InputError("joint recurrence is that of two pairs of series: draw the plot of each")
    if not mean and matrix.n_radii != 1:
        raise InputError(f"radius={matrix.radii!r}: a plot has one radius")
    raster = Raster(matrix.n_rows, matrix.n_columns, pixels, matrix.symmetric and pixels[0] == pixels[1])
    return ImageProblem(matrix, prepare(matrix, x, x if y is None else y, mean), raster, mean, exponent)


class ImageEngine:
    """The engine of :class:`ImageProblem`: rows of pixels on a device, in memory for the series and these pixels."""

    def __init__(self, problem: ImageProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        data, info = problem.data, executor.info
        if data.dtype == "float64" and not info.fp64:
            raise InputError(
                f"dtype='float64': the device {info.name} has no double precision; use another device, or "
                "dtype='float32': with exact=True the processor decides in float64 those cells that float32 cannot"
            )
        choice = image_parameters(info, problem.matrix, data, mean=problem.mean, largest=problem.raster.largest)
        self._record = Record(dict(choice.parameters), choice.grade)
        self._sweep = ImageSweep(executor, problem.matrix, data, problem.raster, choice.values)

    def block(self, block: Block, into: Arrays | Sequence[DeviceRows] | None, report: Report) -> BlockResult:
        """The pixels of the block's rows; of a symmetric image, those left of its diagonal are 0, or NaN.

        Where ``into`` holds rows of an array on the device, they are written there, on both sides of the diagonal.
        """
        if into is not None and isinstance(rows := into[0], DeviceRows):
            self._sweep.run(block, report, self._deliver_to(rows, block))
            return BlockResult(into, self._record)
        sums = self._sweep.run(block, report)
        return BlockResult([self._problem.means(sums, block) if self._problem.mean else sums], self._record)

    def _deliver_to(self, rows: DeviceRows, block: Block) -> Callable[[Pixels], None]:
        p = self._problem
        if self._sweep.listed:
            raise InputError(
                f"out=: cells that float32 cannot decide are decided on the host, since {self._executor.info.name} has "
                "no double precision; pass exact=False, or do not pass out="
            )
        if not p.mean:
            return partial(deliver_counts, self._executor, into=rows)
        present = p.complete_points(block.begin, block.end)
        return partial(deliver_means, self._executor, into=rows, present=present, exponent=p.power)

    def release(self) -> None:
        """Give the device memory back."""
        self._sweep.release()


# Recurrent cells or mean distances per pixel of a recurrence plot, without the matrix.


_EDGE = 256  # pixels that are mirrored together: columns of single pixels would be read one cache line at a time


@dataclass(frozen=True)
class Image:
    """What devices found, and how."""

    # ndarray (pixel rows, pixel columns) or None. Counts (int64), or mean distances (float64, NaN where a pixel has no
    # cell without a gap); None where they stay on the device.
    values: Any
    # parameters, grade: Tuned parameters and how well they are known.
    parameters: dict[str, Any]
    grade: str


def rendered(runner: Runner, problem: ImageProblem, *, dtype: Any = None, into: DeviceRows | None = None) -> Image:
    """Render an image by any runner.

    Parameters
    ----------
    dtype : number type, optional
        Of the values, else that of the problem.
    into : DeviceRows, optional
        Where counts or means go on the device; the image has no values then.
    """
    down, across = problem.raster.pixels
    if into is not None:
        # In one block, since a device writes both sides of the diagonal at once.
        record = runner.run(problem, DeviceSink([Block(0, 0, down)], [into]))
        return Image(None, dict(record.parameters), record.grade)
    values = np.empty((down, across), problem.dtype if dtype is None else dtype)
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [values]))
    if problem.raster.symmetric:
        _mirror(values)
    return Image(values, dict(record.parameters), record.grade)


def _mirror(values: NDArray[Any]) -> None:
    """Copy what is above the diagonal of a square array below it."""
    n = len(values)
    for begin in range(0, n, _EDGE):
        rows = slice(begin, min(begin + _EDGE, n))
        values[rows, :begin] = values[:begin, rows].T
        square = values[rows, rows]
        np.copyto(square, square.T, where=np.tri(len(square), k=-1, dtype=bool))


def render_image(
    executor: Executor, problem: RqaProblem, x: Floats, y: Floats | None = None, *, pixels: tuple[int, int],
    mean: bool = False,
) -> Image:  # fmt: skip
    """The image of a matrix on one device; see :func:`image_problem` for the arguments."""
    return rendered(LocalRunner([executor]), image_problem(problem, x, y, pixels=pixels, mean=mean))
