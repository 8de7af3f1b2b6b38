"""The pruned search: the exact search's bits, whatever data and options."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.device.session import open_device
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.launch.staging import Staging
from pyedmcl.neighbors.exact import ExactSearch
from pyedmcl.neighbors.plan import Search
from pyedmcl.neighbors.pruned import PrunedSearch
from pyedmcl.reference.edm import knn_float32_exact, knn_float64_exact
from pyedmcl.tuning.parameters import using


def _smooth(n, seed=0):
    """A quasi-periodic series: states lie on a torus, so most pairs are pruned."""
    t = np.arange(n)
    return (np.sin(0.1 * t + seed) + 0.7 * np.sin(0.1 * np.sqrt(2) * t)).astype(np.float32)


def _find(device, x, E, k, tau=1, radius=0, Tp=0, query=None, dtype="float32", **rows):
    executor = open_device(device)
    n_query = len(x if query is None else query)
    search = Search((E,), (k,), tau, Tp, -1 if query is not None else radius, len(x), n_query, dtype)
    engine = PrunedSearch(executor, search, x, query, **rows)
    try:
        found = engine.find(E)
        return *found.read(executor), found.visited
    finally:
        engine.release()


def _oracle(x, E, k, tau=1, radius=0, Tp=0, query=None, dtype="float32", library_rows=None, query_rows=None):
    # In the engine a target counts only through library_rows: a target without gaps here.
    oracle = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squared, indices = oracle(
        x, E=E, tau=tau, k=k, Tp=Tp, exclusion_radius=radius, query=query, library_rows=library_rows,
        target=np.zeros(len(x)),
    )  # fmt: skip
    if query_rows is not None:
        indices[~query_rows] = -1
    return indices, np.where(indices < 0, np.dtype(dtype).type(3e38), squared)


def _same(device, x, E, k, **options):
    rows, squared, visited = _find(device, x, E, k, **options)
    wanted_rows, wanted = _oracle(x, E, k, **options)
    assert np.array_equal(rows, wanted_rows)
    assert squared.tobytes() == wanted.astype(squared.dtype).tobytes()
    return visited


@pytest.mark.parametrize("seed", range(6))
def test_random_problems_equal_the_oracle(device, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(300, 900))
    kinds = [
        rng.standard_normal(n), _smooth(n), rng.integers(0, 3, n).astype(float), np.sin(np.arange(n) * np.pi / 8),
        np.cumsum(rng.standard_normal(n)), 1e6 + np.round(rng.standard_normal(n), 1),
    ]  # fmt: skip
    x = kinds[seed].astype(np.float32)
    if seed % 2:
        x[rng.integers(0, n, 12)] = np.nan
    E, tau = (1, 2, 3, 5, 8, 20)[seed], int(rng.integers(1, 4))
    options = [
        dict(radius=int(rng.integers(0, 20)), Tp=int(rng.integers(-5, 6))),
        dict(query=_smooth(333, 1) if seed != 5 else x[:333], library_rows=rng.random(n) < 0.6),
        dict(query_rows=rng.random(n) < 0.1, radius=-1),
    ]
    for more in options:
        _same(device, x, E, E + 1, tau=tau, **more)


def test_ties_go_to_the_smaller_row_and_are_not_all_looked_at(device):
    x = np.tile(np.float32([0, 1, 2, 3]), 1000)
    visited = _same(device, x, 1, 2)
    assert visited < 0.05  # one row in four has distance 0
    _same(device, np.zeros(500, np.float32), 2, 5)


def test_smooth_series_are_pruned_and_noise_is_not(device):
    x = _smooth(6000)
    executor = open_device(device)
    engine = PrunedSearch(executor, Search((3, 6), (4, 7), 1, 0, 0, len(x), len(x)), x)
    probed = engine.probe(6)
    # Where a share is hopeless, it need not be known; the search is complete after it.
    assert engine.probe(6, probed / 8) > probed / 8
    assert engine.probe(6, 2 * probed) == probed
    found = engine.find(6)
    engine.release()
    assert found.visited < 0.08
    assert probed == pytest.approx(found.visited, rel=0.5)
    noise = np.random.default_rng(0).standard_normal(1500).astype(np.float32)
    assert _same(device, noise, 20, 21) > 0.9


@pytest.mark.parametrize("n", [4, 5, 16, 17, 33, 257])
def test_short_series(device, n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    _same(device, x, 3, 4)


def test_no_state_at_all(device):
    x = np.full(50, np.nan, np.float32)
    rows, squared, visited = _find(device, x, 2, 3)
    assert (rows == -1).all() and (squared == np.float32(3e38)).all() and visited == 0


@pytest.mark.parametrize("k", [1, 40])
def test_other_counts_and_double_precision(device, k):
    if not open_device(device).info.fp64:
        pytest.skip("the device has no float64")
    x = _smooth(700).astype(np.float64) + np.random.default_rng(1).standard_normal(700) * 0.01
    _same(device, x, 4, k, dtype="float64")
    _same(device, x, 1, k, dtype="float64", radius=3)
    _same(device, x.astype(np.float32), 4, k)


def test_outliers_and_wide_ranges_lose_nothing(device):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(800) * 10.0 ** rng.integers(-12, 12, 800)).astype(np.float32)
    _same(device, x, 4, 5)
    x = _smooth(900)
    x[400] = 1e12
    assert _same(device, x, 3, 4) < 0.5


def test_exact_search_agrees_on_a_longer_series(device):
    executor = open_device(device)
    x = np.cumsum(np.random.default_rng(5).standard_normal(20_011)).astype(np.float32)
    search = Search((2,), (3,), 1, 1, 4, len(x), len(x))
    data = Staging(executor, x[:, None])
    exact = ExactSearch(executor, search, "neighbours")
    rows, squared = next(exact.tables(*exact.load(data, 0, 1))).read(executor, 2, 1)
    exact.release()
    data.release()
    found = _find(device, x, 2, 3, radius=4, Tp=1)
    assert np.array_equal(found[0], rows[0]) and found[1].tobytes() == squared[0].tobytes()


def test_what_cannot_be_searched(device, monkeypatch):
    executor = open_device(device)
    x = _smooth(100)
    with pytest.raises(InputError, match="float64"):
        PrunedSearch(executor, Search((2,), (3,), 1, 0, 0, 100, 100, "float64"), x)
    with pytest.raises(InputError, match="exclusion_radius=0"):
        PrunedSearch(executor, Search((2,), (3,), 1, 0, 0, 100, 100), x, x)
    with pytest.raises(InputError, match="library_rows"):
        PrunedSearch(executor, Search((2,), (3,), 1, 0, 0, 100, 100), x, library_rows=np.ones(99, bool))
    engine = PrunedSearch(executor, Search((2,), (3,), 1, 0, 0, 100, 100), x, room=1000)
    with pytest.raises(DeviceMemoryError, match="needs"):
        engine.find(2)
    with pytest.raises(InputError, match="E=4"):
        engine.find(4)


@pytest.mark.parametrize(
    "walk, order",
    [
        ({"lanes": 1, "wg": 32, "unroll": 4, "list_registers": 24}, {"wg": 64, "bits": 4, "each": 8}),
        ({"lanes": 1, "wg": 128, "leaf": 8, "unroll": 8, "list_registers": 4}, {"wg": 128, "bits": 4, "each": 4}),
        ({"lanes": 4, "wg": 1, "leaf": 64, "unroll": 2, "list_registers": 4}, {"wg": 1, "bits": 4, "each": 4096}),
    ],
)
def test_parameters_change_nothing(device, walk, order):
    with using(pruned=walk, pruned_order=order):
        visited = _same(device, _smooth(1500), 5, 6, radius=2)
        assert visited < 0.5
        _same(device, np.random.default_rng(0).integers(0, 9, 700).astype(np.float32), 1, 30, query=_smooth(300))
