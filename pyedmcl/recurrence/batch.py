"""Recurrence quantification of many series in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import choice, shown
from ..data.call import noticed
from ..data.columns import some
from ..errors import InputError, RecurrenceWarning, warn
from ..jobs.function import public_function
from ..jobs.sinks import ListSink
from . import arguments, common, remarks
from .batch_counts import BatchCounts
from .batch_labels import Labelled, apart, labelled
from .batch_problem import BatchProblem
from .batch_result import RqaBatch
from .batch_sides import Side, near_one, side_of
from .categories import coded
from .common import Device, Options, Progress
from .metrics import metric_named
from .points import Embedding, embedding_of, points_of
from .problem import RqaProblem
from .thresholds import enough_cells, passes_for
from .units import SEARCHED, Spread, required, scaled, spread_in

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
    errors: str = "nan",
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
        As for :func:`pyedmcl.rqa`; a sequence gives a row for each. An array (n_series, n_radii), of corridors
        (n_series, n_radii, 2), holds radii of each series' own.
    threshold : {"fixed", "corridor", "recurrence_rate", "neighbours"}
        As for :func:`pyedmcl.rqa`. Radii for a rate are found series by series, and with "neighbours" each series is a
        launch of its own.
    normalize, radius_unit
        As for :func:`pyedmcl.rqa`, of each series by itself.
    errors : {"nan", "raise"}
        What is done with series that cannot be used: too short or infinite ones, or constant ones where the radius is
        in standard deviations. Their rows are NaN, and a warning says why; or the call is refused, as it always is
        where none can be used.
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
        An argument, or no series, can be used; the message names the series.
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
    series, y = apart(series), apart(y)
    series, y = coded(radius if threshold == "fixed" else 0.5, series, y)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.reporter(progress, "series")
    refuse = choice("errors", errors, ("nan", "raise")) == "raise"
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize)
    first = labelled(series, "series", groups=groups, columns=columns, axis=axis)
    second = None
    if y is not None:
        arguments.only_alone(options.convention, "y= (cross recurrence)")
        second = labelled(y, "y", groups=groups, columns=columns, axis=axis)
        if len(second) != len(first):
            raise InputError(
                f"y: {len(second):,} series, and there are {len(first):,} of series; one for each is needed"
            )
    radii = _radii(radius, threshold, options, len(first))
    members = Members(first, second, embedding, options, refuse)
    x, rows, matrix = _usable(members, theiler, int(np.max(radii)) if threshold == "neighbours" else 0)
    runner = common.runner_of(device, options, client)
    problem = _problem(runner, matrix, x, rows, threshold, radii, members)
    members.tell()
    sink = ListSink(problem.blocks(runner.devices))
    runner.run(problem, sink)
    places = np.empty(len(x), np.int64)
    places[problem.order] = np.arange(len(x))
    origin = common.provenance(runner, x.of(0), options, threshold=threshold)
    used = problem.outer if problem.inner is None else np.stack([problem.inner, problem.outer], axis=2)
    if members.failed:
        used = np.array(used)
        used[list(members.failed)] = np.nan
    batch = RqaBatch(
        labels=first.labels, asked=radii, used=used, counts=BatchCounts.joined(sink.results()),
        places=(places[:, None] * problem.radii + np.arange(problem.radii)).ravel(), x=x, y=rows,
        convention=options.convention, theiler=matrix.theiler, lmin=options.lmin, vmin=options.vmin, wmin=options.wmin,
        failed=members.failed, provenance=origin,
    )  # fmt: skip
    remarks.tell_of_batch(batch, threshold, first.names())
    return batch


def _radii(radius: Any, threshold: str, options: Options, n_series: int) -> NDArray[Any]:
    """What was asked for of each series: (series, radii), of corridors (series, radii, 2)."""
    given: dict[str, Any] = {"strict": options.convention.strict, "unit": options.radius_unit}
    depth = 3 if threshold == "corridor" else 2
    if not (isinstance(radius, np.ndarray) and radius.ndim == depth):
        of_all = np.array(arguments.radii_of(radius, threshold, **given)[0])
        return np.broadcast_to(of_all, (n_series, *of_all.shape))
    if len(radius) != n_series or not radius.shape[1]:
        raise InputError(
            f"radius={shown(radius)}: an array of {depth} axes holds radii of each series' own, and there are "
            f"{n_series:,} series"
        )
    return np.array([arguments.radii_of(one, threshold, **given)[0] for one in radius.tolist()])


@dataclass
class Members:
    """The series of a batch, and why some of them cannot be used.

    Attributes
    ----------
    x : Labelled
    y : Labelled or None
    embedding : Embedding
    options : Options
    refuse : bool
        A series that cannot be used ends the call.
    failed : dict of int to str
        Series that others stand in for, all of whose points are gaps, and why.
    """

    x: Labelled
    y: Labelled | None
    embedding: Embedding
    options: Options
    refuse: bool
    failed: dict[int, str] = field(default_factory=dict)

    def fail(self, number: int, error: InputError) -> None:
        """Leave a series out, or refuse it in words that name it."""
        text, name = str(error), self.x.names()[number]
        text = text if text.startswith((name, "y (")) else f"{name}: {text}"
        if self.refuse or len(self.failed) + 1 == len(self.x):
            raise InputError(text) from None
        self.failed[number] = text

    def tell(self) -> None:
        """Warn of series that are left out."""
        if self.failed:
            names = some([self.x.names()[number] for number in sorted(self.failed)])
            warn(
                f"{len(self.failed):,} of {len(self.x):,} series cannot be used, and their rows are NaN: {names} "
                f"({next(iter(self.failed.values()))}). errors='raise' refuses them", RecurrenceWarning,
            )  # fmt: skip

    def find_faults(self) -> None:
        """Look at each series by itself."""
        for number in range(len(self.x)):
            try:
                for side in (self.x, self.y):
                    if side is not None:
                        points_of(side.series[number], side.names()[number], self.embedding)
            except InputError as error:
                self.fail(number, error)

    def sides(self, points: int) -> tuple[Side, Side]:
        """Columns and rows of all matrices, near 1; the same object without y. Stand-ins have some ``points``."""
        measured = self.options.radius_unit in ("std", "range")
        first, *more = (
            side_of(self._series(side, points), side.names(), self.embedding, measured=measured)
            for side in (self.x, self.y) if side is not None
        )  # fmt: skip
        if not more:
            (first,) = near_one(self.options.arithmetic, first)
            return first, first
        other = more[0]
        if other.coordinates != first.coordinates:
            raise InputError(
                f"y: its points have {other.coordinates} coordinates and those of series have {first.coordinates}; "
                "cross recurrence needs the same number"
            )
        first, other = near_one(self.options.arithmetic, first, other)
        return (first, other) if self.options.convention.columns == "x" else (other, first)

    def _series(self, side: Labelled, points: int) -> Any:
        if not self.failed:
            return side.series
        shape = np.shape(next(one for number, one in enumerate(side.series) if number not in self.failed))
        stand_in = np.full((points + (self.embedding.m - 1) * self.embedding.tau, *shape[1:]), np.nan)
        return [stand_in if number in self.failed else one for number, one in enumerate(side.series)]


def _usable(members: Members, theiler: Any, neighbours: int) -> tuple[Side, Side, RqaProblem]:
    """Columns and rows of all matrices, and what these have in common; no window covers one of them."""
    try:
        x, y = members.sides(2)
    except InputError:
        if not members.refuse:
            members.find_faults()
        if not members.failed:
            raise
        x, y = members.sides(2)
    options, cross = members.options, members.y is not None
    given = (x.of(number).given for number in range(len(x)))
    points = np.maximum(x.points, y.points)
    longest = int(np.argmax(points))
    width = arguments.window(
        theiler, options.convention, int(y.points[longest]), int(x.points[longest]), cross=cross, series=given
    )
    sizes, which = np.unique(np.stack([y.points, x.points], axis=1), axis=0, return_inverse=True)
    for at, (rows, columns) in enumerate(sizes.tolist()):
        try:
            arguments.window(width, options.convention, rows, columns)
            enough_cells(neighbours, rows, columns, width, symmetric=not cross)
        except InputError as error:
            for number in np.flatnonzero(which.ravel() == at).tolist():
                if number not in members.failed:
                    members.fail(number, error)
    for number in np.flatnonzero(x.gaps() | y.gaps()).tolist():
        if number not in members.failed and not (x.complete(number).any() and y.complete(number).any()):
            members.fail(number, InputError("every point touches a gap"))
    if members.failed:
        x, y = members.sides(2 * width + neighbours + 2)
    for name, side in (("series", x),) if x is y else (("series", x), ("y", y)):
        noticed(name, side.described, side.values.nbytes)
    return x, y, common.problem_of(y.of(0), x.of(0) if cross else None, options, theiler=width)


def _problem(
    runner: Runner, matrix: RqaProblem, x: Side, y: Side, threshold: str, radii: NDArray[Any], members: Members
) -> BatchProblem:
    """The job: with radii of each series, which some thresholds and units select among its distances."""
    options = members.options
    if threshold in ("recurrence_rate", "neighbours") or options.radius_unit in SEARCHED:
        return _selected(runner, matrix, x, y, threshold, radii, members)
    limits = radii
    if options.radius_unit != "data":
        lengths = _units(options.radius_unit, matrix, x, y, members)
        limits = np.array([scaled(_items(own), length) for own, length in zip(radii, lengths.tolist(), strict=True)])
    if threshold == "corridor":
        return BatchProblem(replace(matrix, inner=()), x, y, limits[:, :, 1], limits[:, :, 0], (), options.tile)
    return BatchProblem(matrix, x, y, limits, None, (), options.tile)


def _items(radii: NDArray[Any]) -> list[Any]:
    """Radii of one series as :func:`.arguments.radii_of` gives them."""
    return [tuple(one) if isinstance(one, list) else one for one in radii.tolist()]


def _units(unit: str, matrix: RqaProblem, x: Side, y: Side, members: Members) -> NDArray[np.float64]:
    """How long the unit of a radius is for each series; 1 where a series has none."""
    if metric_named(matrix.metric).prepare is not None:
        raise InputError(
            f"radius_unit={unit!r} contradicts metric={matrix.metric!r}, whose distances do not grow with the data; "
            "choose 'data' or a unit of distances"
        )
    sides = [side.spreads for side in ((x,) if x is y else (y, x)) if side.spreads is not None]
    lengths = spread_in(unit, Spread(*(np.concatenate(of, axis=1) for of in zip(*sides, strict=True))))
    for number in np.flatnonzero(~((lengths > 0) & np.isfinite(lengths))).tolist():
        if number not in members.failed:
            try:
                required(unit, float(lengths[number]), members.x.names()[number])
            except InputError as error:
                members.fail(number, error)
        lengths[number] = 1.0
    return lengths


def _selected(
    runner: Runner, matrix: RqaProblem, x: Side, y: Side, threshold: str, radii: NDArray[Any], members: Members
) -> BatchProblem:
    options, numbers = members.options, radii.shape[1]
    outer = np.full((len(x), numbers), np.nan)
    inner = outer.copy() if threshold == "corridor" else None
    limits: list[Sequence[RqaProblem]] = []
    whole = BatchProblem(matrix, x, y, outer, None, (), options.tile)
    for number in range(len(x)):
        columns = x.of(number)
        rows = columns if x is y else y.of(number)
        if threshold != "neighbours" and number in members.failed:
            outer[number] = 1.0  # of a series without points
            continue
        try:
            passes = passes_for(
                runner, whole.matrix_of(number), options.convention, rows, columns, threshold, _items(radii[number]),
                unit=options.radius_unit, what=members.x.names()[number],
            )  # fmt: skip
        except InputError as error:
            members.fail(number, error)
            outer[number] = 1.0
            continue
        if threshold == "neighbours":
            limits.append(tuple(sweep.problem for sweep in passes))
            continue
        for sweep in passes:
            outer[number, list(sweep.order)] = sweep.problem.radii
            if inner is not None:
                inner[number, list(sweep.order)] = sweep.problem.inner
    if inner is not None:
        matrix = replace(matrix, inner=())
        inner[list(members.failed)] = 0.0
    return BatchProblem(matrix, x, y, outer, inner, tuple(tuple(one) for one in limits), options.tile)
