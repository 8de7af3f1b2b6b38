"""Series, states and parameters of kernels that tests of S-map use."""

from __future__ import annotations

import naive
import numpy as np

N, LENGTH = 5, 200
MIXED = (3, 1, 5, 3, 1)


def between_rows(m, dims, seed=0):
    """A library of m rows, drawn from 2 m query rows: its states, targets and rows; states and rows of the queries."""
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((2 * m, dims)) + 3.0
    rows = np.sort(rng.choice(2 * m, m, replace=False))
    y = np.sin(states).sum(axis=1) + 0.1 * rng.standard_normal(2 * m)
    return states[rows], y[rows], rows, states, np.arange(2 * m)


def plain():
    return naive.noisy_maps(N, LENGTH, 1)


def gaps():
    x = naive.noisy_maps(N, LENGTH, 2)
    x[50:53, 0] = np.nan
    x[[9, 100], 3] = np.nan
    return x


def lorenz(noise=0.0):
    state, out = np.array([1.0, 2.0, 20.0]), []

    def slope(s):
        return np.array([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    for _ in range(5 * (LENGTH + 100)):
        a = slope(state)
        b = slope(state + 0.005 * a)
        c = slope(state + 0.005 * b)
        d = slope(state + 0.01 * c)
        state = state + 0.01 / 6 * (a + 2 * b + 2 * c + d)
        out.append(state)
    x = np.array(out[500::5])
    return x + noise * x.std(axis=0) * np.random.default_rng(0).standard_normal(x.shape)


def spikes(x):
    x = x.copy()
    x[np.random.default_rng(1).choice(len(x), 5, replace=False)] *= 1e4
    return x


def periodic():
    t = np.arange(LENGTH)
    noise = np.random.default_rng(2).standard_normal(LENGTH)
    return np.column_stack([np.sin(2 * np.pi * t / 20), np.cos(2 * np.pi * t / 12.3), noise])


HARD = {
    "lorenz": lorenz,
    "nearly no noise": lambda: lorenz(1e-3),
    "heavy tails": lambda: np.random.default_rng(3).standard_t(2, (LENGTH, 3)),
    "log-normal": lambda: np.exp(2 * np.random.default_rng(4).standard_normal((LENGTH, 3))),
    "spikes": lambda: spikes(plain()[:, :3]),
    "spikes on lorenz": lambda: spikes(lorenz()),
    "periodic": periodic,
    "far from zero": lambda: plain()[:, :3] + 1e4,
}


GROUPS = {  # as on GPUs: work-items share library rows and tiles
    "smap_map": {"lanes": 1, "width": 4, "vectors": 2, "rows_each": 4, "target_lanes": 4, "row_lanes": 8,
                 "row_tiles": 1, "target_tiles": 1, "step": 16},
    "smap_gram": {"lanes": 1, "wg": 64},
    "smap_white": {"wg": 64},
    "smap_slopes": {"lanes": 1, "wg": 64},
}  # fmt: skip
