"""Which search is chosen, on recorded timings and by rates; no clock is read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import environment
from device_helpers import INTEL, NVIDIA
from rates_helpers import CPU, GPU, trial

from pyedmcl.errors import DeviceMemoryError
from pyedmcl.search import choose
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.rates import DEFAULTS, rates_of
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
TWO_CORES = replace(INTEL, compute_units=2)
H200 = replace(NVIDIA, compute_units=132)
SHIPPED = knowledge.shipped


def searched(E, n):
    return SearchProblem((E,), (E + 1,), 1, 1, 0, n, n)


def recorded(device_class):
    """Measured seconds of each search in each cell of the tables of this kind of device, and the pruned share."""
    cells = {}
    for file in sorted(RESULTS.glob(f"{'cpu' if device_class == 'cpu' else 'h200'}-approximate*.jsonl")):
        for text in file.read_text().splitlines():
            row = json.loads(text)
            cells.setdefault((file.name, row["data"], row["E"], row["L"]), {})[row["search"]] = row
    return cells


@pytest.mark.parametrize(("device_class", "info"), [("cpu", TWO_CORES), ("gpu", H200)])
def test_the_choice_on_the_recorded_tables(data_dir, monkeypatch, device_class, info):
    monkeypatch.setattr(knowledge, "shipped", SHIPPED)  # as a user has them
    to_best, to_exhaustive = {}, {}
    known = rates_of(info)
    for cell, rows in recorded(device_class).items():
        _, _, E, L = cell
        computed = re.search(r"([\d.]+)% of all pairs were", rows.get("pruned", {}).get("why", ""))
        if computed is None or "exhaustive" not in rows:
            continue
        n, share, limits = L - E + 1, float(computed[1]) / 100, []
        chosen = choose.cheapest(
            info, searched(E, L), n, n, None,
            lambda most, share=share, limits=limits: limits.append(most) or (share if share <= most else 1.0),
        ).search  # fmt: skip
        # A probe was no part of the other searches' times.
        spent = sum(known.rates.probe(n, n, E, E + 1, min(share, most), known.at_once) for most in limits)
        if limits and chosen == "exhaustive":
            spent += known.rates.order(n, E)
        seconds = rows[chosen]["seconds"] + spent
        to_best[cell[1:]] = seconds / min(row["seconds"] for name, row in rows.items() if name != "exact")
        to_exhaustive[cell[1:]] = seconds / rows["exhaustive"]["seconds"]
    if not to_best:
        pytest.skip(f"bench/results has no table of approximate search for a {device_class} yet")
    assert {cell: ratio for cell, ratio in to_exhaustive.items() if ratio > 1.15} == {}
    assert np.median(list(to_best.values())) <= 1.15
    # Long searches gain most of what there is to gain.
    assert {cell: ratio for cell, ratio in to_best.items() if ratio > 1.5 and cell[2] >= 1 << 18} == {}


def test_the_probe_runs_only_where_it_may_pay(data_dir):
    def refused(most):
        raise AssertionError("nothing is to be probed")

    for E, n in ((1, 1000), (20, 1000), (20, 2000)):
        decision = choose.cheapest(TWO_CORES, searched(E, n), n, n, None, refused)
        assert decision.search == "exhaustive" and "at best" in decision.why
    # A few queries in a long series: putting it in order costs more than looking at all of it.
    assert choose.cheapest(TWO_CORES, searched(3, 100_000), 100_000, 20, None, refused).search == "exhaustive"


def test_a_probe_that_could_cost_much_is_not_run_for_one_library(data_dir, monkeypatch):
    n = 20_000
    slow = replace(CPU, order_call=0.04 * CPU.exact(n, n, 5, 6), order_lag=0.0)  # might pay, or be lost
    monkeypatch.setitem(DEFAULTS, "cpu", (2, slow))
    probes = []
    for informed in (1, 8):
        found = choose.cheapest(
            TWO_CORES, searched(5, n), n, n, None, lambda most: probes.append(most) or 0.001, informed=informed
        ).search  # fmt: skip
        assert found == ("exhaustive" if informed == 1 else "pruned")
    assert len(probes) == 1


def test_a_probe_gives_up_where_it_is_hopeless_or_takes_too_long(data_dir, monkeypatch):
    monkeypatch.setattr(knowledge, "shipped", SHIPPED)
    for info, E, n in ((TWO_CORES, 5, 1 << 16), (TWO_CORES, 20, 1 << 14), (H200, 20, 1 << 18)):
        known, asked = rates_of(info), []
        decision = choose.cheapest(
            info, searched(E, n), n, n, None, lambda most, asked=asked: asked.append(most) or 1.0
        )
        exhaustive = known.rates.exact(n, n, E, E + 1, shared=info is H200)
        spent = known.rates.order(n, E) + known.rates.probe(n, n, E, E + 1, asked[0], known.at_once)
        assert spent <= 0.121 * exhaustive
        assert known.rates.walk(n, n, E, E + 1, asked[0] / 2) <= 0.81 * exhaustive
        assert decision.search == "exhaustive" and "% of all pairs" in decision.why


def test_the_exhaustive_search_wins_ties(data_dir, monkeypatch):
    monkeypatch.setattr(knowledge, "shipped", SHIPPED)
    E, n = 20, 1 << 16
    rates = rates_of(TWO_CORES).rates
    exhaustive = rates.exact(n, n, E, E + 1)
    share = next(s for s in np.linspace(0, 1.5, 3001) if rates.walk(n, n, E, E + 1, s) > 0.85 * exhaustive)
    assert rates.walk(n, n, E, E + 1, share) < exhaustive
    for found, search in ((share, "exhaustive"), (0.8 * share, "pruned")):
        assert choose.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most, s=found: s).search == search


def test_rates_that_nobody_measured_are_trusted_less(data_dir, monkeypatch):
    E, n = 20, 1 << 16
    share = next(s for s in np.linspace(0, 1.5, 3001) if CPU.walk(n, n, E, E + 1, s) > 0.7 * CPU.exact(n, n, E, E + 1))
    assert choose.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most: share).search == "exhaustive"
    Database().add([trial(TWO_CORES)])
    assert choose.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most: share).search == "pruned"


def test_several_dimensions_share_the_sweeps_of_the_exhaustive_search(data_dir):
    n, dims = 1 << 14, tuple(range(1, 11))
    together = SearchProblem(dims, tuple(E + 1 for E in dims), 1, 1, 0, n, n)
    alone = sum(CPU.exact(n, n, E, E + 1) for E in dims)
    assert CPU.exact(n, n, 10, 11) < CPU.sweep(n, n, dims, together.ks) < 0.7 * alone
    assert CPU.sweep(n, n, (4,), (5,)) == pytest.approx(CPU.exact(n, n, 4, 5))
    each = [choose.cheapest(TWO_CORES, together.restrict((E,)), n, n, None, lambda most: 0.05).search for E in (1, 10)]
    assert each == ["pruned", "pruned"]
    assert choose.cheapest(TWO_CORES, together, n, n, None, lambda most: 0.05).search == "exhaustive"


def test_lists_longer_than_any_that_was_measured_are_left_to_the_exhaustive_search(data_dir):
    problem = replace(searched(3, 1 << 18), ks=(200,))
    found = choose.cheapest(TWO_CORES, problem, 1 << 18, 1 << 18, None, lambda most: 1 / 0)
    assert found.search == "exhaustive" and "200 neighbours" in found.why


def test_the_reason_names_estimates_and_their_source(data_dir):
    n = 1 << 16
    why = choose.cheapest(TWO_CORES, searched(20, n), n, n, None, lambda most: 0.01).why
    assert "1.0% of all pairs" in why
    assert re.search(r"estimated exhaustive \d\S* s, pruned \d\S* ms \(rates: default\)", why)
    Database().add([trial(TWO_CORES)])
    assert "(rates: measured)" in choose.cheapest(TWO_CORES, searched(20, n), n, n, None, lambda most: 0.01).why


def test_a_tree_is_considered_where_pruning_is_not_possible(data_dir, monkeypatch):
    rng, n = np.random.default_rng(0), 1 << 16
    line_of_states = np.repeat(rng.random((4096, 1)), 4, axis=1).astype(np.float32)
    cloud = rng.standard_normal((4096, 20)).astype(np.float32)

    def chosen(E, sample, share=None):
        return choose.cheapest(TWO_CORES, searched(E, n), n, n, lambda most: sample, share)

    assert chosen(4, line_of_states).search == "kdtree" and chosen(20, cloud).search == "exhaustive"
    assert chosen(20, cloud).why.startswith("intrinsic dimension")

    def full(most):
        raise DeviceMemoryError("too large")

    assert chosen(4, line_of_states, full).search == "kdtree"
    assert chosen(20, cloud, full).search == "exhaustive"
    assert "does not fit the device (too large)" in chosen(20, cloud, full).why
    monkeypatch.setattr(choose, "has_tree", lambda: False)
    assert "scipy" in chosen(4, line_of_states).why


def test_sums_shared_along_diagonals_have_rates_of_their_own(data_dir):
    n, E = 1 << 20, 20
    assert GPU.exact(n, n, E, E + 1, shared=True) < 0.6 * GPU.exact(n, n, E, E + 1)
    why = choose.cheapest(H200, searched(E, n), n, n, None, lambda most: 1.0).why
    assert f"exhaustive {GPU.exact(n, n, E, E + 1, shared=True):.3g} s" in why


def test_the_table_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    picture, bench = tmp_path / "table.png", RESULTS.parent / "approximate.py"
    done = subprocess.run([sys.executable, str(bench), "--plot", str(picture)], env=environment(), timeout=120)
    assert done.returncode == 0 and picture.read_bytes().startswith(b"\x89PNG")
