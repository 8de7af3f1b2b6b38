"""The demo: from an empty folder to a picture."""

from __future__ import annotations

import csv
import json

import naive
import numpy as np
import pytest
from cli_helpers import inside, shell


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
    from pyedmcl.files import read_series

    folder, answer = demo
    found = answer["recurrence"]
    x = read_series(folder / "pyedmcl-demo" / "roessler.csv").values[:, 0]
    again = pyedmcl.recurrence_plot(x, m=3, tau=10, radius=1.3, pixels=1, device=one_device)
    assert found["recurrent"] == again.counts.sum()
    assert found["first_half"]["longest_diagonal_line"] > found["second_half"]["longest_diagonal_line"] > 100
    assert found["first_half"]["recurrence_rate"] > found["second_half"]["recurrence_rate"] > 0


def test_demo_map_and_truth_agree_with_its_files(demo):
    """The AUC again, from the files alone."""
    from pyedmcl.files import read_series
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
    assert naive.auc(rho.T[off], links[off]) == pytest.approx(answer["auc"], abs=1e-12)


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
