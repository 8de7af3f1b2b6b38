"""Divide and recombine: a recurrence matrix cut into rows for devices and tiles, and its counts put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..jobs.runner import LocalRunner, Runner
from ..jobs.sinks import ListSink
from ..launch.invariants import wrong_result
from .counts import Counts
from .device_join import DeviceJoin
from .partial import Partial, finish, in_order, join
from .problem import RqaProblem, require_precision
from .sweep import TileSweep

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


@dataclass(frozen=True)
class CountingProblem:
    """The lines of a recurrence matrix, which are to be counted; blocks are ranges of rows.

    Attributes
    ----------
    matrix : RqaProblem
    x, y : ndarray or tuple of ndarray
        Series (n,) or points (n, features) of the rows and of the columns; ``y`` None where the matrix is symmetric,
        pairs where it is joint.
    tile : int or None
        Edge of a tile, in cells; the tuned one if None. Counts do not depend on it.
    partial : bool
        Blocks give a :class:`Partial` for each radius, to be combined; else there is one block, with all rows, which
        gives :class:`Counts`.
    """

    matrix: RqaProblem
    x: Any
    y: Any
    tile: int | None
    partial: bool

    @property
    def unit(self) -> str:
        return "cells"

    @property
    def total(self) -> int:
        return self.cells(0, self.matrix.n_rows)

    def size(self, block: Block) -> int:
        return self.cells(block.begin, block.end)

    def cells(self, begin: int, end: int) -> int:
        """Cells of rows ``begin`` to ``end`` that are looked at: those on and above a symmetric matrix's diagonal."""
        every = (end - begin) * self.matrix.n_columns
        if not self.matrix.symmetric:
            return every
        return every - (end * (end - 1) - begin * (begin - 1)) // 2

    @property
    def operations(self) -> float:
        return operations(self.matrix)

    def blocks(self, parts: int) -> list[Block]:
        """At most ``parts`` ranges of rows with about the same number of cells."""
        return [Block(number, *rows) for number, rows in enumerate(split_rows(self.matrix, parts))]

    def open(self, executor: Executor) -> CountingEngine:
        return CountingEngine(self, executor)


class CountingEngine:
    """The engine of :class:`CountingProblem`: tiles of the matrix on a device."""

    def __init__(self, problem: CountingProblem, executor: Executor) -> None:
        self._problem = problem
        require_precision(executor.info, problem.matrix)
        self._sweep = TileSweep(executor, problem.matrix, problem.x, problem.y, problem.tile)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list: for each radius a Partial of the block's rows, or the Counts of all rows."""
        p, record = self._problem, Record(self._sweep.used)
        if p.partial:
            return BlockResult(self._sweep.run(block.begin, block.end, report), record)
        return BlockResult(self._sweep.counts(lambda radius: identity_line(p.matrix, p.x, radius), report), record)

    def release(self) -> None:
        """Give the device memory back."""
        self._sweep.release()


def operations(matrix: RqaProblem) -> float:
    """Arithmetic operations of a sweep over a matrix, roughly."""
    cells = float(matrix.n_rows) * matrix.n_columns / (2 if matrix.symmetric else 1)
    return cells * (3 * matrix.coordinates + 12)


def quantify(
    executors: Executor | Sequence[Executor], problem: RqaProblem, x: Any, y: Any = None, *, tile: int | None = None
) -> list[Counts]:
    """Count the lines of a recurrence matrix; :mod:`pyedmcl.launch.progress` hears how many cells are done.

    Parameters
    ----------
    executors : Executor or sequence of Executor
        Devices; each takes a part of the rows. The counts are the same for any number of them.
    problem : RqaProblem
    x, y, tile
        As for :class:`CountingProblem`.

    Returns
    -------
    list of Counts
        One for each radius.

    Raises
    ------
    DeviceMemoryError
        Not even a small tile fits; nothing is ever left out.
    """
    return counted(LocalRunner(executors if isinstance(executors, Sequence) else [executors]), problem, x, y, tile=tile)


def counted(runner: Runner, problem: RqaProblem, x: Any, y: Any = None, *, tile: int | None = None) -> list[Counts]:
    """As :func:`quantify`, by any runner."""
    counting = CountingProblem(problem, x, y, tile, partial=runner.devices > 1)
    sink = ListSink(counting.blocks(runner.devices))
    runner.run(counting, sink)
    results: list[Any] = sink.results()
    if not counting.partial:
        return require_consistent(runner.infos, problem, results[0])
    executor = runner.executors[0] if isinstance(runner, LocalRunner) else None
    return require_consistent(runner.infos, problem, combine(problem, results, x, executor))


def combine(
    problem: RqaProblem, parts: Sequence[Sequence[Partial]], x: Any, executor: Executor | None = None
) -> list[Counts]:
    """Counts of each radius from parts that cover all rows, in any order; by a device where one has room for them.

    Raises ValueError where they do not cover all rows, each once.
    """
    rows = in_order([part[0] for part in parts])
    if (rows[0].begin, rows[-1].end) != (0, problem.n_rows):
        raise ValueError(f"rows {rows[0].begin} to {rows[-1].end} of {problem.n_rows} are there")
    lines = parts[0][0].lines[:, 1].tolist()
    if executor is not None and len(parts) > 1 and DeviceJoin.fits(executor, problem, lines):
        joining = DeviceJoin(executor, problem, lines)
        try:
            return [
                joining.counts([part[radius] for part in parts], identity_line(problem, x, radius))
                for radius in range(problem.n_radii)
            ]
        finally:
            joining.release()
    return [
        finish(
            part, n_rows=problem.n_rows, n_columns=problem.n_columns, symmetric=problem.symmetric,
            theiler=problem.theiler, theiler_everywhere=problem.theiler_everywhere,
            identity=identity_line(problem, x, radius),
        )
        for radius, part in enumerate(join_rows(problem, parts))
    ]  # fmt: skip


def require_consistent(infos: Sequence[DeviceInfo], problem: RqaProblem, counts: list[Counts]) -> list[Counts]:
    """The counts that devices gave. Raises WrongResultError where their lines do not sum to their recurrent cells."""
    for found in counts:
        why = found.contradiction(problem.theiler)
        if why is not None:
            raise wrong_result(infos[0], why)
    return counts


def join_rows(problem: RqaProblem, parts: Sequence[Sequence[Partial]]) -> list[Partial]:
    """One part for each radius from parts of neighbouring rows, in any order."""
    window, k_first = problem.line_window, problem.k_first
    return [join([part[radius] for part in parts], window, k_first) for radius in range(problem.n_radii)]


def split_rows(problem: RqaProblem, parts: int) -> list[tuple[int, int]]:
    """Ranges of rows with about the same number of cells, cut at multiples of 32."""
    n, columns = problem.n_rows, problem.n_columns
    row = np.arange(0, n, 32, dtype=np.float64)
    cells = np.cumsum(np.maximum(columns - row, 1) if problem.symmetric else np.full(len(row), float(columns)))
    shares = cells[-1] * np.arange(1, parts) / parts
    cuts = [0, *(min(32 * (int(c) + 1), n) for c in np.searchsorted(cells, shares)), n]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def identity_line(problem: RqaProblem, x: Any, radius: int) -> NDArray[np.bool_] | None:
    """Recurrent cells of the main diagonal: points without a gap, whose distance to themselves is 0. None where no line
    is on it."""
    if not problem.symmetric or problem.theiler > 0:
        return None
    if problem.joint is not None:
        return _identity_of(problem, x[0], radius) & _identity_of(problem.joint, x[1], radius)
    return _identity_of(problem, x, radius)


def _identity_of(problem: RqaProblem, x: NDArray[Any], radius: int) -> NDArray[np.bool_]:
    outer, inner = problem.outer_limits()[radius], problem.inner_limits()
    inside = outer > 0 if problem.strict else outer >= 0
    if inner is not None:
        inside = bool(inside and (inner[radius] < 0 if problem.strict else inner[radius] <= 0))
    finite = np.isfinite(x).all(axis=1) if x.ndim == 2 else np.isfinite(x)
    complete = np.ones(problem.n_rows, bool)
    for e in range(1 if problem.embedded else problem.m):
        complete &= finite[e * problem.tau : e * problem.tau + problem.n_rows]
    return complete & bool(inside)
