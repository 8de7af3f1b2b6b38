"""Results as labelled arrays, NetCDF, graphs and frames that tell units: what other tools take."""

from __future__ import annotations

import json

import numpy as np
import pytest
from result_makers import MAKERS, VALUES, made
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.errors import InputError, OutputError
from pyedmcl.functions import RESULTS
from pyedmcl.results import result as labels

pytestmark = pytest.mark.filterwarnings("ignore:nothing is significant", "ignore:constant series")
FRAMED = [name for name in MAKERS if name not in ("KnnResult", "RecurrencePlot", "DistancePlot")]
GRAPHS = {"XmapResult": 12, "XmapEdges": 8, "XmapSignificance": None, "CcmMatrixResult": None, "CausalNetwork": None}


@pytest.mark.parametrize("name", FRAMED)
def test_every_column_of_a_frame_has_a_unit_and_a_meaning(name, one_device):
    frame = made(name, one_device).to_frame()
    index = [] if frame.index.name is None else [frame.index.name]
    wanted = {str(column) for column in [*index, *frame.columns]}
    assert set(frame.attrs["units"]) == wanted and set(frame.attrs["meanings"]) == wanted
    assert all(frame.attrs["meanings"].values())
    assert frame.attrs["result"] == name and frame.attrs["source"] == f"pyedmcl {pyedmcl.__version__}"
    json.dumps(frame.attrs)  # as Parquet keeps them


def test_names_of_series_are_not_taken_for_names_of_columns(one_device):
    result = pyedmcl.xmap({"E": VALUES[:, 0], "rho": VALUES[:, 1]}, E=2, device=one_device)
    units, meanings = (result.to_frame().attrs[key] for key in ("units", "meanings"))
    assert units == {"E": "1", "rho": "1"} and meanings["E"] == meanings["rho"] != labels.COMMON["rho"].meaning


def test_the_lag_of_a_network_and_the_tau_of_kendall_are_told_apart(one_device):
    of_matrix = made("CcmMatrixResult", one_device).to_frame().attrs
    assert "tau" not in of_matrix["units"] and "Kendall" in of_matrix["meanings"]["trend"]
    assert made("CausalNetwork", one_device).to_frame().attrs["units"]["tau"] == "rows"


@pytest.mark.parametrize("name", MAKERS)
def test_every_result_is_a_netcdf_file(name, one_device, tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    result = made(name, one_device)
    array = result.to_xarray()
    dataset = array.to_dataset() if isinstance(array, xarray.DataArray) else array
    path = result.write_netcdf(tmp_path / "result.nc")
    assert path == tmp_path / "result.nc" and [item.name for item in tmp_path.iterdir()] == ["result.nc"]
    with xarray.open_dataset(path, engine="h5netcdf") as read:
        again = read.load()
    renamed = {each: str(each).replace("/", "|") for each in dataset.data_vars}
    xarray.testing.assert_equal(again, dataset.rename(renamed))
    assert array.attrs["result"] == name and json.loads(array.attrs["provenance"]) is not None
    described = [variable for variable in again.variables.values() if "long_name" in variable.attrs]
    assert described, "no variable says what it holds"


def test_labelled_arrays_hold_the_numbers_of_the_result(one_device):
    pytest.importorskip("xarray", reason="xarray is not installed")
    matrix = made("CcmMatrixResult", one_device)
    found = matrix.to_xarray()["rho"].sel(lib_size=60, library="x1", target="x2")
    assert float(found) == matrix.at(60)[1, 2]
    fits = made("SmapResult", one_device)
    slope = fits.to_xarray()["coefficients"].sel(theta=2.0, coefficient=f"d/d{fits.names[0]}")
    np.testing.assert_array_equal(slope, fits.at(2.0).coefficients[:, 1])
    ccm = made("CcmResult", one_device)
    library, target = ccm.links[1]
    np.testing.assert_array_equal(ccm.to_xarray()["rho"].sel(direction=f"{target} -> {library}"), ccm.rho[1])
    scan = made("EmbeddingScan", one_device)
    assert float(scan.to_xarray().sel(E=2, tau=1, Tp=1)) == scan.rho[1, 0, 0]


def test_groups_keep_times_of_their_own(one_device):
    pytest.importorskip("xarray", reason="xarray is not installed")
    groups = np.repeat(["a", "b"], 200)
    for function, options in ((pyedmcl.simplex, {}), (pyedmcl.smap, {"theta": 1.0})):
        result = function(VALUES[:, 0], E=2, groups=groups, device=one_device, **options)
        dataset = result.to_xarray()
        assert dataset["predicted"].dims == ("row",)
        np.testing.assert_array_equal(dataset["time"], result.time)
        np.testing.assert_array_equal(dataset["group"], result.group)


def test_dates_stay_dates_in_netcdf(one_device, tmp_path):
    pandas, xarray = (pytest.importorskip(name, reason=f"{name} is not installed") for name in ("pandas", "xarray"))
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    series = pandas.Series(VALUES[:, 0], pandas.date_range("2000-01-01", periods=400, freq="D"), name="a/b")
    found = pyedmcl.simplex(series, E=2, device=one_device)
    with xarray.open_dataset(found.write_netcdf(tmp_path / "forecast.nc"), engine="h5netcdf") as read:
        np.testing.assert_array_equal(read["time"].values.astype("datetime64[D]"), found.dates.astype("datetime64[D]"))
        np.testing.assert_array_equal(read["predicted"], found.predicted)


def test_radii_of_corridors_are_text_in_netcdf(one_device, tmp_path):
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    found = pyedmcl.rqa(VALUES[:100, 0], radius=[(0.1, 0.2), (0.2, 0.3)], threshold="corridor", device=one_device)
    assert found.write_netcdf(tmp_path / "rqa.nc").stat().st_size
    assert found.to_xarray()["determinism"].dims == ("radius",)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("suffix", ["graphml", "gexf"])
def test_links_are_graphs_from_cause_to_effect(name, suffix, one_device, tmp_path):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    result = made(name, one_device)
    graph = result.to_networkx()
    path = result.write_graph(tmp_path / f"links.{suffix}")
    again = getattr(networkx, f"read_{suffix}")(path)
    assert set(again.nodes) == set(graph.nodes) and set(again.edges) == set(graph.edges)
    assert GRAPHS[name] in (None, graph.number_of_edges())
    for cause, effect, values in graph.edges(data=True):
        assert float(again.edges[cause, effect]["rho"]) == pytest.approx(values["rho"])


def test_the_graph_of_a_map_is_that_of_its_strongest_pairs(one_device):
    pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    result = made("XmapResult", one_device)
    graph = result.to_networkx(top=3)
    wanted = {(edge.target, edge.library): edge.rho for edge in result.edges(3)}
    assert {(cause, effect): rho for cause, effect, rho in graph.edges(data="rho")} == wanted
    assert all(graph.nodes[edge.target]["E"] == 3 for edge in result.edges(3))


def test_the_graph_of_tests_is_that_of_what_passes(one_device):
    pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    tested, matrix = made("XmapSignificance", one_device), made("CcmMatrixResult", one_device)
    assert set(tested.to_networkx(0.5).edges) == {
        (tested.names[j], tested.names[i]) for i, j in zip(*np.nonzero(tested.significant(0.5)), strict=True)
    }  # fmt: skip
    chosen = {(matrix.names[j], matrix.names[i]) for i, j in zip(*np.nonzero(matrix.gain > 0), strict=True)}
    assert set(matrix.to_networkx().edges) == chosen and chosen


def test_names_that_a_graph_file_cannot_hold_are_escaped(one_device, tmp_path):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    result = pyedmcl.xmap({"a\x07<b>": VALUES[:, 0], "c&\"d": VALUES[:, 1]}, E=2, device=one_device)
    for suffix in ("graphml", "gexf"):
        again = getattr(networkx, f"read_{suffix}")(result.write_graph(tmp_path / f"links.{suffix}"))
        assert set(again.nodes) == {"a\\x07<b>", "c&\"d"}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_strongest_pairs_of_a_map_are_a_table(suffix, one_device, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    result = made("XmapResult", one_device)
    path = result.write_edges(tmp_path / f"edges{suffix}", top=5)
    frame = (pandas.read_parquet if suffix == ".parquet" else pandas.read_csv)(path)
    wanted = [[edge.library, edge.target, edge.E] for edge in result.edges(5)]
    assert frame[["library", "target", "E"]].to_numpy().tolist() == wanted
    np.testing.assert_allclose(frame["rho"], [edge.rho for edge in result.edges(5)])


def test_what_cannot_be_written_is_refused_before_anything_is_made(one_device, tmp_path):
    result = made("XmapResult", one_device)
    writers = ((result.write_netcdf, "map.cdf"), (result.write_graph, "map.dot"), (result.write_edges, "e.txt"))
    for write, name in writers:
        with pytest.raises(OutputError, match=name.partition(".")[2]):
            write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_result_without_a_table_says_so():
    from pyedmcl.results.result import Result

    with pytest.raises(InputError, match="a Result has no table"):
        Result().to_xarray()


def test_every_class_of_results_is_tried():
    assert set(MAKERS) == set(RESULTS)


@pytest.mark.parametrize("name", ["CcmMatrixResult", "XmapSignificance", "KnnResult"])
def test_export_writes_arrays_of_saved_results(name, one_device, tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    path = made(name, one_device).save(tmp_path / "result.edm")
    done = CliRunner().invoke(app, ["export", str(path), "-o", str(tmp_path / "out.nc")])
    assert done.exit_code == 0 and name in done.output, done.output
    with xarray.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as read:
        assert read.attrs["result"] == name


def test_export_writes_maps_and_kept_edges(one_device, tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    networkx = pytest.importorskip("networkx", reason="networkx is not installed; pip install 'pyedmcl[graph]'")
    whole = pyedmcl.xmap(VALUES, E=3, out=tmp_path / "map", device=one_device)
    kept = pyedmcl.xmap(VALUES, E=3, keep="top:2", out=tmp_path / "kept", device=one_device)
    for source, output in (("map", "map.nc"), ("kept", "kept.graphml")):
        done = CliRunner().invoke(app, ["export", str(tmp_path / source), "-o", str(tmp_path / output)])
        assert done.exit_code == 0, done.output
    with xarray.open_dataset(tmp_path / "map.nc", engine="h5netcdf") as read:
        np.testing.assert_array_equal(read["rho"], whole.rho)
        assert read["target"].values.tolist() == list(whole.names) and (read["E"] == 3).all()
        assert read["rho"].attrs["long_name"] == labels.COMMON["rho"].meaning
    assert set(networkx.read_graphml(tmp_path / "kept.graphml").edges) == set(kept.to_networkx().edges)
