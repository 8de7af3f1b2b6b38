"""Small things a user of the shell meets: words of messages, columns left out, results of every kind, graphs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from cli_helpers import inside
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.simulate import coupled_maps

VALUES = coupled_maps(n_series=4, n_steps=400).values.astype(np.float32)


@pytest.fixture
def run(tmp_path, monkeypatch, one_device):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    frame = pandas.DataFrame(VALUES, columns=list("abcd"))
    frame.insert(0, "date", pandas.date_range("2001-01-01", periods=400, freq="D"))
    frame.assign(notes="ok").to_csv("data.csv", index=False)

    def run(*words, code=0):
        outcome = CliRunner().invoke(app, list(map(str, words)))
        assert outcome.exit_code == code, outcome.output
        return outcome

    return run


def test_messages_name_options(run):
    Path("slip.csv").write_text("a,b,notes\n1,2,ok\n3,4,ok\n5,6,7\n")
    said = run("xmap", "slip.csv", "-o", "map.zarr", code=3).stderr
    assert "'notes' is not numeric" in said
    assert "--exclude 'notes'" in said and "--missing 'ok'" in said and "columns=" not in said
    said = run("simplex", "data.csv", "--column", "a", "--E", 500, code=3).stderr
    assert "--E 500, --tau 1" in said
    noise = np.random.default_rng(5).standard_normal((200, 2))
    pandas.DataFrame(noise, columns=["a", "b"]).to_csv("noise.csv", index=False)
    said = run("surrogate-test", "noise.csv", "--columns", "a,b", "--E", 3, "--surrogate", "seasonal", code=3).stderr
    assert "--period: no cycle was found in any of 2 series" in said and "--period 12 for months" in said


def test_columns_are_left_out_by_name(run):
    left = json.loads(run("embed-dimension", "data.csv", "--exclude", "notes, b", "--E-max", 2, "--json").stdout)
    assert left["names"] == ["a", "c", "d"]
    assert "--exclude and --columns" in run("check", "data.csv", "--exclude", "a", "--columns", "b", code=2).output


def test_commands_say_what_misleads_in_a_table(run):
    """Of pairs a season that they share; each thing once, and not where groups are told apart or --quiet is given."""
    rng = np.random.default_rng(0)
    wave = np.sin(2 * np.pi * np.arange(240) / 12)[:, None] * [2, 1, 0, 0] + 0.4 * rng.standard_normal((240, 4))
    wave[:, 2], wave[:, 3] = np.cumsum(wave[:, 2]), np.round(wave[:, 3])
    pandas.DataFrame(wave, columns=list("abwt")).to_csv("table.csv", index=False)
    words = ["ccm-matrix", "table.csv", "--E", 2, "--sample", 2, "--lib-sizes", "50,100", "-o", "c"]
    said = " ".join(run(*words).stderr.split())
    assert said.count("2 series share a cycle of 12 rows ('a', 'b')") == 1 and "surrogate-test --surrogate auto" in said
    assert "'w': a series without a mean" in said and "'t': a series with few different values" in said
    assert "warning" not in run(*words, "--quiet").stderr
    said = run("rqa", "table.csv", "--column", "t", "--radius", 0.1).stderr
    assert "few different values" in said and "cycle" not in said


def test_some_of_many_series_are_looked_at(run):
    rows = np.arange(90.0)[:, None] / 5 + np.random.default_rng(0).standard_normal((90, 120))
    pandas.DataFrame(rows).to_csv("wide.csv", index=False)
    said = " ".join(run("embed-dimension", "wide.csv", "--E-max", 1).stderr.split())
    assert "more series (120) than rows (90)" in said and "were not looked at" not in said
    assert "100 series with a trend, which others that have one seem to follow (of 100 of the 120 series" in said


def test_the_season_that_was_looked_for_is_told(run):
    wave = np.sin(2 * np.pi * np.arange(400) / 12)
    rest = np.random.default_rng(1).standard_normal((400, 2))
    pandas.DataFrame({"a": 2 * wave + rest[:, 0], "b": rest[:, 1]}).to_csv("season.csv", index=False)
    for words in (("surrogate-test", "season.csv"), ("surrogate-test", "season.csv", "--x", "a", "--y", "b")):
        said = run(*words, "--E", 2, "--n", 9, "--surrogate", "seasonal").stderr
        assert "surrogates of a: keeps the mean cycle of 12 rows, which was found in it" in said
        assert "surrogates of b: keeps the mean cycle of 12 rows, which was found in others, not in it" in said


def test_what_is_made_of_gaps_is_told(run):
    values = VALUES[:, :2].copy()
    values[100] = np.nan, values[100, 1]
    pandas.DataFrame(values, columns=["a", "b"]).to_csv("gap.csv", index=False)
    for words in (("surrogate-test", "gap.csv"), ("surrogate-test", "gap.csv", "--x", "a", "--y", "b")):
        said = run(*words, "--E", 2, "--n", 39).stderr
        assert "surrogates of a: keeps " in said and "bridged by straight lines for the spectrum" in said
        assert "surrogates of b: keeps the spectrum" in said


def test_columns_are_left_out(run):
    answer = json.loads(run("xmap", "data.csv", "-o", "map.zarr", "--columns", "-notes,-d", "--E", 3, "--json").stdout)
    assert answer["names"] == ["a", "b", "c"]


def test_notes_are_left_out_with_a_remark_and_sites_are_asked_for(run):
    said = run("xmap", "data.csv", "-o", "map.zarr", "--E", 2)
    assert "warning: data.csv: column 'notes' holds text and is left out\n" in said.stderr
    assert json.loads(run("check", "data.csv", "--json", "--quiet").stdout)
    frame = pandas.DataFrame(VALUES[:200], columns=list("abcd")).assign(notes="ok")
    frame.insert(0, "site", ["north"] * 100 + ["south"] * 100)
    frame.to_csv("sites.csv", index=False)
    said = run("xmap", "sites.csv", "-o", "sites.zarr", "--E", 2, code=3).stderr
    assert "--groups 'site', or leave it out with --exclude 'site'" in said
    said = run("xmap", "sites.csv", "-o", "sites.zarr", "--E", 2, "--groups", "site").stderr
    assert "column 'notes' holds text and is left out" in said


def test_columns_are_left_out_in_python():
    frame = pandas.DataFrame(VALUES, columns=list("abcd")).assign(notes="ok")
    from pyedmcl.errors import InputError
    from pyedmcl.series.series import as_series

    assert as_series(frame, columns="-notes").names == tuple("abcd")
    assert as_series(frame, columns=["-notes", "-b"]).names == tuple("acd")
    assert as_series({"-b": VALUES[:, 0], "b": VALUES[:, 1]}, columns="-b").names == ("-b",)
    with pytest.raises(InputError, match="no column '-x'"):
        as_series(frame, columns=["-x"])
    assert as_series(frame.replace({"notes": {"ok": "7"}})).n_series == 5  # numbers that are written as text
    with pytest.raises(InputError, match="leave the column out with columns='-notes'"):
        as_series(frame.replace({"notes": {"ok": "7x"}}))


def test_ccm_matrix_says_what_converges_and_its_folder_is_read(run):
    done = run("ccm-matrix", "data.csv", "-o", "ccm", "--columns", "a,b,c,d", "--E", 3, "--lib-sizes", "30,60",
               "--sample", 5, "--seed", 1)  # fmt: skip
    assert "of 12 directions: skill grows steadily with the library (no test of a link)" in done.stdout
    assert "cause (target)" in done.stdout
    run("export", "ccm", "-o", "pairs.csv")
    frame, expected = pandas.read_csv("pairs.csv", float_precision="round_trip"), pyedmcl.open_result("ccm").to_frame()
    assert list(frame.columns) == list(expected.columns) and len(frame) == 12
    np.testing.assert_array_equal(frame["rho"], expected["rho"])
    pytest.importorskip("matplotlib")
    run("plot", "ccm", "-o", "map.png", "--dpi", 60, "--title", "skill")
    run("plot", "ccm", "-o", "net.svg", "--network")


def test_any_saved_result_is_drawn_and_written(run, one_device):
    forecast = pyedmcl.simplex(VALUES[:, 0], E=3, device=one_device)
    forecast.save("forecast.edm")
    run("export", "forecast.edm", "-o", "forecast.csv")
    written = pandas.read_csv("forecast.csv", float_precision="round_trip")
    np.testing.assert_array_equal(written["predicted"], forecast.predicted)
    scan = pyedmcl.embed_dimension(VALUES, E_max=4, device=one_device)
    scan.save("scan.edm")
    run("export", "scan.edm", "-o", "scan.json")
    assert [row["E"] for row in json.loads(Path("scan.json").read_text())] == [1, 2, 3, 4]
    assert "-o FILE is needed" in run("export", "scan.edm", "--edges", code=2).stderr
    pytest.importorskip("matplotlib")
    assert "SimplexResult" in run("plot", "forecast.edm", "-o", "forecast.png").stdout
    assert "has no network" in run("plot", "forecast.edm", "-o", "forecast.png", "--network", code=3).stderr


def test_strongest_pairs_become_a_graph(run):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    run("xmap", "data.csv", "-o", "map.zarr", "--columns", "a,b,c,d", "--E", 3)
    run("export", "map.zarr", "-o", "map.graphml", "--edges", "--top", 3)
    graph = networkx.read_graphml("map.graphml")
    best = pyedmcl.open_xmap("map.zarr").edges(3)
    assert set(graph.edges) == {(edge.target, edge.library) for edge in best}


@pytest.mark.parametrize("words", [
    "ccm --E 2 --x a --y b --sample 3 --lib-sizes 50,100", "simplex --E 2 --column a --target b",
    "smap --E 2 --column a --target b", "predict-nonlinear --column a,b --embedded --target c",
    "rqa --radius 0.1 --column a --against b",
])  # fmt: skip
def test_results_of_some_columns_say_which_file_they_are_of(run, words):
    command, *options = words.split()
    run(command, "data.csv", *options, "-o", "result.edm")
    data = pyedmcl.open_result("result.edm").provenance["data"]
    assert data and {entry["file"] for entry in data.values()} == {"data.csv"}


def test_a_radius_that_is_too_small_is_remarked(run):
    assert "radius is too small" in run("rqa", "data.csv", "--column", "a", "--radius", 1e-9).stderr
    assert "radius is too small" not in run("rqa", "data.csv", "--column", "a", "--radius", 0.1).stderr


def test_dates_go_on_in_files(run):
    run("simplex", "data.csv", "--column", "a", "--E", 3, "-o", "forecast.csv")
    assert pandas.read_csv("forecast.csv")["time"].tolist()[-2:] == ["2002-02-04", "2002-02-05"]


def test_a_frame_that_becomes_one_state_is_told(one_device):
    frame = pandas.DataFrame(VALUES[:, :2], columns=["a", "b"])
    with pytest.warns(RuntimeWarning, match=r"x: its 2 columns \('a', 'b'\) are taken together as one state"):
        pyedmcl.rqa(frame, radius=0.1, device=one_device)
    with pytest.warns(RuntimeWarning, match="lib: its 2 columns"):
        pyedmcl.simplex(frame, target=VALUES[:, 2], E=3, device=one_device)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyedmcl.rqa(frame, radius=0.1, embedded=True, device=one_device)
        pyedmcl.rqa(frame.to_numpy(), radius=0.1, device=one_device)


@pytest.mark.parametrize("kind", ["XmapSignificance", "XmapGrid", "CausalNetwork"])
def test_folders_of_functions_are_drawn_and_exported(run, kind, one_device):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if kind == "XmapSignificance":
        pyedmcl.xmap_significance(VALUES, E=2, n=39, seed=1, out="out", device=one_device)
    elif kind == "XmapGrid":
        pyedmcl.xmap_grid(VALUES, E=[2, 3], out="out", device=one_device)
    else:
        pyedmcl.causal_network(
            VALUES, E=2, out="out", surrogate=None, convergence=False, partial=False, device=one_device
        )
    assert f"picture of a {kind}" in run("plot", "out", "-o", "out.png").output
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    assert f"table of a {kind}" in run("export", "out", "-o", "out.csv").output
    assert len(Path("out.csv").read_text().splitlines()) > 4
    assert type(pyedmcl.open_result("out")).__name__ == kind


def test_a_folder_without_its_result_says_so(run, one_device):
    call = {"E": 2, "n": 39, "seed": 1, "out": "out", "device": one_device}
    first = pyedmcl.xmap_significance(VALUES, **call)
    Path("out/significance.edm").unlink()
    assert "holds parts of a run, and no result" in run("plot", "out", "-o", "out.png", code=3).stderr
    pyedmcl.xmap_significance(VALUES, **call)
    np.testing.assert_array_equal(pyedmcl.open_result("out").q_value, first.q_value)


def test_a_field_keeps_its_places(tmp_path, one_device):
    """In NetCDF as dimensions, in tables as columns, and in the picture as axes."""
    pandas, xarray = (pytest.importorskip(name, reason=f"{name} is not installed") for name in ("pandas", "xarray"))
    for name in ("h5netcdf", "matplotlib"):
        pytest.importorskip(name, reason=f"{name} is not installed; pip install 'pyedmcl[io,plot]' brings it")
    values = coupled_maps(n_series=7, n_steps=120).values
    lat, lon = [-20.0, 20.0], [140.0, 150.0, 160.0]
    field = xarray.DataArray(
        values[:, :6].reshape(-1, 2, 3), dims=("time", "lat", "lon"), coords={"lat": lat, "lon": lon}
    )
    found = pyedmcl.xmap(field, E=2, targets=values[:, 6], device=one_device, out=tmp_path / "map.zarr")
    for name in ("map.csv", "map.nc", "map.png"):
        done = inside("plot" if name == "map.png" else "export", tmp_path / "map.zarr", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    table = pandas.read_csv(tmp_path / "map.csv")
    assert list(table)[:3] == ["library", "lat", "lon"]
    assert table["lat"].tolist() == np.repeat(lat, 3).tolist() and table["lon"].tolist() == lon * 2
    np.testing.assert_allclose(table.iloc[:, 3], np.asarray(found.rho)[:, 0], rtol=1e-6)
    with xarray.open_dataset(tmp_path / "map.nc", engine="h5netcdf") as stored:
        assert stored["rho"].dims == ("lat", "lon", "target")
        np.testing.assert_allclose(stored["rho"].values.ravel(), table.iloc[:, 3], rtol=1e-6)
        assert "provenance" in stored["rho"].attrs and stored["rho"].attrs["long_name"]
