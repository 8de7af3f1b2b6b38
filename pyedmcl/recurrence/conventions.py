"""The rules in which tools for recurrence quantification differ, as presets.

The tools agree on what a line is and on the formulas; they differ in whether the main diagonal (line of identity) and
the Theiler window count, in the threshold at equality, and in what stands in denominators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..data.arguments import shown
from ..errors import InputError


@dataclass(frozen=True)
class Convention:
    """The rules of one family of tools.

    Attributes
    ----------
    name : str
    strict : bool
        Recurrent is d < r; else d <= r.
    theiler_everywhere : bool
        The Theiler window is left out of points, vertical and white lines too; else of diagonal lines only.
    has_theiler : bool
        There is a Theiler window at all. Where not, the main diagonal always is a diagonal line, but not the longest.
    rate_over : str
        Denominator of the recurrence rate: "all" cells; those "outside" the Theiler window, but all of them in cross
        recurrence, where a window is the exception; or "always outside".
    longest_from_minimum : bool
        Longest diagonal lines shorter than lmin are no lines (0); else the longest line of any length.
    white_borders : bool
        White vertical runs that touch the border of the matrix are lines.
    columns : str
        Whose points the columns stand for in cross recurrence, "x" or "y": vertical lines stay at one of them.
    cross_theiler : int
        The Theiler window of cross recurrence where none is asked for; that of one series is 1.
    mean_of_pairs : bool
        The mean distance of one series is that of different points; else each point's distance to itself counts, too.
    over_none : mapping
        Short names of measures to their value where there is nothing to compute them from; NaN for all others.
    """

    name: str
    strict: bool
    theiler_everywhere: bool
    has_theiler: bool
    rate_over: str
    longest_from_minimum: bool
    white_borders: bool
    columns: str
    cross_theiler: int = 0
    mean_of_pairs: bool = True
    over_none: Mapping[str, float] = field(default_factory=dict)

    def none(self, measure: str) -> float:
        """What a measure is over no lines."""
        return self.over_none.get(measure, math.nan)

    def outside(self, symmetric: bool) -> bool:
        """Whether the recurrence rate divides by the cells outside the Theiler window."""
        return self.rate_over == "always outside" or (self.rate_over == "outside" and symmetric)


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(
            "pyrqa", True, False, True, "all", False, True, "x", cross_theiler=1,
            over_none={"ENTR": 0.0, "VENTR": 0.0, "WENTR": 0.0},
        ),
        Convention("accrqa", False, False, False, "all", False, False, "x"),
        Convention(
            "recurrenceanalysis", False, True, True, "outside", True, False, "y",
            over_none={"DET": 0.0, "L": 0.0, "LAM": 0.0, "TT": 0.0, "W": 0.0},
        ),
        Convention("crqa", False, True, True, "all", True, False, "x", mean_of_pairs=False, over_none={"L": 0.0}),
        Convention(
            "crqa-2.1", False, True, True, "always outside", True, False, "x", mean_of_pairs=False,
            over_none={"L": 0.0},
        ),
    )
}


def convention_named(name: object) -> Convention:
    """The preset called ``name``.

    Raises
    ------
    InputError
        For any other name; those there are, are listed.
    """
    convention = CONVENTIONS.get(name) if isinstance(name, str) else None
    if convention is None:
        raise InputError(f"convention={shown(name)}: choose one of {', '.join(map(repr, CONVENTIONS))}")
    return convention
