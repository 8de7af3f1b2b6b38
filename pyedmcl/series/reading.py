"""How a table was read: what was taken for numbers, times and gaps, what is in doubt, and the option that decides."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arguments import boolean, many, several, some
from ..call import takes
from ..errors import InputError, ReadingWarning, shown, warn
from .arrays import Array
from .calendar import steps_of
from .date_forms import months_of_words
from .number_forms import Cells, NumberOptions, is_missing, is_missing_cell
from .times import is_time_name


@dataclass(frozen=True)
class ReadingOptions:
    """What cannot be known of data, and the user may say."""

    # So many lines at the top, or the numbers of lines from 1.
    skip_rows: int | frozenset[int] = 0
    # Lines that begin so are left out.
    comment: str = ""
    # Number of the line that holds the names, from 1; False for none; None to find out.
    header: int | bool | None = None
    # Form of times: letters of ``datetime.strptime``, "day/month/year" and the like, or "number".
    time_format: str = ""
    names: tuple[str, ...] | None = None
    transpose: bool = False
    # Each series in units of its standard deviation, around 0.
    standardize: bool = False
    # Words are categories, not cells that cannot be read.
    categories: bool = False
    # Decimal mark, mark of thousands, codes of gaps.
    numbers: NumberOptions = field(default_factory=NumberOptions)

    @property
    def of_text(self) -> list[str]:
        """Options that were given and that only a table of text can follow."""
        return [name for name, given in (
            ("skip_rows", self.skip_rows), ("comment", self.comment), ("header", self.header is not None),
        ) if given]  # fmt: skip

    def leaves_out(self, number: int) -> bool:
        """Whether a line, counted from 1, is to be left out."""
        return number <= self.skip_rows if isinstance(self.skip_rows, int) else number in self.skip_rows


NOTHING_SAID = ReadingOptions()


def reading_options(
    *, skip_rows: Any = 0, comment: Any = None, missing: Any = (), decimal: Any = None, thousands: Any = None,
    header: Any = None, time_format: Any = None, names: Any = None, transpose: Any = False, standardize: Any = False,
    categories: Any = False,
) -> ReadingOptions:  # fmt: skip
    """Options as a user gives them, checked."""
    for name, value in (("comment", comment), ("decimal", decimal), ("thousands", thousands),
                        ("time_format", time_format)):  # fmt: skip
        if value is not None and (not isinstance(value, str) or not value):
            raise InputError(f"{name}={shown(value)}: a text is needed")
    if isinstance(missing, str):  # a code that holds a comma stands between quotes
        missing = next(csv.reader([missing], skipinitialspace=True), [])
    codes = several("missing", missing)
    if not all(isinstance(code, (str, int, float, np.integer, np.floating)) for code in codes):
        raise InputError(f"missing={shown(missing)}: texts or numbers that stand for a missing value are needed")
    return ReadingOptions(
        _lines("skip_rows", skip_rows), comment or "", _header(header), time_format or "", _names(names),
        boolean("transpose", transpose), boolean("standardize", standardize), boolean("categories", categories),
        NumberOptions(decimal or "", thousands or "", tuple(str(code).strip() for code in codes)),
    )  # fmt: skip


def _lines(name: str, value: Any) -> int | frozenset[int]:
    """How many lines at the top, or which lines: 3, [4, 7], "3", "4,7", "4:7" (both ends)."""
    try:
        if isinstance(value, str):
            text = value.strip().strip("[]")
            if text.isdigit() and not value.strip().startswith("["):
                return int(text)
            numbers: set[int] = set()
            for part in text.split(","):
                first, _, last = part.partition(":")
                numbers |= set(range(int(first), int(last or first) + 1))
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            if value < 0:
                raise ValueError
            return int(value)
        else:
            numbers = {int(item) for item in value}
        if not numbers or min(numbers) < 1:
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            f"{name}={shown(value)}: how many lines at the top are left out, or the numbers of lines such as [4, 7] "
            "or '4:7', counted from 1"
        ) from None
    return frozenset(numbers)


def _header(value: Any) -> int | bool | None:
    if isinstance(value, str) and value.strip().lower() in ("none", "no", "false", "0"):
        return False
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if value is None or value is False:
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise InputError(
        f"header={shown(value)}: the number of the line that holds the names, counted from 1, or False where none does"
    )


def _names(value: Any) -> tuple[str, ...] | None:
    """Names of series: a sequence, or a file of text with one in each line or all in one."""
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        try:
            with open(path, encoding="utf-8-sig") as file:
                lines = [line.strip() for line in file if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"names={shown(value)}: cannot be read as a file of names ({error})") from None
        separator = next((mark for mark in "\t;," if len(lines) == 1 and mark in lines[0]), None)
        listed = lines[0].split(separator) if separator else lines
    else:
        listed = several("names", value)
    if not listed or not all(isinstance(name, (str, int, np.integer)) for name in listed):
        raise InputError(f"names={shown(value)}: a name for each series is needed, or a file of them")
    return tuple(str(name).strip().strip('"') for name in listed)


@dataclass(frozen=True)
class Reading:
    """How data were read: what is certain of them, and what was inferred.

    Examples
    --------
    >>> from pyedmcl.files import read_series
    >>> table = {"date": ["2001-01", "2001-02", "2001-03"], "catch": [3.0, 4.0, 2.0]}
    >>> series = read_series(table)
    >>> print(series.reading)
    dict: 3 rows, 2 columns; series 'catch'
    time: 'date', year-month, 2001-01-01 to 2001-03-01, a row every month
    """

    # A file, or the kind of an object.
    source: str
    # rows, columns: Size of the table that was read.
    rows: int
    columns: int
    series: tuple[str, ...]
    # Where times come from, their form, first and last, and their step; empty for none.
    time: str = ""
    # Encoding, separator, decimal mark and names of a text; empty for other data.
    layout: str = ""
    # Lines of a text that are no rows, and why.
    passed_over: tuple[str, ...] = ()
    # Columns that are no series, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    # Sentences on what was taken in one of several ways.
    inferred: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.source}: {self._size()}", *self.parts()])

    def _size(self) -> str:
        return f"{many(self.rows, 'row')}, {many(self.columns, 'column')}; series {some(self.series)}"

    def parts(self) -> list[str]:
        """What was found, a line each."""
        left_out = ", ".join(f"{name!r} ({why})" for name, why in self.left_out.items())
        return [f"{head}: {text}" for head, text in (
            ("time", self.time), ("text", self.layout), ("passed over", "; ".join(self.passed_over)),
            ("left out", left_out),
        ) if text] + list(self.inferred)  # fmt: skip

    def described(self) -> dict[str, Any]:
        """As plain data, for the provenance of a result."""
        return {
            "source": self.source, "rows": self.rows, "columns": self.columns, "series": list(self.series[:32]),
            "time": self.time or None, "layout": self.layout or None, "passed_over": list(self.passed_over),
            "left_out": self.left_out, "inferred": list(self.inferred),
        }  # fmt: skip

    def told(self, *sentences: str) -> Reading:
        """The same, with sentences on what was inferred, of which each warns."""
        for sentence in sentences:
            warn(sentence, ReadingWarning)
        return replace(self, inferred=(*self.inferred, *sentences))


def time_in_words(names: Sequence[object], form: str, values: Array) -> str:
    """A phrase on times: their columns, their form, from when to when, and their usual step."""
    from .calendar import moment

    columns = " + ".join(repr(str(name)) for name in names) or "the index"
    ends = f"{moment(values[0])} to {moment(values[-1])}" if len(values) else ""
    return ", ".join(part for part in (columns, form, ends, step_in_words(values)) if part)


def step_in_words(values: Array) -> str:
    """How far rows are apart; empty where that differs."""
    from .calendar import usual_step

    steps = steps_of(values)
    step = usual_step(values) if steps is not None and steps.even else None
    return "" if step is None else f"a row every {step}"


# What makes series doubtful at a glance: codes of gaps among values, and names that are times.


_ROUNDED_OFF = 1e-6  # share of the range of a series that rounding may take
_FAR = 3  # spans of all other values between them and a code
_NINES = {9.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.9, 999.9, 9999.9, 99.99, 999.99, 32767.0, 32768.0,
          2147483647.0, 2147483648.0}  # fmt: skip
_FILLED = 1e19  # values of this size and more are what formats fill gaps with
_LEAST_WIDE = 6
_NUMBERED = re.compile(r"(.*?)[ _.]?(\d+(?:\.\d+)?)$")
_TIME_POINTS = frozenset("ct zt h hr hour d day w wk week m month yr year time".split())  # noqa: SIM905


def gap_codes(
    values: Array, names: Sequence[str], ends: tuple[Array, Array] | None = None
) -> Iterator[tuple[str, str]]:
    """Names of series that hold a number such as -9999 for gaps, far from all other values, and what it is.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
    ends : (ndarray, ndarray), optional
        Least and largest value of each series, NaN where it has gaps, if they are known.
    """
    low, high = ends if ends is not None else (np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
    unknown = np.flatnonzero(np.isnan(low))
    if len(unknown) and ends is not None:
        low, high = low.copy(), high.copy()
        for i in unknown.tolist():
            low[i], high[i] = np.fmin.reduce(values[:, i]), np.fmax.reduce(values[:, i])
    for end in (low, high):
        likely: list[int] = np.flatnonzero(is_code(end)).tolist()
        for i in likely:
            column = values[:, i]
            different, counts = np.unique(column[np.isfinite(column)], return_counts=True)
            if len(different) < 3:
                continue
            code, others = float(end[i]), different[1:] if end is low else different[:-1]
            if abs(code) >= _FILLED and float(np.abs(others).max()) >= _FILLED:
                continue  # all are so large
            far = float(np.abs(others - code).min()) > _FAR * float(np.ptp(others))
            if far or (code <= -99 and float(others.min()) >= 0):
                cure = f"say missing={code:g}" if takes("missing") else "make them NaN"
                yield names[i], (
                    f"{code:g} occurs {many(int(counts[0 if end is low else -1]), 'time')} beside values of "
                    f"{others[0]:g} to {others[-1]:g}, and stands for a gap in many files. If it does, {cure}"
                )


def lost_digits(low: Array, high: Array, given: Callable[[int], Any]) -> list[int]:
    """Numbers of series that vary in the last digits of float64, or beyond them, as long integers do.

    Parameters
    ----------
    low, high : ndarray (n_series,)
        Least and largest value of each series as float64.
    given : callable
        ``given(i)`` is series ``i`` before its values were made float64: an array (L,) or Cells.
    """
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(np.float64))
    near = np.flatnonzero(step > _ROUNDED_OFF * (high - low)).tolist()
    return [i for i in near if high[i] > low[i] or (step[i] >= 2 and _differ(given(i)))]


def _differ(column: Any) -> bool:
    """Whether numbers that became one and the same were given as several."""
    if isinstance(column, Cells):
        texts: Sequence[Any] = () if column.all_texts is None else column.all_texts()
        return len({text for text in texts if not is_missing_cell(text)}) > 1
    return len({str(value) for value in column.tolist() if not is_missing(value)}) > 1


def digits_in_words(lost: Sequence[str]) -> str:
    """A phrase on series whose digits :func:`lost_digits` misses."""
    return (
        f"{some(lost)} {'varies' if len(lost) == 1 else 'vary'} in the last digits that float64 holds, or beyond "
        "them: subtract a constant, such as the first value, before the values are made float64"
    )


def tell_of_numbers(values: Any, given: Any, names: Sequence[str]) -> None:
    """What the door tells of values, of series (n,) that do not come through it one by one.

    Parameters
    ----------
    values : sequence of ndarray (n,), or ndarray (n_series, n)
    given : sequence
        Each series before its values became floats.
    names : sequence of str
        How messages call each.
    """
    lengths = np.array([len(one) for one in values], np.int64)
    if not (len(lengths) and lengths.all()):
        return
    every = values.ravel() if isinstance(values, np.ndarray) else np.concatenate(values, dtype=np.float64)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    ends = (np.fmin.reduceat(every, begins), np.fmax.reduceat(every, begins))
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in ends)
    lost = [names[i] for i in lost_digits(low, high, lambda i: given[i])]
    if lost:
        warn(digits_in_words(lost), ReadingWarning)
    doubtful = np.flatnonzero(is_code(low) | is_code(high)).tolist()
    codes = [said for i in doubtful for said in gap_codes(np.asarray(values[i], np.float64)[:, None], [names[i]])]
    for name, text in codes[:1]:
        more = f" ({len(codes) - 1:,} more series hold such a number)" if len(codes) > 1 else ""
        warn(f"{name}: {text}{more}", ReadingWarning)


def is_code(values: Array) -> Array:
    """Which numbers are codes of gaps in many files, such as 999.9 or 1e20."""
    size = np.abs(values.astype(np.float64))
    return np.isin(np.round(size, 4), list(_NINES)) | ((size >= _FILLED) & np.isfinite(size))


def wide_names(names: Sequence[str]) -> str:
    """What names of series are, where they are points in time: a table whose rows may be the series; else empty."""
    if len(names) < _LEAST_WIDE:
        return ""
    shown = f"the columns {names[0]!r}, {names[1]!r}, ... {names[-1]!r} are named like points in time"
    if months_of_words(names) is not None:
        return shown
    matches = [_NUMBERED.match(name.strip()) for name in names]
    if any(match is None for match in matches):
        return ""
    parts = [(match[1].strip().lower(), float(match[2])) for match in matches if match is not None]
    prefixes = {prefix for prefix, _ in parts}
    numbers = np.array([number for _, number in parts])
    if len(prefixes) != 1 or not (np.diff(numbers) > 0).all():
        return ""
    prefix = prefixes.pop()
    years = prefix in ("", "x", "y", "yr", "year") and numbers.min() >= 1500 and numbers.max() <= 2200
    return shown if years or prefix in _TIME_POINTS or (prefix and is_time_name(prefix) and len(prefix) > 1) else ""
