"""The page of a report: one file with its style, its script and its data, which may load nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .content import Curves, Map, Network, Picture, Section, Table, Words
from .figures import curves_markup, map_markup, network_markup, picture_markup
from .markup import element, text
from .provenance import provenance_markup
from .tables import table_markup

_SCRIPTS = ("cells.js", "map.js", "network.js", "curves.js", "table.js")
_FOLDER = Path(__file__).parent / "page"


def document(sections: Sequence[Section], title: str | None) -> bytes:
    """The page of some sections.

    Parameters
    ----------
    sections : sequence of Section
    title : str or None
        By default that of the only section.
    """
    from .. import __version__

    style, script = _file("page.css"), _script()
    heading = title or (sections[0].title if len(sections) == 1 else f"{len(sections)} results")
    # What a name may pretend to be, the browser runs this one script only, and asks nobody for anything.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = "".join([
        '<meta charset="utf-8">', f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="pyedmcl {text(__version__)}">', element("title", text(heading)),
        element("style", style),
    ])  # fmt: skip
    alone = len(sections) == 1
    body = "".join(_section(section, number, alone) for number, section in enumerate(sections, 1))
    contents = "" if alone else element("nav", element("ol", "".join(
        element("li", element("a", text(section.title), href=f"#s{number}"))
        for number, section in enumerate(sections, 1)
    )), aria_label="Contents")  # fmt: skip
    scriptless = element("p", "Maps, networks and curves need JavaScript; tables do not.", class_="remark")
    foot = element("footer", element("p", f"Written by pyedmcl {text(__version__)}. This file needs no network."))
    page = "".join([
        '<!doctype html>\n<html lang="en"><head>', head, "</head>\n<body>",
        element("header", element("h1", text(heading))), element("noscript", scriptless), contents,
        element("main", body), foot, element("script", script), "</body></html>\n",
    ])  # fmt: skip
    return page.encode("utf-8", "backslashreplace")


def _section(section: Section, number: int, alone: bool) -> str:
    parts = "".join(_part(part, f"s{number}-{place}") for place, part in enumerate(section.parts, 1))
    heading = "" if alone and not parts else element("h2", text(section.title), class_="only" if alone else None)
    remarks = "".join(element("p", text(remark), class_="remark", role="note") for remark in section.remarks)
    facts = "".join(element("dt", text(name)) + element("dd", text(value)) for name, value in section.facts.items())
    lead = element("p", text(section.lead)) if section.lead else ""
    listed = element("dl", facts, class_="facts") if facts else ""
    run = provenance_markup(section.provenance)
    return element("article", heading, remarks, lead, listed, run, parts, id=f"s{number}")


def _part(part: Any, key: str) -> str:
    return _MARKUP[type(part)](part, key)


def _words(words: Words, key: str) -> str:
    return element("section", element("h3", text(words.title)), element("p", text(words.text)), id=key)


_MARKUP: Mapping[type, Callable[[Any, str], str]] = {
    Map: map_markup, Table: table_markup, Network: network_markup, Curves: curves_markup, Picture: picture_markup,
    Words: _words,
}  # fmt: skip


@cache
def _file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _script() -> str:
    return '"use strict";\n' + "".join(_file(name) for name in _SCRIPTS)
