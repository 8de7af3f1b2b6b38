"""Recurrence quantification of many series in one call."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import boolean, some
from ..call import noticed
from ..errors import InputError, RecurrenceWarning, need, shown, warn
from ..jobs.runner import ListSink, public_function
from ..results.result import Answer, Label, Result, brief, common
from ..results.result import labelled as labelled_array
from ..series.regular import may_have_times, tell_other_steps
from . import arguments, remarks, rqa
from .arguments import SEARCHED, Convention, Spread, metric_named, minimum, required, scaled, spread_in
from .batch_counts import BatchCounts, Ints, MeasuresOfMany
from .batch_problem import BatchProblem, Side, near_one, side_of
from .many_series import Labelled, apart, labelled, partnered, with_pseudo
from .measures import MEASURE_LABELS, SHORT_NAMES, RecurrenceResult, first_measures, long_name
from .points import Embedding, coded, embedding_of, points_of
from .problem import RqaProblem
from .rqa import Device, Options, Progress
from .thresholds import enough_cells, passes_for

if TYPE_CHECKING:
    from ..jobs.runner import Runner


# What the recurrence quantification of many series returns: a table whose rows are made when they are asked for.


@dataclass(frozen=True, eq=False, repr=False)
class RqaBatch(Result, Sequence[RecurrenceResult]):
    """Recurrence quantification of many series: a row for each series and radius.

    Item ``i`` is the :class:`RecurrenceResult` of row ``i``, series by series and radius by radius of each.

    Attributes
    ----------
    labels : mapping of str to tuple
        What tells the series apart, a value for each: groups and "series".
    asked : ndarray (series, radii) or (series, radii, 2)
        What was asked for of each series, in the unit that was asked for.
    used : ndarray of float64 (series, radii) or (series, radii, 2)
        The radii in the unit of the data, pairs for a corridor; NaN where each point has its own.
    counts : BatchCounts
        In the order in which they were computed.
    places : ndarray of int (rows,)
        Where among these a row's are.
    failed : mapping of int to str
        Numbers of series that could not be used, and why; all their measures are NaN.
    x, y : Side
    convention : Convention
    theiler, lmin, vmin, wmin : int
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500)[:, None] * np.linspace(0.1, 0.3, 8))  # 8 series
    >>> batch = pyedmcl.rqa_batch(x, m=2, tau=8, radius=0.2, radius_unit="std")
    >>> len(batch), batch.measure("DET").shape
    (8, (8,))
    >>> bool(batch[7].DET == batch.measure("DET")[7])
    True
    >>> batch.to_frame().columns.tolist()[:4]
    ['series', 'radius', 'radius_used', 'recurrence_rate']
    """

    series_label: ClassVar = Label("", "what tells the series apart")
    column_labels: ClassVar = {**common("radius", "radius_used"), **MEASURE_LABELS}

    labels: Mapping[str, tuple[Any, ...]]
    asked: NDArray[Any]
    used: NDArray[np.float64]
    counts: BatchCounts
    places: Ints
    x: Side
    y: Side
    convention: Convention
    theiler: int
    lmin: int
    vmin: int
    wmin: int
    failed: Mapping[int, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def answer(self) -> Answer:
        """The first measures of each matrix."""
        return first_measures(self.to_dict(short=True), len(self))

    @property
    def radii(self) -> tuple[Any, ...]:
        """What was asked for of each series; of the first one, where each has its own."""
        return tuple(tuple(one) if isinstance(one, list) else one for one in self.asked[0].tolist())

    def _headline(self, alone: bool) -> str:
        series, radii = len(self.x), len(self.radii)
        return f"RqaBatch({series:,} series, {radii} {'radius' if radii == 1 else 'radii'}, {self.convention.name!r})"

    def _facts(self) -> dict[str, str]:
        return {"series": f"{len(self.x):,}", "radii": brief(self.radii), "convention": self.convention.name}

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[RecurrenceResult]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = operator.index(index)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"row {index}: there are {len(self)}")
        series, radius = divmod(row, self.asked.shape[1])
        used = self.used[series, radius]
        return RecurrenceResult(
            counts=self.counts.of(int(self.places[row])), convention=self.convention,
            radius=float(used) if used.ndim == 0 else tuple(used.tolist()), theiler=self.theiler, lmin=self.lmin,
            vmin=self.vmin, wmin=self.wmin, complete=(self.y.complete(series), self.x.complete(series)),
            symmetric=self.x is self.y, provenance={**self.provenance, "wanted": self._wanted(series, radius)},
        )  # fmt: skip

    def measure(self, name: str) -> NDArray[Any]:
        """One measure (short or long name) of all rows as an array."""
        long = long_name(name)
        of_long = self._measures.measure(long)
        if of_long is None:
            return np.array([result[long] for result in self])
        out: NDArray[Any] = of_long[self.places]
        for row in self.rows_with_gaps:
            out[row] = self[row][long]
        if self.failed:
            out = out.astype(np.float64)
            out[np.isin(np.arange(len(self)) // self.asked.shape[1], list(self.failed))] = np.nan
        return out

    def _wanted(self, series: int, radius: int) -> Any:
        wanted = self.asked[series, radius].tolist()
        return tuple(wanted) if isinstance(wanted, list) else wanted

    @cached_property
    def _measures(self) -> MeasuresOfMany:
        return MeasuresOfMany(
            self.counts, self.convention, theiler=self.theiler, lmin=self.lmin, vmin=self.vmin, wmin=self.wmin,
            symmetric=self.x is self.y, corridor=self.used.ndim == 3,
        )  # fmt: skip

    @cached_property
    def rows_with_gaps(self) -> list[int]:
        """Rows whose denominators gaps change."""
        gaps = self.x.gaps() if self.x is self.y else self.x.gaps() | self.y.gaps()
        return np.flatnonzero(np.repeat(gaps, self.asked.shape[1])).tolist()

    def lag_profile(self, lags: int | None = None) -> Any:
        """The lag profile of each row, as :meth:`RecurrenceResult.lag_profile`."""
        from .measures import profile_of

        times = self.asked.shape[1]
        labels = {name: tuple(np.repeat(np.array(values, object), times)) for name, values in self.labels.items()}
        return profile_of(self, lags, labels, self.provenance)

    def with_minimum(self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None) -> RqaBatch:
        """The same matrices with other least lengths of lines; nothing is computed anew on a device."""
        return replace(
            self,
            lmin=self.lmin if lmin is None else minimum("lmin", lmin),
            vmin=self.vmin if vmin is None else minimum("vmin", vmin),
            wmin=self.wmin if wmin is None else minimum("wmin", wmin),
        )

    def to_dict(self, *, short: bool = False) -> dict[str, list[Any]]:
        """Lists of labels, radii as asked for and as used (in the unit of the data), and all measures."""
        times, short = self.asked.shape[1], boolean("short", short)
        out = {name: [value for value in values for _ in range(times)] for name, values in self.labels.items()}
        out["radius"] = [self._wanted(series, radius) for series in range(len(self.x)) for radius in range(times)]
        used = self.used.reshape(len(self), -1)
        out["radius_used"] = used[:, 0].tolist() if used.shape[1] == 1 else list(map(tuple, used.tolist()))
        for symbol, name in SHORT_NAMES.items():
            out[symbol if short else name] = self.measure(name).tolist()
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per series and radius; columns for labels, radii and measures."""
        return need("pandas", "to_frame()").DataFrame(self.to_dict())

    def to_xarray(self) -> Any:
        """An xarray.Dataset of all measures over the coordinates of a grid, such as lat and lon, or else over series,
        whose labels are coordinates; and over radii, where there are several."""
        marks = {name: tuple(dict.fromkeys(values)) for name, values in self.labels.items()}
        grid = list(itertools.product(*marks.values())) == list(zip(*self.labels.values(), strict=True))
        axes: list[tuple[str, Any]] = list(marks.items()) if grid else [("number", range(len(self.x)))]
        if self.asked.shape[1] > 1:
            alike = self.asked.ndim == 2 and (self.asked == self.asked[0]).all()
            axes.append(("radius", self.radii if alike else range(self.asked.shape[1])))
        shape = [len(held) for _, held in axes]
        made = {name: labelled_array(self.measure(name).reshape(shape), axes, name) for name in MEASURE_LABELS}
        coords = {} if grid else {name: ("number", list(values)) for name, values in self.labels.items()}
        return need("xarray", "to_xarray()").Dataset(made).assign_coords(coords)


@public_function
def rqa_batch(
    series: Any,
    y: Any = None,
    *,
    groups: Any = None,
    regular: str | None = None,
    columns: Any = None,
    axis: int = 0,
    partners: str | None = None,
    pseudo: int = 0,
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
        each place along the others is a series, labelled by the coordinates of an xarray.DataArray. Of a frame, each
        column is a series.
    y : the same, optional
        Second series for cross recurrence, one for each of ``series``, in the same form and order.
    groups : str, sequence of str, or labels (n_steps,), optional
        Columns (or levels of the index) of a frame whose combinations tell recordings apart that stand one behind the
        other, such as ["subject", "channel"]; or a label for each row of a frame or an array. Each group of each column
        is a series, and no state crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    columns : sequence of str, optional
        Columns of a frame that hold values; by default all that are not in ``groups``.
    axis : int
        Of an array: the axis of time. 0 as everywhere here; -1 for epochs x channels x time.
    partners : str, optional
        Of a frame: one of ``groups``, such as "person" of ["dyad", "person"]. Cross recurrence of the two that each
        dyad has, the one whose rows come first being x.
    pseudo : int
        Pseudo-dyads of each dyad, behind the dyads: its x with y of the dyads that follow it, in a circle. Labels tell
        which they are, and whose y they have.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a point, in steps; at least 1.
    radius : float or sequence
        By ``threshold``: a radius in the unit of the data; a pair (inner, outer); a recurrence rate in (0, 1); a number
        of neighbours. A sequence gives a table with a result for each; radii share one pass. An array (n_series,
        n_radii), of corridors (n_series, n_radii, 2), holds radii of each series' own.
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
        outside the Theiler window (outside the main diagonal for theiler = 0), and more only where distances tie. Radii
        for a rate are found series by series, and with "neighbours" each series is a launch of its own.
    normalize : {"zscore", "range"}, optional
        Each column of x, and of y, is brought to mean 0 and standard deviation 1, or to 0, ..., 1, by itself, before
        anything else. Missing values do not count; a constant column becomes 0.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        What a radius, or a corridor, is a multiple of: 1; the standard deviation; greatest minus least value; the
        largest, or the mean, distance of two points. All are those of the values that are compared, hence after
        ``normalize``, and standard deviations divide by the number of values. With several columns, or with y, "std" is
        the root of the mean variance of all columns and "range" the largest range. The result's ``radius`` is in the
        unit of the data (of the normalised ones, with ``normalize``). Other thresholds have no radius, and take "data"
        only. Each series has its own.
    embedded : bool
        Each series holds points: its columns are the coordinates themselves.
    errors : {"nan", "raise"}
        What is done with series that cannot be used: too short or infinite ones, or constant ones where the radius is
        in standard deviations. Their rows are NaN, and a warning says why; or the call is refused, as it always is
        where none can be used.
    dtype : {"float32", "float64"}
        What the device computes in.
    exact : bool
        Cells too close to the radius for ``dtype`` are decided in float64: the counts are those of float64 arithmetic,
        the same integers on every device. Otherwise series and radius are rounded to ``dtype``.
    tile : int, optional
        Edge of the parts the matrix is divided into; changes speed and memory, never the counts.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``. Several share the series.
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
    series, y = coded(radius, threshold, series, y, metric=metric, normalize=normalize, radius_unit=radius_unit)
    threshold = arguments.threshold_named(threshold)
    options = rqa.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    refuse = errors == "raise"
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize)
    first = labelled(series, "series", groups=groups, columns=columns, axis=axis)
    second = None
    if partners is not None and y is not None:
        raise InputError(f"partners={shown(partners)} takes both series of a dyad from one frame; leave y out")
    if y is not None or partners is not None:
        arguments.only_alone(options.convention, "y= (cross recurrence)")
    if y is not None:
        second = labelled(y, "y", groups=groups, columns=columns, axis=axis)
        if len(second) != len(first):
            raise InputError(
                f"y: {len(second):,} series, and there are {len(first):,} of series; one for each is needed"
            )
        for one, other in zip(first.series, second.series, strict=True):
            if may_have_times(one) and may_have_times(other):
                tell_other_steps(one, other)
    if partners is not None:
        first, second = partnered(first, partners, groups)
    labels = dict(first.labels)
    if pseudo:
        if second is None:
            raise InputError(f"pseudo={pseudo}: dyads are needed; give y, or groups and partners of a frame")
        first, second, made = with_pseudo(first, second, pseudo)
        labels = {**first.labels, "pseudo": made}
    if second is not None:
        labels |= {f"{name}_y": values for name, values in second.labels.items()
                   if values != first.labels.get(name) and (pseudo or name == partners)}  # fmt: skip
    radii = _radii(radius, threshold, options, len(first))
    members = Members(first, second, embedding, options, refuse)
    x, rows, matrix = _usable(members, theiler, int(np.max(radii)) if threshold == "neighbours" else 0)
    runner = rqa.runner_of(device, options, client)
    problem = _problem(runner, matrix, x, rows, threshold, radii, members)
    members.tell()
    sink = ListSink(problem.blocks(runner.devices))
    runner.run(problem, sink)
    places = np.empty(len(x), np.int64)
    places[problem.order] = np.arange(len(x))
    origin = rqa.provenance(runner, x.of(0), options, threshold=threshold)
    used = problem.outer if problem.inner is None else np.stack([problem.inner, problem.outer], axis=2)
    if members.failed:
        used = np.array(used)
        used[list(members.failed)] = np.nan
    batch = RqaBatch(
        labels=labels, asked=radii, used=used, counts=BatchCounts.joined(sink.results()),
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
    """The series of a batch, and why some of them cannot be used."""

    x: Labelled
    y: Labelled | None
    embedding: Embedding
    options: Options
    # A series that cannot be used ends the call.
    refuse: bool
    # Series that others stand in for, all of whose points are gaps, and why.
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
    return x, y, rqa.problem_of(y.of(0), x.of(0) if cross else None, options, theiler=width)


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
