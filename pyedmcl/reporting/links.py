"""The strongest links of a map that may be larger than memory, as tables, networks and chosen curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from ..io.edges import Strongest, between_series, own_targets
from .content import Network, Wishes

_CURVES = 6  # pairs whose curves are shown where none were named
_SELECTABLE = 200  # pairs whose curves can be chosen in the page


#: Cause, effect, strength, and q-value or None.
Arrow = tuple[str, str, float, float | None]


class Links(NamedTuple):
    """Positions of effects (libraries) and causes (targets) and the strength of each link, the strongest first."""

    effects: NDArray[np.int_]
    causes: NDArray[np.int_]
    strength: NDArray[np.float64]

    def each(self) -> list[tuple[int, int, float]]:
        """Position of the effect, position of the cause, and strength."""
        return list(zip(self.effects.tolist(), self.causes.tolist(), self.strength.tolist(), strict=True))

    def arrows(self, effects: Sequence[str], causes: Sequence[str], q_value: Any = None) -> list[Arrow]:
        """As a network takes them; ``q_value`` is a map."""
        return [(causes[j], effects[i], value, None if q_value is None else float(q_value[i, j]))
                for i, j, value in self.each()]  # fmt: skip


def strongest_links(matrix: Any, names: Sequence[str], targets: Sequence[str] | None, top: int) -> Links:
    """The ``top`` largest values of a series with another."""
    n, strongest = matrix.shape[1], Strongest(top)
    for start, values in between_series(matrix, own_targets(list(names), targets)):
        strongest.add(values.reshape(-1), start * n)
    return Links(strongest.cells // n, strongest.cells % n, strongest.values)


def network_of(links: Sequence[Arrow], label: str, rate: float = 0.05, note: str = "") -> tuple[Network, ...]:
    """A network of links of strength above 0; nothing where there are none."""
    drawn = [(cause, effect, float(value), None if q is None or q != q else float(q))
             for cause, effect, value, q in links if value > 0]  # fmt: skip
    return (Network(drawn, label, rate, note),) if drawn else ()


def of_total(kept: int, total: int, what: str = "pairs") -> str:
    """How many rows a table has of how many."""
    return f"All {total:,} {what}." if kept >= total else f"The {kept:,} strongest of {total:,} {what}."


def pairs_with_curves(
    wishes: Wishes, causes: Sequence[str], effects: Sequence[str], strongest: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs (cause, effect) whose curves the page holds, and those that it shows first.

    Parameters
    ----------
    wishes : Wishes
    causes, effects : sequence of str
        Names that there are.
    strongest : sequence of (str, str)

    Raises
    ------
    InputError
        A pair that was asked for is not there.
    """
    for cause, effect in wishes.pairs:
        if cause not in causes or effect not in effects or cause == effect:
            names = ", ".join(map(repr, causes[:8])) + (", ..." if len(causes) > 8 else "")
            raise InputError(
                f"pairs: there is no pair with cause {shown(cause)} and effect {shown(effect)}; series are {names}"
            )
    held = list(dict.fromkeys([*wishes.pairs, *strongest[:_SELECTABLE]]))
    listed, both = set(), []
    for cause, effect in held:  # a chart shows both directions
        if (effect, cause) not in listed:
            listed.add((cause, effect))
            both.append((cause, effect))
    chosen = list(wishes.pairs) or both[:_CURVES]
    return both, chosen


def both_directions(
    pairs: Sequence[tuple[str, str]], causes: Sequence[str], effects: Sequence[str]
) -> list[tuple[tuple[str, str], int, int]]:
    """Each pair and its opposite, where there is one, with the positions of effect (row) and cause (column)."""
    rows = {name: place for place, name in enumerate(effects)}
    columns = {name: place for place, name in enumerate(causes)}
    links = []
    for cause, effect in pairs:
        for one, other in ((cause, effect), (effect, cause)):
            if one in columns and other in rows:
                links.append(((one, other), rows[other], columns[one]))
    return links
