"""Damage of a store's small files is told: nothing is taken from them that was not written."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from store_helpers import N, finish, make_manifest, values, write_blocks

from pyedmcl.errors import StoreError, StoreMismatchError
from pyedmcl.jobs import XmapStore, open_store

PARAMETERS = {'{"kernel":"knn"}': {"unroll": 4, "wg": 1}}
SEARCHED = [{"E": 1, "used": "kdtree", "interval": (0.9, 1.0)}]


@pytest.fixture
def finished(tmp_path):
    path = finish(tmp_path / "out.zarr")
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        store.set_parameters(PARAMETERS)
        store.set_searched(SEARCHED)
    return path


def edit(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_parameters_that_were_edited_are_refused(finished):
    edit(finished / "rho" / "tuning.json", '"unroll": 4', '"unroll": 5')
    with (
        XmapStore.create_or_resume(finished, make_manifest()) as store,
        pytest.raises(StoreError, match=r"tuning.json has changed.*start again with resume=False"),
    ):
        _ = store.parameters
    with XmapStore.create_or_resume(finished, make_manifest(), resume=False) as store:
        assert store.parameters == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": 1}', b'{"sha256": "0", "content": {}}', b"[" * 100_000])
def test_records_that_are_none_of_ours_are_refused(finished, content):
    for name in ("tuning.json", "searched.json"):
        (finished / "rho" / name).write_bytes(content)
    with XmapStore.create_or_resume(finished, make_manifest()) as store:
        for read in (lambda: store.parameters, lambda: store.searched):
            with pytest.raises(StoreError, match=r"json|JSON"):
                read()


def test_a_reader_is_told_of_a_lost_record_of_searches(finished):
    edit(finished / "rho" / "searched.json", "0.9", "0.8")
    with pytest.warns(RuntimeWarning, match=r"searched.json has changed"):
        assert open_store(finished).searched == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("cell 7", "cell 8"), ('"tau": 1', '"tau": 3'), ('"block_rows": 5', '"block_rows": 4'),
     ('"sha256"', '"sha255"'), ('"created": "2', '"created": "1')],
)  # fmt: skip
def test_a_manifest_that_was_edited_is_refused(finished, old, new):
    edit(finished / "zarr.json", f'"{old}"' if old.startswith("cell") else old, f'"{new}"' if "cell" in new else new)
    with pytest.raises(StoreError, match=r"manifest of .* is damaged.*checksum differs"):
        open_store(finished)
    with pytest.raises(StoreError, match="damaged"):
        XmapStore.create_or_resume(finished, make_manifest())
    XmapStore.create_or_resume(finished, make_manifest(), resume=False).close()


def test_attributes_of_others_beside_ours_are_theirs(finished):
    file = finished / "zarr.json"
    document = json.loads(file.read_text())
    document["attributes"]["lab"] = "mine"
    file.write_text(json.dumps(document))
    assert open_store(finished).complete


def test_E_is_never_read_as_0(finished):
    whole = (finished / "E" / "c.0").read_bytes()
    for name, content in (("c.0", whole[:-1]), ("c.0", None), ("zarr.json", b"{}"), ("zarr.json", None)):
        file = finished / "E" / name
        before = file.read_bytes()
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(StoreError, match=r"E of .* (has changed|is missing).*run the same command again"):
            open_store(finished).dimensions()
        with XmapStore.create_or_resume(finished, make_manifest()) as store:
            assert store.complete and store.E is None
            with pytest.raises(StoreMismatchError, match="another E"):
                store.set_E(np.full(N, 3))
            store.set_E(np.arange(1, N + 1))
        assert file.read_bytes() == before
    edit(finished / "E" / "zarr.json", '"fill_value": 0', '"fill_value": 1')
    with pytest.raises(StoreError, match="E of"):
        _ = open_store(finished).E


def test_before_any_block_is_done_E_may_be_unknown(tmp_path):
    with XmapStore.create_or_resume(tmp_path / "a", make_manifest()):
        pass
    assert open_store(tmp_path / "a").dimensions().tolist() == [0] * N


def test_a_journal_that_lost_blocks_is_told(finished):
    journal = finished / "rho" / "blocks.jsonl"
    edit(journal, '{"block": 3', '{"block" 3')
    with pytest.warns(RuntimeWarning, match="1 of 8 blocks count as not done, and their rho is NaN"):
        assert np.isnan(open_store(finished).rho[15:20]).all()
    journal.unlink()
    journal.mkdir()
    with pytest.raises(StoreError, match=r"blocks.jsonl cannot be read"):
        open_store(finished)
    with pytest.raises(StoreError, match=r"blocks.jsonl cannot be read"):
        XmapStore.create_or_resume(finished, make_manifest())


@pytest.mark.parametrize(
    ("old", "new"), [('{"block": 3', '{"block": 2'), ('"crc32"', '"crc31"'), ('"time": "2', '"time": "1')]
)
def test_a_line_of_the_journal_that_was_changed_is_told(finished, old, new):
    journal = finished / "rho" / "blocks.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert old in lines[3]
    journal.write_text("".join([*lines[:3], lines[3].replace(old, new), *lines[4:]]))
    with pytest.warns(RuntimeWarning, match="1 of 8 blocks count as not done"):
        assert open_store(finished).pending() == [3]
    with XmapStore.create_or_resume(finished, make_manifest()) as store:
        assert store.pending() == [3]
        write_blocks(store, values())
    np.testing.assert_array_equal(open_store(finished).rho[:], values())


def test_a_journal_that_is_lost_is_told(finished):
    (finished / "rho" / "blocks.jsonl").unlink()
    with pytest.warns(RuntimeWarning, match="do not agree.*: 8 of 8 blocks count as not done"):
        assert np.isnan(open_store(finished).rho[:]).all()


def test_a_block_that_is_cut_while_it_is_in_use_is_told(finished):
    store = open_store(finished)
    store.rho[0:5]
    chunk = finished / "rho" / "c.0.0"
    chunk.write_bytes(chunk.read_bytes()[:30])
    with pytest.raises(StoreError, match="became shorter while it was in use"):
        store.rho[0:5]


def test_what_other_readers_of_zarr_see_is_checked_and_mended(finished):
    edit(finished / "rho" / "zarr.json", '"endian": "little"', '"endian": "big"')
    with pytest.warns(RuntimeWarning, match="other readers of Zarr may be misled"):
        np.testing.assert_array_equal(open_store(finished).rho[:], values())
    XmapStore.create_or_resume(finished, make_manifest()).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_store(finished)
