"""Cycles that do not drift, such as seasons: whether a series has one, by a test, and what is left without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LONGEST, LEAST_CYCLES = 400, 4
_PARTS = 8
#: Of the test for a cycle; over all periods where the period is looked for.
LEVEL = 0.05
_SURE = 0.001
# Rows for each number that describes a cycle that is removed.
_ROWS_PER_HARMONIC = 40


def cycle(values: Doubles, there: Mask) -> int:
    """Rows of the cycle of a series; 0 for none.

    The period with the smallest p-value of :func:`p_of_period`, if it is at most 0.05 after Bonferroni's correction for
    all that are looked at; or the longest multiple of it for which that is at most 0.001: a cycle has harmonics.

    Parameters
    ----------
    values : ndarray (n,)
        Without trend.
    there : ndarray of bool (n,)
        Rows that have a value.
    """
    periods = range(2, min(_LONGEST, len(values) // LEAST_CYCLES) + 1)
    sums = Sums.of(values, there)
    found = {period: p for period in periods if (p := sums.p_of_period(period)) * len(periods) <= LEVEL}
    if not found:
        return 0
    best = min(found, key=lambda period: found[period])
    surely = [period for period, p in found.items() if p * len(periods) <= _SURE]
    return max([best, *(period for period in surely if period % best == 0)])


def p_of_period(values: Doubles, there: Mask, period: int) -> float:
    """See :meth:`Sums.p_of_period`."""
    return Sums.of(values, there).p_of_period(period)


@dataclass(frozen=True)
class Sums:
    """A series, and running sums of it, of which the tests of all periods are made.

    Attributes
    ----------
    known : ndarray (n,)
        Values less their mean; 0 for gaps.
    there : ndarray of float (n,) or None
        1 for rows that have a value, 0 for gaps; None where there are none.
    total, squares, count : ndarray (n + 1,)
        Sums of values, of squares, and of rows with a value, before each row.
    """

    known: Doubles
    there: Doubles | None
    total: Doubles
    squares: Doubles
    count: Doubles

    @classmethod
    def of(cls, values: Doubles, there: Mask) -> Sums:
        """Of values of which those that are ``there`` count."""
        known = np.where(there, values, 0.0)
        known = np.where(there, known - known.sum() / max(int(there.sum()), 1), 0.0)
        ones = there.astype(np.float64)
        sums = [np.concatenate([[0.0], np.cumsum(each)]) for each in (known, known * known, ones)]
        return cls(known, None if there.all() else ones, *sums)

    def p_of_period(self, period: int) -> float:
        """P-value of the test that a series has a cycle of so many rows that keeps its phase.

        The series is cut into 4 to 8 parts of whole cycles. Of each part the Fourier coefficient of the period is
        found. If there is no cycle, or one that drifts, their phases are random: then the square of their mean over
        their variance has Fisher's F distribution with 2 and 2 (parts - 1) degrees of freedom, whatever the spectrum.
        """
        parts = min(_PARTS, len(self.known) // period)
        if parts < 2:
            return 1.0
        cycles = len(self.known) // (parts * period)
        rows = parts * cycles * period
        turn = np.exp(-2j * np.pi * np.arange(period) / period)
        found = self.known[:rows].reshape(parts, cycles, period).sum(axis=1) @ turn
        if self.there is not None:  # else a constant has no part in whole cycles
            level = float(self.total[rows] / max(self.count[rows], 1.0))
            found = found - level * (self.there[:rows].reshape(parts, cycles, period).sum(axis=1) @ turn)
        return _p_of(found, float(self.squares[rows]) * rows, real=period == 2)


def _p_of(found: NDArray[np.complex128], scale: float, *, real: bool) -> float:
    """P-value of Fourier coefficients of parts having one phase; none where they are 0 beside ``scale``."""
    parts, mean = len(found), found.mean()
    spread = float((np.abs(found - mean) ** 2).sum()) / (parts - 1)
    size = parts * float(np.abs(mean)) ** 2
    if size <= 1e-20 * scale:
        return 1.0
    if spread == 0:
        return 0.0
    if real:  # Student's t
        return _student(math.sqrt(size / spread), parts - 1)
    return float((1 + size / spread / (parts - 1)) ** -(parts - 1))


def _student(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t by its integral."""
    x = np.linspace(0.0, 1.0, 2001)[1:-1]  # from t to infinity: t / x
    with np.errstate(over="ignore"):
        density = (1 + (t / x) ** 2 / freedom) ** (-(freedom + 1) / 2) * t / x**2
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return min(2 * constant * float(density.sum()) / 2000, 1.0)


def common_period(periods: Sequence[int]) -> int:
    """The period that at least two series have, and most of those that have any; 0 for none."""
    found, counts = np.unique([period for period in periods if period], return_counts=True)
    return int(found[counts.argmax()]) if len(found) and counts.max() >= 2 else 0


def without_cycle(values: Doubles, period: int) -> Doubles:
    """A series less its cycle: less the harmonics of a period, one for every 40 rows at most; gaps stay gaps."""
    n, there = len(values), np.isfinite(values)
    harmonics = np.arange(1, min(period // 2, max(n // _ROWS_PER_HARMONIC, 1)) + 1)
    angle = 2 * np.pi * np.outer(np.arange(n) % period, harmonics) / period
    design = np.column_stack([np.ones(n), np.cos(angle), np.sin(angle)])
    fit, *_ = np.linalg.lstsq(design[there], values[there], rcond=None)
    return np.asarray(values - design[:, 1:] @ fit[1:])
