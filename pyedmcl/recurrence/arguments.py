"""Arguments of the recurrence functions: metrics, conventions, and units of radii."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..arguments import precision, reporter
from ..errors import InputError, RecurrenceWarning, shown, warn
from ..parameters import THRESHOLDS
from ..series.scaling import exponents

# The distance metrics, a row each. Whatever depends on the metric is derived from this table.
#
# The difference of two points in a coordinate gives a *term*, and the terms of all coordinates are *joined*, in
# ascending order, to one number. That number is compared with a *limit*; no root is taken. Each step is rounded on its
# own.
#
# To add a metric: a row here; the macros of the same name in ``clkernels/metric.clh`` (and ``tuning/rekey.py``, since
# these belong to the text of kernels whose parameters stay good); its NumPy function among those of
# ``pyedmcl/reference/recurrence.py``, which the tests compare with; its line in ``docs/recurrence.md``.


Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Metric:
    """One metric."""

    # What users and ``clkernels/metric.clh`` call it.
    name: str
    # The distance, in words.
    meaning: str
    # Difference in a coordinate -> its term, not negative.
    term: Callable[[Any], Any]
    # How terms become one number: ``np.add`` or ``np.maximum``.
    join: np.ufunc
    # limit_of, radius_of: From a radius to what is compared, and back; for numbers and arrays of either precision.
    limit_of: Callable[[Any], Any]
    radius_of: Callable[[Any], Any]
    # Where all coordinates are multiplied by c, what is compared is multiplied by ``c**degree``.
    degree: int
    # Number of coordinates n -> an upper bound of ``compared ** (1 / degree)`` of two points that are at most 1 apart
    # in each coordinate: how errors of coordinates add up.
    spread: Callable[[int], float]
    # What other packages call it, in small letters.
    aliases: tuple[str, ...] = ()
    # Points (n, coordinates) in float64 -> the points that are compared instead; NaN where there is none, which counts
    # as a gap.
    prepare: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None

    def compared(self, differences: Iterable[Floats]) -> Floats:
        """What is compared with a limit, given the differences in each coordinate; the bits that kernels find."""
        with np.errstate(over="ignore", under="ignore"):
            joined: Floats = functools.reduce(self.join, map(self.term, differences))
        return joined

    def __reduce__(self) -> tuple[Any, ...]:
        return metric_named, (self.name,)  # its functions do not travel to another process


def _same(value: Any) -> Any:
    return value


def _directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points divided by their length; NaN where that is 0."""
    largest = np.abs(points).max(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):  # of gaps
        near_one = np.ldexp(points, -np.frexp(largest)[1])  # squares neither overflow nor vanish
        squares = functools.reduce(np.add, (column * column for column in near_one.T))
        directions: NDArray[np.float64] = near_one / np.sqrt(squares)[:, None]
    return directions


_ROWS = (
    Metric(
        name="euclidean", meaning="root of the sum of squares",
        term=lambda difference: difference * difference, join=np.add,
        limit_of=lambda radius: radius * radius, radius_of=np.sqrt, degree=2, spread=math.sqrt,
        aliases=("l2", "euclideanmetric", "euclidean norm"),
    ),
    Metric(
        name="maximum", meaning="largest magnitude",
        term=np.abs, join=np.maximum,
        limit_of=_same, radius_of=_same, degree=1, spread=lambda n: 1.0,
        aliases=("chebyshev", "linf", "inf", "maximummetric", "supremum", "maxnorm", "maximum norm", "max", "sup"),
    ),
    Metric(
        name="manhattan", meaning="sum of magnitudes",
        term=np.abs, join=np.add,
        limit_of=_same, radius_of=_same, degree=1, spread=float,
        aliases=("cityblock", "taxicab", "l1", "taxicabmetric"),
    ),
    Metric(
        name="cosine", meaning="1 - cosine of the angle between the points",
        term=lambda difference: difference * difference, join=np.add,
        limit_of=lambda radius: 2 * radius, radius_of=lambda limit: limit / 2, degree=2, spread=math.sqrt,
        aliases=("cosinedist",), prepare=_directions,
    ),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ROWS}


def metric_named(value: object, argument: str = "metric") -> Metric:
    """The row called ``value``."""
    if isinstance(value, str) and value in METRICS:
        return METRICS[value]
    same = [m.name for m in _ROWS if isinstance(value, str) and value.lower() in m.aliases]
    hint = f", which is called {same[0]!r} here" if same else ""
    raise InputError(f"{argument}={shown(value)}{hint}: choose one of {', '.join(map(repr, METRICS))}")


# The rules in which tools for recurrence quantification differ, as presets.
#
# The tools agree on what a line is and on the formulas; they differ in whether the main diagonal (line of identity) and
# the Theiler window count, in the threshold at equality, and in what stands in denominators.


@dataclass(frozen=True)
class Convention:
    """The rules of one family of tools."""

    name: str
    # Recurrent is d < r; else d <= r.
    strict: bool
    # The Theiler window is left out of points, vertical and white lines too; else of diagonal lines only.
    theiler_everywhere: bool
    # There is a Theiler window at all. Where not, the main diagonal always is a diagonal line, but not the longest.
    has_theiler: bool
    # Denominator of the recurrence rate: "all" cells; those "outside" the Theiler window, but all of them in cross
    # recurrence, where a window is the exception; or "always outside".
    rate_over: str
    # Longest diagonal lines shorter than lmin are no lines (0); else the longest line of any length.
    longest_from_minimum: bool
    # White vertical runs that touch the border of the matrix are lines.
    white_borders: bool
    # Whose points the columns stand for in cross recurrence, "x" or "y": vertical lines stay at one of them.
    columns: str
    # The Theiler window of cross recurrence where none is asked for; that of one series is 1.
    cross_theiler: int = 0
    # The mean distance of one series is that of different points; else each point's distance to itself counts, too.
    mean_of_pairs: bool = True
    # Short names of measures to their value where there is nothing to compute them from; NaN for all others.
    over_none: Mapping[str, float] = field(default_factory=dict)

    def none(self, measure: str) -> float:
        """What a measure is over no lines."""
        return self.over_none.get(measure, math.nan)

    def outside(self, symmetric: bool) -> bool:
        """Whether the recurrence rate divides by the cells outside the Theiler window."""
        return self.rate_over == "always outside" or (self.rate_over == "outside" and symmetric)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "pyrqa", True, False, True, "all", False, True, "x", cross_theiler=1,
            over_none={"ENTR": 0.0, "VENTR": 0.0, "WENTR": 0.0},
        ),
        Convention("accrqa", False, False, False, "all", False, False, "x"),
        Convention(
            "recurrenceanalysis", False, True, True, "outside", True, False, "y",
            over_none={"DET": 0.0, "L": 0.0, "LAM": 0.0, "TT": 0.0, "W": 0.0},
        ),
        Convention("crqa", False, True, True, "all", True, False, "x", mean_of_pairs=False, over_none={"L": 0.0}),
        Convention(
            "crqa-2.1", False, True, True, "always outside", True, False, "x", mean_of_pairs=False,
            over_none={"L": 0.0},
        ),
    )
}


def convention_named(name: object) -> Convention:
    """The preset called ``name``."""
    convention = CONVENTIONS.get(name) if isinstance(name, str) else None
    if convention is None:
        raise InputError(f"convention={shown(name)}: choose one of {', '.join(map(repr, CONVENTIONS))}")
    return convention


# Series on a common scale, and radii in other units than that of the data: the one place for both rules.
#
# ``normalize`` changes each column of a series by itself, x and y apart, before anything else is done with it. Then a
# radius may be given as a multiple of the spread of what is compared. Standard deviations divide by the number of
# values (ddof = 0); values that are missing do not count.


Doubles = NDArray[np.float64]

SEARCHED = ("max_distance", "mean_distance")  # units that follow from all distances
_SCALED = ("fixed", "corridor")  # thresholds whose numbers are radii


class Spread(NamedTuple):
    """Of series, one for each row: all NaN where a series has no value."""

    mean: Doubles
    std: Doubles
    low: Doubles
    high: Doubles


def unit_named(unit: str, threshold: str) -> str:
    """``radius_unit`` if the threshold has a radius that it can scale."""
    if unit != "data" and threshold not in _SCALED:
        raise InputError(
            f"radius_unit={unit!r} scales a radius, and threshold={threshold!r} has none; leave it out, or choose "
            "threshold='fixed' or 'corridor'"
        )
    return unit


def spread(values: NDArray[Any]) -> Spread:
    """Mean, standard deviation, least and greatest value of each row (series, steps); bit for bit the same for a row
    whatever stands in others."""
    with np.errstate(invalid="ignore", divide="ignore"):
        least, greatest = (of.reduce(values, axis=1).astype(np.float64) for of in (np.fmin, np.fmax))
        exponent = exponents(values)
        near_one = np.ldexp(np.ascontiguousarray(values, np.float64), -exponent[:, None])
        present = ~np.isnan(near_one)
        n = present.sum(axis=1)
        mean = np.where(present, near_one, 0.0).sum(axis=1) / n
        off = np.where(present, near_one - mean[:, None], 0.0)
        std = np.sqrt((off * off).sum(axis=1) / n)
    constant = least == greatest  # whose mean is rounded, so that some deviation from it may be left
    return Spread(
        np.where(constant, least, np.ldexp(mean, exponent)), np.where(constant, 0.0, np.ldexp(std, exponent)),
        least, greatest,
    )  # fmt: skip


def normalized(values: NDArray[Any], how: str | None) -> NDArray[Any]:
    """Rows (series, steps) on a common scale: unchanged without ``how``, 0 everywhere for a constant row."""
    if how is None:
        return values
    spreads = spread(values)
    origin, unit = (spreads.mean, spreads.std) if how == "zscore" else (spreads.low, spreads.high / 2 - spreads.low / 2)
    exponent = np.frexp(np.where(unit > 0, unit, 1.0))[1][:, None]
    with np.errstate(invalid="ignore"):  # halves, and powers of two: no difference of extreme numbers overflows
        off = np.ldexp(values.astype(np.float64) / 2 - origin[:, None] / 2, 1 - exponent)
        scale = np.ldexp(np.where(unit > 0, unit, 1.0)[:, None], -exponent)
        out: Doubles = off / scale if how == "zscore" else off / scale / 2
    return out


def spread_in(unit: str, series: Spread) -> Doubles:
    """The unit of a radius of each row where the columns of a row (rows, columns), of one side or both, are compared:
    the root of their mean variance, or the largest of their ranges."""
    if unit == "range":
        largest: Doubles = 2 * (series.high / 2 - series.low / 2).max(axis=1)
        return largest
    exponent = exponents(series.std)
    near_one = np.ldexp(series.std, -exponent[:, None])
    roots: Doubles = np.ldexp(np.sqrt((near_one * near_one).sum(axis=1) / series.std.shape[1]), exponent)
    return roots


def required(unit: str, length: float, what: str) -> float:
    """The length of a unit, if it is one."""
    if 0 < length < math.inf:
        return length
    why = "no two different values" if length == 0 or math.isnan(length) else "values so large that it overflows"
    raise InputError(
        f"{what}: radius_unit={unit!r} cannot be used, since there are {why}; give the radius in the unit of the data"
    )


def scaled(radii: list[Any], length: float, name: str = "radius") -> list[Any]:
    """Radii, or pairs of them, in the unit of the data."""
    if length == 1.0:
        return radii
    pairs = [isinstance(radius, tuple) for radius in radii]
    out = [
        tuple(part * length for part in radius) if pair else radius * length
        for pair, radius in zip(pairs, radii, strict=True)
    ]
    for asked, radius in zip(radii, out, strict=True):
        outer = radius[1] if isinstance(radius, tuple) else radius
        if not 0 < outer < math.inf and asked != 0:
            raise InputError(f"{name}={asked!r}: times {length!r}, the unit asked for, it is no radius")
    return out


__all__ = [
    "correlation_time", "integer", "minimum", "only_alone", "precision", "radii_of", "reporter",
    "threshold_named", "window",
]  # fmt: skip

# What other packages, and other spellings, call them; the same number of neighbours goes by three names.
_ALIASES = {
    "neighbors": "neighbours", "fan": "neighbours", "fixed_amount_of_neighbours": "neighbours",
    "fixed_amount_of_neighbors": "neighbours", "rate": "recurrence_rate", "rr": "recurrence_rate",
    "fixed_rr": "recurrence_rate", "fixed_recurrence_rate": "recurrence_rate", "radius": "fixed",
    "fixed_radius": "fixed",
}  # fmt: skip
_MEANING = {
    "lmin": "the least length of a diagonal line",
    "vmin": "the least length of a vertical line",
    "wmin": "the least length of a white vertical line",
    "theiler": "the number of diagonals to leave out on either side of the main one, plus itself",
}


def integer(name: str, value: object, least: int) -> int:
    """``value`` as an int of at least ``least``; the message says what the argument means."""
    return arguments.integer(name, value, least, _MEANING.get(name, ""))


def minimum(name: str, value: object) -> int:
    """A least length of lines."""
    return integer(name, value, 1)


def threshold_named(value: object) -> str:
    """One of the kinds of threshold, by its name or by that of another package."""
    alias = _ALIASES.get(value.lower().replace("-", "_").replace(" ", "_")) if isinstance(value, str) else None
    if alias == "neighbours":
        return alias
    if alias is not None:
        raise InputError(f"threshold={arguments.shown(value)}, which is called {alias!r} here")
    return arguments.choice("threshold", value, THRESHOLDS)


def radii_of(
    value: object, threshold: str, name: str = "radius", *, strict: bool = True, unit: str = "data"
) -> tuple[list[Any], bool]:
    """What ``radius`` means under a threshold, one of them for each matrix, and whether a sequence was given.

    Parameters
    ----------
    name : str
        Of the argument.
    strict : bool
        Recurrent is d < radius, so that nothing is at radius 0; where d <= radius, equal points are.
    unit : str
        Of the radius; no more than one largest distance makes sense.

    Returns
    -------
    radii : list
        Floats; pairs of floats for "corridor"; ints for "neighbours".
    several : bool
        A sequence was given, so that the result is a table.
    """
    if threshold == "corridor":
        items = _items(value)
        if items is not None and len(items) == 2 and all(_items(item) is None for item in items):
            return [_corridor(items, name)], False
        if not items or any(_items(item) is None for item in items):
            raise InputError(
                f"{name}={arguments.shown(value)}: threshold='corridor' needs a pair (inner, outer), or several pairs"
            )
        return [_corridor(item, name) for item in items], True
    items = _items(value)
    values: Sequence[object] = [value] if items is None else items
    if not values:
        raise InputError(f"{name}={arguments.shown(value)}: at least one radius is needed")
    if threshold == "fixed":
        radii = [_radius(item, name, strict) for item in values]
        for radius in radii:
            if unit == "max_distance" and radius > 1:
                raise InputError(
                    f"{name}={radius:g}: with radius_unit='max_distance' everything recurs from 1 on; a radius in "
                    f"per cent is given as a share, {name}={radius / 100:g}"
                )
        return radii, items is not None
    check = {"recurrence_rate": _rate, "neighbours": _neighbours}[threshold]
    return [check(item, name) for item in values], items is not None


def _items(value: object) -> list[Any] | None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None
    return list(value) if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)) else None


def _radius(value: object, name: str, strict: bool) -> float:
    needed = "a positive, finite number, in the unit of the data,"
    number = arguments.real(name, value, needed, lambda radius: 0 <= radius < math.inf)
    if strict and not number:
        raise InputError(
            f"{name}={arguments.shown(value)}: {needed} is needed, since d < 0 holds for no pair. For equal codes give "
            f"{name}=0.5, or a convention with d <= radius ('recurrenceanalysis', 'crqa')"
        )
    return number


def _rate(value: object, name: str) -> float:
    needed = "a number in (0, 1), which threshold='recurrence_rate' takes for the wanted rate,"
    return arguments.real(name, value, needed, lambda rate: 0 < rate < 1)


def _neighbours(value: object, name: str) -> int:
    try:
        return integer(name, value, 1)
    except InputError:
        raise InputError(
            f"{name}={arguments.shown(value)}: threshold='neighbours' takes the number of neighbours, an integer of at "
            "least 1"
        ) from None


def _corridor(value: Any, name: str) -> tuple[float, float]:
    items = list(value)
    if len(items) != 2:
        raise InputError(f"{name}={arguments.shown(value)}: a corridor is a pair (inner, outer)")
    inner, outer = (arguments.real(name, v, "a pair of finite numbers (inner, outer)") for v in items)
    if not 0 <= inner < outer < math.inf:
        raise InputError(f"{name}={arguments.shown(value)}: 0 <= inner < outer is needed, both finite")
    return inner, outer


def window(
    theiler: object, convention: Convention, n_rows: int, n_columns: int, *, cross: bool = False,
    series: Iterable[NDArray[Any]] = (), lines: bool = True,
) -> int:
    """The Theiler window as the counts need it.

    Parameters
    ----------
    theiler : int, "auto" or None
        None is the convention's own; "auto" the longest correlation time of ``series``, and 0 in cross recurrence.
    n_rows, n_columns : int
        Points.
    cross : bool
        Rows and columns stand for different series.
    series : iterable of ndarray (n_steps, n_series)
        What "auto" looks at.
    lines : bool
        Lines are counted, so that a window that only they have matters.
    """
    if theiler is None:
        width = convention.cross_theiler if cross else 1
        if cross and lines and width and n_rows == n_columns:
            warn(
                f"cross recurrence with the Theiler window {width}, as convention={convention.name!r} has it: lines at "
                "lag 0, where two series in step have theirs, do not count. theiler=0 counts them, and theiler=1 ends "
                "this warning", RecurrenceWarning,
            )  # fmt: skip
    elif isinstance(theiler, str) and theiler == "auto":
        width = 0 if cross else max((correlation_time(one) for one in series), default=1)
    else:
        if isinstance(theiler, str):
            raise InputError(f"theiler={arguments.shown(theiler)}: an integer of at least 0, or 'auto', is needed")
        width = integer("theiler", theiler, 0)
    if not convention.has_theiler:
        if width > 1:
            raise InputError(
                f"theiler={theiler!r} contradicts convention={convention.name!r}, which has no Theiler window; "
                "leave it out, or choose another convention"
            )
        return 1  # the main diagonal is counted apart, since it is a line but not the longest
    most = max(n_rows, n_columns)
    if width >= most:
        found = f"theiler={width}" if theiler != "auto" else f"theiler='auto' is {width}, which"
        raise InputError(f"{found} leaves no cell of a {n_rows} x {n_columns} matrix: at most {most - 1} is possible")
    return width


def correlation_time(series: NDArray[Any]) -> int:
    """The first lag at which the autocorrelation of each column (n_steps, n_series) is below 1/e, half of the series
    where it never is; at least 1.

    Points nearer in time recur because a series is smooth, and not because its states come back (Theiler, Physical
    Review A 34, 2427, 1986).
    """
    longest = 1
    for column in np.asarray(series, np.float64).T:
        present = ~np.isnan(column)
        rest = np.where(present, column - column[present].mean(), 0.0) if present.any() else np.zeros(len(column))
        scale = np.abs(rest).max(initial=0.0)
        if scale == 0.0:
            continue
        size = 1 << (2 * len(rest) - 1).bit_length()
        sums, pairs = (_products_by_lag(of, size)[: len(rest) // 2 + 1] for of in (rest / scale, present.astype(float)))
        correlation = sums / np.maximum(np.rint(pairs), 1.0)
        low = np.flatnonzero(correlation < correlation[0] / math.e)
        longest = max(longest, int(low[0]) if low.size else len(correlation) - 1)
    return longest


def _products_by_lag(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    spectrum = np.fft.rfft(values, size)
    products: NDArray[np.float64] = np.fft.irfft(spectrum * spectrum.conj(), size)
    return products


def only_alone(convention: Convention, what: str) -> None:
    """Refuse cross and joint recurrence under a convention that has none."""
    if not convention.has_theiler:
        raise InputError(
            f"{what} contradicts convention={convention.name!r}, which knows recurrence of one series only; "
            "choose another convention"
        )
