"""The simulated network, the ROC AUC, and the demo from an empty folder to a picture."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_helpers import inside, shell

from pyedmcl.errors import InputError
from pyedmcl.simulate import coupled_maps, link_auc, roc_auc


def slow_auc(score, truth):
    """Over all pairs of a true and a false case."""
    wins = [(t > f) + 0.5 * (t == f) for t in score[truth] for f in score[~truth]]
    return np.mean(wins)


@pytest.mark.parametrize("seed", range(4))
def test_auc_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(60) < 0.3
    for score in (rng.random(60) + 0.3 * truth, rng.integers(0, 4, 60).astype(float)):
        assert roc_auc(score, truth) == pytest.approx(slow_auc(score, truth), abs=1e-12)


def test_auc_of_the_clear_cases():
    truth = np.array([True, True, False, False])
    assert roc_auc([4, 3, 2, 1], truth) == 1
    assert roc_auc([1, 2, 3, 4], truth) == 0
    assert roc_auc([7, 7, 7, 7], truth) == 0.5
    assert roc_auc([2, np.nan, 1, np.nan], truth) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert np.isnan(roc_auc([1, 2], [True, True]))
    with pytest.raises(InputError, match="one score each"):
        roc_auc([1, 2, 3], truth)


def test_link_auc_reads_rows_as_effects():
    links = np.zeros((4, 4), bool)
    links[0, 1] = links[2, 3] = True
    rho = np.full((4, 4), 0.1)
    np.fill_diagonal(rho, 1)  # never counts
    rho[1, 0] = rho[3, 2] = 0.9
    assert link_auc(rho, links) == 1
    assert link_auc(rho.T, links) < 0.5
    with pytest.raises(InputError, match="shape"):
        link_auc(rho[:3], links)


def test_network_is_what_it_says():
    network = coupled_maps(20, 150, seed=4)
    assert network.values.shape == (150, 20) and network.values.dtype == np.float32
    assert network.values.min() > 0 and network.values.max() < 1
    assert not network.links.diagonal().any()
    assert set(network.links.sum(axis=0)) == {1, 2}, "each series has one or two drivers"
    assert len(set(network.names)) == 20
    np.testing.assert_array_equal(network.values, coupled_maps(20, 150, seed=4).values)
    assert not np.array_equal(network.values, coupled_maps(20, 150, seed=5).values)


def test_a_series_follows_its_drivers_and_itself_only():
    network = coupled_maps(12, 400, noise=0, seed=2)
    x = network.values.astype(np.float64)
    inside = ((x > 2e-3) & (x < 1 - 2e-3))
    for j in range(12):
        drive = x[:-1, network.links[:, j]].mean(axis=1)
        now, then = x[:-1, j], x[1:, j]
        usable = inside[:-1, j] & inside[1:, j]
        rates = ((then / now + 0.4 * drive) / (1 - now))[usable]
        assert rates.std() < 1e-3 and 3.65 <= rates.mean() <= 3.85, f"series {j} has one growth rate"


def test_series_over_one_other():
    network = coupled_maps(15, 1, seed=1)
    over_one = network.over_one()
    for i in range(15):
        for j in range(15):
            way = any(network.links[i, k] and network.links[k, j] for k in range(15))
            assert over_one[i, j] == (way and i != j and not network.links[i, j])


@pytest.mark.parametrize("options", [{"n_series": 2}, {"n_steps": 0}, {"strength": 0.9}, {"noise": -1}])
def test_parameters_out_of_range(options):
    with pytest.raises(InputError):
        coupled_maps(**options)


@pytest.fixture(scope="module")
def demo(tmp_path_factory, one_device):
    """One run in an empty folder: (folder, JSON)."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")
    folder = tmp_path_factory.mktemp("empty")
    done = shell("demo", "--json", "--device", one_device, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_demo_finds_the_links(demo):
    _, answer = demo
    assert answer["auc"] > 0.9
    assert answer["links_among_strongest"] > 0.5 * answer["n_links"]
    assert len(answer["E"]) == 64 and max(answer["E"]) <= 8


def test_demo_leaves_what_it_says(demo):
    folder, answer = demo
    assert {entry.name for entry in folder.iterdir()} == {"pyedmcl-demo"}
    left = folder / "pyedmcl-demo"
    assert {entry.name for entry in left.iterdir()} == {"series.csv", "links.csv", "edges.csv", "map.zarr", "map.png",
                                                       "roessler.csv", "recurrence.png"}  # fmt: skip
    for picture in ("map.png", "recurrence.png"):
        assert (left / picture).read_bytes().startswith(b"\x89PNG")
    with (left / "links.csv").open(newline="") as lines:
        links = {(row["cause"], row["effect"]) for row in csv.DictReader(lines)}
    assert len(links) == answer["n_links"]
    with (left / "edges.csv").open(newline="") as lines:
        edges = list(csv.DictReader(lines))
    assert len(edges) == answer["n_links"]
    assert all((edge["truth"] == "link") == ((edge["cause"], edge["effect"]) in links) for edge in edges)
    rho = [float(edge["rho"]) for edge in edges]
    assert rho == sorted(rho, reverse=True)


def test_demo_quantifies_recurrence(demo, one_device):
    import pyedmcl
    from pyedmcl.io import read_series

    folder, answer = demo
    found = answer["recurrence"]
    x = read_series(folder / "pyedmcl-demo" / "roessler.csv").values[:, 0]
    again = pyedmcl.recurrence_plot(x, m=3, tau=10, radius=1.3, pixels=1, device=one_device)
    assert found["recurrent"] == again.counts.sum()
    assert found["first_half"]["longest_diagonal_line"] > found["second_half"]["longest_diagonal_line"] > 100
    assert found["first_half"]["recurrence_rate"] > found["second_half"]["recurrence_rate"] > 0


def test_demo_map_and_truth_agree_with_its_files(demo):
    """The AUC again, from the files alone."""
    from pyedmcl.io import read_series
    from pyedmcl.jobs import open_store

    folder, answer = demo
    left = folder / "pyedmcl-demo"
    names = list(read_series(left / "series.csv").names)
    links = np.zeros((64, 64), bool)
    with (left / "links.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            links[names.index(row["cause"]), names.index(row["effect"])] = True
    rho = np.asarray(open_store(left / "map.zarr").rho)
    off = ~np.eye(64, dtype=bool)
    assert slow_auc(rho.T[off], links[off]) == pytest.approx(answer["auc"], abs=1e-12)


def test_demo_runs_again_in_the_same_place_and_says_what_it_found(demo, one_device):
    folder, answer = demo
    done = inside("demo", "--device", one_device, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"ROC AUC against the true links: {answer['auc']:.3f}" in done.stdout
    assert "map.png" in done.stdout and "recurrence.png" in done.stdout
    strongest = answer["edges"][0]
    assert any(strongest["cause"] in line and strongest["effect"] in line and strongest["truth"] in line
               for line in done.stdout.splitlines())  # fmt: skip


def test_demo_refuses_a_file_in_its_place(tmp_path):
    from typer.testing import CliRunner

    from pyedmcl.cli.app import app

    (tmp_path / "taken").write_text("mine")
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "taken")])
    assert result.exit_code == 5 and "not a folder" in result.output
    assert (tmp_path / "taken").read_text() == "mine"


def test_files_of_others_are_not_replaced(tmp_path):
    (tmp_path / "series.csv").write_text("mine\n1\n")
    done = inside("demo", "-o", tmp_path)
    assert done.returncode == 5 and "no demo has written" in done.stderr and "-o" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["series.csv"]
    assert (tmp_path / "series.csv").read_text() == "mine\n1\n"
