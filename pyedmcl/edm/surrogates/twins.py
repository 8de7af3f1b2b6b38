"""Twins: rows whose states recur at the very same times, between which a path may jump unnoticed."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_CELLS = 1 << 22  # pairs of rows looked at together
_SAMPLED = 1 << 20  # pairs that a threshold is taken from


def twin_groups(values: NDArray[np.float64], E: int, tau: int, recurrence: float) -> NDArray[np.intp]:
    """Number of the group of twins of each state (m,); a state without twins is alone in its group.

    Two states recur if their largest difference of coordinates does not exceed a threshold, by which a share
    ``recurrence`` of all pairs recurs; twins have the same recurrences.

    Parameters
    ----------
    values : ndarray (n,)
    E, tau : int
        m = n - (E-1) tau.
    recurrence : float
    """
    n = len(values)
    m = n - (E - 1) * tau
    states = np.column_stack([values[(E - 1 - e) * tau : n - e * tau] for e in range(E)])
    threshold = _threshold(states, recurrence)
    step = max(_CELLS // m, 1)
    numbers: dict[bytes, int] = {}
    groups = np.empty(m, np.intp)
    for a in range(0, m, step):
        near = np.ones((min(step, m - a), m), bool)
        for e in range(E):
            near &= np.abs(states[a : a + step, e, None] - states[None, :, e]) <= threshold
        for i, row in enumerate(np.packbits(near, axis=1)):
            groups[a + i] = numbers.setdefault(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), len(numbers))
    return groups


def _threshold(states: NDArray[np.float64], recurrence: float) -> float:
    m = len(states)
    every = max(m * m // _SAMPLED, 1)
    sample = states[::every] if every < m else states[:1]
    distance = np.abs(sample[:, None] - states[None]).max(axis=2)
    return float(np.quantile(distance, recurrence))


def twin_path(groups: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows (n,) of a path that starts anywhere, and at each row goes on from it or from one of its twins.

    After the last state, if no twin leads on, the path starts anywhere again.
    """
    m = len(groups)
    order = np.argsort(groups, kind="stable")
    begin = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    path = np.empty(n, np.intp)
    at = int(rng.integers(m))
    for t in range(n):
        path[t] = at
        first, last = begin[groups[at]], begin[groups[at] + 1]
        at = int(order[first + rng.integers(last - first)]) if last - first > 1 else at
        at = at + 1 if at + 1 < m else int(rng.integers(m))
    return path
