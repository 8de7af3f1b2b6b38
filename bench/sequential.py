"""Does n="auto" decide as 100,000 surrogates of each pair do, and for which part of their work?

usage: python bench/sequential.py [--device NAME] [--networks 2] [--most 100000] [--out FILE]

Tests whose p-values are known, without any series: some tests together, some of them with a tiny p-value and the
others with a uniform one; 1,000 times (of 1,560 tests 100 times). And all pairs of simulated networks
(bench/network_systems.py, numbers from 2,000 on) by `pyedmcl.xmap_significance` with E = 3 and surrogates of method
"auto". Both ways have the same surrogates, and one of them stops earlier. A JSON line a case: the share of tests that
are decided alike, and the surrogates of "auto" as a share of those of the other way.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Report, parser
from network_systems import simulated

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.functions import BUDGET
from pyedmcl.statistics import FIRST, SequentialTests

RATE = 0.05
CASES = ("maps, strong, 10 % noise", "Lotka-Volterra", "no links")
KNOWN = ((90, 0), (90, 10), (90, 45), (1560, 0), (1560, 60), (1560, 400))
REPEATS = {90: 1000, 1560: 100}
ROWS = 400


def of_series(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """All pairs of some networks of a case."""
    alike = pairs = drawn = found = 0
    for number in range(2000, 2000 + given.networks):
        data = simulated(name, number)[1]
        options: dict[str, Any] = {"E": 3, "surrogate": "auto", "seed": number, "rate": RATE, "device": given.device}
        few = pyedmcl.xmap_significance(data, n="auto", **options)
        many = pyedmcl.xmap_significance(data, n=given.most, **options)
        off = ~np.eye(len(few.rho), dtype=bool)
        decided = many.q_value[off] <= RATE
        alike += int(((few.q_value[off] <= RATE) == decided).sum())
        pairs, drawn, found = pairs + int(off.sum()), drawn + int(few.draws[off].sum()), found + int(decided.sum())
    return {"case": name, "tests": pairs, "significant": found, "alike": round(alike / pairs, 5),
            "work": round(drawn / (pairs * given.most), 5)}  # fmt: skip


def of_known(tests: int, tiny: int, most: int) -> dict[str, Any]:
    """Tests whose p-values are known, all of them at once, many times."""
    rng, repeats = np.random.default_rng([tests, tiny]), REPEATS[tests]
    alike = drawn = found = 0
    for _ in range(repeats):
        truth = np.concatenate([np.full(tiny, 1e-5), rng.random(tests - tiny)])
        rounds = SequentialTests(RATE, BUDGET, FIRST, rng.binomial(FIRST, truth), np.full(tests, FIRST))
        while step := rounds.step(ROWS):
            rounds.add(step, np.where(rounds.open, rng.binomial(step, truth), 0), np.where(rounds.open, step, 0))
        left = np.maximum(most - rounds.n, 0)
        reached, n = rounds.reached + rng.binomial(left, truth), rounds.n + left
        decided = pyedmcl.false_discovery((1 + reached) / (1 + n)) <= RATE
        few = pyedmcl.false_discovery((1 + rounds.reached) / (1 + rounds.n)) <= RATE
        alike += int((few == decided).sum())
        drawn, found = drawn + int(rounds.n.sum()), found + int(decided.sum())
    total = tests * repeats
    return {"case": f"{tests} tests, {tiny} with p = 1e-5", "tests": total, "significant": found,
            "alike": round(alike / total, 5), "work": round(drawn / (total * most), 5)}  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", type=int, default=2)
    options.add_argument("--most", type=int, default=100_000)
    given = options.parse_args()
    report = Report(open_device(given.device).info, given.out)
    for tests, tiny in KNOWN:
        report.add(**of_known(tests, tiny, given.most), most=given.most)
    for name in CASES:
        report.add(**of_series(name, given), most=given.most)


if __name__ == "__main__":
    main()
