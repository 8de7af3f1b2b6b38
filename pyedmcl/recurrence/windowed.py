"""Recurrence quantification of windows along a series."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget
from ..errors import InputError, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ListSink, Runner, public_function
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import Pacer, wrong_result
from ..series.regular import Windows, require_same_times
from ..series.series import time_of
from ..tuning.parameters import parameters
from . import arguments, remarks, rqa
from .batch_counts import BatchCounts
from .batch_problem import BatchProblem, Side
from .counts import Counts, trimmed
from .engine import identity_line, operations, require_consistent
from .measures import RecurrenceTable
from .points import Embedding, Points, coded, embedding_of, near_one, points_of, same_coordinates
from .problem import RqaProblem, require_precision
from .rqa import Device, Options, Progress
from .sweep import TileSweep
from .thresholds import passes_for

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# Counts of overlapping windows along a series: distances are evaluated once, lines are counted for each window.


_POINTS = 8192  # of a part of the series at least, where it is that long: so that launches are worth their start
_COUNTED = 64 << 20  # bytes of counts fetched at once
_GROUPS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535


@dataclass(frozen=True)
class Part:
    """Windows that are counted together: the first one, how many, and the points they span."""

    first: int
    windows: int
    points: int

    @property
    def words(self) -> int:
        """Words of a row of bits, one to spare."""
        return -(-self.points // 32) + 1


def windows_together(size: int, step: int, windows: int) -> int:
    """Windows that are worth counting together, whatever the device: parts share no work, so that the more they overlap
    beyond a window, the less is evaluated twice."""
    most = (max(2 * size, _POINTS) - size) // step + 1
    return max(min(most, _COUNTED // _bytes_of(size), windows), 1)


def part_size(executor: Executor, size: int, step: int, windows: int, x_bytes: int) -> int:
    """Windows whose bits fit together; 0 where not even those of one do.

    Parameters
    ----------
    size, step, windows : int
        Points of a window, between the starts of two, number of windows.
    x_bytes : int
        What a part's points take at most.
    """
    room = budget(executor.info)

    def fits(count: int) -> bool:
        part = Part(0, count, size + (count - 1) * step)
        bits = 4 * part.words * (part.points + size)
        counted = _bytes_of(size) * count
        return bits + counted + x_bytes <= room.total and max(4 * part.words * part.points, counted) <= room.largest

    if not fits(1):
        return 0
    count = windows_together(size, step, windows)
    while not fits(count):
        count = max(count // 2, 1)
    return count


def _bytes_of(size: int) -> int:
    return 4 * (4 * (size + 1) + 2 * size)


class WindowSweep:
    """Counts windows of ``size`` points, ``step`` apart, of a symmetric problem with one radius.

    Parameters
    ----------
    problem : RqaProblem
        Of a single window.
    x : ndarray
        The whole series or all points, as in :class:`pyedmcl.recurrence.problem.RqaProblem`.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, x: NDArray[Any], step: int) -> None:
        self.executor, self.problem, self.step = executor, problem, step
        with np.errstate(over="ignore"):
            self._x = x.astype(problem.arithmetic, copy=False)
        self._values: dict[str, Any] = {**problem.cell, "strict": problem.strict}
        kernel_spec = spec("recurrence_windows")
        self._values |= parameters(kernel_spec, self._values, executor.info).parameters
        self._kernels = {
            entry: build(executor, kernel_spec, self._values, entry)
            for entry in ("column_bits", "diagonal_bits", "recurrence_windows")
        }
        self._pacers = {entry: Pacer(executor.info) for entry in self._kernels}

    def counts(self, first: int, windows: int) -> list[Counts]:
        """Counts of some windows, at most as many as :func:`part_size` says."""
        return self._part(Part(first, windows, self.problem.n_rows + (windows - 1) * self.step))

    def _part(self, part: Part) -> list[Counts]:
        size = self.problem.n_rows
        begin = part.first * self.step
        lag = 0 if self.problem.embedded else (self.problem.m - 1) * self.problem.tau
        held: list[Buffer] = []
        lanes = self._values["counting_wg"]
        histograms = np.zeros((part.windows, 4, size + 1), np.uint32)
        columns, diagonals = (np.empty((part.windows, size), np.uint32) for _ in range(2))
        sums = np.empty((part.windows, lanes, 4), np.uint64)
        try:
            x = self.executor.upload(np.ascontiguousarray(self._x[begin : begin + part.points + lag]))
            held.append(x)
            held.append(self.executor.allocate(4 * part.words * part.points))
            held.append(self.executor.allocate(4 * part.words * size))
            self._evaluate("column_bits", x, held[1], part, part.points, (2 * size) // 32 + 2)
            self._evaluate("diagonal_bits", x, held[2], part, size, part.words)
            held.append(self.executor.upload(histograms))
            held += [self.executor.allocate(array.nbytes) for array in (columns, diagonals, sums)]
            self._count(held[1:], part)
            for buffer, array in zip(held[3:], (histograms, columns, diagonals, sums), strict=True):
                self.executor.download(buffer, array)
        finally:
            for buffer in held:
                buffer.release()
        # As Counts.contradiction, for all windows at once.
        held_cells = histograms[:, 1].astype(np.int64) @ np.arange(size + 1)
        points = columns.sum(axis=1, dtype=np.int64)
        if (held_cells != points).any():
            wrong = int(np.argmax(held_cells != points))
            raise wrong_result(
                self.executor.info,
                f"vertical lines of {held_cells[wrong]:,} cells in all, where {points[wrong]:,} cells are recurrent "
                "(kernel recurrence_windows)",
            )
        totals = sums.sum(axis=1).astype(np.int64)
        return [self._counts(*found) for found in zip(histograms, columns, diagonals, totals.tolist(), strict=True)]

    def _evaluate(self, entry: str, x: Buffer, bits: Buffer, part: Part, across: int, words: int) -> None:
        """Bits of a part; a launch takes some of its words, or diagonals' words, per row."""
        p, wg = self.problem, self._values["wg"]
        inner = p.inner_limits()
        low, high = (-1.0 if inner is None else inner[0]), p.outer_limits()[0]
        dropped = p.theiler if p.theiler_everywhere else 0
        into = {"columns" if entry == "column_bits" else "diagonals": bits}
        groups = -(-across // wg) * wg
        cost = float(across) * 32 * 4 * self._values["m"]
        pacer, word = self._pacers[entry], 0
        while word < words:
            count = min(pacer.units(cost), words - word, _GROUPS_MOST)
            event = self.executor.launch(
                self._kernels[entry], (groups, count), (wg, 1), x=x, n=part.points, words=part.words, reach=p.n_rows,
                dropped=dropped, inner=low, outer=high, word_begin=word, **into,
            )  # fmt: skip
            pacer.launched(event, cost * count)
            word += count

    def _count(self, buffers: list[Buffer], part: Part) -> None:
        lanes, size = self._values["counting_wg"], self.problem.n_rows
        names = ("columns", "diagonals", "histograms", "per_column", "per_diagonal", "sums")
        held = dict(zip(names, buffers, strict=True))
        kernel, pacer = self._kernels["recurrence_windows"], self._pacers["recurrence_windows"]
        cost = float(size) * size
        window = 0
        while window < part.windows:
            count = min(pacer.units(cost), part.windows - window)
            event = self.executor.launch(
                kernel, (count * lanes,), (lanes,), words=part.words, size=size, step=self.step,
                theiler=self.problem.theiler, first_window=window, **held,
            )  # fmt: skip
            pacer.launched(event, cost * count)
            window += count

    def _counts(
        self, histograms: NDArray[np.uint32], columns: NDArray[np.uint32], diagonals: NDArray[np.uint32],
        totals: list[int],
    ) -> Counts:  # fmt: skip
        size = self.problem.n_rows
        diagonal, vertical, white, border = (trimmed(h) for h in histograms)
        upper = diagonals.astype(np.int64)
        return Counts(
            n_rows=size,
            n_columns=size,
            points=int(columns.sum(dtype=np.int64)),
            diagonals=diagonal,
            verticals=vertical,
            whites=white,
            white_borders=border,
            columns=columns.astype(np.int64),
            per_diagonal=np.concatenate([upper[:0:-1], upper]),
            period_sum=totals[0],
            period_count=totals[1],
            gap_sum=totals[2],
            gap_count=totals[3],
        )


# Windows along a series as a job: the problem, and the engine that counts the lines of some windows.


# Where windows are long and overlap little, dividing each like any matrix takes less time than sharing distances: by
# measurement on two CPU cores both are as fast for 4,000 points every 400 and for 16,000 every 400.
_SHORT, _CLOSE = 2048, 400


@dataclass(frozen=True)
class WindowsProblem:
    """The lines of the recurrence matrix of each window, which are to be counted; blocks are ranges of windows."""

    # Of one window, with one radius.
    matrix: RqaProblem
    # Of the whole series.
    points: Points
    # step, windows: Points between the starts of two windows; their number.
    step: int
    windows: int
    # Edge of a tile where each window is counted by itself; the tuned one if None.
    tile: int | None

    @property
    def unit(self) -> str:
        return "windows"

    @property
    def total(self) -> int:
        return self.windows

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """As many windows as are worth counting together."""
        return cut(self.windows, windows_together(self.matrix.n_rows, self.step, self.windows))

    @property
    def operations(self) -> float:
        return self.windows * operations(self.matrix)

    def values(self, number: int) -> NDArray[Any]:
        """The values that a window is made of, delays included."""
        points, begin = self.points, number * self.step
        lag = 0 if points.embedded else (points.m - 1) * points.tau
        return points.values[begin : begin + self.matrix.n_rows + lag]

    def complete(self, number: int) -> NDArray[np.bool_]:
        """Which points of a window have no gap."""
        begin = number * self.step
        return self.points.complete[begin : begin + self.matrix.n_rows]

    def open(self, executor: Executor) -> WindowsEngine:
        return WindowsEngine(self, executor)


class WindowsEngine:
    """The engine of :class:`WindowsProblem`; it holds no memory on the device between blocks."""

    def __init__(self, problem: WindowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, size, values = problem, problem.matrix.n_rows, problem.points.values
        require_precision(executor.info, p.matrix)
        self._shared: WindowSweep | None = None
        near = size <= _SHORT or p.step <= _CLOSE
        if near:
            self._together = part_size(executor, size, p.step, p.windows, values.nbytes)
            if self._together:
                self._shared = WindowSweep(executor, p.matrix, values, p.step)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list of Counts, one for each window of the block."""
        counts: list[Counts] = []
        while len(counts) < len(block):
            first = block.begin + len(counts)
            if self._shared is not None:
                counts += self._shared.counts(first, min(self._together, block.end - first))
            else:
                counts.append(self._alone(first))
            report(len(counts))
        return BlockResult(counts, Record())

    def _alone(self, number: int) -> Counts:
        p = self._problem
        values = np.ascontiguousarray(p.values(number))
        sweep = TileSweep(self._executor, p.matrix, values, None, p.tile)
        try:
            counts = sweep.counts(lambda radius: identity_line(p.matrix, values, radius))
            return require_consistent([self._executor.info], p.matrix, counts)[0]
        finally:
            sweep.release()

    def release(self) -> None:
        """Nothing is held."""


@public_function
def windowed_rqa(
    x: Any,
    window: int,
    step: int,
    *,
    y: Any = None,
    m: int = 1,
    tau: int = 1,
    radius: Any,
    metric: str = "euclidean",
    theiler: int | str | None = None,
    lmin: int = 2,
    vmin: int = 2,
    wmin: int = 2,
    convention: str = "pyrqa",
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    dtype: str = "float32",
    exact: bool = True,
    tile: int | None = None,
    regular: str | None = None,
    progress: Progress | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> RecurrenceTable:
    """Quantify recurrence within windows that move along a series: how its dynamics change.

    Each window has the result that :func:`pyedmcl.rqa` gives for x[start : start + window] alone. Windows that are
    short or close together share their distances, which are evaluated once for all of them.

    Parameters
    ----------
    x : array_like (n,) or (n, d)
        A series; d series, whose values at one time are one state; or, with ``embedded``, n points of d coordinates.
        NaN marks gaps: a point that touches one recurs with no point and belongs to no cell.
    window : int
        Values of a window (points, with ``embedded``), at most n.
    step : int
        Values between the starts of successive windows. The last window is the last one that lies inside the series.
    y : array_like, optional
        A second series, as long as x: cross recurrence of the windows of both that begin together. Windows that
        overlap then share no distances.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or (float, float)
        One radius, or one corridor.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    theiler : "auto" or int, optional
        Cells with abs(i - j) < theiler are left out: of diagonal lines, or (conventions "recurrenceanalysis" and
        "crqa") of everything. 0 keeps all; 1 leaves out the main diagonal. By default 1 for one series; for cross
        recurrence 0, but 1 with convention "pyrqa", which a warning tells. "auto" is the lag at which the
        autocorrelation of the series falls below 1/e, as smooth series need, and 0 for cross recurrence. Convention
        "accrqa" has no window: 0 and 1 are the same there.
    lmin : int
        Least length of a diagonal line; can be changed on the result.
    vmin : int
        Least length of a vertical line; can be changed on the result.
    wmin : int
        Least length of a white vertical line; can be changed on the result.
    convention : {"pyrqa", "accrqa", "recurrenceanalysis", "crqa", "crqa-2.1"}
        Which tool's rules for the main diagonal, the Theiler window, the threshold at equality and the denominators.
        "crqa" has those of crqa up to 2.0.7, and "crqa-2.1" its newer denominator of the recurrence rate.
    threshold : {"fixed", "corridor"}
        Thresholds that are selected among distances would differ from window to window.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0. That is of the whole series, so that
        windows share scale and radius.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only. Measures are those of the whole series.
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    embedded : bool
        ``x`` (and ``y``) hold points: the columns are the coordinates themselves.
    dtype : {"float32", "float64"}
        What the device computes in.
    exact : bool
        Cells too close to the radius for ``dtype`` are decided in float64: the counts are those of float64 arithmetic,
        the same integers on every device. Otherwise series and radius are rounded to ``dtype``.
    tile : int, optional
        Edge of the parts the matrix is divided into; changes speed and memory, never the counts.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``. Several share the windows.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``. What a radius is found by (thresholds "recurrence_rate" and "neighbours",
        unit "max_distance") is searched by this process.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    RecurrenceTable
        A result per window; ``labels`` are the starts. Each result keeps its counts, some 30 bytes per point of its
        window.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa : the whole series.

    Notes
    -----
    Cost: each pair of points that shares a window is compared once, whatever the overlap.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> table = pyedmcl.windowed_rqa(x, 200, 100, m=2, tau=8, radius=0.2)
    >>> len(table)
    4
    """
    x, y = coded(radius, threshold, x, y, metric=metric, normalize=normalize, radius_unit=radius_unit)
    threshold = arguments.threshold_named(threshold)
    options = rqa.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    if threshold not in ("fixed", "corridor"):
        raise InputError(f"threshold={threshold!r}: windows share one radius; choose 'fixed' or 'corridor'")
    radii, several = arguments.radii_of(
        radius, threshold, strict=options.convention.strict, unit=options.radius_unit
    )
    if several:
        raise InputError(f"radius={shown(radius)}: windows share one radius; call once for each")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    rows, columns = _sides(x, y, embedding, options)
    points = columns
    lag = (embedding.m - 1) * embedding.tau
    values = points.n + lag
    if not lag + 2 <= window <= values:
        raise InputError(
            f"window={window}: a window has at least {lag + 2} values, which give two points, and at most the "
            f"{values} of x"
        )
    size = window - lag
    starts = range(0, points.n - size + 1, step)
    stride = min(step, points.n)  # a longer one leaves one window, too, and may not fit 32 bits
    width = arguments.window(
        theiler, options.convention, size, size, cross=y is not None, series=(points.given,)
    )
    problem = replace(
        rqa.problem_of(rows, None if y is None else columns, options, theiler=width), n_rows=size, n_columns=size
    )
    runner = rqa.runner_of(device, options, client)
    sweep = passes_for(
        runner, problem, options.convention, rows, columns, threshold, radii, unit=options.radius_unit
    )[0]
    if y is None:
        windows = WindowsProblem(sweep.problem, points, stride, len(starts), options.tile)
        sink = ListSink(windows.blocks())
        runner.run(windows, sink)
        counted: list[Counts] = list(itertools.chain.from_iterable(sink.results()))
    else:
        counted = _crossed(runner, sweep.problem, rows, columns, starts, options)
    origin = rqa.provenance(runner, points, options, window=window, step=step)
    results = []
    for start, counts in zip(starts, counted, strict=True):
        complete = tuple(side.complete[start : start + size] for side in (rows, columns))
        results.append(rqa.result_of(counts, sweep.radii[0], problem, options, (complete[0], complete[1]), origin))
    remarks.tell(
        results, threshold, radii * len(results), [rows.given, columns.given], [f"window at {at}" for at in starts]
    )
    time = time_of(x, "x")
    return RecurrenceTable(
        tuple(results), "start", tuple(starts),
        None if time is None or time.dtype.kind == "U" else Windows(window, stride, values).times(time),
    )  # fmt: skip


def _sides(x: Any, y: Any, embedding: Embedding, options: Options) -> tuple[Points, Points]:
    """Rows and columns of the windows; the same points without y."""
    first = second = points_of(x, "x", embedding)
    if y is not None:
        arguments.only_alone(options.convention, "y= (cross recurrence)")
        require_same_times(x=x, y=y)
        second = points_of(y, "y", embedding)
        same_coordinates(first, second)
        if second.n != first.n:
            raise InputError(
                f"y: {second.n} points, and x has {first.n}; windows of both begin together: give series of one window"
            )
    rows, columns = (second, first) if options.convention.columns == "x" else (first, second)
    rows, columns = near_one(options.arithmetic, rows, columns)
    return rows, columns


def _crossed(
    runner: Runner, sweep: RqaProblem, rows: Points, columns: Points, starts: range, options: Options
) -> list[Counts]:
    """Counts of the windows of two series: a batch of matrices whose sides overlap."""
    begins = np.array(starts, np.int64)
    y, x = (Side.of_points(side).windows(begins, sweep.n_rows) for side in (rows, columns))
    outer = np.full((len(begins), 1), sweep.radii[0])
    inner = None if sweep.inner is None else np.full((len(begins), 1), sweep.inner[0])
    problem = BatchProblem(sweep, x, y, outer, inner, (), options.tile, unit="windows")
    sink = ListSink(problem.blocks(runner.devices))
    runner.run(problem, sink)
    counts = BatchCounts.joined(sink.results())
    return [counts.of(number) for number in range(len(counts))]
