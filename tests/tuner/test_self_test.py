"""The self-test of a device: what passes, what fails, what there was no time for, and the report of it."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.device.select import open_device
from pyedmcl.errors import LaunchError, MissingExtraError
from pyedmcl.tuner import campaign as tested
from pyedmcl.tuner.problems import names, problem


@pytest.fixture
def short(monkeypatch):
    """Two quick kernels and a quick call."""
    monkeypatch.setattr(tested, "names", lambda: ("skill", "predict"))
    monkeypatch.setattr(tested, "CALLS", {"simplex": tested.CALLS["simplex, 1 x 200"]})


def ended(outcomes):
    return [(outcome.name, outcome.ended) for outcome in outcomes]


def test_kernels_and_calls_pass(short, device):
    executor = open_device(device)
    clock = itertools.chain([0.0] * 4, itertools.repeat(99.0)).__next__  # the last part has no time
    outcomes = list(tested.self_test(executor, 10.0, clock))
    assert ended(outcomes) == [("skill", "passed"), ("predict", "passed"), ("simplex", "passed")]
    assert all(outcome.seconds > 0 for outcome in outcomes)
    text = tested.report(executor, outcomes, [])
    for part in ("3 passed, 0 failed, 0 skipped", executor.info.name, executor.info.driver, "| kernel | skill |"):
        assert part in text


def test_more_cases_follow_while_there_is_time(short, one_device):
    clock = itertools.chain([0.0] * 6, itertools.repeat(99.0)).__next__
    outcomes = list(tested.self_test(open_device(one_device), 10.0, clock))
    assert len(outcomes) == 4 and outcomes[3].case != outcomes[0].case and outcomes[3].ended == "passed"


def test_what_there_is_no_time_for_is_told(short, one_device):
    clock = itertools.chain([0.0] * 2, itertools.repeat(99.0)).__next__
    outcomes = list(tested.self_test(open_device(one_device), 10.0, clock))
    assert ended(outcomes) == [("skill", "passed"), ("predict", "skipped"), ("simplex", "skipped")]
    assert outcomes[1].said == "the time was over"
    text = tested.report(open_device(one_device), outcomes, [])
    assert "1 passed, 0 failed, 2 skipped; 2 had no time, which a larger --seconds gives them." in text
    assert "the time was over" not in text  # once for each step would hide what else there is to read


def test_failures_go_into_the_report(short, one_device, monkeypatch):
    def wrong(executor, case):
        raise LaunchError("the driver has said no")

    monkeypatch.setattr(problem("skill"), "verify", wrong)
    numbers = itertools.count()
    monkeypatch.setattr(tested, "CALLS", {
        "drifting": lambda device: np.array([next(numbers)]),
        "optional": lambda device: (_ for _ in ()).throw(MissingExtraError("needs the package 'loopy'")),
    })  # fmt: skip
    executor = open_device(one_device)
    clock = itertools.chain([0.0] * 5, itertools.repeat(99.0)).__next__
    outcomes = list(tested.self_test(executor, 10.0, clock))
    assert ended(outcomes) == [
        ("skill", "failed"), ("predict", "passed"), ("drifting", "failed"), ("optional", "skipped")
    ]  # fmt: skip
    text = tested.report(executor, outcomes, [])
    assert "LaunchError: the driver has said no" in text and "other bits than the first" in text
    assert "1 passed, 2 failed, 1 skipped" in text


def test_every_kernel_has_a_first_case(one_device):
    executor = open_device(one_device)
    never = itertools.chain([0.0], itertools.repeat(99.0)).__next__
    outcomes = list(tested.self_test(executor, 10.0, never))
    assert [outcome.name for outcome in outcomes] == [*names(), *tested.CALLS]


@pytest.mark.parametrize("fails", [False, True])
def test_the_command_writes_its_report(short, one_device, monkeypatch, tmp_path, fails):
    kept = tested.Outcome("kernel", "knn", "E=3", "failed" if fails else "passed", 0.5, "why" if fails else "")
    monkeypatch.setattr(tested, "self_test", lambda executor, seconds: iter([kept]))
    path = tmp_path / "report.md"
    done = CliRunner().invoke(app, ["doctor", "--self-test", "--device", one_device, "-o", str(path), "--json"])
    assert done.exit_code == (6 if fails else 0)
    assert json.loads(done.stdout)["steps"][0]["ended"] == kept.ended
    assert "| kernel | knn | E=3 |" in path.read_text() and ("why" in path.read_text()) == fails


def test_the_command_without_a_test_says_what_is_missing():
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["doctor"]
    assert CliRunner().invoke(app, ["doctor", "--seconds", "inf"]).exit_code == 3
