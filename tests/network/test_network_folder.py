"""Networks that are kept in a folder: what was finished is not computed again, whatever ended the run."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cli_helpers import inside
from client_helpers import Plain
from series_helpers import CHAIN, linked_maps

import pyedmcl
from pyedmcl.errors import InputError, Interrupted, PyedmclWarning, StoreForeignError, StoreMismatchError
from pyedmcl.jobs.status import Observer
from pyedmcl.jobs.steps import StepSink

FIELDS = ("verdict", "rho", "lag", "by_lag", "p_value", "draws", "gain", "trend", "through", "partial", "E")
CALL = {"E_max": 3, "lags": (-2, -1, 0), "budget": 100, "tau": 1}


def same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.seed == other.seed


@pytest.fixture(scope="module")
def data():
    return linked_maps(400, CHAIN, 3, strength=0.4)


def test_what_is_kept_is_not_computed_again(data, one_device, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = pyedmcl.causal_network(data, out=out, device=one_device, **CALL)
    same(first, pyedmcl.causal_network(data, seed=first.seed, device=one_device, **CALL))
    assert Observer(out).look().complete
    monkeypatch.setattr(StepSink, "write", lambda *_: pytest.fail("a block was computed again"))
    same(pyedmcl.causal_network(data, out=out, device=one_device, **CALL), first)


@pytest.mark.parametrize("after", [2, 5, 7, 10])
def test_a_run_that_was_ended_goes_on(data, one_device, tmp_path, monkeypatch, after):
    """After ``after`` blocks, of the search for E (one for each series), lags, surrogates, and convergence."""
    out, written, write = tmp_path / "out", [], StepSink.write

    def stops(sink, block, result):
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(block)
        write(sink, block, result)

    monkeypatch.setattr(StepSink, "write", stops)
    with pytest.raises(Interrupted, match=r"kept in .*the same call \(or command\) continues there"):
        pyedmcl.causal_network(data, seed=1, out=out, device=one_device, **CALL)
    with pytest.raises(InputError, match="holds parts of a run, and no result that can be opened"):
        pyedmcl.open_result(out)
    assert not Observer(out).look().complete
    again = []
    monkeypatch.setattr(StepSink, "write", lambda *given: (again.append(given[1]), write(*given)))
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
    with pytest.warns(PyedmclWarning, match=r"part-.*\.npz is damaged .* computed anew"):
        again = pyedmcl.causal_network(data, out=out, seed=1, **CALL, **off)
    same(again, pyedmcl.causal_network(data, seed=1, **CALL, **off))


def test_two_processes_and_a_client_make_the_network_of_one(data, one_device, tmp_path):
    out, barrier = tmp_path / "out", threading.Barrier(2)

    def joined(client):
        barrier.wait(30)
        return pyedmcl.causal_network(data, out=out, join=True, client=client, device=one_device, **CALL)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(joined, [None, Plain()])
    same(first, second)
    same(first, pyedmcl.causal_network(data, seed=first.seed, device=one_device, **CALL))
    assert first.provenance["seed"] == second.provenance["seed"] == first.seed
    assert Observer(out).look().complete
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")], "claims are cleared away"
    surrogates = next(path for path in sorted(out.iterdir()) if path.name.endswith("LaggedSignificanceProblem"))
    assert len(list(surrogates.glob("part-*.npz"))) == 3, "a step that one process computes whole is cut for several"
    with pytest.raises(InputError, match="name it by out="):
        pyedmcl.causal_network(data, join=True, **CALL)


def test_status_tells_of_steps_and_who_works(data, one_device, tmp_path, monkeypatch):
    out, looks, write = tmp_path / "out", [], StepSink.write

    def looked(sink, block, result):
        write(sink, block, result)
        looks.append(Observer(out).look())
        if len(looks) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(StepSink, "write", looked)
    with pytest.raises(Interrupted, match="steps before number 2 and 2 of 3 blocks of it are kept in"):
        pyedmcl.causal_network(data, seed=1, out=out, join=True, device=one_device, **CALL)
    assert looks[1].step == "step 1 (embed dimension): 2 of 3 blocks are done"
    assert looks[4].step == "step 2 (lagged map): 2 of 3 blocks are done" and looks[4].done == 5
    assert [(one.done, one.state) for one in looks[4].processes] == [(5, "at work")]
    assert [one.state for one in Observer(out).look().processes] == ["left"]
    done = inside("status", out)
    assert done.returncode == 0 and "step 2 (lagged map): 2 of 3 blocks are done" in done.stdout


def test_the_command_joins(data, one_device, tmp_path):
    np.savetxt(tmp_path / "in.csv", data, delimiter=",", header="a,b,c", comments="")
    words = ["network", tmp_path / "in.csv", "-o", tmp_path / "net", "--E", 2, "--lags=-1:1", "--n", 3, "--no-partial",
             "--no-convergence", "--part", "1/2", "--device", one_device, "--json"]  # fmt: skip
    done = inside(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = pyedmcl.causal_network(
        data, E=2, lags=(-1, 0, 1), n=3, partial=False, convergence=False, seed=found["seed"], device=one_device
    )
    assert [row["p_value"] for row in found["pairs"]] == [row[9] for row in expected.rows()]
    assert (tmp_path / "net" / "pairs.csv").exists()
    same(pyedmcl.open_result(tmp_path / "net"), expected)
    done = inside("plot", tmp_path / "net", "-o", tmp_path / "arrows.png", "--network")
    assert done.returncode == 0 and (tmp_path / "arrows.png").exists(), done.stderr


def test_a_size_that_is_no_number_is_refused_by_name(tmp_path, one_device):
    values = np.random.default_rng(0).random((60, 3))
    with pytest.raises(InputError, match=r"^lib_sizes=nan: an integer is needed"):
        pyedmcl.causal_network(values, E=1, lib_sizes=np.nan, out=tmp_path / "n", device=one_device)


def test_more_rows_start_anew_where_that_is_asked_for(data, one_device, tmp_path):
    """A table that has grown is refused with the way out; what others keep in the folder stays."""
    out = tmp_path / "out"
    pyedmcl.causal_network(data[:-20], out=out, device=one_device, **CALL)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(StoreMismatchError, match=r"data differ.*start again with resume=False"):
        pyedmcl.causal_network(data, out=out, device=one_device, **CALL)
    found = pyedmcl.causal_network(data, out=out, resume=False, seed=2, device=one_device, **CALL)
    same(found, pyedmcl.causal_network(data, seed=2, device=one_device, **CALL))
    same(pyedmcl.open_result(out), found)
    assert (out / "notes.txt").read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "parts.json").write_text("mine, too")
    with pytest.raises(StoreForeignError):
        pyedmcl.causal_network(data, out=other, resume=False, device=one_device, **CALL)
    assert (other / "parts.json").read_text() == "mine, too"


def test_the_command_starts_anew(data, one_device, tmp_path):
    words = ["network", tmp_path / "in.csv", "-o", tmp_path / "net", "--E", 2, "--lags=-1:0", "--n", 3, "--no-partial",
             "--no-convergence", "--device", one_device]  # fmt: skip
    for rows, more, fits in ((300, [], True), (400, [], False), (400, ["--no-resume"], True)):
        np.savetxt(tmp_path / "in.csv", data[:rows], delimiter=",", header="a,b,c", comments="")
        done = inside(*words, *more)
        assert (done.returncode == 0) is fits, done.stderr
        assert fits or "--no-resume" in done.stderr
