"""Counts of many short matrices from one launch, or from as few as keep launches short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..device.quirks import quirks_for
from ..errors import DeviceMemoryError
from ..kernels import spec
from ..launch.invariants import wrong_result
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from .batch_counts import BatchCounts
from .batch_sides import Ints, Side
from .guard_band import guard_band, value_error
from .metrics import metric_named
from .problem import require_precision

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor, Kernel
    from .problem import RqaProblem

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
    executor : Executor
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
    """Where each matrix of a launch has its points and its counts.

    Attributes
    ----------
    n_x, n_y : ndarray (n_matrices,)
        Points of its columns and of its rows.
    shapes : ndarray (n_matrices, 6)
        What the kernel is told of it: begin and number of the points of x, the same of y, and the first element of its
        counts of columns and of diagonals.
    column_begins, diagonal_begins : ndarray (n_matrices + 1,)
        Where these counts begin, and the end of the last.
    """

    n_x: Ints
    n_y: Ints
    shapes: NDArray[np.int32]
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
