"""Whether skill is higher at one lag than at another: a test of two correlations that depend on each other.

Both skills come from the states of the same rows, and rows of a series are not independent. The difference of Fisher's
z of both is a mean over rows but for terms that vanish as rows become many (each row's influence on either
correlation), so that its standard error is that of a mean of a series: Newey and West, Econometrica 55, 703 (1987).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import cut
from ..shared.convergence import upper_tail
from ..shared.states import embed, standardised

Doubles = NDArray[np.float64]

_LEAST_ROWS = 10
_TOGETHER = 64  # pairs that are compared at once
_NEARLY_ONE = 1 - 1e-9  # Fisher's z of 1 is infinite


def z_of_lags(estimates: Doubles, values: NDArray[Any], cause: NDArray[np.int_], Tp: NDArray[np.int_]) -> Doubles:
    """Fisher's z of the skill at one lag less that at another, in standard errors; see :func:`z_of_difference`.

    Parameters
    ----------
    estimates : ndarray (2 n_pairs, n_steps)
        Of causes, at the rows that are estimated: those of all pairs at their first lag, then at their second one.
    values : ndarray (n_steps, n_series)
    cause, Tp : ndarray of int (2 n_pairs,)
        Which series is estimated, and how many rows after the states.

    Returns
    -------
    ndarray (n_pairs,)
    """
    n = len(estimates) // 2
    z = np.empty(n)
    for few in cut(n, _TOGETHER):
        sides = []
        for begin in (0, n):
            rows = range(begin + few.begin, begin + few.end)
            targets = [values[:, cause[row]].astype(np.float64) for row in rows]
            sides.append((
                np.stack([_at_states(estimates[row], int(Tp[row])) for row in rows]),
                np.stack([_at_states(target, int(Tp[row])) for row, target in zip(rows, targets, strict=True)]),
            ))  # fmt: skip
        z[few.begin : few.end] = z_of_difference(*sides)
    return z


def z_of_difference(first: tuple[Doubles, Doubles], second: tuple[Doubles, Doubles]) -> Doubles:
    """Fisher's z of one skill less that of another, in standard errors of the difference.

    Parameters
    ----------
    first, second : tuple of ndarray (n_pairs, n_rows)
        Estimates and what they estimate, in the order of the states that they come from; NaN for none. Rows count where
        all four have a value.

    Returns
    -------
    ndarray (n_pairs,)
        NaN with fewer than 10 rows, or where either side does not vary.
    """
    present = np.isfinite(first[0]) & np.isfinite(first[1]) & np.isfinite(second[0]) & np.isfinite(second[1])
    n = present.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        (early, on_early), (late, on_late) = (_influence(*pair, present) for pair in (first, second))
        differences = np.where(present, on_early - on_late, 0.0)
        error = np.sqrt(_long_run_variance(differences, n) / n)
        z = np.where(error > 0, (early - late) / error, np.where(early == late, 0.0, np.nan))
    return np.where(n >= _LEAST_ROWS, z, np.nan)


def _influence(estimate: Doubles, target: Doubles, there: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    """Fisher's z (n_pairs,) of a correlation, and what each row adds to it (n_pairs, n_rows)."""
    a, b = _standard(estimate, there), _standard(target, there)
    rho = np.clip((a * b).sum(axis=1) / there.sum(axis=1), -_NEARLY_ONE, _NEARLY_ONE)
    added = (a * b - rho[:, None] * (a * a + b * b) / 2) / (1 - rho[:, None] ** 2)
    return np.arctanh(rho), added


def _standard(values: Doubles, there: NDArray[np.bool_]) -> Doubles:
    """Values less their mean, by their standard deviation; 0 where there is none."""
    n = there.sum(axis=1, keepdims=True)
    largest = np.where(there, np.abs(values), 0.0).max(axis=1, keepdims=True)  # squares must not overflow
    scaled = np.where(there, values / np.where(largest > 0, largest, 1.0), 0.0)
    centred = np.where(there, scaled - scaled.sum(axis=1, keepdims=True) / n, 0.0)
    return np.asarray(centred / np.sqrt((centred * centred).sum(axis=1, keepdims=True) / n))


def _long_run_variance(values: Doubles, n: NDArray[np.int_]) -> Doubles:
    """Of each row's series of mean 0: its variance and covariances with falling weights up to 4 (n / 100)^(2 / 9)."""
    total = (values * values).sum(axis=1)
    furthest = int(4 * (max(int(n.max(initial=1)), 1) / 100) ** (2 / 9))
    for lag in range(1, furthest + 1):
        total = total + 2 * (1 - lag / (furthest + 1)) * (values[:, lag:] * values[:, :-lag]).sum(axis=1)
    return np.asarray(np.maximum(total, 0.0) / n)


def p_of_order(z: Doubles, opposite: Doubles, mutual: NDArray[np.bool_] | None = None) -> Doubles:
    """P-values (one-sided) of causes being known best before their effects.

    Parameters
    ----------
    z : ndarray
        Of the best skill of lags that a cause may have, less the best of the others.
    opposite : ndarray
        The same of the opposite direction. A link that goes one way only has its opposite best at a later lag (Ye et
        al. 2015): where this is negative, both speak of the same order, and what they say is added up (Stouffer).
    mutual : ndarray of bool, optional
        Pairs of which both directions seem to come first, as those of series do that feel one weather in the same row:
        the order of one has to be clearer than that of the other.
    """
    with np.errstate(invalid="ignore"):
        together = opposite < 0 if mutual is None else mutual | (opposite < 0)
        both = np.where(together, (z - opposite) / math.sqrt(2), z)
    return np.asarray(np.vectorize(upper_tail, otypes=[float])(both))


def z_beyond_linear(
    estimates: Doubles, values: Doubles, E: NDArray[np.int_], tau: int, pairs: NDArray[np.int_]
) -> Doubles:
    """Fisher's z of a cross-map skill less that of a linear fit of the same lags, in standard errors.

    Series that noise links within a row are linked as well by a line; deterministic coupling is not.

    Parameters
    ----------
    estimates : ndarray (n_pairs, n_steps)
        Of causes, at the rows that are estimated.
    values : ndarray (n_steps, n_series)
        NaN for gaps, which count as the mean in fits.
    E : ndarray of int (n_series,)
    tau : int
    pairs : ndarray of int (n_pairs, 3)
        Effect, cause, and Tp from the states of the effect to the cause; those of one effect and Tp side by side.

    Returns
    -------
    ndarray (n_pairs,)
    """
    filled, z = np.nan_to_num(standardised(values)), np.empty(len(pairs))
    for few in np.split(np.arange(len(pairs)), np.flatnonzero(np.diff(pairs[:, [0, 2]], axis=0).any(axis=1)) + 1):
        effect, causes, Tp = int(pairs[few[0], 0]), pairs[few, 1], int(pairs[few[0], 2])
        states = np.column_stack([np.ones(len(values)), embed(filled[:, [effect]], int(E[effect]), tau)])
        goals = np.stack([_at_states(values[:, cause], Tp) for cause in causes])
        known = np.isfinite(states).all(axis=1) & np.isfinite(_at_states(filled[:, 0], Tp))
        basis = np.linalg.qr(states[known])[0]
        shifted = np.stack([_at_states(filled[:, cause], Tp)[known] for cause in causes])
        linear = np.full(goals.shape, np.nan)
        linear[:, known] = (shifted @ basis) @ basis.T
        z[few] = z_of_difference((np.stack([_at_states(one, Tp) for one in estimates[few]]), goals), (linear, goals))
    return z


def _at_states(values: Doubles, Tp: int) -> Doubles:
    """Values (n_rows,) that lie Tp rows after states, in the order of these states; NaN outside the series."""
    n = len(values)
    out = np.full(n, np.nan)
    begin, end = max(-Tp, 0), min(n - Tp, n)
    if begin < end:
        out[begin:end] = values[begin + Tp : end + Tp]
    return out
