"""Measures of many matrices at once: bit for bit those of :mod:`pyedmcl.recurrence.measures` for each.

Sums of integers are exact whatever their order. Sums of fractions (entropies, trends) are taken over rows of equal
length that lie one behind the other, which NumPy sums like a single one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .batch_counts import BatchCounts
from .batch_lines import Ints, LinesOfMany
from .cells import cells_of_both_sides, cells_within
from .conventions import Convention
from .formulas import TREND_BORDER
from .measures import short_name

Doubles = NDArray[np.float64]

_TOGETHER = 100  # matrices whose trends are computed together: what they need stays in a cache


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Doubles:
    """Quotients; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


class MeasuresOfMany:
    """Measures of matrices without gaps.

    Parameters
    ----------
    counts : BatchCounts
    convention : Convention
    theiler, lmin, vmin, wmin : int
    symmetric : bool
        Rows and columns stand for the same points.
    corridor : bool
        The main diagonal does not recur.
    """

    def __init__(
        self, counts: BatchCounts, convention: Convention, *, theiler: int, lmin: int, vmin: int, wmin: int,
        symmetric: bool, corridor: bool,
    ) -> None:  # fmt: skip
        self.counts, self.convention = counts, convention
        self.theiler, self.lmin, self.vmin, self.wmin = theiler, lmin, vmin, wmin
        self._symmetric, self._identity = symmetric, symmetric and not corridor

    @cached_property
    def _verticals(self) -> LinesOfMany:
        return self.counts.kind("verticals")

    @cached_property
    def _between(self) -> LinesOfMany:
        """White lines between two black ones."""
        return self.counts.kind("whites")

    @cached_property
    def _counted_diagonals(self) -> LinesOfMany:
        return self.counts.kind("diagonals")

    @cached_property
    def _diagonals(self) -> LinesOfMany:
        lines = self._counted_diagonals
        if self.convention.has_theiler or not self._identity:
            return lines
        return lines.with_line(self.counts.sizes[:, 0])  # the main diagonal is longer than any other line

    @cached_property
    def _whites(self) -> LinesOfMany:
        if not self.convention.white_borders:
            return self._between
        return self._between.joined(self.counts.kind("white_borders"), int(self.counts.sizes.max()) + 1)

    def _share(self, lines: LinesOfMany, least: int) -> Doubles:
        return ratio(lines.from_length(least).points, lines.points)

    def _mean(self, lines: LinesOfMany, least: int) -> Doubles:
        long_lines = lines.from_length(least)
        return ratio(long_lines.points, long_lines.count)

    def _most(self, lines: LinesOfMany, least: int) -> Ints:
        return lines.from_length(least if self.convention.longest_from_minimum else 1).longest

    def _inverse(self, lengths: Ints) -> Doubles:
        with np.errstate(divide="ignore"):
            return 1.0 / lengths

    @cached_property
    def _of_sizes(self) -> list[tuple[tuple[int, int], Ints]]:
        """(columns, rows) that occur, and the matrices of each."""
        sizes, which = np.unique(self.counts.sizes, axis=0, return_inverse=True)
        return [((int(n), int(m)), np.flatnonzero(which.ravel() == at)) for at, (n, m) in enumerate(sizes)]

    def recurrence_rate(self) -> Doubles:
        cells = np.empty(len(self.counts))
        for (n, m), mine in self._of_sizes:
            dropped = 0
            if self.convention.outside(self._symmetric):
                dropped = cells_within(np.ones(m, bool), np.ones(n, bool), self.theiler)
            cells[mine] = n * m - dropped
        return ratio(self.counts.sums[:, 0], cells)

    def determinism(self) -> Doubles:
        return self._share(self._diagonals, self.lmin)

    def average_diagonal_line(self) -> Doubles:
        return self._mean(self._diagonals, self.lmin)

    def longest_diagonal_line(self) -> Ints:
        lines = self._diagonals if self.convention.has_theiler else self._counted_diagonals
        return self._most(lines, self.lmin)

    def divergence(self) -> Doubles:
        return self._inverse(self.longest_diagonal_line())

    def entropy_diagonal_lines(self) -> Doubles:
        return self._diagonals.from_length(self.lmin).entropy()

    def laminarity(self) -> Doubles:
        return self._share(self._verticals, self.vmin)

    def trapping_time(self) -> Doubles:
        return self._mean(self._verticals, self.vmin)

    def longest_vertical_line(self) -> Ints:
        return self._most(self._verticals, self.vmin)

    def entropy_vertical_lines(self) -> Doubles:
        return self._verticals.from_length(self.vmin).entropy()

    def average_white_vertical_line(self) -> Doubles:
        return self._mean(self._whites, self.wmin)

    def longest_white_vertical_line(self) -> Ints:
        return self._most(self._whites, self.wmin)

    def divergence_white_vertical_lines(self) -> Doubles:
        return self._inverse(self.longest_white_vertical_line())

    def entropy_white_vertical_lines(self) -> Doubles:
        return self._whites.from_length(self.wmin).entropy()

    def trend(self) -> Doubles:
        out = np.full(len(self.counts), np.nan)
        for (n, m), mine in self._of_sizes:
            end = min(n, m) - TREND_BORDER
            d = np.arange(1 + self.theiler, end + 1)
            balanced = d - end / 2
            total = float((balanced * balanced).sum())
            if not len(d) or not total:
                continue
            cells = cells_of_both_sides(np.ones(m, bool), np.ones(n, bool))[self.theiler : end]
            for some in np.split(mine, range(_TOGETHER, len(mine), _TOGETHER)):
                rate = self._both_sides(some, n)[:, self.theiler : end] / cells
                slopes = balanced * (rate - rate.mean(axis=1)[:, None])
                out[some] = 1000.0 * slopes.sum(axis=1) / total
        return out

    def _both_sides(self, matrices: Ints, n_columns: int) -> Ints:
        """Recurrent cells at each distance from the main diagonal, of matrices of one size."""
        c = self.counts
        length = int(c.diagonal_begins[matrices[0] + 1] - c.diagonal_begins[matrices[0]])
        cells: Ints = c.diagonals[c.diagonal_begins[matrices][:, None] + np.arange(length)].astype(np.int64)
        if c.halved:
            cells[:, 1:] *= 2
            return cells
        middle = n_columns - 1  # of diagonals row - column
        n = min(middle + 1, length - middle)
        folded: Ints = cells[:, middle : middle + n].copy()
        folded[:, 1:] += cells[:, middle - n + 1 : middle][:, ::-1]
        return folded

    def recurrence_time_1(self) -> Doubles:
        return ratio(self.counts.sums[:, 3], self.counts.sums[:, 4])

    def recurrence_time_2(self) -> Doubles:
        return ratio(self.counts.sums[:, 1], self.counts.sums[:, 2])

    def recurrence_period_density_entropy(self) -> Doubles:
        longest = self._between.longest
        values, which = np.unique(longest, return_inverse=True)
        logarithms = np.array([math.log(value) if value > 1 else 1.0 for value in values.tolist()])[which]
        out = self._between.entropy() / logarithms
        return np.where(longest == 0, np.nan, np.where(longest == 1, 0.0, out))

    def ratio(self) -> Doubles:
        return ratio(self.determinism(), self.recurrence_rate())

    def measure(self, long_name: str) -> NDArray[Any] | None:
        """A measure of all matrices by its long name; None for one that is not known here."""
        measure: Callable[[], NDArray[Any]] | None = getattr(self, long_name, None)
        if measure is None:
            return None
        values, none = measure(), self.convention.none(short_name(long_name))
        return values if math.isnan(none) else np.where(np.isnan(values), none, values)
