"""Maps and edges on their way out: formats, order, bounded memory, and files that are never half written."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyedmcl.errors import InputError, MissingExtraError, StoreWriteError
from pyedmcl.files import Edge, read_series, strongest_edges, write_edges, write_matrix
from pyedmcl.launch.progress import reporting_to
from pyedmcl.results import tables

RHO = np.array([[1.0, 0.1, np.nan], [-0.5, 1.0, 0.25], [0.3, 1e-5, 1.0]], np.float32)
NAMES = ["a", "b,c", "d"]
DIMS = [2, 3, 4]


class Stored:
    """A map that exists by blocks of rows only, and remembers the largest one asked for."""

    def __init__(self, n: int, fail_at: int | None = None) -> None:
        self.shape, self.dtype, self.chunks = (n, n), np.dtype(np.float32), (16, n)
        self.largest, self.fail_at = 0, fail_at

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        if self.fail_at is not None and stop > self.fail_at:
            raise OSError(28, "No space left on device")
        self.largest = max(self.largest, stop - start)
        assert start % self.chunks[0] == 0
        i, j = np.mgrid[start:stop, 0:self.shape[1]]
        return ((i * 7919 + j * 104729) % 1009 / 1009).astype(np.float32)

    def whole(self) -> np.ndarray:
        return self[0:self.shape[0]]


def naive_edges(rho: np.ndarray, top: int) -> list[tuple[int, int]]:
    cells = [(i, j) for i in range(len(rho)) for j in range(len(rho)) if i != j and not np.isnan(rho[i, j])]
    return sorted(cells, key=lambda cell: (-float(rho[cell]), *cell))[:top]


def test_strongest_edges_by_hand() -> None:
    edges = strongest_edges(RHO, NAMES, DIMS, 3)
    assert [(e.library, e.target, e.E) for e in edges] == [("d", "a", 2), ("b,c", "d", 4), ("a", "b,c", 3)]
    assert edges[0].rho == float(np.float32(0.3))
    assert len(strongest_edges(RHO, NAMES, 5, 100)) == 5  # six cells off the diagonal, one of them NaN


@pytest.mark.parametrize("top", [1, 7, 40, 2000])
def test_strongest_edges_stream_and_order_ties(monkeypatch: pytest.MonkeyPatch, top: int) -> None:
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64 * 70 * 4)
    stored = Stored(70)
    names = [str(i) for i in range(70)]
    whole = stored.whole()
    stored.largest = 0
    edges = strongest_edges(stored, names, 1, top)
    assert stored.largest <= 64
    assert [(int(e.library), int(e.target)) for e in edges] == naive_edges(whole, top)
    ties = np.round(whole, 1)
    assert [(int(e.library), int(e.target)) for e in strongest_edges(ties, names, 1, top)] == naive_edges(ties, top)


def test_strongest_edges_of_nothing() -> None:
    assert strongest_edges(np.full((3, 3), np.nan), NAMES, 1, 5) == []
    assert strongest_edges(np.ones((1, 1)), ["a"], 1, 5) == []


@pytest.mark.parametrize(
    ("rho", "names", "E", "top", "words"),
    [(np.zeros((2, 3)), NAMES, 1, 1, "shape (N, N)"), (RHO, NAMES[:2], 1, 1, "2 names for a map of 3"),
     (RHO, NAMES, [1, 2], 1, "E has shape (2,)"), (RHO, NAMES, 1, 0, "top=0"), (RHO, NAMES, 1, True, "top=True")],
)
def test_arguments_that_do_not_fit(rho: Any, names: list[str], E: Any, top: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        strongest_edges(rho, names, E, top)
    assert words in str(caught.value)


def test_write_edges(tmp_path: Path) -> None:
    edges = strongest_edges(RHO, NAMES, DIMS, 2)
    write_edges(tmp_path / "e.csv", edges)
    with (tmp_path / "e.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [Edge(r["library"], r["target"], float(r["rho"]), int(r["E"])) for r in rows] == edges
    write_edges(tmp_path / "e.json", edges)
    assert [Edge(*list(item.values())[2:6]) for item in json.loads((tmp_path / "e.json").read_text())] == edges
    with pytest.raises(InputError, match=r"\.csv, \.tsv, \.json, \.parquet or \.npz"):
        write_edges(tmp_path / "e.xml", edges)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_text_restores_every_value(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    write_matrix(path, RHO, NAMES, DIMS)
    with path.open(newline="") as handle:
        header, *rows = csv.reader(handle, delimiter="\t" if suffix == ".tsv" else ",")
    assert header == ["library", *NAMES] and [row[0] for row in rows] == NAMES
    assert rows[0][3] == "NaN" and rows[2][1] == "0.3"
    np.testing.assert_array_equal(np.array([row[1:] for row in rows]).astype(np.float32), RHO)
    again = read_series(path, columns=NAMES)
    np.testing.assert_array_equal(again.values.astype(np.float32), RHO)


def test_npy_is_written_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 1)
    stored = Stored(50)
    write_matrix(tmp_path / "m.npy", stored, [str(i) for i in range(50)], 3)
    assert stored.largest == 16
    loaded = np.load(tmp_path / "m.npy")
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, stored.whole())
    write_matrix(tmp_path / "m.npy", RHO.T.astype(float).tolist(), NAMES, 1)  # lists, and over an existing file
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), RHO.T)


def test_npz_holds_names_and_dimensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 1)
    stored, names = Stored(50), [f"ä{i}" for i in range(50)]
    write_matrix(tmp_path / "m.npz", stored, names, 3)
    assert stored.largest == 16
    with np.load(tmp_path / "m.npz") as loaded:
        assert sorted(loaded) == ["E", "names", "rho"]
        np.testing.assert_array_equal(loaded["rho"], stored.whole())
        assert loaded["names"].tolist() == names and loaded["E"].tolist() == [3] * 50


def test_a_parquet_file_that_readers_could_not_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(tables, "_PARQUET_PIECES", 199)
    with pytest.raises(InputError, match=r"50 columns in 4 parts .* 200 entries .* list of edges"):
        write_matrix(tmp_path / "m.parquet", Stored(50), [str(i) for i in range(50)], 3)
    assert not (tmp_path / "m.parquet").exists()


def test_hdf5_as_kedm_writes_it(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    write_matrix(tmp_path / "m.h5", RHO, NAMES, DIMS, {"tau": 1, "made_by": "test", "grade": {"knn": "exact"}})
    with h5py.File(tmp_path / "m.h5") as file:
        assert sorted(file) == ["e", "names", "rho"]
        np.testing.assert_array_equal(file["rho"][:], RHO)
        assert file["e"][:].tolist() == DIMS and file["names"].asstr()[:].tolist() == NAMES
        assert file.attrs["tau"] == 1 and json.loads(file.attrs["grade"]) == {"knn": "exact"}


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    write_matrix(tmp_path / "m.parquet", RHO, NAMES, DIMS, {"tau": 1})
    table = parquet.read_table(tmp_path / "m.parquet")
    assert table.column_names == ["library", *NAMES] and table["library"].to_pylist() == NAMES
    np.testing.assert_array_equal(np.column_stack([table[name].to_numpy() for name in NAMES]), RHO)
    assert json.loads(table.schema.metadata[b"pyedmcl"]) == {"E": dict(zip(NAMES, DIMS, strict=True)), "tau": 1}


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".h5", ".parquet"])
def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    if suffix in (".h5", ".parquet"):
        package = "h5py" if suffix == ".h5" else "pyarrow"
        pytest.importorskip(package, reason=f"{suffix} files need {package}")
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 1)
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"older result")
    with pytest.raises(StoreWriteError, match=r"No space left .* unchanged"):
        write_matrix(path, Stored(40, fail_at=20), [str(i) for i in range(40)], 3)
    assert path.read_bytes() == b"older result"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_interrupt_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(tables._WRITERS, ".npy", lambda draft, *rest: (draft.write(b"half"), stop()))
    with pytest.raises(KeyboardInterrupt):
        write_matrix(tmp_path / "m.npy", RHO, NAMES, 1)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no folder"):
        write_matrix(tmp_path / "none" / "m.npy", RHO, NAMES, 1)
    with pytest.raises(InputError, match=r"not '\.png'"):
        write_matrix(tmp_path / "m.png", RHO, NAMES, 1)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_edges(tmp_path / "d.csv", [])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"h5py.*pyedmcl\[io\]"):
        write_matrix(tmp_path / "m.h5", RHO, NAMES, 1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_writing_tells_of_its_rows(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 2 * 4 * 8)  # two rows
    told = []
    with reporting_to(lambda *said: told.append(said)):
        tables.write_matrix(tmp_path / f"map{suffix}", np.eye(4), list("abcd"), 2)
    assert told == [(2, 4, "rows"), (4, 4, "rows")]


@pytest.mark.parametrize("sign", ["\r", "\n", "\r\n", "\x0b", "\u2028", '"', ",", "\t", "\r=1+1"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_name_with_a_line_break_stays_in_its_cell(sign, suffix, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas reads the tables here")
    names, separator = [f"a{sign}b", "c", "d"], {".csv": ",", ".tsv": "\t"}[suffix]
    matrix, edges = tmp_path / f"map{suffix}", tmp_path / f"edges{suffix}"
    write_matrix(matrix, RHO, names, DIMS)
    write_edges(edges, [Edge(names[0], "c", 0.5, 3), Edge("c", names[0], 0.25, 3)])
    read = pd.read_csv(matrix, sep=separator)
    assert list(read.columns) == ["library", *names] and read["library"].tolist() == names
    assert pd.read_csv(edges, sep=separator).iloc[:, :2].to_numpy().ravel().tolist().count(names[0]) == 2
    with edges.open(newline="") as file:
        assert [len(row) for row in csv.reader(file, delimiter=separator)] == [7, 7, 7]
