"""A table of series, for the tests of commands that have none of their own."""

from __future__ import annotations

import csv

import pytest

from pyedmcl.simulate import coupled_maps


@pytest.fixture(scope="module")
def network():
    return coupled_maps(6, 300, seed=3)


@pytest.fixture
def table(tmp_path, network):
    """A CSV of six series with a time column of years."""
    path = tmp_path / "series.csv"
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["year", *network.names])
        writer.writerows([1700 + i, *map(repr, row)] for i, row in enumerate(network.values.astype(float).tolist()))
    return path
