"""``--windows``: the commands write the numbers of Python, a row for each window."""

from __future__ import annotations

import numpy as np
import pandas
from cli_helpers import inside
from typer.testing import CliRunner
from window_helpers import TABLE, X, Y

import pyedmcl
from pyedmcl.cli.app import app


def test_commands_write_a_row_for_each_window(tmp_path, one_device):
    table, out = tmp_path / "t.csv", tmp_path / "w.csv"
    pandas.DataFrame({"x": X, "y": Y}).to_csv(table, index=False)
    common = ["--E", "2", "--windows", "100,50", "--device", one_device, "-o", str(out)]
    assert CliRunner().invoke(app, ["simplex", str(table), "--column", "x", *common]).exit_code == 0
    expected = pyedmcl.simplex(X, E=2, windows=(100, 50), device=one_device).to_frame()
    np.testing.assert_allclose(pandas.read_csv(out)[["start", "time", "rho"]], expected[["start", "time", "rho"]])
    sampled = ["--x", "x", "--y", "y", "--lib-sizes", "20,60", "--sample", "3", "--seed", "1"]
    assert CliRunner().invoke(app, ["ccm", str(table), *sampled, *common]).exit_code == 0
    expected = pyedmcl.ccm(X, Y, E=2, lib_sizes=[20, 60], sample=3, seed=1, windows=(100, 50), device=one_device)
    np.testing.assert_allclose(pandas.read_csv(out)["mean"], expected.mean.ravel())
    held = pandas.read_csv(out)
    assert held.columns.tolist()[:5] == ["start", "end", "time", "cause", "effect"]
    assert set(held["end"]) == {100, 150, 200}
    line = ["ccm-matrix", str(table), "--lib-sizes", "20,60", "--sample", "3", "--seed", "1", *common]
    assert CliRunner().invoke(app, line).exit_code == 0
    expected = pyedmcl.ccm_matrix(
        {"x": X, "y": Y}, E=2, lib_sizes=[20, 60], sample=3, seed=1, windows=(100, 50), device=one_device
    ).to_frame()
    held = pandas.read_csv(out)
    assert held.columns.tolist() == expected.columns.tolist() and held["effect"].tolist() == expected["effect"].tolist()
    np.testing.assert_allclose(held["rho"], expected["rho"], rtol=1e-6)
    assert CliRunner().invoke(app, [*line, "--network", str(tmp_path / "n.png")]).exit_code == 2
    assert CliRunner().invoke(app, ["simplex", str(table), "--E", "2", "--windows", "100"]).exit_code == 2


def test_the_command_of_maps_writes_a_row_for_each_window_and_pair(tmp_path, one_device):
    table, out = tmp_path / "t.csv", tmp_path / "w.csv"
    pandas.DataFrame(TABLE, columns=["x", "y", "z"]).to_csv(table, index=False)
    line = ["xmap", table, "--E", 2, "--windows", "100,50", "--skill", "rmse", "--edges", 2, "--device", one_device]
    done = inside(*line, "-o", out)
    expected = pyedmcl.xmap(TABLE, E=2, windows=(100, 50), skill="rmse", device=one_device).to_frame()
    held = pandas.read_csv(out)
    assert done.returncode == 0 and held.columns.tolist() == expected.columns.tolist() and len(held) == 3 * 6
    np.testing.assert_allclose(held["rho"], expected["rho"])
    one = held[(held["start"] == 50) & (held["cause"] == "y") & (held["effect"] == "x")]
    assert one[["end", "library", "target"]].values.tolist() == [[150, "x", "y"]]
    assert "3 windows of 100 rows" in done.stderr + done.stdout
    for wrong, told in ((["-o", tmp_path / "w.zarr"], ".csv"), (["-o", out, "--keep", "top:1"], "--keep")):
        refused = inside(*line, *wrong)
        assert refused.returncode != 0 and told in refused.stderr
    done = inside("xmap", table, "--E", 2, "--skill", "mae", "--device", one_device, "-o", tmp_path / "m.zarr")
    assert done.returncode == 0 and pyedmcl.open_xmap(tmp_path / "m.zarr").skill == "mae"


def test_the_command_of_tests_writes_a_row_for_each_window_and_pair(tmp_path, one_device):
    table, out = tmp_path / "t.csv", tmp_path / "w.csv"
    pandas.DataFrame(TABLE, columns=["x", "y", "z"]).to_csv(table, index=False)
    line = ["surrogate-test", table, "--E", 2, "--windows", "100,50", "--n", 19, "--seed", 1, "--device", one_device]
    done = inside(*line, "-o", out)
    expected = pyedmcl.xmap_significance(TABLE, E=2, windows=(100, 50), n=19, seed=1, device=one_device).to_frame()
    held = pandas.read_csv(out)
    assert done.returncode == 0 and held.columns.tolist() == expected.columns.tolist() and len(held) == 3 * 6
    np.testing.assert_allclose(held["q_value"], expected["q_value"])
    assert f"{(expected['q_value'] <= 0.05).sum()} of 18 directions of windows" in done.stdout + done.stderr
    refused = inside(*line, "--x", "x", "--y", "y")
    assert refused.returncode == 2 and "--windows: all pairs are tested" in " ".join(refused.stderr.split())
