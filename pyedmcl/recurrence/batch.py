"""Recurrence quantification of many series in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.call import noticed
from ..errors import InputError
from ..jobs.function import public_function
from ..jobs.sinks import ListSink
from . import arguments, common, remarks
from .batch_counts import BatchCounts
from .batch_labels import Labelled, labelled
from .batch_problem import BatchProblem
from .batch_result import RqaBatch
from .batch_sides import Side, near_one, side_of
from .common import Device, Options, Progress
from .metrics import metric_named
from .points import Embedding, embedding_of
from .problem import RqaProblem
from .thresholds import passes_for
from .units import Spread, required, scaled, spread_in

if TYPE_CHECKING:
    from ..jobs.runner import Runner


@public_function
def rqa_batch(
    series: Any,
    y: Any = None,
    *,
    groups: Any = None,
    regular: str | None = None,
    columns: Any = None,
    axis: int = 0,
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
    embedded: bool = False,
    dtype: str = "float32",
    exact: bool = True,
    tile: int | None = None,
    progress: Progress | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> RqaBatch:
    """Quantify the recurrence of many series: subjects, channels, segments, pixels.

    Each row of the result is what :func:`pyedmcl.rqa` gives for that series alone. Series of up to 2,048 points share a
    launch, so that thousands of them take about as long as their cells need.

    Parameters
    ----------
    series : list or mapping of series, array of two or three dimensions, or pandas DataFrame
        A list holds series of any lengths, each as ``x`` of :func:`pyedmcl.rqa`. Of an array, ``axis`` is time, and
        each place along the others is a series. Of a frame, each column is a series.
    y : the same, optional
        Second series for cross recurrence, one for each of ``series``, in the same form and order.
    groups : str, sequence of str, or labels (n_steps,), optional
        Columns (or levels of the index) of a frame whose combinations tell recordings apart that stand one behind the
        other, such as ["subject", "channel"]; or a label for each row of a frame or an array. Each group of each column
        is a series, and no state crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    columns : sequence of str, optional
        Columns of a frame that hold values; by default all that are not in ``groups``.
    axis : int
        Of an array: the axis of time. 0 as everywhere here; -1 for epochs x channels x time.
    radius : float or sequence
        As for :func:`pyedmcl.rqa`; a sequence gives a row for each.
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        As for :func:`pyedmcl.rqa`. Radii for a rate are found series by series, and with "neighbours" each series is a
        launch of its own.
    normalize, radius_unit
        As for :func:`pyedmcl.rqa`, of each series by itself.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")``.
    m, tau, metric, theiler, lmin, vmin, wmin, convention, embedded, dtype, exact, tile, device, client, tune
        As for :func:`pyedmcl.rqa`. Several devices, or workers, share the series.

    Returns
    -------
    RqaBatch
        A row for each series and radius; ``to_frame()`` has the labels, the radius as asked for and in the unit of the
        data, and all measures.

    Raises
    ------
    InputError
        An argument cannot be used; the message names the series.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa : one series.
    windowed_rqa : windows along one series.

    Notes
    -----
    Cost: all pairs of points of each series are compared once for each radius, in the precision that decides: float64
    with ``exact``.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500)[:, None] * np.linspace(0.1, 0.3, 8))  # 8 series
    >>> batch = pyedmcl.rqa_batch(x, m=2, tau=8, radius=0.2, radius_unit="std")
    >>> len(batch), batch.measure("DET").shape
    (8, (8,))
    """
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.reporter(progress, "series")
    radii, _ = arguments.radii_of(radius, threshold, strict=options.convention.strict, unit=options.radius_unit)
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize)
    members = labelled(series, "series", groups=groups, columns=columns, axis=axis)
    x, rows = _sides(members, y, embedding, options, groups=groups, columns=columns, axis=axis)
    matrix = _matrix_of(x, rows, options, theiler, members)
    runner = common.runner_of(device, options, client)
    problem = _problem(runner, matrix, x, rows, options, threshold, radii, members)
    sink = ListSink(problem.blocks(runner.devices))
    runner.run(problem, sink)
    places = np.empty(len(x), np.int64)
    places[problem.order] = np.arange(len(x))
    origin = common.provenance(runner, x.of(0), options, threshold=threshold)
    used = problem.outer if problem.inner is None else np.stack([problem.inner, problem.outer], axis=2)
    batch = RqaBatch(
        labels=members.labels, radii=tuple(radii), used=used, counts=BatchCounts.joined(sink.results()),
        places=(places[:, None] * len(radii) + np.arange(len(radii))).ravel(), x=x, y=rows,
        convention=options.convention, theiler=matrix.theiler, lmin=options.lmin, vmin=options.vmin, wmin=options.wmin,
        provenance=origin,
    )  # fmt: skip
    remarks.tell_of_batch(batch, threshold, members.names())
    return batch


def _sides(
    members: Labelled, y: Any, embedding: Embedding, options: Options, *, groups: Any, columns: Any, axis: Any
) -> tuple[Side, Side]:
    """Columns and rows of all matrices, near 1; the same object without y."""
    measured = options.radius_unit in ("std", "range")
    first = side_of(members.series, members.names(), embedding, measured=measured)
    if y is None:
        (side,) = near_one(options.arithmetic, first)
        noticed("series", side.described, side.values.nbytes)
        return side, side
    arguments.only_alone(options.convention, "y= (cross recurrence)")
    second = labelled(y, "y", groups=groups, columns=columns, axis=axis)
    if len(second) != len(members):
        raise InputError(f"y: {len(second):,} series, and there are {len(members):,} of series; one for each is needed")
    other = side_of(second.series, second.names(), embedding, measured=measured)
    if other.coordinates != first.coordinates:
        raise InputError(
            f"y: its points have {other.coordinates} coordinates and those of series have {first.coordinates}; cross "
            "recurrence needs the same number"
        )
    first, other = near_one(options.arithmetic, first, other)
    for name, side in (("series", first), ("y", other)):
        noticed(name, side.described, side.values.nbytes)
    return (first, other) if options.convention.columns == "x" else (other, first)


def _matrix_of(x: Side, y: Side, options: Options, theiler: Any, found: Labelled) -> RqaProblem:
    """What all matrices have in common; no window may cover one of them."""
    smallest = int(np.argmin(np.maximum(x.points, y.points)))
    try:
        window = arguments.window(
            theiler, options.convention, int(y.points[smallest]), int(x.points[smallest]), cross=x is not y,
            series=(x.of(number).given for number in range(len(x))),
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{error} of {found.names()[smallest]}") from None
    rows, columns = y.of(0), x.of(0)
    return common.problem_of(rows, None if x is y else columns, options, theiler=window)


def _problem(
    runner: Runner, matrix: RqaProblem, x: Side, y: Side, options: Options, threshold: str, radii: list[Any],
    members: Labelled,
) -> BatchProblem:  # fmt: skip
    """The job: with radii of each series, which some thresholds and units select among its distances."""
    if threshold in ("recurrence_rate", "neighbours") or options.radius_unit == "max_distance":
        return _selected(runner, matrix, x, y, options, threshold, radii, members)
    if options.radius_unit == "data":
        limits = np.broadcast_to(np.array(radii, np.float64), (len(x), *np.shape(radii)))
    else:
        lengths = _units(options.radius_unit, matrix, x, y, members)
        limits = np.array([scaled(radii, length) for length in lengths.tolist()])
    if threshold == "corridor":
        return BatchProblem(replace(matrix, inner=()), x, y, limits[:, :, 1], limits[:, :, 0], (), options.tile)
    return BatchProblem(matrix, x, y, limits, None, (), options.tile)


def _units(unit: str, matrix: RqaProblem, x: Side, y: Side, found: Labelled) -> NDArray[np.float64]:
    """How long the unit of a radius is for each series."""
    if metric_named(matrix.metric).prepare is not None:
        raise InputError(
            f"radius_unit={unit!r} contradicts metric={matrix.metric!r}, whose distances do not grow with the data; "
            "choose 'data' or 'max_distance'"
        )
    sides = [side.spreads for side in ((x,) if x is y else (y, x)) if side.spreads is not None]
    lengths = spread_in(unit, Spread(*(np.concatenate(of, axis=1) for of in zip(*sides, strict=True))))
    for number in np.flatnonzero(~((lengths > 0) & np.isfinite(lengths))):
        required(unit, float(lengths[number]), found.names()[int(number)])
    return lengths


def _selected(
    runner: Runner, matrix: RqaProblem, x: Side, y: Side, options: Options, threshold: str, radii: list[Any],
    found: Labelled,
) -> BatchProblem:  # fmt: skip
    outer = np.full((len(x), len(radii)), np.nan)
    inner = outer.copy() if threshold == "corridor" else None
    limits: list[Sequence[RqaProblem]] = []
    whole = BatchProblem(matrix, x, y, outer, None, (), options.tile)
    for number in range(len(x)):
        columns = x.of(number)
        rows = columns if x is y else y.of(number)
        try:
            passes = passes_for(
                runner, whole.matrix_of(number), options.convention, rows, columns, threshold, radii,
                unit=options.radius_unit,
            )  # fmt: skip
        except InputError as error:
            raise InputError(f"{found.names()[number]}: {error}") from None
        if threshold == "neighbours":
            limits.append(tuple(sweep.problem for sweep in passes))
            continue
        for sweep in passes:
            outer[number, list(sweep.order)] = sweep.problem.radii
            if inner is not None:
                inner[number, list(sweep.order)] = sweep.problem.inner
    if threshold == "corridor":
        matrix = replace(matrix, inner=())
    return BatchProblem(matrix, x, y, outer, inner, tuple(tuple(one) for one in limits), options.tile)
