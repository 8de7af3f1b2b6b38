"""Dates as people write them: one form for a whole column, decided by all of its cells.

A cell is cut into numbers, words and marks. The first cells give the pattern, and each meaning that its numbers may
have (day before month, month before day, two-digit years) is tried on all cells. The one that fits them all wins. Where
several fit, time must run forward, and then by equal steps; where several still fit, only the user can tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Array

Ints = NDArray[np.int64]

_FEW_BAD = 0.01  # share of cells that may be a slip of the pen in a column of dates
_FIRST_YEAR = 1500  # of digits without marks, which end with the year
_FIRST = 400  # cells that tell the patterns of a column
_YY = " (two-digit years)"
_PATTERNS = 4  # that a column may have, such as dates with and without an hour
_YEARS = (1000, 2999)
_TOKEN = re.compile(r"\d+|[^\W\d_]+\.?|\s+|.", re.DOTALL)
_TOKEN_OF = {"0": r"(\d+)", "a": r"([^\W\d_]+)\.?", " ": r"\s+"}
_ISO = re.compile(r"\s*[+-]?\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?\s*Z?$")
_LIKE_DATE = re.compile(
    r"\s*(\d{1,4}\s*[-/._年]\s*(\d{1,4}|[^\W\d_]{3,9})|\d{1,2}:\d\d|[^\W\d_]{3,10}\.?[-/. ,]{1,2}\d|"
    r"\d{1,4}\.? [^\W\d_]{2,}|\d{4} ?-?[QqWw]|[QqWw]\d|\d{8}[T ]\d)"
)

_MONTHS = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
jänner feber maerz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti september oktober november december
"""
_AM_PM = {"am": 0, "a": 0, "pm": 12, "p": 12}
_WEEKDAYS = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
_SILENT = {"t", "z", "utc", "gmt", "h", "uhr", "of", "de", "st", "nd", "rd", "th", "日", "号"}
_LABELS = {
    "q": "quarter", "qtr": "quarter", "quarter": "quarter", "w": "week", "kw": "week", "wk": "week", "week": "week",
    "年": "year", "月": "month", "日": "day", "时": "hour", "時": "hour", "分": "minute", "秒": "second",
}  # fmt: skip


def _month_words() -> dict[str, int]:
    """Names of months in the field's languages, and their beginnings of three letters or more that mean one month."""
    meanings: dict[str, set[int]] = {}
    for line in _MONTHS.split("\n"):
        for number, name in enumerate(line.split(), 1):
            for length in range(3, len(name) + 1):
                meanings.setdefault(name[:length], set()).add(number)
    words = {word: months.pop() for word, months in meanings.items() if len(months) == 1}
    return words | {"sept": 9, "mar": 3, "jun": 6, "jul": 7}


_MONTH_OF = _month_words()


@dataclass(frozen=True, eq=False)
class DateColumn:
    """Cells of a column as dates."""

    # ndarray (n,) of datetime64, or timedelta64 for times of day. NaT where a cell is missing or is no date.
    values: Array
    # Order of the parts, such as "day/month/year".
    form: str
    # Cells that are not missing and no dates.
    bad: tuple[int, ...] = ()
    # Another form that fits all cells as well, which only the user can rule out; empty for none.
    also: str = ""
    # What was inferred beyond the form, such as the century; empty for none.
    note: str = ""
    # The dates under that form.
    other: Array | None = None


def like_date(cell: str) -> bool:
    """Whether a text may be a date or a time of day, at a glance."""
    return bool(_LIKE_DATE.match(cell))


def dates_of_texts(cells: Sequence[str | None], form: str = "") -> DateColumn | None:
    """Dates of the cells of a column, None standing for a missing one; None where it is no column of dates.

    ``form`` is what the user says of it, such as "day/month/year", or the letters of ``datetime.strptime``.
    """
    if "%" in form:
        return _by_format(cells, form)
    present = [(row, cell.strip()) for row, cell in enumerate(cells) if cell is not None]
    if not present or not any(like_date(cell) or cell.isdigit() for _, cell in present[:_FIRST]):
        return None
    texts = [cell for _, cell in present]
    found = _iso_column(texts) if _ISO.match(texts[0]) else None
    found = found or _by_patterns(texts, form)
    if found is None or len(found.bad) > max(_FEW_BAD * len(texts), 1) or len(found.bad) * 2 >= len(texts):
        return None
    if len(present) == len(cells):
        return found
    rows = np.array([row for row, _ in present])
    values = np.full(len(cells), np.array("NaT", found.values.dtype), found.values.dtype)
    values[rows] = found.values
    other = None if found.other is None else values.copy()
    if other is not None:
        other[rows] = found.other
    return DateColumn(values, found.form, tuple(rows[list(found.bad)].tolist()), found.also, found.note, other)


def _by_format(cells: Sequence[str | None], pattern: str) -> DateColumn:
    """Dates of cells written as ``pattern`` says."""
    parsed: list[datetime | None] = []
    bad = []
    for row, cell in enumerate(cells):
        when = None
        try:
            when = None if cell is None else datetime.strptime(cell.strip(), pattern)
        except ValueError:
            bad.append(row)
        parsed.append(when.astimezone(UTC).replace(tzinfo=None) if when and when.tzinfo else when)
    return DateColumn(np.array(parsed, "datetime64[us]"), pattern, tuple(bad))


def dates_of_numbers(values: Array) -> DateColumn | None:
    """Dates of numbers such as 199001, 19900131, 1990.01 or 199001312330, all of which are valid; None for others."""
    finite = np.isfinite(values)
    numbers = values[finite].astype(np.float64)
    if len(numbers) < 3 or numbers.min() <= 0 or numbers.max() >= 1e15:
        return None
    readings: dict[str, Array] = {}
    for form, parts in _parts_of_numbers(numbers):
        dates = _assembled(parts)
        if dates is not None and not np.isnat(dates).any() and (np.diff(dates) != np.timedelta64(0)).any():
            readings[form] = dates
    if not readings:
        return None
    best = _best(readings)
    out, other = np.full((2, len(values)), np.datetime64("NaT", "us"))
    out[finite] = best.values
    if best.other is not None:
        other[finite] = best.other
    return DateColumn(out, best.form, also=best.also, other=None if best.other is None else other)


def _parts_of_numbers(numbers: NDArray[np.float64]) -> Iterator[tuple[str, dict[str, Ints]]]:
    """Parts of dates that numbers may be written of: YYYYMM, DDMMYYYY without the first 0, YYYY.MM, MM.YYYY."""
    whole = numbers.astype(np.int64)
    if (whole == numbers).all():
        sizes = set(np.char.str_len(np.char.mod("%d", whole)).tolist())
        for parts in ("Y4m2", "Y4m2d2", "Y4j3", "Y4m2d2H2", "Y4m2d2H2M2", "Y4m2d2H2M2S2"):
            if sizes == {sum(map(int, parts[1::2]))}:
                yield _digits(parts), _cut(whole, parts)
        if sizes <= {7, 8}:
            for parts in ("d2m2Y4", "m2d2Y4"):
                cut = _cut(whole, parts)
                if (cut["Y"] >= _FIRST_YEAR).all():
                    yield _digits(parts), cut
        return
    hundredths, years = (np.rint((numbers - whole) * size).astype(np.int64) for size in (100, 10_000))
    if (np.abs((numbers - whole) * 100 - hundredths) < 1e-6).all() and len(np.unique(hundredths)) > 2:
        yield "YYYY.MM", {"Y": whole, "m": hundredths}
    if (np.abs((numbers - whole) * 10_000 - years) < 1e-6).all() and len(np.unique(whole)) > 2:
        yield "MM.YYYY", {"Y": years, "m": whole}


def _digits(parts: str) -> str:
    """Parts such as "Y4m2d2" as people name them: YYYYMMDD."""
    letters = parts[::2].replace("j", "d").replace("M", "m").upper()
    return "".join(letter * int(size) for letter, size in zip(letters, parts[1::2], strict=True))


def _cut(whole: Ints, parts: str) -> dict[str, Ints]:
    """Digits of numbers as parts of a date, from behind."""
    out = {}
    rest = whole
    for letter, size in zip(parts[-2::-2], parts[-1::-2], strict=True):
        rest, out[letter] = np.divmod(rest, 10 ** int(size))
    return out


def months_of_words(cells: Sequence[str]) -> Array | None:
    """Numbers of months from their names; None where some are none."""
    numbers = [_MONTH_OF.get(cell.strip().rstrip(".").lower(), 0) for cell in cells]
    return np.array(numbers, np.int64) if numbers and all(numbers) else None


def dates_of_parts(parts: dict[str, Array]) -> Array | None:
    """Dates of columns "year" and "month", "quarter", "week" or "doy", with "day", "hour", "minute" and "second".

    None where some are no such numbers. A part without a value gives NaT.
    """
    letters = {"year": "Y", "month": "m", "quarter": "q", "week": "w", "doy": "j", "day": "d", "hour": "H",
               "minute": "M", "second": "S"}  # fmt: skip
    numbers: dict[str, Ints] = {}
    missing = np.zeros(len(parts["year"]), bool)
    for name, values in parts.items():
        if values.dtype.kind not in "iuf":
            return None
        absent = ~np.isfinite(values.astype(np.float64))
        filled = np.where(absent, 1, values)
        if (filled != np.rint(filled)).any() and name != "second":
            return None
        missing |= absent
        numbers[letters[name]] = filled.astype(np.int64)
        if name == "second":
            numbers["f"] = np.rint((filled - np.floor(filled)) * 1e6).astype(np.int64)
    dates = _assembled(numbers, _any_year=True)
    if dates is None or np.isnat(dates[~missing]).any():
        return None
    dates[missing] = np.datetime64("NaT")
    return dates


def _iso_column(texts: Sequence[str]) -> DateColumn | None:
    """Dates as ISO 8601 writes them, with any mixture of hours, fractions and offsets (in UTC then)."""
    out: list[Any] = []
    bad = []
    for place, text in enumerate(texts):
        try:
            if len(text) == 7:
                when = datetime(int(text[:4]), int(text[5:]), 1)
            else:
                when = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        except ValueError:
            bad.append(place)
            out.append(None)
            continue
        out.append(when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when)
    return DateColumn(np.array(out, "datetime64[us]"), "year-month-day" if len(texts[0]) > 7 else "year-month",
                      tuple(bad))


def _shape(text: str) -> tuple[str, ...]:
    """Kinds of the tokens of a cell: "0" number, "a" word, else the mark itself."""
    return tuple("0" if token[0].isdigit() else "a" if token[0].isalpha() else " " if token.isspace() else token
                 for token in _TOKEN.findall(text))


def _by_patterns(texts: Sequence[str], form: str = "") -> DateColumn | None:
    """Dates of cells that share a few patterns of numbers, words and marks; each may have several meanings."""
    common = Counter(map(_shape, texts[:_FIRST])).most_common(_PATTERNS)
    left = np.ones(len(texts), bool)
    shared: dict[str, Array] = {}
    for shape, _ in common:
        pattern = re.compile("".join(_TOKEN_OF.get(kind, re.escape(kind)) for kind in shape))
        rows, fields = [], []
        for row in np.flatnonzero(left).tolist():
            match = pattern.fullmatch(texts[row])
            if match:
                rows.append(row)
                fields.append(match.groups())
        if not rows:
            continue
        readings = {own: values for own, values in _readings(shape, list(zip(*fields, strict=True)))
                    if not form or own.removesuffix(_YY) == form.removesuffix(_YY)}  # fmt: skip
        if not readings:
            continue
        left[rows] = False
        wider = {}
        for form, values in readings.items():
            into = shared.get(form, np.full(len(texts), np.array("NaT", values.dtype), values.dtype))
            if into.dtype == values.dtype:
                into[rows] = values
                wider[form] = into
        kept = set(shared) & set(wider) if shared else set(wider)
        if not kept:
            return None
        shared = {form: wider[form] for form in wider if form in kept}
    return _best(shared) if shared else None


def _best(readings: dict[str, Array]) -> DateColumn:
    """The reading with the fewest bad cells; of equal ones that in which time runs forward, then by equal steps."""
    def bad(values: Array) -> int:
        return int(np.isnat(values).sum())

    fewest = min(map(bad, readings.values()))
    left = {form: values for form, values in readings.items() if bad(values) == fewest}
    for score in (_backward, unevenness, lambda values: int((_steps(values) <= 0).sum())):
        if len(left) > 1:
            scores = {form: score(values) for form, values in left.items()}
            left = {form: left[form] for form, own in scores.items() if own == min(scores.values())}
    form, *others = left
    also = next((other for other in others if (left[other] != left[form]).any()), "")
    values, note = _century(left[form], form)
    other = _century(left[also], also)[0] if also else None
    return DateColumn(values, form, tuple(np.flatnonzero(np.isnat(values)).tolist()), also, note, other)


def _steps(values: Array) -> Ints:
    return np.diff(values[~np.isnat(values)]).astype(np.int64)


def _backward(values: Array) -> int:
    """How many steps run against most of the others."""
    steps = _steps(values)
    return int(min((steps <= 0).sum(), (steps >= 0).sum()))


def unevenness(values: Array) -> int:
    """Whether steps differ, months being equally long."""
    from .calendar import months_of  # which counts months

    present = values[~np.isnat(values)]
    months = months_of(present) if values.dtype.kind == "M" and len(present) else None
    steps = _steps(values) if months is None else np.diff(months.numbers)
    return int(len(np.unique(steps)) > 1)


def _century(values: Array, form: str) -> tuple[Array, str]:
    """Dates with two-digit years in the century in which they are past and time runs forward."""
    if not form.endswith(_YY) or values.dtype.kind != "M":
        return values, ""
    months = values.astype("datetime64[M]")
    earlier = (months - 1200).astype(values.dtype) + (values - months.astype(values.dtype))
    mixed = np.where(values > np.datetime64("now"), earlier, values)
    present = values[~np.isnat(values)]
    made = mixed if len(present) and (present > np.datetime64("now")).any() else values
    if _backward(earlier) < _backward(made):
        made = earlier
    if not len(present):
        return values, ""
    years = made[~np.isnat(made)].astype("datetime64[Y]")
    return made, f"years of two digits are taken as {years.min()} to {years.max()}"


def _readings(shape: tuple[str, ...], fields: Sequence[Sequence[str]]) -> Iterator[tuple[str, Array]]:
    """The dates that cells of one pattern may mean, by the names of their forms."""
    tokens: list[tuple[str, Any]] = []  # ("0", texts), ("a", words), (mark, None)
    columns = iter(fields)
    for kind in shape:
        cells = next(columns) if kind in "0a" else None
        if kind != " ":
            tokens.append((kind, cells))
    fixed: dict[str, tuple[int, Ints]] = {}  # the place and the values of a part that words tell
    free: list[tuple[int, Sequence[str]]] = []
    tokens, clock, offset = _without_clock(tokens)
    for place, (kind, cells) in enumerate(tokens):
        if kind == "a":
            words = {cell.lower() for cell in cells}
            if words <= _LABELS.keys() and len(words) == 1:
                label = _LABELS[words.pop()]
                beside = place - 1 if label in ("year", "month", "day") else place + 1
                if label in ("quarter", "week") and not _is_number(tokens, beside):
                    beside = place - 1
                if not _is_number(tokens, beside):
                    return
                free = [(at, own) for at, own in free if at != beside]
                fixed[label] = beside, _ints(tokens[beside][1])
                tokens[beside] = ("used", None)
            elif words <= _MONTH_OF.keys():
                fixed["month"] = place, np.array([_MONTH_OF[cell.lower()] for cell in cells], np.int64)
            elif not (words <= _SILENT or {word[:3] for word in words} <= _WEEKDAYS):
                return
        elif kind == "0":
            free.append((place, cells))
    marks = "".join(sorted({kind for kind, _ in tokens if kind not in ("0", "a", "used")}))
    for form, parts in _meanings(fixed, free, marks):
        dates = _assembled(parts | clock)
        if dates is not None and not np.isnat(dates).all():
            yield form, dates if offset is None else dates - offset
    if not fixed and not free and clock:
        day = np.timedelta64(1, "D").astype("timedelta64[us]")
        when = _assembled({"Y": np.full(len(fields[0]), 1970), "m": np.ones(len(fields[0]), np.int64)} | clock)
        if when is not None:
            of_day = when.astype("timedelta64[us]")
            over = np.concatenate([[0], np.cumsum(np.diff(of_day) < -day // 2)])
            yield "hour:minute", of_day + over * day


def _is_number(tokens: Sequence[tuple[str, Any]], place: int) -> bool:
    return 0 <= place < len(tokens) and tokens[place][0] == "0"


def _ints(cells: Sequence[str]) -> Ints:
    return np.array([int(cell[:18]) for cell in cells], np.int64)


def _without_clock(
    tokens: list[tuple[str, Any]]
) -> tuple[list[tuple[str, Any]], dict[str, Ints], Array | None]:
    """Tokens before a time of day, the hours, minutes and seconds of that, and its offset from UTC."""
    kinds = [kind for kind, _ in tokens]
    at = next((i for i in range(len(kinds) - 2) if kinds[i : i + 3] == ["0", ":", "0"]), None)
    if at is None:
        compact = [i for i, (kind, cells) in enumerate(tokens) if kind == "a" and {c.lower() for c in cells} == {"t"}]
        if compact and _is_number(tokens, compact[0] + 1) and all(kind == "a" for kind in kinds[compact[0] + 2 :]):
            cells = tokens[compact[0] + 1][1]
            if all(len(cell) in (4, 6) for cell in cells):
                texts = [cell.ljust(6, "0") for cell in cells]
                clock = {"H": _ints([t[:2] for t in texts]), "M": _ints([t[2:4] for t in texts]),
                         "S": _ints([t[4:] for t in texts])}  # fmt: skip
                return tokens[: compact[0]], clock, None
        return tokens, {}, None
    clock = {"H": _ints(tokens[at][1]), "M": _ints(tokens[at + 2][1])}
    end = at + 3
    if kinds[end : end + 2] == [":", "0"]:
        clock["S"] = _ints(tokens[end + 1][1])
        end += 2
        if kinds[end : end + 1] in (["."], [","]) and kinds[end + 1 : end + 2] == ["0"]:
            clock["f"] = _ints([cell[:6].ljust(6, "0") for cell in tokens[end + 1][1]])
            end += 2
    rest = tokens[end:]
    offset = None
    if rest and rest[0][0] in "+-" and len(rest) > 1 and rest[1][0] == "0":
        sign = -1 if rest[0][0] == "-" else 1
        hours = _ints([cell[:2] for cell in rest[1][1]])
        minutes = _ints(rest[3][1]) if len(rest) > 3 and rest[3][0] == "0" else _ints(
            [cell[2:4] or "0" for cell in rest[1][1]])  # fmt: skip
        offset = (sign * (hours * 60 + minutes)).astype("timedelta64[m]").astype("timedelta64[us]")
        rest = []
    if rest and rest[0][0] == "a" and {cell.lower().strip(".") for cell in rest[0][1]} <= _AM_PM.keys():
        afternoon = np.array([_AM_PM[cell.lower().strip(".")] for cell in rest[0][1]], np.int64)
        clock["H"] = clock["H"] % 12 + np.where((clock["H"] < 1) | (clock["H"] > 12), 99, afternoon)
        rest = [token for token in rest[1:] if token[0] != "a" and token[0] != "."]
    return tokens[:at] + rest, clock, offset


def _meanings(
    fixed: dict[str, tuple[int, Ints]], free: Sequence[tuple[int, Sequence[str]]], marks: str
) -> Iterator[tuple[str, dict[str, Ints]]]:
    """Forms and parts that the numbers of a date may have beside those that words tell."""
    letter_of = {"year": "Y", "month": "m", "day": "d", "quarter": "q", "week": "w", "hour": "H", "minute": "M",
                 "second": "S"}  # fmt: skip
    known = {letter_of[name]: values for name, (_, values) in fixed.items()}
    dated = [letter for letter in known if letter not in "HMS"]
    numbers = [_ints(cells) for _, cells in free]
    sizes = [{len(cell) for cell in cells} for _, cells in free]
    mark = marks[:1] or " "

    def form(named: Sequence[str]) -> str:
        """Names of the parts in the order of their places."""
        places = [place for name, (place, _) in fixed.items() if letter_of[name] not in "HMS"]
        told = [name for name in fixed if letter_of[name] not in "HMS"]
        pairs = sorted([*zip(places, told, strict=True), *zip([place for place, _ in free], named, strict=True)])
        return mark.join(name for _, name in pairs)

    if not free:
        if "Y" in known and len(dated) > 1:
            yield form([]), known
        return
    if len(free) == 1 and not known:
        if len(sizes[0]) == 1:
            yield from _compact(numbers[0], min(sizes[0]))
        return
    if len(free) == 2 and not known and sizes[0] == {4}:
        year, second = numbers
        if sizes[1] <= {2, 4} and (second == (year + 1) % (100 if sizes[1] == {2} else 10_000)).all():
            yield "season (year/next year)", {"Y": year, "m": np.ones_like(year)}
            return
        if sizes[1] == {3}:
            yield form(["year", "day of the year"]), {"Y": year, "j": second}
            return
    other = next((letter for letter in "qw" if letter in known), "")
    if other:
        wanted = [["Y"], ["Y", "weekday"]] if len(free) == 1 + (len(free) == 2 and other == "w") else []
    else:
        wanted = [[letter for letter in letters if letter not in known] for letters in ("Ymd", "Ym", "Y")
                  if set(dated) <= set(letters)]  # fmt: skip
    name_of = {letter: name for name, letter in letter_of.items()}
    for letters in wanted:
        if len(letters) != len(free):
            continue
        for order in permutations(letters):
            if order[0] == "Y" and order[1:] == ("d", "m"):
                continue  # nobody writes year, day, month
            if len(order) == 3 and order[1] == "Y":
                continue  # nor puts the year in the middle
            parts = {letter: values for letter, values in zip(order, numbers, strict=True) if letter != "weekday"}
            two = "Y" in parts and max(sizes[order.index("Y")]) <= 2
            if two:
                if len(order) < 3 and "m" not in known:
                    continue  # 05/90 alone may be anything
                parts["Y"] = parts["Y"] + np.where(parts["Y"] < 69, 2000, 1900)
            elif "Y" in parts and min(sizes[order.index("Y")]) < 4:
                continue
            if any(max(size) > 2 for letter, size in zip(order, sizes, strict=True) if letter in ("m", "d")):
                continue
            yield form([name_of.get(letter, letter) for letter in order]) + (_YY if two else ""), known | parts


def _compact(numbers: Ints, size: int) -> Iterator[tuple[str, dict[str, Ints]]]:
    """Meanings of numbers without marks between their parts."""
    for parts in ("Y4", "Y4m2", "Y4m2d2", "Y4j3", "Y4m2d2H2", "Y4m2d2H2M2", "Y4m2d2H2M2S2", "d2m2Y4", "m2d2Y4"):
        if sum(map(int, parts[1::2])) == size and size != 4:
            cut = _cut(numbers, parts)
            # 20081003 is no day of the year 1003.
            if not parts.endswith("Y4") or (cut["Y"] >= _FIRST_YEAR).all():
                yield _digits(parts), cut


def _assembled(parts: dict[str, Ints], _any_year: bool = False) -> Array | None:
    """Datetimes of parts; NaT where a part is beyond its range. None without a year and something within it."""
    year = parts.get("Y")
    if year is None or not {"m", "q", "w", "j"} & parts.keys():
        return None
    least, most = (-100_000, 100_000) if _any_year else _YEARS
    wrong = (year < least) | (year > most)
    day = parts.get("d", np.ones_like(year))
    first = (year - 1970).astype("datetime64[Y]")
    if "m" in parts or "q" in parts:
        month = parts["m"] if "m" in parts else 3 * parts["q"] - 2
        wrong |= (month < 1) | (month > 12)
        month_of = first.astype("datetime64[M]") + (np.clip(month, 1, 12) - 1)
        start = month_of.astype("datetime64[D]")
        wrong |= (day < 1) | (day > ((month_of + 1).astype("datetime64[D]") - start).astype(np.int64))
        days = start + (day - 1)
    else:
        within, least_day = (parts["j"], 1) if "j" in parts else (parts["w"] * 7 - 6, -6)
        wrong |= (within < max(least_day, -6)) | (within > 366 if "j" in parts else within > 53 * 7)
        wrong |= within < 1 if "j" in parts else parts["w"] < (0 if _any_year else 1)
        start = first.astype("datetime64[D]")
        if "w" in parts:  # the Monday of ISO 8601's first week, which holds 4 January
            fourth = start + 3
            start = fourth - ((fourth.astype(np.int64) + 3) % 7)
        days = start + (within - 1)
    moments = days.astype("datetime64[us]")
    for letter, unit, highest in (("H", "h", 24), ("M", "m", 59), ("S", "s", 60)):
        if letter in parts:
            wrong |= (parts[letter] < 0) | (parts[letter] > highest)
            moments = moments + np.clip(parts[letter], 0, highest).astype(f"timedelta64[{unit}]")
    if "f" in parts:
        moments = moments + parts["f"].astype("timedelta64[us]")
    return np.where(wrong, np.datetime64("NaT"), moments)
