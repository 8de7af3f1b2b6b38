"""How long lag profiles of many dyads take, with surrogates, and how often p <= 0.05 where nothing is to be found.

Run: python bench/lag_profiles.py [dyads]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import pyedmcl

ROWS, LAGS, SURROGATES = 1000, 50, 99


def autoregressive(rng: np.random.Generator, n: int, share: float) -> np.ndarray:
    """Series of which each value keeps a share of the one before."""
    noise = rng.standard_normal((n, ROWS))
    for t in range(1, ROWS):
        noise[:, t] += share * noise[:, t - 1]
    return noise


def main() -> None:
    dyads = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    for share in (0.0, 0.9):
        x, y = (list(autoregressive(rng, dyads, share)) for _ in range(2))
        options = {"lags": LAGS, "radius": 0.2, "radius_unit": "std", "seed": 1}
        pyedmcl.lag_profile(x[:2], y[:2], n=2, **options)
        for surrogate in ("blocks", "shift", "shuffle"):
            begin = time.perf_counter()
            found = pyedmcl.lag_profile(x, y, n=SURROGATES, surrogate=surrogate, **options)
            taken = time.perf_counter() - begin
            low, high = found.band
            outside = float(((found.rate < low) | (found.rate > high)).mean())
            print(f"memory {share}, {surrogate}: {dyads} dyads in {taken:.1f} s; p <= 0.05 of "
                  f"{(found.p_value <= 0.05).mean():.3f}, outside the band of 0.95: {outside:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
