"""Networks that are kept in a folder: what was finished is not computed again, whatever ended the run."""

from __future__ import annotations

import numpy as np
import pytest
from test_partial_ccm import CHAIN, maps

import pyedmcl
from pyedmcl.errors import Interrupted, StoreError, StoreForeignError, StoreMismatchError
from pyedmcl.jobs.kept import KeepingSink
from pyedmcl.jobs.status import Observer

FIELDS = ("verdict", "rho", "lag", "by_lag", "p_value", "draws", "gain", "p_convergence", "through", "partial", "E")
CALL = {"E_max": 3, "lags": (-2, -1, 0), "budget": 100, "tau": 1}


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.seed == other.seed


@pytest.fixture(scope="module")
def data():
    return maps(400, CHAIN, 3, strength=0.4)


def test_what_is_kept_is_not_computed_again(data, one_device, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = pyedmcl.causal_network(data, out=out, device=one_device, **CALL)
    same(first, pyedmcl.causal_network(data, seed=first.seed, device=one_device, **CALL))
    assert Observer(out).look().complete
    monkeypatch.setattr(KeepingSink, "write", lambda *_: pytest.fail("a block was computed again"))
    same(pyedmcl.causal_network(data, out=out, device=one_device, **CALL), first)


@pytest.mark.parametrize("after", [1, 3, 5, 8])
def test_a_run_that_was_ended_goes_on(data, one_device, tmp_path, monkeypatch, after):
    """After so many blocks, of the search for E, lags, surrogates, convergence and what links pass through."""
    out, written, write = tmp_path / "out", [], KeepingSink.write

    def stops(sink, block, result):
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(block)
        write(sink, block, result)

    monkeypatch.setattr(KeepingSink, "write", stops)
    with pytest.raises(Interrupted, match=r"kept in .*the same call \(or command\) continues there"):
        pyedmcl.causal_network(data, seed=1, out=out, device=one_device, **CALL)
    assert not Observer(out).look().complete
    again = []
    monkeypatch.setattr(KeepingSink, "write", lambda *given: (again.append(given[1]), write(*given)))
    whole = pyedmcl.causal_network(data, out=out, device=one_device, **CALL)
    same(whole, pyedmcl.causal_network(data, seed=1, device=one_device, **CALL))
    assert len(again) + after == len(list(out.glob("*/part-*.npz")))


def test_other_things_are_left_alone(data, one_device, tmp_path):
    off = {"surrogate": None, "convergence": False, "partial": False, "device": one_device}
    out = tmp_path / "out"
    pyedmcl.causal_network(data, out=out, seed=1, **CALL, **off)
    for change in ({"seed": 2}, {"tau": 2}, {"lags": (-1, 0)}, {"surrogate": "phase"}):
        with pytest.raises(StoreMismatchError, match=next(iter(change))):
            pyedmcl.causal_network(data, out=out, **{**CALL, **off, **change})
    with pytest.raises(StoreMismatchError, match="data differ"):
        pyedmcl.causal_network(data + 1, out=out, **CALL, **off)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    for place, why in ((tmp_path / "mine", "it holds other things"), (tmp_path / "mine" / "file", "it is a file")):
        with pytest.raises(StoreForeignError, match=rf"\({why}\), and is left alone; name a new or empty folder"):
            pyedmcl.causal_network(data, out=place, **CALL, **off)
    part = sorted(out.glob("*/part-*.npz"))[0]
    part.write_bytes(part.read_bytes()[:-100] + bytes(100))
    with pytest.raises(StoreError, match="was removed: run the same command again"):
        pyedmcl.causal_network(data, out=out, seed=1, **CALL, **off)
    pyedmcl.causal_network(data, out=out, seed=1, **CALL, **off)
