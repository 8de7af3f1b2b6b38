"""Simulated networks: how many of the links that each rule finds are direct links, and how many of these it finds.

usage: python bench/networks.py [--quick] [--device NAME] [--networks 50] [--first 1000] [--cases 'maps;...']
       [--peers 'PCMCI;...' | --no-peers] [--rows FILE] [--processes 1] [--seconds S] [--out FILE]

Networks have fixed seeds, from number --first on: rules were chosen on networks 0 to 99, with one exception
(docs/design/networks.md), and are reported on those from 1,000 on. Rules, each on all ordered pairs:
  rho > 0.5     cross-map skill at Tp = 0
  convergence   skill at Tp = 0 grows with the library (gain above 0, Kendall's tau above 0.5)
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
a case. --rows keeps a line of each network as soon as it is computed: the same command continues there, and others with
other cases or numbers may share it. What a line lacks is added, such as methods of others that were not there before.
--processes: networks at a time (with OMP_NUM_THREADS=1, so that each takes one core). --seconds: the longest
time, after which the table is of what is known.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Report, parser
from network_peers import peers as peers_here
from network_systems import CASES, Data, Truth, over_one_step, simulated

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.statistics import STEADY

Row = dict[str, Any]
Task = tuple[str, int, tuple[str, ...]]
RULES = ("rho > 0.5", "convergence", "surrogates", "both", "legs", "verdict", "Granger", "transfer entropy", "PCMCI")
PEERS = peers_here()
BUDGET = 500
FIRST = 1000


def own_rules(data: Data, device: str | None, seed: int) -> tuple[dict[str, Truth], Any]:
    """Links by each rule of ours, row = effect and column = cause, and the causal network."""
    common: dict[str, Any] = {"seed": seed, "budget": BUDGET, "device": device}
    E = np.maximum([pyedmcl.embed_dimension(column, E_max=10, device=device).E for column in data.T], 2)
    plain = pyedmcl.causal_network(
        data, E=E.tolist(), lags=None, Tp=0, partial=False, season="keep", exclusion_radius=0, **common
    )
    whole = pyedmcl.causal_network(data, **common)
    with np.errstate(invalid="ignore"):
        grows, beats = (plain.gain > 0) & (plain.trend > STEADY), plain.q_value <= 0.05
        found = {"rho > 0.5": plain.rho > 0.5, "convergence": grows, "surrogates": beats, "both": grows & beats}
    return found | {"legs": whole.verdict != "none", "verdict": whole.verdict == "direct"}, whole


def one_network(name: str, number: int, device: str | None, peers: tuple[str, ...], known: Row | None = None) -> Row:
    """Counts of a network: those that ``known`` lacks are added to it.

    ``found`` has for each rule how many true links it found, and how many links; ``over_one`` how many pairs over one
    step of a chain were called indirect, and how many were found linked.
    """
    begun = time.perf_counter()
    links, data = simulated(name, number)
    row: Row = known or {"case": name, "number": number, "links": int(links.sum()), "found": {}, "seconds": 0.0}
    found: dict[str, Truth] = {}
    rules = lacking(row, peers)
    if "verdict" in rules:
        found, whole = own_rules(data, device, number)
        linked = over_one_step(name) & np.isin(whole.verdict.astype(str), ["direct", "indirect"])
        row["over_one"] = [int((linked & (whole.verdict == "indirect")).sum()), int(linked.sum())]
    for rule in PEERS.keys() & rules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[rule] = PEERS[rule](data)
    for rule, table in found.items():
        np.fill_diagonal(table, False)
        row["found"][rule] = [int((table & links.T).sum()), int(table.sum())]
    row["seconds"] = round(row["seconds"] + time.perf_counter() - begun, 2)
    return row


def lacking(row: Row, peers: tuple[str, ...]) -> list[str]:
    """What a row should have and has not: the verdict, with which all rules of ours come, and these of others."""
    return [rule for rule in ("verdict", *peers) if rule not in row["found"]]


def known_rows(path: str | None) -> dict[tuple[str, int], Row]:
    """What is known of networks: lines of earlier runs, of which the last of a network counts."""
    if path is None or not Path(path).exists():
        return {}
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {(row["case"], row["number"]): row for row in rows}


def compute(tasks: list[Task], options: argparse.Namespace) -> dict[tuple[str, int], Row]:
    """Rows of all networks that are known or become known before the time is over; each goes to the file of --rows."""
    rows = known_rows(options.rows)
    todo = []
    for name, number, peers in tasks:
        row = rows.get((name, number))
        if row is None or lacking(row, peers):
            todo.append((name, number, options.device, peers, row))
    until = time.monotonic() + options.seconds
    for row in made(todo, options.processes, until):
        rows[row["case"], row["number"]] = row
        if options.rows is not None:
            with open(options.rows, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return rows


def made(todo: list[tuple[Any, ...]], processes: int, until: float) -> Iterator[Row]:
    """A row of each, as soon as it is there; ends at ``until``, whatever is still computed then."""
    if processes == 1:
        for task in todo:
            if time.monotonic() >= until:
                return
            yield one_network(*task)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:  # leaving it ends its processes
        rows = [pool.apply_async(one_network, task) for task in todo]
        while rows and time.monotonic() < until:
            ready = [row for row in rows if row.ready()]
            rows = [row for row in rows if row not in ready]
            yield from (row.get() for row in ready)
            time.sleep(0.1)


def figures(name: str, first: int, rows: list[Row]) -> dict[str, Any]:
    """Shares of a case over all its networks; those of a method of others, where each network has it."""
    used = [rule for rule in RULES if all(rule in row["found"] for row in rows)]
    counts = {rule: np.array([row["found"][rule] for row in rows]) for rule in used}
    links = sum(row["links"] for row in rows)
    n, steps = CASES[name][:2]
    return {
        "case": name, "first": first, "networks": len(rows), "series": n, "rows": steps, "links": links,
        "precision": {rule: _share(*counts[rule].sum(axis=0)) for rule in used},
        "recall": {rule: _share(counts[rule][:, 0].sum(), links) for rule in used},
        "any": {rule: _share((counts[rule][:, 1] > 0).sum(), len(rows)) for rule in used},
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
    options.add_argument("--peers", default=";".join(PEERS), help="methods of others, with semicolons between them")
    options.add_argument("--no-peers", dest="peers", action="store_const", const="", help="without methods of others")
    options.add_argument("--rows", metavar="FILE")
    options.add_argument("--processes", type=int, default=1, help="networks at a time")
    options.add_argument("--seconds", type=float, default=math.inf, help="stop after this many")
    given = options.parse_args()
    parts = [part.strip() for part in given.cases.split(";")] if given.cases else [""]
    names = [name for name in CASES if any(part in name for part in parts)]
    numbers = range(given.first, given.first + (4 if given.quick else given.networks))
    peers = tuple(peer.strip() for peer in given.peers.split(";") if peer.strip())
    if not PEERS.keys() >= set(peers):
        raise SystemExit(f"--peers {given.peers!r}: here there are {', '.join(PEERS)}")
    report = Report(open_device(given.device).info, given.out)
    rows = compute([(name, number, peers) for name in names for number in numbers], given)
    for name in names:
        known = [rows[name, number] for number in numbers if (name, number) in rows]
        if known:
            report.add(**figures(name, given.first, known))


if __name__ == "__main__":
    main()
