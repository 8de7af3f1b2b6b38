"""The store leaves alone what is not ours and refuses what another run made, saying what differs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from store_helpers import N, chunks, make_manifest, tree, values, write_blocks

from pyedmcl.errors import InputError, StoreError, StoreForeignError, StoreMismatchError, StoreWriteError
from pyedmcl.jobs import XmapStore, open_store


def test_foreign_paths_are_left_alone(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,b\n")
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "one.jpg").write_bytes(b"x")
    other = tmp_path / "other.zarr"
    other.mkdir()
    (other / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    torn = tmp_path / "torn.zarr"
    torn.mkdir()
    (torn / "zarr.json").write_text('{"zarr_for')
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)
    for place in (file, folder, other, torn, tmp_path / "dangling"):
        for resume in (True, False):
            with pytest.raises(StoreForeignError, match="choose another output path"):
                XmapStore.create_or_resume(place, make_manifest(), resume=resume)
        with pytest.raises(StoreForeignError, match="is no result of pyedmcl xmap: name the folder"):
            open_store(place)
    assert tree(tmp_path) == before
    for place in (tmp_path / "absent", tmp_path):
        with pytest.raises(StoreForeignError):
            open_store(place)
    with pytest.raises(StoreWriteError, match="cannot be written"):
        XmapStore.create_or_resume(file / "below.zarr", make_manifest())


def test_empty_folder_and_leftovers_are_fine(path):
    path.mkdir()
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        assert len(store.pending()) == 8
    # What a kill before the first whole file leaves.
    second = path.with_name("second.zarr")
    second.mkdir()
    (second / ".pyedmcl-lock").write_text("pid 1 on elsewhere")
    (second / ".pyedmcl-tmp-77-zarr.json").write_text("{")
    with XmapStore.create_or_resume(second, make_manifest()):
        assert not list(second.glob(".pyedmcl-tmp*"))
    assert sorted(tree(second)) == ["rho/blocks.jsonl", "rho/zarr.json", "zarr.json"]


def test_creation_may_be_killed_between_files(path):
    with XmapStore.create_or_resume(path, make_manifest()):
        pass
    whole = tree(path)
    for lost in ("rho/blocks.jsonl", "rho/zarr.json"):
        (path / lost).unlink()
        with XmapStore.create_or_resume(path, make_manifest()):
            pass
        assert tree(path) == whole


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"input_digest": "cd" * 32}, ["the input data differ", "abab", "cdcd"]),
        ({"names": [f"cell {i}" for i in range(N - 1)] + ["x"]}, ["names of the series", "'cell 36' at position 36"]),
        ({"dtype": "float64"}, ["dtype of rho: stored 'float32', asked for 'float64'"]),
        ({"parameters": {"E": [3] * 36 + [4], "tau": 2, "theta": 1}},
         ["tau: stored 1, asked for 2", "E: stored 3 at position 36, asked for 4", "Tp: stored 0, not asked for",
          "theta: not stored, asked for 1"]),
        ({"parameters": {**make_manifest().parameters, "E": 3}}, ["E: stored [3, 3", "asked for 3"]),
        ({"parameters": {**make_manifest().parameters, "tau": True}}, ["tau: stored 1, asked for True"]),
        ({"parameters": {**make_manifest().parameters, "E": [3] * 36 + [3.0]}}, ["position 36, asked for 3.0"]),
    ],
)  # fmt: skip
def test_mismatch_says_what_differs(finished, changes, expected):
    before = tree(finished)
    with pytest.raises(StoreMismatchError) as caught:
        XmapStore.create_or_resume(finished, make_manifest(**changes))
    message = str(caught.value)
    for text in expected:
        assert text in message
    assert "another output path, or start again with resume=False" in message
    assert "bit-identical" not in message and "device" not in message
    assert tree(finished) == before


def test_mismatch_of_number_of_series(finished):
    with pytest.raises(StoreMismatchError, match="number of series: stored 37, asked for 40"):
        XmapStore.create_or_resume(finished, make_manifest(40))


def test_mismatch_of_device_and_version(finished):
    changes = {"device": {"name": "GPU B", "driver": "1.0"}, "version": "0.2.0", "kernels": {"smap": "z" * 16}}
    path = finished.with_name("smap.zarr")
    XmapStore.create_or_resume(path, make_manifest(kernels={"smap": "k" * 16})).close()
    with pytest.raises(StoreMismatchError) as caught:
        XmapStore.create_or_resume(path, make_manifest(**changes))
    message = str(caught.value)
    for text in (
        "device name: stored 'GPU A', asked for 'GPU B'",
        "version of pyedmcl: stored '0.1.0', asked for '0.2.0'",
        "kernel smap: stored",
        "not be bit-identical",
        "Choose the stored device with device= and install pyedmcl 0.1.0, choose another",
        "another output path",
        "resume=False",
    ):
        assert text in message
    assert "driver" not in message and "input data" not in message


@pytest.mark.parametrize("kernels, same", [(["knn", "lookup"], True), (["knn", "smap"], False), (["of old"], False)])
def test_another_device_continues_where_bits_are_the_same(path, kernels, same):
    """Kernels say of themselves whether they are; what is not known any more is taken for different."""
    digests = dict.fromkeys(kernels, "k" * 16)
    XmapStore.create_or_resume(path, make_manifest(kernels=digests)).close()
    other = make_manifest(kernels=digests, device={"name": "GPU B", "driver": "2.0"})
    if same:
        with XmapStore.create_or_resume(path, other) as store:
            assert store.manifest.device["name"] == "GPU A"
    else:
        with pytest.raises(StoreMismatchError, match="device name: stored 'GPU A', asked for 'GPU B'"):
            XmapStore.create_or_resume(path, other)


def test_mismatch_of_work_and_device(path):
    """Another device is listed, but choosing the stored one would not help."""
    kernels = {"smap": "k" * 16}
    XmapStore.create_or_resume(path, make_manifest(kernels=kernels)).close()
    other = make_manifest(input_digest="cd" * 32, device={"name": "B"}, version="2", kernels=kernels)
    with pytest.raises(StoreMismatchError) as caught:
        XmapStore.create_or_resume(path, other)
    message = str(caught.value)
    for text in ("input data differ", "device name", "device driver: stored '1.0', not asked for", "bit-identical"):
        assert text in message
    assert "stored device" not in message
    assert "install" not in message


def test_kernels_of_other_work_are_not_listed(path):
    XmapStore.create_or_resume(path, make_manifest(kernels={"knn": "k" * 16, "smap": "p" * 16})).close()
    changed = {**make_manifest().parameters, "tau": 2}
    with pytest.raises(StoreMismatchError, match="tau: stored 1, asked for 2") as caught:
        XmapStore.create_or_resume(path, make_manifest(kernels={"knn": "k" * 16}, parameters=changed))
    assert not any(word in str(caught.value) for word in ("kernel smap", "device name", "bit-identical"))
    with pytest.raises(StoreMismatchError, match=r"kernel smap: stored 'p.*, not asked for"):
        XmapStore.create_or_resume(path, make_manifest(kernels={"knn": "k" * 16}))


def test_equal_parameters_in_other_clothes(finished):
    clothes = {"E": np.full(N, 3), "tau": np.int64(1), "Tp": 0, "exclusion_radius": 0, "knn": None, "dtype": "float32"}
    with XmapStore.create_or_resume(finished, make_manifest(parameters=clothes)) as store:
        assert store.complete


def test_manifest_checks_its_fields():
    for changes in ({"block_rows": 0}, {"block_rows": N + 1}, {"names": []}, {"dtype": "int8"},
                    {"parameters": {"x": float("nan")}}, {"parameters": {"x": object()}}):  # fmt: skip
        with pytest.raises(InputError):
            make_manifest(**changes)


def test_other_format_and_damaged_manifest(finished):
    file = finished / "zarr.json"
    document = json.loads(file.read_text())
    document["attributes"]["pyedmcl"]["format"] = 99
    file.write_text(json.dumps(document))
    for resume in (True, False):
        with pytest.raises(StoreMismatchError, match="format 99"):
            XmapStore.create_or_resume(finished, make_manifest(), resume=resume)
    document["attributes"]["pyedmcl"]["format"] = 4
    del document["attributes"]["names"]
    file.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=r"damaged.*names"):
        open_store(finished)


def test_no_resume_starts_afresh(finished):
    (finished / "notes.txt").write_text("mine")
    (finished / "rho" / "notes.txt").write_text("mine")
    manifest = make_manifest(20, 4, input_digest="cd" * 32)
    with XmapStore.create_or_resume(finished, manifest, resume=False) as store:
        assert store.pending() == list(range(5)) and store.E is None
        assert chunks(finished) == {}
        write_blocks(store, values(20))
    assert open_store(finished).manifest.input_digest == "cd" * 32
    np.testing.assert_array_equal(open_store(finished).rho[:], values(20))
    assert (finished / "notes.txt").read_text() == (finished / "rho" / "notes.txt").read_text() == "mine"
