"""Recurrence measures against surrogates, and their bands, of a whole series and of windows along it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, RecurrenceWarning, pandas_for, shown, warn
from .jobs.runner import public_function
from .launch.progress import report_progress
from .recurrence.arguments import correlation_time, threshold_named
from .recurrence.batch import RqaBatch, rqa_batch
from .recurrence.measures import SHORT_NAMES
from .recurrence.rqa import Device, Progress
from .results.result import ANSWER_ROWS, Answer, Label, Result, brief
from .series.regular import require_same_times, windows_along
from .series.series import Series, build_series
from .states import arguments as states
from .statistics import counts, false_discovery, p_values, tell_reach
from .surrogates.components import far_from_normal
from .surrogates.makers import draw
from .surrogates.surrogate import choices_of, maker

Doubles = NDArray[np.float64]

_MEMORIES = 12  # rows of a stretch by those that values remember, from which on bands hold their level

MEASURES = ("DET", "L", "Lmax", "ENTR", "LAM", "TT")


@dataclass(frozen=True, eq=False, repr=False)
class RqaSignificance(Result):
    """Recurrence measures of a series, or of windows along it, and of surrogates of each.

    Attributes
    ----------
    measures : tuple of str
        Short names.
    starts : tuple of int
        First row of each window; (0,) for the whole series.
    value : ndarray of float64 (windows, measures)
    surrogates : ndarray of float64 (windows, measures, n)
        NaN where a surrogate has no lines.
    p_value : ndarray of float64 (windows, measures)
        Two-sided: twice the share of surrogates that are at least as far to the side on which the value lies.
    q_value : ndarray of float64 (windows, measures)
        False discovery rates over all measures and windows.
    reasons : tuple of str
        For each window the surrogates that were taken, where method "auto" or "seasonal" chose.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(300) * 0.2) * np.sin(np.arange(300) * 0.031)
    >>> tested = pyedmcl.rqa_significance(x, m=2, tau=8, radius=0.2, radius_unit="std", theiler=8, n=39, seed=1)
    >>> tested.to_frame().columns.tolist()
    ['start', 'measure', 'value', 'low', 'high', 'p_value', 'q_value']
    """

    series_label: ClassVar = Label("", "what tells the rows apart")
    column_labels: ClassVar = {
        "start": Label("rows", "first row of the window"),
        "measure": Label("", "short name of the measure"),
        "value": Label("", "of the series"),
        "low": Label("", "of the surrogates, the quantile 0.025"),
        "high": Label("", "of the surrogates, the quantile 0.975"),
        "p_value": Label("1", "two-sided, by counting surrogates"),
        "q_value": Label("1", "false discovery rate over all rows"),
    }

    measures: tuple[str, ...]
    starts: tuple[int, ...]
    value: Doubles
    surrogates: Doubles
    p_value: Doubles
    q_value: Doubles
    reasons: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def _facts(self) -> dict[str, str]:
        facts = {"windows": f"{len(self.starts):,}", "surrogates": f"{self.surrogates.shape[2]:,}"}
        return facts | {"measures": brief(self.measures), "q_value": brief(self.q_value)}

    def answer(self) -> Answer:
        """The measures that differ most from those of surrogates."""
        table = self.to_dict()
        rows = sorted(zip(*table.values(), strict=True), key=lambda row: (np.isnan(row[-1]), row[-1]))
        return Answer(tuple(table), rows[:ANSWER_ROWS], len(rows))

    @property
    def band(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends (windows, measures) between which 95 % of the surrogates lie."""
        present = np.sort(self.surrogates, axis=2)  # NaN at the end
        n = np.isfinite(present).sum(axis=2)
        ends = []
        for share in (0.025, 0.975):
            place = np.clip(np.floor(share * (n + 1)).astype(np.int64) - (share < 0.5), 0, np.maximum(n - 1, 0))
            ends.append(np.take_along_axis(present, place[..., None], axis=2)[..., 0])
        return ends[0], ends[1]

    def significant(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Where (windows, measures) the false discovery rate is at most ``rate``."""
        found: NDArray[np.bool_] = self.q_value <= states.share("rate", rate)
        return found

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of what ``to_frame`` holds: a row for each window and measure."""
        return _by_window(self, ("value", "low", "high", "p_value", "q_value"))

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each window and measure."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())

    def plot(self, path: str | None = None) -> Any:
        """Measures and bands of their surrogates over the windows; saved to ``path`` if given. Needs matplotlib."""
        from .plot.recurrence import tested_curves

        return tested_curves(self, path)


def _by_window(found: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Lists of starts, measures and of the arrays (windows, measures) of a result."""
    places = list(itertools.product(found.starts, found.measures))
    arrays = dict(zip(("low", "high"), found.band, strict=True))
    out: dict[str, list[Any]] = {"start": [at for at, _ in places], "measure": [name for _, name in places]}
    return out | {name: (arrays[name] if name in arrays else getattr(found, name)).ravel().tolist() for name in names}


def _windows(
    x: Any, y: Any, window: Any, step: Any, measures: Any, radius: Any, threshold: str
) -> tuple[tuple[str, ...], list[Series], tuple[int, ...], list[list[Doubles]]]:
    """Short names of the measures; the series, first rows of the windows, and the windows of each series."""
    if isinstance(measures, str) or not len(measures):
        raise InputError(f"measures={shown(measures)}: a list is needed, such as ['DET', 'LAM']")
    short = {long: name for name, long in SHORT_NAMES.items()}
    for name in measures:
        if name not in SHORT_NAMES and name not in short:
            raise InputError(f"measures={shown(measures)}: {shown(name)} is none; choose of {', '.join(SHORT_NAMES)}")
    if threshold_named(threshold) == "corridor" or np.ndim(radius):
        raise InputError(f"radius={shown(radius)}: one number is needed; call once for each")
    if y is not None:
        require_same_times(x=x, y=y)
    series = [states.one_series(data, name) for name, data in (("x", x), ("y", y)) if data is not None]
    rows = series[0].n_steps
    if series[-1].n_steps != rows and window is not None:
        raise InputError(f"y: {series[-1].n_steps} rows, and x has {rows}; windows of both begin together")
    along = windows_along(window, step, rows)
    starts = tuple(along.starts)
    sides = [[side.values[at : at + along.width if window is not None else None, 0] for at in starts]
             for side in series]  # fmt: skip
    return tuple(short.get(name, name) for name in measures), series, starts, sides


@public_function
def rqa_significance(
    x: Any,
    y: Any = None,
    *,
    window: int | None = None,
    step: int | None = None,
    measures: Sequence[str] = MEASURES,
    n: int = 199,
    surrogate: str = "iaaft",
    period: float | None = None,
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
    seed: int | None = None,
    regular: str | None = None,
    progress: Progress | None = None,
    device: Device = None,
    tune: str | None = None,
) -> RqaSignificance:
    """Test whether recurrence measures differ from those of surrogates, of a series or of windows along it.

    Parameters
    ----------
    x : array_like (n_steps,)
        A series.
    y : array_like (n_steps,), optional
        A second series, for cross recurrence; surrogates are of y, and x stays.
    window, step : int, optional
        Rows of windows that are tested each by itself, and from one to the next (a whole window by default). The last
        window is the last one that lies inside the series.
    measures : sequence of str
        Short or long names.
    n : int
        Surrogates of each window.
    surrogate : str
        Method of :func:`pyedmcl.surrogate`. "auto" keeps what each series suggests, such as seasons that several share
        and slow change; where "phase" and others lose that, a warning says so.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for the surrogates "seasonal" and "auto"; looked for by default, and for
        "seasonal" a warning says what was found.
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
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
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    RqaSignificance
        ``value``, ``p_value`` and ``q_value`` (windows, measures).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa_batch : compares all pairs of points of each.
    lag_profile : has surrogates of its own kinds, for who leads.

    Notes
    -----
    Cost: n + 1 times that of ``rqa`` for each window. ``bench/rqa_significance.py`` counts how often p <= 0.05 where
    the surrogates' hypothesis is true.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.empty(400)
    >>> x[0] = 0.3
    >>> for t in range(1, 400):
    ...     x[t] = 3.9 * x[t - 1] * (1 - x[t - 1])
    >>> bool(pyedmcl.rqa_significance(x, radius=0.1, measures=["DET"], n=39, seed=1).p_value[0, 0] <= 0.05)
    True
    """
    names, series, starts, sides = _windows(x, y, window, step, measures, radius, threshold)
    options: dict[str, Any] = {
        "m": m, "tau": tau, "radius": radius, "metric": metric, "lmin": lmin, "vmin": vmin, "wmin": wmin,
        "convention": convention, "threshold": threshold, "normalize": normalize, "radius_unit": radius_unit,
        "errors": "raise", "device": device,
    }  # fmt: skip
    given = series[-1].values[:, 0]
    if surrogate in ("iaaft", "phase") and far_from_normal(given[np.isfinite(given)]):
        warn(
            f"{'x' if y is None else 'y'}: its values are far from normal, of which surrogate={surrogate!r} keeps too "
            "little: p-values of linear processes are too small. Test a transformed series, such as its logarithm",
            RecurrenceWarning,
        )  # fmt: skip
    tested = rqa_batch(sides[0], sides[1] if y is not None else None, theiler=theiler, **options)
    options |= {"theiler": tested.theiler}
    value = np.stack([tested.measure(name) for name in names], axis=1).astype(np.float64)
    drawn = np.empty((len(starts), len(names), n))
    random, reasons = states.stream(seed), []
    for number in range(len(starts)):
        part = build_series(sides[-1][number], series[-1].names)
        chosen = choices_of([part], surrogate, period)
        choice = chosen[0][0] if chosen[0] else None
        reasons += [] if choice is None else [choice.reason]
        make = maker(part, surrogate, period=period, E=max(m, 2), tau=tau, name="surrogate", choice=choice)
        made = list(draw(make, n, random, number, part.n_steps))
        against = rqa_batch(*([made] if y is None else [[sides[0][number]] * n, made]), **options)
        for at, name in enumerate(names):
            drawn[number, at] = against.measure(name)
        report_progress(number + 1, len(starts), "windows")
    (above, there), (below, _) = counts(value, drawn), counts(-value, -drawn)
    p = np.minimum(2 * p_values(np.minimum(above, below), there), 1.0)
    tell_reach(p, n, 0.05, sides=2, tests="measures of windows")
    origin = {**tested.provenance, "n": n, "surrogate": surrogate, "seed": random, "window": window, "step": step}
    return RqaSignificance(names, starts, value, drawn, p, false_discovery(p), tuple(reasons), origin)

# Bands of measures, for the series that the same process might have given.


# A maximum, or a white line that a left out stretch lets grow, does not follow from parts of a series.
BANDED = ("RR", "DET", "L", "ENTR", "LAM", "TT", "VENTR", "RATIO")
_SHARES = ("RR", "DET", "LAM")
_STRETCHES = 10  # of a series, of which each is left out in turn
_COSINES = 6  # slow waves along the stretches, whose mean square is the variance: degrees of freedom of the bands


@dataclass(frozen=True, eq=False, repr=False)
class RqaBands(Result):
    """Recurrence measures of a series, or of windows along it, and bands around them.

    Attributes
    ----------
    measures : tuple of str
        Short names.
    starts : tuple of int
        First row of each window; (0,) for the whole series.
    value, low, high : ndarray of float64 (windows, measures)
        The measures and the ends of their bands.
    standard_error : ndarray of float64 (windows, measures)
    level : float
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> bands = pyedmcl.rqa_bands(x, radius=0.3, measures=["DET"])
    >>> bool(bands.low[0, 0] < bands.value[0, 0] < bands.high[0, 0])
    True
    >>> bands.to_frame().columns.tolist()
    ['start', 'measure', 'value', 'low', 'high', 'standard_error']
    """

    series_label: ClassVar = Label("", "what tells the rows apart")
    column_labels: ClassVar = {
        "start": Label("rows", "first row of the window"),
        "measure": Label("", "short name of the measure"),
        "value": Label("", "of the series"),
        "low": Label("", "lower end of the band"),
        "high": Label("", "upper end of the band"),
        "standard_error": Label("", "of the value"),
    }

    measures: tuple[str, ...]
    starts: tuple[int, ...]
    value: Doubles
    low: Doubles
    high: Doubles
    standard_error: Doubles
    level: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def _facts(self) -> dict[str, str]:
        facts = {"windows": f"{len(self.starts):,}", "level": f"{self.level:g}", "measures": brief(self.measures)}
        return facts | {"value": brief(self.value), "low": brief(self.low), "high": brief(self.high)}

    def answer(self) -> Answer:
        """The bands of the first measures and windows."""
        table = self.to_dict()
        rows = list(zip(*table.values(), strict=True))
        return Answer(tuple(table), rows[:ANSWER_ROWS], len(rows))

    @property
    def band(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends (windows, measures)."""
        return self.low, self.high

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of what ``to_frame`` holds: a row for each window and measure."""
        return _by_window(self, ("value", "low", "high", "standard_error"))

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each window and measure."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())

    def plot(self, path: str | None = None) -> Any:
        """Measures with their bands over the windows; saved to ``path`` if given. Needs matplotlib."""
        from .plot.recurrence import tested_curves

        return tested_curves(self, path, band=f"band of {100 * self.level:g} %")


@public_function
def rqa_bands(
    x: Any,
    y: Any = None,
    *,
    window: int | None = None,
    step: int | None = None,
    measures: Sequence[str] = ("RR", *(name for name in MEASURES if name != "Lmax")),
    level: float = 0.95,
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
    regular: str | None = None,
    progress: Progress | None = None,
    device: Device = None,
    tune: str | None = None,
) -> RqaBands:
    """Find how far recurrence measures would differ in another series of the same process, of the same length.

    Each of ten stretches of the series is left out in turn. The measures without it say how much it counts, and how
    these shares vary along the series, slow change included, says how much the measures do (a jackknife of blocks:
    Künsch, Annals of Statistics 17, 1217, 1989; from cosines: Lazarus et al., Journal of Business & Economic
    Statistics 36, 541, 2018).

    Parameters
    ----------
    x : array_like (n_steps,)
        A series.
    y : array_like (n_steps,), optional
        A second series, for cross recurrence; the same rows of both are left out.
    window, step : int, optional
        Rows of windows that have bands each of its own, and from one to the next (a whole window by default). The last
        window is the last one that lies inside the series.
    measures : sequence of str
        Short or long names, of RR, DET, L, ENTR, LAM, TT, VENTR and RATIO.
    level : float
        How often bands hold the mean of the measure over such series; in (0, 1).
    m : int
        Embedding dimension: coordinates of a point, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
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
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    RqaBands
        ``value``, ``low`` and ``high`` (windows, measures).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa_significance : compares with what other processes give.

    Notes
    -----
    Cost: eleven times that of ``rqa_batch`` of the windows. ``bench/rqa_bands.py`` counts how often bands hold the mean
    of many series, and how rarely those do that draw the lines of the histogram anew (Schinkel et al., Physics Letters
    A 373, 2245, 2009): lines of one series are not independent. A warning says where stretches are too short.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(800)
    >>> pyedmcl.rqa_bands(x, window=400, radius=0.3, measures=["DET", "LAM"]).low.shape
    (2, 2)
    """
    names, series, starts, sides = _windows(x, y, window, step, measures, radius, threshold)
    for name in names:
        if name not in BANDED:
            raise InputError(f"measures={shown(measures)}: {name} has no band; choose of {', '.join(BANDED)}")
    level = states.share("level", level)
    length = len(sides[0][0])
    if series[-1].n_steps != series[0].n_steps:
        raise InputError(f"y: {series[-1].n_steps} rows, and x has {series[0].n_steps}; the same rows are left out")
    memory = max(correlation_time(side.values) for side in series) + (m - 1) * tau
    if length < _STRETCHES * (2 * (m - 1) * tau + 2):
        raise InputError(f"x: {length} rows; bands need {_STRETCHES} stretches that are longer than points reach")
    if length < _MEMORIES * _STRETCHES * memory:
        warn(
            f"x: stretches of {length // _STRETCHES:,} rows, and values remember {memory:,}: bands of series shorter "
            f"than {_MEMORIES * _STRETCHES * memory:,} rows may hold another level than {level:g}", RecurrenceWarning,
        )  # fmt: skip
    edges = np.linspace(0, length, _STRETCHES + 1).astype(np.int64)
    parts = [[_without(one, edges) for one in side] for side in sides]
    batch = rqa_batch(
        list(itertools.chain(*parts[0])), list(itertools.chain(*parts[1])) if y is not None else None, m=m, tau=tau,
        radius=radius, metric=metric, theiler=theiler, lmin=lmin, vmin=vmin, wmin=wmin, convention=convention,
        threshold=threshold, normalize=normalize, radius_unit=radius_unit, errors="raise", device=device,
    )  # fmt: skip
    shape = len(starts), _STRETCHES + 1
    points = np.array([np.count_nonzero(_points_of(batch, at)) for at in range(len(batch))]).reshape(shape)
    found = np.stack([batch.measure(name).reshape(shape) for name in names], axis=2).astype(np.float64)
    value, lost = found[:, 0], points[:, :1] - points[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(lost > 0, points[:, 1:] / lost, 0.0)
    moved = share[..., None] * (value[:, None] - found[:, 1:])  # how far a stretch moves the measure, times stretches
    middles, waves = np.arange(_STRETCHES) + 0.5, np.arange(1, _COSINES + 1)
    cosines = np.sqrt(2 / _STRETCHES) * np.cos(np.pi / _STRETCHES * np.outer(waves, middles))
    error = np.sqrt((np.einsum("cs,wsm->cwm", cosines, moved) ** 2).mean(axis=0) / _STRETCHES)
    reach = _student_reach(level) * error
    shares = np.isin(names, _SHARES)
    low = np.where(shares, np.maximum(value - reach, 0), value - reach)
    high = np.where(shares, np.minimum(value + reach, 1), value + reach)
    origin = {**batch.provenance, "window": window, "step": step}
    return RqaBands(names, starts, value, low, high, error, level, origin)


def _without(series: Doubles, edges: NDArray[np.int64]) -> list[Doubles]:
    """A series, and copies with gaps in place of each stretch."""
    copies = [series.copy() for _ in range(len(edges))]
    for at, copy in enumerate(copies[1:]):
        copy[edges[at] : edges[at + 1]] = np.nan
    return copies


def _points_of(batch: RqaBatch, number: int) -> NDArray[np.bool_]:
    return batch.x.complete(number) & batch.y.complete(number)


def _student_reach(level: float) -> float:
    """Standard errors to either side that hold a share of Student's t with six degrees of freedom."""
    low, high = 0.0, 1.0
    for _ in range(60):  # of the sine of the angle whose tangent is t / sqrt(6), by halving
        sine = (low + high) / 2
        rest = 1 - sine * sine
        held = sine * (1 + rest / 2 + 3 * rest * rest / 8)
        low, high = (sine, high) if held < level else (low, sine)
    return float(np.sqrt(_COSINES) * low / np.sqrt(1 - low * low))
