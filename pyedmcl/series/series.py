"""The one door for data: whatever holds series becomes named columns of floats with time along the first axis.

Files, frames, mappings and arrays all come through :func:`series_of` as a table. There it is decided, once, which
column is the time, which are numbers and which are left out, and a :class:`~pyedmcl.series.reading.Reading` says how.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arguments import MOST_STEPS, SHOWN, counts, integer, leaves_out, select, some
from ..call import noticed, said_first, takes
from ..errors import ConstantSeriesWarning, InputError, ReadingWarning, warn
from ..parallel import bounds, digested, extent
from .arrays import Array
from .date_forms import dates_of_texts
from .fields import Grid
from .number_forms import (
    Cells,
    NotNumericError,
    NumberColumn,
    cells_of,
    float_type,
    is_spreadsheet_error,
    like_number,
    limits_and_words,
    numeric_column,
    plainly_numbers,
    read_numbers,
)
from .reading import (
    NOTHING_SAID,
    Reading,
    ReadingOptions,
    digits_in_words,
    gap_codes,
    lost_digits,
    time_in_words,
    wide_names,
)
from .tables import (
    Table,
    are_words,
    in_stretches,
    of_array,
    require_no_recordings,
    tell_recordings,
    unpack,
    warn_of_recordings,
)
from .times import TimeChoice, choose_time, counters, is_time_name, moments_of, require_certain, unread

_BLOCK_VALUES = 1 << 20  # values looked at together, so that a check needs a few MB whatever the input
FEW_ROWS = 50  # with fewer a skill says little
_SCALES = 10.0  # times as wide as another coordinate of a state
_LARGEST = 2.0**1020  # distances and sums of some values are numbers still


@dataclass(frozen=True, eq=False)
class Series:
    """N series of L steps on the host."""

    # Shape (L, N), C-contiguous, float32 or float64. NaN marks a gap; there are no infinite values.
    values: Array
    # N different names.
    names: tuple[str, ...]
    # Shape (L,): dates, numbers or text, kept for the results and never computed with.
    time: Array | None = None
    # The file they were read from.
    source: str | None = None
    # Where the series lie, if they are a field.
    grid: Grid | None = None
    # Name of a series to its unit, of those whose container tells of one.
    units: dict[str, str] | None = None
    # How they were read.
    reading: Reading | None = None
    # Name of a series of words to its different words; its values are their places.
    categories: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        fits = self.values.ndim == 2 and self.values.dtype in (np.float32, np.float64)
        if not fits or not self.values.flags.c_contiguous:
            raise InputError("values must be a C-contiguous (L, N) array of float32 or float64; use as_series(data)")
        if len(self.names) != self.n_series:
            raise InputError(f"{len(self.names)} names for {self.n_series} series; one name each is needed")
        if self.time is not None and self.time.shape != (self.n_steps,):
            raise InputError(f"time has shape {self.time.shape}, but there are {self.n_steps} rows")

    @property
    def n_steps(self) -> int:
        """Number of time steps L."""
        return int(self.values.shape[0])

    @property
    def n_series(self) -> int:
        """Number of series N."""
        return int(self.values.shape[1])

    @cached_property
    def extent(self) -> tuple[Array, Array]:
        """Least and largest value of each series; NaN where it has gaps."""
        return extent(self.values)

    @cached_property
    def constant(self) -> tuple[str, ...]:
        """Names of the series that hold one value only, or none: no correlation with them is defined."""
        low, high, _ = bounds(self.values, self.extent)
        return tuple(self.names[i] for i in np.flatnonzero(low == high))

    def digest(self) -> str:
        """SHA-256 (hex) over dtype, shape, names and the bytes of the values; time does not enter.

        Of values of more than 16 MiB, the SHA-256 of each 16 MiB stand for their bytes.
        """
        return self._digest

    def described(self) -> dict[str, Any]:
        """For the provenance of what is made of them."""
        entry = {"file": self.source, "rows": self.n_steps, "series": self.n_series, "digest": self.digest()}
        told = {} if self.reading is None else {"reading": self.reading.described()}
        return entry | ({"units": self.units} if self.units else {}) | told

    @cached_property
    def _digest(self) -> str:
        head = json.dumps([self.values.dtype.name, list(self.values.shape), list(self.names)])
        state = hashlib.sha256(head.encode())
        little = self.values.astype(self.values.dtype.newbyteorder("<"), copy=False)  # the same on every machine
        for part in digested(little.reshape(-1).view(np.uint8)):
            state.update(part)
        return state.hexdigest()

    def part(self, *places: int) -> Series:
        """The series at some places, with all that is known of them."""
        names = tuple(self.names[place] for place in places)
        units = {name: unit for name, unit in (self.units or {}).items() if name in names}
        categories = {name: words for name, words in (self.categories or {}).items() if name in names}
        values = np.ascontiguousarray(self.values[:, list(places)])
        return replace(
            self, values=values, names=names, grid=None, units=units or None, categories=categories or None
        )

    def renamed(self, names: tuple[str, ...]) -> Series:
        """The same series under other names."""
        out = replace(self, names=names)
        if "extent" in self.__dict__:  # a pass over all values that need not be made again
            out.__dict__["extent"] = self.extent
        return out


def as_series(
    data: Any, *, columns: Sequence[str | int] | str | int | None = None, what: str = "data", argument: str = "columns",
    bounded: bool = True,
) -> Series:  # fmt: skip
    """Validate ``data`` as series with time along the first axis.

    Parameters
    ----------
    data : array_like, DataFrame, DataArray or mapping
        NumPy (L,) or (L, N); pandas Series or DataFrame; polars Series or DataFrame (its one date column becomes the
        time); xarray DataArray or Dataset; an Arrow or Dask table; a mapping of names to (L,) arrays; nested lists; any
        array of any library, on the host or a device, see :mod:`pyedmcl.series.arrays`. NaN, None and masked values are
        gaps. Each cell of a DataArray (time, lat, lon), a field, is a series, but for cells with nothing but gaps.
    columns : sequence of str or int, str or int, optional
        Which series to keep, in this order: names, or positions from 0 (negative ones count from the end). Where the
        container itself labels columns with integers, an integer is a label. Names with a minus before them, such as
        ``"-notes"``, are left out, and all others are kept. Columns of words that are not named are left out with a
        warning.
    what, argument : str
        How error messages call the data, and ``columns``.
    bounded : bool
        Infinite values, and such as have no distances in float64, are refused.

    Returns
    -------
    Series
        float32 stays float32 (not copied where it is C-contiguous), float16 becomes float32, all else float64.
    """
    if isinstance(data, Series):
        if data.categories:
            raise InputError(
                f"{what}: {some(list(data.categories))} holds words, which can only be compared, as rqa and other "
                "functions of recurrence do"
            )
        series = data
        if columns is not None:
            chosen = build_series(data.values, data.names, data.time, columns=columns, what=what, argument=argument)
            kept = {name: unit for name, unit in (data.units or {}).items() if name in chosen.names}
            series = replace(chosen, source=data.source, units=kept or None, reading=data.reading)
    else:
        series = series_of(unpack(data, what), columns, what, argument, bounded=bounded)
    # What a thread finds is kept by a copy: the series itself may be pickled at the same time.
    noticed(what, replace(series).described, series.values.nbytes)
    return series


def time_of(data: Any, what: str = "data") -> Array | None:
    """The time of what :func:`as_series` takes, without looking at its values; None where it has none."""
    if isinstance(data, Series):
        return data.time
    choice = time_of_table(unpack(data, what), (), what)
    return None if choice.moments is None else choice.moments.values


def name_of(data: Any, what: str = "data") -> str:
    """The name of the first series of what :func:`as_series` takes; empty where it has none of its own."""
    if isinstance(data, Series):
        return data.names[0]
    table = unpack(data, what)
    name = str(table.labels[0]) if table.labels else ""
    return "" if name == "x0" else name


def build_series(values: Array, names: Sequence[object] | None = None, time: Array | None = None, *,
                 columns: Sequence[str | int] | str | int | None = None, what: str = "data",
                 argument: str = "columns") -> Series:  # fmt: skip
    """Validate an array (L,) or (L, N) whose names and time are known; otherwise as :func:`as_series`."""
    table = of_array(np.asarray(values), what)
    if names is None:
        names = table.labels
    if len(names) != len(table.labels):
        raise InputError(f"{what}: {len(names)} names for {len(table.labels)} series; one name each is needed")
    known = replace(table, labels=tuple(names), time=time, settled=True)
    return series_of(known, columns, what, argument)


def time_of_table(
    table: Table, kept: Sequence[int], what: str, named: Sequence[int] = (), form: str = ""
) -> TimeChoice:
    """Which columns of a table are its time, and what it is; see :func:`pyedmcl.series.times.choose_time`."""
    by_index = table.time is not None and not named
    if table.settled or (table.headless and not named and not table.of_text):
        choice = TimeChoice()
    else:
        typed = [] if table.array is not None or table.of_text else [
            i for i in range(len(table.labels)) if getattr(table.column(i), "dtype", np.dtype(float)).kind == "M"
        ]  # fmt: skip
        choice = choose_time(
            ["" if i in table.nameless else label for i, label in enumerate(table.labels)], table.column, named=named,
            kept=kept, form=form, beside=by_index, where=table.where, what=what, headless=table.headless, typed=typed,
            short=len(table.labels) == 1,
        )  # fmt: skip
    if by_index and table.time is not None:
        choice.moments = moments_of(table.time, None, form)
        choice.columns = ()
        require_certain(choice.moments, [], table.time, table.where, what)
    return choice


def series_of(
    table: Table, columns: Sequence[str | int] | str | int | None, what: str, argument: str = "columns",
    options: ReadingOptions = NOTHING_SAID, time_column: Any = None, bounded: bool = True,
) -> Series:  # fmt: skip
    """The series of a table, and how they were read."""
    chosen = select(table.labels, columns, what, argument)
    named = [] if time_column is None else select(table.labels, _parts(time_column, table), what, "time_column")
    kept = [] if columns is None or leaves_out(table.labels, columns) else [i for i in chosen if i not in named]
    choice = time_of_table(table, kept, what, named, options.time_format)
    picked = [i for i in chosen if i not in choice.columns and i not in choice.left_out]
    if not picked and chosen:
        beside = some([table.labels[i] for i in choice.columns])
        raise InputError(f"{what}: there is no column of data beside the time column {beside}")
    everything = picked == list(range(len(table.labels)))
    names = tuple(map(str, table.labels if everything else [table.labels[i] for i in picked]))
    if len(set(names)) < len(names):
        twice = [name for name, count in counts(names).items() if count > 1]
        raise InputError(f"{what}: names must differ, but there is more than one {some(twice)}; rename these series")
    if table.n_steps == 0 or not names:
        raise InputError(f"{what}: there are no values ({table.n_steps} rows, {len(names)} series)")
    left_out = {str(table.labels[i]): why for i, why in choice.left_out.items()}
    told = [*table.inferred, *choice.doubts]
    if left_out and not table.settled:
        one = len(left_out) == 1
        told.append(
            f"{what}: {some(list(left_out))} {'holds' if one else 'hold'} times or numbers of rows, too, and "
            f"{'is' if one else 'are'} left out"
        )
    categories: dict[str, tuple[str, ...]] = {}
    if table.array is not None and table.array.dtype.kind in "fiub":
        array = table.array if everything else table.array.take(picked, axis=1)
        values = np.ascontiguousarray(options.numbers.without_gaps(np.asarray(array, float_type(array.dtype))))
    elif table.numbers is not None and plainly_numbers([table.column(i) for i in picked], options.numbers):
        array = table.numbers if everything else table.numbers.take(picked, axis=1)
        values = np.ascontiguousarray(options.numbers.without_gaps(array))
    else:
        values, words, found, categories = _numbers_of(table, picked, names, bool(kept), choice, options, what)
        told += found
        if words:
            left_out |= dict.fromkeys((str(table.labels[i]) for i in words), "words")
            picked = [i for i in picked if i not in words]
            names = tuple(str(table.labels[i]) for i in picked)
    if kept and choice.moments is None and argument == "columns" and not table.settled and not table.headless:
        _tell_recordings_beside(table, {*kept, *choice.columns}, what)
    if options.standardize:
        if categories:
            raise InputError(f"{what}: standardize is for numbers, and {some(list(categories))} holds words")
        values = _standardized(values)
    values = values.view()
    values.flags.writeable = False  # a view: the caller's own array stays writable
    units = {name: table.units[name] for name in names if name in table.units} if table.units else None
    moments = choice.moments
    series = Series(
        values, names, None if moments is None else moments.values, grid=table.grid if everything else None,
        units=units or None, categories=categories or None,
    )
    if bounded and not (np.abs(series.extent) <= _most(values)).all():  # gaps, or worse
        _refuse_large(values, names, what)
    if table.settled:
        return series
    time_names = [str(table.labels[i]) for i in choice.columns]
    if moments is not None:
        text = unread(moments, " + ".join(time_names) or "the index", table.where)
        told += [f"{what}: {said}" for said in (text, moments.note) if said]
    told += _doubts(series, table, kept, what)
    low, high, _ = bounds(series.values, series.extent)
    lost = [names[i] for i in lost_digits(low, high, lambda i: table.column(picked[i]))]
    told += [f"{what}: {digits_in_words(lost)}"] if lost else []
    reading = Reading(
        table.source or type(values).__name__, table.n_steps, len(table.labels), names,
        "" if moments is None else time_in_words(time_names, moments.form, moments.values), table.layout,
        table.passed_over, left_out,
    ).told(*told)
    out = replace(series, reading=reading)
    out.__dict__["extent"] = series.extent  # a pass over all values that need not be made again
    return out


def _standardized(values: Array) -> Array:
    """Each series less its mean, in units of its standard deviation; a constant one is 0."""
    wide = values.astype(np.float64)
    spread = np.nanstd(wide, axis=0)
    scaled: Array = (wide - np.nanmean(wide, axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled.astype(values.dtype)


def _parts(time_column: Any, table: Table) -> Any:
    """The columns that hold the time: a text with commas that is no name is several."""
    text = isinstance(time_column, str) and "," in time_column and time_column not in table.labels
    return [part.strip() for part in time_column.split(",")] if text else time_column


def _doubts(series: Series, table: Table, kept: Sequence[int], what: str) -> list[str]:
    """Sentences on series that may be something else than they seem."""
    told = []
    transpose = "transpose=True" if takes("transpose") else "the transpose (data.T)"
    if table.headless and series.n_series > series.n_steps:
        told.append(
            f"{what}: there are more series ({series.n_series:,}) than rows ({series.n_steps:,}). Time runs along the "
            f"rows: if each row is a series, give {transpose}"
        )
    if not kept and series.n_series > 1 and series.grid is None:
        counting = counters(series.values)
        if 0 < len(counting) < series.n_series:
            named = some([series.names[i] for i in counting])
            told.append(
                f"{what}: {named} {'grows' if len(counting) == 1 else 'grow'} by one from row to row, as numbers of "
                f"rows do, and {'is' if len(counting) == 1 else 'are'} taken as series like the others"
            )
    if not table.headless and not kept:
        said = wide_names(series.names)
        if said:
            told.append(f"{what}: {said}: if each row is a series, give {transpose}")
    return told + [f"{what}: {name!r}: {text}" for name, text in gap_codes(series.values, series.names, series.extent)]


def _numbers_of(
    table: Table, picked: list[int], names: tuple[str, ...], named: bool, choice: TimeChoice, options: ReadingOptions,
    what: str,
) -> tuple[Array, list[int], list[str], dict[str, tuple[str, ...]]]:  # fmt: skip
    """Columns as one array, those of words that are left out, what was inferred, in sentences, and the words of those
    that are categories."""
    held: dict[int, Array] = {}
    texts: dict[int, Cells] = {}
    problems: dict[int, str] = {}
    for i in picked:
        column = table.column(i)
        if isinstance(column, Cells):
            texts[i] = column
            continue
        cells = cells_of(column) if column.dtype.kind in "OUT" else None
        if cells is not None:
            texts[i] = cells
            continue
        try:
            held[i] = options.numbers.without_gaps(numeric_column(column))
        except NotNumericError as reason:
            problems[i] = str(reason)
    words: list[int] = []
    told: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    if texts:
        of = dict(zip(picked, names, strict=True))
        plain = {i: cells for i, cells in texts.items() if not _all_words(cells)}
        read, marks = read_numbers(
            {of[i]: cells for i, cells in plain.items()}, replace(options.numbers, point=table.point), table.where, what
        )
        worded = len(texts) - len(plain)
        for i, cells in texts.items():
            own = read.get(of[i])
            if own is None and options.categories and (named or worded == len(picked)):
                held[i], categories[of[i]], said = _categories_of(cells, of[i], options, what)
                told += said
            elif own is not None and not own.left:
                held[i] = own.values
            elif own is None and not named:
                words.append(i)
            else:
                problems[i] = _why_not(table, cells, own)
        if not (options.numbers.decimal or options.numbers.thousands):
            told += _thousands_told(marks, what)
        told += _gaps_told({of[i]: read[of[i]] for i in held if of[i] in read}, table, what)
    if len(words) == len(picked) and words:
        problems = {i: _why_not(table, texts[i], None) for i in words}
        words = []
    for i in words:
        listed = ["" if cell is None else cell for cell in texts[i].listed()]
        require_no_recordings(listed, table.labels[i], what, len(picked) - len(words))
    if problems:
        first = next(iter(problems))
        listed = [f"column {str(table.labels[i])!r} {why}" for i, why in list(problems.items())[:SHOWN]]
        more = f" (and {len(problems) - SHOWN} more columns)" if len(problems) > SHOWN else ""
        remedy = _remedy(table, first, texts.get(first), choice, options)
        raise InputError(f"{what}: {'; '.join(listed)}{more}. {remedy}")
    if words:
        named_words = some([table.labels[i] for i in words])
        told.append(f"{what}: {'column' if len(words) == 1 else 'columns'} {named_words} "
                    f"{'holds text and is' if len(words) == 1 else 'hold text and are'} left out"
                    + ("; name it to compare its words" if options.categories else ""))  # fmt: skip
    return _as_one([held[i] for i in picked if i in held], table.n_steps), words, told, categories


def _categories_of(
    cells: Cells, name: str, options: ReadingOptions, what: str
) -> tuple[Array, tuple[str, ...], list[str]]:
    """Places of a column's words among its different words, these, and sentences on what are words and gaps."""
    words: dict[str, int] = {}
    places = np.full(len(cells.values), np.nan)
    for row, text in zip(cells.rows, cells.texts, strict=True):
        if not options.numbers.is_gap(text):
            places[row] = words.setdefault(text, len(words))
    gaps = {text.strip() for text, place in zip(cells.all_texts(), places, strict=True) if place != place} - {""} if (
        cells.all_texts is not None and np.isnan(places).any()
    ) else set()  # fmt: skip
    unsaid = sorted(text for text in gaps if not options.numbers.is_gap(text))
    n = f"{len(words):,} different words" if len(words) != 1 else "one word only"
    told = [f"{what}: {name!r}: {n} ({some(list(words))}), compared as equal or not"]
    return places, tuple(words), told + ([f"{what}: {name!r}: cells such as {some(unsaid)} are gaps"] if unsaid else [])


def _as_one(columns: Sequence[Array], n_steps: int) -> Array:
    """Columns as one array, in groups so that the row-major writes stay near each other."""
    wide = any(column.dtype == np.float64 for column in columns)
    values: Array = np.empty((n_steps, len(columns)), np.float64 if wide else np.float32)
    for start in range(0, len(columns), 64):
        values[:, start:start + 64] = np.array(columns[start:start + 64]).T
    return values


def _all_words(cells: Cells) -> bool:
    """Whether a column holds nothing but words and gaps."""
    return (
        bool(len(cells.texts)) and not np.isfinite(cells.values).any() and are_words(cells.texts)
        and not all(text.lower() in ("true", "false") for text in cells.texts)
    )  # fmt: skip


def _why_not(table: Table, cells: Cells, column: NumberColumn | None) -> str:
    """Why a column of texts is not numeric, with its first cell that is no number."""
    row, text = (cells.rows[0], cells.texts[0]) if column is None else column.left[0]
    return f"is not numeric: {table.where(row)} holds {text!r}"


def _remedy(table: Table, i: int, cells: Cells | None, choice: TimeChoice, options: ReadingOptions) -> str:
    """What can be done about a column that is not numeric, by arguments that the function at work has."""
    name = str(table.labels[i])
    how = f"columns={'-' + name!r}" if takes("columns") else f".drop(columns={name!r})"
    leave = f"leave the column out with {how}"
    column = None if table.of_text else table.column(i)
    dated = getattr(getattr(column, "dtype", None), "kind", "") == "M" or (
        cells is not None and dates_of_texts(cells.listed()) is not None
    )
    if dated:
        time = f"time_column={name!r}" if takes("time_column") else f"data.set_index({name!r})"
        return f"If it is the time, say {time}; else {leave}" if choice.moments is None else (
            f"It holds dates beside the time: {leave}"
        )
    compares = options.categories or (takes("radius") and takes("threshold"))  # a function of recurrence
    if compares and cells is not None and _all_words(cells):
        if table.headless and len(table.labels) == 1:
            return "Only numbers can be used here; rqa is one of the functions that take words"
        own = "" if table.headless else f" such as data[{name!r}]"
        return f"Words are given as single series{own}, of which radius=0.5 finds equal ones; or {leave}"
    if cells is None or _all_words(cells):
        return (
            f"Only numbers can be used: {leave}, or give each word that stands for a state a number, "
            "as pandas.factorize does"
        )
    unread = _unread_cells(cells)
    limits, words = limits_and_words(unread)
    codes = ([limits[0][0]] if limits else []) + words[:6]
    said = ",".join(codes) if all("," not in code for code in codes) else codes
    missing = f"missing={said!r}" if takes("missing") else f"read_series(data, missing={said!r}) of pyedmcl.files"
    numbers = {*cells.rows} - {row for row, _ in unread.left}
    last = max(numbers.union(np.flatnonzero(np.isfinite(cells.values))[-1:].tolist()), default=0)
    ends = [(row, side) for (row, _), side in ((unread.left[0], "above"), (unread.left[-1], "below"))
            if (row < 3 if side == "above" else row > last)]  # fmt: skip
    lines = [(table.where(row).rpartition(" ")[2], side) for row, side in ends if table.of_text]
    line = "".join(f"; if line {n} stands {side} the table, say skip_rows='{n}:{n}'" for n, side in lines)
    mixed = "" if not compares else "; words that are compared do not begin like numbers: write such as c3 for 3" if (
        options.categories
    ) else "; if all are categories, give texts, as in list(map(str, x))"
    return f"If that stands for a missing value, say {missing}{line}{mixed}; else {leave}"


def _unread_cells(cells: Cells) -> NumberColumn:
    """Cells that are no numbers under any mark."""
    left = [(row, text) for row, text in zip(cells.rows, cells.texts, strict=True)
            if not like_number(text) and not is_spreadsheet_error(text)]  # fmt: skip
    return NumberColumn(cells.values, left or list(zip(cells.rows, cells.texts, strict=True)), {})


def _thousands_told(marks: dict[str, tuple[str, str]], what: str) -> list[str]:
    """Sentences on marks between thousands, by which cells were read."""
    told = []
    for mark, word in ((",", "comma"), (".", "point")):
        names = [name for name, (_, thousands) in marks.items() if thousands == mark]
        others = [name for name, (decimal, _) in marks.items() if decimal not in ("", mark)]
        if names:
            beside = f", and {'a point' if mark == ',' else 'a comma'} as the decimal mark in {some(others)}"
            told.append(f"{what}: a {word} is read as parting thousands in {some(names)}{beside if others else ''}")
    return told


def _gaps_told(columns: dict[str, NumberColumn], table: Table, what: str) -> list[str]:
    """A sentence on cells that were taken for gaps, though they are neither empty nor a usual word."""
    examples = [(text, name, row) for name, column in columns.items() for text, row in column.gaps.items()]
    if not examples:
        return []
    listed = ", ".join(f"{text!r} ({name!r}, {table.where(row)})" for text, name, row in examples[:4])
    more = f" and {len(examples) - 4} more" if len(examples) > 4 else ""
    return [f"{what}: cells such as {listed}{more} are taken as gaps"]


def _tell_recordings_beside(table: Table, looked_at: set[int], what: str) -> None:
    """Warn of a column that nobody asked for by which the rows seem to belong to several recordings."""
    others = [i for i in range(len(table.labels)) if i not in looked_at and not is_time_name(table.labels[i])]
    for i in others[:64]:
        column = table.column(i)
        if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
            cells = Cells(column.astype(np.float64))
        else:
            found = column if isinstance(column, Cells) else cells_of(column) if column.dtype.kind in "OUT" else None
            if found is None:
                continue
            cells = found
        listed = ["" if cell is None else cell for cell in cells.listed()]
        words = _all_words(cells) and tell_recordings(listed)
        if words or (not len(cells.texts) and in_stretches(cells.values)):
            warn_of_recordings(list(dict.fromkeys(listed)), table.labels[i], what)


def _row_blocks(values: Array) -> Iterator[tuple[int, Array]]:
    rows = max(1, _BLOCK_VALUES // values.shape[1])
    for start in range(0, values.shape[0], rows):
        yield start, values[start:start + rows]


def _most(values: Array) -> Array:
    """The largest magnitude that is taken, in the type of the values."""
    return np.array(min(_LARGEST, float(np.finfo(values.dtype).max)), values.dtype)


def _refuse_large(values: Array, names: tuple[str, ...], what: str) -> None:
    """Refuse infinite values, and finite ones whose differences may be infinite."""
    first: tuple[int, int] | None = None
    count, most = 0, _most(values)
    for start, block in _row_blocks(values):
        large = np.abs(block) > most
        n_large = int(np.count_nonzero(large))
        if n_large and first is None:
            row, series = divmod(int(np.argmax(large)), values.shape[1])
            first = (start + row, series)
        count += n_large
    if first is not None:
        more = f", and {count - 1} more values are" if count > 1 else ""
        value = values[first]
        wrong, remedy = "infinite", "mark gaps with NaN"
        if np.isfinite(value):
            wrong, remedy = f"{value:g}, beyond {_LARGEST:.3g},", "scale it down, or mark gaps with NaN"
        raise InputError(f"{what}: series {names[first[1]]!r} is {wrong} in row {first[0]} (counted from 0){more}; "
                         f"{remedy}")


def tell_constant(**given: Series) -> None:
    """Warn of series without a skill, since they never change. One without a name is called like its argument."""
    names = dict.fromkeys(
        what if series.names == ("x0",) else name for what, series in given.items() for name in series.constant
    )
    if names:
        warn(f"constant series, whose rho is NaN: {some(tuple(names))}", ConstantSeriesWarning)


def tell_state(data: Any, series: Series, what: str) -> None:
    """Warn where columns of a frame become one state, which elsewhere are series of their own."""
    if series.n_series > 1 and not isinstance(data, Series) and hasattr(data, "columns"):
        warn(
            f"{what}: its {series.n_series} columns ({some(series.names)}) are taken together as one state; for one "
            "series pass a column. state=[...] names the columns of a state, and embedded=True says that they are its "
            "coordinates, without lags"
        )


def tell_scales(series: Series, what: str) -> None:
    """Warn where series that are one state together have other scales: the widest decides which states are near."""
    if series.n_series < 2:
        return
    with np.errstate(invalid="ignore", over="ignore"):
        spread = np.nanstd(series.values.astype(np.float64), axis=0)
    low, high, _ = bounds(series.values, series.extent)
    spread = np.where(np.isfinite(spread) & (high > low), spread, np.nan)
    if np.isnan(spread).all():
        return
    wide, narrow = int(np.nanargmax(spread)), int(np.nanargmin(spread))
    ratio = float(spread[wide] / spread[narrow])
    if ratio > _SCALES:
        warn(
            f"{what}: {series.names[wide]!r} varies {ratio:,.0f} times as much as {series.names[narrow]!r}, so that it "
            "alone decides which states are near. Bring them to one scale: read_series(data, standardize=True) of "
            "pyedmcl.files",
            ReadingWarning,
        )


def require_rows(
    series: Series, *, E: int, tau: int, Tp: int, k: int, what: str = "data", name: str = "E"
) -> None:
    """Refuse series too short to give each embedded row k neighbours, and warn of few rows.

    Rows t with (E-1)*tau <= t whose target t+Tp lies inside the series can serve as neighbours; k+1 of them are needed,
    since a row is not its own neighbour. ``name`` is the argument that gave E, for messages.
    """
    lost = max((E - 1) * tau + max(Tp, 0), -Tp)
    needed = lost + k + 1
    if series.n_steps >= needed:
        if series.n_steps < FEW_ROWS and said_first("few rows"):
            warn(
                f"{what}: there are {series.n_steps} rows. States must come near each other many times: with fewer "
                f"than {FEW_ROWS} rows a skill says little"
            )
        return
    hint = "; time runs along the first axis: pass the transpose if your rows are series" if (
        series.n_series >= needed) else ""
    raise InputError(f"{what}: {name}={E}, tau={tau}, Tp={Tp} with {k} neighbours needs at least {needed} rows, "
                     f"there are {series.n_steps}; use a smaller {name} or tau, or longer series{hint}")


def check_embedding(E: object, tau: object) -> tuple[int, int]:
    """E and tau as integers of at least 1."""
    hint = ""
    if isinstance(tau, (int, np.integer)) and tau < 0:
        hint = f" (pyEDM's tau={tau} is tau={-tau} here)"
    return (integer("E", E, 1, "the number of lagged values in an embedded point", most=MOST_STEPS),
            integer("tau", tau, 1, "the lag into the past, in steps", hint, MOST_STEPS))
