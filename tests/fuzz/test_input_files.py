"""Damaged files of every format that is read: the series, or an error of ours that names the file. Never a crash.

Files are read in a process of their own, since a library that is written in C may end it.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tally
from cli_helpers import environment
from hypothesis import settings
from process_helpers import LIMIT

from pyedmcl.files import read

KIND = "damaged input files"
X, Y = np.random.default_rng(0).random((2, 30))
TABLE = np.column_stack([X, Y])
NAMES = ("year", "a", "b")
_SECONDS = 20  # of the processor, for a file

READER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from pyedmcl.errors import PyedmclError
from pyedmcl.files import read_series
for path in sys.argv[1:]:
    begun = time.process_time()
    try:
        series = read_series(path)
        assert series.values.ndim == 2 and series.n_series == len(series.names) == len(set(series.names))
        told = "read"
    except PyedmclError as error:
        told = "refused" if path in str(error) else f"does not name the file: {error}"
    print(json.dumps([path, told, time.process_time() - begun]), flush=True)
"""
KNOWN = {"text" if one.read is read.read_text else one.name: one.suffixes for one in read._FORMATS}


def _text(separator=",", decimal="."):
    rows = [NAMES, *((str(1980 + t), repr(x), repr(y)) for t, (x, y) in enumerate(TABLE.tolist()))]
    lines = [separator.join(row[:1] + tuple(cell.replace(".", decimal) for cell in row[1:])) for row in rows]
    return "\n".join(lines) + "\n"


def _write(path, suffix):
    """A good file of a format."""
    if suffix in KNOWN["text"]:
        separator = {".csv": ",", ".tsv": "\t", ".tab": "\t"}.get(suffix, " ")
        text = _text(separator, "," if suffix == ".tsv" else ".")
        path.write_text(text, encoding="utf-16" if suffix == ".tab" else "utf-8")
    elif suffix == ".gz":
        path.write_bytes(gzip.compress(_text().encode()))
    elif suffix == ".npy":
        np.save(path, TABLE)
    elif suffix == ".npz":
        np.savez_compressed(path, values=TABLE, names=np.array(["a", "b"]), time=np.arange(30))
    elif suffix in KNOWN["HDF5"]:
        h5py = pytest.importorskip("h5py", reason="h5py is not installed; pip install 'pyedmcl[io]' brings it")
        with h5py.File(path, "w") as file:
            file.create_dataset("values", data=TABLE, compression="gzip", chunks=(10, 2))
            file["names"] = ["a", "b"]
            file["time"] = np.arange(30)
    elif suffix in (*KNOWN["Parquet"], *KNOWN["Feather"]):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed; pip install 'pyedmcl[io]' brings it")
        pytest.importorskip("pyarrow", reason="pyarrow is not installed; pip install 'pyedmcl[io]' brings it")
        frame = pandas.DataFrame(TABLE, columns=["a", "b"], index=pandas.date_range("2000", periods=30, name="t"))
        frame.reset_index().to_feather(path) if suffix == ".feather" else frame.to_parquet(path)
    elif suffix == ".nc":
        xarray = pytest.importorskip("xarray", reason="xarray is not installed; pip install 'pyedmcl[io]' brings it")
        pytest.importorskip("scipy", reason="SciPy, which writes NetCDF here, is not installed")
        columns = {"a": ("time", X), "b": ("time", Y)}
        xarray.Dataset(columns, {"time": np.arange(30)}).to_netcdf(path, engine="scipy")
    elif suffix == ".mat":
        matlab = pytest.importorskip("scipy.io", reason="SciPy, which writes MATLAB files, is not installed")
        matlab.savemat(path, {"values": TABLE, "time": np.arange(30.0)})
    elif suffix == ".xlsx":
        pandas = pytest.importorskip("pandas", reason="pandas is not installed; pip install 'pyedmcl[io]' brings it")
        pytest.importorskip("openpyxl", reason="openpyxl, which writes spreadsheets, is not installed")
        pandas.DataFrame(TABLE, columns=["a", "b"]).to_excel(path, index=False)
    elif suffix == ".zarr":
        zarr = pytest.importorskip("zarr", reason="zarr is not installed; pip install 'pyedmcl[io]' brings it")
        group = zarr.open_group(str(path), mode="w")
        group.create_array("values", data=TABLE) if hasattr(group, "create_array") else group.array("values", TABLE)
        group.create_array("time", data=np.arange(30.0)) if hasattr(group, "create_array") else None
    else:
        raise AssertionError(f"say here how a good file of {suffix} is written")


def _damaged(data, rng):
    """Bytes with a bit flipped, a piece cut, zeroed, repeated or made up, or another end."""
    data, n = bytearray(data), len(data)
    if not n:
        return b"\0"
    at, length = rng.randrange(n), rng.randrange(1, 1 + min(n, 40))
    kind = rng.randrange(8)
    if kind <= 2:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 3:
        del data[at:]
    elif kind == 4:
        del data[at : at + length]
    elif kind == 5:
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif kind == 6:
        data[at:at] = data[at : at + length]
    else:
        data[at : at + length] = rng.randbytes(length)
    return bytes(data)


def _damage(good, bad, rng):
    if good.is_dir():
        shutil.copytree(good, bad)
        bad = rng.choice(sorted(path for path in bad.rglob("*") if path.is_file()))
        good = bad
    data = good.read_bytes()
    for _ in range(rng.choice((1, 1, 1, 3))):
        data = _damaged(data, rng)
    bad.write_bytes(data)


SUFFIXES = (*KNOWN["text"], ".gz", ".npy", ".npz", *KNOWN["HDF5"], *KNOWN["Parquet"], *KNOWN["Feather"], ".nc", ".mat",
            ".xlsx", ".zarr")  # fmt: skip


def _read_all(paths):
    """What came of each file; a process that ends or takes too long is told with the file at which it did."""
    told = []
    while len(told) < len(paths):
        rest = [str(path) for path in paths[len(told) :]]
        try:
            done = subprocess.run(
                [sys.executable, "-c", READER, *rest], capture_output=True, text=True, env=environment(),
                timeout=LIMIT,
            )  # fmt: skip
            output, end = done.stdout, f"exit status {done.returncode}: {done.stderr[-800:]}"
        except subprocess.TimeoutExpired as late:
            output, end = (late.stdout or b"").decode(), "no end"
        lines = [json.loads(line) for line in output.splitlines()]
        told += [(path, what if seconds < _SECONDS else f"{seconds:.0f} s") for path, what, seconds in lines]
        if len(lines) < len(rest):
            told.append((rest[len(lines)], end))
    return told


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_read_or_refused(suffix, tmp_path):
    good = tmp_path / f"good{'.csv' if suffix == '.gz' else ''}{suffix}"
    _write(good, suffix)
    examples = max(settings().max_examples * 2 // 5, 20)
    seed = 0 if settings().derandomize else random.randrange(1 << 30)
    rng = random.Random(seed)
    bad = [tmp_path / f"bad{i}{''.join(good.suffixes)}" for i in range(examples)]
    for path in bad:
        _damage(good, path, rng)
    told = _read_all([good, *bad])
    assert told[0][1] == "read", told[0]
    wrong = [(Path(path).read_bytes()[:2000] if Path(path).is_file() else path, what) for path, what in told
             if what not in ("read", "refused")]  # fmt: skip
    for _, what in told[1:]:
        tally.count(KIND, what if what in ("read", "refused") else "wrong")
    assert not wrong, f"{len(wrong)} of {len(bad)} with seed {seed}, such as {wrong[0]}"


def test_every_format_that_is_read_is_damaged_here():
    """A new one fails until a good file of it is written above."""
    assert [name for name, suffixes in KNOWN.items() if not set(suffixes) & set(SUFFIXES)] == []


@pytest.mark.parametrize(("name", "content"), [
    ("a.npz", "npy"), ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8\n     "),
    ("a.npy", b"\x93NUMPY\x01\x00\x04\x00(((("), ("a.csv.gz", b"\x1f\x8b"),
    ("a.csv.gz", gzip.compress(b"a\n1\n", mtime=0)[:-6] + b"123456"), ("a.h5", b"\x89HDF\r\n\x1a\n"),
    ("a.parquet", b"PAR1PAR1"), ("a.csv", b"\xff\xfea"), ("a.csv", b"a,b\n1,2\n\x00"), ("a.txt", b"\n" * 99),
])  # fmt: skip
def test_files_of_another_kind_are_refused(tmp_path, name, content):
    path = tmp_path / name
    if content == "npy":
        with path.open("wb") as handle:
            np.save(handle, TABLE)
    else:
        path.write_bytes(content)
    ((_, told),) = _read_all([path])
    assert told == "refused"
