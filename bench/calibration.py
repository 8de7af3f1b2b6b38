"""Do p-values hold their level? The share of tests with p <= 0.05 in tables of series that no link joins.

usage: python bench/calibration.py [--quick] [--device NAME] [--rows 150,500] [--tables 20] [--first 1000]
       [--kinds 'season;...'] [--surrogate auto] [--n 99] [--tests p,gain,...] [--seconds S] [--out FILE]

For each kind of null (bench/null_systems.py) and each number of rows: the share of p <= 0.05 of all 30 ordered pairs of
6 series, its standard error over tables (pairs of one table are not independent), and the share of p <= 0.01. With
--n 1999 the share of p <= 0.001 says something, too.
  p     pyedmcl.xmap_significance with its defaults, but for n and one E for all: the median of embed_dimension, since
        each other set of E compiles a kernel of its own
  windows  the same in windows of half of the rows, a quarter of them apart
  gain  p_gain of pyedmcl.ccm_significance, of the first three pairs of series in both directions
  converging  0 for pairs of CcmMatrixResult.converging() and 1 for others, which is no test: p05 is the share of pairs
  verdict  0 for pairs that pyedmcl.causal_network calls direct, and 1 for others; --n is its budget
  interval  coverage of SimplexResult.interval(0.95), of maps and flows with noise: of the half of the rows that follow
        the library, at 1 to 10 steps ahead, and of as many generated steps
Rules were chosen on numbers 0 to 99 and on kinds whose period and place are drawn; those from 1,000 on are reported.
A JSON line for each goes to the file of --out. --quick: 3 tables of each.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from common import Report, parser
from network_systems import flows
from null_systems import NULLS, logistic, null_table
from numpy.typing import NDArray

import pyedmcl
from pyedmcl.device.select import open_device

Data = NDArray[np.float64]
FIRST = 1000
N_SERIES = 6


def p_of_windows(data: Data, surrogate: str | None, n: int, number: int, device: str | None) -> Data:
    """P-values of all ordered pairs in each of three windows."""
    return p_values(data, surrogate, n, number, device, windows=(len(data) // 2, len(data) // 4))


def p_values(
    data: Data, surrogate: str | None, n: int, number: int, device: str | None, **options: Any
) -> Data:  # fmt: skip
    """P-values of all ordered pairs against surrogates."""
    E = int(np.median([pyedmcl.embed_dimension(column, E_max=10, device=device).E for column in data.T]))
    options |= {} if surrogate is None else {"surrogate": surrogate}
    found = pyedmcl.xmap_significance(data, E=E, n=n, seed=number, device=device, **options)
    return found.p_value[..., ~np.eye(data.shape[1], dtype=bool)].ravel()


def p_of_gains(data: Data, surrogate: str | None, n: int, number: int, device: str | None) -> Data:
    """P-values of convergence of three pairs, both directions, against gains of surrogates."""
    options = {} if surrogate is None else {"surrogate": surrogate}
    pairs = [(data[:, i], data[:, i + 1]) for i in (0, 2, 4)]
    return np.concatenate([
        pyedmcl.ccm_significance(x, y, E=3, n=n, seed=number, device=device, **options).p_gain for x, y in pairs
    ])  # fmt: skip


def not_converging(data: Data, surrogate: str | None, n: int, number: int, device: str | None) -> Data:
    """0 for ordered pairs whose skill grows steadily with the library, else 1."""
    found = pyedmcl.ccm_matrix(data, E=3, sample=10, seed=number, device=device).converging()
    return 1.0 - found[~np.eye(data.shape[1], dtype=bool)]


def not_direct(data: Data, surrogate: str | None, n: int, number: int, device: str | None) -> Data:
    """0 for ordered pairs of verdict "direct", else 1."""
    options = {} if surrogate is None else {"surrogate": surrogate}
    found = pyedmcl.causal_network(data, budget=n, seed=number, device=device, **options).verdict == "direct"
    return 1.0 - found[~np.eye(data.shape[1], dtype=bool)]


def systems(name: str, number: int, rows: int) -> Data:
    """A logistic map or a flow (bench/network_systems.py) by itself."""
    rng = np.random.default_rng([number, *map(ord, name)])
    if name == "logistic map":
        return logistic(rng, 1, rows)[:, 0]
    return flows(rng, np.zeros((2, 2), bool), rows, 0.0)[:, 0]


def coverage(report: Report, rows: int, numbers: range, parts: list[str], device: str | None) -> None:
    """Shares of values within intervals of 95 %, and the largest standard error of these over tables."""
    for name, E in (("logistic map", 2), ("flow", 4)):
        if not any(part in name for part in parts):
            continue
        for noise in (0.0, 0.1, 0.3, 0.5):
            ahead: dict[int, list[float]] = {Tp: [] for Tp in (1, 2, 5, 10)}
            generated: list[float] = []
            for number in numbers:
                x = systems(name, number, rows + 10)
                x = x + noise * x.std() * np.random.default_rng(number).standard_normal(len(x))
                half = rows // 2
                for Tp, shares in ahead.items():
                    library = pyedmcl.simplex(x[:half], E=E, Tp=Tp, exclusion_radius=E + Tp, device=device)
                    lower, upper = library.interval(0.95)
                    width = float(np.nanmedian(upper - lower)) / 2
                    later = pyedmcl.simplex(x, E=E, Tp=Tp, lib_range=(0, half), pred_range=(half, rows), device=device)
                    off = np.abs(later.observed - later.predicted)
                    shares.append(float((off[np.isfinite(off)] <= width).mean()))
                made = pyedmcl.simplex(x[:rows], E=E, generate_steps=10, exclusion_radius=E, device=device)
                lower, upper = made.interval(0.95)
                generated.append(float(((lower <= x[rows:]) & (x[rows:] <= upper)).mean()))
            report.add(
                kind=f"interval, {name}, noise {noise:.0%}", rows=rows, tables=len(numbers), first=numbers[0],
                **{f"Tp{Tp}": round(float(np.mean(shares)), 3) for Tp, shares in ahead.items()},
                generated=round(float(np.mean(generated)), 3),
                error=round(max(map(np.std, (*ahead.values(), generated))) / math.sqrt(len(numbers) - 1), 3),
            )  # fmt: skip


TESTS = {"p": p_values, "windows": p_of_windows, "gain": p_of_gains,
         "converging": not_converging, "verdict": not_direct}  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--rows", default="150,500")
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--first", type=int, default=FIRST)
    options.add_argument("--kinds", help="parts of names of kinds, with semicolons between them")
    options.add_argument("--surrogate", help="by default that of the function")
    options.add_argument("--n", type=int, default=99)
    options.add_argument("--tests", default="p")
    options.add_argument("--seconds", type=float, default=math.inf, help="stop after this many")
    given = options.parse_args()
    parts = [part.strip() for part in given.kinds.split(";")] if given.kinds else [""]
    kinds = [kind for kind in NULLS if any(part in kind for part in parts)]
    report, until = Report(open_device(given.device).info, given.out), time.monotonic() + given.seconds
    numbers = range(given.first, given.first + (3 if given.quick else given.tables))
    if given.tests == "interval":
        for rows in map(int, given.rows.split(",")):
            coverage(report, rows, numbers, parts, given.device)
        return
    for kind in kinds:
        for rows in map(int, given.rows.split(",")):
            for test in given.tests.split(","):
                shares = []
                for number in numbers:
                    if time.monotonic() >= until:
                        return
                    data = null_table(kind, number, N_SERIES, rows)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        p = TESTS[test](data, given.surrogate, given.n, number, given.device)
                    shares.append([np.nanmean(p <= level) for level in (0.05, 0.01, 0.001)])
                table = np.array(shares)
                report.add(
                    kind=kind, rows=rows, test=test, tables=len(table), first=given.first, n=given.n,
                    p05=round(float(table[:, 0].mean()), 3),
                    error=round(float(table[:, 0].std(ddof=1) / math.sqrt(len(table))), 3),
                    p01=round(float(table[:, 1].mean()), 4), p001=round(float(table[:, 2].mean()), 4),
                )  # fmt: skip


if __name__ == "__main__":
    main()
