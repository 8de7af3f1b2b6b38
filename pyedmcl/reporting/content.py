"""The parts of a report as plain data, their markup, and what was run."""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import missing_extra
from ..plot.figure import MIDDLE
from ..plot.pairs import Positions, block_means
from ..results.edges import blank_itself
from ..results.result import COMMON, printable, style
from ..results.tables import row_writer, text_cell

# HTML whose every value is escaped: names of series are data, whatever they look like.


_VOID = ("img", "input")  # elements that have no content


def text(value: object) -> str:
    """A value as text of a page or of an attribute in double quotes."""
    return html.escape(printable(value), quote=True)


def element(name: str, *content: str, **attributes: object) -> str:
    """An element of ``content``, which is HTML already, and attributes, which are values.

    ``class_`` is the attribute class, and other underscores are hyphens; True is an attribute without a value, and
    those of None or False are left out.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items() if value is not None and value is not False
    )  # fmt: skip
    return f"<{name}{shown}>" if name in _VOID else f"<{name}{shown}>{''.join(content)}</{name}>"


def data(content: Any, **attributes: object) -> str:
    """Plain data for a script of the page, which no text in it can end."""
    dumped = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Within a script element only these begin anything.
    safe = dumped.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element("script", safe, type="application/json", **attributes)


def data_uri(kind: str, content: bytes) -> str:
    """Bytes as an address that needs no network."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def number(value: float) -> str:
    """A number in four digits, as a table shows it."""
    return "\N{EN DASH}" if value != value else f"{value:.4g}"


Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One array of a map."""

    label: str
    # ndarray of float64 (rows, columns). NaN where there is nothing.
    cells: Doubles
    # A colour map of matplotlib.
    colours: str = "RdBu_r"
    # low, high: Values at the ends of the colours; what lies beyond has the colour of that end.
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Map:
    """Arrays of one shape over the same rows and columns, one of which is seen at a time."""

    title: str
    layers: tuple[Layer, ...]
    # rows, columns: Names; empty where rows are numbered.
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    # (int, int). Rows and columns before they were reduced.
    shape: tuple[int, int]
    # Edge of the square block of pairs that a cell stands for.
    size: int = 1
    row_label: str = "effect (library)"
    column_label: str = "cause (target)"
    # Row 0 is the lowest, as in recurrence plots.
    upwards: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows that can be sorted and downloaded."""

    title: str
    columns: tuple[str, ...]
    # Numbers, texts, truth values or None.
    rows: Sequence[tuple[Any, ...]]
    note: str = ""


@dataclass(frozen=True)
class Network:
    """Links from cause to effect, of which those above a threshold are drawn."""

    # sequence of (str, str, float, float or None). Cause, effect, strength (above 0), q-value; the strongest first.
    links: Sequence[tuple[str, str, float, float | None]]
    # What the strength is.
    label: str
    # False discovery rate that a switch offers, where there are q-values.
    rate: float = 0.05
    note: str = ""
    # Links that there are in all, of which the page may hold the strongest only.
    total: int = 0
    # What stands above the picture where its arrows were not tested.
    warning: str = ""


@dataclass(frozen=True)
class Curves:
    """A curve for each of many pairs, some of which are shown from the beginning."""

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    # mapping of (str, str) to sequence of float. By (cause, effect).
    curves: Mapping[tuple[str, str], Sequence[float]]
    # sequence of (str, str). Pairs that are shown first, in both directions.
    chosen: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A drawing of matplotlib."""

    title: str
    data: bytes
    kind: str
    # What is seen, for those who do not see it.
    alt: str


@dataclass(frozen=True)
class Words:
    """A paragraph under a title, such as that of a methods section."""

    title: str
    text: str


Part = Map | Table | Network | Curves | Picture | Words


@dataclass(frozen=True)
class Section:
    """What there is to show of one result."""

    title: str
    # How to read it.
    lead: str
    facts: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    # What a reader must not overlook, such as that the run has not ended.
    remarks: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    # Sentences that say what was found; they come first. Of two texts the second is folded.
    answer: tuple[str | tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What was asked of a report."""

    # Rows of a table of links.
    top: int = 500
    # Order the series of maps by likeness.
    cluster: bool = False
    # tuple of (str, str). (cause, effect) whose curves are shown first.
    pairs: tuple[tuple[str, str], ...] = ()
    # False discovery rate.
    rate: float = 0.05


# Maps as the cells that a page holds: reduced to what a screen can show, put in order, and packed as text.


CELLS = 1_400_000  # of all layers of a map together: two bytes each, four letters for three bytes
SIDE = 700  # cells along a side, beyond which they are smaller than a pixel


def side_limit(layers: int) -> int:
    """Cells along the longer side of each of ``layers`` layers."""
    return min(SIDE, int((CELLS / max(layers, 1)) ** 0.5))


def reduced(
    matrix: Any, limit: int, itself: Positions | None, order: tuple[Positions, Positions] | None
) -> tuple[NDArray[np.float64], int]:
    """A map of at most ``limit`` cells a side, and the edge of the blocks whose means they are.

    Parameters
    ----------
    matrix : array_like (rows, columns)
        Anything with ``shape`` that can be sliced over rows.
    itself : ndarray of int or None
        Of each row the column that is the same series, else -1; those cells are blank. None leaves all.
    order : (ndarray, ndarray) or None
        Positions of rows and columns in the order in which they are shown.
    """
    if order is None:
        cells, size = block_means(matrix, limit)
        if size == 1 and itself is not None:
            cells = np.array(cells, np.float64)
            blank_itself(cells, itself, 0)
        return cells, size
    whole = np.array(matrix[:], np.float64)
    if itself is not None:
        blank_itself(whole, itself, 0)
    return block_means(whole[np.ix_(*order)], limit)


def packed(cells: NDArray[np.float64]) -> dict[str, Any]:
    """Cells as text: 16 bits each from the least to the largest value, little end first; the lowest number is NaN."""
    finite_cells = cells[np.isfinite(cells)]
    low, high = (float(finite_cells.min()), float(finite_cells.max())) if finite_cells.size else (0.0, 0.0)
    steps = np.full(cells.shape, -32768, "<i2")
    finite = np.isfinite(cells)
    step = (high - low) / 65534 or 1e-9
    steps[finite] = np.rint((cells[finite] - low) / step).astype(np.int64) - 32767
    return {"low": low, "step": step, "cells": base64.b64encode(steps.tobytes()).decode()}


# Drawings of matplotlib as bytes that a page can hold: vectors, or pixels where these take less room.


_LARGEST = 400_000  # bytes of a drawing as vectors
_DPI = 150


def require_matplotlib() -> None:
    """Raises MissingExtraError where matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing_extra("matplotlib", "report", "a report") from error


def picture(title: str, alt: str, draw: Callable[[], Any]) -> Picture:
    """What ``draw`` gives, a figure, as bytes that are the same each time."""
    import matplotlib

    require_matplotlib()
    # Names within the drawing would be random, and its date that of today.
    with matplotlib.rc_context({"svg.hashsalt": "pyedmcl"}):
        figure = draw()
        vectors = io.BytesIO()
        figure.savefig(vectors, format="svg", metadata={"Date": None, "Creator": None})
    if vectors.tell() <= _LARGEST:
        return Picture(title, vectors.getvalue(), "svg+xml", alt)
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=style().dpi or _DPI, metadata={"Software": None})
    return Picture(title, pixels.getvalue(), "png", alt)


def histogram(values: Any, name: str, what: str) -> Picture:
    """Bars of how many of ``what`` have each integer value, such as E."""
    from ..plot.figure import new_figure, whole_steps

    numbers, counts = np.unique(np.asarray(values).astype(int), return_counts=True)

    def draw() -> Any:
        figure = new_figure(5.2, 2.8)
        ax = figure.add_subplot()
        ax.bar(numbers, counts, width=0.8, color=MIDDLE)
        ax.set_xlim(min(numbers[0], 1) - 0.6, max(numbers[-1], 5) + 0.6)
        ax.set_xlabel(name)
        ax.set_ylabel(what)
        whole_steps(ax.xaxis)
        whole_steps(ax.yaxis, 6)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return figure

    listed = ", ".join(f"{name} = {number}: {count}" for number, count in zip(numbers, counts, strict=True))
    return picture(f"Histogram of {name}", f"Number of {what} by {name}. {listed}", draw)


def colour_table(name: str, steps: int) -> bytes:
    """Colours of matplotlib from the low to the high end: red, green and blue of each, a byte each."""
    import matplotlib

    shades = matplotlib.colormaps[name](np.linspace(0, 1, steps))[:, :3]
    return bytes(np.rint(255 * shades).astype(np.uint8))


# What of a report is drawn by the page itself: maps, networks and curves, as data with the controls that move them.


_COLOURS = 256  # steps of the colours of a map
_STOPS = 11  # steps of its scale
_MINUS = "\N{MINUS SIGN}"
_BUTTONS = (("+", "closer", "Zoom in"), (_MINUS, "wider", "Zoom out"), ("Whole map", "whole", "Show the whole map"))
_HELP = (
    f"Click or tap a cell, or use the arrow keys, to read it; + and {_MINUS} zoom, 0 shows all; drag to move. The "
    "wheel zooms while the map has the focus."
)


def map_markup(drawn: Map, key: str) -> str:
    """A map that can be zoomed by mouse, touch and keyboard."""
    rows, columns = drawn.layers[0].cells.shape
    content = {
        "shape": drawn.shape, "cells": (rows, columns), "size": drawn.size, "upwards": drawn.upwards,
        "rows": list(map(printable, drawn.rows)), "columns": list(map(printable, drawn.columns)),
        "labels": (drawn.row_label, drawn.column_label),
        "layers": [_layer(layer) for layer in drawn.layers],
    }  # fmt: skip
    several = len(drawn.layers) > 1
    options = "".join(element("option", text(layer.label), value=i) for i, layer in enumerate(drawn.layers))
    choice = element("label", "Show ", element("select", options, class_="layer")) if several else ""
    buttons = "".join(
        element("button", sign, type="button", class_=name, title=words, aria_label=words)
        for sign, name, words in _BUTTONS
    )
    sides = zip(drawn.shape, ("rows", "columns"), (drawn.row_label, drawn.column_label), strict=True)
    what = f"{drawn.title}: {', '.join(f'{n:,} {name} ({label})' for n, name, label in sides)}"
    return element(
        "figure", element("figcaption", element("h3", text(drawn.title)), _note(drawn.note)),
        element("div", choice, buttons, class_="controls"),
        element("canvas", text(what), tabindex=0, role="application", aria_label=f"{what}. {_HELP}"),
        element("p", "&nbsp;", class_="reading", aria_live="polite"),
        "".join(_scale(layer, i) for i, layer in enumerate(drawn.layers)),
        element("p", text(_HELP), class_="note screen"), data(content), class_="map", id=key,
    )  # fmt: skip


def _layer(layer: Layer) -> dict[str, Any]:
    colours = base64.b64encode(colour_table(layer.colours, _COLOURS)).decode()
    return {"label": printable(layer.label), "bottom": layer.low, "top": layer.high, "colours": colours,
            **packed(layer.cells)}  # fmt: skip


def _scale(layer: Layer, place: int) -> str:
    """The colours with their ends and middle; that of the first layer is shown first."""
    raw = colour_table(layer.colours, _STOPS)
    stops = ", ".join("#" + raw[3 * i : 3 * i + 3].hex() for i in range(_STOPS))
    middle = (layer.low + layer.high) / 2
    ticks = "".join(element("span", number(value)) for value in (layer.low, middle, layer.high))
    bar = element("div", class_="colours", style=f"background: linear-gradient(to right, {stops})")
    missing = "" if np.isfinite(layer.cells).all() else element("div", "no value", class_="missing")
    label = element("span", text(layer.label), class_="what")
    ends = element("div", ticks, class_="ticks")
    return element("div", label, bar, ends, missing, class_="scale", data_layer=place, hidden=place > 0)


def network_markup(network: Network, key: str) -> str:
    """A network whose links are those above a threshold."""
    names = list(dict.fromkeys(name for link in network.links for name in link[:2]))
    places = {name: i for i, name in enumerate(names)}
    links = [(places[cause], places[effect], _short(value), q) for cause, effect, value, q in network.links]
    tested = any(link[3] is not None for link in links)
    passes = any(link[3] is not None and link[3] <= network.rate for link in links)
    slider = element("input", type="range", class_="threshold", min=0, max=1000, value=1000,
                     aria_label=f"Threshold of {network.label}")  # fmt: skip
    box = element("input", type="checkbox", class_="tested", checked=passes)
    switch = element("label", box, text(f" q ≤ {network.rate:g} only"))
    controls = element("div", element("label", f"{text(network.label)} at least ", slider), switch if tested else "",
                       element("output", class_="told"), class_="controls")  # fmt: skip
    shades = base64.b64encode(colour_table("Blues", 64)).decode()
    content = {"names": list(map(printable, names)), "links": links, "label": printable(network.label),
               "rate": network.rate, "colours": shades, "total": max(network.total, len(links)),
               "untested": bool(network.warning)}  # fmt: skip
    note = f"Arrows lead from cause to effect, and are darker and wider the higher the value. {network.note}"
    return element(
        "figure", element("figcaption", element("h3", "Network"), remark(network.warning), _note(note)), controls,
        element("div", class_="drawing"), element("p", "&nbsp;", class_="reading", aria_live="polite"),
        element("p", "Point at a series, or reach it by the Tab key, to see its links alone.", class_="note screen"),
        data(content), class_="network", id=key,
    )  # fmt: skip


def curves_markup(curves: Curves, key: str) -> str:
    """Charts of pairs, to which others can be added."""
    names = list(dict.fromkeys(name for pair in curves.curves for name in pair))
    places = {name: i for i, name in enumerate(names)}
    shown = [(places[cause], places[effect]) for cause, effect in curves.chosen]
    content = {
        "names": list(map(printable, names)), "x": curves.x, "x_label": curves.x_label, "y_label": curves.y_label,
        "curves": [(places[cause], places[effect], list(map(_short, values)))
                   for (cause, effect), values in curves.curves.items()],
        "chosen": shown,
    }  # fmt: skip
    controls = element("div", element("label", "Add a pair ", element("select", class_="pair")), class_="controls")
    return element(
        "figure", element("figcaption", element("h3", text(curves.title)), _note("Both directions of each pair.")),
        controls, element("div", class_="charts"), data(content), class_="curves", id=key,
    )  # fmt: skip


def picture_markup(picture: Picture, key: str) -> str:
    """A drawing, which cannot run anything since it is an image."""
    image = element("img", src=data_uri(f"image/{picture.kind}", picture.data), alt=picture.alt)
    return element("figure", element("figcaption", element("h3", text(picture.title))), image, class_="picture", id=key)


def remark(words: str) -> str:
    """What a reader must not overlook."""
    return element("p", text(words), class_="remark", role="note") if words else ""


def _note(words: str) -> str:
    return element("p", text(words.strip()), class_="note") if words.strip() else ""


def _short(value: float) -> float | None:
    """A number for the page; JSON has no NaN."""
    return float(f"{value:.5g}") if math.isfinite(value) else None


# Tables of a report: rows that sort, for readers of all kinds, and the same rows as CSV.


#: Of a table of links, which has both names of each role: these are in the file only, and the others say both.
_TWICE = ("library", "target")
_HEADS = {"cause": "cause (target)", "effect": "effect (library)", "p_value": "p", "q_value": "q", "E_of": "E of"}
_FILTERED = 8  # rows from which on a table has a field to search in
_WRAPPED = 40  # letters beyond which a text takes several lines
_WIDE = 12  # columns from which on those that say the same in all rows are told in a sentence


def table_markup(table: Table, key: str) -> str:
    """The table with its download, as HTML."""
    twice = {"cause", "effect", *_TWICE} <= set(table.columns)
    shown = [i for i, name in enumerate(table.columns) if not (twice and name in _TWICE)]
    shown, alike = _apart(table, shown)
    numeric = [_is_numeric(table, i) for i in range(len(table.columns))]
    head = "".join(
        element("th", element("button", text(_head(table.columns[i])), type="button"),
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
    note = _note(f"{table.note} {alike}")
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    region = element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=table.title)
    wide = " wide" if len(shown) >= _WIDE else ""
    return element("section", element("h3", text(table.title)), note, controls, region, class_=f"table{wide}", id=key)


def _apart(table: Table, columns: list[int]) -> tuple[list[int], str]:
    """Columns of a wide table that differ between rows, and a sentence that says what the others hold."""
    held = {i: {"" if value != value else value for value in (row[i] for row in table.rows)} for i in columns}
    alike = [i for i in columns if len(held[i]) == 1]
    if len(columns) < _WIDE or len(table.rows) < 2 or not alike:
        return columns, ""
    said = [f"{_head(table.columns[i])}: {_word(next(iter(held[i])))}" for i in alike]
    return [i for i in columns if i not in alike], f"The same in all rows: {', '.join(said)}."


def _head(name: str) -> str:
    """What stands above a column: names of series as they are, those of pyedmcl in words."""
    return _HEADS.get(name, name.replace("_", " ") if name in COMMON else name)


def _word(value: Any) -> str:
    return "none" if value is None or value == "" else number(value) if isinstance(value, float) else str(value)


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


# What was run, as a reader of a page needs it first, and all of it for those who repeat it.


_LONG = 400  # letters of the arguments, beyond which they are only among all of it


def provenance_markup(provenance: Mapping[str, Any]) -> str:
    """A list of the most important, and all of it to be opened; a sentence where there is nothing."""
    plain = _plain(provenance)
    if not plain:
        return element("p", "This result holds no record of how it was made.", class_="note")
    pairs = "".join(element("dt", text(name)) + element("dd", text(value)) for name, value in _first(plain))
    dumped = json.dumps(plain, indent=1, default=str)
    lines = "\n".join(text(line) for line in dumped.split("\n"))
    whole = element("details", element("summary", "All of it, as JSON"), element("pre", lines, tabindex=0))
    return element("section", element("h3", "What was run"), element("dl", pairs, class_="facts"), whole, class_="run")


def _plain(provenance: Any) -> dict[str, Any]:
    """Provenance of one shape; that of some stores is their manifest."""
    manifest = provenance.get("manifest") if isinstance(provenance, Mapping) else None
    if manifest is not None and hasattr(manifest, "provenance"):
        return dict(manifest.provenance())
    return dict(provenance)


def of_all_maps(provenance: Any, differing: Collection[str]) -> dict[str, Any]:
    """What a folder of several maps says, which is of the first one, without the arguments in which they differ."""
    plain = _plain(provenance)
    arguments = plain.get("arguments")
    if isinstance(arguments, Mapping):
        plain["arguments"] = {name: value for name, value in arguments.items() if name not in differing}
    return plain


def _first(plain: Mapping[str, Any]) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for name, data in (plain.get("data") or {}).items():
        if not isinstance(data, Mapping):
            continue
        size = [f"{data[key]:,} {key}" for key in ("rows", "series") if isinstance(data.get(key), int)]
        words = [str(data["file"]) if data.get("file") else "", *size,
                 f"SHA-256 {data['digest']}" if data.get("digest") else ""]  # fmt: skip
        entries.append((name if name != "data" else "input", ", ".join(filter(None, words)) or "unknown"))
    call = _call(plain)
    if call:
        entries.append(("call" if plain.get("function") else "arguments", call))
    for name, label in (("seed", "seed"), ("command", "command line")):
        if plain.get(name) is not None:
            entries.append((label, str(plain[name])))
    versions = {"pyedmcl": plain.get("version"), **(plain.get("versions") or {})}
    entries.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items() if value)))
    devices = plain.get("devices") or [plain.get("device")]
    names = [one.get("name") if isinstance(one, Mapping) else one for one in devices]
    drivers = plain.get("drivers") or [plain.get("driver")]
    where = [f"{name} (driver {driver})" if driver else str(name)
             for name, driver in zip(names, [*drivers, *[None] * len(names)], strict=False) if name]  # fmt: skip
    if where:
        entries.append(("device", ", ".join(where)))
    if plain.get("dtype") or (plain.get("arguments") or {}).get("dtype"):
        entries.append(("arithmetic", str(plain.get("dtype") or plain["arguments"]["dtype"])))
    return [(name, printable(value)) for name, value in entries if value]


def _call(plain: Mapping[str, Any]) -> str:
    arguments = plain.get("arguments")
    if not isinstance(arguments, Mapping) or not arguments:
        return str(plain.get("function") or "")
    listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
    listed = listed if len(listed) <= _LONG else listed[:_LONG] + " …"
    return f"{plain['function']}({listed})" if plain.get("function") else listed
