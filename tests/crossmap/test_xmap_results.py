"""What xmap returns and writes: frames, edges, stores, resumption, progress, interruption, warnings."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.embedding.dimension import EmbedDimensionProblem
from pyedmcl.engines.crossmap import CrossMap
from pyedmcl.errors import Interrupted, StoreMismatchError
from pyedmcl.jobs.sharing import KeptStage
from pyedmcl.jobs.store import XmapStore

N = 40  # three blocks of a store


@pytest.fixture(scope="module")
def data():
    return naive.noisy_maps(N, 150, 11)


@pytest.fixture(scope="module")
def whole(data, one_device):
    return pyedmcl.xmap(data, E=2, device=one_device)


def test_frame_edges_and_provenance(whole):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = whole.to_frame()
    assert list(frame.index) == list(frame.columns) == list(whole.names)
    np.testing.assert_array_equal(frame.to_numpy(), whole.rho)
    off = whole.rho.copy()
    np.fill_diagonal(off, -np.inf)
    i, j = np.unravel_index(off.argmax(), off.shape)
    first = whole.edges(top=3)[0]
    assert (first.library, first.target, first.E) == (whole.names[i], whole.names[j], 2)
    assert first.rho == off.max()
    assert whole.provenance["kernels"].keys() == {"stage", "knn", "lookup"}
    assert whole.provenance["device"]


def test_a_stored_result_is_the_same_and_lazy(data, whole, one_device, tmp_path):
    out = tmp_path / "map.zarr"
    seen = []
    stored = pyedmcl.xmap(data, E=2, out=out, device=one_device, progress=lambda *told: seen.append(told))
    np.testing.assert_array_equal(np.asarray(stored.rho), whole.rho)
    np.testing.assert_array_equal(stored.rho[3:5], whole.rho[3:5])
    np.testing.assert_array_equal(stored.E, whole.E)
    assert seen[0] == (0, N, "series")
    assert seen[-1] == (N, N, "series")
    assert [e.rho for e in stored.edges(top=5)] == [e.rho for e in whole.edges(top=5)]
    again = pyedmcl.open_xmap(out)
    np.testing.assert_array_equal(np.asarray(again.rho), whole.rho)
    assert tuple(again.names) == tuple(whole.names)


def test_an_interrupted_call_continues(data, whole, one_device, tmp_path, monkeypatch):
    out, skill, blocks = tmp_path / "map.zarr", CrossMap.skill, []

    def stop_at_the_second(self, a, *more):
        if blocks:
            raise KeyboardInterrupt
        blocks.append(a)
        return skill(self, a, *more)

    monkeypatch.setattr(CrossMap, "skill", stop_at_the_second)
    with pytest.raises(Interrupted, match=r"1 of 3 blocks .* kept"):
        pyedmcl.xmap(data, E=2, out=out, device=one_device)
    computed = []
    monkeypatch.setattr(CrossMap, "skill", lambda self, a, *b: (computed.append(a), skill(self, a, *b))[1])
    result = pyedmcl.xmap(data, E=2, out=out, device=one_device)
    np.testing.assert_array_equal(np.asarray(result.rho), whole.rho)
    assert len(computed) == 2, "the finished block is not computed again"


@pytest.mark.parametrize(
    ("change", "words"),
    [({"tau": 2}, "tau"), ({"knn": 7}, "knn"), ({"Tp": 1}, "Tp"), ({"E": 3}, "E"),
     ({"exclusion_radius": 2}, "exclusion"), ({"dtype": "float64"}, "dtype")],
)  # fmt: skip
def test_other_parameters_are_refused(data, one_device, tmp_path, change, words):
    out = tmp_path / "map.zarr"
    pyedmcl.xmap(data[:, :3], E=2, out=out, device=one_device)
    with pytest.raises(StoreMismatchError, match=words):
        pyedmcl.xmap(data[:, :3], **{"E": 2, "out": out, "device": one_device, **change})


def test_other_data_are_refused_unless_started_afresh(data, one_device, tmp_path):
    out, other = tmp_path / "map.zarr", data[:, :3].copy()
    other[7, 1] += np.float32(1e-3)
    pyedmcl.xmap(data[:, :3], E=2, out=out, device=one_device)
    with pytest.raises(StoreMismatchError, match="data"):
        pyedmcl.xmap(other, E=2, out=out, device=one_device)
    fresh = pyedmcl.xmap(other, E=2, out=out, resume=False, device=one_device)
    np.testing.assert_array_equal(np.asarray(fresh.rho), pyedmcl.xmap(other, E=2, device=one_device).rho)


def test_a_stored_result_says_with_which_parameters_it_was_made(whole, data, one_device, tmp_path):
    stored = pyedmcl.xmap(data, E=2, device=one_device, out=tmp_path / "map.zarr")
    assert stored.provenance["parameters"] == whole.provenance["parameters"] != {}


def test_automatic_dimensions_are_searched_once(data, one_device, tmp_path, monkeypatch):
    out, write = tmp_path / "map.zarr", XmapStore.write
    monkeypatch.setattr(XmapStore, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(Interrupted):
        pyedmcl.xmap(data, E_max=3, out=out, device=one_device)
    monkeypatch.setattr(XmapStore, "write", write)
    monkeypatch.setattr(EmbedDimensionProblem, "open", lambda *_: pytest.fail("searched again"))
    assert np.isfinite(np.asarray(pyedmcl.xmap(data, E_max=3, out=out, device=one_device).rho)).all()


@pytest.mark.parametrize("function", ["xmap", "ccm_matrix"])
def test_a_search_for_E_that_is_ended_goes_on(function, one_device, tmp_path, monkeypatch):
    wide = np.random.default_rng(3).random((60, 40))
    call = {"E_max": 3, "E_rule": 0.02, "out": tmp_path / "out", "device": one_device}
    call |= {"lib_sizes": [20], "sample": 2, "seed": 1} if function == "ccm_matrix" else {}
    written, write = [], KeptStage.write

    def stops(sink, block, result):
        if written:
            raise KeyboardInterrupt
        written.append(block)
        write(sink, block, result)

    monkeypatch.setattr(KeptStage, "write", stops)
    with pytest.raises(Interrupted, match=r"1 of 3 blocks of the search for E are kept in .*; the same call"):
        getattr(pyedmcl, function)(wide, **call)
    again = []
    monkeypatch.setattr(KeptStage, "write", lambda *given: (again.append(given[1]), write(*given)))
    found = getattr(pyedmcl, function)(wide, **call)
    assert [block.begin for block in again] == [16, 32]
    plain = getattr(pyedmcl, function)(wide, **{**call, "out": None})
    np.testing.assert_array_equal(np.asarray(found.E), plain.E)
    np.testing.assert_array_equal(np.asarray(found.rho), np.asarray(plain.rho))
    assert not list(tmp_path.rglob(".pyedmcl-E-*"))


def test_constant_series_are_reported(data, one_device):
    flat = data[:, :4].copy()
    flat[:, 2] = 0.1
    with pytest.warns(RuntimeWarning, match=r"constant.*x2"):
        result = pyedmcl.xmap(flat, E=2, device=one_device)
    assert np.isnan(result.rho[:, 2]).all()
    assert np.isfinite(result.rho[:2, :2]).all()


@pytest.mark.filterwarnings("default:constant series")
@pytest.mark.parametrize("name", ["xmap", "xmap to a store", "xmap_significance", "kedm"])
def test_the_warning_names_the_line_that_called(data, one_device, tmp_path, monkeypatch, name):
    """However many functions of ours lie between."""
    from pyedmcl.compat import kedm

    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    flat = data[:, :3].copy()
    flat[:, 2] = 0.1
    calls = {
        "xmap": lambda: pyedmcl.xmap(flat, E=2),
        "xmap to a store": lambda: pyedmcl.xmap(flat, E="auto", E_max=2, out=tmp_path / "map"),
        "xmap_significance": lambda: pyedmcl.xmap_significance(flat, E=2, n=200, seed=1, surrogate="shuffle"),
        "kedm": lambda: kedm.xmap(flat, [2, 2, 2]),
    }
    with pytest.warns(RuntimeWarning, match="constant.*x2") as caught:
        calls[name]()
    named = [warning.filename for warning in caught if "constant series" in str(warning.message)]
    assert named == [__file__], "and it is said once"
