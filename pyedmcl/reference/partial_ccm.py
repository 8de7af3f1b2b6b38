"""Oracle of partial cross mapping (Leng et al., Nat. Commun. 11, 2632, 2020): simplex projection and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .order import nearest_first

Doubles = npt.NDArray[np.float64]


def estimate(library: npt.ArrayLike, target: npt.ArrayLike, E: int, tau: int, Tp: int, radius: int = 0) -> Doubles:
    """``target`` as the E + 1 nearest states of ``library`` predict it, at the rows that are predicted, else NaN."""
    x, y = np.asarray(library, np.float64), np.asarray(target, np.float64)
    n, first = len(x), (E - 1) * tau
    states = np.full((n, E), np.nan)
    for lag in range(E):
        states[lag * tau :, lag] = x[: n - lag * tau]
    states[:first] = np.nan
    out = np.full(n, np.nan)
    for t in range(n):
        if not np.isfinite(states[t]).all() or not 0 <= t + Tp < n:
            continue
        neighbours = [
            j for j in range(n)
            if abs(t - j) > radius and 0 <= j + Tp < n and np.isfinite(states[j]).all() and np.isfinite(y[j + Tp])
        ]  # fmt: skip
        apart = np.array([np.sqrt(((states[t] - states[j]) ** 2).sum()) for j in neighbours])
        near = nearest_first(apart, E + 1)
        d = apart[near]
        if not len(d):
            continue
        weight = np.exp(-d / d[0]) if d[0] > 0 else (d == 0).astype(float)
        out[t + Tp] = weight @ y[np.array(neighbours)[near] + Tp] / weight.sum()
    return out


def partial_skill(
    cause: npt.ArrayLike, effect: npt.ArrayLike, given: list[npt.ArrayLike], E: list[int], tau: int, Tp: int
) -> tuple[float, float, list[float]]:
    """Skill of the effect's states for the cause, the same given the estimates through ``given``, and those skills.

    ``E`` holds the dimensions of the effect and of each of ``given``.
    """
    x = np.asarray(cause, np.float64)
    first = estimate(effect, x, E[0], tau, Tp)
    second = [
        estimate(estimate(effect, z, E[0], tau, Tp), x, dim, tau, Tp) for z, dim in zip(given, E[1:], strict=True)
    ]
    present = np.isfinite(np.array([x, first, *second])).all(axis=0)
    controls: Any = np.column_stack([np.ones(present.sum()), *(one[present] for one in second)])
    left = [side[present] - controls @ np.linalg.lstsq(controls, side[present], rcond=None)[0] for side in (x, first)]
    return _rho(x, first), _rho(*left), [_rho(x, one) for one in second]


def _rho(a: Doubles, b: Doubles) -> float:
    present = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(a[present], b[present])[0, 1])
