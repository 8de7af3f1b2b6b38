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
_TOGETHER = 1 << 17  # values of series that are looked at together: they fit into a cache
#: Of the test for a cycle; over all periods where the period is looked for.
LEVEL = 0.05
_SURE = 0.001
# Rows for each number that describes a cycle that is removed.
_ROWS_PER_HARMONIC = 40


def cycles(values: Doubles, present: Mask) -> list[int]:
    """Rows of the cycle of each series; 0 for none.

    The period with the smallest p-value of :meth:`Sums.p_of_period`, if it is at most 0.05 after Bonferroni's
    correction for all that are looked at; or the longest multiple of it for which that is at most 0.001: a cycle has
    harmonics.

    Parameters
    ----------
    values : ndarray (n_series, n)
        Without trend.
    present : ndarray of bool (n_series, n)
        Rows that have a value.
    """
    n_series, n = values.shape
    periods = range(2, min(_LONGEST, n // LEAST_CYCLES) + 1)
    lengths = []
    step = max(_TOGETHER // max(n, 1), 1)
    for part in (slice(first, first + step) for first in range(0, n_series, step)):
        sums = Sums.of(values[part], present[part])
        p = np.array([sums.p_of_period(period) for period in periods]).reshape(len(periods), len(sums.known))
        lengths += [_period_of(dict(zip(periods, p_values, strict=True))) for p_values in p.T.tolist()]
    return lengths


def _period_of(p: dict[int, float]) -> int:
    """The period that is taken, by the p-values of all."""
    significant = {period: value * len(p) for period, value in p.items() if value * len(p) <= LEVEL}
    if not significant:
        return 0
    best = min(significant, key=lambda period: significant[period])
    return max([best, *(period for period, value in significant.items() if value <= _SURE and period % best == 0)])


def p_of_period(values: Doubles, there: Mask, period: int) -> float:
    """See :meth:`Sums.p_of_period`, of a single series (n,)."""
    return float(Sums.of(values[None], there[None]).p_of_period(period)[0])


@dataclass(frozen=True)
class Sums:
    """Series, and running sums of them, of which the tests of all periods are made.

    Attributes
    ----------
    known : ndarray (n_series, n)
        Values less their mean; 0 for gaps.
    there : ndarray of float (n_series, n)
        1 for rows that have a value, 0 for gaps.
    total, squares, count : ndarray (n_series, n + 1)
        Sums of values, of squares, and of rows with a value, before each row.
    """

    known: Doubles
    there: Doubles
    total: Doubles
    squares: Doubles
    count: Doubles

    @classmethod
    def of(cls, values: Doubles, present: Mask) -> Sums:
        """Of values of which those that are ``present`` count."""
        filled = np.where(present, values, 0.0)
        mean = filled.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
        filled = np.where(present, filled - mean[:, None], 0.0)
        ones = present.astype(np.float64)
        before = np.zeros((len(filled), 1))
        sums = [np.concatenate([before, np.cumsum(each, axis=1)], axis=1) for each in (filled, filled * filled, ones)]
        return cls(filled, ones, *sums)

    def p_of_period(self, period: int) -> Doubles:
        """P-values (n_series,) of the test that a series has a cycle of ``period`` rows that keeps its phase.

        The series is cut into 4 to 8 parts of whole cycles. Of each part the Fourier coefficient of the period is
        found. If there is no cycle, or one that drifts, their phases are random: then the square of their mean over
        their variance has Fisher's F distribution with 2 and 2 (parts - 1) degrees of freedom, whatever the spectrum.
        """
        n_series, n = self.known.shape
        parts = min(_PARTS, n // period)
        if parts < 2:
            return np.ones(n_series)
        turns = n // (parts * period)
        rows, shape = parts * turns * period, (-1, parts, turns, period)
        turn = np.exp(-2j * np.pi * np.arange(period) / period)
        coefficients = self.known[:, :rows].reshape(shape).sum(axis=2) @ turn
        gaps = self.count[:, rows] < rows  # elsewhere a constant has no part in whole cycles
        if gaps.any():
            level = self.total[gaps, rows] / np.maximum(self.count[gaps, rows], 1.0)
            coefficients[gaps] -= level[:, None] * (self.there[gaps, :rows].reshape(shape).sum(axis=2) @ turn)
        return _p_of(coefficients, self.squares[:, rows] * rows, real=period == 2)


def _p_of(coefficients: NDArray[np.complex128], scale: Doubles, *, real: bool) -> Doubles:
    """P-values of Fourier coefficients (n_series, n_parts) of parts having one phase; none at 0 beside ``scale``."""
    parts, mean = coefficients.shape[1], coefficients.mean(axis=1)
    spread = (np.abs(coefficients - mean[:, None]) ** 2).sum(axis=1) / (parts - 1)
    size = parts * np.abs(mean) ** 2
    ratio = size / np.where(spread > 0, spread, 1.0)
    if real:  # Student's t
        p = np.array([_student(math.sqrt(one), parts - 1) for one in ratio.tolist()])
    else:
        p = (1 + ratio / (parts - 1)) ** -(parts - 1.0)
    return np.where(size <= 1e-20 * scale, 1.0, np.where(spread > 0, p, 0.0))


def _student(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t by its integral."""
    x = np.linspace(0.0, 1.0, 2001)[1:-1]  # from t to infinity: t / x
    with np.errstate(over="ignore"):
        density = (1 + (t / x) ** 2 / freedom) ** (-(freedom + 1) / 2) * t / x**2
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return min(2 * constant * float(density.sum()) / 2000, 1.0)


def common_period(periods: Sequence[int]) -> int:
    """The period that at least two series have, and most of those that have any; 0 for none."""
    different, counts = np.unique([period for period in periods if period], return_counts=True)
    return int(different[counts.argmax()]) if len(different) and counts.max() >= 2 else 0


def without_cycle(values: Doubles, period: int) -> Doubles:
    """A series less its cycle: less the harmonics of a period, one for every 40 rows at most; gaps stay gaps."""
    n, present = len(values), np.isfinite(values)
    harmonics = np.arange(1, min(period // 2, max(n // _ROWS_PER_HARMONIC, 1)) + 1)
    angle = 2 * np.pi * np.outer(np.arange(n) % period, harmonics) / period
    design = np.column_stack([np.ones(n), np.cos(angle), np.sin(angle)])
    fit, *_ = np.linalg.lstsq(design[present], values[present], rcond=None)
    return np.asarray(values - design[:, 1:] @ fit[1:])
