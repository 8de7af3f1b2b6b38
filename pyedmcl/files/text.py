"""CSV, TSV and white-space separated tables: the rows of a text and their cells.

Where pyarrow is installed, it cuts and reads tables in which each line is a row and each cell is as the first rows let
expect. All others are cut by the module csv of the standard library and read by float(): only they tell which line is
no row. Both round correctly, so that values and the digest of an input do not depend on which packages are installed.
Which cells are numbers, times or gaps is decided for whole columns, by :mod:`pyedmcl.series.number_forms` and
:mod:`pyedmcl.series.times`.
"""

from __future__ import annotations

import array
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import methodcaller
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..arguments import many
from ..errors import InputError
from ..series.number_forms import Cells, is_missing_cell, like_number, plain_number
from ..series.reading import ReadingOptions
from ..series.tables import Table
from .text_layout import Layout, above_in_words, find_layout, fits, is_text, open_binary, rows_of_text, split

_SENTENCE = re.compile(r"\w.*[\s:].*\w|\w:$")
_WITHOUT_END = methodcaller("rstrip", "\r\n")
_BEGINS_NUMBER = frozenset("0123456789+-.")
_LEAST_BYTES = 1 << 20  # of a file for which another reader pays
_TOP = 64  # rows that show which columns hold numbers
_GAPS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>", "NaT"]
#: Numbers (L, width), rows and texts of cells that are none of each column, and the line of each row.
Parsed: TypeAlias = tuple[np.ndarray, dict[int, tuple[Sequence[int], list[str]]], Sequence[int]]


def read_text(path: Path, options: ReadingOptions, what: str) -> Table:
    """The table in a file of text, with cells that are no plain numbers as text."""
    layout = find_layout(path, options, what)
    rows = _Rows(path, layout, options, what)
    values, texts, numbers = rows.regular() or rows.parse()
    names = layout.names
    labels = [f"x{i}" for i in range(layout.width)] if names is None else [
        name or f"x{i}" for i, name in enumerate(names)
    ]  # fmt: skip
    mark = "," if layout.comma else "."
    point = {",": "always", None: "fixed"}.get(layout.separator, "") if layout.width > 1 else ""

    def column(i: int) -> Cells:
        odd_rows, odd_texts = texts.get(i, ((), ()))
        return Cells(values[:, i], odd_rows, odd_texts, lambda: rows.texts_of(i), mark)

    separator = {None: "blanks", "\t": "tab"}.get(layout.separator, repr(layout.separator))
    text = [
        layout.encoding.removesuffix("-sig"), f"separated by {separator}" if layout.width > 1 else "",
        "decimal comma" if layout.comma else "",
    ]  # fmt: skip
    return Table(
        tuple(labels), len(values), column, numbers=values, headless=names is None,
        nameless=frozenset(i for i, name in enumerate(names or ()) if not name),
        where=lambda row: f"line {numbers[row]}", point=point,
        units={labels[i]: unit for i, unit in layout.units.items() if unit} or None, source=f"{what}",
        layout=", ".join(filter(None, text)) + ("" if names is not None else ", no names"),
        passed_over=tuple(layout.passed_over), inferred=tuple(layout.inferred), of_text=True,
    )  # fmt: skip


class _Rows:
    """The rows of a text, read as often as there is need."""

    def __init__(self, path: Path, layout: Layout, options: ReadingOptions, what: str) -> None:
        self._path, self._layout, self._options, self._what = path, layout, options, what
        header = layout.names
        self._header = None if header is None else [name.strip() for name in header]
        self._told = False

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Lines from the first row on with their numbers, without comments and lines that are to be left out."""
        layout, options = self._layout, self._options
        try:
            with open_binary(self._path) as raw, io.TextIOWrapper(raw, encoding=layout.encoding) as handle:
                lines = enumerate(map(_WITHOUT_END, handle), 1)
                below: Iterable[tuple[int, str]] = islice(lines, layout.first - 1, None)
                if options.skip_rows:
                    below = ((number, line) for number, line in below if not options.leaves_out(number))
                yield from rows_of_text(below, options)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise InputError(f"{self._what}: cannot be read to its end ({error})") from error

    def __iter__(self) -> Iterator[tuple[int, list[str], str]]:
        """Rows of the table: number of the line, as many cells as there are columns, and the line."""
        layout, width, separator = self._layout, self._layout.width, self._layout.separator
        blank: list[int] = []  # lines since the last row
        below: list[tuple[int, str]] = []  # lines of text that end the table, if no row follows
        skipped: dict[str, list[int]] = {"blank": [], "header": [], "comment": []}
        previous, rows = layout.first - 1, 0
        for number, line in self._lines():
            if not line or (line[0] in " \f" and not line.strip(" \f")):
                blank.append(number)
                continue
            quoted = '"' in line
            cells = split(line, separator) if quoted or separator is None else line.split(separator)
            if len(cells) != width or cells[0][:1] not in _BEGINS_NUMBER:
                kind = self._kind(number, cells)
                if kind == "below":
                    below.append((number, line))
                    continue
                if kind == "header":
                    skipped["header"].append(number)
                    blank.append(number)
                    continue
                del cells[width:]
            if below and width == 1:
                for n, text in below:
                    yield n, [text], text
                below = []
            elif below:
                n, text = below[0]
                raise InputError(
                    f"{self._what}: line {n} ({text.strip()[:40]!r}) is no row of the table, and rows follow. Leave it "
                    f"out with skip_rows='{n}:{n}', or say how comments begin with comment={above_in_words(layout, n)}"
                )
            if blank and rows:
                empty = [n for n in blank if n not in skipped["header"]]
                if width == 1 and len(empty) < 0.4 * rows + 2:
                    for n in empty:
                        yield n, [""], ""
                skipped["blank"] += empty
            if number != previous + 1 and number > previous + 1 + len(blank) and rows and not self._options.skip_rows:
                skipped["comment"] += [n for n in range(previous + 1, number) if n not in blank]
            if blank:
                blank = []
            previous = number + line.count("\n") if quoted else number
            rows += 1
            yield number, cells, line
        if not self._told:
            self._told = True
            self._tell(skipped, below, rows)

    def _kind(self, number: int, cells: list[str]) -> str:
        """What a line is: a "row", the "header" again, or text that may be "below" the table."""
        layout, width = self._layout, self._layout.width
        if not fits(cells, width):
            if len(cells) < width and all(map(is_text, filter(str.strip, cells))):
                return "below"
            one = like_number(",".join(cells)) if layout.separator == "," and width == 1 else False
            marks = f". If {','.join(cells)} is one number, say thousands=',' or decimal=','" if one else ""
            raise InputError(
                f"{self._what}: line {number} has {len(cells)} cells where {width} are expected{marks}. Mark missing "
                f"values by an empty cell or NaN, or leave the line out with skip_rows='{number}:{number}'"
                + above_in_words(layout, number)
            )
        first = cells[0].strip()
        if self._header is not None and first == self._header[0] and [c.strip() for c in cells[:width]] == self._header:
            if width == 1 and not layout.numeric and self._options.header is None:
                raise InputError(
                    f"{self._what}: line {number} is {first!r} as the first one, which may name the column or be data. "
                    "Say header=1 or header=False"
                )
            return "header"
        if not first or not is_text(first) or not layout.numeric:
            return "row"
        if width == 1:
            return "below" if _SENTENCE.search(first) else "row"
        others = [i for i, cell in enumerate(cells[1:width], 1) if cell.strip()]
        return "below" if all(i in layout.numeric and is_text(cells[i]) for i in others) else "row"

    def _tell(self, skipped: dict[str, list[int]], below: Sequence[tuple[int, str]], rows: int) -> None:
        """Record lines that are no rows, and say so of those between rows."""
        layout, what = self._layout, self._what
        if below:
            layout.passed_over.append(f"{_lines_named([n for n, _ in below])} (below the table)")
            layout.inferred.append(
                f"{what}: {_lines_named([n for n, _ in below])} below the table ({below[0][1].strip()[:40]!r}) "
                f"{'is' if len(below) == 1 else 'are'} left out"
            )
        blank = skipped["blank"]
        if blank and layout.width == 1 and len(blank) < 0.4 * rows:
            layout.inferred.append(f"{what}: {_lines_named(blank)}, which {_be(blank)} blank, {_be(blank)} gaps")
        elif blank and len(blank) < 0.4 * rows:
            layout.inferred.append(f"{what}: {_lines_named(blank)}, which {_be(blank)} blank, {_be(blank)} no rows")
        for kind, why in (("header", "repeats the header"), ("comment", "a comment")):
            numbers = skipped[kind]
            if numbers and not (kind == "comment" and self._options.comment):
                layout.inferred.append(
                    f"{what}: {_lines_named(numbers)} ({why}) {_be(numbers)} left out, and rows before and behind "
                    "follow each other"
                )

    def regular(self) -> Parsed | None:
        """As :meth:`parse`, by pyarrow; None where a line is no row, or cells differ from those of the first rows."""
        layout, options = self._layout, self._options
        marks = layout.separator in (",", ";", "\t", "|") and layout.encoding.startswith("utf-8")
        if not marks or options.skip_rows or options.comment or self._path.stat().st_size < _LEAST_BYTES:
            return None
        try:
            from pyarrow import ArrowException, csv, float64, string
        except ImportError:
            return None
        top = [cells for _, cells, _ in islice(self, _TOP)]
        numeric = [all(is_missing_cell(row[i]) or self._number(row[i]) is not None for row in top)
                   for i in range(layout.width)]  # fmt: skip
        if not any(numeric):
            return None
        names = list(map(str, range(layout.width)))
        types = [float64() if is_one else string() for is_one in numeric]
        try:
            with open_binary(self._path) as handle:
                table = csv.read_csv(
                    handle,
                    csv.ReadOptions(skip_rows=layout.first - 1, column_names=names, block_size=1 << 24),
                    csv.ParseOptions(delimiter=layout.separator, ignore_empty_lines=False),
                    csv.ConvertOptions(
                        column_types=dict(zip(names, types, strict=True)), null_values=_GAPS, strings_can_be_null=False,
                        quoted_strings_can_be_null=True, decimal_point="," if layout.comma else ".",
                    ),
                )  # fmt: skip
        except (ArrowException, OSError, EOFError):
            return None
        values = np.empty((table.num_rows, layout.width))
        texts: dict[int, tuple[Sequence[int], list[str]]] = {}
        for i, is_one in enumerate(numeric):
            if is_one:
                values[:, i] = table.column(i).to_numpy()
                continue
            cells = table.column(i).to_pylist()
            if any(cell.lstrip()[:1] == "#" for cell in cells):
                return None  # comments
            found = list(map(self._number, cells))
            values[:, i] = [np.nan if number is None else number for number in found]
            held = [row for row, number in enumerate(found) if number is None and not is_missing_cell(cells[row])]
            if held:
                texts[i] = held, [cells[row].strip() for row in held]
        first = [np.nan if (number := self._number(cell)) is None else number for cell in top[0]]
        empty = np.flatnonzero(np.isnan(values).all(axis=1)).tolist()  # blank lines may be no rows
        if set(empty).difference(*(held for held, _ in texts.values())):
            return None
        if not np.array_equal(values[0], first, equal_nan=True):
            return None
        self._told = True
        return values, texts, range(layout.first, layout.first + len(values))

    def _number(self, cell: str) -> float | None:
        """The number that a cell is by the decimal mark of the table."""
        if not self._layout.comma:
            return plain_number(cell)
        return None if "." in cell else plain_number(cell.replace(",", "."))

    def parse(self) -> Parsed:
        """Numbers (L, width), rows and texts of cells that are none of each column, and the line of each row."""
        flat, numbers = array.array("d"), array.array("q")
        texts: dict[int, tuple[array.array[int], list[str]]] = {}
        comma = self._layout.comma
        extend, note, width = flat.extend, numbers.append, self._layout.width
        for number, cells, line in self:
            note(number)
            try:
                if comma:
                    extend([float(cell.replace(",", ".")) if "." not in cell else _raise() for cell in cells])
                else:
                    extend(map(float, cells))
                if "_" in line:  # float() would read 1_5 as 15
                    raise ValueError
            except ValueError:
                row = len(numbers) - 1
                del flat[row * width :]
                for i, cell in enumerate(cells):
                    number_of = self._number(cell)
                    if number_of is None and not is_missing_cell(cell):
                        rows_of, texts_of = texts.setdefault(i, (array.array("q"), []))
                        rows_of.append(row)
                        texts_of.append(cell.strip())
                    flat.append(np.nan if number_of is None else number_of)
        if not len(numbers):
            raise InputError(f"{self._what}: there are no rows of data below the header")
        return np.frombuffer(flat, np.float64).reshape(-1, width), dict(texts), numbers

    def texts_of(self, column: int) -> list[str]:
        """One column, as text."""
        return [cells[column].strip() for _, cells, _ in self]


def _raise() -> float:
    raise ValueError


def _be(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"


def _lines_named(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(n) for n in numbers[:4]) + (f" and {len(numbers) - 4:,} more" if len(numbers) > 4 else "")
    return f"line {shown}" if len(numbers) == 1 else f"lines {shown} ({many(len(numbers), 'line')})"
