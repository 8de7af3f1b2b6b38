"""Which rule for E="auto" serves best: on simulated networks with observation noise and a common season.

usage: python bench/dimension_rules.py [--device NAME] [--networks 12] [--out FILE]

For each rule: the dimensions it takes (median of the series), the skill of predicting the second half of each series
from the first with them, and how well the cross map with them separates true links from other pairs (AUC). Means over
networks; and of the other rules, what they gain over "best" in each network, with the standard error of that mean. A
JSON line a case; the table is in docs/design/embedding-rules.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Report, parser

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.simulate import coupled_maps, link_auc

RULES = ("best", "one-se", 0.01, 0.05)
CASES = [(noise, season, rows) for rows in (300, 1000) for season in (0.0, 1.0) for noise in (0.0, 0.1, 0.3)]


def simulated(noise: float, season: float, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten coupled maps with observation noise and a season of 12 rows, both in standard deviations of a series."""
    network = coupled_maps(n_series=10, n_steps=rows, seed=seed)
    values = network.values.astype(np.float64)
    spread, rng = values.std(axis=0), np.random.default_rng(seed)
    cycle = np.sin(2 * np.pi * np.arange(rows) / 12)[:, None]
    return values + spread * (season * cycle + noise * rng.standard_normal(values.shape)), network.links


def judged(rule: str | float, values: np.ndarray, links: np.ndarray, device: str | None) -> tuple[float, float, float]:
    """Median E, skill out of sample, AUC of the cross map."""
    half = len(values) // 2
    E = pyedmcl.embed_dimension(values[:half], E_max=12, E_rule=rule, device=device).E
    ahead = [
        pyedmcl.simplex(values[:half, i], values[half:, i], E=int(E[i]), device=device).rho
        for i in range(values.shape[1])
    ]
    rho = pyedmcl.xmap(values, E_max=12, E_rule=rule, device=device).rho
    return float(np.median(E)), float(np.nanmean(ahead)), float(link_auc(rho, links))


def case(noise: float, season: float, rows: int, given: argparse.Namespace) -> dict[str, Any]:
    """Means of all rules, and gains over the first one with their standard errors."""
    networks = [simulated(noise, season, rows, seed) for seed in range(1, given.networks + 1)]
    found = np.array([[judged(rule, *network, given.device) for network in networks] for rule in RULES])
    gain = found[1:, :, 1:] - found[:1, :, 1:]
    error = gain.std(axis=1, ddof=1) / np.sqrt(len(networks))
    names = [str(rule) for rule in RULES]
    return {
        "rows": rows, "season": season, "noise": noise, "networks": len(networks),
        **{what: dict(zip(names, found.mean(axis=1)[:, place].round(3).tolist(), strict=True))
           for place, what in enumerate(("E", "skill", "auc"))},
        **{f"{what}_gain": {name: [round(float(gain[i, :, place].mean()), 4), round(float(error[i, place]), 4)]
                            for i, name in enumerate(names[1:])}
           for place, what in enumerate(("skill", "auc"))},
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", type=int, default=12)
    given = options.parse_args()
    report = Report(open_device(given.device).info, given.out)
    for noise, season, rows in CASES:
        report.add(**case(noise, season, rows, given))


if __name__ == "__main__":
    main()
