"""What was found with another driver or on a relative of the device is verified once before it is used; shipped too."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from device_helpers import NVIDIA
from tuning_helpers import key, run

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.kernels import spec
from pyedmcl.tuner.measure import Bench, Reply
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import ParameterChoice, source
from pyedmcl.tuning.records import Entry

pytestmark = pytest.mark.usefixtures("data_dir")
OLDER = replace(NVIDIA, driver="0.9")
SIBLING = replace(NVIDIA, name="NVIDIA H100")


def ask(**sizes):
    with source.mode():
        return source.parameters(spec("predict"), {"dtype": "float32"}, NVIDIA, sizes)


@pytest.fixture
def asked():
    """What was asked of a verifier, and (in ``answer``) what it answers."""

    class Asked(list):
        answer = ("ok", "")

    calls = Asked()

    def verifier(kernel, specialisation, info, sizes, parameters):
        calls.append(dict(parameters))
        if isinstance(calls.answer, BaseException):
            raise calls.answer
        return calls.answer

    source.verifier = verifier
    return calls


@pytest.mark.parametrize(("info", "grade"), [(OLDER, "other driver"), (SIBLING, "same architecture")])
def test_it_is_verified_once_for_all_processes_and_sizes(asked, info, grade):
    run(Database(), key(info=info, rows=1000), {"wg": 128})
    for _ in range(2):
        assert ask(rows=1000) == ParameterChoice({"wg": 128}, grade)
        assert ask(rows=4000).parameters == {"wg": 128}
        source.forget()  # as another process would begin
    assert asked == [{"wg": 128}]
    assert [trial.session for trial in Database().trials()] == ["s"], "a check that ends well leaves no trial"


def ship(monkeypatch, *entries):
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: entries)
    source.forget()


def test_what_was_found_with_this_driver_is_taken_as_it_is_shipped_or_not(asked, monkeypatch):
    run(Database(), key(rows=1000), {"wg": 128})
    assert ask(rows=1000).grade == "exact" and ask(rows=4000).grade == "other size"
    ship(monkeypatch, Entry(key(rows=1), {"wg": 32}))
    assert ask(rows=1) == ParameterChoice({"wg": 32}, "shipped") and not asked


def test_what_was_shipped_for_another_driver_is_verified_once(asked, monkeypatch):
    for _ in range(2):
        ship(monkeypatch, Entry(key(info=OLDER, rows=1), {"wg": 128}))
        assert ask(rows=1) == ParameterChoice({"wg": 128}, "shipped")
    assert asked == [{"wg": 128}]
    asked.answer = ("wrong", "3 of 7 values differ")
    ship(monkeypatch, Entry(key(info=OLDER, rows=1), {"wg": 16}))
    assert ask(rows=1).grade == "default"


@pytest.mark.parametrize("status", ["wrong", "failed"])
def test_what_is_wrong_here_is_barred_and_the_next_best_is_used(asked, status):
    asked.answer = (status, "3 of 7 values differ")
    run(Database(), key(info=OLDER, rows=1000), {"wg": 128})
    for _ in range(2):
        assert ask(rows=1000) == ParameterChoice({"wg": 32}, "default")
        source.forget()
    assert asked == [{"wg": 128}]
    (barred,) = Database().trials(status=status)
    assert barred.key.device.driver == NVIDIA.driver and barred.note == "3 of 7 values differ"


@pytest.mark.parametrize("answer", [("stopped", "no memory"), OSError("the device is gone")])
def test_where_nothing_can_be_said_it_is_not_used_and_asked_again_by_the_next_process(asked, answer, caplog):
    caplog.set_level(logging.INFO, logger="pyedmcl")
    asked.answer = answer
    run(Database(), key(info=OLDER, rows=1000), {"wg": 128})
    for _ in range(3):
        assert ask(rows=1000).grade == "default"
    assert len(Database().trials()) == 1 and "could not be verified" in caplog.text
    first = len(asked)
    source.forget()
    asked.answer = ("ok", "")
    assert ask(rows=1000).grade == "other driver" and len(asked) == first + 1


def test_a_check_that_takes_its_process_with_it_bars(asked):
    asked.answer = KeyboardInterrupt()
    run(Database(), key(info=OLDER, rows=1000), {"wg": 128})
    began = []
    finish = Database.forget
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "forget", lambda self, number: began.append(self.trials()) or finish(self, number))
        with pytest.raises(KeyboardInterrupt):
            ask(rows=1000)
    assert [trial.status for trial in began[0]] == ["ok", "started"], "whoever ended here would have left it so"
    assert len(Database().trials()) == 1, "Ctrl-C is no fault of the configuration"


# --- on a device -----------------------------------------------------------------------------------------------------


def test_on_a_device_the_oracle_decides(one_device, monkeypatch):
    source.verifier = None
    info = open_device(one_device).info
    x = np.random.default_rng(5).normal(size=120).cumsum()
    plain = pyedmcl.simplex(x, E=2, device=one_device, tune="never")
    with source.watching() as questions:
        pyedmcl.simplex(x, E=2, device=one_device)
    older = replace(info, driver="0.1")
    for question in questions.values():
        changed = {**question.choice.parameters, **({"wg": 1} if question.spec.name == "predict" else {"hot": 128})}
        at = key(question.spec.name, question.specialisation, older, **question.sizes)
        run(Database(), at, changed)
    source.forget()
    found = pyedmcl.simplex(x, E=2, device=one_device)
    tuning = found.provenance["tuning"]
    assert {entry["grade"] for entries in tuning.values() for entry in entries} == {"other driver"}
    np.testing.assert_array_equal(found.predicted, plain.predicted)

    with Database().file._attempt(writing=True) as connection:
        connection.execute("DELETE FROM checks")
    source.forget()
    monkeypatch.setattr(Bench, "verify", lambda self, case, parameters: Reply("wrong", note="other bits"))
    again = pyedmcl.simplex(x, E=2, device=one_device)
    assert {entry["grade"] for entries in again.provenance["tuning"].values() for entry in entries} == {"default"}
    assert len(Database().trials(status="wrong")) == 2
