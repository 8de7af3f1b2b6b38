"""Series and options of all kinds for neighbours: gaps, ties, offsets, queries of their own."""

from __future__ import annotations

import naive
import numpy as np


def noise(n, seed):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def with_gaps(x, seed):
    """A few single NaN and one block of them."""
    rng = np.random.default_rng(seed)
    x = x.copy()
    x[rng.choice(len(x), max(1, len(x) // 60), replace=False)] = np.nan
    x[len(x) // 3 : len(x) // 3 + 4] = np.nan
    return x


def quantised(n, seed):
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.float32)


CASES = {
    "17": lambda: (noise(17, 1), {}),
    "33": lambda: (noise(33, 2), {"Tp": 1}),
    "100": lambda: (noise(100, 3), {"Tp": -2, "exclusion_radius": 5}),
    "257": lambda: (noise(257, 4), {"Tp": 3}),
    "1000": lambda: (naive.noisy_maps(1, 1000, 5)[:, 0], {"Tp": 1, "exclusion_radius": 5}),
    "1601": lambda: (noise(1601, 6), {}),
    "gaps": lambda: (with_gaps(noise(257, 7), 7), {"Tp": 1}),
    "gaps-negative-Tp": lambda: (with_gaps(noise(600, 8), 8), {"Tp": -2, "exclusion_radius": 5}),
    "ties": lambda: (quantised(1000, 9), {}),
    "ties-radius": lambda: (quantised(257, 10), {"Tp": 3, "exclusion_radius": 5}),
    "constant": lambda: (np.full(130, 2.5, np.float32), {"Tp": 1}),
    "offset": lambda: ((noise(1000, 11).astype(np.float64) + 1e4).astype(np.float32), {}),
    "few-legal": lambda: (with_gaps(noise(150, 12), 12), {"exclusion_radius": 60}),
    "none-legal": lambda: (noise(100, 13), {"exclusion_radius": 100}),
    "cross-longer": lambda: (noise(257, 14), {"query": with_gaps(noise(1000, 15), 15), "Tp": 1}),
    "cross-shorter": lambda: (with_gaps(noise(1000, 16), 16), {"query": noise(101, 17), "Tp": -2}),
    "cross-ties": lambda: (quantised(500, 18), {"query": quantised(300, 19), "Tp": 3}),
    "cross-itself": lambda: (noise(130, 20), {"query": noise(130, 20)}),
    "tiny-and-huge": lambda: (noise(300, 21) * np.float32(10.0) ** np.resize([-12, 0, 12], 300).astype(np.float32), {}),
}
