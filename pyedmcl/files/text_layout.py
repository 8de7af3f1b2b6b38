"""Where the table is in a text: encoding, separator, header, units, and lines that are no rows.

The first lines tell; whatever they leave open is refused, with the option that decides.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import InputError
from ..series.date_forms import dates_of_texts, like_date
from ..series.number_forms import is_gap_word, is_missing_cell, is_spreadsheet_error, like_number, plain_number
from ..series.reading import ReadingOptions
from ..series.times import is_time_name, is_weak_name

_SAMPLE_BYTES = 1 << 20
_SAMPLE_LINES = 400
_NAMES_WITHIN = 40  # first lines, of which one may hold the names
_ABOVE = 12  # first lines, some of which may stand above the table
_LEAST_LINES = 8  # a header, and rows that tell what its columns hold
_MOST_BYTES = 1 << 30
_MOST_JOINED = 100  # lines of a row: a quotation mark that nothing closes is one line's fault
_SEPARATORS: tuple[str | None, ...] = ("\t", ";", ",", "|", None)
_ENCODINGS = {"latin-1": "Latin-1", "cp1252": "Windows-1252", "cp932": "Shift JIS"}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_OPEN_QUOTE = re.compile(r'(?:^|[,;\t |])\s*"')
_SEP_LINE = re.compile(r'\s*"?sep=(.)"?\s*$', re.IGNORECASE)
_LETTER = re.compile(r"\w|[\x80-\x9f]")  # the latter where the encoding is not known
_ONE_NUMBER = re.compile(r"[+\u2212\u2013\ufe63\uff0d-]?\d+(,\d+)*([eE][+-]?\d+)?")
_TWO_PARTS = re.compile(r"[+\u2212\u2013\ufe63\uff0d-]?\d+,\d+([eE][+-]?\d+)?")
_REMARK = re.compile(r"\s*(%|//|!|\*|;)\s")  # how comments of other programs begin
_BLANKS = re.compile(r"[ \t\f\v]+")
_FIRST_CELL = re.compile(r'\s*"?([^\t;,|"\s]*)')
_UNIT = re.compile(
    r"[\[(].*[\])]|[%‰°\-.]*|°?[CFKcfk]|deg.*|[^ /]{0,6}/[^ ]{1,12}|(k|c|m)?m\^?-?[23]|"
    r"[µumkMGnpc]?(m|s|g|l|L|V|A|W|Hz|Pa|bar|mol)|t|psu|PSU|h|d|min|sec|years?|yr|yyyy.*|YYYY.*|hh:.*|TS|RN|unitless|none|"
    r"counts?|ind\..*|Avg|Smp|Tot|Max|Min|Std|"
)


@dataclass(eq=False)
class Layout:
    """Where the table is in a text."""

    encoding: str
    # Between cells; None for runs of white space.
    separator: str | None
    # Numbers are read with a decimal comma.
    comma: bool
    # One for each column; None without a header.
    names: list[str] | None
    # Number of the first line that may be a row, counted from 1.
    first: int
    # Cells of a row.
    width: int
    # Columns whose cells are numbers, dates or gaps.
    numeric: Sequence[int] = ()
    # Number of the first line from which on all lines looked at have as many cells as a row, names included.
    steady: int = 1
    # Unit of a column from a line of units.
    units: dict[int, str] = field(default_factory=dict)
    # Lines that are no rows, and why.
    passed_over: list[str] = field(default_factory=list)
    # What was taken in one of several ways, in sentences.
    inferred: list[str] = field(default_factory=list)


def open_binary(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked if it ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def split(line: str, separator: str | None) -> list[str]:
    """Cells of a row."""
    if '"' in line:
        text = line if separator else line.strip().replace("\t", " ")
        lines = [f"{part}\n" for part in text.split("\n")]
        return next(csv.reader(lines, delimiter=separator or " ", skipinitialspace=True))
    if separator is None and not line.isascii():
        return _BLANKS.split(line.strip(" \t\f\v"))  # a fixed space parts thousands
    return line.split(separator)


def _is_comment(line: str, options: ReadingOptions) -> bool:
    """Whether a line is a comment: it begins with the mark that was given, or with # and no spreadsheet error."""
    text = line.lstrip()
    if options.comment:
        return text.startswith(options.comment)
    if not text.startswith("#"):
        return False
    first = _FIRST_CELL.match(text)
    return first is None or not is_spreadsheet_error(first[1])


def rows_of_text(lines: Iterable[tuple[int, str]], options: ReadingOptions) -> Iterator[tuple[int, str]]:
    """Lines that are no comments, with the number of the first; quoted cells may hold line breaks."""
    waiting: list[tuple[int, str]] = []
    begins = frozenset(options.comment[:1] or "#") | frozenset(" \t")
    for number, line in lines:
        if not waiting and '"' not in line:
            if line[:1] not in begins or not _is_comment(line, options):
                yield number, line
            continue
        waiting.append((number, line))
        joined = "\n".join(text for _, text in waiting)
        if _OPEN_QUOTE.search(_QUOTED.sub("", joined)) is None:
            if not _is_comment(joined, options):
                yield waiting[0][0], joined
        elif not _is_comment(joined, options) and len(waiting) < _MOST_JOINED:
            continue
        else:
            yield from ((n, text) for n, text in waiting if not _is_comment(text, options))
        waiting = []
    yield from ((n, text) for n, text in waiting if not _is_comment(text, options))


def find_layout(path: Path, options: ReadingOptions, what: str) -> Layout:
    """Find out how the text file ``path`` is written."""
    encoding, text = _sample_text(path, what)
    physical = _physical_lines(text)
    numbered = [(n, line) for n, line in enumerate(physical, 1) if not options.leaves_out(n)]
    separator: str | None = ","
    told = next(((n, match) for n, line in numbered[:1] if (match := _SEP_LINE.match(line))), None)
    if told is not None:
        numbered = [pair for pair in numbered if pair[0] != told[0]]
    lines = [(n, line) for n, line in islice(rows_of_text(numbered, options), _SAMPLE_LINES) if line.strip(" \r\f")]
    if not lines:
        raise InputError(f"{what}: the file is empty; rows of numbers are needed")
    separator = told[1][1] if told is not None else _separator([line for _, line in lines])
    rows = [split(line, separator) for _, line in lines]
    width = _width(rows)
    layout = Layout(encoding, separator, False, None, 1, width)
    if encoding in _ENCODINGS:
        layout.inferred.append(f"{what}: the text is no UTF-8, and is read as {_ENCODINGS[encoding]}")
    if told is not None:
        layout.passed_over.append(f"line {told[0]} (tells the separator)")
    layout.width = _without_empty_end(rows, width)
    _refuse_parted_numbers(rows, any('"' in line for _, line in lines), layout, options, what)
    if layout.separator != separator:
        rows = [[line.strip()] for _, line in lines]
    layout.steady = _steady(lines, rows, layout.width)
    layout.numeric = _columns_of_numbers(rows, layout.width)
    cut = [row[: layout.width] if fits(row, layout.width) else row for row in rows]
    _find_header(lines, cut, layout, options, what)
    if layout.names is None:
        _comment_header(physical, layout, separator)
    body = [row for (n, _), row in zip(lines, rows, strict=True) if n >= layout.first]
    layout.comma = separator != "," and options.numbers.decimal != "." and options.numbers.thousands != "," and (
        options.numbers.decimal == "," or _decimal_commas(body)
    )
    return layout


def _steady(lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], width: int) -> int:
    """Number of the line from which on lines have as many cells as a row, if it is among the first; one cell less has
    a line of names where the first column has none."""
    odd = [place for place, row in enumerate(rows[: len(rows) // 2]) if not fits(row, width)]
    if not odd or odd[-1] >= _ABOVE or width == 1:
        return lines[0][0]
    first, *later = [row[0] for row in rows[odd[-1] + 1 : odd[-1] + 3]]
    named_below = is_text(first) and not any(map(is_text, later))
    names = len(rows[odd[-1]]) == width - 1 > 0 and all(map(is_text, rows[odd[-1]])) and not named_below
    return lines[odd[-1] + (not names)][0]


def above_in_words(layout: Layout, number: int) -> str:
    """What is to be said where line ``number`` may stand above the table; empty where it does not."""
    steady = layout.steady
    if number >= steady:
        return ""
    return f"; if the table begins in line {steady}, say header={steady}, or header=False and skip_rows={steady - 1}"


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Cells of most rows, counted in the later half, where no lines stand above the table."""
    later = rows[len(rows) // 2 :] or rows
    return max(Counter(map(len, later)).most_common(1)[0][0], 1)


def _without_empty_end(rows: Sequence[Sequence[str]], width: int) -> int:
    """The width without a last cell that is empty in all rows: each line ends in a separator."""
    full = [row for row in rows if len(row) == width]
    body = full[1:] or full
    if width > 1 and body and all(not row[-1].strip() for row in body) and not (
        len(full) > 1 and full[0][-1].strip() and len(rows[0]) == width
    ):
        return width - 1
    return width


def fits(row: Sequence[str], width: int) -> bool:
    return len(row) == width or (len(row) > width and not any(cell.strip() for cell in row[width:]))


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
        encoding, text = _other_encoding(raw)
    if not complete:  # the last line may be cut
        end = max(text.rfind("\n"), text.rfind("\r"))
        if end < 0:
            raise InputError(f"{what}: its first line is longer than {_MOST_BYTES >> 20:,} MiB: no table of series")
        text = text[:end]
    return encoding, text


def _other_encoding(raw: bytes) -> tuple[str, str]:
    """An encoding that is no Unicode: Latin-1, that of Windows where its marks occur, or that of Japan."""
    text = raw.decode("latin-1")
    if not any("\x80" <= letter <= "\x9f" for letter in text):
        return "latin-1", text
    try:
        japanese = raw.decode("cp932")
        foreign = [letter for letter in japanese if letter > "\x7f"]
        if sum("\u3040" <= letter <= "\u9fff" for letter in foreign) > 0.8 * len(foreign):
            return "cp932", japanese
    except UnicodeDecodeError:
        pass
    try:
        return "cp1252", raw.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1", text


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
    """The separator by which most of the later lines have equally many cells, most of which are numbers or dates."""
    later = lines[len(lines) // 2 :] if len(lines) > 3 else lines[1:] or lines
    above = lines[: max(1, len(lines) - len(later))][:_NAMES_WITHIN]
    scores: list[tuple[float, float, bool, int, str | None]] = []
    for rank, separator in enumerate(_SEPARATORS):
        rows = [split(line, separator) for line in later]
        width, times = Counter(map(len, rows)).most_common(1)[0]
        if width < 2:
            continue
        full = [row for row in rows if len(row) == width]
        cells = [cell.strip() for row in full[:100] for cell in row]
        known = sum(
            is_missing_cell(cell) or like_number(cell) or (like_date(cell) and dates_of_texts([cell]) is not None)
            for cell in cells
        )
        heads = [row for row in (split(line, separator) for line in above) if len(row) == width and any(row)]
        named = any(all(is_text(cell) or not cell.strip() for cell in head) for head in heads)
        scores.append((round(times / len(rows), 2), known / len(cells), named, -rank, separator))
    if not scores:
        return ","
    best = max(share for share, *_ in scores)
    # Blanks stand within dates and texts, too: of equals, another mark is the separator. Commas stand within numbers:
    # they are none where a line of names has as many cells by another mark, and not by commas.
    # Other marks stand within neither.
    any_named = any(named for _, _, named, _, _ in scores)
    equals = [score for score in scores if score[0] >= 0.9 * best]
    others = any(mark not in (",", None) and known > 0.5 for _, known, _, _, mark in equals)
    likely = [
        (round(known, 1), named or mark != "," or not any_named, mark is not None, rank, mark)
        for _, known, named, rank, mark in equals if mark is not None or not others
    ]  # fmt: skip
    return max(likely, key=lambda score: score[:4])[4] if best > 0.5 else ","


def _decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Whether some cells of the first rows are numbers with a decimal comma, and none with a decimal point."""
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if "," in cell and re.fullmatch(r"[+-]?\d+,\d*([eE][+-]?\d+)?", cell)]
    decided = any(not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in commas)
    return decided and not any("." in cell and "," not in cell and plain_number(cell) is not None for cell in cells)


def _refuse_parted_numbers(
    rows: Sequence[Sequence[str]], quoted: bool, layout: Layout, options: ReadingOptions, what: str
) -> None:
    """Take ``0,195`` in a table of one column for a number, or refuse it: commas would make two columns of it."""
    said = "," in (options.numbers.decimal, options.numbers.thousands) and not quoted
    if layout.separator != "," or (layout.width != 2 and not said) or options.numbers.decimal == ".":
        return
    body = [",".join(cell.strip() for cell in row) for row in rows]
    parts = _ONE_NUMBER if said else _TWO_PARTS
    places = [place for place, text in enumerate(body) if parts.fullmatch(text)]
    others = [text for row, text in zip(rows, body, strict=True) if len(row) >= layout.width]
    gaps = sum(is_missing_cell(text) or is_gap_word(text) or options.numbers.is_gap(text) for text in others)
    if len(places) < max(2, 0.9 * (len(others) - gaps)):
        return
    above = rows[: places[0]] if options.header is not False else []  # rows with gaps may stand there, too
    names = next((len(row) for row in reversed(above) if any(row) and all(map(is_text, filter(str.strip, row)))), 0)
    numbers = [body[place].split(",") for place in places]
    lead = any(len(rest[0]) > 1 and rest[0][0] == "0" for _, *rest in numbers if rest) or any(
        first in ("-0", "+0") for first, *_ in numbers
    )
    same = len({len(rest[0]) for _, *rest in numbers if rest}) == 1
    if (said and names < 2) or names == 1 or (lead and names != 2):
        layout.separator, layout.width = "\0", 1
        mark = "mark thousands" if options.numbers.thousands == "," else "are decimal marks"
        layout.inferred.append(f"{what}: commas {mark}: {body[places[0]]} is one number of one column")
    elif same and len(numbers[0][1]) > 1 and names != 2:
        three = len(numbers[0][1]) == 3
        raise InputError(
            f"{what}: {body[places[0]]} may be two numbers, or one with a decimal comma{' or thousands' * three}. Say "
            f"decimal='.' or decimal=','" + " or thousands=','" * three
        )


def is_text(cell: str) -> bool:
    """Whether a cell is neither a number, a date, a gap nor a mark alone."""
    cell = cell.strip()
    return not (
        is_missing_cell(cell) or like_number(cell) or is_gap_word(cell) or not _LETTER.search(cell)
        or cell[:1] in "<>" or (like_date(cell) and dates_of_texts([cell]) is not None)
    )  # fmt: skip


def _find_header(
    lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], layout: Layout, options: ReadingOptions, what: str
) -> None:
    """Which line holds the names of columns, which above it belong to no table, and which below it hold units."""
    width = layout.width
    if isinstance(options.header, int) and not isinstance(options.header, bool):
        place = next((i for i, (n, _) in enumerate(lines) if n == options.header), None)
        if place is None or not (fits(rows[place], width) or len(rows[place]) == width - 1):
            there = "is none of the first lines" if place is None else f"has {len(rows[place])} cells, and rows {width}"
            raise InputError(f"{what}: header={options.header}: this line {there}; say which line holds the names")
        first = place + 1
        textual = _columns_of_numbers(rows, width)
        while textual and first < len(rows) - 1 and fits(rows[first], width) and _all_text(rows[first], textual):
            first += 1
        _take_header(lines, rows, place, first, layout, what)
        return
    numeric = _columns_of_numbers(rows, width)
    if not numeric and fits(rows[0], width):
        again = _word_again(rows)
        if options.header is False or again:
            if options.header is not False:
                layout.inferred.append(f"{what}: line {lines[0][0]} is data, as {again!r} occurs again below it")
            layout.first = lines[0][0]
            return
        if width == 1 and len(rows) > 1:
            name = rows[0][0].strip()
            layout.inferred.append(
                f"{what}: line {lines[0][0]} ({name!r}) names the column; if it is data, say header=False"
            )
        _take_header(lines, rows, 0, 1, layout, what)
        return
    top: list[int] = []  # lines above the first row that have as many cells as it
    begin = 0
    for place, row in enumerate(rows):
        begin = place
        complete = fits(row, width) or (len(row) == width - 1 and width > 1)
        if not complete or _REMARK.match(lines[place][1]):
            continue
        if len(rows) > place + 1 and _all_text(row, numeric):
            top.append(place)
            continue
        below = rows[place + 1 : min(place + 9, len(rows) - 1)]
        if _has_text(row, numeric) and any(fits(later, width) and _all_text(later, numeric) for later in below):
            continue  # a line above the header that has as many words as there are columns
        break
    full = [place for place in top if fits(rows[place], width)]
    named_rows = not full and top and _names_rows(rows[top[-1] + 1 :], width)
    top = full or (top[-1:] if named_rows else [])  # R writes one name less than there are columns
    if options.header is False:
        first = begin if begin < len(rows) else 0
        layout.first = lines[first][0]
        _pass_over(lines, range(first), "above the table", layout)
        return
    if not top:
        first_full = begin
        if _is_header_with_numbers(lines, rows, first_full, numeric, width, what):
            after = first_full + 1  # "Subject: 12" may stand above names that are numbers
            beneath = after < len(rows) - 1 and bool(rows[after][0].strip())
            if beneath and _is_header_with_numbers(lines, rows, after, numeric, width, what):
                first_full = after
            _take_header(lines, rows, first_full, first_full + 1, layout, what)
        else:
            above = rows[first_full - 1] if first_full else []
            if len(above) > 1 and all(map(is_text, above)):
                _refuse_header(lines[first_full - 1][0], len(above), layout, what)
            layout.first = lines[first_full][0]
            _pass_over(lines, range(first_full), "above the table", layout)
        return
    place, first = _names_among(lines, rows, top, what), top[-1] + 1
    numbered = place and first < len(rows) - 1 and bool(rows[first][0].strip())  # without a first cell it is a row
    if numbered and _is_header_with_numbers(lines, rows, first, numeric, width, what):
        place, first = first, first + 1  # names that are numbers, below a line of as many words
    _take_header(lines, rows, place, first, layout, what)


def _word_again(rows: Sequence[Sequence[str]]) -> str:
    """A word of the first line of a table of words that its column has below, too; else empty. Names of several columns
    may all stand there again."""
    first, *later = ([cell.strip() for cell in row] for row in rows)
    others = [row for row in later if len(row) == len(first) and (row != first or len(first) == 1)]
    return next((cell for cell, *below in zip(first, *others, strict=True) if is_text(cell) and cell in below), "")


def _columns_of_numbers(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Columns whose cells in the later half are numbers, dates or gaps, and not words and gaps alone."""
    later = [row for row in rows[len(rows) // 2 :] if fits(row, width)] if len(rows) > 3 else [
        row for row in rows[1:] or rows if fits(row, width)
    ]  # fmt: skip

    def of_numbers(cells: Sequence[str]) -> bool:
        texts = sum(map(is_text, cells))
        gaps = sum(is_missing_cell(cell) or is_gap_word(cell) for cell in cells)
        return texts <= len(cells) // 2 and not 0 < texts == len(cells) - gaps

    return [i for i in range(width) if of_numbers([row[i] for row in later])]


def _all_text(row: Sequence[str], numeric: Sequence[int]) -> bool:
    """Whether cells of a line are texts wherever rows have numbers, so that it is no row."""
    cells = [row[i].strip() for i in numeric if i < len(row)]
    held = [cell for cell in cells if cell]
    if not numeric:
        return all(map(is_text, filter(None, (cell.strip() for cell in row))))
    return bool(held) and all(is_text(cell) or _is_unit(cell) for cell in held) and any(map(is_text, held))


def _has_text(row: Sequence[str], numeric: Sequence[int]) -> bool:
    return any(is_text(row[i]) for i in numeric if i < len(row))


def _is_unit(cell: str) -> bool:
    return bool(_UNIT.fullmatch(cell.strip())) and not like_number(cell)


def _names_among(lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], top: Sequence[int], what: str) -> int:
    """Which of several lines of text above the rows holds the names."""
    with_time = [place for place in top if any(
        is_time_name(cell) and not is_weak_name(cell) and not _is_unit(cell) for cell in rows[place]
    )]  # fmt: skip
    if len(with_time) == 1:
        return with_time[0]
    place = top[-1]
    while place > top[0] and all(map(_is_unit, rows[place])):
        place = top[top.index(place) - 1]
    if place == top[0] or len(rows[place]) == 1 == len(top):
        return place
    if len({cell.strip() for cell in rows[place]}) == len(rows[place]) > 1 and place - 1 not in top:
        return place
    listed = " or ".join(f"header={lines[i][0]}" for i in top[:4])
    raise InputError(
        f"{what}: {len(top)} lines above the rows may hold the names of columns, such as "
        f"{lines[place][1].strip()[:40]!r}. Say which: {listed}; or leave them out with "
        f"skip_rows='{lines[0][0]}:{lines[top[-1]][0]}'"
    )


def _take_header(
    lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], place: int, first: int, layout: Layout, what: str
) -> None:
    """Take names from a line, and units from those between it and the first row."""
    header = [re.sub(r"\s*\n\s*", " ", cell.strip()) for cell in rows[place]]
    body = [row for row in rows[first:] if fits(row, layout.width)]
    if len(header) == layout.width - 1 and _names_rows(body, layout.width):
        header.insert(0, "")
    if len(header) != layout.width and len(rows) > 1:
        _refuse_header(lines[place][0], len(rows[place]), layout, what)
    layout.width, layout.names = len(header), header
    for below in range(place + 1, first):
        for i, cell in enumerate(rows[below][: layout.width]):
            if cell.strip() and _is_unit(cell) and i not in layout.units:
                layout.units[i] = cell.strip().strip("[]()")
        layout.passed_over.append(f"line {lines[below][0]} (units)")
    _pass_over(lines, range(place), "above the header", layout)
    layout.first = lines[first][0] if first < len(lines) else lines[-1][0] + lines[-1][1].count("\n") + 1


def _refuse_header(number: int, n_names: int, layout: Layout, what: str) -> None:
    raise InputError(
        f"{what}: the header has {n_names} names, but rows have {layout.width} cells (line {number}). Give each column "
        "one name. Where another line holds the names, say header= with its number; header=False where none does"
        + above_in_words(layout, number)
    )


def _names_rows(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first column names rows, by texts, dates or numbers that grow."""
    column = [row[0].strip() for row in rows if fits(row, width)]
    return bool(column) and (all(map(is_text, column)) or dates_of_texts(column) is not None or _counts(column))


def _counts(cells: Sequence[str]) -> bool:
    """Whether numbers grow from cell to cell, or count down where the newest row comes first."""
    numbers = [plain_number(cell) for cell in cells]
    steps = np.diff([np.nan if number is None else number for number in numbers])
    return len(cells) > 0 and bool((steps > 0).all() or (len(cells) > 3 and (steps == -1).all()))


def _pass_over(lines: Sequence[tuple[int, str]], places: Iterable[int], why: str, layout: Layout) -> None:
    numbers = [lines[place][0] for place in places]
    if numbers:
        named = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"
        layout.passed_over.insert(0, f"{named} ({why})")


def _is_header_with_numbers(
    lines: Sequence[tuple[int, str]], rows: Sequence[Sequence[str]], place: int, numeric: Sequence[int], width: int,
    what: str,
) -> bool:  # fmt: skip
    """Whether the first line holds names though some or all of them are numbers."""
    first = [cell.strip() for cell in rows[place]]
    later = [row for row in rows[place + 1 :] if fits(row, width)]
    texts = [i for i, cell in enumerate(first) if is_text(cell)]
    if not later:
        return len(texts) == len(first)
    named = [i for i in texts if i in numeric and not _like_damaged(first[i])]
    if named and (len(named) == len([i for i in numeric if first[i : i + 1] != [""]]) or is_time_name(first[0])
                  or any(is_time_name(first[i]) for i in named)):  # fmt: skip
        return True
    rest = [(i, cell) for i, cell in enumerate(first) if i in numeric and cell and i not in texts]
    whole = [cell for _, cell in rest if re.fullmatch(r"\d+", cell)]
    distinct = len(rest) > 0 and len(whole) == len(rest) == len(set(whole))
    empty_corner = bool(first) and first[0] == "" and any(row[0].strip() for row in later)
    if empty_corner and (distinct or texts):
        return True
    if named and distinct:
        return True
    if named or not distinct:
        return False
    numbers = [int(cell) for cell in whole]
    increasing = all(a < b for a, b in pairwise(numbers))
    fractions = any("." in row[i] or "," in row[i] for row in later for i, _ in rest)
    far = [_is_far(float(cell), [plain_number(row[i].replace(",", ".")) for row in later]) for i, cell in rest]
    counted = increasing and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    if counted and numbers[0] in (0, 1) and len(numbers) >= 3 and fractions:
        return True
    text_first = bool(texts) and 0 in texts and 0 not in numeric
    if text_first and increasing and (fractions or all(far)):
        return True
    in_a_row = counted and (len(numbers) >= 3 or (len(numbers) > 1 and numbers[0] >= 100))
    if any(far) or in_a_row or (text_first and increasing and len(numbers) > 1):
        n = lines[place][0]
        raise InputError(
            f"{what}: line {n} holds numbers ({', '.join(first[:4])}{', ...' if len(first) > 4 else ''}), which may be "
            f"names or data. Say header={n} or header=False"
        )
    return False


def _like_damaged(cell: str) -> bool:
    """Whether a text begins like a number: a slip of the pen among numbers, which must be reported."""
    return bool(re.match(r"[+-]?[.,]?\d", cell))


def _is_far(value: float, column: Sequence[float | None]) -> bool:
    """Whether a number is far from all others of its column."""
    held = np.array([number for number in column if number is not None and number == number])
    if len(held) < 2 or (len(held) < 4 and (held == np.rint(held)).all()):
        return False  # a few whole numbers say little of each other
    low, high = np.quantile(held, (0.05, 0.95))  # codes of gaps are far from all others, too
    span = max(float(high - low), 1e-12)
    return not low - span <= value <= high + span


def _comment_header(physical: Sequence[str], layout: Layout, separator: str | None) -> None:
    """A comment just above the rows whose cells are as many names as there are columns (NumPy and gnuplot write so)."""
    above = physical[layout.first - 2].strip() if layout.first >= 2 else ""
    if separator is None or not above.startswith("#"):
        return
    names = [cell.strip() for cell in split(above.lstrip("#"), separator)]
    if len(names) == layout.width > 1 and all(is_text(name) for name in names):
        layout.names = names
