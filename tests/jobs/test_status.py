"""What a folder tells of its result: done, claimed, by whom, lost, how fast."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from store_helpers import N, make_manifest, values, write_blocks
from typer.testing import CliRunner

from pyedmcl.cli import results as command
from pyedmcl.cli.app import app
from pyedmcl.errors import StoreForeignError
from pyedmcl.jobs import XmapStore, sharing, status
from pyedmcl.jobs.blocks import BlockResult, cut
from pyedmcl.jobs.claims import FOLDER, Holder, Member
from pyedmcl.jobs.records import IDENTITY, identity_file
from pyedmcl.jobs.sharing import PartsSink, StageSink, stage_blocks
from pyedmcl.jobs.status import Observer, rate
from pyedmcl.jobs.steps import KeepingRunner, StepSink, kept_in

ELSEWHERE = Holder("far-7-ab", "far", 7, "another boot", "GPU", lifetime=60.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.zarr"


def told(*words):
    result = CliRunner().invoke(app, ["status", *map(str, words)])
    return result.exit_code, result.output


def test_a_map_that_is_computed_by_some(path):
    with Member(path, "CPU") as member:
        store = XmapStore.join(path, make_manifest(), member)
        store.set_E(np.ones(N, int))
        write_blocks(store, values(), [0, 1, 2])
        member.take("block-3")
        # Another machine's clock is an hour late or early, and so are the times of its files; here one is gone.
        for name, age in (("member-far-7-ab", 0), ("block-5", 0), ("member-far-8-cd", 3600), ("block-6", 3600)):
            one = ELSEWHERE if name in ("member-far-7-ab", "block-5") else replace(ELSEWHERE, id="far-8-cd", pid=8)
            file = path / FOLDER / name
            file.write_text(json.dumps(one.said()))
            os.utime(file, (file.stat().st_mtime - age,) * 2)
        found = Observer(path).look()
        assert (found.done, found.total, found.claimed, found.stale, found.complete) == (3, 8, 3, 1, False)
        told_of = [(str(one.holder), one.holder.device, one.done, one.computing, one.state) for one in found.processes]
        assert told_of == [
            ("pid 7 on far", "GPU", 0, ("block-5",), "at work"), ("pid 8 on far", "GPU", 0, ("block-6",), "lost"),
            (str(member.me), "CPU", 3, ("block-3",), "at work"),
        ]  # fmt: skip
        code, said = told(path)
        assert code == 0 and "3 of 8 blocks are done (37.5 %), 3 claimed (1 by processes that are lost)" in said
        assert f"{member.me}" in said and "at work" in said and "block-6" in said
        document = json.loads(told(path, "--json")[1])
        assert [document[name] for name in ("done", "total", "claimed", "stale", "E_total")] == [3, 8, 3, 1, 0]
        assert document["processes"][1] == {
            "host": "far", "pid": 8, "device": "GPU", "state": "lost", "done": 0, "computing": ["block-6"]
        }  # fmt: skip
        store.close()
    assert [one.state for one in Observer(path).look().processes] == ["at work", "lost", "left"]
    assert not list(path.rglob(".pyedmcl-tmp*"))


def test_the_search_for_E_is_told(path):
    with Member(path) as member, XmapStore.join(path, make_manifest(40, 10), member):
        sink = PartsSink(path / FOLDER / "E-1", "E-1", stage_blocks(40, 10), member, 0.0, "run")
        sink.write(sink.claim(), BlockResult([np.zeros((10, 2))]))
        sink.claim()
        found = Observer(path).look()
        assert (found.E_done, found.E_total) == (1, 4) and found.processes[0].computing == ("E-1-1",)
        assert "E is searched: 1 of 4 blocks are done" in told(path)[1]


def test_bands_of_a_recurrence_matrix(path, monkeypatch):
    monkeypatch.setattr(sharing, "now", lambda: "2026-01-01T00:00:00+00:00")
    with Member(path) as member:
        member.enter()
        (path / IDENTITY).write_bytes(identity_file(6, {}))
        sink = PartsSink(path, "band", cut(6, 1), member, 0.0, "run")
        for block in (sink.claim(), sink.claim()):
            sink.write(block, BlockResult([np.zeros(1)]))
        sink.claim()
        found = Observer(path).look()
        assert (found.done, found.total, found.claimed, found.rate) == (2, 6, 1, None)
        moments = iter(f"2026-01-01T00:00:{second:02d}+00:00" for second in (20, 24))
        monkeypatch.setattr(sharing, "now", lambda: next(moments))
        (path / "part-0-1.npz").unlink(), (path / "part-1-2.npz").unlink()
        sink = StageSink(path, "band", cut(6, 1), member, 0.0, "run")
        for block in (sink.claim(), sink.claim()):
            sink.write(block, BlockResult([np.zeros(1)]))
        found = Observer(path).look()
        assert [file.name for file in path.glob("*.npz")] == ["part-0-2.npz"], "when and by whom is known of both"
        assert (found.done, found.rate, found.seconds_left) == (2, 0.25, 16.0)
        assert [one.done for one in found.processes] == [2]
    assert found.processes[0].computing == ("band-2",) and "2 of 6 blocks are done" in told(path)[1]
    (path / IDENTITY).write_text("{}")
    assert told(path)[0] == 5 and "is damaged" in told(path)[1]


def test_watching_ends_with_the_map(path, monkeypatch):
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        left = store.pending()

        def sleep(seconds):
            write_blocks(store, values(), [left.pop(0), left.pop(0)])

        monkeypatch.setattr(command.time, "sleep", sleep)
        code, said = told(path, "--watch")
    assert code == 0 and [line.split(": ")[1] for line in said.splitlines() if "of 8" in line] == [
        f"{done} of 8 blocks are done ({12.5 * done} %)" for done in (0, 2, 4, 6)
    ]
    assert said.endswith("all 8 blocks are done\n")


def test_library_sizes_count_together(path):
    for layer, done in (("library_0000020", [0, 1]), ("library_0000060", [4])):
        with XmapStore.create_or_resume(path / layer, make_manifest()) as store:
            write_blocks(store, values(), done)
    found = Observer(path).look()
    assert (found.done, found.total) == (3, 16)


def test_how_fast(monkeypatch):
    assert rate([]) is None and rate(["2026-01-01T00:00:00+00:00"]) is None and rate(["", "x"]) is None
    times = [f"2026-01-01T01:00:{second:02d}+00:00" for second in range(0, 40, 4)]
    assert rate(times) == 0.25
    assert rate(["2026-01-01T00:00:00+00:00", *times]) == 0.25, "what was done long before does not count"
    assert [command._duration(seconds) for seconds in (59, 119, 120, 7200, 1e6)] == [
        "59 seconds", "119 seconds", "2 minutes", "2 hours", "12 days"
    ]  # fmt: skip


def test_no_result(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "nowhere", tmp_path / "empty"):
        with pytest.raises(StoreForeignError, match="nor the folder of joined rqa runs: name such a one"):
            status.stores_of(place)
    code, said = told(tmp_path / "empty")
    assert code == 5 and "is no result of pyedmcl xmap or ccm-matrix" in said
    (tmp_path / "r30.csv").write_text("a,b\n")
    for name, what in (("nowhere", "does not exist"), ("r30.csv", "is a file")):
        code, said = told(tmp_path / name)
        assert code == 5 and f"{name} {what}: name the folder of a run" in " ".join(said.split())


def test_steps_that_are_kept_have_no_total_before_the_end(tmp_path):
    folder = tmp_path / "net"
    with kept_in(folder, None, "", 1, lambda seed: {"seed": str(seed)}) as kept:
        assert "; 0 blocks are done and kept" in told(folder)[1]
        for step, n in (("000-OneProblem", 2), ("001-TwoWordsProblem", 3)):
            sink = StepSink(kept, step, cut(n, 1))
            for _ in range(2):
                sink.write(sink.claim(), BlockResult([np.zeros(1)]))
        found = Observer(folder).look()
        assert (found.done, found.total, found.complete, found.seconds_left) == (4, None, False, None)
        code, said = told(folder)
        assert code == 0 and "not finished; 4 blocks are done and kept" in said and "%" not in said
        assert "step 2 (two words): 2 of 3 blocks are done" in said
        assert json.loads(told(folder, "--json")[1])["total"] is None
        KeepingRunner(None, kept).done()
    assert "all 4 blocks are done" in told(folder)[1]
