"""How a text table is written: encoding, separator, decimal mark, header."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from ..data.times import as_dates, as_time, is_missing_cell, is_time_name, looks_like_time
from ..errors import InputError

_SAMPLE_BYTES = 1 << 20
_SAMPLE_LINES = 200
_LEAST_LINES = 8  # a header, and rows that tell what its columns hold
_MOST_BYTES = 1 << 30
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d*(?:[eE][+-]?\d+)?")
_MOST_JOINED = 100  # lines of a row: a quotation mark that nothing closes is one line's fault
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_OPEN_QUOTE = re.compile(r'(?:^|[,;\t ])\s*"')
_STARTS_AS_NUMBER = re.compile(r"[+-]?[.,]?\d")


@dataclass(frozen=True)
class Dialect:
    """What :func:`detect` found.

    Attributes
    ----------
    encoding : str
        Of the text.
    separator : str or None
        Between cells; None for runs of white space.
    decimal_comma : bool
        True where 1,5 means 1.5.
    names : tuple of str or None
        One per column, stripped, from the header; None without one.
    header_line : int
        Number of the header's last line counted from 1, 0 without one. Rows of data come after it.
    width : int
        Cells per row.
    sample : tuple of tuple of str
        The first rows of data.
    """

    encoding: str
    separator: str | None
    decimal_comma: bool
    names: tuple[str, ...] | None
    header_line: int
    width: int
    sample: tuple[tuple[str, ...], ...]


def open_binary(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked if it ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def split(line: str, separator: str | None, decimal_comma: bool = False) -> list[str]:
    """Cells of a row."""
    if '"' in line:
        text = line if separator else line.strip().replace("\t", " ")
        lines = [f"{part}\n" for part in text.split("\n")]
        cells = next(csv.reader(lines, delimiter=separator or " ", skipinitialspace=True))
    else:
        cells = line.split(separator)
    if decimal_comma:
        cells = [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]
    return cells


def is_data_line(line: str) -> bool:
    """False for blank lines and comments."""
    text = line.strip()
    return bool(text) and not text.startswith("#")


def rows_of_text(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Rows and the number of their first line, without blank lines and comments; quoted cells may hold line breaks."""
    waiting: list[tuple[int, str]] = []
    for number, line in lines:
        if not waiting and '"' not in line:
            if is_data_line(line):
                yield number, line
            continue
        waiting.append((number, line))
        joined = "\n".join(text for _, text in waiting)
        if _OPEN_QUOTE.search(_QUOTED.sub("", joined)) is None:
            if is_data_line(joined):
                yield waiting[0][0], joined
        elif is_data_line(joined) and len(waiting) < _MOST_JOINED:
            continue
        else:
            yield from ((n, text) for n, text in waiting if is_data_line(text))
        waiting = []
    yield from ((n, text) for n, text in waiting if is_data_line(text))


def detect(path: Path, what: str) -> Dialect:
    """Find out how the text file ``path`` is written.

    Raises
    ------
    InputError
        If it is empty or is not text.
    """
    encoding, text = _sample_text(path, what)
    numbered = list(islice(rows_of_text(enumerate(_physical_lines(text), 1)), _SAMPLE_LINES))
    if not numbered:
        raise InputError(f"{what}: the file is empty; rows of numbers are needed")
    lines = [line for _, line in numbered]
    separator = _separator(lines)
    rows = [split(line, separator) for line in lines]
    comma = separator != "," and _has_decimal_comma(rows)
    rows = [split(line, separator, comma) for line in lines]
    width = Counter(len(row) for row in (rows[1:] or rows)).most_common(1)[0][0]
    width = max(width, 1)
    if width > 1 and len(rows[0]) in (width, width - 1) and all(
            len(row) == width and not row[-1].strip() for row in rows[1:]) and (
            len(rows[0]) < width or not rows[0][-1].strip()):
        width -= 1  # each line ends in a separator
    names: tuple[str, ...] | None = None
    header_line = 0
    if _is_header(rows, width):
        header = [re.sub(r"\s*\n\s*", " ", cell.strip()) for cell in rows[0]]
        if len(header) == width + 1 and not header[-1]:
            header.pop()
        if len(header) == width - 1 and looks_like_time("", True, as_time([row[0] for row in rows[1:]])):
            header.insert(0, "")  # R writes no name over its row names
        if len(rows) > 1 and len(header) != width:
            raise InputError(f"{what}: the header has {len(rows[0])} names, but rows have {width} cells; "
                             "give each column one name")
        width = len(header)
        names = tuple(header)
        header_line = numbered[0][0] + lines[0].count("\n")
    else:
        names, header_line = _comment_header(text, numbered[0][0], separator, width)
    sample = tuple(tuple(row) for row in (rows[1:] if header_line >= numbered[0][0] else rows))
    return Dialect(encoding, separator, comma, names, header_line, width, sample)


def _sample_text(path: Path, what: str) -> tuple[str, str]:
    try:
        with open_binary(path) as handle:
            raw, complete = _sample(handle)
    except (OSError, EOFError) as error:
        raise InputError(f"{what}: cannot be read ({error})") from error
    encoding = "utf-8-sig"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in raw:
        raise InputError(f"{what}: this is not a text table; check the file's suffix")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw, final=complete)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = raw.decode(encoding)
    if not complete:  # the last line may be cut
        end = max(text.rfind("\n"), text.rfind("\r"))
        if end < 0:
            raise InputError(f"{what}: its first line is longer than {_MOST_BYTES >> 20:,} MiB: no table of series")
        text = text[:end]
    return encoding, text


def _sample(handle: IO[bytes]) -> tuple[bytes, bool]:
    """The beginning of a file, and whether that is all of it: a MiB, or more where a few lines are longer than that."""
    nbytes = _SAMPLE_BYTES
    raw = handle.read(nbytes)
    while len(raw) == nbytes < _MOST_BYTES and raw.count(b"\n") + raw.count(b"\r") < _LEAST_LINES:
        raw += handle.read(nbytes)
        nbytes *= 2
    return raw, len(raw) < nbytes


def _physical_lines(text: str) -> list[str]:
    # As the file object splits: str.splitlines() would also break at form feeds and Unicode separators.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _separator(lines: Sequence[str]) -> str | None:
    candidates: tuple[str | None, ...] = ("\t", ";", ",", None)
    best: tuple[float, str | None] = (0.0, ",")
    for separator in candidates:
        counts = [len(split(line, separator)) for line in lines]
        body = counts[1:] or counts
        mode, times = Counter(body).most_common(1)[0]
        if mode < 2 or (separator is None and best[0] > 0.5):
            continue
        share = times / len(body)
        if share == 1.0 and counts[0] in (mode, mode - 1):
            return separator
        if separator is not None:  # white space inside cells must not beat a table with one ragged line
            best = max(best, (share, separator), key=lambda pair: pair[0])
    return best[1] if best[0] > 0.5 else ","


def _has_decimal_comma(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell.strip() for row in rows[1:] or rows for cell in row]
    return any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) and not any(
        "." in cell and _is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_text(cell: str) -> bool:
    return not _is_number(cell) and not is_missing_cell(cell) and as_dates([cell]) is None


def _is_header(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first row names the columns rather than being data."""
    first, later = rows[0], rows[1:]
    cells = [cell.strip() for cell in first]
    text = [_is_text(cell) for cell in cells]
    if all(text):
        return True
    if not any(text):
        return _is_numbered_header(cells, later)
    if is_time_name(cells[0]):
        return True
    # A damaged number among numbers (1.0x, 2.5) is bad data and must be reported, not taken for a name.
    if all(_STARTS_AS_NUMBER.match(cell) for cell, is_text in zip(cells, text, strict=True) if is_text):
        return False
    offset = width - len(cells) if len(cells) == width - 1 else 0
    return any(is_text and len(row) > i + offset and not _is_text(row[i + offset])
               for i, is_text in enumerate(text) for row in later)


def _is_numbered_header(cells: Sequence[str], later: Sequence[Sequence[str]]) -> bool:
    """Headers as pandas writes them for unnamed columns: ",0,1,2" or "0,1,2" above numbers with fractions."""
    labels = cells[1:] if cells[0] == "" else cells
    if len(labels) < (1 if cells[0] == "" else 3) or list(labels) != [str(i) for i in range(len(labels))]:
        return False
    return any("." in cell for row in later for cell in row)


def _comment_header(text: str, first_row: int, separator: str | None, width: int) -> tuple[tuple[str, ...] | None, int]:
    """A comment just above the data whose cells are as many names as there are columns (NumPy and gnuplot write so)."""
    lines = _physical_lines(text)
    above = lines[first_row - 2].strip() if first_row >= 2 else ""
    if separator is None or not above.startswith("#"):
        return None, 0
    names = [cell.strip() for cell in split(above.lstrip("#"), separator)]
    if len(names) == width > 1 and all(_is_text(name) for name in names):
        return tuple(names), first_row - 1
    return None, 0
