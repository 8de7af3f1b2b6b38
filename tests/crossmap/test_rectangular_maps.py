"""Maps of libraries against other targets: the cells of the square map of all of them, in every form of a result."""

from __future__ import annotations

import csv

import naive
import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.errors import InputError, Interrupted, StoreMismatchError
from pyedmcl.files import read_series, write_matrix
from pyedmcl.jobs.store import XmapStore

N, LENGTH, LIBRARIES = 12, 150, 7


def table():
    x = naive.noisy_maps(N, LENGTH, 11)
    x[60:64, 2] = np.nan
    x[90, 9] = np.nan
    return x


DATA = table()
TARGETS = DATA[:, LIBRARIES:]
E = [2, 1, 3, 2, 1]
MIXED = [1] * LIBRARIES + E


def run(*words):
    """A command that must succeed."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == 0, found.output


@pytest.fixture(scope="module")
def square(one_device):
    return pyedmcl.xmap(DATA, E=MIXED, device=one_device)


@pytest.fixture(scope="module")
def whole(one_device):
    return pyedmcl.xmap(DATA[:, :LIBRARIES], targets=TARGETS, E=E, device=one_device)


@pytest.mark.parametrize("options", [
    {"E": MIXED}, {"E": 2, "Tp": -1, "exclusion_radius": 3}, {"E": "auto", "E_max": 3}, {"E": 2, "dtype": "float64"},
    {"E": 2, "method": "smap", "theta": [0, 2.0]},
])  # fmt: skip
def test_cells_are_those_of_the_square_map(one_device, options):
    device = one_device
    all_pairs = pyedmcl.xmap(DATA, device=device, **options)
    own = {**options, "E": options["E"][LIBRARIES:] if options["E"] is MIXED else options["E"]}
    result = pyedmcl.xmap(DATA[:, :LIBRARIES], targets=TARGETS, device=device, **own)
    np.testing.assert_array_equal(result.rho, all_pairs.rho[..., :LIBRARIES, LIBRARIES:])
    np.testing.assert_array_equal(result.E, all_pairs.E[LIBRARIES:])
    assert result.targets == ("y0", "y1", "y2", "y3", "y4")


def test_the_second_opinion_agrees(device):
    expected = naive.xmap(DATA, MIXED)[:LIBRARIES, LIBRARIES:]
    result = pyedmcl.xmap(DATA[:, :LIBRARIES], targets=TARGETS, E=E, device=device)
    np.testing.assert_allclose(result.rho, expected, atol=2e-5)


@pytest.mark.parametrize(("libraries", "targets"), [(1, N), (N, 1)])
def test_one_against_many(square, one_device, libraries, targets):
    result = pyedmcl.xmap(DATA, columns=range(libraries), targets=list(range(targets)), E=2, device=one_device)
    np.testing.assert_array_equal(
        result.rho, pyedmcl.xmap(DATA, E=2, device=one_device).rho[:libraries, :targets]
    )


def test_columns_of_the_data_as_targets(one_device):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(DATA, columns=list("abcdefghijkl"))
    result = pyedmcl.xmap(frame, columns=["a", "c", "e"], targets=["c", "l"], E=2, device=one_device)
    np.testing.assert_array_equal(result.rho, pyedmcl.xmap(frame, E=2, device=one_device).rho[[0, 2, 4]][:, [2, 11]])
    table = result.to_frame()
    assert (list(table.index), list(table.columns)) == (["a", "c", "e"], ["c", "l"])
    assert pyedmcl.xmap(frame, targets="c", E=2, device=one_device).rho.shape == (12, 1)
    # c is library and target: that is no link.
    assert len(result.edges(top=10)) == 5
    assert ("c", "c") not in [(edge.library, edge.target) for edge in result.edges(top=10)]
    kept = pyedmcl.xmap(frame, columns=["a", "c", "e"], targets=["c", "l"], E=2, keep="rho>-1", device=one_device)
    assert len(kept) == 5


def test_a_store_holds_both_names_and_continues(whole, one_device, tmp_path, monkeypatch):
    out, write = tmp_path / "map.zarr", XmapStore.write
    call = {"targets": TARGETS, "E": E, "out": out, "device": one_device}
    monkeypatch.setattr("pyedmcl.crossmap.xmap.default_block_rows", lambda n, m=None: 2)

    def stop(self, block, rows):
        if block == 2:
            raise KeyboardInterrupt
        write(self, block, rows)

    monkeypatch.setattr(XmapStore, "write", stop)
    with pytest.raises(Interrupted):
        pyedmcl.xmap(DATA[:, :LIBRARIES], **call)
    monkeypatch.setattr(XmapStore, "write", write)
    np.testing.assert_array_equal(np.asarray(pyedmcl.xmap(DATA[:, :LIBRARIES], **call).rho), whole.rho)
    again = pyedmcl.open_xmap(out)
    np.testing.assert_array_equal(np.asarray(again.rho), whole.rho)
    assert (again.names, again.targets, again.E.tolist()) == (whole.names, whole.targets, E)
    assert again.edges(top=4) == whole.edges(top=4)
    with pytest.raises(StoreMismatchError, match="input data differ"):
        pyedmcl.xmap(DATA[:, :LIBRARIES], **{**call, "targets": TARGETS + 1})
    with pytest.raises(StoreMismatchError, match="targets: stored"):
        pyedmcl.xmap(DATA[:, :LIBRARIES], **{**call, "targets": TARGETS[:, :4], "E": 2})
    with pytest.raises(StoreMismatchError, match="themselves"):
        pyedmcl.xmap(DATA[:, :LIBRARIES], **{**call, "targets": None, "E": 2})


@pytest.mark.parametrize("rule", ["top:2", "top:2:target", "rho>0.2"])
def test_edges_that_are_kept(whole, one_device, tmp_path, rule):
    call = {"targets": TARGETS, "E": E, "keep": rule, "device": one_device}
    result = pyedmcl.xmap(DATA[:, :LIBRARIES], **call)
    np.testing.assert_array_equal(result.rho, whole.rho[result.library, result.target])
    axis = 1 if rule == "top:2" else 0
    ranked = -np.sort(-whole.rho, axis=axis)
    least = 0.2 if rule == "rho>0.2" else ranked.take([1], axis=axis)
    assert len(result) == np.count_nonzero(whole.rho >= least)
    stored = pyedmcl.xmap(DATA[:, :LIBRARIES], out=tmp_path / "edges.zarr", **call)
    frame = stored.to_frame()
    assert frame.equals(result.to_frame())
    assert set(frame["target"]) <= set(whole.targets)
    assert set(frame["library"]) <= set(whole.names)
    stored.save(tmp_path / "edges.csv")
    with (tmp_path / "edges.csv").open(newline="") as file:
        assert [row["target"] for row in csv.DictReader(file)] == frame["target"].tolist()


def test_other_devices_and_processes(whole, both_devices, tmp_path):
    call = {"targets": TARGETS, "E": E}
    result = pyedmcl.xmap(DATA[:, :LIBRARIES], device=list(both_devices), **call)
    np.testing.assert_array_equal(result.rho, whole.rho)
    out = tmp_path / "map.zarr"
    joined = pyedmcl.xmap(DATA[:, :LIBRARIES], out=out, join=True, part="2/2", device=both_devices[0], **call)
    np.testing.assert_array_equal(np.asarray(joined.rho), whole.rho)


def test_pictures_and_files(whole, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    axes = whole.plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(whole.targets)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(whole.names)
    texts = {text.get_text() for text in whole.plot_network(top=3).axes[0].texts}
    assert texts >= {"x0", "y0"}
    write_matrix(tmp_path / "map.npz", whole.rho, whole.names, whole.E, targets=whole.targets)
    with np.load(tmp_path / "map.npz") as held:
        assert tuple(held["targets"]) == whole.targets
        np.testing.assert_array_equal(held["rho"], whole.rho)


def test_the_command(whole, one_device, tmp_path):
    np.savetxt(tmp_path / "libraries.csv", DATA[:, :LIBRARIES], delimiter=",", comments="",
               header=",".join(whole.names))  # fmt: skip
    np.savetxt(tmp_path / "goals.csv", TARGETS, delimiter=",", comments="", header="p,q,r,s,t")
    common = ["--E", "2", "--device", one_device]
    libraries, out = tmp_path / "libraries.csv", tmp_path / "map.zarr"
    run("xmap", libraries, "--targets", tmp_path / "goals.csv", "-o", out, *common)
    result = pyedmcl.open_xmap(out)
    expected = pyedmcl.xmap(read_series(libraries), targets=read_series(tmp_path / "goals.csv"), E=2, device=one_device)
    np.testing.assert_array_equal(np.asarray(result.rho), expected.rho)
    assert result.targets == tuple("pqrst")
    run("export", out, "-o", tmp_path / "map.csv")
    first = (tmp_path / "map.csv").read_text().splitlines()[0]
    assert first == "library,p,q,r,s,t"
    run("plot", out, "-o", tmp_path / "map.png")
    run("xmap", libraries, "--columns", "x0,x1", "--targets", "x1,x3", "-o", tmp_path / "own.zarr", *common)
    assert pyedmcl.open_xmap(tmp_path / "own.zarr").targets == ("x1", "x3")


@pytest.mark.parametrize(("targets", "what"), [
    (TARGETS[:100], "targets has 100 steps and data 150"), ([], "targets"), (["nowhere"], "no column 'nowhere'"),
    ({"x1": TARGETS[:, 0]}, "'x1' are names of libraries that hold other values"), ("x99", "no column 'x99'"),
    (TARGETS * np.inf, "infinite"), (np.zeros((LENGTH, 0)), "no values"),
])  # fmt: skip
def test_bad_targets(targets, what):
    with pytest.raises(InputError, match=what):
        pyedmcl.xmap(DATA[:, :LIBRARIES], targets=targets, E=2)


def test_other_times_are_refused():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    days = pandas.date_range("2020-01-01", periods=LENGTH)
    data, later = pandas.DataFrame(DATA[:, :2], index=days), pandas.DataFrame({"z": DATA[:, 3]}, index=days.shift(5))
    with pytest.raises(InputError, match="other times"):
        pyedmcl.xmap(data, targets=later, E=2)


def test_E_is_that_of_targets():
    with pytest.raises(InputError, match="E has 7 values, but there are 5 targets"):
        pyedmcl.xmap(DATA[:, :LIBRARIES], targets=TARGETS, E=[2] * LIBRARIES)
