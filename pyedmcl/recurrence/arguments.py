"""Checks of what the recurrence functions are given: each wrong argument is named, with what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import arguments as shared
from ..data.arguments import precision, reporter
from ..errors import InputError, RecurrenceWarning, warn
from .conventions import Convention

__all__ = [
    "THRESHOLDS", "correlation_time", "integer", "minimum", "only_alone", "precision", "radii_of", "reporter",
    "threshold_named", "window",
]  # fmt: skip

THRESHOLDS = ("fixed", "corridor", "recurrence_rate", "neighbours")
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
    return shared.integer(name, value, least, _MEANING.get(name, ""))


def minimum(name: str, value: object) -> int:
    """A least length of lines."""
    return integer(name, value, 1)


def threshold_named(value: object) -> str:
    """One of the kinds of threshold, by its name or by that of another package."""
    alias = _ALIASES.get(value.lower().replace("-", "_").replace(" ", "_")) if isinstance(value, str) else None
    if alias == "neighbours":
        return alias
    if alias is not None:
        raise InputError(f"threshold={shared.shown(value)}, which is called {alias!r} here")
    return shared.choice("threshold", value, THRESHOLDS)


def radii_of(
    value: object, threshold: str, name: str = "radius", *, strict: bool = True, unit: str = "data"
) -> tuple[list[Any], bool]:
    """What ``radius`` means under a threshold, one of them for each matrix, and whether a sequence was given.

    Parameters
    ----------
    value : object
    threshold : str
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
                f"{name}={shared.shown(value)}: threshold='corridor' needs a pair (inner, outer), or several pairs"
            )
        return [_corridor(item, name) for item in items], True
    items = _items(value)
    values: Sequence[object] = [value] if items is None else items
    if not values:
        raise InputError(f"{name}={shared.shown(value)}: at least one radius is needed")
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
    number = shared.real(name, value, needed, lambda radius: 0 <= radius < math.inf)
    if strict and not number:
        raise InputError(
            f"{name}={shared.shown(value)}: {needed} is needed, since d < 0 holds for no pair. For equal codes give "
            f"{name}=0.5, or a convention with d <= radius ('recurrenceanalysis', 'crqa')"
        )
    return number


def _rate(value: object, name: str) -> float:
    needed = "a number in (0, 1), which threshold='recurrence_rate' takes for the wanted rate,"
    return shared.real(name, value, needed, lambda rate: 0 < rate < 1)


def _neighbours(value: object, name: str) -> int:
    try:
        return integer(name, value, 1)
    except InputError:
        raise InputError(
            f"{name}={shared.shown(value)}: threshold='neighbours' takes the number of neighbours, an integer of at "
            "least 1"
        ) from None


def _corridor(value: Any, name: str) -> tuple[float, float]:
    items = list(value)
    if len(items) != 2:
        raise InputError(f"{name}={shared.shown(value)}: a corridor is a pair (inner, outer)")
    inner, outer = (shared.real(name, v, "a pair of finite numbers (inner, outer)") for v in items)
    if not 0 <= inner < outer < math.inf:
        raise InputError(f"{name}={shared.shown(value)}: 0 <= inner < outer is needed, both finite")
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
    convention : Convention
    n_rows, n_columns : int
        Points.
    cross : bool
        Rows and columns stand for different series.
    series : iterable of ndarray (n_steps, n_series)
        What "auto" looks at.
    lines : bool
        Lines are counted, so that a window that only they have matters.

    Raises
    ------
    InputError
        If it covers the matrix, or the convention knows none.
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
            raise InputError(f"theiler={shared.shown(theiler)}: an integer of at least 0, or 'auto', is needed")
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
