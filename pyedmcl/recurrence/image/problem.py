"""Images of recurrence and distance plots as a job: the problem, and the engine that renders rows of pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ...launch.delivery import DeviceRows, Pixels, deliver_counts, deliver_means
from ..engine import operations
from .choose import image_parameters
from .data import Floats, SweepData, complete_at, prepare
from .sweep import ImageSweep, Raster

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..problem import RqaProblem

_BLOCK_PIXELS = 1 << 24  # whose sums the host holds in 128 MB


@dataclass(frozen=True, eq=False)
class ImageProblem:
    """The recurrence plot of a matrix as an image; blocks are ranges of its rows of pixels.

    Pixel (p, q) holds rows floor(p * n_rows / P) to floor((p + 1) * n_rows / P) - 1, and columns likewise.

    Attributes
    ----------
    matrix : RqaProblem
        Not joint, with one radius, which ``mean`` ignores.
    data : SweepData
        Both sides, as kernels read them.
    raster : Raster
        Which cells fall into which pixels.
    mean : bool
        Pixels are mean distances (float64, NaN where a pixel has no cell without a gap); else numbers of recurrent
        cells (int64).
    exponent : int
        Means are multiplied by this power of two, by which the data were divided.
    """

    matrix: RqaProblem
    data: SweepData
    raster: Raster
    mean: bool
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
    matrix : RqaProblem
    x, y : ndarray (n,) or (n_points, n_features)
        Series, or points where the matrix is ``embedded``, of the rows and of the columns; ``y`` None where they are
        the same. NaN for gaps.
    pixels : (int, int)
        Rows and columns of pixels, at most the numbers of points.
    mean, exponent
        As for :class:`ImageProblem`.

    Raises
    ------
    InputError
        The matrix is joint, or has several radii.
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
