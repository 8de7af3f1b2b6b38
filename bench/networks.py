"""Simulated networks: how many of the links that each rule finds are direct links, and how many of these it finds.

usage: python bench/networks.py [--quick] [--device NAME] [--networks 50] [--first 1000] [--cases 'maps;...']
       [--rows FILE] [--out FILE]

Networks have fixed seeds, from number --first on: rules were chosen on networks 0 to 99, with one exception
(docs/design/networks.md), and are reported on those from 1,000 on. Rules, each on all ordered pairs:
  rho > 0.5     cross-map skill at Tp = 0
  convergence   skill at Tp = 0 grows with the library (gain above 0, Mann-Kendall p <= 0.05)
  surrogates    q <= 0.05 against surrogates of method "auto", at Tp = 0
  both          convergence and surrogates
  legs          the same two, as the verdict has them: with its E, exclusion radius, lags and season
  verdict       "direct" of pyedmcl.causal_network
  Granger       vector autoregression of all series, 1 to 3 lags (statsmodels, where it is installed), q <= 0.05
  transfer entropy  of pairs, in bins, q <= 0.05; see bench/network_peers.py
  PCMCI         tigramite with linear partial correlation, lags 1 to 3, q <= 0.05, where it is installed
The first four take E of the best self-prediction, exclude no rows in time, and leave a common season to the
surrogates; "verdict" is as by default, but for ``budget=500`` in all of them (the default is 2,000).
For chains the share of pairs over one step that were found linked and called "indirect"; for networks without links the
share of networks in which a rule finds any link. A JSON line a case goes to the file of --out. --quick: 4 networks of
a case. --rows keeps a line of each network: the same command continues there, and others with other cases or numbers
may share it.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, parser
from network_peers import peers
from numpy.typing import NDArray

import pyedmcl
from pyedmcl.device.session import open_device

Truth = NDArray[np.bool_]
Data = NDArray[np.float64]
RULES = ("rho > 0.5", "convergence", "surrogates", "both", "legs", "verdict", "Granger", "transfer entropy", "PCMCI")
PEERS = peers()
BUDGET = 500
FIRST = 1000


def random_links(rng: np.random.Generator, n: int) -> Truth:
    """Each series has none, one or two drivers."""
    links = np.zeros((n, n), bool)
    for j in range(n):
        links[rng.choice(np.delete(np.arange(n), j), rng.integers(0, 3), replace=False), j] = True
    return links


def chain_links(rng: np.random.Generator, n: int) -> Truth:
    links = np.zeros((n, n), bool)
    links[np.arange(n - 1), np.arange(1, n)] = True
    return links


def fork_links(rng: np.random.Generator, n: int) -> Truth:
    """Two drivers of all others in halves."""
    links = np.zeros((n, n), bool)
    links[0, 2::2] = links[1, 3::2] = True
    return links


def maps(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Logistic maps, as in pyedmcl.simulate."""
    n = len(links)
    weights = links / np.maximum(links.sum(axis=0), 1)
    growth, x, out = rng.uniform(3.65, 3.85, n), rng.uniform(0.2, 0.8, n), np.empty((rows, n))
    for t in range(-300, rows):
        x = x * (growth * (1 - x) - strength * (x @ weights)) * np.exp(0.005 * rng.standard_normal(n))
        x = np.clip(x, 1e-3, 1 - 1e-3)
        if t >= 0:
            out[t] = x
    return out


def lotka_volterra(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Competing species in discrete time: x exp(r (1 - x - strength * competitors)), with process noise."""
    n = len(links)
    weights = links / np.maximum(links.sum(axis=0), 1)
    growth, x, out = rng.uniform(2.7, 3.0, n), rng.uniform(0.2, 0.8, n), np.empty((rows, n))
    for t in range(-300, rows):
        x = x * np.exp(growth * (1 - x - strength * (x @ weights)) + 0.01 * rng.standard_normal(n))
        if t >= 0:
            out[t] = x
    return out


def neurons(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Hindmarsh and Rose's neurons with excitatory synapses; a row every time unit, Runge and Kutta's steps of 0.1."""
    n, h, each = len(links), 0.1, 10
    weights, current = links / np.maximum(links.sum(axis=0), 1), rng.uniform(3.0, 3.3, len(links))
    state, out = rng.uniform(-1, 1, (3, n)), np.empty((rows, n))

    def slope(s: Data) -> Data:
        x, y, z = s
        synapse = strength * (2.0 - x) * ((1 / (1 + np.exp(-10 * (x + 0.25)))) @ weights)
        return np.array([y - x**3 + 3 * x**2 - z + current + synapse, 1 - 5 * x**2 - y, 0.006 * (4 * (x + 1.6) - z)])

    for t in range(-200 * each, rows * each):
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        state = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
        if t >= 0 and t % each == 0:
            out[t // each] = state[0]
    return out


def unlinked(kind: str) -> Callable[..., Data]:
    """Red noise by itself, with a common season or trend, or summed up to random walks."""

    def make(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
        n = len(links)
        x = np.zeros((rows, n))
        for t in range(1, rows):
            x[t] = strength * x[t - 1] + rng.standard_normal(n)
        time_of = np.arange(rows)[:, None]
        season = np.sin(2 * np.pi * time_of / 12 + rng.uniform(0, 6.28, n))
        if kind == "season":
            return x + 2 * season
        if kind == "trend":
            return x + 4 * time_of / rows
        return np.cumsum(x, axis=0) if kind == "walk" else x

    return make


def noisy(data: Data, rng: np.random.Generator, noise: float, season: float = 0.0) -> Data:
    """With observation noise and a common season, as shares of the standard deviation."""
    spread = data.std(axis=0)
    cycle = np.sin(2 * np.pi * np.arange(len(data)) / 12)[:, None]
    return data + season * spread * cycle + noise * spread * rng.standard_normal(data.shape)


# name: (series, rows, links, system, strength, observation noise, season)
CASES: dict[str, tuple[Any, ...]] = {
    "maps, weak": (10, 400, random_links, maps, 0.2, 0.0, 0.0),
    "maps, strong": (10, 400, random_links, maps, 0.4, 0.0, 0.0),
    "maps, strong, 10 % noise": (10, 400, random_links, maps, 0.4, 0.1, 0.0),
    "maps, strong, 20 % noise": (10, 400, random_links, maps, 0.4, 0.2, 0.0),
    "maps, strong, season": (10, 400, random_links, maps, 0.4, 0.1, 0.5),
    "30 maps, 10 % noise": (30, 1000, random_links, maps, 0.4, 0.1, 0.0),
    "60 maps, 10 % noise": (60, 3000, random_links, maps, 0.4, 0.1, 0.0),
    "chains": (10, 400, chain_links, maps, 0.4, 0.05, 0.0),
    "forks": (10, 400, fork_links, maps, 0.4, 0.05, 0.0),
    "Lotka-Volterra": (10, 400, random_links, lotka_volterra, 0.3, 0.05, 0.0),
    "Hindmarsh-Rose": (10, 1000, random_links, neurons, 0.3, 0.0, 0.0),
    "no links": (10, 300, None, unlinked("noise"), 0.6, 0.0, 0.0),
    "no links, common season": (10, 300, None, unlinked("season"), 0.6, 0.0, 0.0),
    "no links, common trend": (10, 300, None, unlinked("trend"), 0.6, 0.0, 0.0),
    "no links, random walks": (10, 300, None, unlinked("walk"), 0.0, 0.0, 0.0),
}


def found_by_rules(data: Data, device: str | None, seed: int) -> tuple[dict[str, Truth], Any]:
    """Links by rule, row = effect and column = cause, and the causal network."""
    common: dict[str, Any] = {"seed": seed, "budget": BUDGET, "device": device}
    E = np.maximum([pyedmcl.embed_dimension(column, E_max=10, device=device).E for column in data.T], 2)
    plain = pyedmcl.causal_network(
        data, E=E.tolist(), lags=None, Tp=0, partial=False, season="keep", exclusion_radius=0, **common
    )
    whole = pyedmcl.causal_network(data, **common)
    with np.errstate(invalid="ignore"):
        grows, beats = (plain.gain > 0) & (plain.p_convergence <= 0.05), plain.q_value <= 0.05
        found = {"rho > 0.5": plain.rho > 0.5, "convergence": grows, "surrogates": beats, "both": grows & beats}
    found |= {"legs": whole.verdict != "none", "verdict": whole.verdict == "direct"}
    for name, method in PEERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = method(data)
    for table in found.values():
        np.fill_diagonal(table, False)
    return found, whole


def one_network(name: str, number: int, device: str | None) -> dict[str, Any]:
    """Of each rule: true links found, and links found; and of pairs over one step: called indirect, and linked."""
    n, rows, draw, system, strength, noise, season = CASES[name]
    begun = time.perf_counter()
    rng = np.random.default_rng([number, *map(ord, name)])
    links = np.zeros((n, n), bool) if draw is None else draw(rng, n)
    data = noisy(system(rng, links, rows, strength), rng, noise, season)
    found, whole = found_by_rules(data, device, number)
    over_one = [0, 0]
    if draw is chain_links:
        step = np.zeros((n, n), bool)
        step[np.arange(2, n), np.arange(n - 2)] = True
        linked = step & np.isin(whole.verdict.astype(str), ["direct", "indirect"])
        over_one = [int((linked & (whole.verdict == "indirect")).sum()), int(linked.sum())]
    counts = {rule: [int((table & links.T).sum()), int(table.sum())] for rule, table in found.items()}
    return {"case": name, "number": number, "links": int(links.sum()), "found": counts, "over_one": over_one,
            "seconds": round(time.perf_counter() - begun, 2)}  # fmt: skip


def known_rows(path: str | None) -> dict[tuple[str, int], dict[str, Any]]:
    """What is known of networks: lines of an earlier run."""
    if path is None or not Path(path).exists():
        return {}
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {(row["case"], row["number"]): row for row in rows}


def measure(name: str, first: int, networks: int, device: str | None, path: str | None) -> dict[str, Any]:
    """Figures of a case; networks that ``path`` knows are not computed again, and others are added to it."""
    known, rows = known_rows(path), []
    for number in range(first, first + networks):
        row = known.get((name, number))
        if row is None:
            row = one_network(name, number, device)
            if path is not None:
                with open(path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        rows.append(row)
    used = [rule for rule in RULES if all(rule in row["found"] for row in rows)]
    counts = {rule: np.array([row["found"][rule] for row in rows]) for rule in used}
    links = sum(row["links"] for row in rows)
    n, steps = CASES[name][:2]
    return {
        "case": name, "first": first, "networks": networks, "series": n, "rows": steps, "links": links,
        "precision": {rule: _share(*counts[rule].sum(axis=0)) for rule in used},
        "recall": {rule: _share(counts[rule][:, 0].sum(), links) for rule in used},
        "any": {rule: _share((counts[rule][:, 1] > 0).sum(), networks) for rule in used},
        "indirect": _share(*np.sum([row["over_one"] for row in rows], axis=0)),
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }  # fmt: skip


def _share(part: Any, whole: Any) -> float | None:
    return round(float(part) / float(whole), 3) if whole else None


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--networks", type=int, default=50)
    options.add_argument("--first", type=int, default=FIRST)
    options.add_argument("--cases", help="parts of names of cases, with semicolons between them")
    options.add_argument("--rows", metavar="FILE")
    given = options.parse_args()
    parts = [part.strip() for part in given.cases.split(";")] if given.cases else [""]
    names = [name for name in CASES if any(part in name for part in parts)]
    report = Report(open_device(given.device).info, given.out)
    for name in names:
        report.add(**measure(name, given.first, 4 if given.quick else given.networks, given.device, given.rows))


if __name__ == "__main__":
    main()
