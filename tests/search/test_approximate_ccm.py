"""Convergent cross mapping by other searches than the exhaustive one."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import gaps, lorenz

import pyedmcl
from pyedmcl.errors import InputError

EXACT = ("kdtree", "pruned")
FAISS = ("ivf", "hnsw")


def pair(n=1200):
    values = np.asarray(lorenz(n)[:, :2], np.float32)
    return values[:, 0], values[:, 1]


# Sizes that are scanned for in sorted lists, and one that is compared with all its members.
COMMON = {"E": 3, "lib_sizes": [12, 300, 700, 1000], "sample": 4, "seed": 3}


@pytest.mark.parametrize("name", EXACT)
def test_exact_searches_give_the_same_bits(device, name):
    if name == "kdtree":
        pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    x, y = pair()
    for one, other, options in (
        (x, y, {"exclusion_radius": 5}),
        (gaps(x), gaps(y), {"Tp": 2}),
        (x, y, {"E": (2, 4), "Tp": -1, "valid_lib": np.arange(1200) % 17 > 0}),
    ):
        given = {**COMMON, **options, "device": device}
        want = pyedmcl.ccm(one, other, **given)
        found = pyedmcl.ccm(one, other, neighbors=name, **given)
        np.testing.assert_array_equal(found.rho, want.rho)
        records = found.provenance["neighbors"]
        assert records and all(r["asked"] == name and r["used"] == name and r["recall"] == 1 for r in records)
        dims = given["E"] if isinstance(given["E"], tuple) else (given["E"],)
        assert {record["E"] for record in records} == set(dims)
        assert want.provenance["neighbors"] == []


@pytest.mark.parametrize("name", FAISS)
def test_an_approximate_search_predicts_nearly_as_well(one_device, name):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    x, y = pair(2500)
    given = {**COMMON, "lib_sizes": [800, 2000], "device": one_device}
    want = pyedmcl.ccm(x, y, **given)
    found = pyedmcl.ccm(x, y, neighbors=name, recall=0.95, **given)
    assert all(record["used"] == name and record["recall"] >= 0.95 for record in found.provenance["neighbors"])
    np.testing.assert_allclose(found.rho, want.rho, atol=0.01)


def test_auto_changes_nothing(one_device):
    x, y = pair()
    want = pyedmcl.ccm(x, y, device=one_device, **COMMON)
    found = pyedmcl.ccm(x, y, neighbors="auto", device=one_device, **COMMON)
    np.testing.assert_array_equal(found.rho, want.rho)
    assert found.provenance["neighbors"][0]["asked"] == "auto"


def test_what_needs_no_search_says_so(one_device):
    x, y = pair(300)
    small = pyedmcl.ccm(x, y, E=3, lib_sizes=[10], sample=3, seed=1, neighbors="pruned", device=one_device)
    local = pyedmcl.ccm(x[:80], y[:80], E=2, lib_sizes=[30], sample=1, seed=1, method="smap", neighbors="pruned",
                        device=one_device)  # fmt: skip
    for result, word in ((small, "compared with all"), (local, "linear fits")):
        (record,) = result.provenance["neighbors"]
        assert (record["asked"], record["used"]) == ("pruned", "exhaustive") and word in record["why"]


def test_lags_take_other_searches(one_device):
    x, y = pair(600)
    options = {"E": 3, "Tp": [-2, 1], "seed": 1, "device": one_device}
    for sizes in ({}, {"lib_size": 300, "sample": 3}):
        want = pyedmcl.ccm_lagged(x, y, **options, **sizes)
        found = pyedmcl.ccm_lagged(x, y, neighbors="pruned", **options, **sizes)
        np.testing.assert_array_equal(found.rho, want.rho)
        assert found.provenance["neighbors"][0]["used"] == "pruned"


def test_searches_that_do_not_exist_are_refused():
    x, y = pair(100)
    with pytest.raises(InputError, match="neighbors='fast'"):
        pyedmcl.ccm(x, y, E=2, neighbors="fast")
    with pytest.raises(InputError, match="recall=0"):
        pyedmcl.ccm(x, y, E=2, recall=0)
