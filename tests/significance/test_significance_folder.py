"""Surrogate tests that are kept in a folder, and that several processes compute together."""

from __future__ import annotations

import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from client_helpers import Plain

import pyedmcl
from pyedmcl.atomic_files import temporary_name
from pyedmcl.errors import InputError, Interrupted, PyedmclWarning, StoreForeignError, StoreMismatchError
from pyedmcl.jobs.claims import Member
from pyedmcl.jobs.durable import remove_temporaries
from pyedmcl.jobs.status import Observer
from pyedmcl.significance import xmap_significance
from pyedmcl.simulate import coupled_maps

FIELDS = ("rho", "p_value", "q_value", "E", "draws")


@pytest.fixture(scope="module")
def values():
    return coupled_maps(n_series=23, n_steps=300).values[:, :6]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(xmap_significance, "_FEWEST_TARGETS", 1)
    monkeypatch.setattr(xmap_significance, "default_block_rows", lambda n: 2)


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_two_processes_and_a_client_make_the_tests_of_one(values, one_device, tmp_path, small_blocks):
    call = {"E_max": 3, "budget": 200, "device": one_device}
    out, barrier = tmp_path / "out", threading.Barrier(2)

    def joined(client):
        barrier.wait(30)
        return pyedmcl.xmap_significance(values, out=out, join=True, client=client, **call)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(joined, [None, Plain()])
    assert first.seed == second.seed
    same(first, second)
    same(first, pyedmcl.xmap_significance(values, seed=first.seed, **call))
    assert sorted(path.name for path in out.iterdir()) == ["part-0-1.npz", "parts.json", "significance.edm"]
    assert Observer(out).look().complete
    told = []
    again = pyedmcl.xmap_significance(values, out=out, progress=lambda *now: told.append(now), **call)
    assert not told, "nothing is computed again"
    same(first, again)
    same(first, pyedmcl.open_result(out))


def test_who_writes_its_result_is_not_cleared_up_behind(values, one_device, tmp_path, monkeypatch):
    """Another process that ends meanwhile removes what looks unfinished only if it is the last one."""
    out, saved = tmp_path / "out", []
    module = importlib.import_module("pyedmcl.significance.xmap_significance")
    save = module.save_result

    def slowly(result, path, **named):
        unfinished = out / temporary_name(path.name)
        unfinished.write_bytes(b"half")
        with Member(out, "another") as another:
            another.enter()
            another.settle(lambda: remove_temporaries(out))
        saved.append(unfinished.exists())
        save(result, path, **named)

    monkeypatch.setattr(module, "save_result", slowly)
    for _ in range(2):  # who computes it, and who finds it done
        pyedmcl.xmap_significance(values, E=2, n=19, seed=1, device=one_device, out=out, join=True)
    assert saved == [True, True]
    assert sorted(path.name for path in out.iterdir()) == ["part-0-1.npz", "parts.json", "significance.edm"]


def test_more_rows_start_anew_where_that_is_asked_for(values, one_device, tmp_path, small_blocks):
    """Also over what an interrupted run has left."""
    call = {"E": 2, "n": 19, "seed": 1, "device": one_device}

    def stop(done, total, unit):
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        pyedmcl.xmap_significance(values[:-20], out=tmp_path / "out", progress=stop, **call)
    with pytest.raises(StoreMismatchError, match="resume=False"):
        pyedmcl.xmap_significance(values, out=tmp_path / "out", **call)
    found = pyedmcl.xmap_significance(values, out=tmp_path / "out", resume=False, **call)
    same(found, pyedmcl.xmap_significance(values, **call))
    same(found, pyedmcl.open_result(tmp_path / "out"))


def test_an_interrupted_call_goes_on(values, one_device, tmp_path, small_blocks):
    call = {"E": 2, "n": 19, "device": one_device, "out": tmp_path / "out"}
    told = []

    def stop(done, total, unit):
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"2 of 6 blocks of a round of surrogates are kept in .*; the same call"):
        pyedmcl.xmap_significance(values, progress=stop, **call)
    status = Observer(tmp_path / "out").look()
    assert (status.done, status.total, status.complete) == (2, 7, False)
    found = pyedmcl.xmap_significance(values, progress=lambda *now: told.append(now), **call)
    assert told[0] == (2, 6, "series")
    same(found, pyedmcl.xmap_significance(values, E=2, n=19, seed=found.seed, device=one_device))


def test_other_questions_and_folders_are_refused(values, one_device, tmp_path):
    call = {"E": 2, "n": 19, "device": one_device, "out": tmp_path / "out"}
    pyedmcl.xmap_significance(values, seed=1, **call)
    with pytest.raises(StoreMismatchError, match="seed = 1 there, 2 asked for"):
        pyedmcl.xmap_significance(values, seed=2, **call)
    with pytest.raises(StoreMismatchError, match="data differ"):
        pyedmcl.xmap_significance(values + 1, **call)
    with pytest.raises(InputError, match="name it by out="):
        pyedmcl.xmap_significance(values, E=2, n=19, join=True)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to whom").write_text("dear")
    with pytest.raises(StoreForeignError, match="it holds other things"):
        pyedmcl.xmap_significance(values, **{**call, "out": tmp_path / "letters"})
    file = tmp_path / "out" / "part-0-1.npz"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.warns(PyedmclWarning, match=r"part-0-1\.npz is damaged .* computed anew"):
        again = pyedmcl.xmap_significance(values, **call)
    same(again, pyedmcl.xmap_significance(values, E=2, n=19, seed=1))
