"""Results that are saved and opened again are the same; what was damaged or is not ours is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import io
import json
import tracemalloc
import typing
import zipfile

import numpy as np
import pytest
from result_makers import MAKERS, VALUES, X, made

import pyedmcl
from pyedmcl.crossmap.results import XmapResult
from pyedmcl.errors import InputError, OutputError, StoreError, StoreForeignError, StoreMismatchError, StoreWriteError
from pyedmcl.functions import FUNCTIONS, RESULTS
from pyedmcl.results import saved
from pyedmcl.results.result import ANSWER_ROWS, Result, brief

#: Results whose numbers stand in the first line, or that have no rows a reader looks at first.
WITHOUT_ROWS = {
    "KnnResult", "EmbedResult", "RecurrencePlot", "DistancePlot", "LagProfile", "RecurrenceNetwork", "RecurrenceResult",
}  # fmt: skip


def same(one, other):
    """Whether two values are alike in class, type and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype == object:
        return one.shape == other.shape and all(map(same, one.ravel(), other.ravel()))
    if isinstance(one, (np.ndarray, np.generic)):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one) if f.init)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)


def test_every_class_that_a_function_returns_can_be_saved():
    returned = set()
    for name in FUNCTIONS:
        hint = typing.get_type_hints(getattr(pyedmcl, name)).get("return")
        for cls in typing.get_args(hint) or (hint,):
            if (
                dataclasses.is_dataclass(cls)
                and cls.__module__.startswith("pyedmcl")
                and cls.__module__ != "pyedmcl.export.kernel_source"
            ):
                returned.add(cls)
    assert len(returned) > 15
    assert all(issubclass(cls, Result) and RESULTS.get(cls.__name__) for cls in returned)
    assert set(MAKERS) == set(RESULTS)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_opened_is_what_was_saved(name, one_device, tmp_path):
    result = made(name, one_device)
    path = result.save(tmp_path / "result.edm")
    again = pyedmcl.open_result(path)
    assert type(again).__name__ == name
    assert same(result, again)
    if hasattr(result, "to_frame"):
        assert result.to_frame().equals(again.to_frame())
    again.save(tmp_path / "again.edm")
    assert (tmp_path / "again.edm").read_bytes() == path.read_bytes()
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".edm"] == []


@pytest.mark.parametrize("name", MAKERS)
def test_results_are_short_in_a_terminal_and_escaped_in_a_notebook(name, one_device):
    result = made(name, one_device)
    lines = repr(result).splitlines()
    assert lines[0].startswith(name) and len(lines) <= 11 and max(map(len, lines)) < 600
    page = result._repr_html_()
    assert page.startswith("<table>") and name in page and len(page) < 8000
    answer = result.answer()
    if answer is None:
        assert name in WITHOUT_ROWS
        return
    assert all(column in lines[1] for column in answer.columns)
    first = answer.cells()[0]
    assert all(text in lines[2] for text in first) and all(f">{html.escape(text)}<" in page for text in first)
    shown = len(answer.rows)
    assert shown == min(answer.total, ANSWER_ROWS) and (f"{answer.total - shown:,} more" in lines[-1]) == (
        answer.total > shown)  # fmt: skip


@pytest.mark.parametrize("name", ["XmapResult", "XmapSignificance", "CcmMatrixResult"])
def test_the_strongest_pair_is_the_first_row(name, one_device):
    result = made(name, one_device)
    rho = np.array(result.matrices[-1] if name == "CcmMatrixResult" else result.rho, float)
    np.fill_diagonal(rho, -1)
    effect, cause = np.unravel_index(rho.argmax(), rho.shape)
    assert list(result.answer().rows[0][:2]) == [result.names[cause], result.names[effect]]


def test_names_cannot_break_what_is_shown():
    hostile = ("<b>x</b>", "a\nb")
    result = XmapResult(np.array([[1, 0.5], [0.25, 1]]), np.array([2, 3]), hostile)
    assert "a\\nb" in repr(result) and len(repr(result).splitlines()) == 4
    assert "<b>x" not in result._repr_html_() and "&lt;b&gt;x" in result._repr_html_()


def test_a_result_that_is_large_or_on_the_disk_is_not_read_to_be_shown():
    class Stored:
        shape, ndim, dtype = (3, 3), 2, np.dtype("f4")

        def __getitem__(self, key):
            raise AssertionError("read")

    assert "3 x 3" in repr(XmapResult(Stored(), np.full(3, 2), tuple("abc")))
    n = 300
    assert "\n" not in repr(XmapResult(np.zeros((n, n)), np.full(n, 2), tuple(map(str, range(n)))))


@pytest.mark.parametrize("name", MAKERS)
def test_provenance_has_one_shape(name, one_device, tmp_path):
    """What was given, and by whom, comes first; what a device did comes behind it, kernels last."""
    result = made(name, one_device)
    record = dict(result.provenance)
    keys = list(record)
    assert keys[:7] == ["data", "seed", "command", "version", "versions", "function", "arguments"]
    assert record["function"] in FUNCTIONS and record["version"] == pyedmcl.__version__ and record["command"] is None
    for described in record["data"].values():
        assert {"file", "rows", "series", "digest"} <= set(described)
    assert record["data"] or name == "RqaBatch"
    if "kernels" in keys:
        assert keys.index("device") < keys.index("kernels") < keys.index("tuning")
    assert dict(pyedmcl.open_result(result.save(tmp_path / "result.edm")).provenance) == record


def test_names_cannot_write_into_a_notebook():
    page = pyedmcl.embed({"<script>alert(1)</script>": X}, E=1)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_values_are_shown_in_few_words():
    assert brief(np.arange(3)) == "[0, 1, 2]"
    assert brief(np.array([[1.5, np.nan], [0.25, 2.0]])) == "<2 x 2: 0.25 to 2>"
    assert brief(np.full((5, 5), np.nan)) == "<5 x 5: all NaN>"
    assert brief(tuple("abcdef")) == "('a', 'b', 'c', 'd', ... 6 in all)"
    assert len(brief("x" * 500)) == 60


def test_numpy_reads_the_arrays(one_device, tmp_path):
    result = made("XmapResult", one_device)
    with np.load(result.save(tmp_path / "map.edm"), allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["rho"], result.rho)


def test_special_values_survive(tmp_path):
    found = dataclasses.replace(
        pyedmcl.embed(X, E=1), time=np.arange("2001-01", "2034-05", dtype="datetime64[M]"), names=("ä \n \U0001f600",)
    )
    again = pyedmcl.open_result(found.save(tmp_path / "x.edm"))
    assert same(found, again)
    remark = pyedmcl.check({"a": X})
    assert pyedmcl.open_result(remark.save(tmp_path / "y.edm")) == remark


def test_maps_on_disk_are_saved_whole_and_folders_are_opened(one_device, tmp_path):
    stored = pyedmcl.xmap(VALUES, E=3, out=tmp_path / "map.zarr", device=one_device)
    again = pyedmcl.open_result(stored.save(tmp_path / "map.edm"))
    np.testing.assert_array_equal(again.rho, np.asarray(stored.rho))
    assert again.store is None
    folder = pyedmcl.open_result(tmp_path / "map.zarr")
    np.testing.assert_array_equal(np.asarray(folder.rho), again.rho)
    pyedmcl.ccm_matrix(VALUES, E=3, lib_sizes=[30, 60], sample=5, seed=1, out=tmp_path / "ccm", device=one_device)
    matrices = pyedmcl.open_result(tmp_path / "ccm")
    np.testing.assert_array_equal(matrices.rho, made("CcmMatrixResult", one_device).rho)
    assert same(pyedmcl.open_result(matrices.save(tmp_path / "ccm.edm")).rho, matrices.rho)


def test_a_group_stays_one_object(one_device, tmp_path):
    again = pyedmcl.open_result(made("RqaBatch", one_device).save(tmp_path / "batch.edm"))
    assert again.x is again.y and again[0].symmetric


def rewritten(path, change):
    """The archive with its description changed, and the checksum made anew."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(parts["result.json"])
    description.pop("sha256")
    change(description, parts)
    parts["result.json"] = json.dumps({**description, "sha256": saved._digest(description)}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_other_files_are_refused(tmp_path):
    def refused(error, path, words):
        with pytest.raises(error, match=words):
            pyedmcl.open_result(path)

    refused(InputError, tmp_path / "nothing.edm", "no such file")
    (tmp_path / "text.edm").write_text("a,b\n1,2\n")
    refused(StoreForeignError, tmp_path / "text.edm", "no result that pyedmcl saved")
    np.savez(tmp_path / "arrays.npz", rho=X)
    refused(StoreForeignError, tmp_path / "arrays.npz", "holds no result.json")
    refused(StoreForeignError, tmp_path, "neither pyedmcl xmap, xmap-grid, ccm-matrix nor")
    with pytest.raises(OutputError, match=r"written as \.edm"):
        pyedmcl.embed(X, E=1).save(tmp_path / "result.pkl")
    with pytest.raises(StoreWriteError, match="no folder"):
        pyedmcl.embed(X, E=1).save(tmp_path / "nowhere" / "result.edm")


def test_every_changed_byte_is_found(tmp_path):
    path = pyedmcl.embed(X[:40].astype(float), E=2).save(tmp_path / "result.edm")
    whole = path.read_bytes()
    first = pyedmcl.open_result(path)
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            again = pyedmcl.open_result(path)
        except StoreError:
            continue
        assert same(first, again), place  # a byte of the archive's own that nothing depends on
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError):
            pyedmcl.open_result(path)


def test_what_another_version_wrote_is_told(tmp_path):
    def refused(words, change):
        path = pyedmcl.embed(X, E=1).save(tmp_path / "result.edm")
        rewritten(path, change)
        with pytest.raises(StoreMismatchError, match=words):
            pyedmcl.open_result(path)

    refused("has format 9", lambda description, parts: description.update(format=9))
    refused("with colour", lambda description, parts: description["content"]["part"][2].update(colour="red"))
    refused("kind 'set'", lambda description, parts: description["content"]["part"][2].update(names={"set": []}))
    refused("'Popen', which is no result", lambda description, parts: description["content"].update(
        part=[0, "Popen", {}]
    ))  # fmt: skip


def test_nothing_is_unpickled(tmp_path):
    import hashlib
    import io

    memory = io.BytesIO()
    np.lib.format.write_array(memory, np.array([{"a": 1}], object), allow_pickle=True)

    def smuggle(description, parts):
        parts["values.npy"] = memory.getvalue()
        description["arrays"]["values"] = hashlib.sha256(memory.getvalue()).hexdigest()

    path = pyedmcl.embed(X, E=1).save(tmp_path / "result.edm")
    rewritten(path, smuggle)
    with pytest.raises(StoreError, match="damaged"):
        pyedmcl.open_result(path)


def npy(shape, dtype="<f8", data=b""):
    """An array whose head claims what its data need not hold."""
    memory = io.BytesIO()
    np.lib.format.write_array_header_1_0(memory, {"descr": dtype, "fortran_order": False, "shape": shape})
    return memory.getvalue() + data


BOMBS = {
    "an array of 728 TB": (npy((10**14,)), zipfile.ZIP_STORED),
    "an array of more numbers than there are": (npy((2**62, 2**62)), zipfile.ZIP_STORED),
    "an array of empty texts": (npy((10**14,), "<U0"), zipfile.ZIP_STORED),
    "a negative length": (npy((-1, -8), data=bytes(64)), zipfile.ZIP_STORED),
    "less than it holds": (npy((1,), data=bytes(16)), zipfile.ZIP_STORED),
    "objects": (npy((1,), "|O", data=bytes(8)), zipfile.ZIP_STORED),
    "zeros, deflated": (npy((10**6,), data=bytes(8 * 10**6)), zipfile.ZIP_DEFLATED),
    "zeros, in LZMA": (npy((10**6,), data=bytes(8 * 10**6)), zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_claims_more_than_it_holds_takes_no_memory(bomb, one_device, tmp_path):
    """The checksums are right: whoever makes such a file can make them so."""
    path = made("XmapResult", one_device).save(tmp_path / "result.edm")
    data, how = BOMBS[bomb]
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith(".npy"))
    members[name] = data
    description = json.loads(members["result.json"])
    del description["sha256"]
    description["arrays"][name.removesuffix(".npy")] = hashlib.sha256(data).hexdigest()
    members["result.json"] = json.dumps({**description, "sha256": saved._digest(description)}).encode()
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    tracemalloc.start()
    try:
        with pytest.raises(StoreError):
            pyedmcl.open_result(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
