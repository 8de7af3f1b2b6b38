"""Recordings that stand one below the other in a file: which columns hold values, and which say whose rows they are."""

from __future__ import annotations

import numpy as np
import pytest
from cli_helpers import inside

import pyedmcl
from pyedmcl.simulate import coupled_maps

N = 160


@pytest.fixture
def table(tmp_path):
    """Columns site and plot (texts), and three series."""
    values = coupled_maps(n_series=3, n_steps=N, seed=1).values.astype(float)
    rows = [f"s{i // 80},p{i // 40},{','.join(map(repr, row))}" for i, row in enumerate(values.tolist())]
    path = tmp_path / "plots.csv"
    path.write_text("\n".join(["site,plot,a,b,c", *rows]) + "\n")
    return path, values


@pytest.mark.parametrize(("options", "taken"), [
    (["--groups", "site,plot"], [0, 1, 2]), (["--groups", "plot", "--columns=-site"], [0, 1, 2]),
    (["--groups", "plot", "--columns", "a,c"], [0, 2]), (["--groups", "site,plot", "--columns=-b"], [0, 2]),
])  # fmt: skip
def test_values_are_all_columns_but_those_of_groups(table, options, taken, tmp_path, one_device):
    path, values = table
    done = inside("xmap", path, "-o", tmp_path / "m.zarr", "--E", 2, "--device", one_device, *options)
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.xmap(values[:, taken], E=2, groups=np.arange(N) // 40, device=one_device)
    found = pyedmcl.open_xmap(tmp_path / "m.zarr")
    assert found.names == tuple("abc"[i] for i in taken)
    np.testing.assert_array_equal(np.asarray(found.rho), expected.rho)


def test_positions_of_groups_need_columns(table, one_device):
    done = inside("embed-dimension", table[0], "--groups", "0", "--device", one_device)
    assert done.returncode == 2 and "--groups needs" in done.stderr
