"""The rules in which tools for recurrence quantification differ, as four presets.

The tools agree on what a line is and on the formulas; they differ in whether the main diagonal (line of identity) and
the Theiler window count, in the threshold at equality, and in what stands in denominators.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        Denominator of the recurrence rate: "all" cells, or those "outside" the Theiler window. In cross recurrence,
        where a window is the exception, all tools take all cells.
    longest_from_minimum : bool
        Longest diagonal lines shorter than lmin are no lines (0); else the longest line of any length.
    white_borders : bool
        White vertical runs that touch the border of the matrix are lines.
    columns : str
        Whose points the columns stand for in cross recurrence, "x" or "y": vertical lines stay at one of them.
    """

    name: str
    strict: bool
    theiler_everywhere: bool
    has_theiler: bool
    rate_over: str
    longest_from_minimum: bool
    white_borders: bool
    columns: str


CONVENTIONS = {
    c.name: c
    for c in (
        Convention("pyrqa", True, False, True, "all", False, True, "x"),
        Convention("accrqa", False, False, False, "all", False, False, "x"),
        Convention("recurrenceanalysis", False, True, True, "outside", True, False, "y"),
        Convention("crqa", False, True, True, "all", True, False, "x"),
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
