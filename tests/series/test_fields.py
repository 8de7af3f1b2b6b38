"""Fields on a grid: each cell a series, land left out, and results on the same grid."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
import xarray
from series_helpers import driven

import pyedmcl
import pyedmcl.files
from pyedmcl.errors import InputError
from pyedmcl.series.fields import Grid
from pyedmcl.series.series import as_series

DAYS = pandas.date_range("2001-01-01", periods=150, freq="D")
X, Y = driven(150)
VALUES = np.stack([X, Y, X * Y, X + Y, np.full(150, np.nan), Y - X], axis=1).reshape(150, 2, 3)
FIELD = xarray.DataArray(
    VALUES, dims=("time", "lat", "lon"), coords={"time": DAYS, "lat": [10.5, -3.0], "lon": [0, 90, 180]}, name="sst"
)
SEA = [0, 1, 2, 3, 5]


def test_cells_are_series_but_for_land():
    series = as_series(FIELD)
    assert series.names == ("lat=10.5 lon=0", "lat=10.5 lon=90", "lat=10.5 lon=180", "lat=-3.0 lon=0",
                            "lat=-3.0 lon=180")  # fmt: skip
    np.testing.assert_array_equal(series.values, VALUES.reshape(150, 6)[:, SEA])
    assert series.time[3] == DAYS[3] and series.digest() == as_series(FIELD.transpose("lat", "lon", "time")).digest()
    whole = as_series(FIELD.isel(lat=[0]).astype("float32").drop_vars("lon"))
    assert whole.names == ("lat=10.5 lon=0", "lat=10.5 lon=1", "lat=10.5 lon=2") and whole.values.dtype == np.float32
    chosen = as_series(FIELD, columns=["lat=-3.0 lon=0"])
    assert chosen.n_series == 1 and chosen.grid is None
    with pytest.raises(InputError, match=r"data: there are nothing but gaps .* in all 6 cells of the field"):
        as_series(FIELD * np.nan)


def test_maps_of_a_field_and_an_index(one_device):
    flat, own = VALUES.reshape(150, 6)[:, SEA], {"E": 2, "device": one_device}
    index = xarray.DataArray(Y, dims="time", coords={"time": DAYS}, name="index")
    found = pyedmcl.xmap(FIELD, targets=index, **own)
    onto = found.to_xarray().isel(target=0)
    assert onto.dims == ("lat", "lon") and np.isnan(onto.sel(lat=-3.0, lon=90))
    np.testing.assert_array_equal(onto.values.ravel()[SEA], pyedmcl.xmap(flat, targets=Y, **own).rho[:, 0])
    assert onto.lat.values.tolist() == [10.5, -3.0] and onto.lon.values.tolist() == [0, 90, 180]
    back = pyedmcl.xmap(index, targets=FIELD, **own).to_xarray()
    assert back.dims == ("library", "lat", "lon") and back.library.item() == "index"
    square = pyedmcl.xmap(FIELD, **own).to_xarray()
    assert square.dims == ("library_lat", "library_lon", "target_lat", "target_lon")
    assert square.sel(library_lat=10.5, library_lon=90, target_lat=-3.0, target_lon=180) == pytest.approx(
        pyedmcl.xmap(flat, **own).rho[1, 4]
    )
    plain = pyedmcl.xmap(flat, method="smap", theta=[0, 1], **own).to_xarray()
    assert plain.dims == ("theta", "library", "target") and plain.library.values.tolist() == [f"x{i}" for i in range(5)]


def test_other_results_on_the_grid(tmp_path, one_device):
    best = pyedmcl.embed_dimension(FIELD, E_max=3, device=one_device).to_xarray()
    assert best.E.dims == ("lat", "lon") and best.rho.dims == ("lat", "lon", "dimension")
    assert np.isnan(best.E.sel(lat=-3.0, lon=90)) and best.E.sel(lat=10.5, lon=0) >= 1
    moving = pyedmcl.xmap(FIELD, targets=Y, E=2, windows=(100, 50), device=one_device)
    assert moving.to_xarray().dims == ("time", "lat", "lon", "target") and moving.to_xarray().time[0] == moving.time[0]
    moving.save(tmp_path / "moving.edm")
    again = pyedmcl.open_result(tmp_path / "moving.edm")
    xarray.testing.assert_equal(again.to_xarray(), moving.to_xarray())


def test_every_map_of_a_field_has_its_grid(tmp_path, one_device):
    """Grids of maps, convergence and tests of pairs: in memory, in folders, and saved."""
    own, square = {"E": 2, "device": one_device}, ("library_lat", "library_lon", "target_lat", "target_lon")
    some = {"lib_sizes": [20, 60], "sample": 2, "seed": 1}
    grid = pyedmcl.xmap_grid(FIELD, targets=Y, E=[1, 2], device=one_device)
    stored = pyedmcl.xmap_grid(FIELD, targets=Y, E=[1, 2], out=tmp_path / "grid", device=one_device)
    for found in (grid, stored, pyedmcl.open_xmap_grid(tmp_path / "grid")):
        assert found.to_xarray().dims == ("E", "lat", "lon", "target")
        assert found.best("E").to_xarray()["rho"].dims == found.sel(E=2).to_xarray().dims == ("lat", "lon", "target")
        xarray.testing.assert_equal(found.to_xarray(), grid.to_xarray())
    flat = pyedmcl.xmap(VALUES.reshape(150, 6)[:, SEA], targets=Y, **own).rho
    np.testing.assert_array_equal(grid.sel(E=2).to_xarray().values[..., 0].ravel()[SEA], flat[:, 0])
    matrix = pyedmcl.ccm_matrix(FIELD, **own, **some)
    kept = pyedmcl.ccm_matrix(FIELD, out=tmp_path / "ccm", **own, **some)
    for found in (matrix, kept, pyedmcl.open_ccm_matrix(tmp_path / "ccm")):
        assert found.to_xarray()["rho"].dims == ("lib_size", *square)
    test = pyedmcl.xmap_significance(FIELD, n=3, seed=1, **own)
    moving = pyedmcl.ccm_matrix(FIELD, windows=(100, 50), **own, **some)
    assert test.to_xarray()["p_value"].dims == square and moving.to_xarray().dims == ("time", "lib_size", *square)
    network = pyedmcl.causal_network(FIELD, E=2, n=3, partial=False, forecast=False, device=one_device)
    verdict, ends = network.to_xarray()["verdict"], ("effect_lat", "effect_lon", "cause_lat", "cause_lon")
    assert verdict.dims == network.to_xarray()["rho"].dims == ends and network.to_xarray()["E"].dims == ("lat", "lon")
    assert (verdict.values.reshape(6, 6)[np.ix_(SEA, SEA)] == network.verdict).all() and (verdict == "").any()
    for number, result in enumerate((grid.held(), grid.best("E"), matrix, test, moving, network)):
        again = pyedmcl.open_result(result.save(tmp_path / f"{number}.edm"))
        assert again.to_xarray().equals(result.to_xarray())


@pytest.mark.parametrize("kind", ["onto the index", "onto the field", "square"])
def test_a_stored_map_keeps_its_grid(tmp_path, kind, one_device):
    field = FIELD.assign_coords(lon=[0.1, np.nan, 0.3]).astype("float32")
    pair = {"onto the index": (field, Y), "onto the field": (Y, field), "square": (field, None)}[kind]
    own = {"E": 2, "targets": pair[1], "device": one_device}
    alone = pyedmcl.xmap(pair[0], **own).to_xarray()
    stored = pyedmcl.xmap(pair[0], out=tmp_path / "map", **own)
    again = pyedmcl.open_result(tmp_path / "map")
    for found in (stored, again, pyedmcl.xmap(pair[0], out=tmp_path / "map", **own)):
        xarray.testing.assert_equal(found.to_xarray(), alone)
    assert again.to_xarray().isnull().any()  # land


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "bc", "d"]), np.array(["x", 1, None], object), np.array([1, 2, 3], np.uint8),
        np.array(["2001-01-01", "2002-02-02", "NaT"], "datetime64[ns]"), np.array([0.1, np.nan, -np.inf], np.float32),
        np.array([True, False, True]),
    ],
)  # fmt: skip
def test_a_described_grid_comes_back(labels):
    grid = Grid(("lat", "lon"), (2, 3), {"lon": labels}, np.array([0, 1, 3, 5]))
    again = Grid.from_described(json.loads(json.dumps(grid.described())))
    assert (again.dims, again.shape, again.cells.tolist()) == (grid.dims, grid.shape, grid.cells.tolist())
    wanted = labels.astype(str) if labels.dtype == object else labels
    assert again.coords.keys() == {"lon"} and again.coords["lon"].dtype == wanted.dtype
    np.testing.assert_array_equal(again.coords["lon"], wanted)


def test_netcdf(tmp_path, one_device):
    pytest.importorskip("scipy")  # one of the engines that xarray takes
    path = tmp_path / "field.nc"
    xarray.Dataset({"sst": FIELD, "mask": FIELD.isel(time=0, drop=True)}).to_netcdf(path, engine="scipy")
    read = pyedmcl.files.read_series(path, dataset="sst")
    assert read.digest() == as_series(FIELD).digest() and read.grid.shape == (2, 3) and read.time[3] == DAYS[3]
    found = pyedmcl.embed_dimension(read, E_max=2, device=one_device).to_xarray()
    xarray.testing.assert_equal(found.lon, FIELD.lon)
    with pytest.raises(InputError, match="there is no variable 'u'; there are: sst, mask"):
        pyedmcl.files.read_series(path, dataset="u")
    broken = tmp_path / "broken.nc"
    broken.write_bytes(b"CDF\x01nonsense")
    with pytest.raises(InputError, match="cannot be read as N"):
        pyedmcl.files.read_series(broken)
