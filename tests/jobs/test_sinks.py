"""Stores as the sink of a job: what is pending, what is written in which order, and continuing. No device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from job_helpers import FakeProblem, executor
from store_helpers import ROWS, N, chunks, make_manifest, values

from pyedmcl.device.info import device_key
from pyedmcl.errors import Interrupted, StoreMismatchError
from pyedmcl.jobs import XmapStore, open_store
from pyedmcl.jobs.blocks import BlockResult, Record
from pyedmcl.jobs.runner import LocalRunner, StoreSink
from pyedmcl.jobs.status import Observer
from pyedmcl.kernels import spec
from pyedmcl.tuning.parameters import keeping, parameters

E = np.arange(1, N + 1)
SEARCHED = {"E": 1, "used": "kdtree", "interval": (0.9, 1.0)}
QUESTION = {"dtype": "float32", "k": 4, "columns": 40}


def ask():
    """A question of an engine for the parameters of a kernel."""
    return dict(parameters(spec("lookup"), QUESTION, executor().info, {"rows": 300, "targets": 40}).parameters)


def store_at(path, layer=0, **options):
    device = device_key(executor().info).as_dict()
    manifest = make_manifest(parameters={"layer": layer}, device=device)
    return XmapStore.create_or_resume(path, manifest, **options)


class RhoProblem:
    """rho of the helpers' store; ``stop`` interrupts before that block, and parameters may be asked for."""

    unit, total, operations = "series", N, 0.0

    def __init__(self, stop=None, asks=False):
        self.stop, self.asks, self.computed, self.asked = stop, asks, [], []

    def size(self, block):
        return len(block)

    def open(self, executor):
        return self

    def block(self, block, into, report):
        if block.number == self.stop:
            raise KeyboardInterrupt
        if self.asks:
            self.asked.append(ask())
        self.computed.append((block.number, block.layers))
        rows = [values()[block.begin : block.end] + layer for layer in block.layers]
        return BlockResult(rows, Record({}, "", (SEARCHED,)))

    def release(self):
        pass


def run(problem, stores, where="FOLDER"):
    sink = StoreSink(stores, where)
    sink.set_E(E, Record())
    LocalRunner([executor()]).run(problem, sink)
    return sink


def test_a_store_is_filled_and_says_how(tmp_path):
    with store_at(tmp_path / "a") as store:
        sink = run(RhoProblem(asks=True), [store])
        assert sink.kept().startswith("8 of 8 blocks of FOLDER are finished and kept")
    stored = open_store(tmp_path / "a")
    assert stored.complete and stored.searched == [SEARCHED]
    np.testing.assert_array_equal(stored.rho[:], values())
    np.testing.assert_array_equal(stored.E, E)
    assert list(stored.parameters.values()) == [ask()]


def test_an_interrupted_job_continues_with_the_same_parameters(tmp_path):
    with store_at(tmp_path / "a") as store, pytest.raises(Interrupted, match="3 of 8 blocks of FOLDER"):
        run(RhoProblem(stop=3, asks=True), [store])
    with store_at(tmp_path / "a") as store:
        sink = StoreSink([store], "FOLDER")
        assert list(sink.answers.values()) == [ask()] and sink.record.searched == (SEARCHED,)
        np.testing.assert_array_equal(sink.E, E)
        second = RhoProblem()
        LocalRunner([executor()]).run(second, sink)
    assert [number for number, _ in second.computed] == [3, 4, 5, 6, 7]
    with store_at(tmp_path / "b") as store:
        run(RhoProblem(asks=True), [store])
    assert chunks(tmp_path / "a") == chunks(tmp_path / "b")


def test_blocks_of_several_stores_are_counted_as_status_counts_them(tmp_path):
    with store_at(tmp_path / "a") as one, store_at(tmp_path / "b", 1) as two:
        with pytest.raises(Interrupted, match="6 of 16 blocks of FOLDER"):
            run(RhoProblem(stop=3), [one, two])
        found = Observer(tmp_path).look()
    assert (found.done, found.total) == (6, 16)


def test_a_device_of_another_kind_takes_parameters_of_its_own(tmp_path):
    """They decide speed only; those of the store stay as they are."""
    answers = {}
    with keeping(answers):
        plain = ask()
    kept = {question: {**plain, "stage": not plain["stage"]} for question in answers}
    with store_at(tmp_path / "a") as store, pytest.raises(Interrupted):
        store.set_parameters(kept)
        store.write(0, values()[:ROWS])
        run(problem := RhoProblem(stop=3, asks=True), [store])
    assert problem.asked == [*kept.values()] * 2
    with store_at(tmp_path / "a") as store:
        sink, problem = StoreSink([store], "FOLDER"), RhoProblem(asks=True)
        LocalRunner([executor("another")]).run(problem, sink)
        assert problem.asked == [plain] * 5 and store.parameters == kept


def test_parameters_and_searches_are_on_disk_before_the_block(tmp_path, monkeypatch):
    with store_at(tmp_path / "a") as store:
        calls = []
        for name in ("set_parameters", "set_searched", "write"):
            method = getattr(store, name)
            monkeypatch.setattr(
                store, name, lambda *given, name=name, method=method: (calls.append(name), method(*given))[1]
            )
        run(RhoProblem(asks=True), [store])
    assert calls == ["set_parameters", "set_searched", *["write"] * 8], "and what has not changed is not written again"


def test_only_lacking_layers_are_computed(tmp_path):
    with store_at(tmp_path / "b", 1) as second, pytest.raises(Interrupted):
        run(RhoProblem(stop=2), [second])
    with store_at(tmp_path / "a") as first, store_at(tmp_path / "b", 1) as second:
        problem = RhoProblem()
        run(problem, [first, second])
        assert problem.computed == [(0, (0,)), (1, (0,)), *((number, (0, 1)) for number in range(2, 8))]
        np.testing.assert_array_equal(first.rho[:], values())
        np.testing.assert_array_equal(second.rho[2 * ROWS :], values()[2 * ROWS :] + 1)
        np.testing.assert_array_equal(first.E, second.E)


def test_E_found_by_one_layer_serves_the_others(tmp_path):
    with store_at(tmp_path / "a") as first:
        first.set_E(E)
        with store_at(tmp_path / "b", 1) as second:
            sink = StoreSink([first, second], "FOLDER")
            np.testing.assert_array_equal(sink.E, E)
            sink.set_E(sink.E, Record(searched=({"E": 2, "for": "E"},)))
            np.testing.assert_array_equal(second.E, E)
            assert second.searched == [{"E": 2, "for": "E"}] and first.searched == []


def test_another_E_is_refused_by_a_store_with_blocks(tmp_path):
    with store_at(tmp_path / "a") as store:
        run(RhoProblem(), [store])
        (tmp_path / "a" / "E" / "c.0").write_bytes(b"damaged")
        sink = StoreSink([store], "FOLDER")
        assert sink.E is None
        with pytest.raises(StoreMismatchError, match="another E"):
            sink.set_E(E + 1, Record())


def test_a_problem_that_fails_leaves_its_store_to_continue(tmp_path):
    def happens(engine, block, report):
        raise ValueError("a bug")

    with store_at(tmp_path / "a") as store, pytest.raises(ValueError, match="a bug"):
        run(replace(FakeProblem(), happens=happens, total=N), [store])
    with store_at(tmp_path / "a") as store:
        assert len(StoreSink([store], "FOLDER").pending()) == 8
