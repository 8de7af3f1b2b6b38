"""Tuning in the course of a call, which changes no answer, and a call that takes what was tuned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tuning_helpers import of_kernel

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import InputError
from pyedmcl.kernels import spec
from pyedmcl.tuner.problems import problem
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.records import tuning_key


def test_force_tunes_in_the_process_and_changes_no_answer(one_device, own_database, monkeypatch):
    monkeypatch.setattr("pyedmcl.tuning.parameters._FORCE_SECONDS", 1.5)
    # So little time may not suffice to try what is shipped, and then nothing would be decided.
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: ())
    x = np.random.default_rng(3).standard_normal(300).astype(np.float32)
    plain = pyedmcl.knn(x, E=2, device=one_device, tune="never")
    forced = pyedmcl.knn(x, E=2, device=one_device, tune="force")
    np.testing.assert_array_equal(forced.indices, plain.indices)
    np.testing.assert_array_equal(forced.distances, plain.distances)
    trials = of_kernel(own_database, "knn")
    assert any(t.final for t in trials)
    assert {t.status for t in trials} <= {"ok", "slow", "failed"}
    before = len(trials)
    pyedmcl.knn(x, E=2, device=one_device, tune="force")
    assert len(of_kernel(own_database, "knn")) == before, "once in a process"
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
