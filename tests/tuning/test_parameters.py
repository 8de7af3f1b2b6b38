"""Which parameters a launch uses: modes, grades, and tuning within a process."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import environment
from device_helpers import INTEL, NVIDIA
from tuning_helpers import KNN, SIZES, key, run, short_series

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import InputError, Interrupted, LaunchError
from pyedmcl.kernels import spec
from pyedmcl.kernels.kernel_spec import Constraint
from pyedmcl.tuning import defaults, knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.knowledge import Knowledge
from pyedmcl.tuning.parameters import ParameterChoice, source
from pyedmcl.tuning.records import Entry, tuning_key

pytestmark = pytest.mark.usefixtures("data_dir")
PREDICT = {"dtype": "float32"}


def ask(info=NVIDIA, specialisation=PREDICT, **sizes):
    return source.parameters(spec("predict"), specialisation, info, sizes)


def test_without_knowledge_the_defaults_serve_and_no_database_is_made(data_dir):
    assert ask() == ParameterChoice({"wg": 32}, "default")
    assert not data_dir.exists()


def test_grades_from_exact_to_default():
    database = Database()
    run(database, key(info=replace(NVIDIA, name="NVIDIA H100"), rows=1000), {"wg": 128}, 1.0)
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 128}, "same architecture")
    run(database, key(rows=64_000), {"wg": 1})
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 128}, "same architecture")  # of the right size
    assert ask(rows=16_000) == ParameterChoice({"wg": 1}, "other size")
    assert ask(rows=10**7).grade == "default"  # nothing of that size, or near it
    run(database, key(info=replace(NVIDIA, driver="0.9"), rows=1000), {"wg": 128})
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 128}, "other driver")
    run(database, key(rows=1000), {"wg": 32})
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 32}, "exact")
    assert ask(info=INTEL, rows=1000).grade == "default"


def test_shipped_wisdom_comes_after_what_was_measured_here(monkeypatch):
    shipped = Entry(key(rows=1000), {"wg": 128})
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (shipped,) if runtime == "nvidia" else ())
    assert ask(rows=1000) == ParameterChoice({"wg": 128}, "shipped")
    run(Database(), key(rows=4000), {"wg": 32})
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 128}, "shipped")  # of the right size
    assert ask(rows=4000) == ParameterChoice({"wg": 32}, "exact")
    run(Database(), key(rows=1000), {"wg": 16})
    source.forget()
    assert ask(rows=1000) == ParameterChoice({"wg": 16}, "exact")  # what was found here goes before equals
    with source.mode("never"):
        assert ask(rows=1000) == ParameterChoice({"wg": 32}, "default")


def test_a_grade_is_told_once(caplog):
    caplog.set_level(logging.INFO, logger="pyedmcl")
    for rows in (10, 1000, 100_000):
        ask(rows=rows)
    assert [r.message for r in caplog.records] == ["parameters of predict on NVIDIA H200: default"]


def test_a_running_process_sees_what_another_one_tuned(data_dir):
    with source.mode():
        assert ask(rows=1000).grade == "default"
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from pyedmcl.tuning.database import Database; from tuning_helpers import key, run\n"
        "run(Database(), key(rows=1000), {'wg': 32})"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, env=environment(PYEDMCL_DATA_DIR=str(data_dir)), check=True)
    with source.mode():
        assert ask(rows=1000) == ParameterChoice({"wg": 32}, "exact")


def test_what_failed_here_is_not_taken_from_elsewhere(monkeypatch):
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (Entry(key(rows=1000), {"wg": 128}),))
    run(Database(), key(rows=16_000), {"wg": 128}, None, status="wrong")
    assert ask(rows=1000) == ParameterChoice({"wg": 32}, "default")


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({}, "name nothing"),
        ({"wg": 64, "more": 1}, "more, wg"),
        ({"wg": 63}, "wg = 63 is none of"),
        ({"wg": True}, "wg = True is none of"),
        ({"wg": 128}, "groups have at most 64 work-items on this device"),
    ],
)
def test_parameters_that_do_not_fit_are_told_and_left_out(parameters, why, caplog):
    caplog.set_level(logging.INFO, logger="pyedmcl")
    small = replace(NVIDIA, max_work_group=64)
    run(Database(), key(info=small), parameters)
    assert ask(info=small) == ParameterChoice({"wg": 32}, "default")
    assert why in caplog.text


def test_constraints_are_held_as_far_as_their_values_are_known():
    kernel = replace(
        spec("predict"),
        constraints=(Constraint(lambda v: v["wg"] < v["later"], "later"), Constraint(lambda v: v["wg"] != 32, "no 32")),
    )
    assert defaults.unfit(kernel, {"wg": 32}, PREDICT, NVIDIA, 256) == "no 32"
    assert defaults.unfit(kernel, {"wg": 64}, PREDICT, NVIDIA, 256) is None
    assert defaults.unfit(kernel, {"wg": 64}, {**PREDICT, "later": 3}, NVIDIA, 256) == "later"


def test_tiles_must_fit_the_local_memory():
    tiled = {t.name: t.values[-1] for t in spec("knn").tunables} | {"tile": 1024, "lanes": 1, "wg": 1}
    assert "a tile has at most" in str(defaults.unfit(spec("knn"), tiled, {**KNN, "tau": 40_000}, NVIDIA, 256))


def test_modes_nest_and_come_from_the_environment(monkeypatch):
    run(Database(), key(), {"wg": 32})
    monkeypatch.setenv("PYEDMCL_TUNE", "never")
    assert ask().grade == "default"
    with source.mode("cached"):
        assert ask().grade == "exact"
        with source.mode():
            assert ask().grade == "exact"
        with source.mode("never"):
            assert ask().grade == "default"
    monkeypatch.setenv("PYEDMCL_TUNE", "sometimes")
    with pytest.raises(InputError, match=r"PYEDMCL_TUNE='sometimes'.*never, cached, auto, force"):
        ask()
    with pytest.raises(InputError, match="tune=3"):
        pyedmcl.knn(short_series(), E=2, tune=3)
    with pytest.raises(InputError, match="tune=array"):
        pyedmcl.knn(short_series(), E=2, tune=np.zeros(2))


def test_forced_parameters_win():
    run(Database(), key(), {"wg": 32})
    with source.using(predict={"wg": 1}), source.mode("force"):
        assert ask() == ParameterChoice({"wg": 1}, "forced")
    assert ask().grade == "exact"


class Tuner:
    """Finds that 32 is best, whatever it is asked."""

    def __init__(self):
        self.calls = []

    def __call__(self, kernel, specialisation, info, sizes, budget):
        assert ask(info, specialisation, **sizes).grade == "default"  # no recursion, nothing cached
        self.calls.append((kernel.name, dict(sizes), budget))
        run(Database(), tuning_key(kernel, specialisation, info, sizes), {"wg": 32}, final=True)


def test_force_tunes_what_is_asked_for_once():
    tuner = Tuner()
    source.tuner = tuner
    run(Database(), key(rows=1000), {"wg": 1})
    with source.mode("force"):
        for _ in range(3):
            assert ask(rows=1000) == ParameterChoice({"wg": 32}, "exact")
        ask(rows=100_000)
    assert [(name, sizes["rows"]) for name, sizes, _ in tuner.calls] == [("predict", 1000), ("predict", 100_000)]


def test_auto_tunes_before_long_jobs_only_and_within_a_share_of_them():
    tuner = Tuner()
    source.tuner = tuner
    rate = defaults.operations_per_second(NVIDIA)
    with source.mode("auto"):
        assert ask(rows=1000).grade == "default"
        source.expect(10 * rate, NVIDIA)
        assert ask(rows=1000).grade == "default"
        source.expect(100 * rate, NVIDIA)
        assert ask(rows=1000) == ParameterChoice({"wg": 32}, "exact")
    assert [budget for *_, budget in tuner.calls] == [pytest.approx(5.0)]
    with source.mode("cached"):
        source.expect(1e6 * rate, NVIDIA)
        ask(rows=16)
        assert len(tuner.calls) == 1


def test_auto_trusts_what_is_known_well(monkeypatch):
    tuner = Tuner()
    source.tuner = tuner
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (Entry(key(rows=1000), {"wg": 128}),))
    with source.mode("auto"):
        source.expect(1e6 * defaults.operations_per_second(NVIDIA), NVIDIA)
        assert ask(rows=1000).grade == "shipped"
    assert not tuner.calls


def test_auto_keeps_to_its_budget(monkeypatch):
    spent = [0.0]
    monkeypatch.setattr("pyedmcl.tuning.parameters.time.monotonic", lambda: spent[0])
    budgets = []

    def tuner(kernel, specialisation, info, sizes, budget):
        budgets.append(budget)
        spent[0] += budget

    source.tuner = tuner
    with source.mode("auto"):
        source.expect(200 * defaults.operations_per_second(NVIDIA), NVIDIA)
        for power in range(0, 20, 2):
            ask(rows=2**power)
    assert budgets == pytest.approx([10, 5, 2.5, 1.25]) and sum(budgets) < 20


def test_a_tuner_that_fails_does_not_stop_the_work(caplog):
    def tuner(*_):
        raise LaunchError("the device is gone")

    source.tuner = tuner
    with source.mode("force"):
        assert ask() == ParameterChoice({"wg": 32}, "default")
    assert "predict could not be tuned: the device is gone" in caplog.text

    def stopped(*_):
        raise Interrupted("stopped")

    source.tuner = stopped
    with source.mode("force"), pytest.raises(Interrupted):
        ask(rows=5)


def test_the_database_is_read_once_for_a_kernel_and_its_entries_are_ranked_once_for_a_question(monkeypatch):
    database = Database()
    for rows in (10, 1000, 100_000):
        run(database, key("knn", KNN, rows=rows), {"wg": rows})
    done = []

    def watch(owner, name):
        plain = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *words: done.append(name) or plain(*words))

    watch(Database, "known")
    watch(Knowledge, "suitable")
    source.parameters(spec("knn"), KNN, NVIDIA, {"rows": 1})
    assert sorted(done) == ["known", "suitable"]
    done.clear()
    source.parameters(spec("knn"), KNN, NVIDIA, SIZES)
    assert done == ["suitable"], "another question of a kernel whose trials were read"
    done.clear()
    for _ in range(3):
        source.parameters(spec("knn"), KNN, NVIDIA, SIZES)
    assert not done, "the same question again"


def test_results_record_parameters_and_grade(device):
    x = short_series()
    result = pyedmcl.simplex(x, E=2, device=device, tune="never")
    info = open_device(device).info
    used = result.provenance["tuning"]
    assert set(used) == {"knn", "predict"}
    assert {one["grade"] for choices in used.values() for one in choices} == {"default"}
    run(Database(), key(info=info), {"wg": 1})
    again = pyedmcl.simplex(x, E=2, device=device)
    assert again.provenance["tuning"]["predict"] == [{"grade": "exact", "parameters": {"wg": 1}}]
    np.testing.assert_array_equal(result.predicted, again.predicted)


def test_what_an_engine_adjusts_is_told_and_kept_for_provenance(caplog):
    caplog.set_level(logging.INFO, logger="pyedmcl")
    with source.watching() as outer, source.watching():
        choice = ask()
        assert source.adjusted(choice, {"wg": 32}, "nothing changes") == {"wg": 32}
        assert source.record()["predict"] == [{"grade": "default", "parameters": {"wg": 32}}]
        for _ in range(2):
            assert source.adjusted(choice, {"wg": 16, "more": 1}, "few rows") == {"wg": 16, "more": 1}
        assert ask() == choice, "the answer stays as it was"
        changes = [{"why": "few rows", "parameters": {"wg": 16, "more": 1}}]
        assert source.record()["predict"] == [{"grade": "default", "parameters": {"wg": 32}, "adjusted": changes}]
    assert [question.adjusted for question in outer.values()] == [tuple(changes)]
    assert caplog.text.count("parameters of predict are adjusted: few rows") == 1
    assert source.adjusted(choice, {"wg": 1}, "nobody watches") == {"wg": 1}


def test_staged_targets_that_do_not_fit_longer_series_are_passed_over(data_dir, caplog):
    """A size bucket holds series of up to four times the length."""
    kernel, given = spec("lookup"), {"dtype": "float32", "k": 4, "columns": 1000}
    h200 = replace(NVIDIA, name="NVIDIA H200")
    tuned = {**defaults.defaults(kernel, given, h200, 1024, {"rows": 3000, "targets": 1000})}
    tuned |= {"stage": True, "lanes": 4, "vectors": 1, "target_lanes": 4, "row_lanes": 8, "library_lanes": 16}
    run(Database(), key("lookup", given, h200, rows=3000, targets=1000), tuned, final=True)
    source.forget()
    assert source.parameters(kernel, given, h200, {"rows": 3000, "targets": 1000}).parameters == tuned
    longer = source.parameters(kernel, given, h200, {"rows": 7000, "targets": 1000})
    assert longer.grade == "default"
    assert longer.parameters != tuned
