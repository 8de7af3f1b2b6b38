"""``--plot`` of the commands: the picture is there; what cannot be written is refused before anything is computed."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from series_helpers import driven
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

PNG = b"\x89PNG"
COMMANDS = {
    "simplex": ["--column", "a", "--E", 2],
    "embed-dimension": ["--E-max", 2],
    "smap": ["--column", "a", "--E", 2, "--theta", "0,1"],
    "predict-nonlinear": ["--column", "a", "--E", 2, "--theta", "0,1"],
    "predict-interval": ["--column", "a", "--E", 2, "--Tp", "1:2"],
    "multiview": ["--target", "a", "--E", 2],
    "ccm": ["--x", "a", "--y", "b", "--E", 2, "--lib-sizes", "20,60", "--sample", 2],
    "surrogate-test": ["--x", "a", "--y", "b", "--E", 2, "--n", 9],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "series.csv"
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["a", "b"])
        writer.writerows(np.column_stack(driven(90)).tolist())
    return path


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.mark.parametrize("name", list(COMMANDS))
def test_picture_and_whole_result(table, tmp_path, one_device, name):
    path, whole = tmp_path / "p.png", tmp_path / "r.edm"
    run(name, table, *COMMANDS[name], "--plot", path, "-o", whole, "--device", one_device, "--quiet")
    assert path.read_bytes().startswith(PNG)
    made = pyedmcl.open_result(whole).provenance["function"]
    assert made == {"surrogate-test": "ccm_significance"}.get(name, name.replace("-", "_"))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_no_place_for_a_picture(table, tmp_path, name):
    """The device does not exist: the path is looked at first."""
    for path, word in ((tmp_path / "p.doc", ".png"), (tmp_path / "none" / "p.png", "no folder")):
        done = run(name, table, *COMMANDS[name], "--plot", path, "--device", "nothing-of-the-kind", code=5)
        assert word in " ".join(done.output.split())


def test_maps_networks_and_coefficients(table, tmp_path, one_device):
    files = [tmp_path / f"{i}.png" for i in range(7)]
    last = ["--device", one_device, "--quiet"]
    run("ccm-matrix", table, "-o", tmp_path / "m", "--E", 2, "--lib-sizes", "20,40,60", "--sample", 2, "--plot",
        files[0], "--network", files[1], *last)  # fmt: skip
    run("surrogate-test", table, "--E", 2, "--n", 9, "--plot", files[2], "--network", files[3], *last)
    run("smap", table, "--column", "a", "--E", 2, "--plot-coefficients", files[4], "--generate", 3, "--plot", files[5],
        *last)  # fmt: skip
    run("xmap", table, "-o", tmp_path / "map.zarr", "--E", 2, *last)
    run("plot", tmp_path / "map.zarr", "-o", files[6], "--network", "--top", 1)
    assert all(path.read_bytes().startswith(PNG) for path in files)
    run("surrogate-test", table, "--x", "a", "--y", "b", "--E", 2, "--network", files[0], code=2)


def test_rows_and_target(table, one_device):
    x = np.loadtxt(table, delimiter=",", skiprows=1)
    words = ["--lib", "0:50", "--pred", "50:90", "--device", one_device, "--json"]
    found = json.loads(run("embed-dimension", table, "--columns", "b", "--target", "a", "--E-max", 3, *words).stdout)
    rows = {"lib_range": (0, 50), "pred_range": (50, 90), "device": one_device}
    expected = pyedmcl.embed_dimension(x[:, 1], target=x[:, 0], E_max=3, **rows)
    np.testing.assert_array_equal(found["rho"][0], expected.rho)
    found = json.loads(run("simplex", table, "--column", "b", "--target", "a", "--E", 2, *words).stdout)
    assert found["rho"] == expected.rho[1] and found["n"] == 39


@pytest.mark.parametrize("name", ["simplex", "embed-dimension"])
def test_json_says_what_searched(table, one_device, name):
    words = [name, table, *COMMANDS[name], "--device", one_device, "--json"]
    assert json.loads(run(*words).stdout)["neighbors"] == []
    records = json.loads(run(*words, "--neighbors", "pruned", "--recall", "0.9").stdout)["neighbors"]
    assert records and {(one["asked"], one["used"], one["target"]) for one in records} == {("pruned", "pruned", 0.9)}
