"""Tables of a report: rows that sort, for readers of all kinds, and the same rows as CSV."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from ..io.cells import row_writer, text_cell
from .content import Table
from .markup import data_uri, element, number, text

#: Of a table of links, which has both names of each role: these are in the file only, and the others say both.
_TWICE = ("library", "target")
_HEADS = {"cause": "cause (target)", "effect": "effect (library)", "p_value": "p", "q_value": "q", "E_of": "E of"}
_FILTERED = 8  # rows from which on a table has a field to search in
_WRAPPED = 40  # letters beyond which a text takes several lines


def table_markup(table: Table, key: str) -> str:
    """The table with its download, as HTML."""
    twice = {"cause", "effect", *_TWICE} <= set(table.columns)
    shown = [i for i, name in enumerate(table.columns) if not (twice and name in _TWICE)]
    numeric = [_is_numeric(table, i) for i in range(len(table.columns))]
    head = "".join(
        element("th", element("button", text(_HEADS.get(table.columns[i], table.columns[i])), type="button"),
                scope="col", class_="number" if numeric[i] else None)
        for i in shown
    )  # fmt: skip
    body = "".join(
        "<tr>" + "".join(_cell(row[i], numeric[i]) for i in shown) + "</tr>\n" for row in table.rows
    )
    address = data_uri("text/csv;charset=utf-8", _csv(table))
    download = element("a", "Download as CSV", href=address, download=f"{key}.csv", class_="button")
    search = element("label", "Search ", element("input", type="search", class_="search", autocomplete="off"))
    controls = element("div", search if len(table.rows) >= _FILTERED else "", download, class_="controls")
    note = element("p", text(table.note), class_="note") if table.note else ""
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    region = element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=table.title)
    return element("section", element("h3", text(table.title)), note, controls, region, class_="table", id=key)


def _is_numeric(table: Table, column: int) -> bool:
    values = [row[column] for row in table.rows if row[column] is not None]
    return bool(values) and all(_is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def _cell(value: Any, numeric: bool) -> str:
    """A cell; what sorts it is in data-v where that is not what is seen."""
    kind = "number" if numeric else None
    if value is None:
        return element("td", "\N{EN DASH}", class_=kind, data_v="")
    if not _is_number(value):
        words = text(value)
        return element("td", words, class_="long" if len(words) > _WRAPPED else kind)
    plain = float(value)
    if isinstance(value, (int, np.integer)):
        return element("td", str(int(value)), class_=kind)
    return element("td", number(plain), class_=kind, data_v=f"{plain:.9g}" if math.isfinite(plain) else "")


def _csv(table: Table) -> bytes:
    memory = io.StringIO(newline="")
    writer = row_writer(memory)
    writer.writerow(map(text_cell, table.columns))
    for row in table.rows:
        writer.writerow(["NaN" if value is None or value != value else text_cell(value) for value in row])
    return memory.getvalue().encode(errors="surrogatepass")
