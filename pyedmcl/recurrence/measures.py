"""Measures of recurrence quantification, and the results that compute them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..arguments import boolean, integer
from ..errors import InputError, need, pandas_for, shown
from ..results.result import ANSWER_ROWS, Answer, Label, Result, brief
from ..results.result import labelled as labelled_array
from . import counts as formulas
from .arguments import minimum
from .counts import CountedMatrix, Counts, both_sides, cells_by_offset, cells_of_both_sides

# To add a measure: a property of :class:`Measures` here, a row of the table "Measures" in ``docs/recurrence.md``, a
# test. Results, tables and the command line list what is here.


N = TypeVar("N", int, float)

#: Short name of each measure to its long one, which is that of the property; in the order in which results list them.
SHORT_NAMES: dict[str, str] = {}


#: Unit and meaning of each measure by its long name.
MEASURE_LABELS: dict[str, Label] = {}


def _short(name: str, unit: str = "1") -> Callable[[Callable[[Any], N]], Callable[[Any], N]]:
    """Give the measure that follows a short name, a unit, and the convention's value where there is none."""

    def register(measure: Callable[[Any], N]) -> Callable[[Any], N]:
        SHORT_NAMES[name] = measure.__name__
        MEASURE_LABELS[measure.__name__] = Label(unit, (measure.__doc__ or "").strip().rstrip("."))
        measure.__doc__ = f"{name}: {measure.__doc__}"

        @functools.wraps(measure)
        def or_none(self: Any) -> Any:
            value = measure(self)
            return self.convention.none(name) if value != value else value

        return or_none

    return register


def short_name(long: str) -> str:
    """The short name of a measure."""
    return next(short for short, name in SHORT_NAMES.items() if name == long)


def long_name(name: str) -> str:
    """The long name of a measure, by either of its names."""
    known = isinstance(name, str) and (name in SHORT_NAMES or name in SHORT_NAMES.values())
    if not known:
        raise InputError(f"measure {shown(name)} is not known; choose one of {', '.join(SHORT_NAMES)} or a long name")
    return SHORT_NAMES.get(name, name)


class Measures(CountedMatrix):
    """Numbers that follow from the counts. Over no lines they are NaN, or what the convention says; lengths are 0."""

    @property
    @_short("RR")
    def recurrence_rate(self) -> float:
        """Recurrent points / cells."""
        return formulas.ratio(self.counts.points, self.cells)

    @property
    @_short("DET")
    def determinism(self) -> float:
        """Points on diagonal lines of at least lmin / points on all diagonal lines."""
        return formulas.share(self._diagonals, self.lmin)

    @property
    @_short("L", "rows")
    def average_diagonal_line(self) -> float:
        """Mean length of diagonal lines of at least lmin."""
        return formulas.average(self._diagonals, self.lmin)

    @property
    @_short("Lmax", "rows")
    def longest_diagonal_line(self) -> int:
        """Length of the longest diagonal line, 0 where there is none."""
        least = self.lmin if self.convention.longest_from_minimum else 1
        return formulas.longest(self._diagonals if self.convention.has_theiler else self.counts.diagonals, least)

    @property
    @_short("DIV", "1 / rows")
    def divergence(self) -> float:
        """1 / Lmax."""
        return formulas.inverse(self.longest_diagonal_line)

    @property
    @_short("ENTR", "nats")
    def entropy_diagonal_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of diagonal lines of at least lmin."""
        return formulas.entropy(self._diagonals, self.lmin)

    @property
    @_short("LAM")
    def laminarity(self) -> float:
        """Points on vertical lines of at least vmin / points on all vertical lines."""
        return formulas.share(self._verticals, self.vmin)

    @property
    @_short("TT", "rows")
    def trapping_time(self) -> float:
        """Mean length of vertical lines of at least vmin."""
        return formulas.average(self._verticals, self.vmin)

    @property
    @_short("Vmax", "rows")
    def longest_vertical_line(self) -> int:
        """Length of the longest vertical line, 0 where there is none."""
        return formulas.longest(self._verticals, self.vmin if self.convention.longest_from_minimum else 1)

    @property
    @_short("VENTR", "nats")
    def entropy_vertical_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of vertical lines of at least vmin."""
        return formulas.entropy(self._verticals, self.vmin)

    @property
    @_short("W", "rows")
    def average_white_vertical_line(self) -> float:
        """Mean length of white vertical lines of at least wmin."""
        return formulas.average(self._whites, self.wmin)

    @property
    @_short("Wmax", "rows")
    def longest_white_vertical_line(self) -> int:
        """Length of the longest white vertical line, 0 where there is none."""
        return formulas.longest(self._whites, self.wmin if self.convention.longest_from_minimum else 1)

    @property
    @_short("WDIV", "1 / rows")
    def divergence_white_vertical_lines(self) -> float:
        """1 / Wmax."""
        return formulas.inverse(self.longest_white_vertical_line)

    @property
    @_short("WENTR", "nats")
    def entropy_white_vertical_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of white vertical lines of at least wmin."""
        return formulas.entropy(self._whites, self.wmin)

    @cached_property
    @_short("TREND", "1 / (1000 rows)")
    def trend(self) -> float:
        """Slope of the recurrence rate over the distance from the main diagonal, per 1000 steps."""
        rows = self.counts.n_rows
        recurrent = both_sides(self.counts.per_diagonal, rows)
        return formulas.trend(recurrent, cells_of_both_sides(*self.complete), self.theiler)

    @property
    @_short("T1", "rows")
    def recurrence_time_1(self) -> float:
        """Mean distance of successive recurrent points in a column."""
        return formulas.ratio(self.counts.gap_sum, self.counts.gap_count)

    @property
    @_short("T2", "rows")
    def recurrence_time_2(self) -> float:
        """Mean distance of the starts of successive vertical lines (of any length) in a column."""
        return formulas.ratio(self.counts.period_sum, self.counts.period_count)

    @property
    @_short("RTE")
    def recurrence_period_density_entropy(self) -> float:
        """Normalised entropy of the lengths of white vertical lines between recurrences."""
        return formulas.period_entropy(self.counts.whites)

    @property
    @_short("RATIO")
    def ratio(self) -> float:
        """Determinism / recurrence rate: it rises where order grows while recurrence does not."""
        return self.determinism / self.recurrence_rate if self.recurrence_rate else math.nan

    @property
    @_short("CORM")
    def center_of_recurrence_mass(self) -> float:
        """Mean distance in rows of recurrent cells from the main diagonal / the largest distance there is."""
        mass, cells = formulas.moments(both_sides(self.counts.per_diagonal, self.counts.n_rows)[None], self.theiler)
        return float((mass / cells)[0]) if cells[0] else math.nan


# Recurrence rates by lag, and the band of their surrogates.


Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LagProfile(Result):
    """Recurrence rates by lag: of a dyad, of several, or of windows.

    A positive lag compares x with y as many rows later: a peak there says that x leads and y follows.

    Attributes
    ----------
    rate : ndarray of float64 (profiles, lags)
        NaN where no pair of points without a gap is that far apart.
    lags : ndarray of int (lags,)
    labels : mapping of str to tuple
        What tells the profiles apart, a value for each.
    surrogates : ndarray of float64 (profiles, n, lags), optional
        Profiles of surrogates.
    level : float
        Share of surrogates that the band holds at each lag.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> y = np.roll(x, 3)  # follows three rows later
    >>> profile = pyedmcl.lag_profile(x, y, lags=10, radius=0.1, n=99, seed=1)
    >>> profile.max_lag.tolist(), profile.max_rate.round(2).tolist(), profile.p_value.tolist()
    ([3], [1.0], [0.01])
    """

    column_labels: ClassVar = {
        "lag": Label("rows", "rows by which y is later than x"),
        "rate": Label("1", "recurrent pairs of points at the lag by all such pairs"),
        "low": Label("1", "lower end of the band of surrogates"),
        "high": Label("1", "upper end of the band of surrogates"),
    }
    series_label: ClassVar = Label("", "what tells the profiles apart")

    rate: Doubles
    lags: NDArray[np.int64]
    labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    surrogates: Doubles | None = None
    level: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rate)

    def _facts(self) -> dict[str, str]:
        facts = {"profiles": f"{len(self):,}", "lags": f"{self.lags[0]} to {self.lags[-1]}"}
        facts |= {"max_lag": brief(self.max_lag), "max_rate": brief(self.max_rate)}
        return facts if self.surrogates is None else facts | {"p_value": brief(self.p_value)}

    @property
    def max_rate(self) -> Doubles:
        """The highest rate of each profile (maxrec of crqa)."""
        highest: Doubles = np.fmax.reduce(self.rate, axis=1)
        return highest

    @property
    def max_lag(self) -> NDArray[np.int64]:
        """The lag at which it lies (maxlag of crqa); of several the one nearest to 0."""
        nearest = np.argsort(np.abs(self.lags), kind="stable")
        rates = np.where(np.isnan(self.rate), -1.0, self.rate)[:, nearest]
        found: NDArray[np.int64] = self.lags[nearest][rates.argmax(axis=1)]
        return found

    @property
    def band(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends (profiles, lags): between them lie ``level`` of the surrogates at each lag by itself."""
        tail = (1 - self.level) / 2
        low, high = np.quantile(self._surrogates(), [tail, 1 - tail], axis=1, method="weibull")
        return low, high

    @property
    def p_value(self) -> Doubles:
        """How often the highest rate of a surrogate, at whatever lag, is as high as that of the profile: all lags are
        tested at once. (1 + such surrogates) / (1 + surrogates)."""
        highest = np.fmax.reduce(self._surrogates(), axis=2)
        reached = np.count_nonzero(highest >= self.max_rate[:, None], axis=1)
        p: Doubles = (1 + reached) / (1 + highest.shape[1])
        return p

    def mean(self) -> LagProfile:
        """The mean profile, with the mean of the first surrogates of all, of the second, ... for its band."""
        return LagProfile(
            np.nanmean(self.rate, axis=0)[None], self.lags, {},
            None if self.surrogates is None else np.nanmean(self.surrogates, axis=0)[None], self.level, self.provenance,
        )  # fmt: skip

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of labels, lags, rates and ends of the band, profile by profile."""
        times = len(self.lags)
        out = {name: [value for value in values for _ in range(times)] for name, values in self.labels.items()}
        out |= {"lag": self.lags.tolist() * len(self), "rate": self.rate.ravel().tolist()}
        if self.surrogates is not None:
            out |= {name: end.ravel().tolist() for name, end in zip(("low", "high"), self.band, strict=True)}
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each profile and lag."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())

    def to_xarray(self) -> Any:
        """An xarray.Dataset with ``rate``, ``low`` and ``high`` over (profile, lag)."""
        names = list(range(len(self)))
        arrays = {"rate": self.rate}
        if self.surrogates is not None:
            arrays |= dict(zip(("low", "high"), self.band, strict=True))
        axes = [("profile", names), ("lag", self.lags)]
        made = {name: labelled_array(values, axes, name) for name, values in arrays.items()}
        return need("xarray", "to_xarray()").Dataset(made)

    def plot(self, path: str | None = None) -> Any:
        """The profile with its band; of several profiles, their mean. Saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import lag_curve

        return lag_curve(self if len(self) == 1 else self.mean(), path, several=len(self))

    def _surrogates(self) -> Doubles:
        if self.surrogates is None:
            raise InputError("n=99 or another number of surrogates is needed for a band and a p-value")
        return self.surrogates


def profile_of(
    matrices: Sequence[Any], lags: Any, labels: Mapping[str, tuple[Any, ...]], provenance: Mapping[str, Any]
) -> LagProfile:
    """The lag profiles of counted matrices, which need not be of two series.

    Parameters
    ----------
    lags : int, optional
        As for :func:`pyedmcl.lag_profile`; by default as far as all matrices reach.
    """
    reach = min(min(one.counts.n_rows, one.counts.n_columns) for one in matrices) - 1
    most = reach if lags is None else integer("lags", lags, 0, "the largest lag to either side", most=reach)
    rates = np.array([_rates_of(one.counts, one, most) for one in matrices])
    return LagProfile(rates, np.arange(-most, most + 1), labels, provenance=provenance)


def _rates_of(counts: Counts, result: Any, most: int) -> Doubles:
    middle = counts.n_rows - 1
    place = slice(middle - most, middle + most + 1)
    cells = cells_by_offset(*result.complete)[place]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates: Doubles = np.where(cells > 0, counts.per_diagonal[place] / cells, np.nan)
    # Diagonals are counted by column - row, and columns are points of x, unless the convention has them otherwise.
    return rates[::-1] if result.convention.columns == "x" else rates


# What recurrence quantification returns: frozen integer counts, and every measure computed from them when asked.


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceResult(Measures, Result):
    """Recurrence quantification of one matrix.

    Every measure is an attribute by its long and its short name (``result.determinism``, ``result.DET``) and an item
    (``result["DET"]``). A mean over no lines is NaN. Points that touch a gap belong to no cell: they are left out of
    the denominators, black lines end there, white lines run through them.

    Attributes
    ----------
    counts : Counts
        The integers that all follows from.
    convention : Convention
    radius : float or tuple
        The radius of this matrix (in the data's unit); (inner, outer) for a corridor; NaN where each point has its own.
    theiler : int
        Cells with |i - j| < theiler are left out, of what, the convention says.
    lmin, vmin, wmin : int
        Least lengths of diagonal, vertical and white vertical lines; see :meth:`with_minimum`.
    complete : tuple of two ndarrays of bool
        Which rows and which columns are points without a gap.
    symmetric : bool
        Rows and columns stand for the same points.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.rqa(x, m=2, tau=8, radius=0.2)
    >>> round(result.determinism, 2), result.DET == result["DET"] == result.determinism
    (1.0, True)
    >>> list(result.to_dict(short=True))[:3]
    ['RR', 'DET', 'L']
    >>> result.with_minimum(lmin=100).DET < result.DET  # shorter lines do not count
    True
    """

    def _headline(self, alone: bool) -> str:
        shown = ", ".join(f"{name}={self[name]:.6g}" for name in ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT"))
        size = f"{self.counts.n_rows} x {self.counts.n_columns}"
        return f"RecurrenceResult({size}, radius={self.radius!r}, convention={self.convention.name!r}, {shown})"

    def _facts(self) -> dict[str, str]:
        size = f"{self.counts.n_rows} x {self.counts.n_columns}"
        facts = {"points": size, "radius": brief(self.radius), "convention": self.convention.name}
        return facts | {name: brief(value) for name, value in self.to_dict().items()}

    def __getattr__(self, name: str) -> Any:
        if name in SHORT_NAMES:
            return getattr(self, SHORT_NAMES[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SHORT_NAMES]

    def __getitem__(self, name: str) -> Any:
        long = SHORT_NAMES.get(name, name)
        if long not in SHORT_NAMES.values():
            raise KeyError(f"no measure {name!r}; there are {', '.join(SHORT_NAMES)} and their long names")
        return getattr(self, long)

    def with_minimum(
        self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None
    ) -> RecurrenceResult:
        """The same matrix with other least lengths of lines; nothing is computed anew on a device.

        Parameters
        ----------
        lmin, vmin, wmin : int, optional
            At least 1; those left out stay.

        Raises
        ------
        InputError
            For anything else.
        """
        return replace(
            self,
            lmin=self.lmin if lmin is None else minimum("lmin", lmin),
            vmin=self.vmin if vmin is None else minimum("vmin", vmin),
            wmin=self.wmin if wmin is None else minimum("wmin", wmin),
        )

    def to_dict(self, *, short: bool = False) -> dict[str, Any]:
        """All measures as plain numbers, by their long (or ``short``) names."""
        chosen = boolean("short", short)
        return {s if chosen else long: getattr(self, long) for s, long in SHORT_NAMES.items()}

    column_labels: ClassVar = MEASURE_LABELS

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row, a column per measure."""
        columns = {name: [value] for name, value in self.to_dict().items()}
        return labelled_frame(columns, "radius", (self.radius,))

    def lag_profile(self, lags: int | None = None) -> Any:
        """The recurrence rate of each diagonal up to ``lags`` to either side, by the lag of y after x: a
        :class:`pyedmcl.recurrence.measures.LagProfile`. Cells that a Theiler window leaves out do not recur."""
        return profile_of([self], lags, {}, self.provenance)

    def plot(self, path: str | None = None) -> Any:
        """Histograms of the lines; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import line_histograms

        return line_histograms(self, path)


def labelled_frame(columns: Mapping[str, Sequence[Any]], label: str, labels: Sequence[Any]) -> Any:
    """A pandas DataFrame of measures, a row for each of the matrices that ``labels`` tell apart."""
    frame = need("pandas", "to_frame()").DataFrame(columns)
    frame.index = list(labels)
    frame.index.name = label
    return frame


# Recurrence quantification of several matrices side by side.


def first_measures(columns: Mapping[str, Sequence[Any]], total: int) -> Answer:
    """What tells matrices apart, and the measures that are looked at first."""
    symbols = [name for name in columns if name in SHORT_NAMES]
    shown = [name for name in columns if name not in (*symbols, "radius_used")] + ["RR", "DET", "Lmax", "ENTR", "LAM"]
    rows = [[columns[name][row] for name in shown] for row in range(min(total, ANSWER_ROWS))]
    return Answer(shown, rows, total)


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceTable(Result, Sequence[RecurrenceResult]):
    """Recurrence quantification of several matrices: of several radii, or of windows along a series.

    Attributes
    ----------
    results : tuple of RecurrenceResult
    label : str
        What tells them apart: "radius" or "start".
    labels : tuple
        Its value for each.
    time : ndarray, optional
        The middle of each window, as a date or number, where the series have a time.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> table = pyedmcl.windowed_rqa(x, 200, 100, m=2, tau=8, radius=0.2)
    >>> table.label, table.labels  # row at which each window begins
    ('start', (0, 100, 200, 300))
    >>> table.measure("RR").round(2).tolist()
    [0.06, 0.06, 0.06, 0.06]
    >>> bool(table[0].RR == table.measure("RR")[0])
    True
    """

    column_labels: ClassVar = {"time": Label("", "the middle of the window"), **MEASURE_LABELS}

    results: tuple[RecurrenceResult, ...]
    label: str
    labels: tuple[Any, ...]
    time: NDArray[Any] | None = None

    def answer(self) -> Answer:
        """The first measures of each matrix."""
        return first_measures(self.to_dict(short=True), len(self))

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the results come from, which is the same for all."""
        return self.results[0].provenance if self.results else {}

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[RecurrenceResult]:
        return iter(self.results)

    @overload
    def __getitem__(self, index: int) -> RecurrenceResult: ...
    @overload
    def __getitem__(self, index: slice) -> RecurrenceTable: ...
    def __getitem__(self, index: int | slice) -> RecurrenceResult | RecurrenceTable:
        if isinstance(index, slice):
            time = None if self.time is None else self.time[index]
            return RecurrenceTable(self.results[index], self.label, self.labels[index], time)
        return self.results[operator.index(index)]

    def measure(self, name: str) -> NDArray[Any]:
        """One measure (short or long name) of all matrices as an array."""
        long = long_name(name)
        return np.array([result[long] for result in self.results])

    def with_minimum(
        self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None
    ) -> RecurrenceTable:
        """As :meth:`RecurrenceResult.with_minimum`, for all."""
        changed = tuple(result.with_minimum(lmin=lmin, vmin=vmin, wmin=wmin) for result in self.results)
        return replace(self, results=changed)

    def to_dict(self, *, short: bool = False) -> dict[str, list[Any]]:
        """Lists of the labels and of all measures."""
        rows = [result.to_dict(short=short) for result in self.results]
        names = SHORT_NAMES if boolean("short", short) else SHORT_NAMES.values()
        return {self.label: list(self.labels), **{name: [row[name] for row in rows] for name in names}}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per matrix, the time of windows that have one, and a column per measure."""
        columns = self.to_dict()
        labels = columns.pop(self.label)
        timed: dict[str, Any] = {} if self.time is None else {"time": self.time}
        return labelled_frame({**timed, **columns}, self.label, labels)

    def lag_profile(self, lags: int | None = None) -> Any:
        """The lag profile of each matrix, as :meth:`RecurrenceResult.lag_profile`: of windows, who leads when."""
        return profile_of(self.results, lags, {self.label: self.labels}, self.provenance)

    def plot(self, path: str | None = None, *, names: Sequence[str] = ("RR", "DET", "LAM", "ENTR")) -> Any:
        """Measures over the label, or the time of the windows; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import measure_curves

        return measure_curves(self, names, path)
