"""The loops of docs/loops.md that bench/grids.py does not measure: one call against our own function in a loop.

usage: python bench/loops.py [--device NAME] [--cases folds,field,pairs,matrix,scan,surrogates,radii] [--repeat 5]
                             [--out FILE]

folds: xmap_grid over E = 1 .. 6 with 3 folds, 60 series of 1,000 steps, against xmap with folds for each E.
field: maps of 400 points onto an index and back, 500 steps, against a call for each point and direction.
pairs: ccm_matrix of 20 series of 500 steps, three library sizes with 100 samples, against ccm for each of 190 pairs.
matrix: ccm_matrix of 6 series within 29 windows of 150 rows, against a call for each window.
scan: embedding_scan of 20 series of 500 steps, 7 E x 3 tau x 2 Tp, against simplex for each.
surrogates: xmap_significance of 20 series of 500 steps with 99 surrogates, against a map for each surrogate; the loop
draws them, too.
radii: rqa of 2,000 points with 16 radii, against a call for each.

One call and the loop take turns, and the ratio is that of the medians. Prints a line for people and appends a JSON line
per case to FILE.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from common import Report, clock, compiled, parser
from workloads import coupled_maps, weather_like

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.errors import PyedmclWarning

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def series(n: int, steps: int) -> Any:
    return np.ascontiguousarray(coupled_maps(n, steps), np.float32)


def folds(device: Any) -> Pair:
    x, dims, own = series(60, 1000), range(1, 7), {"folds": 3, "device": device}
    return (
        lambda: pyedmcl.xmap_grid(x, E=dims, **own).rho,
        lambda: [pyedmcl.xmap(x, E=E, **own).rho for E in dims],
    )


def field(device: Any) -> Pair:
    x, own = series(401, 500), {"E": 3, "device": device}
    index, points = x[:, :1], np.ascontiguousarray(x[:, 1:])
    columns = [np.ascontiguousarray(column[:, None]) for column in points.T]
    return (
        lambda: [pyedmcl.xmap(points, targets=index, **own).rho, pyedmcl.xmap(index, targets=points, **own).rho],
        lambda: [(pyedmcl.xmap(column, targets=index, **own).rho, pyedmcl.xmap(index, targets=column, **own).rho)
                 for column in columns],
    )  # fmt: skip


def pairs(device: Any) -> Pair:
    x = series(20, 500)
    own: dict[str, Any] = {"E": 3, "lib_sizes": [50, 150, 490], "sample": 100, "seed": 1, "device": device}
    return (
        lambda: pyedmcl.ccm_matrix(x, **own).rho,
        lambda: [pyedmcl.ccm(a, b, **own).rho for a, b in combinations(x.T, 2)],
    )


def matrix(device: Any) -> Pair:
    x, width, step = series(6, 990), 150, 30
    own: dict[str, Any] = {"E": 3, "lib_sizes": [30, 140], "sample": 20, "seed": 1, "device": device}
    begins = range(0, len(x) - width + 1, step)
    return (
        lambda: pyedmcl.ccm_matrix(x, windows=(width, step), **own).rho,
        lambda: [pyedmcl.ccm_matrix(x[begin : begin + width], **own).rho for begin in begins],
    )


def scan(device: Any) -> Pair:
    x, dims, taus, steps = series(20, 500), range(1, 8), (1, 2, 3), (1, 2)
    return (
        lambda: pyedmcl.embedding_scan(x, E=dims, tau=taus, Tp=steps, device=device).rho,
        lambda: [pyedmcl.simplex(column, E=E, tau=tau, Tp=Tp, device=device).rho
                 for column in x.T for E in dims for tau in taus for Tp in steps],
    )  # fmt: skip


def surrogates(device: Any) -> Pair:
    x, n, own = series(20, 500), 99, {"E": 3, "device": device}

    def one_by_one() -> list[Any]:
        drawn = np.stack([pyedmcl.surrogate(column, "phase", n=n, seed=1) for column in x.T], axis=-1)
        return [pyedmcl.xmap(x, targets=each, **own).rho for each in drawn.astype(np.float32)]

    return lambda: pyedmcl.xmap_significance(x, surrogate="phase", n=n, seed=1, **own).p_value, one_by_one


def radii(device: Any) -> Pair:
    x, wanted = weather_like(2000), np.linspace(0.1, 1.6, 16).tolist()
    own: dict[str, Any] = {"m": 3, "tau": 3, "device": device}
    return lambda: pyedmcl.rqa(x, radius=wanted, **own), lambda: [pyedmcl.rqa(x, radius=one, **own) for one in wanted]


CASES: dict[str, Callable[[Any], Pair]] = {
    "folds": folds, "field": field, "pairs": pairs, "matrix": matrix, "scan": scan, "surrogates": surrogates,
    "radii": radii,
}  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, repeat=5)
    arguments.add_argument("--cases", default=",".join(CASES))
    options = arguments.parse_args()
    warnings.simplefilter("ignore", PyedmclWarning)  # few surrogates show little
    report = Report(select(options.device).device, options.out)
    print(report.title)
    for name in options.cases.split(","):
        together, loop = CASES[name](options.device)
        times: dict[str, list[float]] = {"together": [], "loop": []}
        compiled(together), compiled(loop)
        for _ in range(options.repeat):
            times["together"].append(clock(together))
            times["loop"].append(clock(loop))
        call, turns = (statistics.median(taken) for taken in times.values())
        report.add(f"{name}: {call:.4f} s; loop {turns:.3f} s, {turns / call:.1f}x", case=f"loop_{name}", call_s=call,
                   loop_s=turns, ratio_loop=turns / call, all=times)  # fmt: skip


if __name__ == "__main__":
    main()
