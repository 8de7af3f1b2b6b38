"""Text in the cells of tables, so that a spreadsheet takes a name for a name."""

from __future__ import annotations

import csv
from typing import IO, Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def text_cell(value: Any) -> Any:
    """``value``, with an apostrophe before a text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> [text_cell(value) for value in ("=HYPERLINK(A1)", "-x", "-1.5", "rho", -1.5)]
    ["'=HYPERLINK(A1)", "'-x", '-1.5', 'rho', -1.5]
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value):
        return f"'{value}"
    return value


class _Rows:
    """Takes rows that end in both characters of a line break, and ends them otherwise."""

    def __init__(self, handle: IO[str], end: str) -> None:
        self._handle, self._end = handle, end

    def write(self, row: str) -> int:
        return self._handle.write(row.removesuffix("\r\n") + self._end)


def row_writer(handle: IO[str], separator: str = ",", end: str = "\n") -> Any:
    """A ``csv.writer`` that quotes cells with a line break of any kind; by itself it quotes what a row ends in only.

    Examples
    --------
    >>> import io
    >>> memory = io.StringIO()
    >>> _ = row_writer(memory).writerow(["a\\rb", "c"])
    >>> memory.getvalue()
    '"a\\rb",c\\n'
    """
    return csv.writer(_Rows(handle, end), delimiter=separator, lineterminator="\r\n")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
