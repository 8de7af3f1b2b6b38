"""The store after kill -9, damage, a full disk, an interrupt and beside a second writer."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from process_helpers import end_of
from store_helpers import ROWS, N, chunks, make_manifest, tree, values, write_blocks

from pyedmcl.errors import StoreError, StoreWriteError
from pyedmcl.jobs import XmapStore, durable, open_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "torn", [b'{"block": 6, "sha', b'{"block": 6, "sha256": "0"}', b"\0" * 40, b"\0\0\n", b"[1]\n"]
)
def test_torn_journal(path, torn):
    journal = path / "rho" / "blocks.jsonl"
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        write_blocks(store, values(), [0, 1, 2])
    kept = journal.read_bytes()
    journal.write_bytes(kept + torn)
    with pytest.warns(RuntimeWarning, match=r"do not agree, as after a kill or damage.*: 5 of 8 blocks count"):
        assert open_store(path).pending() == [3, 4, 5, 6, 7]
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.pending() == [3, 4, 5, 6, 7]
        assert journal.read_bytes() == kept
        write_blocks(store, values())
    assert [json.loads(line)["block"] for line in journal.read_text().splitlines()] == list(range(8))
    np.testing.assert_array_equal(open_store(path).rho[:], values())


def test_damaged_chunks_are_done_again(finished):
    whole = chunks(finished)
    rho = finished / "rho"
    (rho / "c.1.0").unlink()
    (rho / "c.2.0").write_bytes(b"short")
    changed = bytearray((rho / "c.4.0").read_bytes())
    changed[100] ^= 1
    (rho / "c.4.0").write_bytes(changed)
    with pytest.warns(RuntimeWarning, match=r"do not agree, as after a kill or damage.*: 2 of 8 blocks count"):
        reader = open_store(finished)
    assert reader.pending() == [1, 2]
    assert np.isnan(reader.rho[5, 0]) and reader.rho[15, 0] == values()[15, 0]
    with pytest.raises(StoreError, match=r"block 4 .* has changed"):
        reader.rho[20:21]
    with pytest.warns(RuntimeWarning, match="1 of 8 blocks .* have changed since they were written: they are computed"):
        store = XmapStore.create_or_resume(finished, make_manifest())
    with store:
        assert store.pending() == [1, 2, 4]
        assert np.isnan(store.rho[20]).all()
        write_blocks(store, values())
    assert chunks(finished) == whole


def test_written_but_not_journalled_counts_as_not_done(path):
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        write_blocks(store, values())
    journal = path / "rho" / "blocks.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.pending() == [7]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("nth", [1, 2])
def test_failing_disk(path, monkeypatch, call, nth):
    """The nth call fails: in the chunk or, for a later one, the folder's sync or the journal."""
    store = XmapStore.create_or_resume(path, make_manifest())
    write_blocks(store, values(), [0, 1])
    real, seen = getattr(os, call), []

    def failing(*arguments):
        seen.append(call)
        if len(seen) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(os, call, failing)
    block = 2
    if call == "replace" and nth == 2:  # a block needs one rename only: the first passes
        store.write(2, values()[10:15])
        block = 3
    with pytest.raises(StoreWriteError) as caught:
        store.write(block, values()[10:15])
    monkeypatch.undo()
    message = str(caught.value)
    assert f"block {block}" in message and f"{block} of 8 blocks are kept" in message
    assert "No space left" in message and "run the same command again" in message
    assert caught.value.errno == errno.ENOSPC and isinstance(caught.value, OSError)
    assert not list(path.rglob(".pyedmcl-tmp*"))
    assert store.pending()[0] == block
    store.close()
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.pending()[0] == block
        write_blocks(store, values())
    np.testing.assert_array_equal(open_store(path).rho[:], values())


def test_half_a_journal_line_is_taken_back(path, monkeypatch):
    store = XmapStore.create_or_resume(path, make_manifest())
    real = os.write

    def torn(descriptor, data):
        if bytes(data[:8]) == b'{"block"':
            real(descriptor, data[:20])
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, data)

    def no_truncate(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", torn)
    real_truncate = os.ftruncate
    # The cut before the append works, the one after the failure does not.
    calls = iter([real_truncate, no_truncate])
    monkeypatch.setattr(os, "ftruncate", lambda *arguments: next(calls)(*arguments))
    with pytest.raises(StoreWriteError, match="block 0"):
        store.write(0, values()[:ROWS])
    monkeypatch.undo()
    assert len((path / "rho" / "blocks.jsonl").read_bytes()) == 20
    write_blocks(store, values())
    store.close()
    assert open_store(path).complete
    assert len((path / "rho" / "blocks.jsonl").read_text().splitlines()) == 8


def test_permission_and_creation_failures(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreWriteError, match=r"cannot be written: Permission denied. Make the folder writable"):
        XmapStore.create_or_resume(path, make_manifest())
    monkeypatch.undo()
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(StoreWriteError, match=r"E could not be written: Permission denied"):
            store.set_E(np.ones(N, int))
        monkeypatch.undo()
        assert store.E is None


def test_interrupt_leaves_no_temporary(path, monkeypatch):
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        write_blocks(store, values(), [0])

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.write(1, values()[5:10])
        monkeypatch.undo()
        assert store.pending() == list(range(1, 8))
        assert sorted(chunks(path)) == ["rho/c.0.0"] and not list(path.rglob(".pyedmcl-tmp*"))


def test_really_full_disk(tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    try:
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)], capture_output=True)
    except OSError as error:
        pytest.skip(f"no tmpfs can be mounted here: {error}")
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.decode().strip()}")
    try:
        rho, path = values(400), mount / "out.zarr"
        with XmapStore.create_or_resume(path, make_manifest(400, 16)) as store:
            with pytest.raises(StoreWriteError, match=r"No space left on device. Free some disk space"):
                write_blocks(store, rho)
            done = store.n_blocks - len(store.pending())
            assert 0 < done < store.n_blocks
            assert not list(path.rglob(".pyedmcl-tmp*"))
        subprocess.run(["mount", "-o", "remount,size=4m", str(mount)], check=True)
        with XmapStore.create_or_resume(path, make_manifest(400, 16)) as store:
            assert store.n_blocks - len(store.pending()) == done
            write_blocks(store, rho)
        np.testing.assert_array_equal(open_store(path).rho[:], rho)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


# Writes a block for every line that it is given; to its end where there is nobody to give lines.
WRITER = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
from store_helpers import make_manifest, values
from pyedmcl.jobs import XmapStore
n, rows = 96, 2
rho = values(n)
with XmapStore.create_or_resume(sys.argv[1], make_manifest(n, rows)) as store:
    if store.E is None:
        store.set_E([2] * n)
    print("ready", flush=True)
    for block in store.pending():
        sys.stdin.readline()
        start, stop = store.rows(block)
        store.write(block, rho[start:stop])
"""


def start_writer(path, *, told=True):
    code = WRITER.format(root=str(ROOT), tests=str(ROOT / "tests"))
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, bufsize=0,
                            stdin=subprocess.PIPE if told else subprocess.DEVNULL)  # fmt: skip


def end(process):
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_killed_at_random_moments(tmp_path):
    whole, path = tmp_path / "whole.zarr", tmp_path / "killed.zarr"
    with XmapStore.create_or_resume(whole, make_manifest(96, 2)) as store:
        store.set_E([2] * 96)
        write_blocks(store, values(96))
    chance, left = random.Random(), []
    for attempt in range(5):
        process = start_writer(path)
        if attempt:  # the first may be killed while it still sets up
            process.stdout.readline()
        process.stdin.write(b"\n" * 9)  # 45 of the 48 blocks at most: it cannot come to its end
        time.sleep(chance.uniform(0.0, 0.05))
        end(process)
        if (path / "zarr.json").exists():
            reader = open_store(path)
            left.append(len(reader.pending()))
            rows = reader.rho[:]
            assert np.array_equal(rows[~np.isnan(rows[:, 0])], values(96)[~np.isnan(rows[:, 0])])
    assert left and left == sorted(left, reverse=True)
    assert left[-1] >= 3
    process = start_writer(path, told=False)
    end_of(process)
    assert process.returncode == 0
    assert open_store(path).complete
    assert chunks(path) == chunks(whole)
    assert sorted(tree(path)) == sorted(tree(whole))


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "out.zarr"
    process = start_writer(path)
    try:
        process.stdout.readline()
        for resume in (True, False):
            with pytest.raises(StoreError, match=f"another run .pid {process.pid} on"):
                XmapStore.create_or_resume(path, make_manifest(96, 2), resume=resume)
        assert open_store(path).n_blocks == 48  # reading is free
    finally:
        end(process)
    assert (path / ".pyedmcl-lock").exists()
    with XmapStore.create_or_resume(path, make_manifest(96, 2)) as store:  # a stale lock blocks nobody
        assert store.E is not None
        with pytest.raises(StoreError, match=f"pid {os.getpid()}"):
            XmapStore.create_or_resume(path, make_manifest(96, 2))
    assert not (path / ".pyedmcl-lock").exists()
    abandoned = XmapStore.create_or_resume(path, make_manifest(96, 2))
    del abandoned
    XmapStore.create_or_resume(path, make_manifest(96, 2)).close()


def test_a_lock_that_cannot_be_signed_is_not_left(path, monkeypatch):
    path.mkdir()
    lease = durable.Lease(path / ".pyedmcl-lock")
    with monkeypatch.context() as patch:
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(durable, "write_all", full)
        with pytest.raises(OSError, match="No space left"):
            lease.acquire()
    assert list(path.iterdir()) == []
    lease.acquire()
    lease.release()


def test_lock_where_the_file_system_has_none(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="this system has no fcntl")

    def unsupported(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    path.mkdir()
    lock = path / ".pyedmcl-lock"
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        lock.write_text(f"pid {sleeper.pid} on {os.uname().nodename}")
        with pytest.raises(StoreError, match=f"pid {sleeper.pid}"):
            XmapStore.create_or_resume(path, make_manifest())
    finally:
        sleeper.kill()
        sleeper.wait()
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert lock.read_text().startswith(f"pid {os.getpid()} ")
        write_blocks(store, values())
    assert open_store(path).complete
