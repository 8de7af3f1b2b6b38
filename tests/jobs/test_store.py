"""The store of all-pairs results: what is written is read, by us and by Zarr, within bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_helpers import ROWS, N, make_manifest, values, write_blocks

from pyedmcl import parallel
from pyedmcl.errors import InputError, StoreError, StoreMismatchError
from pyedmcl.jobs import XmapStore, default_block_rows, open_store
from pyedmcl.jobs.blocks import shared_block_rows
from pyedmcl.jobs.durable import JournalRead, journal_line, read_journal

ROOT = Path(__file__).resolve().parents[2]


def test_round_trip(path):
    rho = values()
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert (store.shape, store.block_rows, store.n_blocks) == ((N, N), ROWS, 8)
        assert store.rows(7) == (35, 37)
        assert store.pending() == list(range(8)) and not store.complete
        write_blocks(store, rho, [3, 7])
        assert store.pending() == [0, 1, 2, 4, 5, 6]
        half = store.rho[14:21]
        assert np.isnan(half[0]).all() and np.isnan(half[6]).all()
        np.testing.assert_array_equal(half[1:6], rho[15:20])
        write_blocks(store, rho)
        assert store.complete and store.pending() == []
    back = open_store(path)
    assert back.complete and back.names == make_manifest().names and back.E is None
    np.testing.assert_array_equal(np.asarray(back.rho), rho)
    assert back.manifest == replace(make_manifest(), created=back.manifest.created)
    # The chunks are whole, the last one padded; nothing private is left.
    assert {f.stat().st_size for f in (path / "rho").glob("c.*")} == {ROWS * N * 4}
    assert not list(path.rglob(".pyedmcl-*"))


def test_float64_is_kept(path):
    rho = np.random.default_rng(1).normal(size=(N, N))
    with XmapStore.create_or_resume(path, make_manifest(dtype="float64")) as store:
        write_blocks(store, rho)
    back = open_store(path).rho
    assert back.dtype == np.float64
    np.testing.assert_array_equal(back[:], rho)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        np.int64(12),
        slice(None),
        slice(4, 6),
        slice(30, 2, -3),
        slice(9, 9),
        Ellipsis,
        (3, 4),
        (slice(None), 8),
        (slice(2, 33, 7), slice(1, None, 5)),
        (Ellipsis, -2),
        ([36, 0, 17, 17], slice(3)),
        (5, [1, 30]),
        (np.arange(N) % 3 == 0, 2),
        (slice(3, 20), np.array([4, 4, 0])),
        [],
    ],
)
def test_indexing_as_numpy(finished, key):
    rho, lazy = values(), open_store(finished).rho
    expected = rho[np.array(key, int)] if isinstance(key, list) else rho[key]
    found = lazy[key]
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


def test_indexing_errors(finished):
    lazy = open_store(finished).rho
    assert lazy.shape == (N, N) and len(lazy) == N and lazy.ndim == 2 and "37" in repr(lazy)
    for key in (N, (0, N), (0, 0, 0), (None, 0), (np.array([1, 2]), np.array([1, 2])), np.zeros((2, 2), int)):
        with pytest.raises(IndexError):
            lazy[key]
    with pytest.raises(ValueError, match="copy"):
        lazy.__array__(copy=False)
    assert np.asarray(lazy, dtype=np.float64).dtype == np.float64


def test_zarr_reads_it(finished):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr >= 3 (Python 3.11) is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(str(finished), mode="r")
        assert sorted(name for name, _ in group.members()) == ["E", "rho"]
        rho = group["rho"]
        assert rho.chunks == (ROWS, N) and rho.dtype == np.float32 and rho.metadata.dimension_names[0] == "library"
        np.testing.assert_array_equal(rho[:], values())
        assert group["E"].dtype == np.int32
        np.testing.assert_array_equal(group["E"][:], np.arange(1, N + 1))
    assert group.attrs["names"] == list(make_manifest().names)
    assert group.attrs["pyedmcl"]["parameters"]["tau"] == 1


def test_zarr_reads_an_unfinished_one(path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr >= 3 (Python 3.11) is not installed")
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        write_blocks(store, values(), [7])
    rho = zarr.open_group(str(path), mode="r")["rho"][:]
    assert np.isnan(rho[:35]).all()
    np.testing.assert_array_equal(rho[35:], values()[35:])


def test_memory_stays_within_blocks(path):
    n, rows = 2000, 16
    block, whole = rows * n * 4, n * n * 4
    names = [str(i) for i in range(n)]
    with XmapStore.create_or_resume(path, make_manifest(n, rows, names=names)) as store:
        part = np.ones((rows, n), dtype=np.float32)
        store.write(0, part)
        open_store(path).rho[:3, :3]  # imports do not count
        parallel._threads.end()  # nor the data of an earlier test's call, which a thread may still describe
        tracemalloc.start()
        for index in range(0, store.n_blocks):
            start, stop = store.rows(index)
            store.write(index, part[: stop - start])
        column = store.rho[:, 5]
        corner = open_store(path).rho[1990:, :3]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert column.shape == (n,) and (column == 1).all() and (corner == 1).all()
    # Names and journal entries take some 1 MB of this; the whole result would be 16 MB.
    assert peak < 4 * block + 2_000_000 < whole / 4 + block


def test_write_checks_its_input(path):
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        with pytest.raises(InputError, match=r"\(5, 37\).*\(4, 37\)"):
            store.write(0, np.zeros((4, N), np.float32))
        with pytest.raises(InputError, match="int64"):
            store.write(0, np.zeros((ROWS, N), np.int64))
        with pytest.raises(InputError, match="block 8"):
            store.write(8, np.zeros((ROWS, N), np.float32))
        assert len(store.pending()) == 8
        store.write(0, np.asfortranarray(values()[:ROWS].astype(">f4")))  # any order is stored alike
        np.testing.assert_array_equal(store.rho[:ROWS], values()[:ROWS])
    with pytest.raises(StoreError, match="reading only"):
        store.write(0, values()[:ROWS])
    with pytest.raises(StoreError, match="reading only"):
        open_store(path).write(0, values()[:ROWS])
    with pytest.raises(InputError, match="mode 'w'"):
        open_store(path, "w")


def test_a_block_is_on_the_disk_before_it_is_journalled(path, monkeypatch):
    """Chunk written and synced, renamed, its folder synced; only then the journal's line, synced too."""
    calls = []

    def watch(name):
        real = getattr(os, name)

        def watched(*arguments):
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, watched)

    with XmapStore.create_or_resume(path, make_manifest()) as store:
        for name in ("write", "fsync", "replace"):
            watch(name)
        write_blocks(store, values(), [0])
        monkeypatch.undo()
    folder_sync = [] if sys.platform == "win32" else ["fsync"]
    assert calls == ["write", "fsync", "replace", *folder_sync, "write", "fsync"]


def test_journal_lines_end(tmp_path):
    file = tmp_path / "j.jsonl"
    assert read_journal(file, "run") == JournalRead([], 0, True, [])
    a, b, other = (journal_line(entry, of) for entry, of in (({"a": 1}, "run"), ({"b": 2}, "run"), ({"c": 3}, "other")))
    for text, entries, clean, foreign in (
        (a + b, [{"a": 1}, {"b": 2}], True, []),
        (a + b[:-1], [{"a": 1}], False, []),
        (a[:4] + b"\n" + b, [{"b": 2}], False, []),
        (a.replace(b"1", b"2") + b, [{"b": 2}], False, []),
        (a + other + b, [{"a": 1}, {"b": 2}], False, [{"c": 3}]),
        (a.replace(b"run", b"other"), [], False, []),
        (b'{"a": 1}\n', [], False, []),
    ):
        file.write_bytes(text)
        assert read_journal(file, "run") == JournalRead(entries, text.rfind(b"\n") + 1, clean, foreign)


def test_E_is_kept(path):
    E = np.arange(1, N + 1)
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.E is None
        for wrong in (E[:-1], E.astype(float), E - 1):
            with pytest.raises(InputError, match="E"):
                store.set_E(wrong)
        store.set_E(E + 1)
        store.set_E(E)  # nothing computed from the first yet
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.E.dtype == np.int32
        np.testing.assert_array_equal(store.E, E)
        write_blocks(store, values(), [0])
        store.set_E(E)
        with pytest.raises(StoreMismatchError, match="another E"):
            store.set_E(E + 1)
    chunk = path / "E" / "c.0"
    chunk.write_bytes(b"\0" * chunk.stat().st_size)
    with pytest.raises(StoreError, match=r"E of .* has changed.*run the same command again"):
        _ = open_store(path).E
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert store.E is None  # to be found and set again
        with pytest.raises(StoreMismatchError, match="another E"):
            store.set_E(E + 1)
        store.set_E(E)
    np.testing.assert_array_equal(open_store(path).E, E)


def test_default_block_rows():
    sizes = [1, 2, 15, 64, 154, 1000, 2000, 10_608, 30_000, 100_000, 1_000_000, 5_000_000]
    rows = [default_block_rows(n) for n in sizes]
    assert rows[:3] == [1, 2, 15] and rows[3:7] == [16, 16, 62, 64] and rows[-1] == 1
    for n, r in zip(sizes, rows, strict=True):
        assert 1 <= r <= n
        assert r == 1 or r * n * 4 <= 32e6
        if 16_384 <= n <= 1_000_000:
            assert r * n * 4 >= 4e6
    with pytest.raises(InputError):
        default_block_rows(0)


def test_blocks_for_many_processes():
    """Each gets some twenty, which are not so small that claiming them takes longer than computing them."""
    n, n_steps = 101_729, 8_528
    rows = [shared_block_rows(20, n, n * n_steps, processes) for processes in (1, 2, 200, 400, 1000, 4096)]
    assert rows == [20, 20, 20, 12, 5, 5]
    assert shared_block_rows(62, 1000, 1000 * 1000, 64) == 62, "these are computed in no time"


def test_import_is_light():
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pyedmcl.jobs\n"
        "heavy = {'pyopencl', 'zarr', 'pandas', 'xarray', 'h5py', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
