"""Checks of what the recurrence functions are given: each wrong argument is named, with what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import arguments as shared
from ..data.arguments import precision, reporter
from ..errors import InputError
from .conventions import Convention

__all__ = [
    "THRESHOLDS", "integer", "minimum", "only_alone", "precision", "radii_of", "reporter", "threshold_named", "window",
]  # fmt: skip

THRESHOLDS = ("fixed", "corridor", "recurrence_rate", "neighbours")
_MEANING = {
    "lmin": "the least length of a diagonal line",
    "vmin": "the least length of a vertical line",
    "wmin": "the least length of a white vertical line",
    "theiler": "the number of diagonals to leave out on either side of the main one, plus itself",
}


def integer(name: str, value: object, least: int) -> int:
    """``value`` as an int of at least ``least``; the message says what the argument means."""
    return shared.integer(name, value, least, _MEANING.get(name, ""))


def minimum(name: str, value: object) -> int:
    """A least length of lines."""
    return integer(name, value, 1)


def threshold_named(value: object) -> str:
    """One of the kinds of threshold."""
    return shared.choice("threshold", value, THRESHOLDS)


def radii_of(value: object, threshold: str, name: str = "radius") -> tuple[list[Any], bool]:
    """What ``radius`` means under a threshold, one of them for each matrix, and whether a sequence was given.

    Returns
    -------
    radii : list
        Floats; pairs of floats for "corridor"; ints for "neighbours".
    several : bool
        A sequence was given, so that the result is a table.
    """
    if threshold == "corridor":
        items = _items(value)
        if items is not None and len(items) == 2 and all(_items(item) is None for item in items):
            return [_corridor(items, name)], False
        if not items or any(_items(item) is None for item in items):
            raise InputError(
                f"{name}={shared.shown(value)}: threshold='corridor' needs a pair (inner, outer), or several pairs"
            )
        return [_corridor(item, name) for item in items], True
    items = _items(value)
    values: Sequence[object] = [value] if items is None else items
    if not values:
        raise InputError(f"{name}={shared.shown(value)}: at least one radius is needed")
    check = {"fixed": _radius, "recurrence_rate": _rate, "neighbours": _neighbours}[threshold]
    return [check(item, name) for item in values], items is not None


def _items(value: object) -> list[Any] | None:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None
    return list(value) if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)) else None


def _radius(value: object, name: str) -> float:
    needed = "a positive, finite number, in the unit of the data,"
    return shared.real(name, value, needed, lambda radius: 0 < radius < math.inf)


def _rate(value: object, name: str) -> float:
    needed = "a number in (0, 1), which threshold='recurrence_rate' takes for the wanted rate,"
    return shared.real(name, value, needed, lambda rate: 0 < rate < 1)


def _neighbours(value: object, name: str) -> int:
    try:
        return integer(name, value, 1)
    except InputError:
        raise InputError(
            f"{name}={shared.shown(value)}: threshold='neighbours' takes the number of neighbours, an integer of at "
            "least 1"
        ) from None


def _corridor(value: Any, name: str) -> tuple[float, float]:
    items = list(value)
    if len(items) != 2:
        raise InputError(f"{name}={shared.shown(value)}: a corridor is a pair (inner, outer)")
    inner, outer = (shared.real(name, v, "a pair of finite numbers (inner, outer)") for v in items)
    if not 0 <= inner < outer < math.inf:
        raise InputError(f"{name}={shared.shown(value)}: 0 <= inner < outer is needed, both finite")
    return inner, outer


def window(theiler: object, convention: Convention, n_rows: int, n_columns: int) -> int:
    """The Theiler window as the counts need it.

    Raises
    ------
    InputError
        If it covers the matrix, or the convention knows none.
    """
    width = integer("theiler", theiler, 0)
    if not convention.has_theiler:
        if width > 1:
            raise InputError(
                f"theiler={theiler!r} contradicts convention={convention.name!r}, which has no Theiler window; "
                "leave it out, or choose another convention"
            )
        return 1  # the main diagonal is counted apart, since it is a line but not the longest
    most = max(n_rows, n_columns)
    if width >= most:
        raise InputError(
            f"theiler={width} leaves no cell of a {n_rows} x {n_columns} matrix: at most {most - 1} is possible"
        )
    return width


def only_alone(convention: Convention, what: str) -> None:
    """Refuse cross and joint recurrence under a convention that has none."""
    if not convention.has_theiler:
        raise InputError(
            f"{what} contradicts convention={convention.name!r}, which knows recurrence of one series only; "
            "choose another convention"
        )
