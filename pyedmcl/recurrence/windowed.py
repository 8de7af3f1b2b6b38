"""Recurrence quantification of windows along a series."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.same_rows import require_same_times
from ..data.series import time_of
from ..data.windows import Windows
from ..errors import InputError, shown
from ..jobs.function import public_function
from ..jobs.runner import Runner
from ..jobs.sinks import ListSink
from . import arguments, common, remarks
from .batch_counts import BatchCounts
from .batch_problem import BatchProblem
from .batch_sides import Side
from .categories import coded
from .common import Device, Options, Progress
from .counts import Counts
from .points import Embedding, Points, embedding_of, near_one, points_of, same_coordinates
from .problem import RqaProblem
from .table import RecurrenceTable
from .thresholds import passes_for
from .windowed_problem import WindowsProblem


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
    window : int
        Values of a window (points, with ``embedded``), at most n.
    step : int
        Values between the starts of successive windows. The last window is the last one that lies inside the series.
    y : array_like, optional
        A second series, as long as x: cross recurrence of the windows of both that begin together. Windows that
        overlap then share no distances.
    radius : float or (float, float)
        One radius, or one corridor.
    threshold : {"fixed", "corridor"}
        Thresholds that are selected among distances would differ from window to window.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "windows")``.
    normalize, radius_unit
        As for :func:`pyedmcl.rqa`, of the whole series, so that windows share scale and radius.
    m, tau, metric, theiler, lmin, vmin, wmin, convention, state, embedded, dtype, exact, tile, device, client, tune
        As for :func:`pyedmcl.rqa`. Several devices share the windows.

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
    x, y = coded(radius if threshold == "fixed" else 0.5, x, y)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.reporter(progress, "windows")
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
    steps = arguments.integer("step", step, 1)
    length = arguments.integer("window", window, 1)
    lag = (embedding.m - 1) * embedding.tau
    values = points.n + lag
    if not lag + 2 <= length <= values:
        raise InputError(
            f"window={length}: a window has at least {lag + 2} values, which give two points, and at most the "
            f"{values} of x"
        )
    size = length - lag
    starts = range(0, points.n - size + 1, steps)
    stride = min(steps, points.n)  # a longer one leaves one window, too, and may not fit 32 bits
    width = arguments.window(
        theiler, options.convention, size, size, cross=y is not None, series=(points.given,)
    )
    problem = replace(
        common.problem_of(rows, None if y is None else columns, options, theiler=width), n_rows=size, n_columns=size
    )
    runner = common.runner_of(device, options, client)
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
    origin = common.provenance(runner, points, options, window=length, step=steps)
    results = []
    for start, counts in zip(starts, counted, strict=True):
        complete = tuple(side.complete[start : start + size] for side in (rows, columns))
        results.append(common.result_of(counts, sweep.radii[0], problem, options, (complete[0], complete[1]), origin))
    remarks.tell(
        results, threshold, radii * len(results), [rows.given, columns.given], [f"window at {at}" for at in starts]
    )
    time = time_of(x, "x")
    return RecurrenceTable(
        tuple(results), "start", tuple(starts),
        None if time is None or time.dtype.kind == "U" else Windows(length, stride, values).times(time),
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
                f"y: {second.n} points, and x has {first.n}; windows of both begin together: give series of one length"
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
