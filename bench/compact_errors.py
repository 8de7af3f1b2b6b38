"""What targets of 16 bits do to rho: errors against float64, beside the estimate that decides which may have them.

usage: python bench/compact_errors.py [--device NAME] [--steps 200,1500,3780] [--E 3,10] [--out FILE]

Of each kind of series 16 are mapped onto each other, all pairs with 16 bits, allowed or not. ``over_estimate`` is the
largest error in parts of d (docs/design/lookup.md): 2 d is what may not pass 2e-5. Neighbours are those of the map.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Report, parser
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.engines import targets
from pyedmcl.kernels.specs.maps import MOST_ERROR
from pyedmcl.reference import skill

N = 16


def kinds(n: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Series (n, N) by their names."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, N))
    red, spikes, t = noise.copy(), noise.copy(), np.arange(n)[:, None]
    for row in range(1, n):
        red[row] += 0.7 * red[row - 1]
    for column in range(N):
        spikes[rng.choice(n, 5, replace=False), column] += 1e4
    yield "coupled maps", coupled_maps(N, n, seed)
    yield "red noise", red
    yield "red noise, rounded to 0.1", np.round(red, 1)
    yield "random walk", noise.cumsum(axis=0)
    yield "log-normal", np.exp(noise)
    yield "Student t, 2 degrees", rng.standard_t(2, (n, N))
    yield "five spikes of 1e4", spikes
    yield "period of 20 rows", np.sin(2 * np.pi * (t / 20 + np.arange(N) / 7)) + 0.3 * np.sin(2 * np.pi * t / 10)
    yield "period of 7 rows", np.sin(2 * np.pi * (t / 7 + np.arange(N) / 5)) + 0.3 * np.cos(4 * np.pi * t / 7)
    yield "three values", np.round(rng.random((n, N)) * 2)


def errors(x: Any, E: int, device: str | None) -> tuple[Any, Any]:
    """Largest error of each target, in 16 bits and in full."""
    half, full = (pyedmcl.xmap(x, E=E, precision=how, device=device).rho for how in ("compact", "full"))
    tables = [pyedmcl.knn(library, E=E, device=device) for library in x.T]
    exact = np.array([[skill(table.indices, table.distances, target, 0) for target in x.T] for table in tables])
    return np.nanmax(np.abs(half - exact), axis=0), np.nanmax(np.abs(full - exact), axis=0)


def unasked(self: targets.CompactTargets, tables: Any, E: int, predicted: tuple[int, int]) -> Any:
    """Numbers of repeats that no pair fails by."""
    return self._executor.upload(np.zeros(tables.n_libraries, np.float32))


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--steps", default="200,1500,3780")
    command.add_argument("--E", default="3,10")
    options = command.parse_args()
    warnings.simplefilter("ignore")  # of targets that do not vary
    report = Report(select(options.device).device, options.out)
    targets._MOST_RATIO = np.inf  # all of them
    targets.CompactTargets.repeats = unasked
    for steps in map(int, options.steps.split(",")):
        for E in map(int, options.E.split(",")):
            for kind, x in kinds(steps, steps + E):
                x = np.ascontiguousarray(x, np.float32)
                ratio = np.ptp(x, axis=0) / x.std(axis=0)
                estimate = 5.0e-5 * ratio / np.sqrt(steps)
                half, full = errors(x, E, options.device)
                allowed = 2 * estimate <= MOST_ERROR
                found = {
                    "range_over_deviation": np.median(ratio), "allowed": allowed.sum(), "error": half.max(),
                    "over_estimate": (half / estimate).max(), "error_of_allowed": half[allowed].max(initial=0),
                    "error_in_full": full.max(),
                }  # fmt: skip
                report.add(kind=kind, steps=steps, E=E, of=N,
                           **{name: float(f"{value:.3g}") for name, value in found.items()})  # fmt: skip


if __name__ == "__main__":
    main()
