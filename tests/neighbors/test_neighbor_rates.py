"""What searches cost: the choice on recorded timings, the fit, and where rates come from; no clock is read."""

from __future__ import annotations

import itertools
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
from rates_helpers import CPU, GPU, Pretended, record

from pyedmcl.errors import DeviceMemoryError
from pyedmcl.neighbors import costs, rates_fit
from pyedmcl.neighbors.plan import SearchProblem
from pyedmcl.neighbors.rates import DEFAULTS, NAME, Rates, from_values, rates_of
from pyedmcl.neighbors.rates_fit import Timing, errors, fit, not_negative, suffices
from pyedmcl.tuner.neighbor_rates import SEARCHES, RateCase, cases, measure
from pyedmcl.tuning import knowledge, wisdom
from pyedmcl.tuning.connection import RATES_TABLE
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.rates import IMPORTED, line, newest, record_from, remove, save, stored, superseded

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
TWO_CORES = replace(INTEL, compute_units=2)
H200 = replace(NVIDIA, compute_units=132)
SHIPPED = wisdom.shipped_rates


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
    monkeypatch.setattr(wisdom, "shipped_rates", SHIPPED)  # as a user has them
    to_best, to_exhaustive = {}, {}
    known = rates_of(info)
    for cell, rows in recorded(device_class).items():
        _, _, E, L = cell
        computed = re.search(r"([\d.]+)% of all pairs were", rows.get("pruned", {}).get("why", ""))
        if computed is None or "exhaustive" not in rows:
            continue
        n, share, limits = L - E + 1, float(computed[1]) / 100, []
        chosen = costs.cheapest(
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
        decision = costs.cheapest(TWO_CORES, searched(E, n), n, n, None, refused)
        assert decision.search == "exhaustive" and "at best" in decision.why
    # A few queries in a long series: putting it in order costs more than looking at all of it.
    assert costs.cheapest(TWO_CORES, searched(3, 100_000), 100_000, 20, None, refused).search == "exhaustive"


def test_a_probe_that_could_cost_much_is_not_run_for_one_library(data_dir, monkeypatch):
    n = 20_000
    slow = replace(CPU, order_call=0.04 * CPU.exact(n, n, 5, 6), order_lag=0.0)  # might pay, or be lost
    monkeypatch.setitem(DEFAULTS, "cpu", (2, slow))
    probes = []
    for informed in (1, 8):
        found = costs.cheapest(
            TWO_CORES, searched(5, n), n, n, None, lambda most: probes.append(most) or 0.001, informed=informed
        ).search  # fmt: skip
        assert found == ("exhaustive" if informed == 1 else "pruned")
    assert len(probes) == 1


def test_a_probe_gives_up_where_it_is_hopeless_or_takes_too_long(data_dir, monkeypatch):
    monkeypatch.setattr(wisdom, "shipped_rates", SHIPPED)
    for info, E, n in ((TWO_CORES, 5, 1 << 16), (TWO_CORES, 20, 1 << 14), (H200, 20, 1 << 18)):
        known, asked = rates_of(info), []
        decision = costs.cheapest(info, searched(E, n), n, n, None, lambda most, asked=asked: asked.append(most) or 1.0)
        exhaustive = known.rates.exact(n, n, E, E + 1, shared=info is H200)
        spent = known.rates.order(n, E) + known.rates.probe(n, n, E, E + 1, asked[0], known.at_once)
        assert spent <= 0.121 * exhaustive
        assert known.rates.walk(n, n, E, E + 1, asked[0] / 2) <= 0.81 * exhaustive
        assert decision.search == "exhaustive" and "% of all pairs" in decision.why


def test_the_exhaustive_search_wins_ties(data_dir, monkeypatch):
    monkeypatch.setattr(wisdom, "shipped_rates", SHIPPED)
    E, n = 20, 1 << 16
    rates = rates_of(TWO_CORES).rates
    exhaustive = rates.exact(n, n, E, E + 1)
    share = next(s for s in np.linspace(0, 1.5, 3001) if rates.walk(n, n, E, E + 1, s) > 0.85 * exhaustive)
    assert rates.walk(n, n, E, E + 1, share) < exhaustive
    for found, search in ((share, "exhaustive"), (0.8 * share, "pruned")):
        assert costs.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most, s=found: s).search == search


def test_rates_that_nobody_measured_are_trusted_less(data_dir, monkeypatch):
    E, n = 20, 1 << 16
    share = next(s for s in np.linspace(0, 1.5, 3001) if CPU.walk(n, n, E, E + 1, s) > 0.7 * CPU.exact(n, n, E, E + 1))
    assert costs.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most: share).search == "exhaustive"
    save(Database(), [record(TWO_CORES)])
    assert costs.cheapest(TWO_CORES, searched(E, n), n, n, None, lambda most: share).search == "pruned"


def test_several_dimensions_share_the_sweeps_of_the_exhaustive_search(data_dir):
    n, dims = 1 << 14, tuple(range(1, 11))
    together = SearchProblem(dims, tuple(E + 1 for E in dims), 1, 1, 0, n, n)
    alone = sum(CPU.exact(n, n, E, E + 1) for E in dims)
    assert CPU.exact(n, n, 10, 11) < CPU.sweep(n, n, dims, together.ks) < 0.7 * alone
    assert CPU.sweep(n, n, (4,), (5,)) == pytest.approx(CPU.exact(n, n, 4, 5))
    each = [costs.cheapest(TWO_CORES, together.restrict((E,)), n, n, None, lambda most: 0.05).search for E in (1, 10)]
    assert each == ["pruned", "pruned"]
    assert costs.cheapest(TWO_CORES, together, n, n, None, lambda most: 0.05).search == "exhaustive"


def test_lists_longer_than_any_that_was_measured_are_left_to_the_exhaustive_search(data_dir):
    problem = replace(searched(3, 1 << 18), ks=(200,))
    found = costs.cheapest(TWO_CORES, problem, 1 << 18, 1 << 18, None, lambda most: 1 / 0)
    assert found.search == "exhaustive" and "200 neighbours" in found.why


def test_the_reason_names_estimates_and_their_source(data_dir):
    n = 1 << 16
    why = costs.cheapest(TWO_CORES, searched(20, n), n, n, None, lambda most: 0.01).why
    assert "1.0% of all pairs" in why
    assert re.search(r"estimated exhaustive \d\S* s, pruned \d\S* ms \(rates: default\)", why)
    save(Database(), [record(TWO_CORES)])
    assert "(rates: measured)" in costs.cheapest(TWO_CORES, searched(20, n), n, n, None, lambda most: 0.01).why


def test_a_tree_is_considered_where_pruning_is_not_possible(data_dir, monkeypatch):
    rng, n = np.random.default_rng(0), 1 << 16
    line_of_states = np.repeat(rng.random((4096, 1)), 4, axis=1).astype(np.float32)
    cloud = rng.standard_normal((4096, 20)).astype(np.float32)

    def chosen(E, sample, share=None):
        return costs.cheapest(TWO_CORES, searched(E, n), n, n, lambda most: sample, share)

    assert chosen(4, line_of_states).search == "kdtree" and chosen(20, cloud).search == "exhaustive"
    assert chosen(20, cloud).why.startswith("intrinsic dimension")

    def full(most):
        raise DeviceMemoryError("too large")

    assert chosen(4, line_of_states, full).search == "kdtree"
    assert chosen(20, cloud, full).search == "exhaustive"
    assert "does not fit the device (too large)" in chosen(20, cloud, full).why
    monkeypatch.setattr(costs, "has_tree", lambda: False)
    assert "scipy" in chosen(4, line_of_states).why


def test_sums_shared_along_diagonals_have_rates_of_their_own(data_dir):
    n, E = 1 << 20, 20
    assert GPU.exact(n, n, E, E + 1, shared=True) < 0.6 * GPU.exact(n, n, E, E + 1)
    why = costs.cheapest(H200, searched(E, n), n, n, None, lambda most: 1.0).why
    assert f"exhaustive {GPU.exact(n, n, E, E + 1, shared=True):.3g} s" in why


# The fit


def invented(rates, factor=lambda: 1.0):
    """Timings as these rates predict them."""
    out = []
    for n, E, share, dimension in itertools.product((1 << 10, 1 << 13, 1 << 16), (1, 20), (0.01, 1.0), (2.0, 9.0)):
        for shared in (False, True):
            empty = Timing("invented", n, E, E + 1, share, dimension, shared, 1.0, 1.0, 1.0, 1.0, 1.0)
            out.append(replace(empty, **{s: v * factor() for s, v in empty.predicted(rates).items()}))
    return out


def test_rates_are_found_again():
    known = Rates(*(10.0**-e for e in (4, 9, 12, 11, 9, 12, 3, 8, 4, 8, 11, 8, 7, 10)))
    found = fit(invented(known), CPU)
    for name, value in known.as_dict().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-4), name
    assert max(errors(invented(known), found)) < 1.001


def test_noisy_timings_give_rates_that_predict_them():
    rng = np.random.default_rng(1)
    noisy = invented(CPU, lambda: float(np.exp(rng.normal(0, 0.2))))
    found = fit(noisy, GPU)
    assert min(found.as_dict().values()) >= 0
    assert np.median(errors(noisy, found)) < 1.25


def test_what_was_not_timed_stays_as_it_was():
    some = [replace(t, shared=False, build=None, tree=None) for t in invented(CPU) if not t.shared]
    found = fit(some, GPU)
    assert found.tree_visit == GPU.tree_visit and found.shared_lag == GPU.shared_lag
    assert found.exact_lag == pytest.approx(CPU.exact_lag, rel=1e-3)
    assert suffices(some) and not suffices(some[:2])
    assert not suffices([replace(t, E=1) for t in some]), "what a lag costs is not known"
    assert fit([], GPU) == GPU


def test_no_rate_falls_below_zero():
    a = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert np.allclose(not_negative(a, a @ [2.0, 3.0]), [2, 3])
    # Without the bound the second is -1: then only the first is left, at the mean.
    assert np.allclose(not_negative(a, np.array([3.0, 2.0, 1.0])), [2, 0])
    assert np.allclose(not_negative(a * [1, 1e-9], a @ [2.0, 3.0]), [2, 3e9])
    assert rates_fit.not_negative(np.zeros((2, 1)), np.ones(2)) == [0]


@pytest.mark.parametrize("name", ["cpu", "pocl", "h200"])
def test_shipped_rates_are_the_fit_of_recorded_timings(name):
    timings, device = [], None
    for text in (RESULTS / f"{name}-rates.jsonl").read_text().splitlines():
        fields = json.loads(text)
        device = fields.pop("device"), fields.pop("runtime")
        timings.append(Timing(**fields))
    (shipped,) = [one for one in SHIPPED(device[1]) if one.device.name == device[0]]
    rates = from_values(shipped.values)
    found = fit(timings, rates)
    assert {n: pytest.approx(v, rel=1e-3) for n, v in found.as_dict().items()} == rates.as_dict()
    assert np.median(errors(timings, rates)) < 1.3


# Where rates come from


def test_the_database_goes_before_wisdom_and_wisdom_before_defaults(data_dir, monkeypatch):
    def found():
        known = rates_of(TWO_CORES)
        return known.source, round(known.rates.exact_lag / CPU.exact_lag, 6)

    assert found() == ("default", 1)
    assert not data_dir.exists()  # nothing is made for a look
    sibling = replace(TWO_CORES, compute_units=4)
    monkeypatch.setattr(wisdom, "shipped_rates", lambda runtime: (record(sibling, 3.0),))
    source.forget()
    assert found() == ("shipped for a similar device", 6)  # half as many units, twice the time
    monkeypatch.setattr(wisdom, "shipped_rates", lambda runtime: (record(sibling, 3.0), record(TWO_CORES, 4.0)))
    source.forget()
    assert found() == ("shipped", 4)
    database = Database()
    save(database, [record(sibling, 9.0), record(NVIDIA, 99.0)])
    assert found() == ("shipped", 4)
    save(database, [record(replace(TWO_CORES, driver="older"), 5.0)])
    assert found() == ("measured with another driver", 5)
    assert save(database, [record(TWO_CORES, 6.0)], imported=True) == 1
    assert save(database, [record(TWO_CORES, 6.0)], imported=True) == 0
    assert found() == ("imported", 6)
    save(database, [record(TWO_CORES, 7.0)])
    save(database, [record(TWO_CORES, 8.0)], imported=True)
    assert found() == ("measured", 7)
    save(database, [record(TWO_CORES, 2.0)])
    assert found() == ("measured", 2)


def test_rates_of_other_formulas_are_ignored(data_dir):
    save(Database(), [record(TWO_CORES, 2.0, model="0"), record(TWO_CORES, 3.0, name="other")])
    assert rates_of(TWO_CORES).source == "default"
    save(Database(), [record(TWO_CORES, values={"exact_call": 1.0})])  # of this version, but not all of them
    assert rates_of(TWO_CORES).source == "default"
    assert from_values({}) is None


def test_rates_are_read_once(data_dir, monkeypatch):
    from pyedmcl.tuning import rates

    save(Database(), [record(TWO_CORES, 2.0)])
    assert rates_of(TWO_CORES).source == "measured"
    monkeypatch.setattr(knowledge, "stored", lambda database: pytest.fail("read again"))
    assert rates_of(TWO_CORES).source == "measured" and rates_of(NVIDIA).source == "default"
    monkeypatch.setattr(knowledge, "stored", rates.stored)
    save(Database(), [record(TWO_CORES, 3.0)])  # what has changed is read
    assert rates_of(TWO_CORES).rates.exact_lag == pytest.approx(3 * CPU.exact_lag)


@pytest.mark.parametrize("content", [b"no database, but long enough to be one" * 99, b"SQLite format 3\0" + b"x" * 999])
def test_a_damaged_database_leaves_the_defaults(data_dir, content):
    data_dir.mkdir()
    (data_dir / "tuning.sqlite3").write_bytes(content)
    assert rates_of(TWO_CORES).source == "default"
    assert save(Database(), [record(TWO_CORES)]) == 1
    assert rates_of(TWO_CORES).source == "measured"


def test_rows_that_are_no_rates_are_left_out(data_dir):
    database = Database()
    save(database, [record(TWO_CORES, 2.0), record(NVIDIA, 2.0)])
    spoil = """UPDATE rates SET "values"='{"exact_call": -1}' WHERE id=1"""
    database.file.write(lambda connection: connection.execute(spoil))
    assert [one.device.name for one in stored(database)] == [NVIDIA.name]
    assert rates_of(TWO_CORES).source == "default"


def test_a_database_without_the_table_of_rates(data_dir):
    """As earlier versions made it: it is read, kept, and given the table when there is something to write."""
    database = Database()
    database.set_limit("device", "kernel", 64, "refused")
    database.file.write(lambda connection: connection.execute("DROP TABLE rates"))
    assert stored(database) == [] and rates_of(TWO_CORES).source == "default"
    assert remove(database, []) == 0 and remove(database, [7]) == 0
    save(database, [record(TWO_CORES)])
    assert rates_of(TWO_CORES).source == "measured"
    assert len(database.limits()) == 1 and database.problems == []
    database.file.write(lambda connection: connection.execute(RATES_TABLE))  # harmless where it is there


def test_a_newer_database_is_left_alone(data_dir):
    save(Database(), [record(TWO_CORES)])
    Database().file.write(lambda connection: connection.execute("PRAGMA user_version = 99"))
    source.forget()
    assert rates_of(TWO_CORES).source == "default"


def test_a_folder_that_cannot_be_written_keeps_rates_in_memory(data_dir):
    data_dir.parent.joinpath("data").write_text("a file where the folder should be")
    assert save(Database(), [record(TWO_CORES, 2.0)]) == 1
    assert Database().in_memory and rates_of(TWO_CORES).source == "measured"


def test_what_is_superseded(data_dir):
    database = Database()
    save(database, [record(TWO_CORES, 2.0), record(NVIDIA, 2.0), record(TWO_CORES, 3.0), record(NVIDIA, model="0")])
    everything = stored(database)
    assert [one.id for one in superseded(everything)] == [1, 4]
    assert sorted(one.id for one in newest(everything)) == [2, 3]
    assert [one.id for one in newest(everything, device="h200")] == [2]
    assert remove(database, [1, 4, 9]) == 2
    assert stored(database)[0].problems == ({"n": 1},) and stored(database)[0].when == 5.0


def test_lines_survive_the_way_there_and_back():
    one = record(TWO_CORES)
    reading = wisdom.parse("\n".join([line(one), line(record(NVIDIA, model="0")), '{"rates": "neighbors"}']))
    assert record_from(json.loads(line(one))) == replace(one, problems=(), when=0.0, session="")
    assert [r.device.name for r in reading.rates] == [one.device.name] and reading.entries == ()
    (bad, stale) = reading.problems("f")
    assert "line 3: 'device' is None" in bad and "1 entry of rates of neighbors belongs to another version" in stale
    for values in ({"exact_call": -1}, {"exact_call": "1"}, {"exact_call": True}, {"exact_call": float("inf")}):
        with pytest.raises(ValueError, match="the rate 'exact_call'"):
            record_from({**json.loads(line(one)), "values": values})
    assert IMPORTED == "import"


def test_shipped_rates_are_usable():
    """Every line of rates that ships belongs to this version's formulas."""
    for runtime in ("intel-cpu", "pocl", "nvidia"):
        assert not [name for name in wisdom.read_shipped(runtime).stale if name == NAME]
        for one in SHIPPED(runtime):
            assert from_values(one.values) is not None and one.device.runtime == runtime


# The measurement, by a clock of its own


@pytest.mark.parametrize("budget", [8.0, 20.0, 60.0])
@pytest.mark.parametrize(("rates", "gpu"), [(CPU, False), (GPU, True)])
def test_the_budget_is_kept_and_the_rates_are_found(budget, rates, gpu):
    runner = Pretended(rates, compile_seconds=0.05 if budget < 20 else 0.5)
    found = list(measure(runner, cases(gpu), budget, runner.clock))
    assert runner.now - 100 <= budget * 1.1
    assert suffices(found)
    assert max(errors(found, fit(found, CPU))) < 1.3


def test_long_problems_are_left_out_one_by_one():
    runner = Pretended()
    found = list(measure(runner, cases(False), 30.0, runner.clock))
    most = {(t.series, t.E, s): t.n for t in found for s in ("exact", "pruned") if getattr(t, s) is not None}
    assert most["lorenz", 20, "pruned"] > most["lorenz", 20, "exact"]
    assert most["lorenz", 1, "exact"] > most["noise", 20, "exact"]


def test_without_scipy_the_tree_is_left_out():
    runner = Pretended(searches=tuple(s for s in SEARCHES if s not in ("build", "tree")))
    found = list(measure(runner, cases(False), 10.0, runner.clock))
    assert suffices(found) and all(t.tree is None and t.build is None for t in found)


def test_what_does_not_fit_the_memory_is_left_out():
    def fails(problem, search):
        if search == "pruned" and problem.n > 5000:
            raise DeviceMemoryError("too large")

    runner = Pretended(fails=fails)
    found = list(measure(runner, cases(False), 20.0, runner.clock))
    assert suffices(found)
    assert all((t.pruned is None) == (t.n > 5000) for t in found)


def test_what_was_timed_before_ctrl_c_has_been_handed_over():
    def fails(problem, search):
        if problem.n > 10_000:
            raise KeyboardInterrupt

    runner = Pretended(fails=fails)
    found = []
    with pytest.raises(KeyboardInterrupt):
        for timing in measure(runner, cases(False), 60.0, runner.clock):
            found.append(timing)
    assert suffices(found) and max(t.n for t in found) < 10_000


def test_a_problem_says_what_it_is():
    assert RateCase("noise", 4096, 20).name == "noise, 4,096 steps, E=20"


def test_the_table_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    picture, bench = tmp_path / "table.png", RESULTS.parent / "approximate.py"
    done = subprocess.run([sys.executable, str(bench), "--plot", str(picture)], env=environment(), timeout=120)
    assert done.returncode == 0 and picture.read_bytes().startswith(b"\x89PNG")
