"""The series of digest_cases.py.

They come from additions, multiplications and the stream of ``RandomState``, which NumPy keeps as it is, so that every
machine and every version of NumPy makes the same bits of input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np


def _orbit(slope: Callable[..., tuple[float, ...]], state: tuple[float, ...], step: float, n: int) -> np.ndarray:
    """States (n, 3) of a flow, by the classical Runge-Kutta method; the first 500 are left out."""

    def moved(by: tuple[float, ...], h: float) -> tuple[float, ...]:
        return tuple(s + h * d for s, d in zip(state, by, strict=True))

    out = np.empty((n + 500, 3))
    for t in range(n + 500):
        out[t] = state
        a = slope(*state)
        b = slope(*moved(a, step / 2))
        c = slope(*moved(b, step / 2))
        d = slope(*moved(c, step))
        mean = tuple((p + 2 * q + 2 * r + s) / 6 for p, q, r, s in zip(a, b, c, d, strict=True))
        state = moved(mean, step)
    return np.ascontiguousarray(out[500:])


@functools.cache
def lorenz(n: int) -> np.ndarray:
    """All three coordinates (n, 3)."""

    def slope(x: float, y: float, z: float) -> tuple[float, ...]:
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    return _orbit(slope, (1.0, 1.0, 20.0), 0.02, n)


@functools.cache
def roessler(n: int) -> np.ndarray:
    """All three coordinates (n, 3)."""

    def slope(x: float, y: float, z: float) -> tuple[float, ...]:
        return -y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)

    return _orbit(slope, (1.0, 1.0, 0.0), 0.1, n)


@functools.cache
def maps(n: int, n_series: int) -> np.ndarray:
    """Coupled logistic maps (n, n_series), each driven by the one before it."""
    random = np.random.RandomState(7)
    x, r = 0.2 + 0.6 * random.random_sample(n_series), 3.6 + 0.3 * random.random_sample(n_series)
    out = np.empty((n + 100, n_series))
    for t in range(n + 100):
        out[t] = x
        x = r * x * (1 - x) * (1 - 0.1 * np.roll(x, 1))
    return np.ascontiguousarray(out[100:])


def noise(n: int, seed: int = 1) -> np.ndarray:
    return np.random.RandomState(seed).random_sample(n) - 0.5


def with_gaps(x: np.ndarray, every: int = 97) -> np.ndarray:
    """NaN for one step out of ``every``, and for ten in a row."""
    x = x.copy()
    x[every // 2 :: every] = np.nan
    x[len(x) // 3 : len(x) // 3 + 10] = np.nan
    return x


def with_constants(x: np.ndarray) -> np.ndarray:
    """Two pieces in which nothing changes."""
    x = x.copy()
    for begin in (len(x) // 5, len(x) // 2):
        x[begin : begin + len(x) // 8] = x[begin]
    return x


def quantised(x: np.ndarray, levels: int = 12) -> np.ndarray:
    """Few different values, so that many distances tie."""
    low, high = x.min(), x.max()
    return np.floor((x - low) / (high - low) * levels)


def mask(n: int) -> np.ndarray:
    return np.arange(n) % 5 != 2
