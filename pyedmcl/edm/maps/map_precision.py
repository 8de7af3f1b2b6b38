"""How precise the skill of maps is to be: what ``precision=`` allows, and what is said where it was not possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError, shown, warn
from ..shared import arguments

PRECISIONS = ("full", "compact")


def check_map_precision(precision: Any, dtype: Any, others: Mapping[str, Any]) -> str:
    """The precision of a map, checked.

    Parameters
    ----------
    precision : object
        What was given.
    dtype : object
        Number type of the map.
    others : mapping
        What a map of less precision cannot have -> whether it was asked for.

    Raises
    ------
    InputError
        Another one, or one that does not suit the rest.
    """
    name = arguments.choice("precision", precision, PRECISIONS)
    if name == "full":
        return name
    reasons = [words for words, given in others.items() if given]
    if arguments.precision(dtype) != "float32":
        reasons.append(f"dtype={shown(dtype)}")
    if reasons:
        raise InputError(
            f"precision={shown(name)} cannot be used with {reasons[0]}: leave one of them out; less precision is "
            "for maps with Pearson's rho in float32"
        )
    return name


def tell_in_full(provenance: Mapping[str, Any]) -> None:
    """Warn where targets of a map with ``precision="compact"`` were computed in full."""
    entries = [entry for entry in provenance.get("precision", ()) if entry["full"]]
    if entries:
        worst = max(entries, key=lambda entry: int(entry["full"]))
        warn(
            f"precision='compact': {worst['full']} of {worst['targets']} targets were computed in full, since "
            f"{worst['why']}"
        )
