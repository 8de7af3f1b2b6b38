"""The function that writes a report: one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import boolean, real
from ..atomic_files import output_path, path_of, writing
from ..errors import InputError, shown
from ..jobs.status import stores_of
from ..jobs.store import open_store
from ..opening import open_result, saved_in
from ..results.result import Result
from .content import (
    Curves,
    Map,
    Network,
    Part,
    Picture,
    Section,
    Table,
    Wishes,
    Words,
    curves_markup,
    element,
    map_markup,
    network_markup,
    picture,
    picture_markup,
    provenance_markup,
    remark,
    require_matplotlib,
    table_markup,
    text,
)
from .maps import histogram_of_E

# Which section a result gets: one of its own, or what every result has in common (facts, picture, table).


#: Module and function that make the section of a class.
_OWN = {
    "XmapResult": ("maps", "of_xmap"),
    "XmapEdges": ("maps", "of_edges"),
    "XmapSignificance": ("maps", "of_significance"),
    "XmapGrid": ("maps", "of_grid"),
    "GridChoice": ("maps", "of_choice"),
    "CcmMatrixResult": ("maps", "of_ccm_matrix"),
    "CausalNetwork": ("maps", "of_network"),
    "RecurrencePlot": ("maps", "of_recurrence_plot"),
    "DistancePlot": ("maps", "of_distance_plot"),
    "RecurrenceResult": ("maps", "of_matrix"),
    "RecurrenceTable": ("maps", "of_matrices"),
    "RqaBatch": ("maps", "of_matrices"),
    "RecurrenceNetwork": ("maps", "recurrence_of_network"),
}
_TITLES = {
    "CcmResult": "Convergent cross mapping", "LaggedCcmResult": "Cross mapping against Tp",
    "CcmSignificance": "Significance of cross mapping", "EmbedDimensionResult": "Embedding dimension",
    "SkillResult": "Skill", "SmapResult": "S-map", "NonlinearResult": "Skill of S-map against theta",
    "SimplexResult": "Simplex projection", "EmbeddingScan": "Embedding scan", "CheckResult": "Check of the data",
    "Suggestion": "Recommended parameters", "Comparison": "Difference of two groups",
    "PartialCcm": "Partial cross mapping", "MultiviewResult": "Multiview embedding",
    "WindowedMap": "Cross maps in windows", "WindowedSignificance": "Significance in windows",
    "WindowedCcm": "Convergent cross mapping in windows",
    "WindowedCcmMatrix": "Convergent cross mapping of all pairs in windows", "WindowedForecast": "Forecasts in windows",
    "LagProfile": "Lag profile of cross recurrence", "FalseNeighbors": "False nearest neighbours",
    "RqaSignificance": "Significance of recurrence measures",
    "MutualInformation": "Mutual information", "KnnResult": "Nearest neighbours", "EmbedResult": "Delay embedding",
}  # fmt: skip
_FEW = 4  # numbers of an array that is shown as a fact


def section_of(result: object, wishes: Wishes) -> Section:
    """The section of a result."""
    if not isinstance(result, Result):
        raise InputError(
            f"result={shown(result)}: what a function of pyedmcl returned is needed, or the path of what was stored"
        )
    maker = _OWN.get(type(result).__name__)
    if maker is None or (maker[1] == "of_choice" and getattr(result, "axes", None)):
        return _common(result, wishes)
    make: Callable[[Any, Wishes], Section] = getattr(importlib.import_module(f".{maker[0]}", __package__), maker[1])
    return make(result, wishes)


def _common(result: Any, wishes: Wishes) -> Section:
    kind = type(result).__name__
    title = _TITLES.get(kind, kind)
    parts: list[Part] = []
    remarks: list[str] = []
    if hasattr(result, "plot"):
        try:
            parts.append(picture("Picture", f"{title}: {result!r}".replace("\n", ";"), result.plot))
        except InputError as error:  # this one has no picture
            remarks.append(str(error))
    parts = [*_answered(result), *parts, *_table(result, wishes)]
    E = np.atleast_1d(getattr(result, "E", 0))
    if hasattr(result, "names") and E.ndim == 1 and E.size > 1 and E.dtype.kind in "iu":
        parts += histogram_of_E(E)
    # Arrays are in the picture and the table.
    facts = {name: words for name, words in result._facts().items() if _is_plain(getattr(result, name, words))}
    return Section(title, "", facts, tuple(parts), tuple(remarks), getattr(result, "provenance", None) or {})


def _answered(result: Any) -> list[Part]:
    """What the result says of itself first, where that is not the beginning of its table."""
    answer = None if result.answer_columns else result.answer()
    return [] if answer is None else [Table("Result", tuple(answer.columns), [tuple(row) for row in answer.rows],
                                            answer.more())]  # fmt: skip


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a text or a few of them."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and 0 < value.size <= _FEW and value.dtype.kind in "biuf"
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and all(map(_is_plain, value))
    return isinstance(value, (int, float, np.number, np.bool_)) or (isinstance(value, str) and value != "")


def _table(result: Any, wishes: Wishes) -> list[Part]:
    if not hasattr(result, "to_frame"):
        return []
    frame = result.to_frame()
    total = len(frame)
    numbered = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
    frame = frame.head(wishes.top)
    frame = frame if numbered else frame.reset_index()
    note = f"The first {wishes.top:,} of {total:,} rows." if total > wishes.top else ""
    rows = [tuple(row) for row in frame.astype(object).to_numpy().tolist()]
    return [Table("Table", tuple(map(str, frame.columns)), rows, note)] if rows else []


# The page of a report: one file with its style, its script and its data, which may load nothing from anywhere.


_SCRIPTS = ("cells.js", "map.js", "network.js", "curves.js", "table.js")
_FOLDER = Path(__file__).parent / "page"
_SENTENCES = 12  # that are seen at once


def document(sections: Sequence[Section], title: str | None) -> bytes:
    """The page of some sections.

    Parameters
    ----------
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
        element("li", element("a", text(section.title), href=f"#s{number}"), text(_first_words(section)))
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
    remarks = "".join(map(remark, section.remarks))
    facts = "".join(element("dt", text(name)) + element("dd", text(value)) for name, value in section.facts.items())
    listed = element("dl", facts, class_="facts") if facts else ""
    run = element("details", element("summary", "Data, arguments and provenance"), listed,
                  provenance_markup(section.provenance), class_="made")  # fmt: skip
    return element("article", heading, remarks, _answer(section), parts, run, id=f"s{number}")


def _answer(section: Section) -> str:
    """Sentences as a list, of which a long one folds its end, and how to read what follows."""
    lead = element("p", text(section.lead), class_="note") if section.lead else ""
    listed = [element("li", _sentence(sentence)) for sentence in section.answer]
    first, rest = listed[:_SENTENCES], listed[_SENTENCES:]
    more = element("details", element("summary", f"{len(rest):,} more"), element("ul", *rest)) if rest else ""
    return element("section", element("ul", *first) if first else "", more, lead, class_="answer")


def _sentence(sentence: str | tuple[str, str]) -> str:
    if isinstance(sentence, str):
        return text(sentence)
    return element("details", element("summary", text(sentence[0])), text(sentence[1]))


def _first_words(section: Section) -> str:
    return f": {section.answer[0]}" if section.answer and isinstance(section.answer[0], str) else ""


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


SUFFIXES = (".html", ".htm")
_MOST = 20_000  # rows of a table, beyond which pages are slow


def report(
    result: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    top: int = 500,
    cluster: bool = False,
    pairs: Sequence[tuple[str, str]] | None = None,
    rate: float = 0.05,
) -> Path:
    """Write what there is to see of a result as one HTML file, which needs no network.

    It shows what was run (data and its digest, arguments, versions, device), and of maps a heat map that can be zoomed,
    a table of the strongest links that can be sorted and downloaded, with p and q values where the result has them, a
    network with a slider for its threshold, a histogram of E, and curves of convergence or of skill against lag. Plots
    of recurrence can be zoomed, too. Other results show their picture and their table.

    Parameters
    ----------
    result : result, path, or several of them
        What a function returned, or a file or folder that :func:`open_result` opens, finished or not. Several become
        sections of one page.
    path : path
        Ends in ``.html``. A file that is there is replaced, once the new one is complete.
    title : str, optional
        Of the page.
    top : int
        Rows of a table: the strongest links.
    cluster : bool
        Put the series of maps in order of likeness (average linkage of their rows and columns). Needs SciPy.
    pairs : sequence of (str, str), optional
        (cause, effect), whose curves are shown first; by default the strongest.
    rate : float
        False discovery rate at which links count as significant, for the switch beside the network.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    OutputError
        Another suffix, or a folder that is not there.
    StoreWriteError
        The file cannot be written; one that was there is kept.
    InputError
        There is nothing at a path, ``result`` is no result, or an argument cannot be used.
    StoreForeignError, StoreMismatchError, StoreError
        As for :func:`open_result`.
    MissingExtraError
        matplotlib, or for ``cluster`` SciPy, is not installed.

    See Also
    --------
    open_result : opens what was stored.

    Notes
    -----
    Cost: reads a map twice, part by part; a map of more than 700 series is shown by means of blocks. The file is
    the same each time, and has a few MB.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pyedmcl.report(result, f"{folder}/map.html")
    ...     page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    place = output_path(path, SUFFIXES, "a report")
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or not 1 <= top <= _MOST:
        raise InputError(f"top={shown(top)}: an integer of 1 to {_MOST:,} rows is needed")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title={shown(title)}: a text is needed")
    share = real("rate", rate, "a number between 0 and 1", lambda value: 0 < value < 1)
    wishes = Wishes(int(top), boolean("cluster", cluster), _pairs(pairs), share)
    require_matplotlib()
    several = isinstance(result, (list, tuple)) and not hasattr(result, "provenance")
    results = list(result) if several else [result]
    if not results:
        raise InputError("result: there is none; name one at least")
    sections = [_report_section(one, wishes) for one in results]
    if wishes.pairs and not any(isinstance(part, Curves) for section in sections for part in section.parts):
        raise InputError("pairs: there are no curves of pairs here; those of convergence, lags and grids have some")
    page = document(sections, title)
    with writing(place, "the report") as draft:
        draft.write(page)
    return place


def _pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    if pairs is None:
        return ()
    named = [tuple(pair) if isinstance(pair, (list, tuple)) else () for pair in pairs] if isinstance(
        pairs, (list, tuple)) else [()]  # fmt: skip
    if not all(len(pair) == 2 and all(isinstance(name, str) for name in pair) for pair in named):
        raise InputError(f"pairs={shown(pairs)}: pairs (cause, effect) of names are needed, such as [('x', 'y')]")
    return tuple((str(cause), str(effect)) for cause, effect in named)


def _report_section(one: Any, wishes: Wishes) -> Section:
    """The section of a result, or of what lies at a path."""
    if not isinstance(one, (str, os.PathLike)):
        return section_of(one, wishes)
    where = path_of(one, "result")
    opened = open_result(where)
    section = section_of(opened, wishes)
    remarks = (*_unfinished(where), *section.remarks)
    return replace(section, remarks=remarks, facts={"result": str(where), **section.facts})


def _unfinished(where: Path) -> tuple[str, ...]:
    """What to say of a folder whose run has not ended."""
    if not where.is_dir() or saved_in(where) is not None:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # who opened it was warned already
        stores = [open_store(store.path) for store in stores_of(where)]
    pending, total = sum(len(store.pending()) for store in stores), sum(store.n_blocks for store in stores)
    if not pending:
        return ()
    return (
        f"This result is not finished: {pending:,} of {total:,} blocks are missing, and are blank here. Run its "
        "command again, which continues it, and write the report anew.",
    )
