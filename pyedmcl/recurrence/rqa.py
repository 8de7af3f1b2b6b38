"""Recurrence quantification of one series, or of two against each other."""

from __future__ import annotations

from typing import Any

from ..data.same_rows import tell_other_steps
from ..jobs.function import public_function
from ..jobs.turns import begin_of
from . import arguments, common, remarks
from .categories import coded
from .common import Checkpoint, Device, Progress
from .points import embedding_of, near_one, points_of, same_coordinates
from .result import RecurrenceResult
from .table import RecurrenceTable
from .thresholds import passes_for


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
    m, tau : int
        Embedding dimension and lag, at least 1.
    radius : float or sequence
        By ``threshold``: a radius in the unit of the data; a pair (inner, outer); a recurrence rate in (0, 1); a
        number of neighbours. A sequence gives a table with a result for each; radii share one pass.
    metric : str
        How far apart two points are: "euclidean", "maximum", "manhattan", or another row of the table "Metrics" in
        ``docs/recurrence.md``.
    theiler : int or "auto", optional
        Cells with abs(i - j) < theiler are left out: of diagonal lines, or (conventions "recurrenceanalysis" and
        "crqa") of everything. 0 keeps all; 1 leaves out the main diagonal. By default 1 for one series; for cross
        recurrence 0, but 1 with convention "pyrqa", which a warning tells. "auto" is the lag at which the
        autocorrelation of the series falls below 1/e, as smooth series need, and 0 for cross recurrence. Convention
        "accrqa" has no window: 0 and 1 are the same there.
    lmin, vmin, wmin : int
        Least lengths of diagonal, vertical and white vertical lines; can be changed on the result.
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
        ``x`` (and ``y``) hold points.
    dtype : {"float32", "float64"}
        What the sweep over all cells computes in.
    exact : bool
        Cells too close to the radius for ``dtype`` are decided in float64: the counts are those of float64 arithmetic,
        the same integers on every device. Otherwise series and radius are rounded to ``dtype``.
    tile : int, optional
        Edge of the parts the matrix is divided into; changes speed and memory, never the counts.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "cells")``.
    checkpoint : path, optional
        A file for very long runs: finished rows are kept there, and the same call continues behind them after it was
        killed. The counts are the same however often that happens.
    join, part
        Several processes, on any machines that share the **folder** ``checkpoint``, count together, as for
        :func:`pyedmcl.xmap`: each takes bands of rows that nobody has taken, and returns when all are done.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    client : optional
        Workers of a cluster that share the work, as for :func:`pyedmcl.xmap`. What a radius is found by (thresholds
        "recurrence_rate" and "neighbours", unit "max_distance") is searched by this process.
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
    x, y = coded(radius if threshold == "fixed" else 0.5, x, y)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.reporter(progress, "cells")
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
    problem = common.problem_of(rows, None if y is None else columns, options, theiler=window)
    runner = common.runner_of(device, options, client)
    results: dict[int, RecurrenceResult] = {}
    passes = passes_for(
        runner, problem, options.convention, rows, columns, threshold, radii, unit=options.radius_unit
    )
    common.one_pass(passes, checkpoint, join=begin is not None)
    for sweep in passes:
        counted = common.count(runner, sweep.problem, rows, columns, options, checkpoint, begin)
        for counts, reported, place in zip(counted, sweep.radii, sweep.order, strict=True):
            origin = common.provenance(runner, rows, options, threshold=threshold, wanted=radii[place])
            complete = rows.complete, columns.complete
            results[place] = common.result_of(counts, reported, problem, options, complete, origin)
    ordered = tuple(results[place] for place in range(len(radii)))
    remarks.tell(ordered, threshold, radii, [first.given] if y is None else [first.given, second.given])
    return RecurrenceTable(ordered, "radius", tuple(radii)) if several else ordered[0]
