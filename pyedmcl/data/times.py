"""Which column of a table is its time, and what its cells mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..errors import warn
from .intake import Array

TIME_NAMES = frozenset({"time", "date", "datetime", "year", "day", "month", "index", "t", "timestamp"})
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none"})

# Tried after ISO 8601. Day-first and month-first both stand here: a column that reads as both stays text.
_FORMATS = (
    "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S",
    "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d %b %Y", "%b %Y", "%b-%Y",
)
_MAYBE_DATE = re.compile(r"\d{1,4}[-/. ]|[A-Za-z]{3}[- ]\d{4}$")  # spares thousands of names the long way
_UNIT = re.compile(r"\s*[(\[].*[)\]]\s*$")


def is_missing_cell(cell: str) -> bool:
    """True for an empty cell and the usual words for a missing value."""
    return cell.strip().lower() in MISSING


def is_time_name(name: object) -> bool:
    """True for a usual name of a time column, whatever its case and with or without a unit in brackets."""
    return _UNIT.sub("", str(name)).strip().lower() in TIME_NAMES


def is_nameless(name: object) -> bool:
    """True for the name of an index of pandas that had none when it was written."""
    return str(name).strip().lower() in ("", "unnamed: 0")


def tell_times(names: Sequence[str], values: Array, what: str) -> None:
    """Warn of one of the first series that, by its name and even steps, counts the rows: a time, and no observation."""
    for place, name in enumerate(names[:3]):
        if not is_time_name(name) or len(values) < 3:
            continue
        steps = np.diff(values[:, place])
        if steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0.0):
            warn(
                f"{what}: {name!r} grows by {steps[0]:g} from row to row and is taken as a series like the others. "
                "If it is the time, make it the index, or leave it out"
            )


def as_numbers(cells: Sequence[str]) -> Array | None:
    """Cells as int64 where all are integers, as float64 where all are numbers or missing, else None."""
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([np.nan if is_missing_cell(cell) else float(cell) for cell in cells], np.float64)
    except ValueError:
        return None


def like_date(cell: str) -> bool:
    """Whether a text may be a date, at a glance."""
    return bool(_MAYBE_DATE.match(cell.strip()))


def as_dates(cells: Sequence[str]) -> Array | None:
    """Cells as datetime64 (UTC where they carry an offset); None where they are no dates or read in two ways."""
    texts = ["NaT" if is_missing_cell(cell) else cell.strip() for cell in cells]
    dates = [text for text in texts if text != "NaT"]
    if not dates or not like_date(dates[0]) or as_numbers(cells) is not None:
        return None
    readings = [reading for reading in (_read_with(texts, _iso), *(_read_with(texts, _by(f)) for f in _FORMATS))
                if reading is not None]
    if len(readings) > 1:  # the right one of day-first and month-first is the one in which time runs forward
        readings = [reading for reading in readings if increasing(reading)]
    return readings[0] if len(readings) == 1 else None


def _iso(text: str) -> datetime:
    if len(text) == 7 and text[4] == "-":
        return datetime.strptime(text, "%Y-%m")
    when = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when


def _by(pattern: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, pattern)


def _read_with(texts: Sequence[str], parse: Callable[[str], datetime]) -> Array | None:
    try:
        parsed: list[Any] = [None if text == "NaT" else parse(text) for text in texts]
    except ValueError:
        return None
    return np.array(parsed, "datetime64[us]")


def as_time(cells: Sequence[str]) -> Array:
    """Cells of a time column as numbers, else dates, else text."""
    for read in (as_numbers, as_dates):
        values = read(cells)
        if values is not None:
            return values
    return np.array([cell.strip() for cell in cells], np.str_)


def increasing(values: Array) -> bool:
    """True where each value is larger than the one before; a missing one makes it False."""
    return bool(np.all(values[1:] > values[:-1])) and not (values.dtype.kind in "fM" and bool(np.isnan(values).any()))


def begins_anew(values: Array) -> bool:
    """True for numbers that grow by one step from row to row, and now and then are the first one again: recordings."""
    steps = np.diff(values)
    up, back = steps[steps > 0], np.flatnonzero(steps < 0) + 1
    if not len(up) > len(back) > 0 or len(up) + len(back) < len(steps):
        return False
    return bool(np.allclose(up, up[0], rtol=1e-3, atol=0.0) and (values[back] == values[0]).all())


def looks_like_time(name: object | None, first: bool, values: Array) -> bool:
    """Whether a column is the time without having been called so.

    A column with a time-like name is, if it holds dates, text or numbers that increase, or count and begin anew; so is
    a first column of dates under any name or none. Numbers without such a name are data: a trend must not be swallowed.

    Parameters
    ----------
    name : object or None
        Its name in the file.
    first : bool
        Whether it is the first column.
    values : ndarray
        Shape (L,), as :func:`as_time` gives it.
    """
    named = name is not None and (is_time_name(name) or (first and is_nameless(name)))
    if values.dtype.kind in "iuf":
        return named and (increasing(values) or begins_anew(values))
    return named or (first and values.dtype.kind == "M")
