"""What a result says about the search for neighbours: which one ran, why, and how good it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .choose import SearchRequest
from .costs import SearchDecision

if TYPE_CHECKING:
    from .recall import Measured

_APPROXIMATE = ("ivf", "hnsw")
Record = dict[str, Any]


def record(E: int, request: SearchRequest, decision: SearchDecision, measured: Measured | None = None) -> Record:
    """The record of one library and dimension.

    Parameters
    ----------
    E : int
    request : SearchRequest
        What the caller asked for.
    decision : SearchDecision
        What ran, and why.
    measured : Measured, optional
        Recall of an approximate search; of no account where another one ran in the end.
    """
    of_sample = measured if decision.search in _APPROXIMATE else None
    return {
        "E": E, "asked": request.search, "used": decision.search, "why": decision.why, "target": request.recall,
        "recall": 1.0 if of_sample is None else of_sample.recall,
        "interval": (1.0, 1.0) if of_sample is None else of_sample.interval,
        "measured": "not needed: exact" if of_sample is None else of_sample.how,
    }  # fmt: skip


def without_search(E: int, request: SearchRequest, why: str) -> list[Record]:
    """The record where a search was asked for by its name and none was needed."""
    return [] if request.search in ("exact", "exhaustive") else [record(E, request, SearchDecision("exhaustive", why))]


def add(records: list[Record], more: Iterable[Record]) -> None:
    """Append the records that are not in the list yet."""
    for candidate in more:
        if candidate not in records:
            records.append(candidate)
