"""What a result says about the search for neighbours: which one ran, why, and how good it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .choose import Choice
from .costs import Decision

if TYPE_CHECKING:
    from .recall import Measured

_APPROXIMATE = ("ivf", "hnsw")


def record(E: int, choice: Choice, decision: Decision, measured: Measured | None = None) -> dict[str, Any]:
    """The record of one library and dimension.

    Parameters
    ----------
    E : int
    choice : Choice
        What was asked for.
    decision : Decision
        What ran, and why.
    measured : Measured, optional
        Recall of an approximate search; of no account where another one ran in the end.
    """
    known = measured if decision.search in _APPROXIMATE else None
    return {
        "E": E, "asked": choice.search, "used": decision.search, "why": decision.why, "target": choice.recall,
        "recall": 1.0 if known is None else known.recall,
        "interval": (1.0, 1.0) if known is None else known.interval,
        "measured": "not needed: exact" if known is None else known.how,
    }  # fmt: skip


def without_search(E: int, choice: Choice, why: str) -> list[dict[str, Any]]:
    """The record where another search was asked for and none was needed; none for exact search."""
    return [] if choice.search == "exact" else [record(E, choice, Decision("exact", why))]


def add(records: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    """Append the records that are not there yet."""
    records += [one for one in more if one not in records]
