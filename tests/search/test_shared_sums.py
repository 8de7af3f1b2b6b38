"""The sweep that shares sums along diagonals: the exact search's bits, whatever data and options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_helpers import BASE

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.launch.staging import Pool
from pyedmcl.reference.edm import knn_float32_exact, knn_float64_exact
from pyedmcl.search import choose, searcher
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.searches import SharedSumsSearcher, operations_per_pair, shared_sums_pay
from pyedmcl.search.tables import load_states
from pyedmcl.tuning.parameters import using


def _same(device, x, E, k, tau=1, radius=0, Tp=0, query=None, library_mask=None, query_mask=None):
    dtype = x.dtype.name
    n_query = len(x if query is None else query)
    problem = SearchProblem((E,), (k,), tau, Tp, -1 if query is not None else radius, len(x), n_query, dtype)
    executor = open_device(device)
    pool = Pool(executor)
    try:
        states = load_states(executor, problem, pool, x, query, library_mask=library_mask, query_mask=query_mask)
        rows, squared = SharedSumsSearcher(executor, states, pool=pool).find().read(executor)
    finally:
        pool.release()
    oracle = knn_float32_exact if dtype == "float32" else knn_float64_exact
    wanted, indices = oracle(
        x, E=E, tau=tau, k=k, Tp=Tp, exclusion_radius=radius, query=query, library_mask=library_mask,
        target=np.zeros(len(x)),
    )  # fmt: skip
    if query_mask is not None:
        indices[~query_mask] = -1
    assert np.array_equal(rows, indices)
    assert squared.tobytes() == np.where(indices < 0, x.dtype.type(3e38), wanted).astype(dtype).tobytes()


@pytest.mark.parametrize("E, tau", [(1, 1), (3, 2), (8, 1), (20, 3)])
def test_random_problems_equal_the_oracle(device, E, tau):
    rng = np.random.default_rng(E)
    x = rng.standard_normal(611).astype(np.float32)
    _same(device, x, E, E + 1, tau, radius=int(rng.integers(0, 9)), Tp=3)
    x[rng.integers(0, 611, 9)] = np.nan
    query = rng.standard_normal(203).astype(np.float32)
    _same(device, x, E, E + 1, tau, query=query, library_mask=rng.random(611) < 0.7)
    _same(device, np.round(x), E, 4, tau, Tp=-2, query_mask=rng.random(611) < 0.3)


def test_short_series_and_double_precision(device):
    rng = np.random.default_rng(0)
    for n in (9, 12, 70):
        _same(device, rng.standard_normal(n).astype(np.float32), 8, 9)
    if not open_device(device).info.fp64:
        pytest.skip("the device has no float64")
    _same(device, np.cumsum(rng.standard_normal(400)), 9, 10, radius=2)


def test_parameters_change_nothing(device):
    with using(shared_sums={"lanes": 1, "wg": 32}):
        _same(device, np.random.default_rng(0).standard_normal(500).astype(np.float32), 10, 11, 2)


def test_sharing_saves_arithmetic():
    assert operations_per_pair(20, 8) < 14 < 2 * 20


@pytest.mark.parametrize("given", ["plain", "gaps", "excluded", "cross", "target", "explicit"])
def test_long_searches_take_it_and_give_the_same(device, given, monkeypatch):
    rng = np.random.default_rng(5)
    x = np.cumsum(rng.standard_normal(700))
    options = {"E": 9}
    if given == "gaps":
        x[rng.integers(0, 700, 9)] = np.nan
    if given == "excluded":
        options |= {"exclusion_radius": 7, "Tp": 2, "tau": 2}
    if given == "cross":
        options["pred"] = np.cumsum(rng.standard_normal(300))
    if given == "target":
        options["target"] = np.where(rng.random(700) < 0.1, np.nan, rng.standard_normal(700))
    if given == "explicit":
        options["neighbors"] = "exhaustive"
    before = pyedmcl.simplex(x, device=device, **options)
    asked = []

    def always(info, problem, n_states, n_queries):
        asked.append((n_states, n_queries))
        return not problem.coordinates and len(problem.dims) == 1

    for room in (choose, choose, searcher):
        monkeypatch.setattr(room, "shared_sums_pay", always)
    after = pyedmcl.simplex(x, device=device, **options)
    assert asked
    # Weights come from another kernel: an exponential may be rounded otherwise.
    np.testing.assert_allclose(after.predicted, before.predicted, rtol=1e-5, atol=1e-5)
    (record,) = after.provenance["neighbors"]
    assert record["used"] == "exhaustive" and "shared along diagonals" in record["why"]
    assert before.provenance["neighbors"] == [] or given == "explicit"


def test_it_pays_for_long_series_of_many_dimensions_on_gpus():
    gpu = replace(BASE, kind="gpu", runtime="nvidia")

    def asked(info, E, n, k=None):
        return shared_sums_pay(info, SearchProblem((E,), (k or E + 1,), 1, 1, 0, n, n), n, n)

    assert asked(gpu, 20, 1 << 20) and asked(gpu, 10, 1 << 18)
    assert not asked(gpu, 3, 1 << 20) and not asked(gpu, 20, 1 << 16) and not asked(gpu, 20, 1 << 20, 100)
    assert not asked(replace(gpu, kind="cpu", runtime="pocl"), 20, 1 << 20)
