"""Which rule for E="auto" serves best: on simulated networks with observation noise and a common season.

For each rule: the dimensions it takes, the skill of predicting the second half of each series from the first with
them, and how well the cross map with them separates true links from other pairs (AUC). Run in a checkout:

    python bench/dimension_rules.py [--networks 20]
"""

from __future__ import annotations

import argparse

import numpy as np

import pyedmcl
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


def judged(rule: str | float, values: np.ndarray, links: np.ndarray) -> tuple[float, float, float]:
    """Median E, skill out of sample, AUC of the cross map."""
    half = len(values) // 2
    E = pyedmcl.embed_dimension(values[:half], E_max=12, E_rule=rule).E
    ahead = [
        pyedmcl.simplex(values[:half, i], values[half:, i], E=int(E[i])).rho for i in range(values.shape[1])
    ]
    rho = pyedmcl.xmap(values, E_max=12, E_rule=rule).rho
    return float(np.median(E)), float(np.nanmean(ahead)), float(link_auc(rho, links))


def main() -> None:
    """Print a table for docs/design/embedding.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=20)
    networks = parser.parse_args().networks
    print("| rows | season | noise |", " | ".join(f"{rule}: E, rho, AUC" for rule in RULES), "|")
    print("| --- " * (3 + len(RULES)) + "|")
    for noise, season, rows in CASES:
        cells = []
        for rule in RULES:
            found = [judged(rule, *simulated(noise, season, rows, seed)) for seed in range(1, networks + 1)]
            E, ahead, auc = np.mean(found, axis=0)
            cells.append(f"{E:.1f}, {ahead:.3f}, {auc:.3f}")
        print(f"| {rows} | {season:g} | {noise:g} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
