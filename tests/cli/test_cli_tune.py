"""``pyedmcl tune``: it tunes and the result is used, explains, and refuses."""

from __future__ import annotations

import json

import pytest
from cli_helpers import inside, shell
from tuning_helpers import of_kernel

from pyedmcl.device.select import open_device
from pyedmcl.kernels import spec
from pyedmcl.tuner.problems import tuned_spec
from pyedmcl.tuner.search import Space
from pyedmcl.tuning.parameters import source

pytestmark = pytest.mark.usefixtures("own_database")


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
    assert of_kernel(own_database, "predict")
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
    (["knn", "--budget", "soon"], "--budget soon"), (["teapot"], "teapot"), (["--mode", "thorough"], "thorough"),
])  # fmt: skip
def test_wrong_usage_is_told(words, said):
    done = inside("tune", *words)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
