"""The pruned search: the exact search's bits, whatever data and options."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from pyedmcl.device.select import open_device
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.launch.staging import Pool, Staging
from pyedmcl.reference.edm import knn_float32_exact, knn_float64_exact
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.pruned import PrunedSearcher, in_enough_parts
from pyedmcl.search.searches import ExhaustiveSearcher
from pyedmcl.search.tables import load_states
from pyedmcl.tuning.parameters import using


def _smooth(n, seed=0):
    """A quasi-periodic series: states lie on a torus, so most pairs are pruned."""
    t = np.arange(n)
    return (np.sin(0.1 * t + seed) + 0.7 * np.sin(0.1 * np.sqrt(2) * t)).astype(np.float32)


@contextmanager
def _searcher(device, problem, x, query=None, room=None, **masks):
    executor = open_device(device)
    pool = Pool(executor)
    try:
        states = load_states(executor, problem, pool, x, query, **masks)
        yield PrunedSearcher(executor, states, room=room, pool=pool)
    finally:
        pool.release()


def _find(device, x, E, k, tau=1, radius=0, Tp=0, query=None, dtype="float32", **masks):
    n_query = len(x if query is None else query)
    problem = SearchProblem((E,), (k,), tau, Tp, -1 if query is not None else radius, len(x), n_query, dtype)
    with _searcher(device, problem, x, query, **masks) as searcher:
        lists = searcher.find()
        return *lists.read(open_device(device)), lists.visited


def _oracle(x, E, k, tau=1, radius=0, Tp=0, query=None, dtype="float32", library_mask=None, query_mask=None):
    # In the searcher a target counts only through the library mask: a target without gaps here.
    oracle = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squared, indices = oracle(
        x, E=E, tau=tau, k=k, Tp=Tp, exclusion_radius=radius, query=query, library_mask=library_mask,
        target=np.zeros(len(x)),
    )  # fmt: skip
    if query_mask is not None:
        indices[~query_mask] = -1
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
        dict(query=_smooth(333, 1) if seed != 5 else x[:333], library_mask=rng.random(n) < 0.6),
        dict(query_mask=rng.random(n) < 0.1, radius=-1),
    ]
    for more in options:
        _same(device, x, E, E + 1, tau=tau, **more)


def test_ties_go_to_the_smaller_row_and_are_not_all_looked_at(device):
    x = np.tile(np.float32([0, 1, 2, 3]), 1000)
    visited = _same(device, x, 1, 2)
    assert visited < 0.05  # one row in four has distance 0
    _same(device, np.zeros(500, np.float32), 2, 3)


def test_smooth_series_are_pruned_and_noise_is_not(device):
    x = _smooth(6000)
    with _searcher(device, SearchProblem((4,), (5,), 1, 0, 0, len(x), len(x)), x) as searcher:
        probed = searcher.probe()
        # Where a share is hopeless, it need not be known; the search is complete after it.
        assert searcher.probe(probed / 8) > probed / 8
        assert searcher.probe(2 * probed) == probed
        lists = searcher.find()
    assert lists.visited < 0.08
    assert probed == pytest.approx(lists.visited, rel=0.5)
    noise = np.random.default_rng(0).standard_normal(1500).astype(np.float32)
    assert _same(device, noise, 20, 21, tau=2) > 0.9


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
    problem = SearchProblem((2,), (3,), 1, 1, 4, len(x), len(x))
    data = Staging(executor, x[:, None])
    exact = ExhaustiveSearcher(executor, problem, "neighbours")
    rows, squared = next(exact.tables(exact.load(data, 0, 1))).read(executor, 2, 1)
    exact.release()
    data.release()
    found = _find(device, x, 2, 3, radius=4, Tp=1)
    assert np.array_equal(found[0], rows[0]) and found[1].tobytes() == squared[0].tobytes()


def test_what_cannot_be_searched(device):
    x = _smooth(100)
    own = SearchProblem((2,), (3,), 1, 0, 0, 100, 100)

    def refused(error, words, problem, *given, **options):
        with pytest.raises(error, match=words), _searcher(device, problem, x, *given, **options) as searcher:
            searcher.find()

    refused(InputError, "float64", replace(own, dtype="float64"))
    refused(InputError, "exclusion_radius=0", own, x)
    refused(InputError, "library_mask", own, library_mask=np.ones(99, bool))
    refused(DeviceMemoryError, "needs", own, room=1000)


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
        ties = np.random.default_rng(0).integers(0, 3, 700).astype(np.float32)
        _same(device, ties, 5, 30, query=_smooth(300))


@pytest.mark.parametrize(
    "each, n, sizes",
    [(16, 1 << 20, 16), (16, 1 << 17, 4), (8, 1 << 17, 8), (4, 100, 4)],
)
def test_parts_of_an_order_are_small_enough_for_all_compute_units(each, n, sizes):
    parameters = {"wg": 256 if each == 16 else 128, "each": each, "bits": 4}
    assert in_enough_parts(parameters, n, 132) == {**parameters, "each": sizes}


def test_parts_of_an_order_keep_room_for_their_counters():
    assert in_enough_parts({"wg": 1, "each": 16384, "bits": 8}, 5000, 64)["each"] == 4096
    assert in_enough_parts({"wg": 64, "each": 8, "bits": 4}, 100, 64)["each"] == 4
