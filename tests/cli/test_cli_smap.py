"""The commands smap and predict-nonlinear: results as from Python, files, and wrong usage."""

from __future__ import annotations

import csv
import json

import naive
import numpy as np
import pytest
from cli_helpers import inside

import pyedmcl

X = naive.noisy_maps(2, 160, 7).astype(np.float64)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("smap") / "maps.csv"
    lines = ["year,a,b", *(f"{1900 + t},{a!r},{b!r}" for t, (a, b) in enumerate(X.tolist()))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_smap(table, tmp_path, one_device):
    out = tmp_path / "predictions.csv"
    done = inside("smap", table, "--column", "a", "--target", "b", "--E", 2, "--theta", "0,2", "--lib", "0:80,90:150",
                  "--pred", "100:160", "-o", out, "--json", "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.smap(X[:, 0], target=X[:, 1], E=2, theta=[0, 2], lib_range=[(0, 80), (90, 150)],
                            pred_range=(100, 160), device=one_device)  # fmt: skip
    document = json.loads(done.stdout)
    assert [one["rho"] for one in document["skill"]] == pytest.approx(expected.rho.tolist(), abs=1e-9)
    assert document["target"] == "b"
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["theta", "time", "observed", "predicted", "variance", "C0", "d/da(t-0)", "d/da(t-1)"]
    np.testing.assert_allclose([float(r["predicted"]) for r in rows], expected.predicted.ravel(), atol=1e-9)
    np.testing.assert_allclose([float(r["d/da(t-1)"]) for r in rows], expected.coefficients[..., 2].ravel(), atol=1e-9)
    assert rows[0]["time"] == "2001"


def test_generate(table, tmp_path, one_device):
    out = tmp_path / "more.json"
    done = inside("smap", table, "--column", "a", "--E", 2, "--theta", 3, "--generate", 4, "-o", out,
                  "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4 steps generated after row 159" in done.stdout
    expected = pyedmcl.smap(X[:, 0], E=2, theta=3, generate_steps=4, device=one_device)
    np.testing.assert_allclose([row["predicted"] for row in json.loads(out.read_text())], expected.predicted, atol=1e-9)


def test_predict_nonlinear(table, one_device):
    done = inside("predict-nonlinear", table, "--column", "a", "--E", 2, "--json", "--device", one_device)
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.predict_nonlinear(X[:, 0], E=2, device=one_device)
    document = json.loads(done.stdout)
    assert document["best"] == expected.best
    assert [row["rho"] for row in document["skill"]] == pytest.approx(expected.rho.tolist(), abs=1e-9)
    plain = inside("predict-nonlinear", table, "--column", "a", "--E", 2, "--theta", "0,5", "--device", one_device)
    assert plain.returncode == 0, plain.stderr
    assert "best theta" in plain.stdout
    assert plain.stdout.splitlines()[0].split() == ["theta", "rho", "mae", "rmse"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["smap", "--E", 2], 2, "--column"),
        (["smap", "--column", "a"], 3, "--E: the number of lagged values"),
        (["smap", "--column", "a", "--E", 2, "--theta", "x"], 2, "--theta"),
        (["smap", "--column", "a", "--E", 2, "--lib", "5"], 2, "--lib"),
        (["smap", "--column", "a", "--E", 2, "--theta", "-1"], 3, "--theta -1"),
        (["smap", "--column", "a", "--E", 2, "--pred", "0:500"], 3, "--pred"),
        (["predict-nonlinear", "--column", "c", "--E", 2], 3, "'c'"),
    ],
)
def test_wrong_usage_is_told(table, words, code, told):
    done = inside(words[0], table, *words[1:])
    assert done.returncode == code, done.stderr
    assert told in done.stderr
