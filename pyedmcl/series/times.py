"""Which columns of a table are its time, and what their cells mean: one rule for files, frames and mappings.

A column is looked at if its name is one for times in one of the field's languages, if it is the first one and holds
dates, or if the user has named it. Parts in columns of their own (year, month, hour) are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from .arrays import Array
from .date_forms import (
    DateColumn,
    dates_of_numbers,
    dates_of_parts,
    dates_of_texts,
    like_date,
    months_of_words,
    unevenness,
)
from .number_forms import Cells, cells_of

_WORDS = {
    "year": "year yr yyyy jahr année annee año ano anno år jaar год 年",
    "month": "month mon monat mois mes mês mese maand månad måned месяц 月",
    "day": "day tag jour día dia giorno dag день 日",
    "hour": "hour hr hh stunde heure hora ora uur timme час 时 時",
    "minute": "minute min minuto minuut минута 分",
    "second": "second sec sekunde seconde segundo secondo 秒",
    "quarter": "quarter qtr quartal trimestre trimester квартал",
    "week": "week wk woche kw semaine semana settimana vecka uge uke isoweek неделя",
    "doy": "doy yday dayofyear jday julian",
    "season": "season saison temporada stagione",
    "date": "date datum fecha dato dt дата 日期 日付 年月日 年月 yearmonth yearmon yyyymm yyyymmdd",
    "time": "time datetime timestamp zeit uhrzeit zeitpunkt zeitstempel temps tiempo tempo tijd tid tidspunkt t index "
    "epoch время 时间 時間 時刻 日時",
}
_KIND_OF = {word: kind for kind, words in _WORDS.items() for word in words.split()}
#: Words that name other things as well: such a column is the time only if it counts evenly or holds dates.
_WEAK = frozenset(
    """t index min mon sec second dt season saison temporada stagione mes tag dag dia ora hora ano tempo temps julian
    """.split()  # noqa: SIM905
)
#: Words that stand beside those.
_BESIDE = frozenset(
    """start begin beginning end stop utc gmt local lst cet est of the sampling sample sampled collection collected obs
    observation observed measurement measured recorded record iso unix ms s us ns h d decimal dec number no nr num
    calendar water fiscal crop survey visit stamp from to mid middle period ended ending du de del der des la le am at
    in seconds minutes hours days years months""".split()  # noqa: SIM905
)
_COUNTERS = frozenset({
    "", "no", "no.", "nr", "nr.", "id", "row", "rowid", "row_id", "rownames", "obs", "#", "n", "lp", "lp.",
    "lfd. nr.", "record", "seq", "index", "level_0",
})  # fmt: skip
_UNNAMED = re.compile(r"unnamed: \d+$")
_UNIT = re.compile(r"\s*[(\[].*[)\]]\s*:?$")
_BETWEEN = re.compile(r"[\s_/.\-,:|()]+")
_CAMEL = re.compile(r"(?<=[a-zà-ÿ])(?=[A-Z])")
_RANGES = {"month": (1, 12), "day": (1, 31), "hour": (0, 24), "minute": (0, 59), "second": (0, 60), "quarter": (1, 4),
           "week": (0, 53), "doy": (1, 366), "season": (1, 4)}  # fmt: skip
_JOINED = ("month", "quarter", "week", "doy")
_CLOCK = ("hour", "minute", "second")
_MOSTLY, _RARELY = 0.6, 0.01
_LONG = 20  # rows of a recording, as a mean, for a number that begins anew with each


def kind_of_name(name: object) -> str:
    """Which time or part of a date a column holds by its name: "year", "month", ..., "date", "time"; empty for none."""
    text = _UNIT.sub("", str(name)).strip()
    words = [word for word in _BETWEEN.split(_CAMEL.sub(" ", text).lower()) if word]
    kinds = [_KIND_OF[word] for word in words if word in _KIND_OF]
    if not kinds or any(word not in _KIND_OF and word not in _BESIDE for word in words):
        return ""
    if "doy" in kinds or words == ["day", "of", "year"]:
        return "doy"
    different = set(kinds)
    if len(different) == 1:
        return kinds[0]
    if "time" in different or different & {*_CLOCK}:
        return "time"
    return "date"


def is_time_name(name: object) -> bool:
    """True for a usual name of a column of times, in several languages, with or without a unit in brackets."""
    return bool(kind_of_name(name))


def is_counter_name(name: object) -> bool:
    """True for names that programs give to the number of a row, and for none at all."""
    text = str(name).strip()  # R calls the names of rows X
    return text == "X" or text.lower() in _COUNTERS or bool(_UNNAMED.match(text.lower()))


def is_weak_name(name: object) -> bool:
    """True for names of times that name other things as well."""
    return _UNIT.sub("", str(name)).strip().lower() in _WEAK


@dataclass(frozen=True, eq=False)
class Moments:
    """Cells of a column as times."""

    # ndarray (L,). Dates, durations, numbers, or text where they are none of these.
    values: Array
    # How they are written, such as "day/month/year" or "numbers".
    form: str
    # Rows whose cells are no times though nearly all others are.
    bad: tuple[int, ...] = ()
    # Another form that fits as well.
    also: str = ""
    # What else was inferred.
    note: str = ""
    # Numbers or durations whose differences count, where ``values`` are labels (calendars of climate models).
    clock: Array | None = None
    # The times under that form.
    other: Array | None = None


@dataclass(eq=False)
class TimeChoice:
    """The time of a table."""

    # Columns that hold it; empty where it comes from elsewhere, or there is none.
    columns: tuple[int, ...] = ()
    moments: Moments | None = None
    # Other columns that are times as well, or count rows beside a time, and why they are no series.
    left_out: dict[int, str] = field(default_factory=dict)
    # Columns that are series though their names are those of times, in sentences.
    doubts: list[str] = field(default_factory=list)


def moments_of(column: Array | Cells, name: object, form: str = "") -> Moments:
    """What the cells of a column of times mean.

    Parameters
    ----------
    column : ndarray (L,) or Cells
    name : object
        Its name, which tells years of two digits from other numbers.
    form : str
        What the user says of the form.
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "Mm":
            return Moments(column, "dates" if column.dtype.kind == "M" else "durations")
        if column.dtype.kind in "iuf":
            return _of_numbers(column, name, form)
        climate = _of_climate_model(column)
        if climate is not None:
            return climate
        cells = cells_of(column)
        if cells is None:
            return Moments(np.array([str(value) for value in column.tolist()], np.str_), "text")
        column = cells
    few = max(_RARELY * len(column.values), 1)
    if not len(column.texts) or (len(column.texts) <= few and np.isfinite(column.values).sum() > 2 * len(column.texts)):
        of_numbers = _of_numbers(column.values, name, form)
        return of_numbers if not len(column.texts) else Moments(
            of_numbers.values, of_numbers.form, tuple(column.rows), of_numbers.also, of_numbers.note
        )
    listed = column.listed()
    dates = dates_of_texts(listed, form)
    if dates is not None:
        return _of_dates(dates)
    months = months_of_words(["" if cell is None else cell for cell in listed])
    if months is not None:
        return Moments(months, "names of months")
    return Moments(np.array(["" if cell is None else cell for cell in listed], np.str_), "text")


def _of_dates(dates: DateColumn) -> Moments:
    return Moments(dates.values, dates.form, dates.bad, dates.also, dates.note, other=dates.other)


def _of_numbers(values: Array, name: object, form: str) -> Moments:
    """Numbers as dates where they are written so, else as whole numbers or as they are."""
    if form not in ("", "number") or (form == "" and (name is None or is_time_name(name))):
        dates = dates_of_numbers(values.astype(np.float64))
        if dates is not None:
            return _of_dates(dates)
        if "%" in form:
            texts = [None if value != value else f"{value:.15g}" for value in values.tolist()]
            made = dates_of_texts(texts, form)
            if made is not None:
                return _of_dates(made)
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.rint(values)).all() and (
        np.abs(values) < 2.0**53
    ).all():
        values = values.astype(np.int64)
    if kind_of_name(name) == "year" and values.dtype.kind in "iu" and len(values) > 2:
        unwrapped = _four_digits(values.astype(np.int64))
        if unwrapped is not None:
            note = f"years of two digits are taken as {unwrapped.min()} to {unwrapped.max()}"
            return Moments(unwrapped, "year (two-digit years)", note=note)
    return Moments(values, "numbers")


def _four_digits(years: Array) -> Array | None:
    """Years such as 98, 99, 0, 1 with their century; None where they do not pass the turn of one."""
    steps = np.diff(years)
    if years.min() < 0 or years.max() > 99 or not (steps < 0).any() or ((steps < 0) & (steps > -90)).any():
        return None
    out: Array = 1900 + years + 100 * np.concatenate([[0], np.cumsum(steps < 0)])
    return out


def _of_climate_model(column: Array) -> Moments | None:
    """Dates of a calendar that is not ours (cftime): labels, and how long after the first each one is."""
    present = next((value for value in column.tolist() if value is not None), None)
    if not hasattr(present, "calendar") or not hasattr(present, "timetuple"):
        return None
    values = column.tolist()
    first = values[0]
    clock: Array = np.array([value - first for value in values], "timedelta64[us]")
    labels = np.array([value.isoformat(" ") for value in values], np.str_)
    return Moments(labels, f"calendar {first.calendar}", clock=clock)


def choose_time(
    names: Sequence[object], column: Callable[[int], Array | Cells], *, named: Sequence[int] = (),
    kept: Sequence[int] = (), form: str = "", beside: bool = False, where: Callable[[int], str] | None = None,
    what: str = "data", headless: bool = False, typed: Sequence[int] = (), short: bool = False,
) -> TimeChoice:  # fmt: skip
    """Which columns of a table are its time.

    Parameters
    ----------
    names : sequence
        Names of all columns.
    column : callable
        Gives the cells of a column.
    named : sequence of int
        Columns that the user has named as the time.
    kept : sequence of int
        Columns that the user has named as series.
    form : str
        What the user says of the form of times.
    beside : bool
        The time is known already (an index): other columns of times are left out.
    where : callable
        Name of a row in messages.
    headless : bool
        The columns have no names of their own.
    typed : sequence of int
        Columns whose type says that they are dates.
    short : bool
        There is one column only, which is no time unless it is named.
    """
    where = where or (lambda row: f"row {row}")
    seen: dict[int, Moments] = {}

    def moments(place: int) -> Moments:
        if place not in seen:
            seen[place] = moments_of(column(place), None if headless else names[place], form)
        return seen[place]

    def settled(choice: TimeChoice) -> TimeChoice:
        if choice.moments is not None:
            require_certain(choice.moments, [names[i] for i in choice.columns], column(choice.columns[0]), where, what)
        return choice

    if named:
        if len(named) == 1:
            own = moments(named[0])
            if own.form == "names of months":
                own = Moments(np.asarray([str(cell) for cell in own.values]), "text")
            return settled(TimeChoice(tuple(named), own))
        parts = {kind_of_name(names[i]): i for i in named}
        joined = _joined(parts, moments, names)
        if joined is None:
            columns = ", ".join(str(names[i]) for i in named)
            raise InputError(f"{what}: time_column={columns!r}: these columns are no date together")
        return settled(joined)
    if short:
        return TimeChoice()
    kinds = {} if headless else {
        i: kind for i, name in enumerate(names) if i not in kept and (kind := kind_of_name(name))
    }
    dates = [i for i in typed if i not in kept]
    if len(dates) == 1:
        kinds.setdefault(dates[0], "date")
    choice = TimeChoice() if beside else _found(names, kinds, moments, kept, headless)
    if beside or choice.columns:
        for i, kind in kinds.items():
            if i not in choice.columns and _counts_time(kind, names[i], moments(i)):
                choice.left_out[i] = "a time"
        counters = [] if headless else [
            i for i, name in enumerate(names) if i not in kept and i not in choice.columns and is_counter_name(name)
        ]
        for i in counters:
            if _counts_rows(moments(i).values):
                choice.left_out[i] = "a number of the row"
    for i, kind in kinds.items():
        if i not in choice.columns and i not in choice.left_out and kind in ("date", "time", "year") and (
            not is_weak_name(names[i])
        ):
            choice.doubts.append(
                f"{what}: {names[i]!r} is named like a time, but its values go up and down; it is taken as a series. "
                f"Name it with time_column={str(names[i])!r}, or leave it out"
            )
    return settled(choice)


def _found(
    names: Sequence[object], kinds: Mapping[int, str], moments: Callable[[int], Moments], kept: Sequence[int],
    headless: bool,
) -> TimeChoice:  # fmt: skip
    """The time among columns: dates, parts of dates, numbers that count time, a counter of rows, text by its name."""
    parts: dict[str, int] = {}
    for i, kind in kinds.items():
        parts.setdefault(kind, i)
    dated = [i for i in kinds if moments(i).values.dtype.kind == "M"]
    if dated:
        clock = next((i for i in kinds if i not in dated and _is_clock(kinds[i], moments(i))), None)
        midnight = moments(dated[0]).values
        if clock is not None and (midnight == midnight.astype("datetime64[D]")).all():
            return _with_clock(dated[0], clock, kinds, parts, moments)
        return TimeChoice((dated[0],), moments(dated[0]))
    joined = _joined(parts, moments, names)
    if joined is not None:
        return joined
    if 0 not in kept and 0 not in kinds and len(names) > 1:
        first = moments(0)
        if first.values.dtype.kind == "M" or first.form == "hour:minute":
            return TimeChoice((0,), first)
    for wanted in (("time", "date", "year"), tuple(_WORDS)):
        for i, kind in kinds.items():
            if kind in wanted and _counts_time(kind, names[i], moments(i)) and moments(i).form != "names of months":
                return TimeChoice((i,), moments(i))
    counters = [] if headless else [i for i, name in enumerate(names) if i not in kept and is_counter_name(name)]
    for i in counters[:1]:
        if _counts_rows(moments(i).values):
            return TimeChoice((i,), moments(i))
    texts = [i for i in kinds if moments(i).values.dtype.kind == "U" and not is_weak_name(names[i])
             and kinds[i] != "season"]  # fmt: skip
    return TimeChoice((texts[0],), moments(texts[0])) if texts else TimeChoice()


def _joined(
    parts: Mapping[str, int], moments: Callable[[int], Moments], names: Sequence[object]
) -> TimeChoice | None:
    """Years with months, quarters, weeks or days of the year, and what is finer; None where they are no date."""
    if "year" not in parts:
        return None
    finer = next((kind for kind in _JOINED if kind in parts), None)
    if finer is None:
        return None
    used = ["year", finer, *(["day"] if finer == "month" and "day" in parts else [])]
    if finer == "doy" or "day" in used:
        for kind in _CLOCK:
            if kind not in parts:
                break
            used.append(kind)
    dates = dates_of_parts({kind: moments(parts[kind]).values for kind in used})
    if dates is None:
        return None
    columns = tuple(parts[kind] for kind in used)
    clock = parts.get("time")
    if "hour" not in used and clock is not None and _is_clock("time", moments(clock)):
        return TimeChoice((*columns, clock), Moments(dates + _since_midnight("time", moments(clock)), " + ".join(
            str(names[i]) for i in (*columns, clock))))  # fmt: skip
    return TimeChoice(columns, Moments(dates, " + ".join(str(names[i]) for i in columns)))


def _is_clock(kind: str, moments: Moments) -> bool:
    """Whether a column holds times of day: clock times, or whole hours."""
    if kind in ("time", "hour") and moments.form == "hour:minute":
        return True
    return kind == "hour" and _within(kind, moments.values)


def _with_clock(
    date: int, clock: int, kinds: Mapping[int, str], parts: Mapping[str, int], moments: Callable[[int], Moments]
) -> TimeChoice:
    """Dates and times of day in columns of their own."""
    columns = [date, clock]
    since = _since_midnight(kinds[clock], moments(clock))
    if kinds[clock] == "hour":
        for kind, unit in (("minute", "m"), ("second", "s")):
            if kind not in parts or not _within(kind, moments(parts[kind]).values):
                break
            columns.append(parts[kind])
            since = since + moments(parts[kind]).values.astype(np.int64).astype(f"timedelta64[{unit}]")
    own = moments(date)
    when, form, also = own.values.astype("datetime64[us]") + since, own.form, own.also
    if own.other is not None:  # the time of day may tell which form has equal steps
        other = own.other.astype("datetime64[us]") + since
        if unevenness(when) != unevenness(other):
            when, form, also = (when, form, "") if not unevenness(when) else (other, also, "")
    return TimeChoice(tuple(columns), Moments(when, form, own.bad, also, own.note))


def _since_midnight(kind: str, moments: Moments) -> Array:
    if moments.values.dtype.kind == "m":
        return np.asarray(moments.values.astype("timedelta64[us]") % np.timedelta64(86_400_000_000, "us"))
    return moments.values.astype(np.int64).astype("timedelta64[h]").astype("timedelta64[us]")


def _within(kind: str, values: Array) -> bool:
    """Whether whole numbers lie in the range of a part of a date."""
    if values.dtype.kind not in "iu":
        return False
    least, most = _RANGES[kind]
    return bool((values >= least).all() and (values <= most).all())


def _counts_time(kind: str, name: object, moments: Moments) -> bool:
    """Whether the values of a column with the name of a time are times."""
    values = moments.values
    if values.dtype.kind in "Mm":
        return True
    if values.dtype.kind not in "iuf":
        return moments.form.startswith("calendar") or moments.form == "names of months"
    finite = np.isfinite(values.astype(np.float64))
    if finite.sum() < _MOSTLY * len(values) or len(values) < 2:
        return False
    steps = np.diff(values[finite].astype(np.float64))
    if is_weak_name(name):
        return bool(finite.all()) and (_even(steps) or begins_anew(values))
    if kind in _RANGES:
        if _within(kind, values) and (steps >= 0).mean() > _MOSTLY:
            return True
        if (steps > 0).mean() < 1 - _MOSTLY / 4 and (steps < 0).mean() < 1 - _MOSTLY / 4:
            return begins_anew(values)
    forward, backward = (steps > 0).mean(), (steps < 0).mean()
    return bool(forward >= _MOSTLY or backward > 1 - _MOSTLY / 4 or (steps == 0).mean() > _MOSTLY)


def _even(steps: Array) -> bool:
    return bool(len(steps)) and steps[0] > 0 and bool(np.allclose(steps, steps[0], rtol=1e-3, atol=0.0))


def _counts_rows(values: Array) -> bool:
    """Whether whole numbers grow by one from row to row, or do so and begin anew."""
    if values.dtype.kind not in "iu" or len(values) < 2:
        return False
    steps = np.diff(values.astype(np.int64))
    if (steps == 1).all() or (steps == -1).all():
        return True
    return bool((steps[steps > 0] == 1).all()) and begins_anew(values)


def begins_anew(values: Array) -> bool:
    """True for numbers that grow by one step from row to row, and now and then are the first one again: recordings."""
    steps = np.diff(values)
    up, back = steps[steps > 0], np.flatnonzero(steps < 0) + 1
    if not len(up) > len(back) > 0 or len(up) + len(back) < len(steps):
        return False
    return bool(np.allclose(up, up[0], rtol=1e-3, atol=0.0) and (values[back] == values[0]).all())


def counters(values: Array) -> Array:
    """Columns (n,) of numbers (L, n) that grow by one from row to row, or do so and begin anew."""
    if len(values) < 4:
        return np.zeros(0, np.int64)
    likely = np.flatnonzero((values[1:4] - values[:3] == 1).all(axis=0))
    return np.array([i for i in likely if _counts_all_along(values[:, i])], np.int64)


def _counts_all_along(values: Array) -> bool:
    """Whether numbers grow by one in each row, but for a few rows in which they begin anew."""
    with np.errstate(invalid="ignore"):
        again = np.flatnonzero(np.diff(values) != 1) + 1
    return len(again) <= len(values) // _LONG and bool((values[again] == values[0]).all())


def require_certain(
    moments: Moments, names: Sequence[object], column: Array | Cells, where: Callable[[int], str], what: str
) -> None:
    """Refuse times of which a few cells are none, and forms that may be read in two ways."""
    listed = ", ".join(repr(str(name)) for name in names)
    called = f"{'column' if len(names) == 1 else 'columns'} {listed}" if names else "the index"
    if moments.bad:
        row = moments.bad[0]
        text = repr(_cell(column, row))
        last = row >= len(moments.values) - 3 and not like_date(_cell(column, row))
        kind = "times" if moments.values.dtype.kind not in "iuf" else "numbers"
        means = " It may be a line below the table, such as a mean or a source." if last else ""
        raise InputError(
            f"{what}: {called} holds {kind}, but {text} in {where(row)} is none.{means} Mend the cell, or leave out "
            f"{_only(where(row))}"
        )
    if moments.also:
        raise InputError(
            f"{what}: {called} with dates such as {_cell(column, 0)!r} may be {moments.form} or {moments.also}, and "
            f"no row decides. Say time_format={_plain(moments.form)!r} or time_format={_plain(moments.also)!r}"
        )


def _only(place: str) -> str:
    """How the row at a place is left out."""
    number = place.rpartition(" ")[2]
    return f"its line: skip_rows={f'{number}:{number}'!r}" if place.startswith("line") else "its row"


def _plain(form: str) -> str:
    return form.partition(" (")[0]


def _cell(column: Array | Cells, row: int) -> str:
    if isinstance(column, Cells):
        return str(column.listed()[row])
    return str(column[row])


def time_array(values: Array) -> Array:
    """The values of an index as numbers or dates where they are such or texts that read as dates, else as text."""
    if values.dtype.kind in "fMm" and values.dtype.kind != "f":
        return values
    return moments_of(values, None).values


def unread(moments: Moments, name: object, where: Callable[[int], str]) -> str | None:
    """A sentence on times that are text, which nothing can be checked by; None for all others."""
    if moments.values.dtype.kind != "U" or moments.clock is not None or not len(moments.values):
        return None
    first = next((row for row, text in enumerate(moments.values.tolist()) if text), 0)
    return (
        f"the times in {str(name)!r} are text ({str(moments.values[first])!r} in {where(first)}) that does not read as "
        "dates, so that missing, doubled and unsorted rows cannot be seen. Say their form with time_format=, as in "
        "time_format='%d.%m.%Y'"
    )


