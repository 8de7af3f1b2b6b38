"""All-pairs cross mapping within windows along the series as a job: blocks are ranges of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.condition import Prepared
from ...data.series import Series
from ...data.windows import Windows, windows_of
from ...engines.window_map import WindowData, window_skill
from ...errors import InputError, shown
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...neighbors.window_search import Overlapping
from ..shared import arguments
from .pairs import PairsProblem
from .xmap_problem import XmapProblem
from .xmap_windows_result import WindowedMap

if TYPE_CHECKING:
    from ...device.executor import Executor

_BLOCK_CELLS = 1 << 23  # values of the windows of a block
Dims = NDArray[np.int_]


@dataclass(frozen=True)
class WindowsProblem:
    """What jobs of windows have in common: a job of the whole series, and windows in each of which it is to be done.

    Attributes
    ----------
    whole : PairsProblem
        Of the whole series; its E may be None.
    windows : Windows
    """

    unit: ClassVar[str] = "windows"

    whole: Any
    windows: Windows

    @property
    def total(self) -> int:
        return len(self.windows)

    @property
    def operations(self) -> float:
        return float(self.whole.operations * self.total * (self.windows.width / self.windows.n_steps) ** 2)

    def size(self, block: Block) -> int:
        return len(block)

    def cut(self, most: int, devices: int) -> list[Block]:
        """Ranges of at most ``most`` windows, for the given number of devices."""
        return cut(self.total, rows_of_a_block(self.total, max(most, 1), devices), 2)


@dataclass(frozen=True)
class XmapWindowsProblem(WindowsProblem):
    """The map of each window; layers of the result are rho (n_windows, ...) and E (n_windows, n_targets)."""

    whole: XmapProblem

    @property
    def kernels(self) -> tuple[str, ...]:
        return (*self.whole.kernels, "window_knn")

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of windows, to be shared by ``devices``."""
        wide = self.whole.data.series.n_series + self.whole.target_data.series.n_series
        return self.cut(_BLOCK_CELLS // (wide * self.windows.width), devices)

    def open(self, executor: Executor) -> XmapWindowsEngine:
        return XmapWindowsEngine(self, executor)


class XmapWindowsEngine:
    """The engine of :class:`XmapWindowsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: XmapWindowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (windows of the block, n_libraries, n_targets), and E (windows of the block, n_targets)."""
        p, n = self._problem.whole, len(block)
        windows = self._problem.windows
        libraries = windows_side(p.data, windows, block)
        targets = libraries if p.targets is None else windows_side(p.targets, windows, block)
        E, record = window_dimensions(p, self._executor, targets, n)
        rho = np.empty((n, p.data.series.n_series, E.shape[1]), np.dtype(p.data.dtype))
        sides = [side.conditioned.gaps.reshape(n, -1).any(axis=1) for side in (libraries, targets)]
        # Gaps rule out rows of their own window; folds, fits and measures of predictions have engines of their own.
        alone = sides[0] | sides[1] | (p.fits is not None or p.measured or bool(p.folds))
        if not alone.all():
            together = np.flatnonzero(~alone)
            values = _some(libraries, together, n)
            skill, used, searched = window_skill(self._executor, WindowData(
                values, values if p.targets is None else _some(targets, together, n), E[together], p.tau, p.Tp,
                p.exclusion_radius, p.knn, p.search, self._overlapping(libraries, block, together),
            ))  # fmt: skip
            rho[together] = skill
            record = record.joined(Record(used, "", tuple(searched)))
        for window in np.flatnonzero(alone):
            rho[window], new_record = self._alone(libraries, targets, int(window), n, E[window])
            record = record.joined(new_record)
        report(n)
        return BlockResult([rho, E], record)

    def _overlapping(self, libraries: Prepared, block: Block, whole: Dims) -> Overlapping | None:
        """The rows of the libraries that some windows of the block share, unless each window is conditioned anew."""
        p, windows = self._problem.whole, self._problem.windows
        if libraries.conditioned.shift.any() or libraries.conditioned.exponent.any():
            return None
        starts = np.array(windows.starts[block.begin : block.end])[whole]
        rows = p.data.series.values[starts[0] : starts[-1] + windows.width]
        return Overlapping(np.ascontiguousarray(rows, libraries.conditioned.values.dtype), starts - starts[0])

    def _alone(
        self, libraries: Prepared, targets: Prepared, window: int, n: int, E: Dims
    ) -> tuple[NDArray[Any], Record]:
        p = self._problem.whole
        window_problem = replace(
            p, data=_one(libraries, window, n), targets=None if p.targets is None else _one(targets, window, n),
            E=tuple(E.tolist()),
        )  # fmt: skip
        engine = window_problem.open(self._executor)
        try:
            result = engine.block(Block(0, 0, window_problem.total), None, lambda done: None)
        finally:
            engine.release()
        return result.arrays[0], result.record

    def release(self) -> None:
        """Nothing is held."""


def windowed_map(problem: XmapProblem, windows: Any, runner: Runner) -> WindowedMap:
    """The map of each window.

    Raises
    ------
    InputError
        Windows are longer than the series, or too short for a state, a target and a neighbour.
    """
    series, target_series = problem.data.series, problem.target_data.series
    job = XmapWindowsProblem(problem, windows_of(windows, series.n_steps))
    width = job.windows.width
    needed = max((problem.highest - 1) * problem.tau + max(problem.Tp, 0), -problem.Tp) + 2
    if width < needed:
        raise InputError(
            f"windows={shown(windows)}: E={problem.highest}, tau={problem.tau}, Tp={problem.Tp} needs windows of at "
            f"least {needed} rows"
        )
    n = job.total
    rho = arguments.room("windows", (n, series.n_series, target_series.n_series), np.dtype(problem.data.dtype))
    E = np.empty((n, target_series.n_series), np.int64)
    record = runner.run(job, ArraySink(job.blocks(runner.devices), [rho, E]))
    named = {"windows": [width, job.windows.step]}
    used = runner.provenance(job.kernels, record, arguments=problem.arguments() | named)
    return WindowedMap(
        rho, E, series.names, None if problem.targets is None else target_series.names, np.array(job.windows.starts),
        width, job.windows.times(series.time), used, (series.grid, target_series.grid), problem.skill,
    )  # fmt: skip


def windows_side(side: Prepared, windows: Windows, block: Block) -> Prepared:
    """The series of some windows, side by side."""
    values = windows.of(side.series.values, block.begin, block.end)
    starts = windows.starts[block.begin : block.end]
    names = tuple(f"{name} from row {start}" for start in starts for name in side.series.names)
    return Prepared(Series(values, names), side.dtype)


def part_of(side: Prepared, start: int, width: int) -> Prepared:
    """The series within one window."""
    values = np.ascontiguousarray(side.series.values[start : start + width])
    return Prepared(Series(values, side.series.names), side.dtype)


def window_dimensions(problem: PairsProblem, executor: Executor, side: Prepared, n: int) -> tuple[Dims, Record]:
    """E (n windows, n_series), as asked for or by the skill of each window's own series predicting themselves."""
    if problem.E is not None:
        return np.tile(np.array(problem.E, int), (n, 1)), Record()
    stage = replace(problem.first_stage(), data=side)
    engine = stage.open(executor)
    try:
        result = engine.block(Block(0, 0, stage.total), None, lambda done: None)
    finally:
        engine.release()
    searched = tuple({**entry, "for": "E"} for entry in result.record.searched)
    return problem.E_rule.choose(*result.arrays).reshape(n, -1), Record(searched=searched)


def _some(side: Prepared, windows: Dims, n: int) -> NDArray[Any]:
    """Conditioned values of some windows."""
    values = side.conditioned.values
    if len(windows) == n:
        return values
    width = len(values)
    return np.ascontiguousarray(values.reshape(width, n, -1)[:, windows].reshape(width, -1))


def _one(side: Prepared, window: int, n: int) -> Prepared:
    """The series of one window."""
    width = side.series.n_series // n
    columns = slice(window * width, (window + 1) * width)
    values = np.ascontiguousarray(side.series.values[:, columns])
    return Prepared(Series(values, side.series.names[columns]), side.dtype)
