"""What of a report is drawn by the page itself: maps, networks and curves, as data with the controls that move them."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from .cells import packed
from .content import Curves, Layer, Map, Network, Picture
from .markup import data, data_uri, element, number, printable, text
from .pictures import colour_table

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
               "rate": network.rate, "colours": shades}  # fmt: skip
    note = f"Arrows lead from cause to effect, and are darker and wider the higher the value. {network.note}"
    return element(
        "figure", element("figcaption", element("h3", "Network"), _note(note)), controls,
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


def _note(words: str) -> str:
    return element("p", text(words.strip()), class_="note") if words.strip() else ""


def _short(value: float) -> float | None:
    """A number for the page; JSON has no NaN."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
