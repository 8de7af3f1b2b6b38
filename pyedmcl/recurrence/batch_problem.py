"""Many recurrence matrices as a job: their points as one array, and the launches that count their lines."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError, InputError
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import Pacer, Pool, wrong_result
from ..series.scaling import exponent_of, largest
from .arguments import Spread, metric_named, normalized, spread
from .batch_counts import BatchCounts
from .engine import identity_line, operations, require_consistent
from .points import NEAR_ONE, Embedding, Points, points_of
from .problem import RqaProblem, guard_band, require_precision, value_error
from .sweep import TileSweep

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor, Kernel


# Many series as one array: where each begins, and how many points it has.


Ints = NDArray[np.int64]

_LARGEST = 2.0**1020  # as in series/series.py
_ROOM = 64  # values that a device reads behind a series, without keeping what follows from them


@dataclass(frozen=True, eq=False)
class Side:
    """Points of one side of many matrices: columns (x) or rows (y).

    Attributes
    ----------
    values : ndarray (planes, values)
        Series one behind the other, in one plane where their points are made of lags; else a plane for each
        coordinate. NaN where a point touches a gap. Times ``2**-exponent`` those of the data. Behind the last series
        there may be more that are NaN.
    begins, points : ndarray (series,)
        Where each begins, and how many points it has.
    largest : ndarray (series,)
        The largest magnitude of each series of the data.
    embedding : Embedding
    spreads : Spread or None
        Fields (series, columns) of the values that are compared, in the unit of the data, where radii need them.
    exponents : ndarray of int (series,)
    """

    values: NDArray[np.float64]
    begins: Ints
    points: Ints
    largest: NDArray[np.float64]
    embedding: Embedding
    spreads: Spread | None
    exponents: Ints

    def __len__(self) -> int:
        return len(self.begins)

    def described(self) -> dict[str, Any]:
        """For provenance: the digest is that of the values that are compared, normalised if they are."""
        values = self.values[:, : int((self.begins + self.points).max()) + self.lag]
        digest = hashlib.sha256(np.ascontiguousarray(values).view(np.uint8).data).hexdigest()
        return {"file": None, "rows": int(self.points.sum()), "series": len(self), "digest": digest}

    @property
    def embedded(self) -> bool:
        """Each coordinate has a plane."""
        return len(self.values) > 1 or self.embedding.metric.prepare is not None or self.embedding.embedded

    @property
    def coordinates(self) -> int:
        return len(self.values) if self.embedded else self.embedding.m

    @property
    def lag(self) -> int:
        """Values of a series behind its last point's first coordinate."""
        return 0 if self.embedded else (self.embedding.m - 1) * self.embedding.tau

    @classmethod
    def of_points(cls, points: Points) -> Side:
        """A side of one series."""
        planes = points.values.T if points.embedded else points.values[None]
        return cls(
            np.ascontiguousarray(planes, np.float64), np.zeros(1, np.int64), np.array([points.n]),
            np.array([np.ldexp(largest(planes), points.exponent)]),
            points.embedding, None, np.array([points.exponent]),
        )  # fmt: skip

    def of(self, number: int) -> Points:
        """The points of one series."""
        begin, n = int(self.begins[number]), int(self.points[number])
        values = self.values[:, begin : begin + n + self.lag]
        present = np.logical_not(np.isnan(values).any(axis=0))
        complete = present[:n].copy()
        e = self.embedding
        if self.embedded:
            return Points(
                np.ascontiguousarray(values.T), 1, 1, True, len(values), complete, e, values.T,
                int(self.exponents[number]),
            )  # fmt: skip
        for lag in range(e.tau, self.lag + 1, e.tau):
            complete &= present[lag : lag + n]
        return Points(
            np.ascontiguousarray(values[0]), e.m, e.tau, False, e.m, complete, e, values.T, int(self.exponents[number])
        )

    def complete(self, number: int) -> NDArray[np.bool_]:
        """Which points of a series have no gap."""
        return self.of(number).complete

    def gaps(self) -> NDArray[np.bool_]:
        """Which series have a gap."""
        missing = np.flatnonzero(np.isnan(self.values).any(axis=0))
        ends = self.begins + self.points + self.lag
        touched: NDArray[np.bool_] = np.searchsorted(missing, self.begins) < np.searchsorted(missing, ends)
        return touched

    def windows(self, starts: Ints, size: int) -> Side:
        """Windows of ``size`` points as series of their own, which share their scale."""
        n = len(starts)
        return Side(
            self.values, self.begins[0] + starts, np.full(n, size), np.repeat(self.largest, n), self.embedding, None,
            np.repeat(self.exponents, n),
        )  # fmt: skip

    def piece(self, series: Ints) -> tuple[NDArray[np.float64], Ints]:
        """What a device needs of some series: their values with room to read past the last one, and where each
        begins."""
        begins, ends = self.begins[series], self.begins[series] + self.points[series] + self.lag
        room = _ROOM + self.lag
        first, last = int(begins.min()), int(ends.max())
        if last - first <= 2 * int((ends - begins).sum()):
            if len(self.values) == 1 and last + room <= self.values.shape[1]:
                return self.values[:, first : last + room], begins - first
            values = np.empty((len(self.values), last - first + room))
            values[:, : last - first] = self.values[:, first:last]
            begins = begins - first
        else:
            lengths = ends - begins
            values = np.empty((len(self.values), int(lengths.sum()) + room))
            placed = np.concatenate([[0], np.cumsum(lengths)])
            for begin, end, to in zip(begins.tolist(), ends.tolist(), placed.tolist(), strict=False):
                values[:, to : to + end - begin] = self.values[:, begin:end]
            begins = placed[:-1]
        values[:, -room:] = np.nan
        return values, begins


def side_of(series: Sequence[Any], names: Sequence[str], embedding: Embedding, *, measured: bool = False) -> Side:
    """All series of one side.

    Parameters
    ----------
    series : sequence
        Each (n,) or (n, d), as x of :func:`pyedmcl.rqa`; or a single array (series, n).
    names : sequence of str
        How messages call each.
    measured : bool
        Spreads are needed.
    """
    if embedding.metric.prepare is None:
        plain = _plain(series, _ROOM + (embedding.m - 1) * embedding.tau)
        if plain is not None:
            return _side_of_values(plain, _lengths(series), names, embedding, measured)
    points = [points_of(one, name, embedding) for one, name in zip(series, names, strict=True)]
    return _side_of_points(points, names, measured)


def _lengths(series: Any) -> Ints:
    if isinstance(series, np.ndarray):
        return np.full(len(series), series.shape[1])
    return np.array([len(one) for one in series])


def is_plain(series: Any) -> bool:
    """Whether a series is an array (n,) of numbers, without a mask or a unit, which needs no reading."""
    return type(series) is np.ndarray and series.ndim == 1 and series.dtype.kind in "fiu"


def _plain(series: Any, room: int) -> NDArray[np.float64] | None:
    """All values of series (n,), with ``room`` NaN behind them; None where some are no such arrays."""
    one_array = isinstance(series, np.ndarray)
    if not one_array and not all(map(is_plain, series)):
        return None
    n = series.size if one_array else int(_lengths(series).sum())
    out = np.empty(n + room)
    if one_array:
        out[:n].reshape(series.shape)[...] = series
    else:
        np.concatenate(series, out=out[:n], casting="unsafe")
    out[n:] = np.nan
    return out


def _side_of_values(
    values: NDArray[np.float64], lengths: Ints, names: Sequence[str], embedding: Embedding, measured: bool
) -> Side:
    lag = (embedding.m - 1) * embedding.tau
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)

    def refuse_first(wrong: NDArray[np.bool_]) -> None:
        for number in np.flatnonzero(wrong)[:1]:  # which says what is wrong with it
            points_of(values[begins[number] : begins[number] + lengths[number]], names[number], embedding)

    refuse_first(lengths < lag + 2)
    most = np.empty(len(lengths))
    for rows, table in _tables(values, begins, lengths):
        most[rows] = _magnitudes(table)
    refuse_first(most > _LARGEST)
    fields = np.empty((4, len(lengths), 1))
    if embedding.normalize is not None or measured:
        for rows, table in _tables(values, begins, lengths):
            if embedding.normalize is not None:
                table = normalized(table, embedding.normalize)
                values[begins[rows][:, None] + np.arange(table.shape[1])] = table
                most[rows] = _magnitudes(table)
            if measured:
                fields[:, rows, 0] = spread(table)
    return Side(
        values[None], begins, lengths - lag, most, embedding, Spread(*fields) if measured else None,
        np.zeros(len(lengths), int),
    )  # fmt: skip


def _tables(values: NDArray[np.float64], begins: Ints, lengths: Ints) -> Iterator[tuple[Ints, NDArray[np.float64]]]:
    """Series of one length as rows of a matrix, and which they are."""
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(lengths):
            yield rows, values[: len(rows) * length].reshape(len(rows), -1)
        else:
            yield rows, values[begins[rows][:, None] + np.arange(length)]


def _magnitudes(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest magnitude of each row."""
    magnitude: NDArray[np.float64] = np.fmax(np.fmax.reduce(table, axis=1), -np.fmin.reduce(table, axis=1))
    return magnitude


def _side_of_points(points: list[Points], names: Sequence[str], measured: bool) -> Side:
    for name, one in zip(names, points, strict=True):
        if one.coordinates != points[0].coordinates:
            raise InputError(
                f"{name}: its points have {one.coordinates} coordinates, and those of {names[0]} have "
                f"{points[0].coordinates}; series of one batch need the same number"
            )
    planes = [one.values.T if one.embedded else one.values[None] for one in points]
    lengths = np.array([plane.shape[1] for plane in planes])
    spreads = [spread(np.ascontiguousarray(one.given.T)) for one in points] if measured else []
    most = [largest(plane) for plane in planes]
    return Side(
        np.ascontiguousarray(np.concatenate(planes, axis=1, dtype=np.float64)),
        np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64), np.array([one.n for one in points]),
        np.array(most), points[0].embedding,
        Spread(*(np.stack(of) for of in zip(*spreads, strict=True))) if measured else None, np.zeros(len(points), int),
    )  # fmt: skip


def near_one(arithmetic: str, *sides: Side) -> tuple[Side, ...]:
    """Sides whose squares are numbers of ``arithmetic``, as :func:`pyedmcl.recurrence.points.near_one` of each pair."""
    least, most = NEAR_ONE[arithmetic]
    magnitudes = np.fmax.reduce([side.largest for side in sides])
    if not ((magnitudes > 0.5) & (magnitudes < 2.0**40)).all():  # else no exponent is beyond the limits
        magnitude_exponents = np.array([exponent_of(magnitude) for magnitude in magnitudes.tolist()])
        exponents = np.where((magnitude_exponents < least) | (magnitude_exponents > most), magnitude_exponents, 0)
    else:
        exponents = np.zeros(len(magnitudes), int)
    for side in {id(side): side for side in sides}.values():
        for number in np.flatnonzero(exponents):
            begin = side.begins[number]
            end = begin + side.points[number] + side.lag
            side.values[:, begin:end] = np.ldexp(side.values[:, begin:end], -exponents[number])
    return tuple(replace(side, exponents=exponents) for side in sides)


# Counts of many short matrices from one launch, or from as few as keep launches short.


#: Points of a side at most: a longer series fills a device by itself, in tiles.
LONGEST = 2048
# (columns of a work-item, work-items of a group, groups for each compute unit)
_SHAPES = {"cpu": (8, 1, 2), "gpu": (1, 128, 8)}
# Cells are screened in float32 where the guard band of most limits is so narrow, in parts of the limit, that few blocks
# have a cell in it; squares of numbers below the bound are numbers of float32.
_NARROW, _MOSTLY, _SCREENED = 2.0**-10, 0.9, 2.0**60
_SPARES = 16  # bins that a vector of lines may count in besides: one for each lane


class BatchSweep:
    """Counts matrices of a batch on one device.

    Parameters
    ----------
    matrix : RqaProblem
        What all matrices share; its sizes, radii and exponent do not enter.
    x, y : Side
        Columns and rows; the same object where each series is compared with itself.
    """

    def __init__(self, executor: Executor, matrix: RqaProblem, x: Side, y: Side) -> None:
        self.executor, self.matrix, self.x, self.y = executor, matrix, x, y
        require_precision(executor.info, matrix)
        self._lanes, self._wg, groups = _SHAPES[quirks_for(executor.info).defaults_for]
        self._groups = groups * max(executor.info.compute_units, 1)
        self._real = np.dtype(matrix.arithmetic)
        self._corridor = matrix.inner is not None
        values: dict[str, Any] = {
            "m": x.coordinates, "metric": matrix.metric, "dtype": matrix.arithmetic, "strict": matrix.strict,
            "corridor": self._corridor, "symmetric": matrix.symmetric, "lanes": self._lanes, "wg": self._wg,
        }  # fmt: skip
        self._values = values
        self._pacer = Pacer(executor.info)

    def counts(self, series: Ints, limits: NDArray[np.float64]) -> BatchCounts:
        """Counts of some series.

        Parameters
        ----------
        series : ndarray (n,)
        limits : ndarray (n, radii, 2)
            Outer and inner limit, numbers of the arithmetic.

        Returns
        -------
        BatchCounts
            Of n * radii matrices: radius by radius of one series after the other.
        """
        n_radii, parts, at = limits.shape[1], [], 0
        while at < len(series):
            end = at + self._together(series[at:], n_radii)
            parts.append(self._part(series[at:end], limits[at:end]))
            at = end
        return BatchCounts.joined(parts)

    def _bytes_of(self, series: Ints, n_radii: int) -> tuple[Ints, Ints]:
        """Bytes that each of some series takes, and those of its results in the largest buffer."""
        n, m = self.x.points[series], self.y.points[series]
        values = (n + m) * self.x.coordinates * self._real.itemsize
        results = n_radii * 32 * (np.maximum(n, m) + 1)
        return values + results + n_radii * (2 * (2 * n + m) + 100), np.maximum(values, results)

    def _together(self, series: Ints, n_radii: int) -> int:
        """How many of the next series fit the device together."""
        room = budget(self.executor.info)
        needed, largest = (np.cumsum(each) for each in self._bytes_of(series, n_radii))
        scratch = 4 * self._scratch_words(series)
        left = room.total - scratch * min(self._groups, len(series) * n_radii)
        fits = int(min(np.searchsorted(needed, left, "right"), np.searchsorted(largest, room.largest, "right")))
        if fits == 0:
            need = int(needed[0]) + scratch
            if need > room.total or int(largest[0]) > room.largest:
                raise DeviceMemoryError(
                    f"a series of {int(self.x.points[series[0]]):,} points needs {need:,} bytes on the device; "
                    f"{room.total:,} may be used on {self.executor.info.name} (raise PYEDMCL_MEMORY_LIMIT)"
                )
            return 1
        return fits

    def _scratch_words(self, series: Ints) -> int:
        x = self.x
        longest = int(max(x.points[series].max(), self.y.points[series].max()))
        words = -(-longest // 32)
        coarse = max(x.coordinates * 32 * words, 32 * words + x.lag)
        sides = 1 if self.matrix.symmetric else 2
        return 32 * words * words * (1 + sides) + 4 * (longest + 1) + _SPARES + sides * coarse

    def _compared(self, series: Ints, limits: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each matrix compares with: limits (n, 2), and where float32 screens cells also their bands (n, 6)."""
        flat = limits.reshape(-1, 2)
        if self._lanes == 1 or self._real != np.float64:
            return flat
        most = np.maximum(*(np.ldexp(side.largest, -side.exponents)[series] for side in (self.x, self.y)))
        errors = np.repeat([value_error(one, 0.0) for one in most.tolist()], limits.shape[1])[:, None]
        used = flat if self._corridor else flat[:, :1]
        if not (most < _SCREENED).all() or not (used < _SCREENED).all():
            return flat
        band = guard_band(flat, metric_named(self.matrix.metric), self.x.coordinates, errors)
        narrow = (band.high - band.low)[:, : used.shape[1]] <= _NARROW * used
        if np.count_nonzero(narrow) < _MOSTLY * narrow.size:
            return flat
        of_each = np.stack([band.low, band.high], axis=2).reshape(-1, 4)
        return np.concatenate([flat, of_each], axis=1)

    def _part(self, series: Ints, limits: NDArray[np.float64]) -> BatchCounts:
        """Counts of series that fit the device together."""
        matrix, n_radii = self.matrix, limits.shape[1]
        pool = Pool(self.executor)
        try:
            sides, begin_x, begin_y = self._uploaded(pool, series)
            points_y = (self.x if matrix.symmetric else self.y).points[series]
            layout = _layout(self.x.points[series], points_y, begin_x, begin_y, n_radii, symmetric=matrix.symmetric)
            heads, lines, per_column, per_diagonal = self._counted(
                pool, layout, sides, self._compared(series, limits), self._scratch_words(series)
            )
        finally:
            pool.release()
        counts = BatchCounts.of_device(
            np.stack([layout.n_x, layout.n_y], axis=1), matrix.symmetric, heads, lines, per_column, per_diagonal,
            layout.column_begins, layout.diagonal_begins,
        )  # fmt: skip
        why = counts.contradiction()
        if why is not None:
            raise wrong_result(self.executor.info, f"{why} (kernel recurrence_batch)")
        return counts

    def _uploaded(self, pool: Pool, series: Ints) -> tuple[dict[str, Any], Ints, Ints]:
        """The points of both sides as arguments of the kernel, and where each series begins among them."""
        arguments: dict[str, Any] = {}
        begins = []
        for name, side in (("x", self.x),) if self.matrix.symmetric else (("x", self.x), ("y", self.y)):
            values, begin = side.piece(series)
            with np.errstate(over="ignore"):
                arguments[name] = pool.put(name, values.astype(self._real, copy=False))
            arguments[f"step_{name}"] = values.shape[1] if side.embedded else side.embedding.tau
            begins.append(begin)
        if self.matrix.symmetric:
            arguments |= {"y": arguments["x"], "step_y": arguments["step_x"]}
        return arguments, begins[0], begins[-1]

    def _counted(
        self, pool: Pool, layout: _Layout, sides: Mapping[str, Any], compared: NDArray[np.float64], scratch_words: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint16], NDArray[np.uint16]]:
        """Run the kernel; its numbers of each matrix, its lines, and its counts of columns and of diagonals."""
        screened = compared.shape[1] > 2
        kernel = build(self.executor, spec("recurrence_batch"), {
            **self._values, "screened": screened, "embedded": screened and self.x.embedded,
        })  # fmt: skip
        n_matrices = len(layout.shapes)
        groups = min(self._groups, n_matrices)
        longest = np.maximum(layout.n_x, layout.n_y)
        heads = np.empty((n_matrices, 6), np.uint64)
        per_column = np.empty(int(layout.column_begins[-1]), np.uint16)
        per_diagonal = np.empty(int(layout.diagonal_begins[-1]), np.uint16)
        downloads: dict[str, NDArray[Any]] = {"heads": heads, "per_column": per_column, "per_diagonal": per_diagonal}
        buffers = {name: pool.get(name, max(array.nbytes, 4)) for name, array in downloads.items()}
        buffers["taken"] = pool.put("taken", np.zeros(2, np.uint32))
        buffers["lines"] = pool.get("lines", 32 * int((longest + 1).sum()))
        self._launch(
            kernel, n_matrices, groups, (layout.n_x.astype(float) * layout.n_y).max() * (3 * self.x.coordinates + 12),
            shapes=pool.put("shapes", layout.shapes), limits=pool.put("limits", compared.astype(self._real)),
            scratch=pool.get("scratch", 4 * scratch_words * groups), scratch_words=scratch_words,
            longest=int(longest.max()), **buffers, **sides,
        )  # fmt: skip
        for name, array in downloads.items():
            self.executor.download(buffers[name], array)
        n_lines = int(self.executor.download(buffers["taken"], np.empty(2, np.uint32))[1])
        lines = np.empty((n_lines, 2), np.uint32)
        if n_lines:
            self.executor.download(buffers["lines"], lines)
        return heads, lines, per_column, per_diagonal

    def _launch(
        self, kernel: Kernel, n_matrices: int, groups: int, cost: float, *, taken: Buffer, **arguments: Any
    ) -> None:
        """Count all matrices, as many in a launch as keep it short; ``cost``: operations of a matrix, at most."""
        p, begin = self.matrix, 0
        while begin < n_matrices:
            end = min(begin + max(self._pacer.units(cost), groups), n_matrices)
            if begin:  # groups of the launch before asked for one matrix more each
                self.executor.upload(np.array([begin], np.uint32), taken)
            event = self.executor.launch(
                kernel, (groups * self._wg,), (self._wg,), theiler=p.theiler,
                dropped=p.theiler if p.theiler_everywhere else 0, end=end, taken=taken, **arguments,
            )  # fmt: skip
            self._pacer.launched(event, cost * (end - begin))
            begin = end


@dataclass(frozen=True)
class _Layout:
    """Where each matrix of a launch has its points and its counts."""

    # n_x, n_y: ndarray (n_matrices,). Points of its columns and of its rows.
    n_x: Ints
    n_y: Ints
    # ndarray (n_matrices, 6). What the kernel is told of it: begin and number of the points of x, the same of y, and
    # the first element of its counts of columns and of diagonals.
    shapes: NDArray[np.int32]
    # column_begins, diagonal_begins: ndarray (n_matrices + 1,). Where these counts begin, and the end of the last.
    column_begins: Ints
    diagonal_begins: Ints


def _layout(
    points_x: Ints, points_y: Ints, begin_x: Ints, begin_y: Ints, n_radii: int, *, symmetric: bool
) -> _Layout:  # fmt: skip
    """Matrices of one radius after the other of each series."""
    n_x, n_y = np.repeat(points_x, n_radii), np.repeat(points_y, n_radii)
    diagonals = n_x if symmetric else n_x + n_y - 1
    column_begins, diagonal_begins = (np.concatenate([[0], np.cumsum(counts)]) for counts in (n_x, diagonals))
    shapes = np.empty((len(n_x), 6), np.int32)
    shapes[:, 0], shapes[:, 2] = np.repeat(begin_x, n_radii), np.repeat(begin_y, n_radii)
    shapes[:, 1], shapes[:, 3] = n_x, n_y
    shapes[:, 4], shapes[:, 5] = column_begins[:-1], diagonal_begins[:-1]
    return _Layout(n_x, n_y, shapes, column_begins, diagonal_begins)


_BLOCK_CELLS = 1 << 32  # of a block: some tenths of a second on processor cores


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """The lines of the matrices of many series, which are to be counted; blocks are ranges of series."""

    # What all have in common; each has sizes, radii and an exponent of its own.
    matrix: RqaProblem
    # x, y: Columns and rows; the same object where each series is compared with itself.
    x: Side
    y: Side
    # outer, inner: ndarray (series, radii) and the same or None. Radii in the unit of the data.
    outer: NDArray[np.float64]
    inner: NDArray[np.float64] | None
    # Of thresholds that give each column a limit of its own: the problems of each series; else empty.
    own_limits: tuple[tuple[RqaProblem, ...], ...]
    # Edge of a tile where a matrix is counted by itself; the tuned one if None.
    tile: int | None
    # What progress counts.
    unit: str = "series"

    @property
    def total(self) -> int:
        return len(self.x)

    def size(self, block: Block) -> int:
        return len(block)

    @property
    def order(self) -> Ints:
        """Series as blocks take them: those that are counted by themselves come last."""
        return np.concatenate([np.flatnonzero(~self.alone), np.flatnonzero(self.alone)])

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Which series are counted by themselves."""
        if self.own_limits:
            return np.ones(len(self.x), bool)
        return (self.x.points > LONGEST) | (self.y.points > LONGEST)

    @property
    def radii(self) -> int:
        return int(self.outer.shape[1])

    def blocks(self, devices: int = 1) -> list[Block]:
        """As many short series as make some work, to be shared by ``devices``; long ones one by one."""
        short = int(np.count_nonzero(~self.alone))
        if not short:
            return cut(self.total, 1)
        series = self.order[:short]
        cells = float((self.x.points[series].astype(float) * self.y.points[series]).mean()) * self.radii
        blocks = cut(short, rows_of_a_block(short, max(int(_BLOCK_CELLS / cells), 1), devices))
        return blocks + [
            Block(len(blocks) + place, begin, begin + 1) for place, begin in enumerate(range(short, self.total))
        ]

    @property
    def operations(self) -> float:
        longest = replace(self.matrix, n_rows=1, n_columns=1)
        return float((self.x.points.astype(float) * self.y.points).sum()) * self.radii * operations(longest)

    def matrix_of(self, number: int) -> RqaProblem:
        """The problem of one series, without radii."""
        return replace(
            self.matrix, n_rows=int(self.y.points[number]), n_columns=int(self.x.points[number]),
            exponent=int(self.x.exponents[number]), inner=None,
        )  # fmt: skip

    def limits(self, series: Ints) -> NDArray[np.float64]:
        """Outer and inner limits of some series (series, radii, 2), as :meth:`RqaProblem.limits_of` gives them."""
        out = np.full((len(series), self.radii, 2), -1.0)
        exponents = self.x.exponents[series]
        for exponent in np.unique(exponents):
            mine = exponents == exponent
            matrix = replace(self.matrix, exponent=int(exponent))
            for place, radii in enumerate((self.outer, self.inner)):
                if radii is not None:
                    limits = matrix.limits_of(radii[series[mine]])
                    out[mine, :, place] = limits
        return out

    def open(self, executor: Executor) -> BatchEngine:
        return BatchEngine(self, executor)


class BatchEngine:
    """The engine of :class:`BatchProblem`; it holds no memory on the device between blocks."""

    def __init__(self, problem: BatchProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._order, self._short = problem.order, int(np.count_nonzero(~problem.alone))
        self._sweep: BatchSweep | None = None
        if self._short:
            inner = None if problem.inner is None else ()
            self._sweep = BatchSweep(executor, replace(problem.matrix, inner=inner), problem.x, problem.y)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """BatchCounts of the block's series, radius by radius."""
        series = self._order[block.begin : block.end]
        if self._sweep is not None and block.begin < self._short:
            counts = self._sweep.counts(series, self._problem.limits(series))
        else:
            counts = BatchCounts.joined([self._alone(int(number)) for number in series])
        report(len(block))
        return BlockResult(counts, Record())

    def _alone(self, number: int) -> BatchCounts:
        p = self._problem
        alike: dict[int, Any] = {}
        for problem, places in self._passes(number):
            rows, columns = p.y.of(number), p.x.of(number)
            other = None if problem.symmetric else columns.values
            require_precision(self._executor.info, problem)
            sweep = TileSweep(self._executor, problem, rows.values, other, p.tile)
            try:
                counts = sweep.counts(functools.partial(identity_line, problem, rows.values))
            finally:
                sweep.release()
            alike |= zip(places, require_consistent([self._executor.info], problem, counts), strict=True)
        halved = p.matrix.symmetric and not p.own_limits
        return BatchCounts.of_counts([alike[place] for place in range(p.radii)], halved)

    def _passes(self, number: int) -> list[tuple[RqaProblem, list[int]]]:
        """Sweeps over a single matrix, and the places of their radii among those asked for."""
        p = self._problem
        if p.own_limits:
            return [(problem, [place]) for place, problem in enumerate(p.own_limits[number])]
        outer = p.outer[number].tolist()
        inner = None if p.inner is None else p.inner[number].tolist()
        places = sorted(range(p.radii), key=lambda at: outer[at])
        radii = tuple(outer[at] for at in places)
        lower = None if inner is None else tuple(inner[at] for at in places)
        return [(replace(p.matrix_of(number), radii=radii, inner=lower), places)]

    def release(self) -> None:
        """Nothing is held."""
