"""Processes that fill one store together, and are killed: the bits of one process, and nothing is lost."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import environment
from joined_worker import ROWS, N, join
from process_helpers import end_of, wait_until
from store_helpers import chunks, make_manifest, tree, values, write_blocks

from pyedmcl.errors import StoreError, StoreMismatchError, StoreWriteError
from pyedmcl.jobs import XmapStore, claims, durable, layout, open_store
from pyedmcl.jobs.blocks import BlockResult, Wait
from pyedmcl.jobs.claims import FOLDER, Member
from pyedmcl.jobs.sharing import SharedSink

HERE = Path(__file__).parent
BLOCKS = N // ROWS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.zarr"


def start(path, seconds=0.0):
    places = [str(HERE), str(HERE.parent), environment().get("PYTHONPATH", "")]
    command = [sys.executable, str(HERE / "joined_worker.py"), str(path), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**environment(), "PYTHONPATH": os.pathsep.join(places)})  # fmt: skip
    assert said_by(process) == "ready\n", process.stderr.read()
    return process


def said_by(process):
    """The next line; what lies behind it is left to ``communicate``, which does not see what readline() has read."""
    line = b""
    while not line.endswith(b"\n") and (character := os.read(process.stdout.fileno(), 1)):
        line += character
    return line.decode()


def end(process):
    """How it ended, the blocks that it began, and what went wrong."""
    said, wrong = end_of(process)
    return process.returncode, [int(line.split()[1]) for line in said.splitlines() if line.startswith("begun")], wrong


def whole(tmp_path):
    """The store that one process writes."""
    with XmapStore.create_or_resume(tmp_path / "whole.zarr", make_manifest(N, ROWS)) as store:
        store.set_E(np.arange(1, N + 1))
        write_blocks(store, values(N))
    return tmp_path / "whole.zarr"


def test_three_processes_share_a_store(tmp_path, path):
    processes = [start(path, 0.002) for _ in range(3)]
    ended = [end(process) for process in processes]
    assert [(status, wrong) for status, _, wrong in ended] == [(0, "")] * 3
    assert sorted(block for _, begun, _ in ended for block in begun) == list(range(BLOCKS)), "each block once"
    one = whole(tmp_path)
    assert chunks(path) == chunks(one)
    assert sorted(tree(path)) == sorted([*tree(one), "rho/searched.json"]), "nothing is left of the sharing"
    lines = [json.loads(line) for line in (path / "rho" / "blocks.jsonl").read_text().splitlines()]
    assert [line["block"] for line in lines] == list(range(BLOCKS))
    assert all({"sha256", "time", "writer", "host", "device"} <= set(line) for line in lines)
    assert sorted(one["E"] for one in open_store(path).searched) == list(range(BLOCKS))


def test_killed_at_random_moments(tmp_path, path):
    chance, begun, kills = random.Random(), [], 0
    processes = [start(path, 0.01) for _ in range(3)]
    while kills < 6:
        time.sleep(chance.uniform(0.0, 0.1))
        place = chance.randrange(3)
        processes[place].kill()
        status, own, wrong = end(processes[place])
        assert not wrong
        begun += own
        kills += status == -signal.SIGKILL
        processes[place] = start(path, 0.01)
        if status == 0:
            break  # it was quicker than the kills
    ended = [end(process) for process in processes]
    assert [(status, wrong) for status, _, wrong in ended] == [(0, "")] * 3
    begun += [block for _, own, _ in ended for block in own]
    assert set(begun) == set(range(BLOCKS))
    assert len(begun) <= BLOCKS + kills, "nothing is lost but what was being computed"
    one = whole(tmp_path)
    assert chunks(path) == chunks(one)
    assert sorted(tree(path)) == sorted([*tree(one), "rho/searched.json"])


def test_one_process_continues_what_joined_ones_left(tmp_path, path):
    process = start(path, 0.005)
    wait_until((path / "rho" / "journals").exists, process, "a first block")
    process.kill()
    end(process)
    left = open_store(path).pending()  # without a warning: this is no damage
    assert left
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS)) as store:
        assert store.pending() == left and len(store.searched) == BLOCKS - len(left)
        assert not (path / "rho" / "journals").exists() and not (path / FOLDER).exists()
        write_blocks(store, values(N))
    assert chunks(path) == chunks(whole(tmp_path))
    join(path)  # a complete store
    assert not (path / FOLDER).exists() and open_store(path).complete


def test_others_are_refused_with_what_differs(path):
    process = start(path, 0.02)
    try:
        wait_until((path / "rho" / "journals").exists, process, "a first block")
        for changes, said in (
            ({"input_digest": "cd" * 32}, "the input data differ"),
            ({"version": "0.2.0"}, "version of pyedmcl: stored '0.1.0', asked for '0.2.0'"),
            ({"parameters": {"E": 3}}, "not asked for"),
        ):
            with pytest.raises(StoreMismatchError, match=said):
                join(path, **changes)
        for resume in (True, False):
            with pytest.raises(StoreError, match=f"joined runs .pid {process.pid} on .*: join them"):
                XmapStore.create_or_resume(path, make_manifest(N, ROWS), resume=resume)
    finally:
        process.send_signal(signal.SIGKILL)
        end(process)
    alone = XmapStore.create_or_resume(path, make_manifest(N, ROWS))
    with alone, pytest.raises(StoreError, match=f"another run .pid {os.getpid()}"):
        join(path)


def test_interrupting_one_leaves_the_others_at_work(tmp_path, path):
    first, second = start(path, 0.01), start(path, 0.01)
    assert said_by(first).startswith("begun")
    first.send_signal(signal.SIGINT)
    status, _, wrong = end(first)
    assert status != 0 and "the same call (or command) continues there" in wrong
    assert end(second)[::2] == (0, "")
    assert chunks(path) == chunks(whole(tmp_path)) and not (path / FOLDER).exists()


def test_who_is_suspended_loses_its_block_and_comes_back(tmp_path, path, monkeypatch):
    """It is alive, but gives no sign of it: what it computes is computed by others, and it then does so once more."""
    monkeypatch.setenv("PYEDMCL_CLAIM_LIFETIME", "0.4")
    first = start(path, 1.0)  # on a busy machine the signal may come late, and should not fall into the writing
    assert said_by(first).startswith("begun")
    first.send_signal(signal.SIGSTOP)
    try:
        second = start(path)
        assert end(second)[::2] == (0, "")
        assert chunks(path) == chunks(whole(tmp_path))
    finally:
        first.send_signal(signal.SIGCONT)
    assert end(first)[::2] == (0, "")
    assert chunks(path) == chunks(whole(tmp_path / "again"))
    assert open_store(path).complete and not (path / FOLDER).exists()
    assert len((path / "rho" / "blocks.jsonl").read_text().splitlines()) == BLOCKS


def test_who_is_suspended_while_it_writes_a_block_finds_it_done(path, monkeypatch):
    """Others end the map meanwhile, and clear the file that it had begun to write."""
    sync, missed = os.fsync, []

    def suspended(descriptor):
        sync(descriptor)
        monkeypatch.setattr(os, "fsync", sync)
        with Member(path) as other, XmapStore.join(path, make_manifest(N, ROWS), other) as other_store:
            write_blocks(other_store, values(N))
            other_store.settle()
        missed.append(chunks(path))

    with Member(path) as member, XmapStore.join(path, make_manifest(N, ROWS), member) as store:
        sink = SharedSink([store], path, member, 0.0)
        block = sink.claim()
        rows = values(N)[block.begin : block.end]
        monkeypatch.setattr(os, "fsync", suspended)
        with sink:
            sink.write(block, BlockResult([rows]))
    assert missed == [chunks(path)] and open_store(path).complete


def test_a_block_that_nobody_finished_cannot_vanish_unseen(path, monkeypatch):
    with Member(path) as member, XmapStore.join(path, make_manifest(N, ROWS), member) as store:
        sink = SharedSink([store], path, member, 0.0)
        block = sink.claim()
        replace = os.replace

        def vanished(source, target, **options):
            Path(source).unlink()
            replace(source, target, **options)

        monkeypatch.setattr(os, "replace", vanished)
        with pytest.raises(StoreWriteError, match="could not be written"):
            sink.write(block, BlockResult([values(N)[block.begin : block.end]]))


def test_a_journal_that_another_process_has_made_of_all_is_read(path):
    """One that joined while the last blocks were there sees the rest, which lie before the place it had read to."""
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS)) as store:
        write_blocks(store, values(N), range(20, BLOCKS))
    with Member(path) as member, XmapStore.join(path, make_manifest(N, ROWS), member) as late:
        member.withdraw()
        with Member(path) as other:
            quicker = XmapStore.join(path, make_manifest(N, ROWS), other)
            with quicker, SharedSink([quicker], path, other, 0.0):
                write_blocks(quicker, values(N))
        assert not (path / "rho" / "journals").exists()
        assert late.written(3) and not late.finished(3)
        late.refresh(whole=True)
        assert late.finished(3) and late.complete


def test_of_many_processes_one_reads_the_journals_of_all(path, monkeypatch):
    """Each of the others opens its own and the one that holds what all hold: not a thousand for a thousand."""
    with contextlib.ExitStack() as stack:
        sinks = []
        for place in range(4):
            member = stack.enter_context(Member(path))
            store = stack.enter_context(XmapStore.join(path, make_manifest(N, ROWS), member))
            sinks.append(SharedSink([store], path, member, place / 4))
        for sink in sinks:
            block = sink.claim()
            write_blocks(sink.stores[0], values(N), [block.number])
            sink.give_back(block)
        write_blocks(sinks[0].stores[0], values(N), sinks[0].stores[0].unwritten())
        opened, read = [], durable.read_journal

        def watched(file, *given):
            opened.append(file.name)
            return read(file, *given)

        monkeypatch.setattr(durable, "read_journal", watched)
        assert sinks[1]._member.take("journals")
        assert isinstance(sinks[0].claim(), Wait), "somebody is at it"
        sinks[1]._member.give("journals")
        assert [sink.claim() for sink in sinks] == [None] * 4
        assert len([name for name in opened if name != "blocks.jsonl"]) == 4, "all journals once"
        assert all(sink.stores[0].complete for sink in sinks)


def test_a_store_stays_as_it_was_cut(tmp_path, path):
    with XmapStore.create_or_resume(path, make_manifest(N, 3)) as store:
        write_blocks(store, values(N), [0, 5])
    join(path)
    with XmapStore.create_or_resume(path, make_manifest(N, N)) as store:
        assert store.complete and store.block_rows == 3
    np.testing.assert_array_equal(np.asarray(open_store(path).rho), values(N))


def test_a_store_that_another_process_makes_while_this_one_looks(path, monkeypatch):
    listdir = os.listdir

    def late(folder):
        monkeypatch.setattr(os, "listdir", listdir)
        join(path)
        return listdir(folder)

    path.mkdir()
    monkeypatch.setattr(os, "listdir", late)
    assert layout.read_attributes(path)["names"] == list(make_manifest(N, ROWS).names)


def test_a_block_that_is_written_but_in_no_journal_is_computed_again(tmp_path, path):
    """Its process was killed in between; the others come back to it once all else is written."""
    one = whole(tmp_path)
    with Member(path) as member, XmapStore.join(path, make_manifest(N, ROWS), member) as store:
        for number in (3, 7):
            (path / "rho" / f"c.{number}.0").write_bytes((one / "rho" / f"c.{number}.0").read_bytes()[: 8 * number])
        assert len(store.unwritten()) == BLOCKS - 2
    join(path)
    assert chunks(path) == chunks(one) and open_store(path).complete and not (path / FOLDER).exists()


def test_a_file_system_without_locks(tmp_path, path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="this system has no fcntl")

    def unsupported(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    join(path)
    assert chunks(path) == chunks(whole(tmp_path))


def test_a_full_disk_and_a_folder_that_cannot_be_written(path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    path.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(claims.durable, "make_folder", refused)
        with pytest.raises(StoreWriteError, match="Read-only file system"):
            join(path)
    real = claims.durable.write_file

    def full(place, data):
        if "c.7." in place.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(place, data)

    monkeypatch.setattr(claims.durable, "write_file", full)
    with pytest.raises(StoreWriteError, match="block 7 could not be written: No space left on device"):
        join(path, part="1/1")
    monkeypatch.undo()
    assert open_store(path).pending() == list(range(7, BLOCKS))
    join(path)
    assert open_store(path).complete


def test_a_process_that_is_pinned_to_fewer_cores_continues(path):
    device = {"name": "CPU", "driver": "1.0", "compute_units": 8}
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS, device=device)) as store:
        write_blocks(store, values(N), [0])
    join(path, device={**device, "compute_units": 1})
    assert open_store(path).complete and open_store(path).manifest.device["compute_units"] == 8
    join(path, device={**device, "driver": "2.0"})  # these kernels give the same bits on any device


def test_where_bits_depend_on_the_device_cores_still_do_not_matter(path):
    device, kernels = {"name": "CPU", "driver": "1.0", "compute_units": 8}, {"smap": "k" * 16}
    XmapStore.create_or_resume(path, make_manifest(N, ROWS, device=device, kernels=kernels)).close()
    join(path, device={**device, "compute_units": 1}, kernels=kernels)
    with pytest.raises(StoreMismatchError, match=r"device driver: stored '1\.0', asked for '2\.0'"):
        join(path, device={**device, "driver": "2.0"}, kernels=kernels)
