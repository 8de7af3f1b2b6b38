"""``pyedmcl embedding-scan``: the numbers of Python, and refusals that say what to do."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.simulate import coupled_maps

VALUES = coupled_maps(n_series=3, n_steps=200).values[:, :2].astype(np.float64)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "maps.csv"
    np.savetxt(path, VALUES, delimiter=",", header="a,b", comments="", fmt="%.17g")
    return path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_numbers_are_those_of_python(table, tmp_path, one_device):
    out = tmp_path / "scan.csv"
    line = ("embedding-scan", table, "--E", "1:3", "--tau", "1,2", "--Tp", "1,3", "--device", one_device)
    done = run(*line, "--information", "binned", "--false-neighbors", "-o", out, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    scan = pyedmcl.embedding_scan(VALUES, E=range(1, 4), tau=[1, 2], Tp=[1, 3], device=one_device)
    np.testing.assert_array_equal(answer["rho"], scan.rho)
    assert [(row["series"], row["Tp"]) for row in answer["best"]] == [("a", 1), ("a", 3), ("b", 1), ("b", 3)]
    assert [row["E"] for row in answer["best"][2:]] == scan.best()[1]["E"]
    least = pyedmcl.mutual_information(VALUES, device=one_device).first_minimum()
    assert answer["best"][2]["first_minimum"] == least[1]
    tau = scan.best()[1]["tau"][0]
    share = pyedmcl.false_neighbors(VALUES, E_max=3, tau=tau, device=one_device)
    assert answer["best"][2]["unfolded"] == share.dimension()[1]
    written = list(csv.DictReader(out.read_text().splitlines()))
    np.testing.assert_array_equal([float(row["rho"]) for row in written], scan.rho.ravel())
    assert written[-1]["series"] == "b" and written[-1]["Tp"] == "3"


def test_one_series_is_shown(table, one_device):
    done = run("embedding-scan", table, "--columns", "a", "--E", "2", "--tau", "1", "--device", one_device)
    assert done.exit_code == 0 and "rho" in done.stdout


@pytest.mark.parametrize("wrong", [("--E", "x"), ("--E", "3:1"), ("--tau", "1:2:3"), ("--Tp", "")])
def test_wrong_values_are_refused(table, wrong):
    done = run("embedding-scan", table, *wrong)
    assert done.exit_code == 2 and "a range such as 1:10" in " ".join(done.output.split())
