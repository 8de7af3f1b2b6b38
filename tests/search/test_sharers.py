"""Work-items that share a query row, as on GPUs with few rows: the same neighbours with the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.kernels import build
from pyedmcl.search import plan
from pyedmcl.search import searches as exhaustive
from pyedmcl.search.plan import KnnPass, SearchProblem
from pyedmcl.simulate import coupled_maps
from pyedmcl.tuning.parameters import using

SCALAR = {"lanes": 1, "bound_share": 1, "hot": 32, "dims_per_pass": 20, "groups_per_unit": 4, "list_registers": 24}
# A tile that a series fills several times, with rounds of row groups; one that holds the series; none.
PARAMETERS = {
    "small tiles": SCALAR | {"wg": 32, "unroll": 8, "tile": 256},
    "one tile": SCALAR | {"wg": 64, "unroll": 4, "tile": 1024},
    "no tile": SCALAR | {"wg": 32, "unroll": 2, "tile": 0, "bound_share": 2},
}
SERIES = {
    "maps": coupled_maps(n_series=3, n_steps=500, seed=3).values,
    "ties": np.random.default_rng(5).integers(0, 4, (500, 3)).astype(float),
}


@pytest.fixture
def sharing(monkeypatch):
    """Called with a number of sharers, lets a device have them; returns the numbers with which texts were made."""
    made: list[int] = []

    def take(sharers):
        monkeypatch.setattr(plan, "SHARERS", sharers)
        monkeypatch.setattr(plan, "_FULL_GROUPS", 1 << 20)
        return made

    def noted(executor, spec, values, **others):
        made.append(values["sharers"])
        return build.build(executor, spec, values, **others)

    monkeypatch.setattr(exhaustive, "build", noted)
    return take


def searches(x, device):
    """Tables of one dimension with exclusion, gaps and rounds of row groups, and a map of several with a mask."""
    gaps, mask = x.copy(), np.arange(len(x)) % 3 != 0
    gaps[100:103, 0] = gaps[411, 1] = np.nan
    options = {"neighbors": "exhaustive", "device": device}
    tables = [
        pyedmcl.knn(x[:, 0], E=3, exclusion_radius=4, **options),
        pyedmcl.knn(np.tile(gaps[:, 0], 9), E=3, exclusion_radius=4, **options),
        pyedmcl.knn(x[:40, 1], E=2, k=24, exclusion_radius=9, **options),
    ]
    return [
        *(each for table in tables for each in (table.indices, table.distances)),
        pyedmcl.xmap(gaps, E=[1, 4, 2], Tp=1, lib_range=mask, dtype="float64", **options).rho,
    ]


@pytest.mark.parametrize("kind", PARAMETERS)
def test_neighbors_are_the_same(device, sharing, kind):
    in_memory = {} if quirks_for(open_device(device).info).lists_in_registers else {"list_registers": 8}
    with using(knn=PARAMETERS[kind] | in_memory):
        for name, x in SERIES.items():
            made = sharing(1)
            made.clear()
            wanted = searches(x, device)
            assert set(made) == {1}
            sharers = 16 if kind == "one tile" else 4
            sharing(sharers)
            for found, before in zip(searches(x, device), wanted, strict=True):
                np.testing.assert_array_equal(found, before, err_msg=name)
            assert sharers in made


def test_rows_are_shared_where_they_are_few():
    parameters = {**PARAMETERS["one tile"], "wg": 128, "unroll": 16}
    search = SearchProblem((20,), (21,), 1, 0, 0, 2000, 2000)
    one = KnnPass(search, "weights", parameters)
    shared = one.shared(1, units=132)
    assert (shared.sharers, shared.rows_per_tile, shared.tiles) == (plan.SHARERS, 16, 125)
    assert (shared.scratch_bytes, shared.capacities) == (one.scratch_bytes, one.capacities)
    assert one.shared(1000, units=132) is one  # rows keep the device busy by themselves
    assert one.shared(1, units=8) is one
    assert KnnPass(replace(search, n_library=200), "weights", parameters).shared(1, units=132).sharers == 1
    assert KnnPass(search, "weights", {**parameters, "lanes": 16}).shared(1, units=132).sharers == 1
    assert KnnPass(search, "weights", {**parameters, "wg": 1}).shared(1, units=132).sharers == 1
