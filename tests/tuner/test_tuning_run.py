"""The tuner at work: processes that crash, hang and are killed; real kernels; the command; tuning within a job."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from cli_helpers import environment, inside, shell
from device_helpers import INTEL
from loopy_helpers import needs_loopy
from search_worker import DEFAULTS, seconds_of

import pyedmcl
from pyedmcl.device.session import open_device
from pyedmcl.errors import InputError
from pyedmcl.kernels import NAMES, spec
from pyedmcl.tuner import campaign, isolate, measure
from pyedmcl.tuner.executors import Recorder
from pyedmcl.tuner.measure import Bench, chosen
from pyedmcl.tuner.outcome import Settings
from pyedmcl.tuner.problem import TuningCase
from pyedmcl.tuner.problems import names, problem, tuned_spec
from pyedmcl.tuner.space import Space
from pyedmcl.tuner.verify import Close, WrongAnswerError, require, require_same
from pyedmcl.tuning import wisdom
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.key import canonical, tuning_key
from pyedmcl.tuning.parameters import source

HERE = Path(__file__).parents[1]
WORKER = str(HERE / "search_worker.py")
BEST = {"lanes": 8, "wg": 64}
SECOND = {"lanes": 4, "wg": 64}
# Everything is tried, however long it takes: a busy machine must not change what is found.
ENDLESS = campaign.Mode(math.inf, Settings("exhaustive", rounds=2, duel=3, batch=4), 120.0, 120.0)


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    """Every test has a database of its own, as have the processes it starts."""
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("PYEDMCL_TUNE", raising=False)
    source.forget()
    yield Database()
    source.forget()


def command(**deeds):
    """A worker in which parameters do something bad at some request."""
    return [sys.executable, WORKER, json.dumps({canonical(p): [deed, at] for deed, (p, at) in deeds.items()})]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setitem(campaign.DEPTH, "rapid", ENDLESS)
    monkeypatch.setenv("PYTHONPATH", str(HERE))

    def tune(worker, **more):
        return list(campaign.tune(["shared_sums"], INTEL, mode="rapid", command=worker, **more))

    return tune


def ends(database):
    return {t.canonical: t.status for t in database.trials() if not t.final}


def test_workers_find_the_best(run, own_database):
    (outcome,) = run(command(print=(BEST, "sample")))
    assert outcome.parameters == BEST
    assert outcome.gain == pytest.approx(seconds_of(DEFAULTS) / seconds_of(BEST))
    assert len(ends(own_database)) == 20


@pytest.mark.parametrize("at", ["prepare", "attempt", "verify", "sample"])
def test_a_candidate_that_crashes_its_process_is_recorded_and_the_search_goes_on(run, own_database, at):
    (outcome,) = run(command(crash=(BEST, at)))
    assert outcome.parameters == SECOND
    (parameters, status, why) = outcome.trouble[0]
    assert (parameters, status) == (BEST, "failed")
    assert "SIGSEGV" in why
    assert "last words" in why
    assert len(ends(own_database)) == 20, "all others were tried"


class Clock:
    """Stands still but while a process that says that it hangs is there: then an hour passes with every look.

    Parameters
    ----------
    folder : Path
        Where such a process leaves a file named by its id.
    """

    sleep = staticmethod(time.sleep)

    def __init__(self, folder):
        self.folder, self.now = folder, 0.0

    def monotonic(self):
        for file in self.folder.iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.name), 0)
                self.now += 3600.0
        return self.now


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("at", ["prepare", "attempt"])
def test_a_candidate_that_hangs_is_killed_by_its_parent(run, own_database, at, tmp_path, monkeypatch):
    hanging = tmp_path / "hanging"
    hanging.mkdir()
    monkeypatch.setattr(isolate, "time", Clock(hanging))
    monkeypatch.setattr(campaign, "_WORKERS_MOST", 1)  # a second one's time would be up at the same moment
    monkeypatch.setenv("SEARCH_WORKER_HANGING", str(hanging))
    (outcome,) = run(command(hang=(BEST, at)))
    assert outcome.parameters == SECOND
    assert len(list(hanging.iterdir())) == 1
    assert ends(own_database)[canonical(BEST)] == "hung"
    (again,) = run(command(hang=(BEST, at)), fresh=True)
    assert not again.trouble, "it was not tried again"


KILLED = """
import sys
from search_worker import DEFAULTS
from device_helpers import INTEL
from pyedmcl.tuner import campaign
from pyedmcl.tuner.outcome import Settings

if __name__ == "__main__":
    settings = Settings("exhaustive", rounds=2, duel=3, batch=4)
    campaign.DEPTH["rapid"] = campaign.Mode(float("inf"), settings, 120.0, 120.0)
    for outcome in campaign.tune(["shared_sums"], INTEL, mode="rapid", command=sys.argv[1:]):
        print(outcome.parameters)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_tuner_that_is_killed_loses_nothing_finished_and_skips_what_killed_it(run, own_database, tmp_path):
    script = tmp_path / "tuner.py"
    script.write_text(KILLED)
    worker = command(**{"kill the tuner": (BEST, "sample")})
    done = subprocess.run([sys.executable, str(script), *worker], env=environment(PYTHONPATH=f"{HERE}:{HERE.parent}"),
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == -9, done.stderr
    left = ends(own_database)
    finished = {text: status for text, status in left.items() if status != "started"}
    assert len(finished) >= 4
    assert set(finished.values()) <= {"ok", "slow"}
    assert left[canonical(BEST)] == "started"
    begun = [text for text, status in left.items() if status == "started"]
    assert len(begun) <= 4, "what was compiled together at most"
    (outcome,) = run(command(**{"kill the tuner": (BEST, "sample")}))
    assert outcome.counts["known"] >= len(finished) - 1
    assert outcome.parameters != BEST, "what killed the first tuner is not tried again"
    assert outcome.kept


PARENT = """
import subprocess, sys, time

worker = subprocess.Popen([sys.executable, "-m", "pyedmcl.tuner.worker", "77:0", sys.argv[1]],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worker.stdin.write(b'{"do": "describe", "case": "", "parameters": null, "seconds": 600}\\n')
worker.stdin.flush()
worker.stdout.readline()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_children_of_a_killed_tuner_end_and_leave_nothing(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "answer.npz").write_text("an answer")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], env=environment(PYTHONPATH=str(HERE.parent)),
                              stdout=subprocess.PIPE)  # fmt: skip
    assert parent.stdout.readline() == b"ready\n"
    assert folder.exists()
    parent.kill()
    parent.communicate()
    while folder.exists():  # else this test runs into its time limit
        time.sleep(0.02)


def test_a_process_that_ends_within_an_answer_has_failed():
    worker = isolate._Worker([sys.executable, "-c", 'import sys; sys.stdout.write(\'{"status": "o\'); sys.exit(3)'])
    reply = worker.reply(20.0)
    worker.end(kill=True)
    assert reply.status == "failed" and "ended with code 3" in reply.note


def test_two_tuners_at_once_share_the_database(own_database, tmp_path):
    script = tmp_path / "tuner.py"
    script.write_text(KILLED)
    env = environment(PYTHONPATH=f"{HERE}:{HERE.parent}")
    both = [subprocess.Popen([sys.executable, str(script), *command()], env=env, stdout=subprocess.PIPE, text=True)
            for _ in range(2)]  # fmt: skip
    said = [process.communicate()[0].strip() for process in both]
    assert said == [str(BEST)] * 2
    assert {t.status for t in own_database.trials()} <= {"ok", "slow"}
    assert len({t.session for t in own_database.trials()}) == 2


def test_a_worker_that_cannot_open_its_device_says_so(own_database, monkeypatch):
    absent = replace(INTEL, id="77:0")
    (outcome,) = campaign.tune(["skill"], absent, mode="rapid")
    assert not outcome.kept
    assert "77:0" in outcome.note


def test_a_plan_leaves_out_cases_that_the_budget_is_too_small_for():
    whole = campaign.plan(["knn", "lookup"], "normal", INTEL)
    few = campaign.plan(["knn", "lookup"], "normal", INTEL, 40.0)
    assert len(few) < len(whole)
    assert {p.case.kernel for p in few} == {"knn", "lookup"}
    assert [p.case for p in few if p.case.kernel == "knn"] == [p.case for p in whole if p.case.kernel == "knn"][:len(
        [p for p in few if p.case.kernel == "knn"])]  # fmt: skip
    assert len(campaign.plan(["knn"], "rapid", INTEL)) <= 2


@pytest.mark.parametrize(("kernels", "mode", "budget", "words"), [
    (["teapot"], "rapid", None, "teapot.*knn"), (["stage"], "rapid", None, "stage.*nothing to tune"),
    (["knn"], "slow", None, "slow.*rapid"), (["knn"], "rapid", -1.0, "budget"),
])  # fmt: skip
def test_plans_that_make_no_sense_are_refused(kernels, mode, budget, words):
    with pytest.raises(InputError, match=words):
        campaign.plan(kernels, mode, INTEL, budget)


# Problems


def test_every_kernel_that_can_be_tuned_has_a_problem_whose_sampled_configurations_are_verified():
    tunable = {name for name in NAMES if spec(name).tunables}
    assert tunable == set(names()) == set(SMALL)


@pytest.mark.parametrize("name", names())
def test_problems_describe_their_cases(name):
    tuned = problem(name)
    assert tuned.kernel == name
    for mode in ("rapid", "normal", "exhaustive"):
        cases = tuned.cases(mode, INTEL)
        assert cases
        assert len({case.text() for case in cases}) == len(cases)
        for case in cases:
            assert TuningCase.parse(case.text()) == case


@pytest.mark.parametrize("name", names())
def test_devices_without_float64_get_no_case_of_it(name):
    cases = problem(name).cases("exhaustive", replace(INTEL, fp64=False))
    assert cases and not [case for case in cases if case.given.get("dtype") == "float64"]


# One small problem per kernel, and how many configurations of it are tried.
SMALL = {
    "knn": ({"dims": (1, 3, 8), "tau": 2, "dtype": "float32"}, {"rows": 150, "library": 150}, 4),
    "lookup": ({"k": 4, "dtype": "float32", "columns": 19}, {"rows": 120, "targets": 19}, 4),
    "predict": ({"dtype": "float32"}, {}, 4),
    "skill": ({"dtype": "float32"}, {}, 2),
    "recurrence_image": ({"m": 3, "tau": 2, "mode": "count"}, {"rows": 150, "columns": 150}, 3),
    "recurrence_bits": (
        {"m": 3, "tau": 2, "metric": "euclidean", "dtype": "float32", "exact": True, "strict": True, "n_radii": 2},
        {"rows": 150, "columns_of_matrix": 150},
        3,
    ),
    "smap": ({"coordinates": 3, "regressors": 4, "limited": False, "dtype": "float32"}, {"library": 120}, 3),
    "smap_shared": ({"coordinates": 8, "regressors": 9, "limited": False, "dtype": "float32"}, {"library": 120}, 3),
    "smap_scale": ({"coordinates": 3, "limited": True, "dtype": "float32"}, {"library": 120}, 3),
    "smap_solve": ({"coordinates": 3, "regressors": 4, "dtype": "float32"}, {"library": 120}, 2),
    "smap_white": ({"E": 3, "gaps": False, "penalised": False, "dtype": "float32"}, {"rows": 120}, 2),
    "smap_gram": ({"E": 3, "gaps": False, "penalised": False, "dtype": "float32"}, {"rows": 120, "targets": 9}, 3),
    "smap_map": ({"E": 3, "gaps": False, "dtype": "float32"}, {"rows": 120, "targets": 9}, 3),
    "ccm": ({"k": 4, "dtype": "float32"}, {"rows": 150}, 3),
    "ccm_direct": ({"E": 3, "k": 4, "dtype": "float32"}, {"rows": 150}, 3),
    "ccm_draw": ({}, {"rows": 150}, 2),
    "recurrence_network": ({"m": 3, "step": 2, "metric": "euclidean", "dtype": "float64", "strict": True}, {}, 2),
    "recurrence_windows": ({"m": 3, "step": 2, "metric": "maximum", "dtype": "float64", "strict": False}, {}, 3),
    "recurrence_ranks": ({"m": 3, "step": 2, "metric": "euclidean", "dtype": "float64"}, {}, 3),
    "recurrence_transpose": ({}, {}, 2),
    "recurrence_lines": ({}, {}, 3),
    "pruned": ({"E": 3, "tau": 2, "k": 4, "dtype": "float32", "excluding": True}, {"rows": 700, "library": 700}, 4),
    "pruned_order": ({"dtype": "float32", "axes": 3, "leaf": 16}, {"rows": 900}, 3),
    "shared_sums": ({"E": 9, "tau": 2, "k": 10, "dtype": "float32", "side": 8}, {"rows": 400, "library": 400}, 2),
}


LOOPY = ("skill",)


@pytest.fixture(scope="module")
def benches():
    made = {}

    def bench(device):
        if device not in made:
            made[device] = Bench(open_device(device))
        return made[device]

    return bench


@pytest.mark.parametrize("name", [n if n not in LOOPY else pytest.param(n, marks=needs_loopy) for n in SMALL])
def test_a_sample_of_valid_configurations_gives_the_oracles_answer(benches, device, name):
    """Bit for bit where the spec says so (neighbours, squared distances), else within rounding."""
    specialisation, sizes, count = SMALL[name]
    bench = benches(device)
    info = bench.executor.info
    case = problem(name).like(specialisation, sizes, info)
    space = Space(tuned_spec(name), info, case.numbers["given"])
    rng = Random(1)
    sampled = {canonical(c): c for c in (space.sample(rng) for _ in range(200))}
    tried = list(sampled.values())[:count]
    assert len(tried) == min(count, space.count())
    for configuration in (None, *tried):
        reply = bench.verify(case, configuration)
        assert reply.status == "ok", (configuration, reply.note)


@pytest.mark.parametrize("name", ["knn", "pruned", "recurrence_bits", "ccm_draw"])
def test_the_verification_notices_a_wrong_answer(benches, one_device, name, monkeypatch):
    """An oracle that is off in the last bit of one array stands for a kernel that is."""
    specialisation, sizes, _ = SMALL[name]
    bench, tuned = benches(one_device), problem(name)
    case = tuned.like(specialisation, sizes, bench.executor.info)
    *_, (words, small) = tuned.ragged(case)
    monkeypatch.setattr(tuned, "ragged", lambda case: iter([(words, small)]))
    right = tuned.expected(case, small)
    for what in sorted(right.keys() & tuned.computed(bench.executor, case, small).keys()):
        if not isinstance(right[what], Close) and np.size(right[what]):
            monkeypatch.setattr(tuned, "_right", {})
            monkeypatch.setattr(tuned, "expected", lambda case, small, what=what: {**right, what: off(right[what])})
            reply = bench.verify(case, None)
            assert reply.status == "wrong"
            assert f"{what} of {words}: 1 of" in reply.note and "differ" in reply.note


def off(values):
    """The values, the last of them changed by as little as possible."""
    changed = np.array(values)
    last = np.flatnonzero(np.isfinite(changed))[-1]
    if changed.dtype.kind == "f":
        changed.flat[last] = np.nextafter(changed.flat[last], changed.dtype.type(np.inf))
    else:
        changed.flat[last] ^= 1
    return changed


@pytest.mark.parametrize("name", [name for name in SMALL if spec(name).tunables])
def test_cases_are_asked_for_as_the_engines_ask(benches, one_device, name):
    """What is tuned is found again: a case like a question makes the engine ask that question."""
    bench = benches(one_device)
    specialisation, sizes, _ = SMALL[name]
    reply = bench.describe(problem(name).like(specialisation, sizes, bench.executor.info), None)
    assert reply.status == "ok", reply.note
    first = reply.asked[0]
    assert {n: first.specialisation.get(n) for n in specialisation} == specialisation
    assert dict(first.sizes) == sizes


class Timed:
    """An executor whose launches take a picosecond per work-item."""

    def __init__(self, executor):
        self._executor = executor

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def launch(self, kernel, global_size, local_size, /, **arguments):
        event = self._executor.launch(kernel, global_size, local_size, **arguments)
        return SimpleNamespace(seconds=1e-12 * math.prod(global_size), wait=event.wait)


def test_a_figure_is_the_time_of_the_kernels_own_launches(one_device, monkeypatch):
    monkeypatch.setattr(measure, "_RUNS_MOST", 1)
    executor = open_device(one_device)
    bench = Bench(Timed(executor))
    case = problem("knn").like({"dims": (3,), "tau": 1, "dtype": "float32"}, {"rows": 200, "library": 200},
                                executor.info)  # fmt: skip
    recorder = Recorder(bench.executor)
    with chosen("knn", None), problem("knn").open(recorder, case) as go:
        go()
    own, everything = problem("knn").timed(), {name for name, _ in recorder.events}
    assert set(own) < everything, "other kernels were launched too"
    assert 0 < recorder.seconds(own) < recorder.seconds(everything)
    assert bench.sample(case, None).seconds == pytest.approx([recorder.seconds(own)])


def test_a_configuration_that_does_not_compile_is_told_with_the_reason(benches, one_device):
    bench = benches(one_device)
    specialisation, sizes, _ = SMALL["knn"]
    case = problem("knn").like(specialisation, sizes, bench.executor.info)
    (reply,) = bench.prepare(case, [{**spec("knn").defaults("cpu"), "lanes": 8, "tile": 256}])
    assert reply.status == "failed"
    assert "tile" in reply.note


def test_answers_are_compared():
    a = {"rows": np.array([1, 2]), "weights": np.array([0.5, np.nan], np.float32)}
    require_same(a, {**a}, (0.0, 0.0))
    require_same(a, {**a, "weights": np.array([0.5 + 1e-7, np.nan], np.float32)}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match=r"rows: 1 of 2.*\[1\]"):
        require_same(a, {**a, "rows": np.array([1, 3])}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match="weights"):
        require_same(a, {**a, "weights": np.array([0.5, 0.5], np.float32)}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match="holds"):
        require_same({}, a, (0.0, 0.0))
    with pytest.raises(WrongAnswerError, match="shape"):
        require("x", np.zeros(2), np.zeros(3))
    with pytest.raises(WrongAnswerError, match="1 of 1"):
        require("x", np.float64(1.1), Close(np.float64(1.0), 1e-3))
    require("x", np.array([1.1, 5.0]), Close(np.array([1.0, 5.0]), 0.0, np.array([0.2, 0.0])))


# The command


def test_the_command_tunes_and_the_result_is_used(one_device, own_database):
    # There are few combinations: it ends long before the budget does, however busy the machine is.
    done = shell("tune", "predict", "--mode", "rapid", "--budget", "10m", "--device", one_device, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (case,) = told["cases"]
    assert case["kernel"] == "predict"
    assert case["seconds"] > 0
    info = open_device(one_device).info
    assert sum(case["counts"].values()) == Space(tuned_spec("predict"), info, {"dtype": "float32"}).count()
    if not case["kept"]:
        assert case["seconds"] == case["default_seconds"]
    assert own_database.trials(kernel="predict")
    with source.mode("cached"):
        choice = source.parameters(spec("predict"), {"dtype": "float32"}, info)
    assert choice.parameters == case["parameters"]
    if case["kept"]:
        assert choice.grade == "exact"


def test_explain_shows_the_space_and_runs_nothing(one_device, own_database):
    done = inside("tune", "knn", "--explain", "--device", one_device)
    assert done.returncode == 0, done.stderr
    for tunable in spec("knn").tunables:
        assert tunable.name in done.stdout
        assert tunable.why in done.stdout
    for constraint in tuned_spec("knn").constraints:  # also what only a tuner must not try
        assert constraint.reason in done.stdout
    assert len(tuned_spec("knn").constraints) > len(spec("knn").constraints)
    assert "a tile has at most" in done.stdout
    assert "a tile has at most" not in inside("tune", "pruned", "--explain", "--device", one_device).stdout
    assert not own_database.path.exists()


@pytest.mark.parametrize(("words", "said"), [
    (["knn", "--budget", "soon"], "--budget soon"), (["teapot"], "teapot"), (["--strategy", "luck"], "luck"),
    (["--mode", "thorough"], "thorough"),
])  # fmt: skip
def test_wrong_usage_is_told(words, said):
    done = inside("tune", *words)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


# Within a job


def test_force_tunes_in_the_process_and_changes_no_answer(one_device, own_database, monkeypatch):
    monkeypatch.setattr("pyedmcl.tuning.within._FORCE_SECONDS", 1.5)
    # So little time may not suffice to try what is shipped, and then nothing would be decided.
    monkeypatch.setattr(wisdom, "shipped", lambda runtime: ())
    x = np.random.default_rng(3).standard_normal(300).astype(np.float32)
    plain = pyedmcl.knn(x, E=2, device=one_device, tune="never")
    forced = pyedmcl.knn(x, E=2, device=one_device, tune="force")
    np.testing.assert_array_equal(forced.indices, plain.indices)
    np.testing.assert_array_equal(forced.distances, plain.distances)
    trials = own_database.trials(kernel="knn")
    assert any(t.final for t in trials)
    assert {t.status for t in trials} <= {"ok", "slow", "failed"}
    before = len(trials)
    pyedmcl.knn(x, E=2, device=one_device, tune="force")
    assert len(own_database.trials(kernel="knn")) == before, "once in a process"
    assert not math.isnan(forced.distances[-1, 0])


def test_recurrence_takes_tuned_parameters_and_names_them(one_device, own_database):
    x = np.sin(np.arange(600) * 0.3) + 0.1 * np.random.default_rng(1).standard_normal(600)
    given = {"m": 3, "tau": 2, "radius": 0.5, "device": one_device}
    plain = pyedmcl.rqa(x, tune="never", **given)
    asked = plain.provenance["tuning"]
    assert {"recurrence_bits", "recurrence_transpose", "recurrence_lines"} <= set(asked)
    assert {one["grade"] for some in asked.values() for one in some} == {"default"}
    info = open_device(one_device).info
    case = problem("recurrence_lines").cases("rapid", info)[0]
    other = {**spec("recurrence_lines").defaults("cpu"), "bins": 512}
    record_best(own_database, "recurrence_lines", {}, {}, info, other, case)
    tuned = pyedmcl.rqa(x, **given)
    assert tuned.counts == plain.counts
    assert tuned.provenance["tuning"]["recurrence_lines"] == [{"grade": "exact", "parameters": other}]
    with pytest.raises(InputError, match="tune"):
        pyedmcl.rqa(x, tune="sometimes", **given)


def record_best(database, name, specialisation, sizes, info, parameters, case):
    """As a tuning that has come to its end leaves it."""
    key = tuning_key(spec(name), specialisation, info, sizes)
    trial = database.start(key, parameters, session="test", case=case.text(), final=True)
    database.finish(trial, status="ok", seconds=[0.001])
