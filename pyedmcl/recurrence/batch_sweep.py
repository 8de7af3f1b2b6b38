"""Counts of many short matrices from one launch, or from as few as keep launches short."""

from __future__ import annotations

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
        """Of series that fit the device together."""
        p, n_radii = self.matrix, limits.shape[1]
        held: list[Buffer] = []

        def upload(array: NDArray[Any]) -> Buffer:
            held.append(self.executor.upload(np.ascontiguousarray(array)))
            return held[-1]

        def allocate(nbytes: int) -> Buffer:
            held.append(self.executor.allocate(max(nbytes, 4)))
            return held[-1]

        sides = [self.x] if p.symmetric else [self.x, self.y]
        pieces = [side.piece(series) for side in sides]
        points = [side.points[series] for side in sides]
        shapes, of_columns, of_diagonals = _shapes(
            points[0], points[-1], pieces[0][1], pieces[-1][1], n_radii, symmetric=p.symmetric
        )
        n_x, n_y = np.repeat(points[0], n_radii), np.repeat(points[-1], n_radii)
        compared = self._compared(series, limits)
        screened = compared.shape[1] > 2
        kernel = build(self.executor, spec("recurrence_batch"), {
            **self._values, "screened": screened, "embedded": screened and self.x.embedded,
        })  # fmt: skip
        try:
            with np.errstate(over="ignore"):
                values = [upload(piece.astype(self._real, copy=False)) for piece, _ in pieces]
            steps = [
                piece.shape[1] if side.embedded else side.embedding.tau
                for side, (piece, _) in zip(sides, pieces, strict=True)
            ]
            words = self._scratch_words(series)
            groups = min(self._groups, len(shapes))
            heads, lines = np.empty((len(shapes), 6), np.uint64), int((np.maximum(n_x, n_y) + 1).sum()) * 4
            per_column, per_diagonal = (np.empty(int(of[-1]), np.uint16) for of in (of_columns, of_diagonals))
            buffers = {
                "shapes": upload(shapes), "limits": upload(compared.astype(self._real)),
                "scratch": allocate(4 * words * groups), "taken": upload(np.zeros(2, np.uint32)),
                "heads": allocate(heads.nbytes), "lines": allocate(8 * lines),
                "per_column": allocate(per_column.nbytes), "per_diagonal": allocate(per_diagonal.nbytes),
            }  # fmt: skip
            self._launch(
                kernel, len(shapes), groups, (n_x.astype(float) * n_y).max() * (3 * self.x.coordinates + 12),
                x=values[0], y=values[-1], step_x=steps[0], step_y=steps[-1], scratch_words=words,
                longest=int(max(n_x.max(), n_y.max())), **buffers,
            )  # fmt: skip
            for name, array in (("heads", heads), ("per_column", per_column), ("per_diagonal", per_diagonal)):
                self.executor.download(buffers[name], array)
            taken = self.executor.download(buffers["taken"], np.empty(2, np.uint32))
            line_counts = np.empty((int(taken[1]), 2), np.uint32)
            if len(line_counts):
                self.executor.download(buffers["lines"], line_counts)
        finally:
            for buffer in held:
                buffer.release()
        counts = BatchCounts.of_device(
            np.stack([n_x, n_y], axis=1), p.symmetric, heads, line_counts, per_column, per_diagonal, of_columns,
            of_diagonals,
        )  # fmt: skip
        why = counts.contradiction()
        if why is not None:
            raise wrong_result(self.executor.info, f"{why} (kernel recurrence_batch)")
        return counts

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


def _shapes(
    points_x: Ints, points_y: Ints, begin_x: Ints, begin_y: Ints, n_radii: int, *, symmetric: bool
) -> tuple[NDArray[np.int32], Ints, Ints]:
    """Where each matrix has its points and its counts, and where the counts of columns and of diagonals begin."""
    n_x, n_y = np.repeat(points_x, n_radii), np.repeat(points_y, n_radii)
    diagonals = n_x if symmetric else n_x + n_y - 1
    of_columns, of_diagonals = (np.concatenate([[0], np.cumsum(of)]) for of in (n_x, diagonals))
    shapes = np.empty((len(n_x), 6), np.int32)
    shapes[:, 0], shapes[:, 2] = np.repeat(begin_x, n_radii), np.repeat(begin_y, n_radii)
    shapes[:, 1], shapes[:, 3] = n_x, n_y
    shapes[:, 4], shapes[:, 5] = of_columns[:-1], of_diagonals[:-1]
    return shapes, of_columns, of_diagonals
