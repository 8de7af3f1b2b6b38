"""NPY, NPZ, HDF5, Parquet, Feather and Zarr."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyedmcl.errors import InputError, MissingExtraError, PyedmclWarning
from pyedmcl.io import read_series

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


def test_a_zarr_array_that_would_be_unpickled_is_refused(tmp_path):
    pytest.importorskip("zarr", reason="zarr is not installed; pip install 'pyedmcl[io]' brings it")
    folder, mark = tmp_path / "evil.zarr", tmp_path / "mark"
    folder.mkdir()

    class Evil:
        def __reduce__(self):
            return mark.touch, ()

    meta = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "compressor": None, "fill_value": None,
            "order": "C", "filters": [{"id": "pickle", "protocol": 5}]}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(meta))
    (folder / "0").write_bytes(pickle.dumps([Evil()] * 4))
    with pytest.raises(InputError, match="codec pickle"):
        read_series(folder)
    assert not mark.exists()
