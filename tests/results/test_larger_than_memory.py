"""What reads a stored map holds some rows of it at a time: edges, pictures, files, in Python and in a shell."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from store_helpers import make_manifest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.files import write_matrix
from pyedmcl.jobs import XmapStore
from pyedmcl.plot import heat_map

N = 5000
SQUARE = N * N * 4
ROWS = 250


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A map of 100 MB on the disk; each row is the one before it, turned by one."""
    path = tmp_path_factory.mktemp("large") / "map.zarr"
    row = np.random.default_rng(4).uniform(-0.2, 0.9, N).astype(np.float32)
    row[0], row[5] = 1, 0.95
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS)) as store:
        store.set_E(np.full(N, 3))
        for block in range(store.n_blocks):
            store.write(block, np.stack([np.roll(row, i) for i in range(*store.rows(block))]))
    return path


@pytest.fixture
def little():
    """Fails where more than a part of the square was held."""
    import matplotlib.figure  # noqa: F401  # its own memory is none of ours

    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < SQUARE * 0.6, f"{peak / 1e6:.0f} MB"


def test_picture_and_network(stored, little, tmp_path):
    result = pyedmcl.open_xmap(stored)
    title = heat_map(result.rho, result.names, tmp_path / "map.png", max_cells=500).axes[0].get_title()
    assert title == "5,000 series; each cell is the mean of 10 x 10 pairs"
    assert "the strongest 3 of" in result.plot_network(top=3).axes[0].get_title()


def test_archive(stored, little, tmp_path):
    write_matrix(tmp_path / "map.npz", pyedmcl.open_xmap(stored).rho, [str(i) for i in range(N)], 3)
    assert (tmp_path / "map.npz").stat().st_size > SQUARE


@pytest.mark.parametrize("words", [("export", "-o", "map.npy"), ("export", "--edges", "--top", "3", "-o", "edges.csv")])
def test_commands(stored, little, tmp_path, words):
    command, *options, name = words
    outcome = CliRunner().invoke(app, [command, str(stored), *options, str(tmp_path / name), "--quiet"])
    assert outcome.exit_code == 0, outcome.output
    if name == "edges.csv":
        edges = [line.split(",")[2:4] for line in (tmp_path / name).read_text().splitlines()[1:]]
        assert edges == [[f"cell {i}", f"cell {i + 5}"] for i in range(3)]
    else:
        assert (tmp_path / name).stat().st_size > SQUARE
