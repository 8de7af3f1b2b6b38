"""Other searches than the exhaustive one: the same neighbours where they are exact, the recall asked for where not."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from series_helpers import gaps, lorenz, lorenz_x, quantised

import pyedmcl
from pyedmcl.errors import DeviceMemoryError, InputError, MissingExtraError
from pyedmcl.search import choose
from pyedmcl.search.index import wilson

EXACT = ("kdtree", "pruned")
FAISS = ("ivf", "hnsw")


CASES = {
    "plain": lambda: (lorenz_x(), {}),
    "gaps": lambda: (gaps(lorenz_x()), {"Tp": 2, "exclusion_radius": 7}),
    "negative-Tp": lambda: (gaps(lorenz_x(1000)), {"Tp": -3}),
    "ties": lambda: (quantised(1200), {"Tp": 1}),
    "constant": lambda: (np.full(700, 1.5, np.float32), {}),
    "cross": lambda: (lorenz_x(2000), {"query": gaps(lorenz_x(900))}),
    "cross-longer": lambda: (gaps(lorenz_x(900)), {"query": lorenz_x(2000), "Tp": 1}),
    "wide-radius": lambda: (lorenz_x(1500), {"exclusion_radius": 200}),
    "none-legal": lambda: (lorenz_x(300), {"exclusion_radius": 300}),
    "float64": lambda: (lorenz_x(1200).astype(np.float64) + 0.1, {"dtype": "float64"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", EXACT)
def test_exact_indices_give_the_bits_of_the_exhaustive_search(device, name, case):
    if name == "kdtree":
        pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    x, options = CASES[case]()
    for E in (1, 4):
        want = pyedmcl.knn(x, E=E, device=device, **options)
        found = pyedmcl.knn(x, E=E, neighbors=name, device=device, **options)
        assert np.array_equal(want.indices, found.indices)
        assert np.array_equal(want.distances, found.distances)
        (record,) = found.provenance["neighbors"]
        assert record["asked"] == name and record["E"] == E and record["recall"] == 1


@pytest.mark.parametrize("name", EXACT)
def test_simplex_predicts_the_same(one_device, name):
    x = gaps(lorenz_x(2000))
    chosen = np.arange(2000) % 5 > 0
    for options in ({}, {"lib_range": (0, 900), "pred_range": (1000, 1900)}, {"valid_lib": chosen}):
        want = pyedmcl.simplex(x, E=3, tau=2, device=one_device, **options)
        found = pyedmcl.simplex(x, E=3, tau=2, neighbors=name, device=one_device, **options)
        np.testing.assert_allclose(found.predicted, want.predicted, rtol=2e-6)
        assert found.provenance["neighbors"][0]["used"] == name


def test_a_tree_of_several_columns(one_device):
    pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    x = np.asarray(lorenz(1500), np.float32)
    names = ("exhaustive", "kdtree")
    want, found = (pyedmcl.simplex(x, target=x[:, 0], E=2, neighbors=n, device=one_device) for n in names)
    np.testing.assert_allclose(found.predicted, want.predicted, rtol=2e-6)
    pruned = pyedmcl.simplex(x, target=x[:, 0], E=2, neighbors="pruned", device=one_device)
    assert pruned.provenance["neighbors"][0]["used"] == "exhaustive"
    assert "delays of one series" in pruned.provenance["neighbors"][0]["why"]


@pytest.mark.parametrize("name", FAISS)
def test_recall_is_measured_and_reached(one_device, name):
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    before = faiss.omp_get_max_threads()
    for x, options in ((lorenz_x(4000), {}), (gaps(lorenz_x(4000)), {"exclusion_radius": 20, "Tp": 1})):
        want = pyedmcl.knn(x, E=4, device=one_device, **options)
        found = pyedmcl.knn(x, E=4, neighbors=name, recall=0.95, device=one_device, **options)
        (record,) = found.provenance["neighbors"]
        last = want.distances[:, -1:]
        there = np.isfinite(want.distances)
        true = ((found.distances <= last) & there).sum() / there.sum()
        low, high = record["interval"]
        assert record["used"] == name and low <= record["recall"] <= high
        assert record["recall"] >= 0.95 and true >= 0.94
        assert low - 0.02 <= true <= high + 0.02
        assert "Wilson" in record["measured"]
        legal = found.indices >= 0
        t = np.broadcast_to(np.arange(len(x))[:, None], legal.shape)
        assert (abs(found.indices - t)[legal] > options.get("exclusion_radius", 0)).all()
    assert faiss.omp_get_max_threads() == before


@pytest.mark.parametrize("name", FAISS)
def test_exact_is_used_where_the_recall_is_not_reached(one_device, name, monkeypatch):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    from pyedmcl.search import index

    kind = {"ivf": index.InvertedLists, "hnsw": index.Graph}[name]
    monkeypatch.setattr(kind, "refine", lambda self: False)
    plain = kind.search

    def poor(self, points, m):
        place, last = plain(self, points, m)
        return np.where(np.arange(m) % 2, place, -1), last

    monkeypatch.setattr(kind, "search", poor)
    x = lorenz_x(2000)
    found = pyedmcl.knn(x, E=3, neighbors=name, device=one_device)
    assert np.array_equal(found.indices, pyedmcl.knn(x, E=3, device=one_device).indices)
    (record,) = found.provenance["neighbors"]
    assert record["used"] == "exhaustive" and "recall of 0." in record["why"]


def test_short_libraries_are_searched_exhaustively(one_device):
    for name in (*EXACT, *FAISS):
        found = pyedmcl.knn(lorenz_x(60), E=2, neighbors=name, device=one_device)
        (record,) = found.provenance["neighbors"]
        assert record["used"] == "exhaustive" and "too few" in record["why"]


def test_more_neighbours_than_rows(one_device):
    names = ("exhaustive", "kdtree")
    want, found = (pyedmcl.knn(lorenz_x(100), E=1, k=200, neighbors=n, device=one_device) for n in names)
    assert np.array_equal(want.indices, found.indices)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"neighbors='tree': one of 'exact', 'auto'"):
        pyedmcl.knn(lorenz_x(100), E=1, neighbors="tree")
    for recall in (0, 1.01, -1, float("nan"), True, "high", None):
        with pytest.raises(InputError, match=r"recall=.*at most 1"):
            pyedmcl.simplex(lorenz_x(100), E=1, recall=recall)


@pytest.mark.parametrize("name, package", [("kdtree", "scipy"), ("ivf", "faiss"), ("hnsw", "faiss")])
def test_a_missing_package_is_named_with_its_extra(one_device, monkeypatch, name, package):
    plain = builtins.__import__

    def without(module, *rest):
        if module.partition(".")[0] == package:
            raise ImportError(module)
        return plain(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pyedmcl\[approximate\]"):
        pyedmcl.knn(lorenz_x(2000), E=2, neighbors=name, device=one_device)


def test_wilson_interval():
    # Newcombe, Stat. Med. 17, 857 (1998), table I: 81 of 263, and 0 of 20.
    assert np.allclose(wilson(81, 263), (0.2553, 0.3662), atol=5e-5)
    assert np.allclose(wilson(0, 20), (0.0, 0.1611), atol=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_intrinsic_dimension_of_known_clouds():
    rng = np.random.default_rng(3)
    flat = rng.random((4000, 2)) @ rng.standard_normal((2, 10))
    assert 1.6 < choose.intrinsic_dimension(flat) < 2.4
    assert 3.2 < choose.intrinsic_dimension(rng.random((4000, 4))) < 4.8
    assert choose.intrinsic_dimension(np.ones((100, 3))) == 0


@pytest.mark.parametrize("name", EXACT)
def test_maps_and_dimensions_are_the_same(one_device, name, tmp_path):
    data = np.asarray(lorenz(900), np.float32)
    data[100:103, 1] = np.nan
    options = {"E": [2, 3, 2], "tau": 2, "exclusion_radius": 3, "device": one_device}
    want, found = (pyedmcl.xmap(data, neighbors=n, **options) for n in ("exhaustive", name))
    np.testing.assert_allclose(found.rho, want.rho, atol=2e-6)
    assert {record["used"] for record in found.provenance["neighbors"]} == {name}
    stored = pyedmcl.xmap(data, neighbors=name, out=tmp_path / "map", **options)
    assert np.array_equal(np.asarray(stored.rho), found.rho)
    want, found = (pyedmcl.embed_dimension(data, E_max=4, neighbors=n, device=one_device) for n in ("exhaustive", name))
    np.testing.assert_allclose(found.rho, want.rho, atol=2e-6)
    assert {record["E"] for record in found.provenance["neighbors"]} == {1, 2, 3, 4}


def test_exact_runs_what_it_chose(one_device, monkeypatch):
    from dataclasses import replace

    from pyedmcl.search.rates import DEFAULTS, KnownRates

    # Rates by which pruning pays in short series, too, so that the test is quick.
    quick = replace(DEFAULTS["cpu"][1], order_call=1e-6, order_lag=1e-10, walk_call=1e-6, walk_change=1e-10,
                    walk_lag=3e-11)  # fmt: skip
    monkeypatch.setattr(choose, "rates_of", lambda info: KnownRates(quick, "invented"))
    noise = np.random.default_rng(1).standard_normal(3000).astype(np.float32)
    for x, E, used in ((lorenz_x(3000), 2, "pruned"), (noise, 12, "exhaustive")):
        want = pyedmcl.knn(x, E=E, neighbors="exhaustive", device=one_device)
        for name in ("exact", "auto"):
            found = pyedmcl.knn(x, E=E, neighbors=name, device=one_device)
            assert np.array_equal(want.indices, found.indices) and np.array_equal(want.distances, found.distances)
            (record,) = found.provenance["neighbors"]
            assert (record["asked"], record["used"]) == (name, used)
            assert "of all pairs" in record["why"] and "rates: invented" in record["why"]


@pytest.mark.parametrize("name", ["kdtree", *FAISS])
def test_exact_is_used_where_an_index_does_not_fit(one_device, name, monkeypatch):
    from pyedmcl.search import searches

    monkeypatch.setattr(searches, "host_available", lambda: 1 << 20)
    x = lorenz_x(2000)
    found = pyedmcl.knn(x, E=3, neighbors=name, device=one_device)
    (record,) = found.provenance["neighbors"]
    assert record["used"] == "exhaustive" and "bytes on the host" in record["why"]
    assert np.array_equal(found.indices, pyedmcl.knn(x, E=3, device=one_device).indices)


@pytest.mark.parametrize("name", ["exact", "exhaustive", "kdtree"])
def test_tables_that_do_not_fit_the_device_are_refused(one_device, name, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "100000")
    with pytest.raises(DeviceMemoryError, match=r"\d,\d{3} bytes"):
        pyedmcl.knn(lorenz_x(20_000), E=5, neighbors=name, device=one_device)
