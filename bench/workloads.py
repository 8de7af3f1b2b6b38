"""The series that every speed comparison uses, for pyedmcl and its peers alike."""

from __future__ import annotations

import numpy as np


def coupled_maps(n_series: int, n_steps: int, seed: int = 0) -> np.ndarray:
    """Coupled logistic maps, float32 (n_steps, n_series); each series is driven weakly by a random parent."""
    rng = np.random.default_rng(seed)
    x = rng.random(n_series) * 0.8 + 0.1
    r = 3.6 + 0.35 * rng.random(n_series)
    parent = rng.integers(0, n_series, n_series)
    out = np.empty((n_steps + 100, n_series), np.float32)
    for t in range(n_steps + 100):
        x = np.clip(r * x * (1 - x) * (1 - 0.1 * x[parent]), 1e-6, 1 - 1e-6)
        out[t] = x
    return np.ascontiguousarray(out[100:])


def mixed_dimensions(n_series: int, e_max: int = 20) -> list[int]:
    """Every embedding dimension from 1 to ``e_max`` in turn: E_i = 1 + 7919 i mod e_max."""
    return [1 + (i * 7919) % e_max for i in range(n_series)]


def weather_like(n_steps: int, seed: int = 0) -> np.ndarray:
    """A stationary red-noise series with a daily cycle, float32, for recurrence (m = 5, tau = 3, radius 0.7)."""
    noise = 0.2 * np.random.default_rng(seed).standard_normal(n_steps)
    x = np.empty(n_steps)
    level = 0.0
    for t, step in enumerate(noise.tolist()):
        level = 0.98 * level + step
        x[t] = level
    x = (x - x.mean()) / x.std() + 0.3 * np.sin(np.arange(n_steps) * 2 * np.pi / 24)
    return x.astype(np.float32)
