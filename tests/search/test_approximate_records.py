"""Records of searches in results that were written to a store, whose E was searched for, or that feed themselves."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import gaps, lorenz, lorenz_x

import pyedmcl
from pyedmcl.engines import crossmap


def three():
    x = np.asarray(lorenz(700), np.float32)
    x[:, 2] = gaps(x[:, 2])
    return x


@pytest.mark.parametrize("E", ["auto", 3])
def test_a_store_says_what_memory_does(one_device, tmp_path, E):
    options = {"E": E, "E_max": 3, "neighbors": "pruned", "device": one_device}
    memory = pyedmcl.xmap(three(), **options)
    records = memory.provenance["neighbors"]
    assert [("for" in one) for one in records] == sorted((("for" in one) for one in records), reverse=True)
    assert any("for" in one for one in records) == (E == "auto")
    if E == "auto":
        assert {one["E"] for one in records if one.get("for") == "E"} == {1, 2, 3}
    for place in (tmp_path / "map", tmp_path / "map"):  # the second time nothing is left to do
        stored = pyedmcl.xmap(three(), out=place, **options)
        assert stored.provenance["neighbors"] == records
    assert pyedmcl.open_xmap(tmp_path / "map").provenance["neighbors"] == records
    pyedmcl.xmap(three(), out=tmp_path / "map", resume=False, **{**options, "neighbors": "exact"})
    assert pyedmcl.open_xmap(tmp_path / "map").provenance["neighbors"] == []


def test_a_run_that_continues_keeps_the_records_of_the_first(one_device, tmp_path, monkeypatch):
    options = {"E": "auto", "E_max": 3, "neighbors": "pruned", "device": one_device}
    whole = pyedmcl.xmap(three(), **options)

    def stop(self, *block):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(crossmap.CrossMap, "skill", stop)
        with pytest.raises(pyedmcl.errors.Interrupted):
            pyedmcl.xmap(three(), out=tmp_path / "map", **options)
    of_E = pyedmcl.open_xmap(tmp_path / "map").provenance["neighbors"]
    assert of_E and all(one["for"] == "E" for one in of_E)
    continued = pyedmcl.xmap(three(), out=tmp_path / "map", **options)
    assert continued.provenance["neighbors"] == whole.provenance["neighbors"]


def test_a_matrix_of_convergence_says_what_searched(one_device, tmp_path):
    options = {"E": 2, "lib_sizes": [20, 400], "sample": 3, "seed": 2, "device": one_device}
    want = pyedmcl.ccm_matrix(three(), **options)
    memory = pyedmcl.ccm_matrix(three(), neighbors="pruned", **options)
    stored = pyedmcl.ccm_matrix(three(), neighbors="pruned", out=tmp_path / "matrix", **options)
    for size in (20, 400):
        np.testing.assert_array_equal(memory.at(size), want.at(size))
        np.testing.assert_array_equal(stored.at(size), want.at(size))
    assert want.provenance["neighbors"] == []
    records = memory.provenance["neighbors"]
    assert records and {one["used"] for one in records} == {"pruned"}
    assert stored.provenance["neighbors"] == records
    assert pyedmcl.open_ccm_matrix(tmp_path / "matrix").provenance["neighbors"] == records


def test_generated_steps_say_what_searched(one_device):
    x = lorenz_x(900)
    options = {"E": 3, "generate_steps": 6, "device": one_device}
    want = pyedmcl.simplex(x, **options)
    found = pyedmcl.simplex(x, neighbors="pruned", **options)
    np.testing.assert_allclose(found.predicted, want.predicted, rtol=2e-6)
    (record,) = found.provenance["neighbors"]
    assert record["used"] == "pruned" and record["steps"] == 6 and record["E"] == 3


def test_generated_steps_of_an_index_keep_the_lowest_recall(one_device):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    found = pyedmcl.simplex(lorenz_x(2000), E=3, generate_steps=4, neighbors="ivf", recall=0.8, device=one_device)
    records = found.provenance["neighbors"]
    assert sum(record["steps"] for record in records) == 4
    assert all(record["recall"] >= 0.8 for record in records)
