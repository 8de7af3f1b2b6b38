"""The tuner at work: processes that crash, hang and are killed, and what is planned."""

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

import pytest
from cli_helpers import environment
from device_helpers import INTEL
from process_helpers import LIMIT, end_of, wait_until
from search_worker import DEFAULTS, seconds_of

from pyedmcl.errors import InputError
from pyedmcl.tuner import campaign, measure
from pyedmcl.tuner.measure import Settings
from pyedmcl.tuning.records import canonical

HERE = Path(__file__).parents[1]
WORKER = str(HERE / "search_worker.py")
BEST = {"lanes": 8, "wg": 64}
SECOND = {"lanes": 4, "wg": 64}
# Everything is tried, however long it takes: a busy machine must not change what is found.
ENDLESS = campaign.Mode(math.inf, Settings("exhaustive", rounds=2, duel=3, batch=4), 120.0, 120.0)


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
    monkeypatch.setattr(measure, "time", Clock(hanging))
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
from pyedmcl.tuner.measure import Settings

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
                          capture_output=True, text=True, timeout=LIMIT)  # fmt: skip
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
import pickle, subprocess, sys, time

worker = subprocess.Popen([sys.executable, "-m", "pyedmcl.tuner.worker", "77:0", sys.argv[1]],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
worker.stdin.write(pickle.dumps({"do": "describe", "case": None, "parameters": None, "seconds": 600}))
worker.stdin.flush()
pickle.load(worker.stdout)
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
    wait_until(lambda: not folder.exists(), None, "the end of the worker, which deletes the folder")


TORN = """import pickle, sys
from pyedmcl.tuner.measure import Reply
sys.stdout.buffer.write(pickle.dumps(Reply("ok"))[:-9])
sys.exit(3)"""


def test_a_process_that_ends_within_an_answer_has_failed():
    worker = measure._Worker([sys.executable, "-c", TORN])
    reply = worker.reply(20.0)
    worker.end(kill=True)
    assert reply.status == "failed" and "ended with code 3" in reply.note


def test_two_tuners_at_once_share_the_database(own_database, tmp_path):
    script = tmp_path / "tuner.py"
    script.write_text(KILLED)
    env = environment(PYTHONPATH=f"{HERE}:{HERE.parent}")
    both = [subprocess.Popen([sys.executable, str(script), *command()], env=env, stdout=subprocess.PIPE, text=True)
            for _ in range(2)]  # fmt: skip
    said = [end_of(process)[0].strip() for process in both]
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
