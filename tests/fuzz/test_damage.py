"""Damage to every file that is written and read again: the right result, or an error of ours; never a wrong one."""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import tally
from damage import Folder, damages
from device_helpers import NVIDIA
from hypothesis import given, settings
from rates_helpers import trial as rates_trial
from tuning_helpers import key, run

import pyedmcl
from pyedmcl.device import runtimes
from pyedmcl.device.info import Slot
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import discover
from pyedmcl.errors import Interrupted, PyedmclError, StoreError
from pyedmcl.jobs.records import write_tuning
from pyedmcl.kernels import loopy_source, spec
from pyedmcl.recurrence import engine
from pyedmcl.tuning import database as bars
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source

X = np.random.default_rng(5).standard_normal((70, 40)).cumsum(axis=0)
E_MAX = 2


@contextlib.contextmanager
def outcome(kind):
    """Count how a case ends; errors of ours are one of the ends."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except StoreError:
        tally.count(kind, "refused")
    except PyedmclError as error:
        raise AssertionError(f"damage of {kind} ended in {type(error).__name__}: {error}") from error
    else:
        tally.count(kind, "right")


def after_blocks(count):
    """A reporter that interrupts a job when some of it is done, and not in its search for E."""

    def stop(done, total, unit):
        if unit != "dimensions" and count <= done < total:
            raise KeyboardInterrupt

    return stop


def mapped(device, out=None, **options):
    return pyedmcl.xmap(X, E_max=E_MAX, out=out, device=device, **options)


@pytest.fixture(scope="module")
def map_of(one_device):
    """What a map holds, undamaged."""
    result = mapped(one_device)
    return np.asarray(result.rho), result.E, result.names


@pytest.mark.parametrize("blocks", ["all", "some"])
def test_stores(one_device, tmp_path, map_of, blocks):
    rho, E, names = map_of
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    with contextlib.suppress(Interrupted):
        mapped(one_device, whole, progress=after_blocks(1) if blocks == "some" else None)
    folder = Folder(whole)
    assert {"zarr.json", "rho/blocks.jsonl", "rho/tuning.json", "E/c.0", "E/zarr.json"} <= set(folder.files)

    @given(damages(folder.files))
    def case(damage):
        folder.copy(copy, damage)
        with outcome("stores that are read"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = pyedmcl.open_xmap(copy)
            known = np.asarray(found.rho)
            done = ~np.isnan(known)
            assert done.sum() == rho.shape[1] * (len(rho) - sum(_rows(found.store))), "NaN where a block is done"
            assert told or blocks == "some" or done.all(), "blocks were lost without a word"
            np.testing.assert_array_equal(known[done], rho[done])
            np.testing.assert_array_equal(found.E, E)
            assert found.names == names
        with outcome("stores that are continued"):
            again = mapped(one_device, copy)
            np.testing.assert_array_equal(np.asarray(again.rho), rho)
            np.testing.assert_array_equal(again.E, E)
            np.testing.assert_array_equal(np.asarray(pyedmcl.open_xmap(copy).rho), rho)

    case()


@pytest.mark.parametrize("rule", ["top:3", "top:3:target"])
def test_stores_of_edges(one_device, tmp_path, map_of, rule):
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    edges = mapped(one_device, whole, keep=rule).edges(top=1000)
    assert {(edge.library, edge.target): edge.rho for edge in edges}.items() <= _cells(map_of).items()
    folder = Folder(whole)
    assert {"zarr.json", "rho/blocks.jsonl", "rho/c.0.npy", "rho/zarr.json"} <= set(folder.files)

    @given(damages(folder.files))
    def case(damage):
        folder.copy(copy, damage)
        with outcome("stores of edges that are read"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = pyedmcl.open_xmap(copy)
                held = found.edges(top=1000)
            assert held == edges or (not found.store.complete and told), "edges were lost without a word"
            assert {(edge.library, edge.target): edge.rho for edge in held}.items() <= _cells(map_of).items()
        with outcome("stores of edges that are continued"):
            assert mapped(one_device, copy, keep=rule).edges(top=1000) == edges
            assert pyedmcl.open_xmap(copy).edges(top=1000) == edges

    case()


def _cells(map_of):
    rho, _, names = map_of
    return {(a, b): float(rho[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)}


def _rows(store):
    for block in store.pending():
        begin, end = store.rows(block)
        yield end - begin


def test_parameters_that_somebody_edits(one_device, tmp_path, map_of):
    """Numbers of a record of parameters, with a checksum that fits: beyond what a kernel takes they are refused.

    What it takes is believed, and gives the same answer but for the last digits.
    """
    rho, _, _ = map_of
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    with contextlib.suppress(Interrupted):
        mapped(one_device, whole, progress=after_blocks(1))
    folder = Folder(whole)
    of, content = map(json.loads((whole / "rho" / "tuning.json").read_text()).get, ("of", "content"))
    places = [(question, name) for question, answer in content.items() for name in answer]

    @given(damages(places))
    def case(damage):
        (question, name), kind, place, value = damage
        odd = {"bit": value, "byte": -value, "cut": place, "zeros": value == 0, "twice": str(value), "gone": None}[kind]
        legal = next(t.values for t in spec(json.loads(question)["kernel"]).tunables if t.name == name)
        believed = any(type(odd) is type(one) and odd == one for one in legal)
        folder.copy(copy)
        write_tuning(copy, {**content, question: {**content[question], name: odd}}, of)
        with outcome("parameters that are edited"):  # right where the kernel is not needed any more
            np.testing.assert_allclose(np.asarray(mapped(one_device, copy).rho), rho, rtol=0, atol=1e-6 * believed)

    case()


def test_checkpoints(one_device, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_FIRST_CELLS", 1)
    monkeypatch.setattr(engine, "_BLOCK_SECONDS", 0.0)
    options = {"m": 2, "radius": [0.7, 1.5], "theiler": 3, "device": one_device}
    x = X[:, 0].repeat(3)
    expected = [result.counts for result in pyedmcl.rqa(x, **options)]
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    whole.mkdir()
    with contextlib.suppress(Interrupted):
        pyedmcl.rqa(x, checkpoint=whole / "run.npz", progress=after_blocks(9000), **options)
    folder = Folder(whole)
    assert folder.files == ["run.npz"]

    @given(damages(folder.files))
    def case(damage):
        folder.copy(copy, damage)
        with outcome("checkpoints"):
            found = pyedmcl.rqa(x, checkpoint=copy / "run.npz", **options)
            assert [result.counts for result in found] == expected

    case()


def test_tuning_databases(one_device, tmp_path, monkeypatch):
    """Every byte that is not zero; the schema, which ends in other errors than rows do, takes one half of them."""
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(whole))
    source.forget()
    expected = pyedmcl.knn(X[:, 0], E=2, device=one_device)
    with source.watching() as questions:
        pyedmcl.knn(X[:, 0], E=2, device=one_device)
    database = Database()
    for number, question in enumerate(questions.values()):
        for status in ("ok", "slow", "wrong", "failed"):
            trial = database.start(question.key(), dict(question.choice.parameters), session="s", case="c")
            database.finish(trial, status=status, seconds=[1.0 + number], note="why")
        database.set_limit(question.key().device.digest(), question.spec.name, 64, "refused")
        database.add([rates_trial(question.info)])
    folder = Folder(whole)
    assert folder.files == ["tuning.sqlite3"]
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(copy))

    @given(damages(folder.files))
    def case(damage):
        name, kind, place, value = damage
        folder.copy(copy, (name, kind, place / 6 if value % 2 else place, value))
        source.forget()
        with outcome("tuning databases"):
            found = pyedmcl.knn(X[:, 0], E=2, device=one_device)
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_array_equal(found.distances, expected.distances)
            mine = Database()
            mine.trials(), mine.limits(), mine.check()
            before = len(mine.trials())
            mine.finish(mine.start(question.key(), {"wg": 1}, session="new"), status="failed")
            assert len(mine.trials()) in (before + 1, 1)

    case()
    source.forget()


def test_every_byte_of_a_tuning_database(tmp_path):
    """One bit of each byte that is not zero (in the usual profile of some), and all that is done with a database."""
    database, at = Database(tmp_path / "whole"), key(rows=1)
    for number, status in enumerate(("ok", "wrong", "failed", "slow", "ok")):
        seconds = 1.0 + number if status in ("ok", "slow") else None
        run(database, at, {"wg": 32}, seconds, status=status, final=number == 4)
    database.set_limit(at.device.digest(), "predict", 64, "refused 128")
    database.add([rates_trial(NVIDIA)])
    bars.add(database, bars.Bar("predict", {"wg": 1}, "h200", "it crashed"))
    content = database.path.read_bytes()
    places = [place for place, byte in enumerate(content) if byte]
    for place in places[:: 97 if settings().max_examples < 100 else 1]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << random.Random(place).randrange(8)
        path = tmp_path / str(place) / "tuning.sqlite3"
        path.parent.mkdir()
        path.write_bytes(damaged)
        mine = Database(path)
        mine.known("predict", at.digest), mine.trials(), mine.limits(), bars.stored(mine)
        knowledge.export(mine), mine.check()
        run(mine, at, {"wg": 64})
        assert {"wg": 64} in [dict(trial.parameters) for trial in mine.trials()]
        tally.count("bytes of a tuning database", "used" if mine.path == path and not mine.problems else "set aside")


SOURCE = "kernel void fill(global int* out) { out[get_global_id(0)] = (int)get_global_id(0) + 7; }"


def test_compiled_programs(tmp_path, monkeypatch):
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    kept = [info for info in runtimes_that_are_kept()]
    if not kept:
        pytest.skip("no runtime whose programs are kept (Intel's for processors) is on this machine")

    def filled(folder):
        monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(folder))
        executor = OpenCLExecutor(kept[0])
        out = executor.upload(np.zeros(5, np.int32))
        kernel = executor.build(SOURCE).kernel("fill", [Slot("out", np.dtype(np.int32), True)])
        executor.launch(kernel, (5,), None, out=out)
        found = executor.download(out, np.empty(5, np.int32)).tolist()
        executor.close()
        return found

    assert filled(whole) == [7, 8, 9, 10, 11]
    folder = Folder(whole)
    programs = [name for name in folder.files if name.endswith(".bin")]
    assert programs

    @given(damages(programs))
    def case(damage):
        folder.copy(copy, damage)
        with outcome("compiled programs"):
            assert filled(copy) == [7, 8, 9, 10, 11]

    case()


def runtimes_that_are_kept():
    return [info for info in discover() if quirks_for(info).keep_programs]


def test_texts_of_kernels_and_lists_of_runtimes(tmp_path, monkeypatch):
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    shaping = {"dtype": "float32", "wg": 8}
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(whole))
    monkeypatch.setattr(loopy_source, "_installed", lambda purpose: "9")
    monkeypatch.setattr(loopy_source, "generate", lambda name, given: written)
    name = next(iter(loopy_source.MAKERS))
    written = loopy_source._header(name, shaping, "the text\n") + "the text\n"
    assert loopy_source._cached(name, shaping) == written
    entries = {"a.icd": "liba.so"}
    runtimes.write_folder(whole / "icd", entries)
    folder = Folder(whole)
    assert len(folder.files) == 2
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(copy))

    @given(damages(folder.files))
    def case(damage):
        folder.copy(copy, damage)
        with outcome("texts and lists of runtimes"):
            assert loopy_source._cached(name, shaping) == written
            made = Path(runtimes.write_folder(copy / "icd", entries))
            assert (made / "a.icd").read_text().splitlines()[0] == "liba.so"

    case()
