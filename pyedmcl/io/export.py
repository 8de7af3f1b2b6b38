"""Write an N x N map and its strongest edges to files; the map may be larger than memory."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from ..data.unpack import Array
from ..errors import InputError
from ..files import output_path, writing
from .cells import text_cell
from .optional import need

File = IO[bytes]
_BLOCK_BYTES = 16 << 20  # of the map held at a time
_CHUNK_LIMIT = 256 << 20  # a stored chunk up to this size is read whole rather than decoded several times


class Edge(NamedTuple):
    """One cell of a cross map.

    ``rho`` is the skill with which the embedding of ``library`` predicts ``target``: a high value is evidence that
    ``target`` drives ``library``. ``E`` is the target's embedding dimension.
    """

    library: str
    target: str
    rho: float
    E: int


def strongest_edges(rho: Any, names: Sequence[str], E: Any, top: int) -> list[Edge]:
    """The ``top`` largest values off the diagonal.

    Parameters
    ----------
    rho : array_like
        Shape (N, N), row = library, column = target; an object with ``shape`` and slicing over rows is read in blocks.
    names : sequence of str
        N names.
    E : int or array_like
        Embedding dimension of each target, shape (N,) or one for all.
    top : int
        How many edges at most; memory grows with it and with a block of rows, not with N x N.

    Returns
    -------
    list of Edge
        By falling rho, then by position of the library, then of the target. NaN never appears.
    """
    rho, names, dims = _check(rho, names, E)
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise InputError(f"top={top!r}: the number of edges must be an integer of at least 1")
    best = np.empty(0, np.float64)
    cells = np.empty(0, np.int64)
    n = len(names)
    for start, block in _blocks(rho):
        values = block.astype(np.float64)
        values[np.arange(len(block)), np.arange(start, start + len(block))] = np.nan
        flat = values.reshape(-1)
        found = np.flatnonzero(~np.isnan(flat) if len(best) < top else flat >= best[-1])
        if len(found) > top:  # all that tie with the last one stay, the order below decides
            cut = np.partition(flat[found], len(found) - top)[len(found) - top]
            found = found[flat[found] >= cut]
        best = np.concatenate([best, flat[found]])
        cells = np.concatenate([cells, found + start * n])
        order = np.lexsort((cells, -best))[:top]
        best, cells = best[order], cells[order]
    return [Edge(names[cell // n], names[cell % n], float(value), int(dims[cell % n]))
            for value, cell in zip(best, cells.tolist(), strict=True)]


def write_edges(path: str | os.PathLike[str], edges: Sequence[Edge]) -> None:
    """Write edges as .csv or .tsv (header library, target, rho, E) or as .json (a list of objects).

    Raises
    ------
    InputError
        For another suffix or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    """
    path = output_path(path, (".csv", ".tsv", ".json"), "a list of edges")
    suffix = path.suffix.lower()
    with writing(path, "the list of edges") as draft, _text(draft) as handle:
        if suffix == ".json":
            json.dump([edge._asdict() for edge in edges], handle, indent=1, ensure_ascii=False)
            handle.write("\n")
            return
        writer = csv.writer(handle, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(Edge._fields)
        writer.writerows(map(text_cell, edge) for edge in edges)


def write_matrix(path: str | os.PathLike[str], rho: Any, names: Sequence[str], E: Any,
                 attrs: Mapping[str, Any] | None = None) -> None:
    """Write a map, block of rows after block of rows; the suffix chooses the format.

    ``.csv`` and ``.tsv``: a header of targets, the library first in each row, shortest digits that restore the value,
    NaN where there is none. ``.npy``: the values alone. ``.h5`` and ``.hdf5``: /rho, /e and /names as kEDM's edm-xmap
    writes them, ``attrs`` as attributes of the file. ``.parquet``: a column "library", then one per target.

    Parameters
    ----------
    path : path
        A file that is there is replaced once the new one is complete.
    rho : array_like
        Shape (N, N), row = library, column = target; an object with ``shape`` and slicing over rows is read in blocks.
    names : sequence of str
        N names.
    E : int or array_like
        Embedding dimension of each target, shape (N,) or one for all.
    attrs : mapping, optional
        Provenance for the formats that have a place for it (HDF5, Parquet); values other than text and numbers are
        stored as JSON.

    Raises
    ------
    InputError
        For shapes that do not fit, an unknown suffix or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    MissingExtraError
        If HDF5 or Parquet needs a package that is not installed.
    """
    path = output_path(path, tuple(_WRITERS), "a map")
    rho, names, dims = _check(rho, names, E)
    with writing(path, "the map") as draft:
        _WRITERS[path.suffix.lower()](draft, path.suffix.lower(), rho, names, dims, attrs or {})


@contextmanager
def _text(draft: IO[bytes]) -> Iterator[IO[str]]:
    """A draft as text, which stays open: it is not on the disk yet."""
    handle = io.TextIOWrapper(draft, encoding="utf-8", newline="", errors="surrogatepass")
    yield handle
    handle.detach()


def _write_text(draft: File, suffix: str, rho: Any, names: list[str], dims: Array, attrs: Mapping[str, Any]) -> None:
    separator = "\t" if suffix == ".tsv" else ","
    cells_of_names = [text_cell(name) for name in names]
    with _text(draft) as handle:
        csv.writer(handle, delimiter=separator, lineterminator="\n").writerow(["library", *cells_of_names])
        for start, block in _blocks(rho):
            for i, row in enumerate(block):
                cells = separator.join(row.astype(np.str_).tolist()).replace("nan", "NaN")
                csv.writer(handle, delimiter=separator, lineterminator=separator).writerow([cells_of_names[start + i]])
                handle.write(cells + "\n")


def _write_npy(draft: File, suffix: str, rho: Any, names: list[str], dims: Array, attrs: Mapping[str, Any]) -> None:
    kind = _dtype(rho)
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": tuple(rho.shape)}
    np.lib.format.write_array_header_1_0(draft, head)  # no memory map: a full disk would kill the process
    for _, block in _blocks(rho):
        draft.write(np.ascontiguousarray(block, kind).data)


def _write_hdf5(draft: File, suffix: str, rho: Any, names: list[str], dims: Array, attrs: Mapping[str, Any]) -> None:
    h5py = need("h5py", "writing HDF5")
    with h5py.File(draft, "w") as file:
        out = file.create_dataset("rho", shape=tuple(rho.shape), dtype=_dtype(rho))
        for start, block in _blocks(rho):
            out[start:start + len(block)] = block
        file.create_dataset("e", data=dims.astype(np.int32))
        file.create_dataset("names", data=names, dtype=h5py.string_dtype())
        for key, value in attrs.items():
            file.attrs[key] = value if isinstance(value, (str, int, float)) else json.dumps(value, default=str)


def _write_parquet(draft: File, suffix: str, rho: Any, names: list[str], dims: Array, attrs: Mapping[str, Any]) -> None:
    pyarrow = need("pyarrow", "writing Parquet")
    parquet = need("pyarrow.parquet", "writing Parquet")
    note = json.dumps({"E": dict(zip(names, dims.tolist(), strict=True)), **attrs}, default=str)
    kind = pyarrow.from_numpy_dtype(_dtype(rho))
    schema = pyarrow.schema([("library", pyarrow.string()), *((name, kind) for name in names)], {"pyedmcl": note})
    with parquet.ParquetWriter(draft, schema) as writer:
        for start, block in _blocks(rho):
            columns = [names[start:start + len(block)], *np.ascontiguousarray(block.T)]
            writer.write_table(pyarrow.table([pyarrow.array(column) for column in columns], schema=schema))


_WRITERS: dict[str, Callable[[File, str, Any, list[str], Array, Mapping[str, Any]], None]] = {
    ".csv": _write_text, ".tsv": _write_text, ".npy": _write_npy, ".h5": _write_hdf5, ".hdf5": _write_hdf5,
    ".parquet": _write_parquet,
}


def _check(rho: Any, names: Sequence[str], E: Any) -> tuple[Any, list[str], Array]:
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    shape = tuple(rho.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise InputError(f"a map has shape (N, N), this one {shape}")
    if len(names) != shape[0]:
        raise InputError(f"{len(names)} names for a map of {shape[0]} series; one name each is needed")
    dims = np.asarray(E)
    if dims.shape not in ((), (shape[0],)):
        raise InputError(f"E has shape {dims.shape}; one value, or one for each of the {shape[0]} targets, is needed")
    return rho, [str(name) for name in names], np.broadcast_to(dims, (shape[0],))


def _dtype(rho: Any) -> np.dtype[Any]:
    return np.dtype(getattr(rho, "dtype", np.float64))


def _blocks(rho: Any) -> Iterator[tuple[int, Array]]:
    """Blocks of rows (start, array) of bounded size, whole chunks where the map is stored in such."""
    row = max(1, rho.shape[1] * _dtype(rho).itemsize)
    step = max(1, _BLOCK_BYTES // row)
    chunk = (getattr(rho, "chunks", None) or (1,))[0]
    if isinstance(chunk, int) and chunk > 1 and chunk * row <= _CHUNK_LIMIT:
        step = max(chunk, step - step % chunk)
    for start in range(0, rho.shape[0], step):
        yield start, np.asarray(rho[start:start + step])
