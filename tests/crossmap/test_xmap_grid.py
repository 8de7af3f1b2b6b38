"""Grids of maps: each cell is that of its own call, in memory and in a folder, and what is chosen from them."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.errors import InputError, Interrupted, StoreForeignError, StoreMismatchError
from pyedmcl.jobs.store import XmapStore
from pyedmcl.search import tables

N, LENGTH = 5, 150
DATA = naive.noisy_maps(N, LENGTH, 11)
GAPS = DATA.copy()
GAPS[60:63, 1] = np.nan
GAPS[130, 3] = np.nan


def loop(data, axes, **options):
    """The maps of a grid, each by its own call."""
    lengths = [len(values) for values in axes.values()]
    maps = [
        pyedmcl.xmap(data, **dict(zip(axes, values, strict=True)), **options).rho
        for values in itertools.product(*axes.values())
    ]
    return np.array(maps).reshape(*lengths, *maps[0].shape)


@pytest.mark.parametrize("data", [DATA, GAPS], ids=["whole", "gaps"])
def test_cells_are_those_of_the_loop(data, device):
    axes = {"E": [1, 2, 3], "tau": [1, 2], "Tp": [0, -1]}
    grid = pyedmcl.xmap_grid(data, **axes, exclusion_radius=2, device=device)
    np.testing.assert_array_equal(grid.rho, loop(data, axes, exclusion_radius=2, device=device))
    assert grid.axes == {name: tuple(values) for name, values in axes.items()}
    np.testing.assert_array_equal(grid.sel(E=3, Tp=-1).rho, grid.rho[2, :, 1])
    assert grid.sel(E=3, Tp=-1).fixed == {"E": 3, "Tp": -1}


@pytest.mark.parametrize("options", [
    {"lib_range": (0, 100), "pred_range": (100, LENGTH)}, {"lib_range": [(20, 60), (60, 120)]},
    {"targets": [4, 0], "columns": [1, 2, 0]},
    {"knn": 4, "dtype": "float64"},
])  # fmt: skip
def test_options_of_a_map(options, one_device):
    axes = {"E": [3, 1, 2]}
    grid = pyedmcl.xmap_grid(DATA, **axes, **options, device=one_device)
    np.testing.assert_array_equal(grid.rho, loop(DATA, axes, **options, device=one_device))
    assert grid.targets == (("x4", "x0") if "targets" in options else None)


@pytest.mark.parametrize("rows", [{}, {"folds": 3}, {"lib_range": (0, 100), "pred_range": [(20, 60), (110, 150)]}])
def test_groups(rows, one_device, tmp_path):
    """Gaps between groups are as long as tau and Tp ask for, so that each map has the bits of its own call."""
    own = {"groups": np.arange(LENGTH) // 50, "device": one_device} | rows
    axes = {"E": [1, 3], "tau": [1, 4], "Tp": [0, 2]}
    grid = pyedmcl.xmap_grid(GAPS, **axes, **own)
    found = grid.mean("fold").rho if "folds" in rows else grid.rho
    np.testing.assert_array_equal(found, loop(GAPS, axes, **own))
    stored = pyedmcl.xmap_grid(GAPS, **axes, **own, out=tmp_path / "g")
    np.testing.assert_array_equal(np.asarray(stored.rho), grid.rho)


def test_few_rows_of_which_some_dimensions_need_more(one_device):
    """What counts as a gap differs between dimensions, as it does between their own calls."""
    short, axes = DATA[:12], {"E": [1, 2, 3]}
    grid = pyedmcl.xmap_grid(short, **axes, exclusion_radius=4, device=one_device)
    np.testing.assert_array_equal(grid.rho, loop(short, axes, exclusion_radius=4, device=one_device))


def test_folds(one_device):
    grid = pyedmcl.xmap_grid(DATA, E=[1, 2], folds=3, device=one_device)
    assert list(grid.axes) == ["fold", "E"]
    for E in (1, 2):
        own = pyedmcl.xmap(DATA, E=E, folds=3, device=one_device)
        np.testing.assert_array_equal(grid.sel(E=E).rho, own.folds)
        np.testing.assert_array_equal(grid.mean("fold").sel(E=E).rho, own.rho)


def test_linear_fits(one_device):
    axes = {"E": [2, 3], "theta": [0.0, 2.0]}
    grid = pyedmcl.xmap_grid(DATA, **axes, device=one_device)
    np.testing.assert_array_equal(grid.rho, loop(DATA, axes, method="smap", device=one_device))
    best = grid.sel(E=2).best("theta")
    np.testing.assert_array_equal(best.rho, grid.rho[0].max(axis=0))


def test_saturation_is_the_smallest_dimension_that_is_nearly_the_best(one_device):
    data = np.column_stack([DATA, np.zeros(LENGTH)])
    with pytest.warns(RuntimeWarning, match="constant"):
        grid = pyedmcl.xmap_grid(data, E=[3, 1, 2, 5], device=one_device)
    flow = grid.saturation(0.02)
    order = [1, 2, 0, 3]  # of ascending E
    for i, j in itertools.product(range(N), range(N)):
        skill = {(3, 1, 2, 5)[at]: grid.rho[at, i, j] for at in order}
        E = min(E for E, rho in skill.items() if rho >= max(skill.values()) - 0.02)
        assert (flow.chosen[i, j], flow.rho[i, j]) == (E, skill[E])
    assert np.isnan(flow.chosen[:, N]).all()
    np.testing.assert_array_equal(flow.directionality()[:N, :N], (flow.rho - flow.rho.T)[:N, :N])
    np.testing.assert_array_equal(grid.saturation(0).rho[:N, :N], grid.rho.max(axis=0)[:N, :N])


def test_best_of_an_axis(one_device):
    grid = pyedmcl.xmap_grid(DATA, E=2, Tp=[1, 0, -2], device=one_device)
    best = grid.best("Tp")
    np.testing.assert_array_equal(best.rho, grid.rho.max(axis=0))
    np.testing.assert_array_equal(best.chosen, np.array([1, 0, -2])[grid.rho.argmax(axis=0)])


def test_a_folder_holds_maps_that_open_xmap_opens_and_continues(one_device, tmp_path, monkeypatch):
    out, write = tmp_path / "grid", XmapStore.write
    call = {"E": [1, 2], "Tp": [0, 1], "out": out, "device": one_device}
    whole = pyedmcl.xmap_grid(DATA, E=[1, 2], Tp=[0, 1], device=one_device)
    monkeypatch.setattr("pyedmcl.crossmap.grid.default_block_rows", lambda n, m=None: 2)
    written = []

    def stop(self, block, rows):
        if len(written) == 6:
            raise KeyboardInterrupt
        written.append(block)
        write(self, block, rows)

    monkeypatch.setattr(XmapStore, "write", stop)
    with pytest.raises(Interrupted):
        pyedmcl.xmap_grid(DATA, **call)
    monkeypatch.setattr(XmapStore, "write", write)
    stored = pyedmcl.xmap_grid(DATA, **call)
    np.testing.assert_array_equal(np.asarray(stored.rho), whole.rho)
    again = pyedmcl.open_xmap_grid(out)
    assert (again.axes, again.names, again.fixed) == (whole.axes, whole.names, {"tau": 1})
    np.testing.assert_array_equal(np.asarray(again.sel(Tp=1).rho), whole.rho[:, 1])
    np.testing.assert_array_equal(again.saturation().chosen, whole.saturation().chosen)
    np.testing.assert_array_equal(np.asarray(pyedmcl.open_xmap(out / "E_02-tau_1-Tp_0").rho), whole.rho[1, 0])
    assert pyedmcl.open_result(out).axes == whole.axes
    written.clear()
    monkeypatch.setattr(XmapStore, "write", lambda *a: (written.append(a[0].path.name), write(*a)))
    larger = pyedmcl.xmap_grid(DATA, **{**call, "E": [1, 2, 3]})
    assert set(written) == {"E_03-tau_1-Tp_0", "E_03-tau_1-Tp_1"}
    np.testing.assert_array_equal(np.asarray(larger.sel(E=2).rho), whole.rho[1])
    with pytest.raises(StoreMismatchError, match="input data differ"):
        pyedmcl.xmap_grid(DATA + 1, **call)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("x")
    for refused in (other, other / "mine.txt"):
        with pytest.raises(StoreForeignError):
            pyedmcl.xmap_grid(DATA, E=[1, 2], out=refused, device=one_device)
        with pytest.raises(StoreForeignError):
            pyedmcl.open_xmap_grid(refused)


def test_more_maps_than_files_may_be_open(one_device, tmp_path):
    resource = pytest.importorskip("resource", reason="this system has no such limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = Path("/proc/self/fd")
    if not there.is_dir():
        pytest.skip("open files cannot be counted here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(there.iterdir())) + 12, hard))
    try:
        grid = pyedmcl.xmap_grid(DATA, E=[1, 2], Tp=[-2, -1, 0, 1, 2], out=tmp_path / "grid", device=one_device)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert np.isfinite(np.asarray(grid.rho)).all()


def test_several_devices_and_processes(both_devices, tmp_path):
    call = {"E": [1, 2], "folds": 2}
    whole = pyedmcl.xmap_grid(DATA, device=both_devices[0], **call)
    shared = pyedmcl.xmap_grid(DATA, device=list(both_devices), **call)
    np.testing.assert_array_equal(shared.rho, whole.rho)
    joined = pyedmcl.xmap_grid(DATA, out=tmp_path / "grid", join=True, part="2/2", device=both_devices[1], **call)
    np.testing.assert_array_equal(np.asarray(joined.rho), whole.rho)
    np.testing.assert_array_equal(np.asarray(joined.mean().rho), whole.mean().rho)


def test_frames_arrays_and_pictures(one_device, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    grid = pyedmcl.xmap_grid(DATA, E=[1, 2], Tp=[0, 1], targets=[0, 1], device=one_device)
    frame = grid.to_frame()
    row = frame[(frame.E == 2) & (frame.Tp == 1) & (frame.library == "x3") & (frame.target == "x1")]
    assert row.rho.item() == grid.rho[1, 1, 3, 1]
    assert len(frame) == 4 * 2 * (len(grid.names) - 1) and not (frame.cause == frame.effect).any()
    assert "axes={E: (1, 2), Tp: (0, 1)}" in repr(grid)
    flow = grid.sel(Tp=0).saturation()
    assert list(flow.to_frame().columns) == ["cause", "effect", "library", "target", "rho", "E"]
    assert (flow.to_frame()["cause"] == flow.to_frame()["target"]).all()
    assert flow.to_frame()["E"].dtype.kind == "i"
    grid.plot(str(tmp_path / "grid.png"))
    folded = pyedmcl.xmap_grid(DATA, E=[1, 2], folds=3, device=one_device).plot()
    assert folded.axes[0].get_xlabel() == "E" and len(folded.axes[0].lines) == 1  # not skill over folds
    flow.plot(str(tmp_path / "flow.png"))
    grid.sel(E=1, Tp=0).plot(str(tmp_path / "map.png"))
    with pytest.raises(InputError, match="choose values of Tp"):
        grid.saturation().plot()
    with pytest.raises(InputError, match="targets must be the libraries"):
        flow.directionality()
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    array = grid.to_xarray()
    assert isinstance(array, xarray.DataArray) and array.dims == ("E", "Tp", "library", "target")
    np.testing.assert_array_equal(array.sel(E=2, target="x1").values, grid.rho[1, :, :, 1])


@pytest.mark.parametrize(("options", "what"), [
    ({"E": "auto"}, "E='auto'"), ({"E": []}, r"E=\[\]"), ({"E": [2, 2]}, "different"), ({"E": 2, "tau": 0}, "tau=0"),
    ({"E": [1, 200]}, "needs at least"), ({"E": 2, "theta": "best"}, "theta='best'"), ({"E": 2, "Tp": 0.5}, "Tp=0.5"),
    ({"E": 2, "folds": 1}, "folds=1"), ({"E": 2, "theta": 1, "folds": 150}, "no row of fold 0 has a state"),
    ({"E": 2, "Tp": [0, 149]}, "needs at least"), ({"E": 2, "join": True}, "join"),
])  # fmt: skip
def test_bad_axes(options, what):
    with pytest.raises(InputError, match=what):
        pyedmcl.xmap_grid(DATA, **options)


def test_wrong_choices_are_named(one_device):
    grid = pyedmcl.xmap_grid(DATA, E=[1, 2], device=one_device)
    for call, what in (
        (lambda: grid.sel(E=7), "E=7 is not on the grid; there are 1, 2"), (lambda: grid.sel(tau=1), "no axis 'tau'"),
        (lambda: grid.best("Tp"), "axes of this grid are E"), (lambda: grid.saturation(-1), "tolerance=-1"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            call()


def test_a_grid_that_does_not_fit_says_what_it_needs(one_device, monkeypatch):
    monkeypatch.setattr("pyedmcl.arguments._host_bytes", lambda: 100)
    with pytest.raises(InputError, match=r"2 x 5 x 5 numbers needs 200 bytes .* or give out="):
        pyedmcl.xmap_grid(DATA, E=[1, 2], device=one_device)


def test_targets_of_a_dimension_are_staged_once_however_many_batches_tables_take(one_device, monkeypatch):
    """Small tables: the libraries come in batches, each of which is looked up in all dimensions."""
    monkeypatch.setattr(tables, "_TABLE_LEAST", 1 << 16)
    monkeypatch.setattr(tables, "_TIMES_DATA", 0)
    launched, launch = Counter(), OpenCLExecutor.launch

    def counted(self, kernel, *sizes, **arguments):
        launched[kernel.name] += 1
        return launch(self, kernel, *sizes, **arguments)

    monkeypatch.setattr(OpenCLExecutor, "launch", counted)
    grid = pyedmcl.xmap_grid(DATA, E=[1, 2, 4], device=one_device)
    assert launched["knn"] == 2
    assert launched["stage_targets"] == 3
    for E in (1, 2, 4):
        np.testing.assert_array_equal(grid.sel(E=E).rho, pyedmcl.xmap(DATA, E=E, device=one_device).rho)
