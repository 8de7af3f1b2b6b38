"""Text in the cells of tables, so that a spreadsheet takes a name for a name."""

from __future__ import annotations

from typing import Any

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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
