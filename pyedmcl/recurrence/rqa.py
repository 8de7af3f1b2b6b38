"""Recurrence quantification of one series, of two against each other, and of two systems jointly."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..atomic_files import path_of
from ..device.select import DeviceNames, open_devices
from ..errors import InputError
from ..jobs import blocks
from ..jobs.claims import begin_of
from ..jobs.client import ClientRunner
from ..jobs.runner import LocalRunner, Runner, public_function
from ..launch import progress
from ..series.regular import require_same_times, tell_other_steps
from . import arguments, remarks
from .arguments import Convention, unit_named
from .engine import counted
from .measures import RecurrenceResult, RecurrenceTable
from .points import Points, coded, embedding_of, near_one, points_of, same_coordinates
from .problem import RqaProblem
from .thresholds import RqaPass, passes_for

if TYPE_CHECKING:
    from .counts import Counts


# The common path of all recurrence functions: points and options -> problem -> counts -> results.


Progress = progress.Progress
Device = DeviceNames
Checkpoint = str | os.PathLike[str] | None
SWEEP = ("recurrence_bits", "recurrence_transpose", "recurrence_lines")


@dataclass(frozen=True)
class Options:
    """Checked options that all recurrence functions share."""

    convention: Convention
    lmin: int
    vmin: int
    wmin: int
    dtype: str
    exact: bool
    tile: int | None
    radius_unit: str = "data"

    @property
    def arithmetic(self) -> str:
        """The precision that decides which cells are recurrent."""
        return "float64" if self.exact else self.dtype


def options_of(
    *, convention: Any, lmin: Any, vmin: Any, wmin: Any, dtype: Any, exact: Any, tile: Any,
    radius_unit: Any = "data", threshold: str = "fixed",
) -> Options:
    """Check them; see :func:`pyedmcl.recurrence.rqa.rqa`."""
    from .arguments import convention_named

    return Options(
        convention_named(convention),
        lmin,
        vmin,
        wmin,
        dtype,
        exact,
        tile,
        unit_named(radius_unit, threshold),
    )


def runner_of(device: Device, options: Options, client: Any = None) -> Runner:
    """What runs jobs on the named devices, those of the workers of ``client`` where it is given.

    Each must compute in what the options ask for.
    """
    runner: Runner = LocalRunner(open_devices(device)) if client is None else ClientRunner(client, device)
    for info in runner.infos:
        arguments.precision(options.dtype, info.fp64, info.name)
    return runner


def problem_of(
    rows: Points, columns: Points | None, options: Options, *, theiler: int
) -> RqaProblem:
    """The problem of two sides (``columns`` None: of one series with itself), radii still to come."""
    other = rows if columns is None else columns
    return RqaProblem(
        m=rows.m, tau=rows.tau, metric=rows.embedding.metric.name, dtype=options.dtype,
        exact=options.exact, radii=(), inner=None, strict=options.convention.strict, theiler=theiler,
        theiler_everywhere=options.convention.theiler_everywhere, n_rows=rows.n, n_columns=other.n,
        symmetric=columns is None, embedded=rows.embedded, n_features=rows.n_features, exponent=rows.exponent,
    )  # fmt: skip


def count(
    runner: Runner, problem: RqaProblem, rows: Any, columns: Any, options: Options,
    checkpoint: Checkpoint = None, begin: float | None = None,
) -> list[Counts]:  # fmt: skip
    """Counts of each radius: the one way from here to the devices.

    ``rows`` and ``columns`` are :class:`Points`, or pairs of them for a joint problem. ``begin`` is where a process
    begins that shares the folder ``checkpoint`` with others.
    """
    if problem.joint is None:
        x, y = rows.values, columns.values
    else:
        x, y = tuple(side.values for side in rows), tuple(side.values for side in columns)
    other = None if problem.symmetric else y
    if checkpoint is not None and begin is not None:
        from .engine import quantify_joined

        folder = path_of(checkpoint, "checkpoint")
        return quantify_joined(folder, begin, runner, problem, x, other, tile=options.tile)
    if checkpoint is not None:
        from .engine import quantify_with_checkpoint

        return quantify_with_checkpoint(checkpoint, runner, problem, x, other, tile=options.tile)
    return counted(runner, problem, x, other, tile=options.tile)


def one_pass(passes: Sequence[Any], checkpoint: Checkpoint, *, join: bool = False) -> None:
    """Refuse what names no file (to ``join``, no folder), and a checkpoint for several sweeps: it holds one."""
    if checkpoint is not None:
        checkpoint = path_of(checkpoint, "checkpoint")
    if checkpoint is not None and join and os.path.exists(checkpoint) and not os.path.isdir(checkpoint):
        raise InputError(f"checkpoint={str(checkpoint)!r} is a file; processes that join share a folder: name one")
    if checkpoint is not None and not join and os.path.isdir(checkpoint):
        raise InputError(f"checkpoint={str(checkpoint)!r} is a folder; name a file in it")
    if checkpoint is not None and len(passes) > 1:
        raise InputError(
            f"checkpoint={str(checkpoint)!r}: {len(passes)} sweeps are needed for these thresholds, and a checkpoint "
            "holds one; call once for each, with one of its own"
        )


def result_of(
    counts: Counts, radius: Any, problem: RqaProblem, options: Options, complete: tuple[NDArray[Any], NDArray[Any]],
    origin: dict[str, Any],
) -> RecurrenceResult:  # fmt: skip
    """The frozen result of one matrix.

    Parameters
    ----------
    complete : (ndarray of bool, ndarray of bool)
        Which points of the rows and of the columns have no gap.
    origin : dict
        From :func:`provenance`; results of one call may share it, each has a copy.
    """
    return RecurrenceResult(
        counts=counts,
        convention=options.convention,
        radius=radius,
        theiler=problem.theiler,
        lmin=options.lmin,
        vmin=options.vmin,
        wmin=options.wmin,
        complete=complete,
        symmetric=problem.symmetric,
        provenance=dict(origin),
    )


def provenance(runner: Runner, points: Points, options: Options, **more: Any) -> dict[str, Any]:
    """What would be needed to get the same counts again; see :func:`pyedmcl.jobs.blocks.provenance`."""
    return blocks.provenance(
        runner.infos, runner.tuning or SWEEP, runner.tuning, **points.embedding.described, dtype=options.dtype,
        exact=options.exact, convention=options.convention.name, tile=options.tile,
        radius_unit=options.radius_unit, **more,
    )  # fmt: skip


@public_function
def rqa(
    x: Any,
    y: Any = None,
    *,
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
    checkpoint: Checkpoint = None,
    join: bool = False,
    part: str | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> RecurrenceResult | RecurrenceTable:
    """Quantify recurrence: how often, how long and how regularly states come back.

    Point t of a series is (x[t], x[t + tau], ..., x[t + (m-1) tau]); two points recur where their distance is below
    the radius. Lines of the matrix of all pairs are counted by length, exactly and without holding the matrix
    (Marwan et al., Physics Reports 438, 237, 2007).

    Parameters
    ----------
    x : array_like (n,) or (n, d)
        A series; d series, whose values at one time are one state; or, with ``embedded``, n points of d coordinates.
        NaN marks gaps: a point that touches one recurs with no point and belongs to no cell.
    y : array_like, optional
        A second series, of another length perhaps: cross recurrence of the points of x and y. The plot has x along its
        horizontal axis, so that vertical lines stay at one point of x (of y with convention "recurrenceanalysis").
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or sequence
        By ``threshold``: a radius in the unit of the data; a pair (inner, outer); a recurrence rate in (0, 1); a number
        of neighbours. A sequence gives a table with a result for each; radii share one pass.
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
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        What ``radius`` holds. "corridor": recurrent is inner < d < outer. "recurrence_rate": the smallest radius at
        which the rate is reached. "neighbours": each column has its own radius, which holds as many recurrent points
        outside the Theiler window (outside the main diagonal for theiler = 0), and more only where distances tie.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only.
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
    checkpoint : path, optional
        A file for very long runs: finished rows are kept there, and the same call continues behind them after it was
        killed. The counts are the same however often that happens.
    join : bool
        Several processes, on any machines that share the **folder** ``checkpoint``, count together: each takes bands of
        rows that nobody has taken, and returns when all are done. See ``docs/scale.md``.
    part : str, optional
        "I/N": this process is the I-th (from 1) of N that join, and begins at its share of the blocks; it goes on with
        what others leave. Implies ``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
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
    RecurrenceResult or RecurrenceTable
        A table where ``radius`` is a sequence.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    DeviceMemoryError
        Even the smallest tile does not fit.
    StoreError
        The checkpoint cannot be used or written; the subclass says why.
    Interrupted
        Ctrl-C during a run with a checkpoint.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    recurrence_plot : the picture.
    windowed_rqa : windows along a series.
    joint_rqa : two series that recur together.
    recurrence_network : degree and clustering.

    Notes
    -----
    Cost: all pairs of points are compared once for all radii: about n^2 * m / 2 multiply-adds; memory grows with n.
    With "recurrence_rate" they are compared once more, in the precision that decides, for all rates together, which
    takes one to two times as long again (``bench/rates.py``).

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.rqa(x, m=2, tau=8, radius=0.2)
    >>> result.determinism > 0.99  # a periodic series: nearly all recurrent points lie on diagonal lines
    True
    >>> [r.recurrence_rate for r in pyedmcl.rqa(x, m=2, tau=8, radius=[0.1, 0.2])][1] == result.recurrence_rate
    True
    """
    x, y = coded(radius, threshold, x, y, metric=metric, normalize=normalize, radius_unit=radius_unit)
    threshold = arguments.threshold_named(threshold)
    options = options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    begin = begin_of(join, part, checkpoint, "checkpoint")
    radii, several = arguments.radii_of(
        radius, threshold, strict=options.convention.strict, unit=options.radius_unit
    )
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    first = points_of(x, "x", embedding)
    rows, columns = first, first
    if y is not None:
        arguments.only_alone(options.convention, "y= (cross recurrence)")
        tell_other_steps(x, y)
        second = points_of(y, "y", embedding)
        same_coordinates(first, second)
        rows, columns = (second, first) if options.convention.columns == "x" else (first, second)
    rows, columns = near_one(options.arithmetic, rows, columns)
    window = arguments.window(
        theiler, options.convention, rows.n, columns.n, cross=y is not None, series=(rows.given,)
    )
    problem = problem_of(rows, None if y is None else columns, options, theiler=window)
    runner = runner_of(device, options, client)
    results: dict[int, RecurrenceResult] = {}
    passes = passes_for(
        runner, problem, options.convention, rows, columns, threshold, radii, unit=options.radius_unit
    )
    one_pass(passes, checkpoint, join=begin is not None)
    for sweep in passes:
        counted = count(runner, sweep.problem, rows, columns, options, checkpoint, begin)
        for counts, reported, place in zip(counted, sweep.radii, sweep.order, strict=True):
            origin = provenance(runner, rows, options, threshold=threshold, wanted=radii[place])
            complete = rows.complete, columns.complete
            results[place] = result_of(counts, reported, problem, options, complete, origin)
    ordered = tuple(results[place] for place in range(len(radii)))
    remarks.tell(ordered, threshold, radii, [first.given] if y is None else [first.given, second.given])
    return RecurrenceTable(ordered, "radius", tuple(radii)) if several else ordered[0]


# Joint recurrence: two systems, each in its own space, that come back at the same pairs of times.


@public_function
def joint_rqa(
    x: Any,
    y: Any,
    *,
    m: int = 1,
    tau: int = 1,
    radius: Any,
    metric: str = "euclidean",
    m_y: int | None = None,
    tau_y: int | None = None,
    radius_y: Any = None,
    metric_y: str | None = None,
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
    checkpoint: Checkpoint = None,
    join: bool = False,
    part: str | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> RecurrenceResult | RecurrenceTable:
    """Quantify joint recurrence: cell (i, j) is recurrent where x recurs at times i and j and y does so too.

    The two series may differ in what they measure, in embedding, radius and metric, but not in the number of points
    (Romano et al., Physics Letters A 330, 214, 2004).

    Parameters
    ----------
    x, y : array_like
        As ``x`` of :func:`pyedmcl.rqa`; they must give equally many points.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or sequence
        By ``threshold``: a radius in the unit of the data; a pair (inner, outer); a recurrence rate in (0, 1); a number
        of neighbours. A sequence gives a table with a result for each; radii share one pass.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    m_y : int, optional
        Embedding dimension of y; that of x by default.
    tau_y : int, optional
        Lag of y; that of x by default.
    radius_y : float or sequence, optional
        Radius of y; that of x by default.
    metric_y : str, optional
        Metric of y; that of x by default.
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
        "crqa" has those of crqa up to 2.0.7, and "crqa-2.1" its newer denominator of the recurrence rate. "accrqa" has
        no joint recurrence.
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        What ``radius`` holds. "corridor": recurrent is inner < d < outer. "recurrence_rate": the smallest radius at
        which the rate is reached. "neighbours": each column has its own radius, which holds as many recurrent points
        outside the Theiler window (outside the main diagonal for theiler = 0), and more only where distances tie.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only. ``radius`` is measured by the spread of x, ``radius_y`` by that of y.
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
    checkpoint : path, optional
        A file for very long runs: finished rows are kept there, and the same call continues behind them after it was
        killed. The counts are the same however often that happens.
    join : bool
        Several processes, on any machines that share the **folder** ``checkpoint``, count together: each takes bands of
        rows that nobody has taken, and returns when all are done. See ``docs/scale.md``.
    part : str, optional
        "I/N": this process is the I-th (from 1) of N that join, and begins at its share of the blocks; it goes on with
        what others leave. Implies ``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
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
    RecurrenceResult or RecurrenceTable
        ``radius`` is that of x. A table where ``radius`` is a sequence.

    Raises
    ------
    InputError
        An argument cannot be used, or x and y give different numbers of points or radii.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa : one series, or two that visit the same states.

    Notes
    -----
    Cost: twice that of :func:`rqa`.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.joint_rqa(x, np.cos(np.arange(500) * 0.2), m=2, tau=8, radius=0.2)
    >>> 0 < result.recurrence_rate < 0.2
    True
    """
    if y is not None:
        require_same_times(x=x, y=y)
    scales = {"normalize": normalize, "radius_unit": radius_unit}
    (x,) = coded(radius, threshold, x, metric=metric, **scales)  # compared with itself alone, as y is
    (y,) = coded(
        radius if radius_y is None else radius_y, threshold, y, metric=metric if metric_y is None else metric_y,
        **scales,
    )
    threshold = arguments.threshold_named(threshold)
    options = options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.only_alone(options.convention, "joint_rqa")
    begin = begin_of(join, part, checkpoint, "checkpoint")
    given: dict[str, Any] = {"strict": options.convention.strict, "unit": options.radius_unit}
    radii, several = arguments.radii_of(radius, threshold, **given)
    radii_y = radii if radius_y is None else arguments.radii_of(radius_y, threshold, "radius_y", **given)[0]
    if len(radii) != len(radii_y):
        raise InputError(f"radius_y: {len(radii_y)} entries, but radius has {len(radii)}; give as many")
    if y is None:
        raise InputError("y=None: joint recurrence is of two series; rqa(x) is that of one")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    embedding_y = embedding_of(
        m=m if m_y is None else m_y, tau=tau if tau_y is None else tau_y, embedded=embedded,
        metric=metric if metric_y is None else metric_y, normalize=normalize,
        suffix="" if m_y is None and tau_y is None and metric_y is None else "_y", state=state,
    )  # fmt: skip
    first, second = (
        near_one(options.arithmetic, points_of(data, what, own))[0]
        for data, what, own in ((x, "x", embedding), (y, "y", embedding_y))
    )
    if first.n != second.n:
        raise InputError(
            f"y: joint recurrence needs as many points as x has, {first.n}, there are {second.n} (a series of n values "
            "has n - (m-1) tau points); shorten the longer one"
        )
    window = arguments.window(
        theiler, options.convention, first.n, first.n, series=(first.given, second.given)
    )
    alone = [problem_of(points, None, options, theiler=window) for points in (first, second)]
    runner = runner_of(device, options, client)
    sides = [
        passes_for(
            runner, problem, options.convention, points, points, threshold, own, name=name,
            unit=options.radius_unit,
        )
        for problem, points, own, name in zip(
            alone, (first, second), (radii, radii_y), ("radius", "radius_y"), strict=True
        )
    ]
    complete = first.complete & second.complete
    results: dict[int, RecurrenceResult] = {}
    passes = _joined(*sides)
    one_pass(passes, checkpoint, join=begin is not None)
    for sweep in passes:
        pair = (first, second)
        counted = count(runner, sweep.problem, pair, pair, options, checkpoint, begin)
        for counts, reported, place in zip(counted, sweep.radii, sweep.order, strict=True):
            origin = provenance(
                runner, first, options,
                threshold=threshold, wanted=radii[place], wanted_y=radii_y[place], y=embedding_y.described,
            )  # fmt: skip
            results[place] = result_of(counts, reported, alone[0], options, (complete, complete), origin)
    ordered = tuple(results[place] for place in range(len(radii)))
    if threshold != "recurrence_rate":  # which is that of each side by itself
        remarks.tell(ordered, threshold, radii, [first.given, second.given])
    return RecurrenceTable(ordered, "radius", tuple(radii)) if several else ordered[0]


def _joined(x: Sequence[RqaPass], y: Sequence[RqaPass]) -> list[RqaPass]:
    """Passes of joint problems: together where the radii of both ascend in the same order, else one by one."""
    if [sweep.order for sweep in x] == [sweep.order for sweep in y]:
        return [replace(a, problem=replace(a.problem, joint=b.problem)) for a, b in zip(x, y, strict=True)]
    second = {place: _single(sweep, rank) for sweep in y for rank, place in enumerate(sweep.order)}
    joined = []
    for sweep in x:
        for rank, place in enumerate(sweep.order):
            problem = replace(_single(sweep, rank), joint=second[place])
            joined.append(RqaPass(problem, (sweep.radii[rank],), (place,)))
    return joined


def _single(sweep: RqaPass, rank: int) -> RqaProblem:
    p = sweep.problem
    return replace(
        p,
        radii=(p.radii[rank],),
        inner=None if p.inner is None else (p.inner[rank],),
    )
