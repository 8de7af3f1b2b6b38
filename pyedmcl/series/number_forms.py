"""Numbers in texts: decimal marks, signs, separators of thousands and gaps, decided for whole columns."""

from __future__ import annotations

import decimal
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from .arrays import Array

# Columns of a container as numbers: which values are missing, and which cannot be numbers at all.


def is_missing(value: object) -> bool:
    """True for None and for the missing values of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


class NotNumericError(Exception):
    """A column cannot be used as numbers; the text says why."""


def numeric_column(values: Array) -> Array:
    """``values`` (L,) as float32 where they are float16 or float32, else as float64; missing values become NaN."""
    kind = values.dtype.kind
    if kind == "c":
        raise NotNumericError("holds complex numbers: pass .real, .imag or abs() of it")
    if kind in "fiub":
        return values.astype(float_type(values.dtype), copy=False)
    if kind in "Mm":
        held = "dates" if kind == "M" else "durations"
        raise NotNumericError(f"holds {held}")
    if kind != "O":
        first = repr(values[0].item()) if len(values) else str(values.dtype)
        raise NotNumericError(f"is not numeric: row 0 holds {first}")
    return np.fromiter((_number(value, row) for row, value in enumerate(values)), np.float64, len(values))


def _number(value: object, row: int) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            raise NotNumericError(f"has a number too large for float64 in row {row}") from None
        except ValueError:  # a NaN of Decimal that signals
            return math.nan
    raise NotNumericError(f"is not numeric: row {row} holds {value!r}")


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype a Series keeps numbers of ``dtype`` in: float32 for half and single precision, else float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)


# A cell such as ``1,404`` means 1404 or 1.404. Cells that can mean one thing only (``0,5``; ``1.234,5``; ``1,234,567``)
# decide for their column, and for others of the table that have none of these; what nothing decides is refused.


#: Words for a missing value that every reader knows.
MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "nat"})
_SPREADSHEET_ERRORS = frozenset({
    "#n/a", "#na", "#div/0!", "#num!", "#value!", "#ref!", "#name?", "#null!", "#nv", "#wert!", "#bezug!", "#zahl!",
    "#null", "#spill!", "#calc!", "#getting_data", "#error!",
})  # fmt: skip
# No data, not determined, not given; below the limit of detection or of quantification.
_FIELD_WORDS = frozenset({
    "nd", "n.d.", "n.d", "n.a.", "n.a", "no data", "nodata", "no_data", "missing", "k.a.", "bdl", "b.d.l.", "bld",
    "bql", "blq", "bloq", "lod", "loq", "<lod", "<loq", "<dl", "<mdl", "<bdl", "<rl",
})  # fmt: skip
_BOOLEANS = {"true": 1.0, "false": 0.0}
_DASHES, _SPACES = "\u2212\u2013\ufe63\uff0d", "\u00a0\u202f\u2009"  # minus signs that are no hyphens; fixed spaces
_MINUS = str.maketrans({**dict.fromkeys(_DASHES, "-"), **dict.fromkeys(_SPACES, " "), "\u2019": "'", "\uff0b": "+"})
_NUMBER = re.compile(r"([+-]?)\s*(\d[\d.,' ]*|[.,]\d+)((?:[eEdD][+-]?\d+)?)$")
_LIKE_NUMBER = re.compile(r"[+-]?\s*(\d{1,3}([ ']\d{3})+|\d+|(?=[.,]\d))([.,]\d+)*[.,]?([eEdD][+-]?\d+)?$")
_LIMIT = re.compile(r"[<>≤≥]=?\s*[\d.,]+$")
_NINES = np.array([9999.0, 99999.0, 999999.0, 9999999.0])
_SOME = 4096  # rows that mostly show what a column is
_ANY_TEXT = re.compile(r"\w")


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of a table: numbers where cells are numbers of Python, and the texts of all others."""

    # ndarray (L,) of float64. NaN where a cell is missing or another text.
    values: NDArray[np.float64]
    # Rows of other texts, in increasing order.
    rows: Sequence[int] = ()
    # These texts.
    texts: Sequence[str] = ()
    # Gives the text of each cell, where numbers were made of texts: 1.404 may have been written as a thousand.
    all_texts: Callable[[], Sequence[str]] | None = None
    # The decimal mark with which they were made.
    mark: str = "."

    def listed(self) -> list[str | None]:
        """The text of each cell, None for a missing one."""
        out: list[str | None] = [None if value != value else f"{value:.17g}" for value in self.values.tolist()]
        for row, text in zip(self.rows, self.texts, strict=True):
            out[row] = text
        return out

    @property
    def n_present(self) -> int:
        """Cells that are not missing."""
        return int(np.isfinite(self.values).sum()) + len(self.texts)


def cells_of(values: Array) -> Cells | None:
    """The cells of a column of texts, with numbers and missing values among them; None where other objects are."""
    numbers = np.full(len(values), np.nan)
    rows: list[int] = []
    texts: list[str] = []
    for row, value in enumerate(values.tolist()):
        if isinstance(value, str):
            number = plain_number(value)
            if number is not None:
                numbers[row] = number
            elif not is_missing_cell(value):
                rows.append(row)
                texts.append(value.strip())
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[row] = value
        elif not is_missing(value):
            return None
    return Cells(numbers, rows, texts, lambda: ["" if is_missing(value) else str(value) for value in values.tolist()])


def plain_number(text: str) -> float | None:
    """A number as Python writes it, without underscores; None for other texts."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_missing_cell(cell: str) -> bool:
    """True for an empty cell and the usual words for a missing value."""
    return cell.strip().lower() in MISSING


def is_spreadsheet_error(cell: str) -> bool:
    """True for what a spreadsheet shows where a formula has no value, such as #DIV/0!."""
    return cell.strip().lower() in _SPREADSHEET_ERRORS


def is_gap_word(cell: str) -> bool:
    """True for a cell that is a gap among numbers, and told: a spreadsheet's error, or a word such as ND and BDL."""
    return is_spreadsheet_error(cell) or cell.strip().lower() in _FIELD_WORDS


def like_number(text: str) -> bool:
    """Whether a text is a number under some decimal mark or other, or stands for none."""
    return plain_number(text) is not None or bool(_LIKE_NUMBER.match(text.strip().translate(_MINUS)))


@dataclass(frozen=True)
class NumberOptions:
    """What a user has said of the numbers of a table."""

    # decimal, thousands: Marks; empty where they are to be found.
    decimal: str = ""
    thousands: str = ""
    # Texts and numbers that stand for a gap; "<" and ">" stand for all limits such as <0.05.
    missing: tuple[str, ...] = ()
    # Where nothing else decides, a point is the decimal mark "always" (between commas), or where each number has one
    # and the same digits behind it ("fixed", between blanks); empty where only the user can tell.
    point: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in ("", ".", ","):
            raise InputError(f"decimal={shown(self.decimal)}: '.' or ',' is needed")
        if self.thousands not in ("", ".", ",", " ", "'"):
            raise InputError(f"thousands={shown(self.thousands)}: one of ',', '.', ' ' and \"'\" is needed")
        if self.decimal and self.decimal == self.thousands:
            raise InputError(f"decimal={shown(self.decimal)}: thousands= cannot be the same mark")

    def is_gap(self, text: str) -> bool:
        """Whether the user has said that this text stands for a gap."""
        if not self.missing:
            return False
        if text in self.missing or (text[:1] in self.missing and bool(_LIMIT.match(text))):
            return True
        number = plain_number(text)
        return number is not None and any(plain_number(code) == number for code in self.missing)

    def without_gaps(self, values: NDArray[Any]) -> NDArray[Any]:
        """Numbers with NaN in place of the numbers that stand for a gap."""
        codes = [number for code in self.missing if (number := plain_number(code)) is not None]
        gaps = np.isin(values, np.array(codes, values.dtype)) if codes and values.dtype.kind == "f" else None
        return np.where(gaps, np.array(np.nan, values.dtype), values) if gaps is not None and gaps.any() else values


@dataclass(eq=False)
class _Marks:
    """What the cells of a column say of its marks: an example (row, text) of each kind of cell."""

    # Mark to a cell in which it can only be the decimal mark.
    decimal: dict[str, tuple[int, str]] = field(default_factory=dict)
    # Mark to a cell in which it can only part thousands.
    thousands: dict[str, tuple[int, str]] = field(default_factory=dict)
    # Mark to a cell in which it may be both.
    either: dict[str, tuple[int, str]] = field(default_factory=dict)
    # A whole number without any mark.
    whole: tuple[int, str] | None = None
    # Whether there is a whole number of four digits and more without any mark.
    long: bool = False

    def look_at(self, row: int, text: str) -> None:
        """Take a cell into account."""
        match = _NUMBER.match(text.strip().translate(_MINUS))
        if match is None:
            return
        digits, exponent = match[2].replace(" ", "").replace("'", ""), match[3]
        marks = [mark for mark in digits if mark in ",."]
        if not marks:
            if self.whole is None and not exponent:
                self.whole = (row, text)
            code = set(digits) == {"9"}  # -9999 stands for a gap, and is written so whatever the marks
            self.long = self.long or (len(digits) > 3 and digits == match[2].strip() and not exponent and not code)
            return
        last = marks[-1]
        if len(set(marks)) == 2:
            if marks.count(last) == 1:
                self.decimal.setdefault(last, (row, text))
                self.thousands.setdefault(marks[0], (row, text))
            return
        groups = digits.split(last)
        if len(groups) > 2:
            if _grouped(groups):
                self.thousands.setdefault(last, (row, text))
        elif _grouped(groups) and not exponent:
            self.either.setdefault(last, (row, text))
        else:
            self.decimal.setdefault(last, (row, text))


def _grouped(groups: Sequence[str]) -> bool:
    """Whether groups of digits are thousands: 1-3 digits without a zero before them, then threes (or Indian twos)."""
    first, *others = groups
    return (
        1 <= len(first) <= 3 and first[0] != "0" and len(others[-1]) == 3
        and all(len(group) in (2, 3) for group in others)
    )  # fmt: skip


@dataclass(eq=False)
class NumberColumn:
    """A column read as numbers."""

    # ndarray (L,) of float64
    values: NDArray[np.float64]
    # list of (int, str). Row and text of cells that are no numbers and no known gaps.
    left: list[tuple[int, str]]
    # Text of a cell that was taken for a gap, though it is not an empty cell or a usual word, to its first row.
    gaps: dict[str, int]


def read_numbers(
    columns: Mapping[str, Cells], options: NumberOptions, where: Callable[[int], str], what: str
) -> tuple[dict[str, NumberColumn], dict[str, tuple[str, str]]]:
    """Columns as numbers, and their decimal mark and their mark of thousands, each empty where it does not occur.

    Parameters
    ----------
    columns : mapping of str to Cells
        Columns of one table, which share their marks where they say nothing else.
    where : callable
        Name of a row in a message, such as "line 12".
    what : str
        How messages call the table.
    """
    evidence = {name: _evidence(cells) for name, cells in columns.items()}
    marks: dict[str, tuple[str, str]] = {}
    of_table = {mark for own in evidence.values() for mark in own.decimal}
    for name, own in evidence.items():
        marks[name] = _marks_of(name, own, options, of_table, where, what)
    out = {}
    for name, cells in columns.items():
        other_mark = marks[name][0] != cells.mark and _plain_fractions(cells, strict=False)
        # 1.404 was read as a number of Python, and means another one here.
        out[name] = _parsed(_as_texts(cells) if other_mark and cells.all_texts else cells, options, *marks[name])
    occur = {name: {*own.decimal, *own.thousands, *own.either} for name, own in evidence.items()}
    parted = {name: {*own.thousands, *own.either} for name, own in evidence.items()}
    return out, {
        name: (point if point in occur[name] else "", comma if comma in parted[name] else "")
        for name, (point, comma) in marks.items()
    }


def plainly_numbers(columns: Sequence[Any], options: NumberOptions) -> bool:
    """Whether all cells of columns are numbers or gaps, and their decimal mark leaves no doubt."""
    if options.decimal or options.thousands or not all(isinstance(c, Cells) and not len(c.texts) for c in columns):
        return False
    return any(map(_plain_fractions, columns)) or not any(_plain_fractions(c, strict=False) for c in columns)


def _as_texts(cells: Cells) -> Cells:
    assert cells.all_texts is not None
    texts = cells.all_texts()
    odd = [row for row, text in enumerate(texts) if not is_missing_cell(text)]
    return Cells(np.full(len(texts), np.nan), odd, [texts[row].strip() for row in odd], cells.all_texts)


def _plain_fractions(cells: Cells, *, strict: bool = True) -> bool:
    """Whether numbers of Python have fractions; ``strict``: of which some cannot be thousands."""
    for values in (cells.values[:_SOME], cells.values[_SOME:]):
        fractions = values[np.isfinite(values) & (values != np.rint(values))]
        if len(fractions) and not strict:
            return True
        size = np.abs(fractions)
        thousandths = size * 1000
        if ((size < 1) | (size >= 1000) | (np.abs(thousandths - np.rint(thousandths)) > 1e-6)).any():
            return True
    return False


def _evidence(cells: Cells) -> _Marks:
    found = _Marks()
    for row, text in zip(cells.rows, cells.texts, strict=True):
        found.look_at(row, text)
    if _plain_fractions(cells, strict=False):
        if _plain_fractions(cells) or cells.all_texts is None:
            found.decimal.setdefault(cells.mark, _first_fraction(cells))
        else:
            for row, text in enumerate(cells.all_texts()):
                found.look_at(row, text)
    elif found.either or found.thousands:
        present = cells.values[np.isfinite(cells.values)]
        codes = np.isin(np.abs(present), _NINES)
        found.long = found.long or bool((np.abs(present[~codes]) >= 1000).any())
        if len(present):
            row = int(np.flatnonzero(np.isfinite(cells.values))[0])
            found.whole = found.whole or (row, f"{cells.values[row]:g}")
    return found


def _first_fraction(cells: Cells) -> tuple[int, str]:
    row = int(np.flatnonzero(np.isfinite(cells.values) & (cells.values != np.rint(cells.values)))[0])
    return row, f"{cells.values[row]:g}"


def _marks_of(
    name: str, own: _Marks, options: NumberOptions, of_table: set[str], where: Callable[[int], str], what: str
) -> tuple[str, str]:
    """The decimal mark and the mark of thousands of a column."""
    if options.decimal or options.thousands:
        decimal = options.decimal or (
            "," if options.thousands == "." else "." if options.thousands == "," or "," not in own.decimal else ","
        )
        return decimal, options.thousands or ("," if decimal == "." else ".")

    def cell(example: tuple[int, str]) -> str:
        return f"{example[1]!r} ({where(example[0])})"

    if len(own.decimal) == 2 or own.decimal.keys() & own.thousands.keys() or len(own.thousands) == 2:
        examples = dict.fromkeys([*own.decimal.values(), *own.thousands.values()])
        raise InputError(
            f"{what}: column {name!r} holds {' and '.join(map(cell, list(examples)[:2]))}: its decimal mark differs "
            f"from row to row. Write all cells alike, or leave the column out with columns={'-' + name!r}"
            + _above_in_words(examples, where)
        )
    if own.decimal:
        decimal = next(iter(own.decimal))
        return decimal, "," if decimal == "." else "."
    if own.thousands:
        mark = next(iter(own.thousands))
        return ("." if mark == "," else ","), mark
    if len(of_table) == 1:
        decimal = next(iter(of_table))
        return decimal, "," if decimal == "." else "."
    for mark, example in own.either.items():
        fixed = options.point == "always" or (options.point == "fixed" and own.whole is None)
        if own.long or (mark == "." and fixed):
            return mark, ""  # thousands would be parted elsewhere, too
        beside = f" and {cell(own.whole)}" if own.whole is not None else ""
        raise InputError(
            f"{what}: column {name!r} holds {cell(example)}{beside}: {mark!r} may part thousands or be the decimal "
            f"mark. Say thousands={mark!r} or decimal={mark!r}"
        )
    return ".", ","


def _above_in_words(examples: Iterable[tuple[int, str]], where: Callable[[int], str]) -> str:
    """What is to be said of a cell in a first line of a text, which may stand above the table."""
    row = min(row for row, _ in examples)
    kind, _, number = where(row).partition(" ")
    above = kind == "line" and row < 3
    return f"; if line {number} stands above the table, say skip_rows='{number}:{number}'" if above else ""


def _parsed(cells: Cells, options: NumberOptions, decimal: str, thousands: str) -> NumberColumn:
    values = options.without_gaps(cells.values.copy() if len(cells.texts) else cells.values)
    left: list[tuple[int, str]] = []
    gaps: dict[str, int] = {}
    booleans = [text.lower() in _BOOLEANS for text in cells.texts]
    logical = bool(booleans) and all(booleans) and len(booleans) == cells.n_present
    for row, text in zip(cells.rows, cells.texts, strict=True):
        if logical:
            values[row] = _BOOLEANS[text.lower()]
            continue
        if options.is_gap(text):
            continue
        if is_gap_word(text):
            gaps.setdefault(text, row)
            continue
        number = _number_forms_number(text, decimal, thousands)
        if number is not None:
            values[row] = number
        elif not _ANY_TEXT.search(text) and len(text) <= 3:
            gaps.setdefault(text, row)  # a mark alone, such as a point or a dash
        else:
            left.append((row, text))
    if gaps and not np.isfinite(values).any():  # no column of numbers
        left += [(row, text) for row, text in zip(cells.rows, cells.texts, strict=True) if text in gaps]
        gaps = {}
    return NumberColumn(values, sorted(left), gaps)


def _number_forms_number(text: str, decimal: str, thousands: str) -> float | None:
    """The number that a text means under some marks; None for none."""
    match = _NUMBER.match(text.strip().translate(_MINUS))
    if match is None:
        return None
    sign, digits, exponent = match[1], match[2].strip(), match[3].replace("d", "e").replace("D", "e")
    whole, mark, fraction = digits.partition(decimal)
    if mark and (decimal in fraction or not (fraction.isdigit() or fraction == "")):
        return None
    for separator in {" ", "'", thousands} - {""}:
        if separator in whole:
            if separator == decimal or not _grouped(whole.split(separator)):
                return None
            whole = whole.replace(separator, "")
    if whole and not whole.isdigit():
        return None
    return float(f"{sign}{whole or '0'}.{fraction or '0'}{exponent}")


def limits_and_words(column: NumberColumn) -> tuple[list[str], list[str]]:
    """Different texts of a column that are limits such as <0.05, and all others."""
    texts = list(dict.fromkeys(text for _, text in column.left))
    return [text for text in texts if _LIMIT.match(text)], [text for text in texts if not _LIMIT.match(text)]
