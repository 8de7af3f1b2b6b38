"""``pyedmcl xmap-grid``: the maps of Python, what is chosen from them as a table, and a refusal before the work."""

from __future__ import annotations

import json

import naive
import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app

N, LENGTH = 5, 150
DATA = naive.noisy_maps(N, LENGTH, 11)


def test_the_command(one_device, tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "grid"
    np.savetxt(path, DATA, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
    line = ["xmap-grid", path, "-o", out, "--E", "1:3", "--device", one_device, "--table", tmp_path / "flow.json"]
    done = CliRunner().invoke(app, [str(word) for word in [*line, "--json"]])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["axes"] == {"E": [1, 2, 3]}
    flow = pyedmcl.xmap_grid(DATA, E=[1, 2, 3], device=one_device).saturation(0.02)
    rows = json.loads((tmp_path / "flow.json").read_text())
    between = flow.rho[~np.eye(5, dtype=bool)]  # no pair of a series with itself
    np.testing.assert_array_equal([row["rho"] for row in rows], between.astype(float))
    np.testing.assert_array_equal(np.asarray(pyedmcl.open_xmap_grid(out).saturation().rho), flow.rho)


@pytest.mark.parametrize("tolerance", ["-1", "nan"])
def test_the_command_refuses_a_tolerance_before_the_work(tmp_path, tolerance):
    path, out = tmp_path / "data.csv", tmp_path / "grid"
    np.savetxt(path, DATA, delimiter=",")
    line = ["xmap-grid", path, "-o", out, "--E", "1:2", "--table", tmp_path / "flow.csv", "--saturation", tolerance]
    done = CliRunner().invoke(app, [str(word) for word in line])
    assert done.exit_code == 3 and f"--saturation {tolerance}" in done.output, done.output
    assert not out.exists()
