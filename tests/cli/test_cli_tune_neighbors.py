"""``pyedmcl tune neighbors`` and what ``pyedmcl db`` makes of measured rates."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from device_helpers import INTEL
from rates_helpers import Pretended, sets_of, trial
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.device.info import device_key
from pyedmcl.search.rates import DEFAULTS, rates_of
from pyedmcl.tuner import neighbor_rates
from pyedmcl.tuning.database import Database

pytestmark = pytest.mark.usefixtures("data_dir")


def pyedmcl(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def document(*words):
    done = pyedmcl(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def pretended(monkeypatch):
    """Searches on a clock of their own, in place of the device's."""
    runner = Pretended()
    runner.problems = neighbor_rates.cases(False)
    monkeypatch.setattr(neighbor_rates, "DeviceRunner", lambda executor: runner)
    real = neighbor_rates.measure
    monkeypatch.setattr(neighbor_rates, "measure", lambda *given: real(*given, runner.clock))
    return runner


def test_rates_are_measured_shown_and_kept(one_device, pretended):
    done = pyedmcl("tune", "neighbors", "--device", one_device, "--budget", "20s")
    assert done.exit_code == 0, done.output
    assert "exact_lag" in done.stdout and "before (default)" in done.stdout and "kept in" in done.stdout
    assert pretended.now - 100 <= 22
    (kept,) = sets_of(Database())
    assert kept.parameters["exact_lag"] == pytest.approx(DEFAULTS["cpu"][1].exact_lag, rel=0.05)
    assert {"series", "n", "E", "exact", "predicted"} <= set(json.loads(kept.note)["problems"][0])
    found = document("tune", "neighbors", "--device", one_device, "--mode", "rapid")["neighbors"]
    assert found["before"]["source"] == "measured" and found["error"]["median"] < 1.1
    assert len(sets_of(Database())) == 2


def test_ctrl_c_keeps_what_suffices(one_device, pretended):
    def fails(problem, search):
        if problem.n > 5000:
            raise KeyboardInterrupt

    pretended.fails = fails
    done = pyedmcl("tune", "neighbors", "--device", one_device)
    assert done.exit_code == 130 and "rates from these are kept" in done.output
    assert len(sets_of(Database())) == 1


def test_ctrl_c_at_once_keeps_nothing(one_device, pretended):
    @contextmanager
    def prepared(problem, search):
        raise KeyboardInterrupt
        yield

    pretended.prepared = prepared
    done = pyedmcl("tune", "neighbors", "--device", one_device)
    assert done.exit_code == 130 and "stopped after 0 problems" in done.output and "nothing is kept" in done.output
    assert sets_of(Database()) == []


def test_a_budget_that_is_too_small_is_named(one_device, pretended):
    done = pyedmcl("tune", "neighbors", "--device", one_device, "--budget", "1s")
    assert done.exit_code == 3 and "Give a larger --budget" in done.output
    assert sets_of(Database()) == []
    assert pyedmcl("tune", "neighbors", "--device", one_device, "--mode", "slow").exit_code == 3


def test_without_scipy_the_tree_is_left_out(one_device, pretended):
    pretended.searches = tuple(s for s in neighbor_rates.SEARCHES if s not in ("build", "tree"))
    done = pyedmcl("tune", "neighbors", "--device", one_device, "--budget", "20s")
    assert done.exit_code == 0 and "scipy is not installed" in done.stderr
    assert sets_of(Database())[0].parameters["tree_visit"] == DEFAULTS["cpu"][1].tree_visit


def test_explain_runs_nothing(one_device, pretended):
    told = document("tune", "neighbors", "knn", "--device", one_device, "--explain", "--budget", "80s")
    assert told["neighbors"]["seconds"] == 40 and told["neighbors"]["source"] == "default"
    assert {kernel["kernel"] for kernel in told["kernels"]} == {"knn"}
    assert "lorenz, 1,024 steps, E=1" in pyedmcl("tune", "neighbors", "--device", one_device, "--explain").stdout
    assert pretended.runs == [] and sets_of(Database()) == []


def test_a_real_measurement(one_device, monkeypatch):
    """The shortest problems on a device; no time is judged."""
    problems = [p for p in neighbor_rates.cases(False) if p.n == 1024]
    monkeypatch.setattr(neighbor_rates, "cases", lambda scalar_work_items: problems)
    found = document("tune", "neighbors", "--device", one_device, "--budget", "60s")["neighbors"]
    assert len(found["problems"]) == len(problems)
    assert {"exact", "pruned"} <= set(found["problems"][0]) and found["problems"][2]["share"] == 1.0
    assert rates_of(_info(one_device)).source == "measured"


def _info(device):
    from pyedmcl.device.select import select

    return select(device).device


def test_the_database_shows_exports_imports_and_prunes_rates(tmp_path, monkeypatch):
    database = Database()
    database.add([trial(INTEL, 2.0), trial(INTEL, 3.0), trial(INTEL, 4.0, model="0")])
    shown = document("db", "show", "neighbors")["trials"]
    assert [(r["kernel"], r["device"], r["current"], r["ok"]) for r in shown] == [
        ("neighbors", INTEL.name, False, 1), ("neighbors", INTEL.name, True, 2),
    ]  # fmt: skip
    assert "neighbors" in pyedmcl("db", "show").stdout and document("db", "show", "knn")["trials"] == []
    (best,) = document("db", "best", "neighbors")
    assert best["parameters"]["exact_lag"] == pytest.approx(3 * DEFAULTS["cpu"][1].exact_lag)
    assert "exact_lag" in pyedmcl("db", "best", "neighbors").stdout and document("db", "best") == []
    assert "trials of kernels that have changed, or of rates measured anew: 2" in pyedmcl("db", "doctor").stdout
    file = tmp_path / "rates.jsonl"
    assert "1 entries" in pyedmcl("db", "export", "neighbors", "-o", file).stdout
    assert pyedmcl("db", "export").stdout == file.read_text()
    assert pyedmcl("db", "export", "knn").stdout == ""
    assert "3 trials" in pyedmcl("db", "export", "--trials", "-o", tmp_path / "trials.jsonl").stdout
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "elsewhere"))
    assert "1 new of 1 entries" in pyedmcl("db", "import", file).stdout
    assert "0 new of 1 entries" in pyedmcl("db", "import", file).stdout
    assert rates_of(INTEL).source == "imported"
    assert "imported" in pyedmcl("db", "show", "neighbors").stdout
    assert "1 of 1 trials would be removed" in pyedmcl("db", "prune", "--imported", "--dry-run").stdout
    assert document("db", "prune", "--imported")["chosen"] == 1
    assert rates_of(INTEL).source == "default"
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(database.path.parent))
    assert document("db", "prune")["chosen"] == 2
    assert [one.parameters["exact_lag"] for one in sets_of(Database())] == [best["parameters"]["exact_lag"]]
    assert sets_of(Database())[0].key.device == device_key(INTEL)
