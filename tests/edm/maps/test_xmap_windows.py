"""Windows along series: the same bits as a call for each, and skill over time."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
import xarray
from cli_helpers import inside
from series_helpers import driven
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.data.windows import windows_of
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.session import open_device
from pyedmcl.engines.lookup import LookupShapes
from pyedmcl.errors import InputError
from pyedmcl.neighbors import window_search

X, Y = driven(200)
TABLE = np.column_stack([X, Y, X * Y])
GAPS = TABLE.copy()
GAPS[90, 1] = np.nan
SLICES = [slice(start, start + 120) for start in (0, 35, 70)]


def test_lookups_of_windows_of_a_size_are_planned_once(one_device, monkeypatch):
    planned, shape = [], LookupShapes.shape
    monkeypatch.setattr(LookupShapes, "shape", lambda *given, **more: planned.append(given) or shape(*given, **more))
    pyedmcl.xmap(TABLE, E=2, windows=(60, 10), device=one_device)
    assert len(planned) == 1


@pytest.mark.parametrize("E", [2, [1, 3, 2], "auto"])
@pytest.mark.parametrize("values", [TABLE, GAPS], ids=["whole", "gaps"])
def test_maps_have_the_bits_of_a_call_for_each_window(device, E, values):
    own = {"E": E, "tau": 2, "Tp": 1, "exclusion_radius": 1, "E_max": 3, "device": device}
    found = pyedmcl.xmap(values, windows=(120, 35), **own)
    assert found.rho.shape == (3, 3, 3) and found.starts.tolist() == [0, 35, 70] and found.width == 120
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.xmap(values[rows], **own)
        np.testing.assert_array_equal(found.rho[window], alone.rho)
        np.testing.assert_array_equal(found.E[window], alone.E)


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        ({}, "ties"), ({"E": [1, 4, 2], "tau": 3, "exclusion_radius": 5}, "gaps"), ({"targets": [1]}, "gaps"),
        ({"E": 8}, "smooth"), ({"knn": 9, "dtype": "float64"}, "ties"),
    ],
)  # fmt: skip
def test_windows_that_overlap_share_their_search(device, own, kind):
    """Numbers of float32 are the same in all windows, so that distances are found once; near rows tie, or lie apart."""
    values = TABLE.astype(np.float32)
    if kind == "ties":
        values = np.round(values * 4) / 4
        values[60:120, 2] = 1.0
    elif kind == "gaps":
        values[90, 1] = np.nan
    own = {"E": 3, "device": device} | own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a series that never changes within a window
        found = pyedmcl.xmap(values, windows=(61, 5), **own)
        for window, start in list(enumerate(found.starts))[::7]:
            alone = pyedmcl.xmap(values[start : start + 61], **own)
            np.testing.assert_array_equal(found.rho[window], alone.rho)


def test_shared_searches_are_those_of_the_kernel(one_device, monkeypatch):
    """Where windows overlap, data are float32 and states lead to their own row; in small tables, too."""
    if quirks_for(open_device(one_device).info).scalar_work_items:
        pytest.skip("GPUs search each window by itself")
    made = []
    fill = window_search.WindowSearch._fill
    monkeypatch.setattr(window_search.WindowSearch, "_fill", lambda *args: made.append(args[1]) or fill(*args))
    values = TABLE.astype(np.float32)
    expected = pyedmcl.xmap(values, E=2, windows=(61, 5), device=one_device).rho
    assert len(made) == 1
    for skipped in ({"windows": (61, 40)}, {"Tp": 1}):
        pyedmcl.xmap(values, **({"E": 2, "windows": (61, 5), "device": one_device} | skipped))
    pyedmcl.xmap(TABLE, E=2, windows=(61, 5), device=one_device)
    assert len(made) == 1
    monkeypatch.setattr("pyedmcl.neighbors.tables._TABLE_LEAST", 1 << 13)
    monkeypatch.setattr("pyedmcl.neighbors.tables._TIMES_DATA", 0)
    np.testing.assert_array_equal(pyedmcl.xmap(values, E=2, windows=(61, 5), device=one_device).rho, expected)
    assert len(made) > 5


@pytest.mark.parametrize(
    "own", [{"method": "smap", "theta": 1.5}, {"skill": "mae"}, {"folds": 2, "E": "auto", "E_max": 2}],
    ids=["smap", "mae", "folds"],
)
def test_maps_by_other_engines(own, one_device):
    own = {"E": 2, "Tp": 1, "device": one_device} | own
    found = pyedmcl.xmap(GAPS, windows=(120, 35), **own)
    assert found.skill == own.get("skill", "pearson")
    for window, rows in enumerate(SLICES):
        np.testing.assert_array_equal(found.rho[window], pyedmcl.xmap(GAPS[rows], **own).rho)
    best = found.edges(top=1)[0].rho
    means = found.mean()[~np.eye(3, dtype=bool)]
    assert best == pytest.approx(means.min() if "skill" in own else means.max())


def test_maps_of_other_targets(one_device):
    own = {"targets": TABLE[:, 1:], "E": [3, 2], "dtype": "float64", "device": one_device}
    found = pyedmcl.xmap(GAPS, windows=[120, 35], **own)
    assert found.targets == ("y0", "y1") and found.rho.shape == (3, 3, 2)
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.xmap(GAPS[rows], **(own | {"targets": TABLE[rows, 1:]}))
        np.testing.assert_array_equal(found.rho[window], alone.rho)


def test_time_is_the_middle_of_a_window(tmp_path, one_device):
    days = pandas.date_range("2001-01-01", periods=200, freq="D")
    found = pyedmcl.xmap(pandas.DataFrame(TABLE, index=days), E=2, windows=(120, 80), device=one_device)
    assert found.time.tolist() == pandas.to_datetime(["2001-03-01 12:00", "2001-05-20 12:00"]).to_numpy().tolist()
    numbers = xarray.DataArray(TABLE, dims=("time", "x"), coords={"time": np.arange(200) * 0.5})
    assert windows_of((121, 79), 200).times(numbers["time"].values).tolist() == [30.0, 69.5]
    frame = found.to_frame()
    assert len(frame) == 2 * 6 and not (frame["cause"] == frame["effect"]).any()
    assert frame["start"].unique().tolist() == [0, 80]
    assert (frame["end"] - frame["start"]).unique().tolist() == [120]
    assert (frame["cause"] == frame["target"]).all() and (frame["effect"] == frame["library"]).all()
    one = frame[(frame["library"] == "1") & (frame["target"] == "0")]
    np.testing.assert_array_equal(one["rho"], found.rho[:, 1, 0])
    strongest = found.edges(top=1)[0]
    assert strongest.rho == pytest.approx(max(found.mean()[~np.eye(3, dtype=bool)]))
    figure = found.plot(tmp_path / "w.png")
    figure.draw_without_rendering()
    words = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert "Apr" in words and max(map(len, words)) < 8, "dates in few words, as in other pictures"
    assert (tmp_path / "w.png").stat().st_size > 1000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("Tp", [1, 0, -2])
def test_projections_have_the_bits_of_a_call_for_each_window(device, dtype, Tp):
    own = {"E": 2, "tau": 2, "Tp": Tp, "exclusion_radius": 1, "dtype": dtype, "device": device}
    for x, target in ((X + 1000, None), (X, Y * 7), (GAPS[:, 1], X), (X, GAPS[:, 1])):
        found = pyedmcl.simplex(x, target=target, windows=(120, 35), **own)
        for window, rows in enumerate(SLICES):
            alone = pyedmcl.simplex(x[rows], target=None if target is None else target[rows], **own)
            for name in ("predicted", "observed", "variance", "rho", "mae", "rmse"):
                np.testing.assert_array_equal(getattr(found, name)[window], getattr(alone, name))


def test_projections_over_time(tmp_path, one_device):
    found = pyedmcl.simplex(X, E=2, windows=(50, 50), skill="spearman", device=one_device)
    assert found.skill[1] == pyedmcl.simplex(X[50:100], E=2, skill="spearman", device=one_device).skill
    assert found.to_frame()["time"].tolist() == [24.5, 74.5, 124.5, 174.5]
    found.plot(tmp_path / "w.png")
    gone = X.copy()
    gone[50:100] = np.nan
    assert np.isnan(pyedmcl.simplex(gone, E=2, windows=(50, 50), device=one_device).rho).tolist() == [0, 1, 0, 0]
    with pytest.raises(InputError, match=r"windows=\(3, 1\): lib: E=3, tau=1, Tp=1 with 1 neighbours needs at least 5"):
        pyedmcl.simplex(X, E=3, windows=(3, 1))
    with pytest.raises(InputError, match=r"windows=\(50, 5\) cannot be used with lib_range="):
        pyedmcl.simplex(X, E=3, windows=(50, 5), lib_range=(0, 40))


@pytest.mark.parametrize("E", [2, (2, 3)])
@pytest.mark.parametrize("y", [Y, GAPS[:, 1]], ids=["whole", "gaps"])
def test_sub_libraries_have_the_bits_of_a_call_for_each_window(device, E, y):
    own = {"E": E, "lib_sizes": [12, 80], "sample": 3, "seed": 5, "device": device}
    found = pyedmcl.ccm(X, y, windows=(120, 35), **own)
    assert found.rho.shape == (3, 2, 2, 3) and found.seed == 5
    for window, rows in enumerate(SLICES):
        np.testing.assert_array_equal(found.rho[window], pyedmcl.ccm(X[rows], y[rows], **own).rho)


def test_sub_libraries_over_time(tmp_path, one_device):
    own = {"E": 2, "sample": 2, "seed": 5, "method": "smap", "skill": "mae", "device": one_device}
    found = pyedmcl.ccm(X, Y, lib_sizes=[30], windows=(100, 100), **own)
    alone = pyedmcl.ccm(X[100:], Y[100:], lib_sizes=[30], **own)
    np.testing.assert_array_equal(found.rho[1], alone.rho)
    frame = found.to_frame()
    assert frame["target"].tolist() == ["y", "x"] * 2 and frame["mean"].tolist() == found.mean.ravel().tolist()
    found.plot(tmp_path / "w.png")
    with pytest.raises(InputError, match=r"windows=\(20, 5\): lib_sizes: 30 rows cannot be drawn"):
        pyedmcl.ccm(X, Y, E=2, lib_sizes=[30], windows=(20, 5))
    with pytest.raises(InputError, match=r"windows=\(50, 5\) cannot be used with predictions="):
        pyedmcl.ccm(X, Y, E=2, predictions=True, windows=(50, 5))


@pytest.mark.parametrize("values", [TABLE, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("more", [{}, {"E": "auto", "E_max": 2}, {"folds": 2}], ids=["fixed", "auto", "folds"])
def test_matrices_have_the_bits_of_a_call_for_each_window(one_device, values, more):
    own = {"E": [2, 1, 3], "Tp": 1, "lib_sizes": [12, 40], "sample": 3, "seed": 5, "device": one_device} | more
    found = pyedmcl.ccm_matrix(values, windows=(120, 35), **own)
    assert found.rho.shape == (3, 2, 3, 3) and found.seed == 5
    for window, rows in enumerate(SLICES):
        alone = pyedmcl.ccm_matrix(values[rows], **own)
        np.testing.assert_array_equal(found.rho[window], [np.asarray(one) for one in alone.matrices])
        np.testing.assert_array_equal(found.E[window], alone.E)


def test_matrices_over_time(tmp_path, one_device):
    own = {"E": 2, "sample": 2, "seed": 5, "device": one_device}
    found = pyedmcl.ccm_matrix(TABLE, method="smap", lib_sizes=[30, 60], windows=(100, 50), **own)
    alone = pyedmcl.ccm_matrix(TABLE[50:150], method="smap", lib_sizes=[30, 60], **own)
    np.testing.assert_allclose(found.rho[1], alone.rho, atol=1e-6)
    np.testing.assert_allclose(found.gain[1], alone.gain, atol=2e-6)
    frame = found.to_frame()
    one = frame[(frame["start"] == 50) & (frame["cause"] == found.names[1]) & (frame["effect"] == found.names[0])]
    np.testing.assert_array_equal(one["rho"], found.rho[1, :, 0, 1])
    assert len(frame) == 3 * 2 * 6 and one["lib_size"].tolist() == [30, 60] and one["end"].tolist() == [150, 150]
    found.plot(tmp_path / "w.png")
    default = pyedmcl.ccm_matrix(GAPS, windows=(100, 50), **own)
    assert default.lib_sizes.max() == 97  # of 99 states those around a gap
    with pytest.raises(InputError, match=r"windows=\(20, 5\): lib_sizes: 30"):
        pyedmcl.ccm_matrix(TABLE, lib_sizes=30, windows=(20, 5), **own)
    with pytest.raises(InputError, match=r"windows=\(20, 5\) cannot be used with out=: save\(\)"):
        pyedmcl.ccm_matrix(TABLE, windows=(20, 5), out=tmp_path / "m", **own)


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


@pytest.mark.parametrize(
    ("windows", "more", "said"),
    [
        (5, {}, "windows=5: a pair (width, step) of numbers of rows is needed"),
        ((300, 1), {}, "windows=(300, 1): a window of 300 rows is longer than the 200 there are"),
        ((3, 1), {}, "windows=(3, 1): E=2, tau=2, Tp=0 needs windows of at least 4 rows"),
        ((50, 0), {}, "windows=0: an integer of at least 1 is needed"),
        ((50, 5), {"keep": "top:1"}, "windows=(50, 5) cannot be used with keep="),
        ((50, 5), {"method": "smap", "theta": [0, 1]}, "theta=[0, 1] with windows=(50, 5): it takes one map"),
        ((50, 5), {"groups": np.arange(200) // 50}, "windows=(50, 5) cannot be used with groups=: windows may"),
        ((50, 5), {"lib_range": (0, 40)}, "windows=(50, 5) cannot be used with lib_range=: a window is its own"),
        ((50, 5), {"folds": 60}, "folds=60"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(windows, more, said):
    with pytest.raises(InputError) as caught:
        pyedmcl.xmap(TABLE, E=2, tau=2, windows=windows, **more)
    assert said in str(caught.value)
