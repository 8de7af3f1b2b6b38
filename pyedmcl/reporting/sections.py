"""Which section a result gets: one of its own, or what every result has in common (facts, picture, table)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, shown
from ..io.result import Result
from .content import Part, Section, Table, Wishes
from .maps import histogram_of_E
from .pictures import picture

#: Module and function that make the section of a class.
_OWN = {
    "XmapResult": ("maps", "of_xmap"),
    "XmapEdges": ("maps", "of_edges"),
    "XmapSignificance": ("maps", "of_significance"),
    "XmapGrid": ("grids", "of_grid"),
    "GridChoice": ("grids", "of_choice"),
    "CcmMatrixResult": ("pairs", "of_ccm_matrix"),
    "CausalNetwork": ("pairs", "of_network"),
    "RecurrencePlot": ("recurrence", "of_recurrence_plot"),
    "DistancePlot": ("recurrence", "of_distance_plot"),
    "RecurrenceResult": ("recurrence", "of_matrix"),
    "RecurrenceTable": ("recurrence", "of_matrices"),
    "RqaBatch": ("recurrence", "of_matrices"),
    "RecurrenceNetwork": ("recurrence", "of_network"),
}
_TITLES = {
    "CcmResult": "Convergent cross mapping", "LaggedCcmResult": "Cross mapping against Tp",
    "CcmSignificance": "Significance of cross mapping", "EmbedDimensionResult": "Embedding dimension",
    "SkillResult": "Skill", "SmapResult": "S-map", "NonlinearResult": "Skill of S-map against theta",
    "SimplexResult": "Simplex projection", "EmbeddingScan": "Embedding scan", "CheckResult": "Check of the data",
    "PartialCcm": "Partial cross mapping", "MultiviewResult": "Multiview embedding",
    "WindowedMap": "Cross maps in windows",
    "WindowedCcm": "Convergent cross mapping in windows",
    "WindowedCcmMatrix": "Convergent cross mapping of all pairs in windows", "WindowedForecast": "Forecasts in windows",
    "LagProfile": "Lag profile of cross recurrence", "FalseNeighbors": "False nearest neighbours",
    "MutualInformation": "Mutual information", "KnnResult": "Nearest neighbours", "EmbedResult": "Delay embedding",
}  # fmt: skip
_FEW = 4  # numbers of an array that is shown as a fact


def section_of(result: object, wishes: Wishes) -> Section:
    """The section of a result.

    Raises
    ------
    InputError
        It is none of ours, or what was asked for does not fit it.
    MissingExtraError
        A package is not installed.
    """
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
            parts.append(picture("Picture", f"{title}: {result!r}", result.plot))
        except InputError as error:  # this one has no picture
            remarks.append(str(error))
    parts += _table(result, wishes)
    E = np.atleast_1d(getattr(result, "E", 0))
    if hasattr(result, "names") and E.ndim == 1 and E.size > 1 and E.dtype.kind in "iu":
        parts += histogram_of_E(E)
    # Arrays are in the picture and the table.
    facts = {name: words for name, words in result._facts().items() if _is_plain(getattr(result, name, words))}
    return Section(title, "", facts, tuple(parts), tuple(remarks), getattr(result, "provenance", None) or {})


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
