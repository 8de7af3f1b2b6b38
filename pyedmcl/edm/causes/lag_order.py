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
from ..shared.false_discovery import false_discovery
from ..shared.scores import pearson
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


def p_of_order(z: Doubles, opposite: Doubles, shocks: NDArray[np.bool_] | None = None) -> Doubles:
    """P-values (one-sided) of causes being known best before their effects.

    Parameters
    ----------
    z : ndarray
        Of the best skill of lags that a cause may have, less the best of the others.
    opposite : ndarray
        The same of the opposite direction. A link that goes one way only has its opposite best at a later lag (Ye et
        al. 2015): where this is negative, both speak of the same order, and what they say is added up (Stouffer).
    shocks : ndarray of bool, optional
        Pairs that a shock within the row explains (:func:`common_shocks`): both directions of these seem to come first,
        and the order of one has to be clearer than that of the other.
    """
    with np.errstate(invalid="ignore"):
        together = opposite < 0 if shocks is None else shocks | (opposite < 0)
        both = np.where(together, (z - opposite) / math.sqrt(2), z)
    return np.asarray(np.vectorize(upper_tail, otypes=[float])(both))


def common_shocks(
    values: Doubles, E: NDArray[np.int_], tau: int, asked: NDArray[np.bool_], rate: float
) -> NDArray[np.bool_]:
    """Pairs whose series a shock within the row may link, and nothing else that a line sees.

    Their innovations, which neither series' past foretells, are correlated in the same row; and the cause's past does
    not improve a linear forecast of the effect (Granger, Econometrica 37, 424, 1969; false discovery rate ``rate`` over
    all pairs that are asked).

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        NaN for gaps, and between groups.
    E : ndarray of int (n_series,)
        The past of a pair spans the state of its effect, and a tenth of the rows at most.
    tau : int
    asked : ndarray of bool (n_series, n_series)
        Row = effect, column = cause.
    rate : float

    Returns
    -------
    ndarray of bool (n_series, n_series)
    """
    unit = standardised(values)
    same_row, foretold = np.zeros(asked.shape, bool), np.full(asked.shape, np.nan)
    for effect in np.flatnonzero(asked.any(axis=1)):
        span = max(min(int(E[effect] - 1) * tau + 1, len(unit) // 10), 1)
        own = _past(unit[:, effect], span)
        for cause in np.flatnonzero(asked[effect]):
            states = np.column_stack([np.ones(len(unit)), own, _past(unit[:, cause], span)])
            goals = unit[:, [effect, cause]]
            there = np.isfinite(states).all(axis=1) & np.isfinite(goals).all(axis=1)
            freedom = int(there.sum()) - states.shape[1]
            if freedom < _LEAST_ROWS:
                same_row[effect, cause] = True  # nothing tells them apart
                continue
            basis, both = np.linalg.qr(states[there])[0], goals[there]
            fits = basis.T @ both
            left = both - basis @ fits
            power = max(float(left[:, 0] @ left[:, 0]), 1e-300)
            gained = float(fits[span + 1 :, 0] @ fits[span + 1 :, 0])
            foretold[effect, cause] = _p_of_ratio(gained / span / (power / freedom), span, freedom)
            correlation = min(abs(float(pearson(left[:, 0], left[:, 1]))), _NEARLY_ONE)
            same_row[effect, cause] = 2 * upper_tail(math.atanh(correlation) * math.sqrt(freedom)) <= rate
    with np.errstate(invalid="ignore"):
        return np.asarray(asked & same_row & ~(false_discovery(foretold) <= rate))


def _past(values: Doubles, span: int) -> Doubles:
    """The ``span`` values before each row (n, span); NaN where there are none."""
    return np.concatenate([np.full((1, span), np.nan), embed(values[:, None], span, 1)[:-1]])


def _p_of_ratio(ratio: float, above: int, below: int) -> float:
    """Chance that Fisher's F exceeds a ratio, nearly; Paulson, Ann. Math. Stat. 13, 233 (1942)."""
    a, b, root = 2 / (9 * above), 2 / (9 * below), ratio ** (1 / 3)
    return upper_tail(((1 - b) * root - (1 - a)) / math.sqrt(b * root * root + a))


def _at_states(values: Doubles, Tp: int) -> Doubles:
    """Values (n_rows,) that lie Tp rows after states, in the order of these states; NaN outside the series."""
    n = len(values)
    out = np.full(n, np.nan)
    begin, end = max(-Tp, 0), min(n - Tp, n)
    if begin < end:
        out[begin:end] = values[begin + Tp : end + Tp]
    return out
