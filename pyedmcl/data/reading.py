"""What the user says of how data are to be read, and the record of how they were."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import InputError, ReadingWarning, shown, warn
from .arguments import boolean, several
from .columns import many, some
from .intake import Array
from .number_forms import NumberOptions
from .steps import steps_of


@dataclass(frozen=True)
class ReadingOptions:
    """What cannot be known of data, and the user may say.

    Attributes
    ----------
    skip_rows : int or frozenset of int
        So many lines at the top, or the numbers of lines from 1.
    comment : str
        Lines that begin so are left out.
    header : int, False or None
        Number of the line that holds the names, from 1; False for none; None to find out.
    time_format : str
        Form of times: letters of ``datetime.strptime``, "day/month/year" and the like, or "number".
    names : tuple of str, or None
    transpose : bool
    standardize : bool
        Each series in units of its standard deviation, around 0.
    numbers : NumberOptions
        Decimal mark, mark of thousands, codes of gaps.
    """

    skip_rows: int | frozenset[int] = 0
    comment: str = ""
    header: int | bool | None = None
    time_format: str = ""
    names: tuple[str, ...] | None = None
    transpose: bool = False
    standardize: bool = False
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
) -> ReadingOptions:  # fmt: skip
    """Options as a user gives them, checked.

    Raises
    ------
    InputError
        One of them is not what it should be.
    """
    for name, value in (("comment", comment), ("decimal", decimal), ("thousands", thousands),
                        ("time_format", time_format)):  # fmt: skip
        if value is not None and (not isinstance(value, str) or not value):
            raise InputError(f"{name}={shown(value)}: a text is needed")
    codes = several("missing", missing.split(",") if isinstance(missing, str) else missing)
    if not all(isinstance(code, (str, int, float, np.integer, np.floating)) for code in codes):
        raise InputError(f"missing={shown(missing)}: texts or numbers that stand for a missing value are needed")
    return ReadingOptions(
        _lines("skip_rows", skip_rows), comment or "", _header(header), time_format or "", _names(names),
        boolean("transpose", transpose), boolean("standardize", standardize),
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

    Attributes
    ----------
    source : str
        A file, or the kind of an object.
    rows, columns : int
        Size of the table that was read.
    series : tuple of str
    time : str
        Where times come from, their form, first and last, and their step; empty for none.
    layout : str
        Encoding, separator, decimal mark and names of a text; empty for other data.
    passed_over : tuple of str
        Lines of a text that are no rows, and why.
    left_out : dict of str to str
        Columns that are no series, and why.
    inferred : tuple of str
        Sentences on what was taken in one of several ways.

    Examples
    --------
    >>> from pyedmcl.io import read_series
    >>> table = {"date": ["2001-01", "2001-02", "2001-03"], "catch": [3.0, 4.0, 2.0]}
    >>> series = read_series(table)
    >>> print(series.reading)
    dict: 3 rows, 2 columns; series 'catch'
    time: 'date', year-month, 2001-01-01 to 2001-03-01, a row every month
    """

    source: str
    rows: int
    columns: int
    series: tuple[str, ...]
    time: str = ""
    layout: str = ""
    passed_over: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
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
    from .time_words import moment

    columns = " + ".join(repr(str(name)) for name in names) or "the index"
    ends = f"{moment(values[0])} to {moment(values[-1])}" if len(values) else ""
    return ", ".join(part for part in (columns, form, ends, step_in_words(values)) if part)


def step_in_words(values: Array) -> str:
    """How far rows are apart; empty where that differs."""
    from .dates import usual_step

    steps = steps_of(values)
    step = usual_step(values) if steps is not None and steps.even else None
    return "" if step is None else f"a row every {step}"
