"""What a recurrence network shows, and its links as tables and graphs."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.errors import InputError
from pyedmcl.reference.recurrence import compared, points_of
from pyedmcl.reporting.content import Wishes
from pyedmcl.reporting.report import section_of

WAVE = np.sin(np.arange(300) * 0.37)
OPTIONS = {"m": 2, "tau": 4, "radius": 0.3}
MEASURES = ("transitivity", "mean_clustering", "mean_degree", "density")


def network(device, **more):
    return pyedmcl.recurrence_network(WAVE, device=device, **OPTIONS, **more)


def test_the_numbers_of_the_whole_network_come_first(one_device, tmp_path):
    found = network(one_device)
    text = repr(found)
    assert text.startswith("RecurrenceNetwork(transitivity=") and all(f"{name}=" in text for name in MEASURES)
    section = section_of(found, Wishes())
    measures, points = section.parts
    assert [(name.replace(" ", "_"), value) for name, value in measures.rows] == list(found.to_dict().items())
    assert points.columns == ("point", "degree", "clustering")
    assert [row[:2] for row in points.rows[:3]] == [(at, found.degree[at]) for at in range(3)]
    assert "transitivity" in found.report(tmp_path / "n.html").read_text()
    assert found.to_frame().index.name == "point"


@pytest.mark.parametrize("theiler", [1, 7])
@pytest.mark.parametrize("gaps", [(), (40, 41, 200)])
def test_links_are_the_recurrences(device, theiler, gaps):
    x = WAVE.copy()
    x[list(gaps)] = np.nan
    found = pyedmcl.recurrence_network(x, device=device, links=True, theiler=theiler, **OPTIONS)
    points = points_of(x, 2, 4)
    d = compared(points, points, "euclidean")
    i, j = np.indices(d.shape)
    with np.errstate(invalid="ignore"):
        wanted = np.argwhere((d < 0.3**2) & (j - i >= theiler))
    np.testing.assert_array_equal(found.links, wanted)
    assert len(found.links) == found.degree.sum() // 2
    np.testing.assert_array_equal(np.bincount(found.links.ravel(), minlength=len(d)), found.degree)


def test_links_as_tables_and_graphs(one_device, tmp_path):
    networkx = pytest.importorskip("networkx")
    found = network(one_device, links=True)
    graph = found.to_networkx()
    assert graph.number_of_edges() == len(found.edges()) and not graph.is_directed()
    assert networkx.transitivity(graph) == pytest.approx(found.transitivity, rel=1e-12)
    assert networkx.average_clustering(graph) == pytest.approx(found.mean_clustering, rel=1e-12)
    path = found.save(tmp_path / "net.edm")
    run = CliRunner()
    assert run.invoke(app, ["export", str(path), "--edges", "-o", str(tmp_path / "e.csv")]).exit_code == 0
    table = np.loadtxt(tmp_path / "e.csv", delimiter=",", skiprows=1, dtype=int)
    np.testing.assert_array_equal(table, found.links)
    assert run.invoke(app, ["export", str(path), "-o", str(tmp_path / "n.graphml")]).exit_code == 0
    assert networkx.read_graphml(tmp_path / "n.graphml").number_of_edges() == len(found.links)
    with pytest.raises(InputError, match="links=True is needed"):
        network(one_device).edges()


def test_commands_refuse_what_a_result_has_not(one_device, tmp_path):
    results = {
        "rqa": pyedmcl.rqa(WAVE, device=one_device, **OPTIONS),
        "windows": pyedmcl.windowed_rqa(WAVE, 100, 50, device=one_device, **OPTIONS),
        "batch": pyedmcl.rqa_batch([WAVE, WAVE[:99]], device=one_device, **OPTIONS),
        "network": network(one_device),
        "information": pyedmcl.mutual_information(WAVE, lags=5),
    }
    run = CliRunner()
    for name, result in results.items():
        path, out = result.save(tmp_path / f"{name}.edm"), tmp_path / f"{name}.csv"
        told = run.invoke(app, ["export", str(path), "--edges", "-o", str(out)])
        assert told.exit_code != 0 and not out.exists(), name
        assert ("links=True" if name == "network" else "no pairs") in told.output
        assert run.invoke(app, ["export", str(path), "-o", str(out)]).exit_code == 0
        if hasattr(result, "plot"):
            picture = str(tmp_path / f"{name}.png")
            for option in (["--top", "5"], ["--layout", "circle"]):
                told = run.invoke(app, ["plot", str(path), "-o", picture, *option])
                assert told.exit_code != 0 and "leave it out" in told.output, (name, option)
            assert run.invoke(app, ["plot", str(path), "-o", picture]).exit_code == 0


def test_pixels_are_written_as_numbers(one_device, tmp_path):
    run = CliRunner()
    for name, plot in {
        "rp": pyedmcl.recurrence_plot(WAVE[:40], device=one_device, **OPTIONS),
        "dp": pyedmcl.distance_plot(WAVE[:40], device=one_device),
    }.items():
        path = tmp_path / f"{name}.edm"
        plot.save(path)
        values = plot.counts if name == "rp" else plot.means
        for suffix, read in ((".npy", np.load), (".csv", lambda at: np.loadtxt(at, delimiter=",", skiprows=1))):
            out = tmp_path / f"{name}{suffix}"
            assert run.invoke(app, ["export", str(path), "-o", str(out)]).exit_code == 0
            np.testing.assert_array_equal(read(out), values)


def test_reports_of_windows_have_their_time(one_device, tmp_path):
    pandas = pytest.importorskip("pandas")
    dated = pandas.Series(WAVE, index=pandas.date_range("2020", periods=300, freq="D"))
    table = pyedmcl.windowed_rqa(dated, 100, 50, device=one_device, **OPTIONS)
    measures = section_of(table, Wishes()).parts[0]
    assert measures.columns[:3] == ("start", "middle of the window", "RR")
    assert [str(row[1])[:10] for row in measures.rows] == [str(when)[:10] for when in table.to_frame()["time"]]
    assert table.to_frame().attrs["meanings"]["time"] == "the middle of the window"
    table.report(tmp_path / "w.html")


def test_gaps_of_a_distance_plot_have_a_colour_of_their_own(one_device):
    pytest.importorskip("matplotlib")
    x = WAVE[:80].copy()
    x[20:30] = np.nan
    figure = pyedmcl.distance_plot(x, device=one_device).plot()
    image = figure.axes[0].images[0]
    red, green, blue = image.to_rgba(image.get_array())[25, 25, :3]
    assert len({round(float(part), 3) for part in (red, green, blue)}) == 3  # neither grey nor white
    assert "gaps" in figure.axes[1].get_ylabel()
