"""Whole calls of one state of the code on chaotic maps and on red noise; two states are run in turns to compare them.

usage: PYTHONPATH=CHECKOUT python bench/before_after.py --state WORDS [--device NAME] [--repeat 3] [--out FILE]

Each state runs in processes of its own: before, after, before, after. Shapes are none that parameters were tuned on.
``peak_mb`` is the device memory of a call that is not the first.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from common import Report, compiled, parser, timed

import pyedmcl
from pyedmcl.device.select import open_device


def maps(n_series: int, n_steps: int, seed: int) -> np.ndarray:
    """Logistic maps, each driven by another one, observed with noise: float32 (n_steps, n_series)."""
    rng = np.random.default_rng(seed)
    x, r = rng.uniform(0.2, 0.8, n_series), rng.uniform(3.55, 3.95, n_series)
    driver = rng.integers(0, n_series, n_series)
    out = np.empty((n_steps + 100, n_series), np.float32)
    for t in range(n_steps + 100):
        x = np.clip(x * (r - r * x) * (1 - 0.1 * x[driver]), 1e-5, 1 - 1e-5)
        out[t] = x
    return np.ascontiguousarray(out[100:] + np.float32(0.02) * rng.standard_normal((n_steps, n_series), np.float32))


def red(n_series: int, n_steps: int, seed: int) -> np.ndarray:
    """Red noise of correlation 0.9 from row to row: float32 (n_steps, n_series)."""
    rng = np.random.default_rng(seed)
    x, out = 2.3 * rng.standard_normal(n_series), np.empty((n_steps, n_series), np.float32)
    for t in range(n_steps):
        x = 0.9 * x + rng.standard_normal(n_series)
        out[t] = x
    return out


def with_cycles(n_steps: int, seed: int) -> np.ndarray:
    """Red noise of correlation 0.95 from row to row, and two cycles: float32 (n_steps,)."""
    x, level = np.empty(n_steps), 0.0
    for t, step in enumerate(np.random.default_rng(seed).standard_normal(n_steps).tolist()):
        level = 0.95 * level + step
        x[t] = level
    t = 2 * np.pi * np.arange(n_steps)
    return ((x - x.mean()) / x.std() + 0.4 * np.sin(t / 37) + 0.2 * np.sin(t / 365.25)).astype(np.float32)


def cases(device: str | None) -> Iterator[tuple[dict[str, object], Callable[[], object]]]:
    """What a case is, and its call."""
    for kind in (maps, red):
        for n, length in ((1500, 2600), (500, 2200), (3000, 1100)):
            x, mixed = kind(n, length, 7), np.random.default_rng(12).permutation(1 + np.arange(n) % 20).tolist()
            for E, precision in itertools.product(("mixed", 4), ("full", "compact")):
                case = {"shape": f"{n}x{length}", "series": kind.__name__, "E": E, "precision": precision}
                of_targets = mixed if E == "mixed" else E
                yield case, partial(pyedmcl.xmap, x, E=of_targets, precision=precision, device=device)
    for points, exact in itertools.product((50_000, 110_000), (True, False)):
        for series, x, radius in (("maps", maps(1, points, 6)[:, 0], 0.1), ("red", with_cycles(points, 5), 0.75)):
            case = {"points": points, "series": series, "exact": exact}
            yield case, partial(pyedmcl.rqa, x, m=5, tau=3, radius=radius, exact=exact, device=device)


def main() -> None:
    command = parser(__doc__, repeat=3)
    command.add_argument("--state", required=True, help="of the code that runs")
    options = command.parse_args()
    executor = open_device(options.device)
    report = Report(executor.info, options.out)
    for case, call in cases(options.device):
        compiled(call)
        executor.memory.peak = executor.memory.held
        seconds, _ = timed(call, options.repeat)
        peak = executor.memory.peak >> 20
        report.add(state=options.state, **case, ms=1e3 * statistics.median(seconds), peak_mb=peak)


if __name__ == "__main__":
    main()
