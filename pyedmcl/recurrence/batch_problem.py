"""Many matrices as a job: the problem, and the engine that counts the lines of some of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from .batch_counts import BatchCounts
from .batch_sides import Ints, Side
from .batch_sweep import LONGEST, BatchSweep
from .engine import identity_line, operations, require_consistent
from .problem import RqaProblem, require_precision
from .sweep import TileSweep

if TYPE_CHECKING:
    from ..device.executor import Executor

_BLOCK_CELLS = 1 << 32  # of a block: some tenths of a second on processor cores


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """The lines of the matrices of many series, which are to be counted; blocks are ranges of series.

    Attributes
    ----------
    matrix : RqaProblem
        What all have in common; each has sizes, radii and an exponent of its own.
    x, y : Side
        Columns and rows; the same object where each series is compared with itself.
    outer, inner : ndarray (series, radii) and the same or None
        Radii in the unit of the data.
    own_limits : tuple of tuple of RqaProblem
        Of thresholds that give each column a limit of its own: the problems of each series; else empty.
    tile : int or None
        Edge of a tile where a matrix is counted by itself; the tuned one if None.
    unit : str
        What progress counts.
    """

    matrix: RqaProblem
    x: Side
    y: Side
    outer: NDArray[np.float64]
    inner: NDArray[np.float64] | None
    own_limits: tuple[tuple[RqaProblem, ...], ...]
    tile: int | None
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
