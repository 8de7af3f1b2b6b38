"""Maps of all pairs as jobs: their problem, by each measure, over all rows or within windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..engines.crossmap import CrossMap, WindowData, whole_map, window_skill
from ..engines.predict import PairPredictions
from ..errors import InputError, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..jobs.runner import ArraySink, Runner
from ..search.searcher import Overlapping
from ..series.regular import Windows, windows_of
from ..series.scaling import Prepared
from ..series.series import Series
from ..states import arguments
from ..states.arguments import measure, operations
from ..states.rows import MapRows, arguments_of_folds
from .linear_fits import LinearFits, MapCells, SmapXmapEngine
from .pairs import PairOptions, PairsProblem, map_data
from .results import WindowedMap

if TYPE_CHECKING:
    from ..device.executor import Executor


# Maps of other measures than Pearson's rho, and of predictions themselves: pair by pair, in blocks of libraries.


Doubles = NDArray[np.float64]
KERNELS = ("knn", "predict")
#: Libraries of a block: their tables and predictions are on the device together.
BLOCK_LIBRARIES = 64
_ROWS = 64  # predictions that are measured together


class MeasuredXmapEngine:
    """The engine of an :class:`~pyedmcl.crossmap.problem.XmapProblem` whose predictions are looked at on the host.

    It holds nothing on the device between blocks.
    """

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill (libraries of the block, n_targets), of each fold where that is asked for, and predictions.

        Predictions are (libraries of the block, n_targets, n_steps); of folds, each row's from the other folds.
        """
        p, record, done = self._problem, Record(), 0
        shape = len(block), p.target_data.series.n_series
        if into is None:
            dtype, made = np.dtype(p.data.dtype), len(block.layers) - p.predictions
            wide = (*shape, p.target_data.series.n_steps)
            into = [np.empty(shape if layer < made else wide, dtype) for layer in block.layers]
        predictions = into[-1] if p.predictions else None
        if predictions is not None:
            predictions[...] = np.nan
        of_folds: list[Doubles] = []
        for rows in p.folds or (p.rows,):
            of_folds.append(np.empty(shape))
            record = record.joined(self._measure(block, rows, _Found(p, of_folds[-1], predictions, rows)))
            done += len(block)
            report(done // max(len(p.folds), 1))
        for layer, skill in zip(into[1:], of_folds if p.each_fold else (), strict=False):
            layer[...] = skill
        into[0][...] = np.mean(of_folds, axis=0)
        return BlockResult(list(into), record)

    def _measure(self, block: Block, rows: MapRows | None, found: _Found) -> Record:
        """Have what is found of one choice of rows be put in its place."""
        p, record = self._problem, Record()
        libraries = p.data.series.values[:, block.begin : block.end]
        libraries = np.where(p.data.stateless[block.begin : block.end], np.nan, libraries)
        targets, E = p.target_data.series.values, np.array(p.E, int)
        for dim in np.unique(E).tolist():
            columns = np.flatnonzero(dim == E)
            n, options = len(targets), PairOptions(p.tau, p.exclusion_radius, p.knn, p.data.dtype)
            library_mask = None if rows is None else rows.library_mask(n, dim, p.tau, p.Tp)
            engine = PairPredictions(
                self._executor, libraries, targets[:, columns], options.search(dim, p.Tp, n), p.search, library_mask
            )
            pairs = [(i, j) for i in range(len(block)) for j in range(len(columns))]
            held: list[tuple[int, int]] = []
            made = []
            try:
                for number, predicted in engine.predict(pairs):
                    held.append((pairs[number][0], int(columns[pairs[number][1]])))
                    made.append(predicted)
                    if len(made) == _ROWS:
                        found.put(held, made)
                        held, made = [], []
                if made:
                    found.put(held, made)
                record = record.joined(Record(engine.parameters, "", tuple(engine.searched)))
            finally:
                engine.release()
        return record

    def release(self) -> None:
        """Nothing is held."""


class _Found:
    """Skill and predictions of one choice of rows, on their way into the arrays of a block.

    Parameters
    ----------
    skill : ndarray (libraries of the block, n_targets)
    predictions : ndarray (libraries of the block, n_targets, n_steps) or None
    """

    def __init__(
        self, problem: XmapProblem, skill: Doubles, predictions: NDArray[Any] | None, rows: MapRows | None
    ) -> None:
        self._measure, self._skill, self._predictions = problem.skill, skill, predictions
        self._observed = problem.target_data.series.values
        self._asked: NDArray[np.bool_] | None = None
        if rows is not None:  # predictions stand where the predicted rows lead to
            n, Tp = len(self._observed), problem.Tp
            self._asked = np.zeros(n, bool)
            led_to = np.flatnonzero(rows.predicted_mask(n)) + Tp
            self._asked[led_to[(led_to >= 0) & (led_to < n)]] = True

    def put(self, pairs: Sequence[tuple[int, int]], predictions: Sequence[Doubles]) -> None:
        """Predictions of some pairs (library, target)."""
        (libraries, targets), predicted = np.array(pairs).T, np.array(predictions)
        if self._asked is not None:
            predicted[:, ~self._asked] = np.nan
        self._skill[libraries, targets] = measure(self._measure, predicted, self._observed[:, targets].T)
        if self._predictions is None:
            return
        if self._asked is None:
            self._predictions[libraries, targets] = predicted
        else:
            rows = np.flatnonzero(self._asked)
            self._predictions[libraries[:, None], targets[:, None], rows] = predicted[:, rows]


# All-pairs cross mapping as a job: the problem, and the engine that computes blocks of libraries.


@dataclass(frozen=True)
class XmapProblem(PairsProblem):
    """Cross-map skill of each series as library against each target."""

    # Libraries of a block.
    block_rows: int
    # How rows are predicted by local linear fits; None where they are predicted by their neighbours.
    fits: LinearFits | None = None
    # Each is predicted from the others, and the map is the mean of theirs.
    folds: tuple[MapRows, ...] = ()
    # Whether the maps of all folds are part of the result, after their mean.
    each_fold: bool = False
    # How predictions are measured.
    skill: str = "pearson"
    # They are a second layer of the result, (n_libraries, n_targets, n_steps).
    predictions: bool = False
    # "full", or "compact": lookups may take targets of 16 bits, and fits be multiplied on matrix units.
    precision: str = "full"

    @property
    def compact(self) -> bool:
        return self.precision == "compact"

    @property
    def measured(self) -> bool:
        """Whether predictions are looked at one by one."""
        return self.skill != "pearson" or self.predictions

    @property
    def kernels(self) -> tuple[str, ...]:
        mapping: tuple[str, ...] = ("stage", "knn", "lookup") if self.fits is None else self.fits.kernels
        mapping += ("compact",) if self.compact and self.fits is None else ()
        mapping = KERNELS if self.measured else mapping
        first_stage = () if self.E_max is None else ("knn", "predict", "skill")
        return mapping + tuple(name for name in first_stage if name not in mapping)

    @property
    def layers(self) -> int:
        """Matrices of the result: several where there are several theta."""
        maps = 1 if self.fits is None else self.fits.layers
        return maps + self.predictions + (len(self.folds) if self.each_fold else 0)

    def own_arguments(self) -> dict[str, Any]:
        named = arguments_of_folds(self.folds) | ({} if self.fits is None else self.fits.arguments())
        named |= {} if self.skill == "pearson" else {"skill": self.skill}
        return named if self.precision == "full" else named | {"precision": self.precision}

    def blocks(self) -> list[Block]:
        rows = min(self.block_rows, BLOCK_LIBRARIES) if self.measured else self.block_rows
        return cut(self.total, rows, self.layers)

    @property
    def operations(self) -> float:
        n, n_targets = self.data.series.n_steps, self.target_data.series.n_series
        once = operations(self.dims, n_library=n, n_query=n, n_series=self.total, n_targets=n_targets)
        if self.fits is not None:
            once = self.fits.operations(n, self.total, n_targets, self.highest)
        return once * max(len(self.folds), 1)

    def open(
        self, executor: Executor
    ) -> XmapEngine | FoldedEngine | SmapXmapEngine | MeasuredXmapEngine:
        if self.measured:
            return MeasuredXmapEngine(self, executor)
        if self.folds:
            return FoldedEngine(self, executor)
        if self.fits is not None:
            return SmapXmapEngine(self, self.fits, executor, self.compact)
        return XmapEngine(self, executor)


class XmapEngine:
    """All libraries and targets on a device."""

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._executor, self._data, self._total = executor, map_data(problem), problem.total
        # What is a block of its own is opened within it.
        self._map = None if len(problem.blocks()) == 1 else CrossMap(executor, self._data)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (libraries of the block, n_targets)."""
        rho: Any = None if into is None else into[0]
        if len(block) == self._total and (rho is None or isinstance(rho, np.ndarray)):
            if rho is None:
                n_targets = (self._data.values if self._data.targets is None else self._data.targets).shape[1]
                rho = np.empty((len(block), n_targets), self._data.values.dtype)
            return BlockResult([rho], whole_map(self._executor, self._data, rho, report))
        if self._map is None:
            self._map = CrossMap(self._executor, self._data)
        rho = self._map.skill(block.begin, block.end, rho, report)
        return BlockResult([rho], Record(self._map.parameters, "", tuple(self._map.searched)))

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()


class FoldedEngine:
    """The mean of the maps of all folds, and these maps where they are asked for."""

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._n = problem.target_data.series.n_series
        self._dtype = np.dtype(problem.data.dtype)
        self._folds = range(len(problem.folds))
        self._cells = MapCells(executor, [replace(problem, rows=fold, folds=()) for fold in problem.folds])

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean rho (libraries of the block, n_targets), then rho of each fold."""
        shape = len(block), self._n
        if into is None:
            into = [np.empty(shape, self._dtype) for _ in block.layers]
        of_folds = into[1:] if len(into) > 1 else [np.empty(shape, self._dtype) for _ in self._folds]
        n = len(self._folds)
        record = self._cells.maps(block.begin, block.end, self._folds, of_folds, lambda done: report(done // n))
        into[0][...] = np.mean(of_folds, axis=0, dtype=np.float64)
        return BlockResult(into, record)

    def release(self) -> None:
        """Give the device memory back."""
        self._cells.release()


# All-pairs cross mapping within windows along the series as a job: blocks are ranges of windows.


_BLOCK_CELLS = 1 << 23  # values of the windows of a block
Dims = NDArray[np.int_]


@dataclass(frozen=True)
class WindowsProblem:
    """What jobs of windows have in common: a job of the whole series, and windows in each of which it is to be done."""

    unit: ClassVar[str] = "windows"

    # Of the whole series; its E may be None.
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
        sides = [gaps.reshape(n, -1).any(axis=1) for gaps in (libraries.libraries.gaps, targets.conditioned.gaps)]
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
    """The map of each window."""
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
    return replace(side, series=Series(values, names))


def part_of(side: Prepared, start: int, width: int) -> Prepared:
    """The series within one window."""
    values = np.ascontiguousarray(side.series.values[start : start + width])
    return replace(side, series=Series(values, side.series.names))


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
    return replace(side, series=Series(values, side.series.names[columns]))
