"""How often recurrence measures differ from surrogates at p <= 0.05, where nothing is to be found and where chaos is.

Run: python bench/rqa_significance.py [repetitions]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import pyedmcl

ROWS, SURROGATES = 400, 39


def autoregressive(rng: np.random.Generator, n: int, share: float, rows: int = ROWS) -> np.ndarray:
    """Series of which each value keeps a share of the one before."""
    noise = rng.standard_normal((n, rows + 100))
    for t in range(1, noise.shape[1]):
        noise[:, t] += share * noise[:, t - 1]
    return noise[:, 100:]


def logistic(rng: np.random.Generator, n: int) -> np.ndarray:
    """Chaotic series, with a tenth of noise."""
    x = np.empty((n, ROWS))
    x[:, 0] = rng.uniform(0.2, 0.8, n)
    for t in range(1, ROWS):
        x[:, t] = 3.9 * x[:, t - 1] * (1 - x[:, t - 1])
    return x + 0.1 * x.std() * rng.standard_normal(x.shape)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    systems = {
        "white noise": autoregressive(rng, n, 0.0), "autoregressive, 0.7": autoregressive(rng, n, 0.7),
        "exponential of autoregressive, 0.7": np.exp(autoregressive(rng, n, 0.7)), "logistic map": logistic(rng, n),
    }  # fmt: skip
    for name, repetitions in systems.items():
        for surrogate in ("iaaft", "phase", "shuffle"):
            # A window is a series of its own: all repetitions are tested in one call.
            tested = pyedmcl.rqa_significance(
                repetitions.ravel(), window=ROWS, radius=0.05, threshold="recurrence_rate", m=2, tau=1,
                surrogate=surrogate, n=SURROGATES, seed=1,
            )  # fmt: skip
            found = (tested.p_value <= 0.05).mean(axis=0)
            print(f"{name}, {surrogate}: " + ", ".join(
                f"{measure} {share:.3f}" for measure, share in zip(tested.measures, found, strict=True)))


if __name__ == "__main__":
    main()
