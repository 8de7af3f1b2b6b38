"""The measures of recurrence quantification, each with its short name.

To add a measure: a property of :class:`Measures` here, a row of the table "Measures" in ``docs/recurrence.md``, a test.
Results, tables and the command line list what is here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ..io.labels import Label
from . import formulas
from .cells import both_sides, cells_of_both_sides
from .counted import CountedMatrix

N = TypeVar("N", int, float)

#: Short name of each measure to its long one, which is that of the property; in the order in which results list them.
SHORT_NAMES: dict[str, str] = {}


#: Unit and meaning of each measure by its long name.
MEASURE_LABELS: dict[str, Label] = {}


def _short(name: str, unit: str = "1") -> Callable[[Callable[[Any], N]], Callable[[Any], N]]:
    """Give the measure that follows a short name, a unit, and the convention's value where there is none."""

    def register(measure: Callable[[Any], N]) -> Callable[[Any], N]:
        SHORT_NAMES[name] = measure.__name__
        MEASURE_LABELS[measure.__name__] = Label(unit, (measure.__doc__ or "").strip().rstrip("."))
        measure.__doc__ = f"{name}: {measure.__doc__}"

        @functools.wraps(measure)
        def or_none(self: Any) -> Any:
            value = measure(self)
            return self.convention.none(name) if value != value else value

        return or_none

    return register


def short_name(long: str) -> str:
    """The short name of a measure."""
    return next(short for short, name in SHORT_NAMES.items() if name == long)


class Measures(CountedMatrix):
    """Numbers that follow from the counts. Over no lines they are NaN, or what the convention says; lengths are 0."""

    @property
    @_short("RR")
    def recurrence_rate(self) -> float:
        """Recurrent points / cells."""
        return formulas.ratio(self.counts.points, self.cells)

    @property
    @_short("DET")
    def determinism(self) -> float:
        """Points on diagonal lines of at least lmin / points on all diagonal lines."""
        return formulas.share(self._diagonals, self.lmin)

    @property
    @_short("L", "rows")
    def average_diagonal_line(self) -> float:
        """Mean length of diagonal lines of at least lmin."""
        return formulas.average(self._diagonals, self.lmin)

    @property
    @_short("Lmax", "rows")
    def longest_diagonal_line(self) -> int:
        """Length of the longest diagonal line, 0 where there is none."""
        least = self.lmin if self.convention.longest_from_minimum else 1
        return formulas.longest(self._diagonals if self.convention.has_theiler else self.counts.diagonals, least)

    @property
    @_short("DIV", "1 / rows")
    def divergence(self) -> float:
        """1 / Lmax."""
        return formulas.inverse(self.longest_diagonal_line)

    @property
    @_short("ENTR", "nats")
    def entropy_diagonal_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of diagonal lines of at least lmin."""
        return formulas.entropy(self._diagonals, self.lmin)

    @property
    @_short("LAM")
    def laminarity(self) -> float:
        """Points on vertical lines of at least vmin / points on all vertical lines."""
        return formulas.share(self._verticals, self.vmin)

    @property
    @_short("TT", "rows")
    def trapping_time(self) -> float:
        """Mean length of vertical lines of at least vmin."""
        return formulas.average(self._verticals, self.vmin)

    @property
    @_short("Vmax", "rows")
    def longest_vertical_line(self) -> int:
        """Length of the longest vertical line, 0 where there is none."""
        return formulas.longest(self._verticals, self.vmin if self.convention.longest_from_minimum else 1)

    @property
    @_short("VENTR", "nats")
    def entropy_vertical_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of vertical lines of at least vmin."""
        return formulas.entropy(self._verticals, self.vmin)

    @property
    @_short("W", "rows")
    def average_white_vertical_line(self) -> float:
        """Mean length of white vertical lines of at least wmin."""
        return formulas.average(self._whites, self.wmin)

    @property
    @_short("Wmax", "rows")
    def longest_white_vertical_line(self) -> int:
        """Length of the longest white vertical line, 0 where there is none."""
        return formulas.longest(self._whites, self.wmin if self.convention.longest_from_minimum else 1)

    @property
    @_short("WDIV", "1 / rows")
    def divergence_white_vertical_lines(self) -> float:
        """1 / Wmax."""
        return formulas.inverse(self.longest_white_vertical_line)

    @property
    @_short("WENTR", "nats")
    def entropy_white_vertical_lines(self) -> float:
        """Shannon entropy (nats) of the lengths of white vertical lines of at least wmin."""
        return formulas.entropy(self._whites, self.wmin)

    @cached_property
    @_short("TREND", "1 / (1000 rows)")
    def trend(self) -> float:
        """Slope of the recurrence rate over the distance from the main diagonal, per 1000 steps."""
        rows = self.counts.n_rows
        recurrent = both_sides(self.counts.per_diagonal, rows)
        return formulas.trend(recurrent, cells_of_both_sides(*self.complete), self.theiler)

    @property
    @_short("T1", "rows")
    def recurrence_time_1(self) -> float:
        """Mean distance of successive recurrent points in a column."""
        return formulas.ratio(self.counts.gap_sum, self.counts.gap_count)

    @property
    @_short("T2", "rows")
    def recurrence_time_2(self) -> float:
        """Mean distance of the starts of successive vertical lines (of any length) in a column."""
        return formulas.ratio(self.counts.period_sum, self.counts.period_count)

    @property
    @_short("RTE")
    def recurrence_period_density_entropy(self) -> float:
        """Normalised entropy of the lengths of white vertical lines between recurrences."""
        return formulas.period_entropy(self.counts.whites)

    @property
    @_short("RATIO")
    def ratio(self) -> float:
        """Determinism / recurrence rate: it rises where order grows while recurrence does not."""
        return self.determinism / self.recurrence_rate if self.recurrence_rate else math.nan
