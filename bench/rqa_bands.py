"""How often bands of recurrence measures hold the mean over many series of one process.

Beside them, those that draw the lines of the histogram anew (Schinkel et al., Physics Letters A 373, 2245, 2009).

Run: python bench/rqa_bands.py [repetitions]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from rqa_significance import autoregressive

import pyedmcl
from pyedmcl.recurrence_tests import BANDED

DRAWS = 200


def roessler(rng: np.random.Generator, n: int, rows: int, dt: float = 0.2, parts: int = 4) -> np.ndarray:
    """x of n trajectories of the Roessler system (a = b = 0.2, c = 5.7), each from a place of its own."""

    def slope(state: np.ndarray) -> np.ndarray:
        x, y, z = state
        return np.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)])

    state = rng.uniform(-5, 5, (3, n)) * [[1.0], [1.0], [0.0]]
    out, h = np.empty((n, rows)), dt / parts
    for t in range(-1500, rows):
        for _ in range(parts):
            a = slope(state)
            b = slope(state + h / 2 * a)
            c = slope(state + h / 2 * b)
            state = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
        if t >= 0:
            out[:, t] = state[0]
    return out


def oscillation(rng: np.random.Generator, n: int, rows: int) -> np.ndarray:
    """An autoregression of two lags with a wandering rhythm of 12 rows."""
    out, pole = np.zeros((n, rows + 200)), 0.93
    for t in range(2, rows + 200):
        lagged = 2 * pole * np.cos(2 * np.pi / 12) * out[:, t - 1] - pole**2 * out[:, t - 2]
        out[:, t] = lagged + rng.standard_normal(n)
    out /= out.std()
    return out[:, 200:]


def maps(rng: np.random.Generator, n: int, rows: int) -> np.ndarray:
    """Logistic maps (r = 3.8) with 10 % noise of observation."""
    x, out = rng.uniform(0.2, 0.8, n), np.empty((n, rows))
    for t in range(-100, rows):
        x = 3.8 * x * (1 - x)
        if t >= 0:
            out[:, t] = x
    return (out - out.mean()) / out.std() + 0.1 * rng.standard_normal((n, rows))


def of_lines(rng: np.random.Generator, lines: np.ndarray, least: int) -> tuple[float, float]:
    """The band of a share of points on long lines, from lines that are drawn anew."""
    lengths = np.flatnonzero(lines)
    drawn = rng.multinomial(lines.sum(), lines[lengths] / lines.sum(), DRAWS) * lengths
    low, high = np.quantile(drawn[:, lengths >= least].sum(axis=1) / drawn.sum(axis=1), [0.025, 0.975])
    return low, high


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    noise, flow = autoregressive(rng, n, 0.7, 2000), roessler(rng, n, 5000)
    beside = 0.5 * noise + autoregressive(rng, n, 0.7, 2000)
    of_noise = {"m": 2, "tau": 1, "radius": 0.5, "theiler": 1}
    of_flow = {"m": 3, "tau": 6, "radius": 1.5, "theiler": 10}
    systems = {
        "autoregressive, 0.7, 500 rows": (noise[:, :500], None, of_noise),
        "autoregressive, 0.7, 2,000 rows": (noise, None, of_noise),
        "autoregressive against one that shares a part, 2,000 rows": (noise, beside, of_noise),
        "Roessler, 2,000 rows": (flow[:, :2000], None, of_flow), "Roessler, 5,000 rows": (flow, None, of_flow),
        "Roessler, 5,000 rows, radius 3": (flow, None, of_flow | {"radius": 3.0}),
        # The bands were chosen on those above, not on these.
        "oscillation of 12 rows, 2,000 rows": (oscillation(rng, n, 2000), None, of_noise | {"m": 3, "tau": 3}),
        "logistic maps with noise, 1,000 rows": (maps(rng, n, 1000), None, of_noise | {"radius": 0.3}),
    }  # fmt: skip
    for name, (repetitions, others, options) in systems.items():
        # A window is a series of its own: all repetitions have their bands in one call.
        sides = [side.ravel() for side in (repetitions, others) if side is not None]
        bands = pyedmcl.rqa_bands(*sides, window=repetitions.shape[1], measures=BANDED, **options)
        mean = bands.value.mean(axis=0)
        held = ((bands.low <= mean) & (mean <= bands.high)).mean(axis=0)
        print(f"{name}: " + ", ".join(f"{one} {share:.3f}" for one, share in zip(BANDED, held, strict=True)))
        plain = {"DET": ("diagonal_lines", "lmin"), "LAM": ("vertical_lines", "vmin")}
        shares = dict.fromkeys(plain, 0.0)
        for result in pyedmcl.rqa_batch(list(repetitions), None if others is None else list(others), **options):
            for measure, (lines, least) in plain.items():
                low, high = of_lines(rng, getattr(result, lines), getattr(result, least))
                shares[measure] += (low <= mean[BANDED.index(measure)] <= high) / n
        print("  lines drawn anew: " + ", ".join(f"{one} {share:.3f}" for one, share in shares.items()))


if __name__ == "__main__":
    main()
