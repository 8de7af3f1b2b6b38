"""Formulas that several measures share: from histograms of line lengths, or from counts on diagonals, to a number.

Histograms h[l] hold the number of lines of length l. What has no value (a mean over no lines) is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .counts import Histogram

# The diagonals nearest to the corners are a few cells long and carry no rate (Webber and Zbilut 2005).
TREND_BORDER = 10


@dataclass(frozen=True, eq=False)
class Lines:
    """Lengths that occur and how many lines have each: nearly all of a long histogram is zero."""

    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def from_length(self, least: int) -> Lines:
        """Those of at least ``least``."""
        first = int(np.searchsorted(self.lengths, least))
        return Lines(self.lengths[first:], self.numbers[first:])


def lines_of(histogram: Histogram) -> Lines:
    """Lines of the lengths 1 and more."""
    lengths = np.flatnonzero(histogram[1:]) + 1
    return Lines(lengths, histogram[lengths])


def share(histogram: Histogram | Lines, least: int) -> float:
    """Points on lines of at least ``least``, divided by the points on all lines (determinism, laminarity)."""
    return ratio(points(histogram, least), points(histogram, 1))


def average(histogram: Histogram | Lines, least: int) -> float:
    """Mean length of the lines of at least ``least``."""
    return ratio(points(histogram, least), int(_from(histogram, least).numbers.sum()))


def longest(histogram: Histogram | Lines, least: int = 1) -> int:
    """Length of the longest line of at least ``least``, 0 where there is none."""
    lengths = _from(histogram, least).lengths
    return int(lengths[-1]) if len(lengths) else 0


def inverse(length: int) -> float:
    """1 / length; infinite for no line."""
    return 1.0 / length if length else math.inf


def entropy(histogram: Histogram | Lines, least: int) -> float:
    """Shannon entropy (natural logarithm) of the lengths of at least ``least``."""
    numbers = _from(histogram, least).numbers
    if not len(numbers):
        return math.nan
    p = numbers / numbers.sum()
    return float(-(p * np.log(p)).sum()) + 0.0  # never -0.0


def period_entropy(whites: Histogram | Lines) -> float:
    """Recurrence period density entropy: entropy of the recurrence times T over ln(T_max), in [0, 1].

    T are the lengths of white vertical lines between two recurrences, of any length (Little et al., BioMedical
    Engineering OnLine 6, 23, 2007). 0 where all are equal; NaN where nothing recurs twice.
    """
    whites = _from(whites, 1)
    most = longest(whites)
    if most == 0:
        return math.nan
    return entropy(whites, 1) / math.log(most) if most > 1 else 0.0


def trend(recurrent: NDArray[np.int64], cells: NDArray[np.int64], theiler: int) -> float:
    """Slope of the diagonal-wise recurrence rate over the distance from the main diagonal, times 1000.

    With RR[d] the rate of offset |j - i| = d - 1, d = 1, ..., N, and a = 1 + theiler, b = N - 10:
    ``1000 sum_{d=a}^{b} (d - b/2) (RR[d] - mean(RR)) / sum_{d=a}^{b} (d - b/2)^2``, as RecurrenceAnalysis.jl 2.1
    defines it (after Webber and Zbilut 2005). Offsets without cells are left out.

    Parameters
    ----------
    recurrent, cells : ndarray (N,)
        Recurrent cells, and all cells, at offset d - 1 to both sides together.
    theiler : int
        That many offsets are left out.
    """
    d = np.arange(1 + theiler, len(cells) - TREND_BORDER + 1)
    black, every = recurrent[theiler : theiler + len(d)], cells[theiler : theiler + len(d)]
    filled = every > 0
    if not filled.all():
        d, black, every = d[filled], black[filled], every[filled]
    if not len(d):
        return math.nan
    rate = black / every
    balanced = d - (len(cells) - TREND_BORDER) / 2
    total = float((balanced * balanced).sum())
    return 1000.0 * float((balanced * (rate - rate.mean())).sum()) / total if total else math.nan


def points(histogram: Histogram | Lines, least: int) -> int:
    """Cells on lines of at least ``least``."""
    lines = _from(histogram, least)
    return int((lines.numbers * lines.lengths).sum())


def _from(histogram: Histogram | Lines, least: int) -> Lines:
    lines = histogram if isinstance(histogram, Lines) else lines_of(histogram)
    return lines.from_length(least)


def ratio(numerator: int, denominator: int) -> float:
    """Quotient of two counts; NaN where there is nothing to divide by."""
    return numerator / denominator if denominator else math.nan
