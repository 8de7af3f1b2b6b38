"""CSV, TSV and white-space separated tables, with the standard library and NumPy only.

One reader for all machines: the values, and with them the digest of an input, do not depend on which packages are
installed. Python's float() rounds correctly, and 100 MB take a few seconds.
"""

from __future__ import annotations

import array
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..data.columns import leaves_out, select
from ..data.series import Series, build_series
from ..data.text_columns import (
    are_words,
    in_stretches,
    require_no_recordings,
    tell_left_out,
    tell_recordings,
    warn_of_recordings,
)
from ..data.times import as_numbers, as_time, increasing, is_missing_cell, is_nameless, is_time_name, looks_like_time
from ..data.unpack import Array
from ..errors import InputError
from .calendar_columns import calendar_columns, calendar_dates
from .dialect import Dialect, detect, open_binary, rows_of_text, split


def read_text(path: Path, columns: Sequence[str | int] | None, time_column: str | int | None, what: str) -> Series:
    """Read a text table; see :func:`pyedmcl.io.read_series`."""
    dialect = detect(path, what)
    labels = [f"x{i}" for i in range(dialect.width)]
    if dialect.names is not None:
        labels = [name or label for name, label in zip(dialect.names, labels, strict=True)]
    if dialect.names is not None and time_column in dialect.names and dialect.names.count(str(time_column)) == 1:
        time: int | None = dialect.names.index(str(time_column))
    elif time_column is not None:
        time = select(labels, time_column, what)[0]
    else:
        time = None
    # Positions mean columns of the file, as a person counts them there.
    chosen = select(labels, columns, what)
    kept = None if columns is None or leaves_out(labels, columns) else chosen
    if time_column is None:
        time = _find_time(dialect, kept)
    moments = [] if _dated(dialect, time) else calendar_columns(labels, chosen, kept, time_column)
    dates = calendar_dates([_cells(path, dialect, i, what) for i in moments])
    if dates is not None:
        time = None
    left_out = [*moments, *_counter(dialect, time)] if dates is not None else _counter(dialect, time)
    numeric = [i for i in chosen if i != time and (kept is not None or i not in left_out)]
    if not numeric:
        raise InputError(f"{what}: there is no column of data beside the time column {labels[time or 0]!r}")
    values, numeric, cells = _parse_numbers(path, dialect, numeric, time, labels, what, named=kept is not None)
    names = [labels[i] for i in numeric]
    times = dates if time is None else as_time(cells)
    if kept is not None and times is None:  # times increase, or are refused
        _tell_recordings_beside(path, dialect, labels, {*kept, *([] if time is None else [time])}, what)
    if time is not None and times is not None and time_column is None and columns is None:
        name = None if dialect.names is None else dialect.names[time]
        if not looks_like_time(name, time == 0, times):  # the whole file says otherwise than its first rows
            numbers = _as_data(times, labels[time], what)
            return build_series(np.insert(values, time, numbers, axis=1),
                                [*names[:time], labels[time], *names[time:]], what=what)
    return build_series(values, names, times, what=what)


def _find_time(dialect: Dialect, kept: Sequence[int] | None) -> int | None:
    """The column of times; one of dates before one of numbers, which may count the rows."""
    if dialect.width == 1 or not dialect.sample:
        return None
    place: int | None = None
    for i in range(dialect.width if dialect.names is not None else 1):
        if kept is not None and i in kept:
            continue
        times = _sampled(dialect, i)
        if len(times) and looks_like_time(None if dialect.names is None else dialect.names[i], i == 0, times):
            if times.dtype.kind == "M":
                return i
            place = i if place is None else place
    return place


def _sampled(dialect: Dialect, column: int) -> Array:
    """The first cells of a column, as times."""
    return as_time([row[column] for row in dialect.sample if len(row) > column])


def _dated(dialect: Dialect, time: int | None) -> bool:
    return time is not None and _sampled(dialect, time).dtype.kind == "M"


def _counter(dialect: Dialect, time: int | None) -> list[int]:
    """The first column, where it has no name and counts the rows beside another that is the time: an index of pandas
    that was written along."""
    if time in (None, 0) or dialect.names is None or not is_nameless(dialect.names[0]):
        return []
    numbers = _sampled(dialect, 0)
    return [0] if numbers.dtype.kind == "i" and increasing(numbers) else []


def _tell_recordings_beside(
    path: Path, dialect: Dialect, labels: Sequence[str], looked_at: set[int], what: str
) -> None:
    """Warn of a column that nobody asked for by which the rows seem to belong to several recordings."""
    for i in range(dialect.width):
        if i in looked_at or is_time_name(labels[i]) or not _like_labels(_sampled(dialect, i)):
            continue
        cells = _cells(path, dialect, i, what)
        numbers = as_numbers(cells)
        if tell_recordings(cells) and are_words(cells) if numbers is None else in_stretches(numbers):
            warn_of_recordings(list(dict.fromkeys(cell.strip() for cell in cells)), labels[i], what)


def _like_labels(cells: Array) -> bool:
    """Whether the first cells of a column may be labels: words, or whole numbers that hardly change."""
    changes = np.count_nonzero(cells[1:] != cells[:-1])
    return cells.dtype.kind == "U" or (cells.dtype.kind == "i" and bool(changes <= len(cells) // 2))


def _as_data(times: Array, name: str, what: str) -> Array:
    if times.dtype.kind not in "iuf":
        raise InputError(f"{what}: column {name!r} holds neither dates nor numbers throughout; "
                         "name the time column with time_column=, or choose series with columns=")
    return times.astype(np.float64)


def _lines(path: Path, dialect: Dialect, what: str) -> Iterator[tuple[int, str]]:
    """Rows of data with the number of their line counted from 1."""
    try:
        with open_binary(path) as raw, io.TextIOWrapper(raw, encoding=dialect.encoding) as handle:
            below = islice(enumerate(handle, 1), dialect.header_line, None)
            yield from rows_of_text((number, line.rstrip("\r\n")) for number, line in below)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{what}: cannot be read to its end ({error})") from error


def _parse_numbers(path: Path, dialect: Dialect, numeric: list[int], time: int | None, labels: Sequence[str],
                   what: str, *, named: bool) -> tuple[Array, list[int], list[str]]:
    """As :func:`_parse`, without the columns of words unless they are ``named``; and which columns are left."""
    words: list[int] = []
    while True:
        try:
            values, cells = _parse(path, dialect, numeric, time, labels, what)
        except _NotNumericError as error:
            held = [] if named else _cells(path, dialect, error.column, what)
            if len(numeric) == 1 or not are_words(held):
                raise
            require_no_recordings(held, labels[error.column], what, len(numeric) - 1)
            words.append(error.column)
            numeric = [i for i in numeric if i != error.column]
        else:
            if words:
                tell_left_out([labels[i] for i in words], what)
            return values, numeric, cells


def _cells(path: Path, dialect: Dialect, column: int, what: str) -> list[str]:
    """One column, as text."""
    rows = (split(line, dialect.separator, dialect.decimal_comma) for _, line in _lines(path, dialect, what))
    return [row[column] if len(row) > column else "" for row in rows]


def _parse(path: Path, dialect: Dialect, wanted: Sequence[int], time: int | None, labels: Sequence[str],
           what: str) -> tuple[Array, list[str]]:
    """Values (L, len(wanted)) and the cells of the time column.

    Raises
    ------
    _NotNumericError
        A cell that is wanted is no number.
    """
    flat = array.array("d")
    cells_of_time: list[str] = []
    width = dialect.width
    everything = list(wanted) == list(range(width))
    pick: Any = itemgetter(*wanted)
    separator, comma = dialect.separator, dialect.decimal_comma
    for number, line in _lines(path, dialect, what):
        cells = split(line, separator, comma)
        if len(cells) != width:
            if len(cells) != width + 1 or cells[-1].strip():
                raise InputError(f"{what}: line {number} has {len(cells)} cells where {width} are expected; "
                                 "mark missing values by an empty cell or NaN")
            cells.pop()
        chosen = cells if everything else pick(cells) if len(wanted) > 1 else (cells[wanted[0]],)
        before = len(flat)
        try:
            if "_" in line:  # float() would read 1_5 as 15
                raise ValueError
            flat.extend(map(float, chosen))
        except ValueError:
            del flat[before:]
            flat.extend(_number(cell, i, labels[i], number, what) for i, cell in zip(wanted, chosen, strict=True))
        if time is not None:
            cells_of_time.append(cells[time])
    if not flat:
        raise InputError(f"{what}: there are no rows of data below the header")
    return np.frombuffer(flat, np.float64).reshape(-1, len(wanted)), cells_of_time


class _NotNumericError(InputError):
    """A cell of a column is no number."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


def _number(cell: str, column: int, name: str, line: int, what: str) -> float:
    if is_missing_cell(cell):
        return float("nan")
    if "_" not in cell:
        try:
            return float(cell)
        except ValueError:
            pass
    message = (f"{what}: column {name!r} is not numeric: line {line} holds {cell.strip()!r}. Choose series with "
               f"columns=, leave this one out with columns={'-' + name!r}, or name the time column with time_column=")
    raise _NotNumericError(message, column)
