"""NPY, NPZ, HDF5, Parquet, Feather and Zarr."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyedmcl.errors import InputError, MissingExtraError, PyedmclWarning
from pyedmcl.files import read_series

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMES = ["a", "b", "c"]


def write_npz(path: Path, arrays: dict[str, Any]) -> Path:
    path = path.with_suffix(".npz")
    np.savez(path, **arrays)
    return path


def write_hdf5(path: Path, arrays: dict[str, Any]) -> Path:
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    path = path.with_suffix(".h5")
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            text = np.asarray(values).dtype.kind == "U"
            file.create_dataset(name, data=values, dtype=h5py.string_dtype() if text else None)
    return path


def write_zarr(path: Path, arrays: dict[str, Any]) -> Path:
    zarr = pytest.importorskip("zarr", minversion="3", reason="Zarr stores need zarr 3")
    path = path.with_suffix(".zarr")
    group = zarr.open_group(str(path), mode="w")
    for name, values in arrays.items():
        group.create_array(name, data=np.asarray(values))
    return path


@pytest.fixture(params=[write_npz, write_hdf5, write_zarr], ids=["npz", "hdf5", "zarr"])
def write(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    series = read_series(tmp_path / "a.npy")
    assert series.names == ("x0", "x1", "x2") and series.values.dtype == np.float32
    np.testing.assert_array_equal(series.values, VALUES)
    timed = read_series(tmp_path / "a.npy", time_column=0, columns=["x2"])
    assert timed.names == ("x2",) and timed.time is not None and timed.time.tolist() == [0, 3, 6, 9]
    np.save(tmp_path / "s.npy", np.array([(1, 2.0), (2, 3.0)], dtype=[("year", "i4"), ("p", "f8")]))
    named = read_series(tmp_path / "s.npy", time_column="year")
    assert named.names == ("p",) and named.time is not None and named.time.tolist() == [1, 2]
    np.save(tmp_path / "o.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read as NPY"):
        read_series(tmp_path / "o.npy")
    np.save(tmp_path / "bad.npy", np.array([[1.0, np.inf]]))
    with pytest.raises(InputError, match="'x1' is infinite in row 0"):
        read_series(tmp_path / "bad.npy")


def test_values_names_and_time_as_kedm_keeps_them(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "data", {"values": VALUES, "names": NAMES, "time": [5, 6, 7, 8], "other": VALUES[:, :2]})
    series = read_series(path, columns=["c", "a"])
    assert series.names == ("c", "a") and series.values.dtype == np.float32
    np.testing.assert_array_equal(series.values, VALUES[:, [2, 0]])
    assert series.time is not None and series.time.tolist() == [5, 6, 7, 8]
    other = read_series(path, dataset="other", time_column="x0")  # the names beside it are not its own
    assert other.names == ("x1",) and other.time is not None and other.time.tolist() == [0, 3, 6, 9]


def _external_link(h5py: Any, file: Any, other: Path) -> None:
    file["series/values"] = h5py.ExternalLink(str(other), "/values")


def _virtual(h5py: Any, file: Any, other: Path) -> None:
    layout = h5py.VirtualLayout((4, 3), "f4")
    layout[:] = h5py.VirtualSource(str(other), "values", (4, 3))
    file.create_virtual_dataset("values", layout)


def _external_storage(h5py: Any, file: Any, other: Path) -> None:
    file.create_dataset("deep/er/values", (4, 3), "f4", external=[(str(other), 0, h5py.h5f.UNLIMITED)])


@pytest.mark.parametrize("suffix", [".h5", ".nc", ".mat"])
@pytest.mark.parametrize("lead", [_external_link, _virtual, _external_storage])
def test_hdf5_that_leads_into_other_files_is_refused(tmp_path: Path, lead: Any, suffix: str) -> None:
    """Nothing of the other file is opened, whichever way it is named and however deep."""
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    if suffix == ".nc":
        pytest.importorskip("h5netcdf", reason="NetCDF files need h5netcdf")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["values"] = VALUES
    path = tmp_path / f"data{suffix}"
    with h5py.File(path, "w", userblock_size=512 if suffix == ".mat" else 0) as file:
        file["own"] = VALUES
        lead(h5py, file, secret)
    if suffix == ".mat":
        with open(path, "r+b") as raw:
            raw.write(b"MATLAB 7.3 MAT-file")
    secret.chmod(0)
    with pytest.raises(InputError, match=r"lies in another file, '.*secret.h5', and a file that leads"):
        read_series(path)
    if suffix != ".nc":
        with pytest.raises(InputError, match="lies in another file"):
            read_series(path, dataset="own")


def test_hdf5_with_links_within_it_is_read(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["a/values"] = VALUES
        file["a/again"] = h5py.SoftLink("/a")  # a circle
        layout = h5py.VirtualLayout((2, 3), "f4")
        layout[:] = h5py.VirtualSource(".", "a/values", (4, 3))[::2]
        file.create_virtual_dataset("half", layout)
    np.testing.assert_array_equal(read_series(tmp_path / "data.h5", dataset="half").values, VALUES[::2])


def test_single_two_dimensional_array_is_found(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "data", {"rates": VALUES, "depth": np.arange(3.0)})
    np.testing.assert_array_equal(read_series(path).values, VALUES)
    path = write(tmp_path / "one", {"flow": np.arange(5.0)})
    assert read_series(path).values.shape == (5, 1)


def test_choice_is_asked_for_and_honoured(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "data", {"p": VALUES, "q": VALUES + 1})
    with pytest.raises(InputError, match=r"dataset=.*p \(4, 3\), q \(4, 3\)"):
        read_series(path)
    with pytest.raises(InputError, match=r"no data set 'r'; there are: p"):
        read_series(path, dataset="r")
    np.testing.assert_array_equal(read_series(path, dataset="/q").values, VALUES + 1)


def test_columns_and_names_that_do_not_fit(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "data", {"values": VALUES, "names": NAMES[:2]})
    with pytest.raises(InputError, match="2 names for 3 series"):
        read_series(path)
    path = write(tmp_path / "more", {"values": VALUES, "names": NAMES})
    with pytest.raises(InputError, match=r"no column 'z'; there are 3: 'a', 'b', 'c'"):
        read_series(path, columns=["z"])
    timed = read_series(path, time_column="b")
    assert timed.names == ("a", "c") and timed.time is not None and timed.time.tolist() == [1, 4, 7, 10]


def test_damaged_files(tmp_path: Path) -> None:
    for suffix in (".npy", ".npz"):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"no array at all")
        with pytest.raises(InputError, match="cannot be read as NP"):
            read_series(path)


@pytest.mark.parametrize(("suffix", "package"), [(".h5", "h5py"), (".parquet", "pyarrow"), (".feather", "pyarrow")])
def test_damaged_files_of_optional_formats(tmp_path: Path, suffix: str, package: str) -> None:
    pytest.importorskip(package, reason=f"{suffix} files need {package}")
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"no data here, and long enough to be looked at")
    with pytest.raises(InputError, match="cannot be read as"):
        read_series(path)


def test_hdf5_groups(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "data", {"run/1/values": VALUES, "run/1/names": NAMES})
    assert read_series(path).names == tuple(NAMES)
    assert read_series(path, dataset="/run/1/values", columns="b").values[0, 0] == 1


def test_zarr_array_alone_and_damaged_group(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", minversion="3", reason="Zarr stores need zarr 3")
    array = zarr.create_array(str(tmp_path / "a.zarr"), data=VALUES)
    array.attrs["names"] = NAMES
    assert read_series(tmp_path / "a.zarr").names == tuple(NAMES)
    with pytest.raises(InputError, match="not a group"):
        read_series(tmp_path / "a.zarr", dataset="x")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(InputError, match="cannot be read as Zarr"):
        read_series(tmp_path / "empty.zarr")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_arrow_files(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet and Feather files need pyarrow")

    def save(columns: dict[str, Any]) -> Path:
        path = tmp_path / f"data{suffix}"
        module = pytest.importorskip(f"pyarrow.{'parquet' if suffix == '.parquet' else 'feather'}",
                                     reason="Parquet and Feather files need pyarrow")
        (module.write_table if suffix == ".parquet" else module.write_feather)(pa.table(columns), path)
        return path

    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[ms]")
    series = read_series(save({"when": days, "a": [1, None], "b": np.array([1.5, 2.5], np.float32)}))
    assert series.names == ("a", "b") and series.time is not None and series.time.tolist() == days.tolist()
    np.testing.assert_array_equal(series.values, [[1, 1.5], [np.nan, 2.5]])
    assert read_series(save({"year": [1, 2], "a": [1.0, 2.0]})).names == ("a",)
    assert read_series(save({"year": [2, 1], "a": [1.0, 2.0]})).time.tolist() == [2, 1]  # back, but the time still
    path = save({"a": [1.0, 2.0], "site": ["n", "s"], "k": [7, 6]})
    with pytest.warns(PyedmclWarning, match="column 'site' holds text and is left out"):
        assert read_series(path).names == ("a", "k")
    with pytest.raises(InputError, match=r"'site' is not numeric: row 0 holds 'n'"):
        read_series(path, columns=["a", "site"])
    chosen = read_series(path, columns=["a"], time_column="k")
    assert chosen.names == ("a",) and chosen.time is not None and chosen.time.tolist() == [7, 6]
    with pytest.raises(InputError, match="no column 'q'"):
        read_series(path, columns=["q"])


def test_parquet_from_pandas_keeps_its_index(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="this file is written by pandas")
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["r", "s"], name="label")).to_parquet(tmp_path / "p.parquet")
    series = read_series(tmp_path / "p.parquet")
    assert series.names == ("a",) and series.time is not None and series.time.tolist() == ["r", "s"]


@pytest.mark.parametrize(("suffix", "package"), [(".h5", "h5py"), (".parquet", "pyarrow"), (".feather", "pyarrow"),
                                                 (".zarr", "zarr")])
def test_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str,
                                         package: str) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"a{suffix}"
    path.mkdir() if suffix == ".zarr" else path.write_bytes(b"")
    with pytest.raises(MissingExtraError, match=rf"{package}.*pyedmcl\[io\]"):
        read_series(path)


class Evil:
    """Whose pickle makes a file."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def in_version_2(filters=None, compressor=None):
    return {"zarr_format": 2, "shape": [4, 2], "chunks": [4, 2], "dtype": "|O", "compressor": compressor,
            "fill_value": "", "order": "C", "filters": filters}  # fmt: skip


def in_version_3(*codecs):
    return {"zarr_format": 3, "node_type": "array", "shape": [4, 2], "data_type": "float32", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 2]}}, "attributes": {},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": list(codecs)}  # fmt: skip


PICKLE, TEXT, BYTES = {"id": "pickle", "protocol": 5}, {"id": "vlen-utf8"}, {"name": "bytes"}
NAMED = {"name": "numcodecs.pickle", "configuration": {"protocol": 5}}


def in_shards(codecs, index_codecs):
    inner = {"chunk_shape": [4, 2], "codecs": codecs, "index_codecs": index_codecs}
    return in_version_3({"name": "sharding_indexed", "configuration": inner})


CODE = {
    "filter": (".zarray", in_version_2([PICKLE])),
    "second filter": (".zarray", in_version_2([TEXT, PICKLE])),
    "compressor": (".zarray", in_version_2([TEXT], PICKLE)),
    "one filter": (".zarray", in_version_2(PICKLE)),
    "unknown": (".zarray", in_version_2([TEXT, {"id": "mine"}])),
    "arrays of any type": (".zarray", in_version_2([{"id": "vlen-array", "dtype": "O"}])),
    "no name": (".zarray", in_version_2([TEXT], {"protocol": 5})),
    "name of another kind": (".zarray", in_version_2([TEXT], {"id": ["pickle"]})),
    "version 3": ("zarr.json", in_version_3(BYTES, NAMED)),
    "text": ("zarr.json", in_version_3("bytes", "pickle")),
    "shard": ("zarr.json", in_shards([BYTES, NAMED], [BYTES])),
    "index of a shard": ("zarr.json", in_shards([BYTES], [BYTES, NAMED])),
}
SPELT = {
    "plain": json.dumps,
    "escaped": lambda one: json.dumps(one).replace("pickle", "\\u0070ickle"),
    "in capitals of escapes": lambda one: json.dumps(one).replace("pickle", "pi\\u0063\\u006Ble"),
    "utf-16": lambda one: json.dumps(one).encode("utf-16"),
}


@pytest.mark.parametrize("place", ["itself", "group", "link", "consolidated"])
@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("kind", CODE)
def test_a_zarr_array_whose_codecs_may_run_code_is_refused(kind, spelt, place, tmp_path):
    pytest.importorskip("zarr", reason="zarr is not installed; pip install 'pyedmcl[io]' brings it")
    folder, mark = tmp_path / "evil.zarr", tmp_path / "mark"
    array = {"itself": folder, "link": tmp_path / "elsewhere"}.get(place, folder / "values")
    array.mkdir(parents=True)
    name, described = CODE[kind]
    text = SPELT[spelt](described)
    (array / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for chunk in ("0.0", "c/0/0"):
        (array / chunk).parent.mkdir(parents=True, exist_ok=True)
        (array / chunk).write_bytes(pickle.dumps([Evil(mark)] * 8))
    if place != "itself":
        folder.mkdir(exist_ok=True)
        (folder / ".zgroup").write_text('{"zarr_format": 2}')
    if place == "link":
        (folder / "values").symlink_to(array)
    if place == "consolidated":
        inner = {"values": described} if name == "zarr.json" else {"values/.zarray": described}
        group = {"zarr_format": 3, "node_type": "group", "attributes": {},
                 "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inner}}  # fmt: skip
        (folder / "zarr.json").write_text(json.dumps(group))
        (folder / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": inner}))
    with pytest.raises(InputError, match=r"codec|link"):
        read_series(folder)
    assert not mark.exists()


@pytest.mark.parametrize("planted", ["link to a file", "dangling link", "link to a folder", "pipe", "link to a device"])
@pytest.mark.parametrize("where", ["", "values", "values/c"])
def test_nothing_outside_of_a_zarr_folder_is_read(planted, where, tmp_path):
    folder = write_zarr(tmp_path / "a", {"values": VALUES})
    assert read_series(folder).values.shape == VALUES.shape
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    place = folder / where / "planted"
    place.parent.mkdir(exist_ok=True)
    if planted == "pipe":
        os.mkfifo(place)
    else:
        target = {"link to a file": outside / "secret", "link to a folder": outside, "dangling link": outside / "none"}
        place.symlink_to(target.get(planted, os.devnull))
    with pytest.raises(InputError, match="which is not followed"):
        read_series(folder)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "blosc", "shards"])
def test_usual_codecs_of_zarr_are_read(compression, tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="Zarr stores need zarr 3")
    turned = [zarr.codecs.TransposeCodec(order=(1, 0))]
    options = {"gzip": {"compressors": zarr.codecs.GzipCodec()}, "zstd": {"compressors": zarr.codecs.ZstdCodec()},
               "blosc": {"compressors": zarr.codecs.BloscCodec(), "filters": turned},
               "shards": {"chunks": VALUES.shape, "shards": VALUES.shape}}[compression]  # fmt: skip
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    # Attributes are the user's own, whatever their names.
    group.create_array("values", data=VALUES, attributes={"filters": "0.1 to 40 Hz", "codecs": ["mine"]}, **options)
    zarr.consolidate_metadata(str(tmp_path / "a.zarr"))
    np.testing.assert_array_equal(read_series(tmp_path / "a.zarr").values, VALUES)


def test_codecs_of_the_second_version_of_zarr_are_read(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="Zarr stores need zarr 3")
    array = zarr.create_array(str(tmp_path / "a.zarr"), data=VALUES, zarr_format=2)
    assert array.metadata.compressor is not None
    np.testing.assert_array_equal(read_series(tmp_path / "a.zarr").values, VALUES)
