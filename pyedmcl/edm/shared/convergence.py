"""Does cross-map skill grow with the library? Tests of a trend, and of the gain from the smallest to the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EXACT = 40  # library sizes up to which the distribution of Kendall's S is counted out


@dataclass(frozen=True)
class Convergence:
    """Tests of one direction; skill that converges has a rising trend *and* a gain.

    Attributes
    ----------
    tau : float
        Kendall's tau-b of mean skill against library size.
    p_value : float
        Chance of a trend as rising as this if sizes were samples of their own (one-sided Mann-Kendall test: exact
        without ties, else by the normal approximation with its correction for ties). They share one series, so that it
        holds no level: it is 0.05 or less for a quarter to a half of pairs without any link. It says how steadily
        skill rises, and :func:`pyedmcl.ccm_significance` has a test (``p_gain``). NaN for fewer than 3 sizes.
    gain : float
        Mean skill at the largest library less that at the smallest.
    p_gain : float
        One-sided p-value of the gain from Fisher's z of both, for ``n`` predicted rows taken as independent. Rows of a
        time series are not, and up to a fifth of pairs without a link have 0.05 or less: see ``p_gain`` of
        :func:`pyedmcl.ccm_significance`.
    overlap : float
        Share of the samples of the smallest library that do as well as the median of the largest.
    """

    tau: float
    p_value: float
    gain: float
    p_gain: float
    overlap: float


def convergence(rho: NDArray[np.float64], lib_sizes: NDArray[np.int_], n: int) -> Convergence:
    """Tests of convergence.

    Parameters
    ----------
    rho : ndarray (n_sizes, samples)
    lib_sizes : ndarray of int (n_sizes,)
    n : int
        Predicted rows.
    """
    order = np.argsort(lib_sizes)
    mean = means(rho[order])
    tau, p_value = kendall(mean)
    low, high = float(mean[0]), float(mean[-1])
    with np.errstate(invalid="ignore"):
        z = (np.arctanh(np.clip(high, -1, 1)) - np.arctanh(np.clip(low, -1, 1))) / math.sqrt(2 / max(n - 3, 1))
    p_gain = float("nan") if not np.isfinite(high - low) else upper_tail(float(z))
    first, last = rho[order[0]], rho[order[-1]]
    first, last = first[np.isfinite(first)], last[np.isfinite(last)]
    overlap = float((first >= np.median(last)).mean()) if first.size and last.size else float("nan")
    return Convergence(tau, p_value, high - low, p_gain, overlap)


def means(rho: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over the samples that have a skill, along the last axis; NaN where none has."""
    present = np.isfinite(rho)
    with np.errstate(invalid="ignore"):
        out: NDArray[np.float64] = np.where(present, rho, 0.0).sum(axis=-1) / present.sum(axis=-1)
    return out


def kendall(values: NDArray[np.float64]) -> tuple[float, float]:
    """Kendall's tau-b of a sequence against its order, and the one-sided p-value of its rise; see :class:`Convergence`.

    Kendall, Biometrika 30, 81 (1938); Mann, Econometrica 13, 245 (1945).
    """
    values = values[np.isfinite(values)]
    n = len(values)
    if n < 3:
        return float("nan"), float("nan")
    signs = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)]
    s, pairs = int(signs.sum()), n * (n - 1) // 2
    _, ties = np.unique(values, return_counts=True)
    tied = int((ties * (ties - 1) // 2).sum())
    tau = s / math.sqrt(pairs * (pairs - tied)) if tied < pairs else float("nan")
    if tied == 0 and n <= _EXACT:
        discordant = (pairs - s) // 2
        counts = _inversions(n)
        return tau, float(sum(counts[: discordant + 1]) / math.factorial(n))
    variance = (n * (n - 1) * (2 * n + 5) - int((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance == 0:
        return tau, float("nan")
    return tau, upper_tail((s - np.sign(s)) / math.sqrt(variance))


def kendall_columns(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """:func:`kendall` of each column of finite values (n, m): tau and p-values, each (m,)."""
    n = len(values)
    signs = np.zeros(values.shape[1], np.int64)
    for later in range(1, n):
        signs += np.sign(values[later] - values[:later]).sum(axis=0).astype(np.int64)
    ordered = np.sort(values, axis=0)
    ties = np.packbits(ordered[1:] == ordered[:-1], axis=0)
    # The test looks at these two only, and few of them occur.
    _, first, which = np.unique(np.vstack([signs, ties]), axis=1, return_index=True, return_inverse=True)
    tests = np.array([kendall(values[:, column]) for column in first]).reshape(-1, 2)
    tau, p_value = tests[which.ravel()].T
    return tau, p_value


@lru_cache(maxsize=_EXACT + 1)
def _inversions(n: int) -> tuple[int, ...]:
    """How many orders of n things have 0, 1, 2, ... pairs the wrong way round."""
    counts = [1]
    for size in range(2, n + 1):
        longer = [0] * (len(counts) + size - 1)
        for i, count in enumerate(counts):
            for more in range(size):
                longer[i + more] += count
        counts = longer
    return tuple(counts)


def upper_tail(z: Any) -> float:
    """Chance that a standard normal number exceeds z."""
    return 0.5 * math.erfc(float(z) / math.sqrt(2))
