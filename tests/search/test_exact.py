"""What neighbors="exact" chooses changes no bit, and libraries of one map may be searched differently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from series_helpers import gaps, lorenz, lorenz_x, quantised

import pyedmcl
from pyedmcl.errors import DeviceMemoryError
from pyedmcl.search import choose
from pyedmcl.search.choose import Patience, SearchRequest, decided_beforehand
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.pruned import PrunedSearcher
from pyedmcl.search.rates import DEFAULTS, KnownRates
from pyedmcl.search.searcher import _runs

# Rates by which pruning and trees pay in short series, too, so that the tests are quick.
QUICK = replace(
    DEFAULTS["cpu"][1], exact_change=1e-7, order_call=1e-6, order_lag=1e-10, walk_call=1e-6, walk_change=1e-10,
    walk_lag=3e-11, tree_build=1e-10, tree_neighbor=1e-10, tree_visit=1e-10,
)  # fmt: skip


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(choose, "rates_of", lambda info: KnownRates(QUICK, "invented"))


def used(result):
    return {(record["E"], record["used"]) for record in result.provenance["neighbors"]}


CASES = {
    "plain": lambda: (lorenz_x(), {}),
    "gaps": lambda: (gaps(lorenz_x()), {"Tp": 2, "exclusion_radius": 7}),
    "ties": lambda: (quantised(1200), {"Tp": 1}),
    "duplicates": lambda: (np.tile(lorenz_x(300), 4), {}),
    "constant": lambda: (np.full(700, 1.5, np.float32), {}),
    "cross": lambda: (lorenz_x(2000), {"query": gaps(lorenz_x(900))}),
    "wide-radius": lambda: (lorenz_x(1500), {"exclusion_radius": 200}),
    "float64": lambda: (lorenz_x(1200).astype(np.float64) + 0.1, {"dtype": "float64"}),
}


@pytest.mark.parametrize("case", CASES)
def test_neighbours_have_the_bits_of_the_exhaustive_search(device, eager, case):
    x, options = CASES[case]()
    for E in (1, 4):
        want = pyedmcl.knn(x, E=E, neighbors="exhaustive", device=device, **options)
        found = pyedmcl.knn(x, E=E, device=device, **options)
        np.testing.assert_array_equal(found.indices, want.indices)
        np.testing.assert_array_equal(found.distances, want.distances)
        assert want.provenance["neighbors"] == []
        if case in ("plain", "gaps", "cross", "float64"):
            assert used(found) == {(E, "pruned")}


def test_states_of_several_columns_take_a_tree(one_device, eager):
    pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    x = np.asarray(lorenz(1500), np.float32)
    want, found = (
        pyedmcl.simplex(x, target=x[:, 0], E=2, neighbors=n, device=one_device) for n in ("exhaustive", "exact")
    )
    np.testing.assert_array_equal(found.predicted, want.predicted)
    assert used(found) == {(6, "kdtree")}
    # Where many states tie, a tree has to propose more and more of them.
    coarse = np.round(np.random.default_rng(0).standard_normal((1500, 3))).astype(np.float32)
    want, found = (
        pyedmcl.simplex(coarse, target=x[:, 0], E=2, neighbors=n, device=one_device) for n in ("exhaustive", "exact")
    )
    np.testing.assert_array_equal(found.predicted, want.predicted)
    assert used(found) == {(6, "exhaustive")} and "tie" in found.provenance["neighbors"][0]["why"]


def mixed(n=900):
    """Series that can be pruned (a, d, e) and noise between them, which cannot; one with gaps."""
    noise = np.random.default_rng(0).standard_normal((n, 2))
    flow = np.array(lorenz(n))
    flow[100:103, 1] = np.nan
    return np.column_stack([flow[:, 0], noise, flow[:, 1:]]).astype(np.float32)


@pytest.mark.parametrize("E", [4, [4, 2, 4, 3, 2]], ids=["one-E", "several-E"])
def test_libraries_of_a_map_are_chosen_for_one_by_one(device, monkeypatch, E):
    # At these rates noise of several lags is left to the exhaustive search, and all libraries are looked at.
    monkeypatch.setattr(choose, "rates_of", lambda info: KnownRates(replace(QUICK, walk_lag=2e-9), "invented"))
    monkeypatch.setattr(Patience, "due", lambda self: True)
    options = {"E": E, "tau": 2, "exclusion_radius": 3, "device": device}
    want, found = (pyedmcl.xmap(mixed(), neighbors=n, **options) for n in ("exhaustive", "exact"))
    np.testing.assert_array_equal(found.rho, want.rho)
    assert {search for _, search in used(found)} == {"exhaustive", "pruned"}
    # One record for all libraries that were searched alike, for targets with gaps and for those without.
    assert len(found.provenance["neighbors"]) <= 2 * len(used(found))


def test_other_functions_have_the_same_bits(one_device, eager):
    x = mixed()[:, [0, 3, 4]]
    few = {"lib_sizes": [300, 700], "sample": 3, "seed": 1}
    for call in (
        lambda n: pyedmcl.ccm(x[:, 0], x[:, 2], E=3, neighbors=n, device=one_device, **few),
        lambda n: pyedmcl.ccm_matrix(x, E=2, lib_sizes=[400], sample=3, seed=2, neighbors=n, device=one_device),
        lambda n: pyedmcl.embed_dimension(x, E_max=4, neighbors=n, device=one_device),
    ):
        want, found = call("exhaustive"), call("exact")
        np.testing.assert_array_equal(found.rho, want.rho)
        assert "pruned" in {search for _, search in used(found)}, call


def test_what_does_not_fit_is_left_to_the_exhaustive_search(one_device, eager, monkeypatch):
    want = pyedmcl.knn(lorenz_x(), E=3, neighbors="exhaustive", device=one_device)

    def refused(self, *_):
        raise DeviceMemoryError("no room")

    for name in ("probe", "find"):
        with monkeypatch.context() as patch:
            patch.setattr(PrunedSearcher, name, refused)
            found = pyedmcl.knn(lorenz_x(), E=3, device=one_device)
            np.testing.assert_array_equal(found.indices, want.indices)
            (record,) = found.provenance["neighbors"]
            assert record["used"] in ("exhaustive", "kdtree") and "no room" in record["why"]


def test_short_libraries_are_not_looked_at(one_device):
    assert pyedmcl.knn(lorenz_x(500), E=3, device=one_device).provenance["neighbors"] == []


def test_many_neighbours_are_not_looked_for_by_lists(data_dir):
    from device_helpers import INTEL

    problem = SearchProblem((3,), (200,), 1, 0, 0, 1 << 18, 1 << 18)
    assert decided_beforehand(SearchRequest("exact"), INTEL, problem) == []
    assert decided_beforehand(SearchRequest("exact"), INTEL, replace(problem, ks=(4,))) is None


def test_few_libraries_are_looked_at_in_vain():
    patience = Patience(1000)
    looked = []
    for library in range(1000):
        if patience.due():
            looked.append(library)
            patience.heard(False)
    assert len(looked) <= 9 and looked[1] == patience.informed == 8
    hopeful = Patience(1000)
    for _ in range(20):
        assert hopeful.due()
        hopeful.heard(True)
    assert Patience(1).informed == 1 and Patience(3).informed == 3


def test_places_without_a_gap_are_one_run():
    assert list(_runs([0, 1, 4, 6, 7])) == [range(0, 2), range(4, 5), range(6, 8)]
    assert list(_runs([])) == []
