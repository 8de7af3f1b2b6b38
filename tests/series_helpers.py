"""Series that tests of several packages use."""

from __future__ import annotations

from functools import cache

import numpy as np


def driven(n, seed=0, strength=0.3):
    """Two logistic maps: x drives y, y does not drive x (Sugihara et al. 2012)."""
    rng = np.random.default_rng(seed)
    x, y = rng.random(2) * 0.5 + 0.2
    out = np.empty((n + 200, 2))
    for t in range(n + 200):
        x, y = x * (3.7 - 3.7 * x), y * (3.6 - 3.6 * y - strength * x)
        out[t] = x, y
    return out[200:, 0], out[200:, 1]


#: Who drives whom among three series, for :func:`linked_maps`: one after the other, and with a direct link beside.
CHAIN = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
LOOP = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def linked_maps(n, links, seed=0, strength=0.3):
    """Coupled logistic maps, ``links[i, j]``: i drives j."""
    rng = np.random.default_rng(seed)
    weights = np.asarray(links, float)
    weights = weights / np.maximum(weights.sum(axis=0), 1)
    growth, x = rng.uniform(3.65, 3.85, len(weights)), rng.uniform(0.2, 0.8, len(weights))
    out = np.empty((n + 100, len(weights)))
    for t in range(n + 100):
        x = np.clip(x * (growth * (1 - x) - strength * (x @ weights)), 1e-3, 1)
        out[t] = x
    return out[100:]


def red(n, seed, memory=0.6):
    """A series that remembers: each value is that share of the one before, and noise."""
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = memory * x[t - 1] + rng.standard_normal()
    return x


@cache
def lorenz(n):
    """Lorenz's system, a Runge-Kutta step of 0.05 between rows: (n, 3). Not to be written to."""

    def slope(v):
        return np.array([10 * (v[1] - v[0]), v[0] * (28 - v[2]) - v[1], v[0] * v[1] - 8 / 3 * v[2]])

    out, v, h = np.empty((n, 3)), np.array([1.0, 1.0, 20.0]), 0.05
    for t in range(n):
        a = slope(v)
        b = slope(v + h / 2 * a)
        c = slope(v + h / 2 * b)
        v = v + h / 6 * (a + 2 * b + 2 * c + slope(v + h * c))
        out[t] = v
    out.flags.writeable = False
    return out


@cache
def lorenz_x(n=3000):
    """The first coordinate of :func:`lorenz`, float32."""
    return np.asarray(lorenz(n)[:, 0], np.float32)


def gaps(x):
    """``x`` with one value in 80 missing."""
    x = x.copy()
    x[np.random.default_rng(2).choice(len(x), len(x) // 80, replace=False)] = np.nan
    return x


def quantised(n):
    """Four values: most distances tie."""
    return np.random.default_rng(9).integers(0, 4, n).astype(np.float32)
