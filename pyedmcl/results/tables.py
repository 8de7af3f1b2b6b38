"""Matrices and tables of results written to files, in the format that the name ends with."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from ..atomic_files import output_path, writing
from ..errors import InputError, need
from ..launch.progress import report_progress
from ..series.arrays import Array
from ..series.fields import Grid
from .result import COMMON

# Text in the cells of tables, so that a spreadsheet takes a name for a name.


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def text_cell(value: Any) -> Any:
    """``value``, with an apostrophe before a text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> [text_cell(value) for value in ("=HYPERLINK(A1)", "-x", "-1.5", "rho", -1.5)]
    ["'=HYPERLINK(A1)", "'-x", '-1.5', 'rho', -1.5]
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value):
        return f"'{value}"
    return value


class _Rows:
    """Takes rows that end in both characters of a line break, and ends them otherwise."""

    def __init__(self, handle: IO[str], end: str) -> None:
        self._handle, self._end = handle, end

    def write(self, row: str) -> int:
        return self._handle.write(row.removesuffix("\r\n") + self._end)


def row_writer(handle: IO[str], separator: str = ",", end: str = "\n") -> Any:
    """A ``csv.writer`` that quotes cells with a line break of any kind; by itself it quotes what a row ends in only.

    Examples
    --------
    >>> import io
    >>> memory = io.StringIO()
    >>> _ = row_writer(memory).writerow(["a\\rb", "c"])
    >>> memory.getvalue()
    '"a\\rb",c\\n'
    """
    return csv.writer(_Rows(handle, end), delimiter=separator, lineterminator="\r\n")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text


# Names and order of the two roles in every table of pairs: cause and effect, and what the method calls them.


#: The first columns of a table of pairs. Cross mapping predicts a target from the states of a library: skill says that
#: the target (cause) left its trace in the library (effect).
ROLES = ("cause", "effect", "library", "target")


def roles(library: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """What stands under :data:`ROLES` for a pair."""
    return target, library, library, target


def role_columns(library: Any, target: Any) -> dict[str, Any]:
    """Columns of a table by their names."""
    return dict(zip(ROLES, roles(library, target), strict=True))


# Write a map to files, block of rows after block of rows; it may be larger than memory.


File = IO[bytes]
_BLOCK_BYTES = 16 << 20  # of the map held at a time
_PARQUET_PIECES = 4_000_000  # columns x row groups; each takes some 200 bytes of the file's directory
_CHUNK_LIMIT = 256 << 20  # a stored chunk up to this size is read whole rather than decoded several times


def write_matrix(path: str | os.PathLike[str], rho: Any, names: Sequence[str], E: Any,
                 attrs: Mapping[str, Any] | None = None, targets: Sequence[str] | None = None,
                 places: Grid | None = None) -> None:
    """Write a map, block of rows after block of rows; the suffix chooses the format.

    ``.csv`` and ``.tsv``: a header of targets, the library first in each row, shortest digits that restore the
    value, NaN where there is none. ``.nc``: NetCDF of version 4. ``.npy``: the values alone; ``.npz``: rho, E and
    names. ``.h5`` and ``.hdf5``: /rho, /e and /names as kEDM's edm-xmap writes them, ``attrs`` as attributes of the
    file. ``.parquet``: a column "library", then one per target. Where targets are other series, ``.npz`` and
    ``.h5`` also hold their names as "targets".

    Parameters
    ----------
    path : path
        A file that is there is replaced once the new one is complete.
    rho : array_like
        Shape (N, N) or (N, targets), row = library, column = target; an object with ``shape`` and slicing over rows is
        read in blocks.
    names : sequence of str
        N names.
    E : int or array_like
        Embedding dimension of each target, or one for all.
    attrs : mapping, optional
        Provenance for the formats that have a place for it (HDF5, NetCDF, Parquet); values other than text and numbers
        are stored as JSON.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series.
    places : Grid, optional
        Where libraries lie, of a field: columns of text and of Parquet after "library", such as lat and lon.

    Raises
    ------
    InputError
        For shapes that do not fit, an unknown suffix or a folder that is not there, and for a map of more columns than
        the directory of a Parquet file can list.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    MissingExtraError
        If HDF5, NetCDF or Parquet needs a package that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyedmcl.files import write_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "map.csv")
    ...     write_matrix(path, [[1.0, 0.25], [0.75, 1.0]], names=["prey", "hunter"], E=3)
    ...     print(path.read_text(), end="")
    library,prey,hunter
    prey,1.0,0.25
    hunter,0.75,1.0
    """
    path = output_path(path, tuple(_WRITERS), "a map")
    rho, libraries, columns, dims = checked_map(rho, names, E, targets)
    ends = Ends(libraries, columns, targets is None, {} if places is None else places.columns())
    with writing(path, "the map") as draft:
        _WRITERS[path.suffix.lower()](draft, path.suffix.lower(), rho, ends, dims, attrs or {})


class Ends(NamedTuple):
    """Names of libraries and of targets, and whether these are the same series."""

    libraries: Sequence[str]
    targets: Sequence[str]
    alike: bool
    # Coordinates of libraries that lie in a field.
    places: Mapping[str, Array] = {}

    def members(self) -> dict[str, Sequence[str]]:
        """What files that have a place for it hold of names."""
        return {"names": self.libraries} if self.alike else {"names": self.libraries, "targets": self.targets}


@contextmanager
def text_of(draft: IO[bytes]) -> Iterator[IO[str]]:
    """A draft as text, which stays open: it is not on the disk yet."""
    handle = io.TextIOWrapper(draft, encoding="utf-8", newline="", errors="surrogatepass")
    yield handle
    handle.detach()


def _write_text(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    separator = "\t" if suffix == ".tsv" else ","
    cells_of_names = [text_cell(name) for name in names.libraries]
    with text_of(draft) as handle:
        header = ["library", *map(text_cell, [*names.places, *names.targets])]
        places = [values.astype(np.str_).tolist() for values in names.places.values()]
        row_writer(handle, separator).writerow(header)
        for start, block in row_blocks(rho):
            for i, row in enumerate(block):
                cells = separator.join(row.astype(np.str_).tolist()).replace("nan", "NaN")
                before = [cells_of_names[start + i], *(values[start + i] for values in places)]
                row_writer(handle, separator, separator).writerow(before)
                handle.write(cells + "\n")


def _write_npy(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    kind = _dtype(rho)
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": tuple(rho.shape)}
    np.lib.format.write_array_header_1_0(draft, head)  # no memory map: a full disk would kill the process
    for _, block in row_blocks(rho):
        draft.write(np.ascontiguousarray(block, kind).data)


def _write_npz(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(draft, "w") as archive:
        with archive.open("rho.npy", "w", force_zip64=True) as member:
            _write_npy(member, suffix, rho, names, dims, attrs)
        members = {name: np.array(side) for name, side in names.members().items()}
        write_members(archive, {"E": dims.astype(np.int32), **members})


def write_members(archive: zipfile.ZipFile, arrays: Mapping[str, Array]) -> None:
    """Add arrays to an NPZ file."""
    for name, array in arrays.items():
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.ascontiguousarray(array), (1, 0), allow_pickle=False)


def _write_hdf5(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    h5py = need("h5py", "writing HDF5")
    with h5py.File(draft, "w") as file:
        out = file.create_dataset("rho", shape=tuple(rho.shape), dtype=_dtype(rho))
        for start, block in row_blocks(rho):
            out[start:start + len(block)] = block
        file.create_dataset("e", data=dims.astype(np.int32))
        for name, side in names.members().items():
            file.create_dataset(name, data=side, dtype=h5py.string_dtype())
        for key, value in attrs.items():
            file.attrs[key] = value if isinstance(value, (str, int, float)) else json.dumps(value, default=str)


def _write_parquet(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    pyarrow = need("pyarrow", "writing Parquet")
    parquet = need("pyarrow.parquet", "writing Parquet")
    columns = names.targets
    note = json.dumps({"E": dict(zip(columns, dims.tolist(), strict=True)), **attrs}, default=str)
    steps = sum(1 for _ in row_ranges(rho))
    if steps * len(columns) > _PARQUET_PIECES:
        raise InputError(
            f"a Parquet file of {len(columns):,} columns in {steps:,} parts would have {steps * len(columns):,} "
            "entries in its directory, which readers hold in memory: write .npy, .npz, .h5 or .csv, or a list of edges"
        )
    kind = pyarrow.from_numpy_dtype(_dtype(rho))
    places = {name: pyarrow.array(values) for name, values in names.places.items()}
    heads = [("library", pyarrow.string()), *((name, values.type) for name, values in places.items())]
    schema = pyarrow.schema([*heads, *((name, kind) for name in columns)], {"pyedmcl": note})
    with parquet.ParquetWriter(draft, schema) as writer:
        for start, block in row_blocks(rho):
            rows = slice(start, start + len(block))
            sides = [names.libraries[rows], *(values[rows] for values in places.values())]
            held = [*sides, *np.ascontiguousarray(block.T)]
            writer.write_table(pyarrow.table([pyarrow.array(column) for column in held], schema=schema))


def _write_netcdf(draft: File, suffix: str, rho: Any, names: Ends, dims: Array, attrs: Mapping[str, Any]) -> None:
    h5py, h5netcdf = need("h5py", "writing NetCDF"), need("h5netcdf", "writing NetCDF")
    with h5netcdf.File(draft, "w") as file:
        file.dimensions = {"library": rho.shape[0], "target": rho.shape[1]}
        out = file.create_variable("rho", ("library", "target"), _dtype(rho))
        for start, block in row_blocks(rho):
            out[start:start + len(block)] = block
        for side, labels in (("library", names.libraries), ("target", names.targets)):
            file.create_variable(side, (side,), h5py.string_dtype())[:] = np.array(labels, object)
        file.create_variable("E", ("target",), np.int32)[:] = dims
        for name in ("library", "target", "rho", "E"):
            label = COMMON[name]
            file[name].attrs.update({"long_name": label.meaning, **({"units": label.unit} if label.unit else {})})
        file.attrs["provenance"] = json.dumps(dict(attrs), default=str)


_WRITERS: dict[str, Callable[[File, str, Any, Ends, Array, Mapping[str, Any]], None]] = {
    ".csv": _write_text, ".tsv": _write_text, ".npy": _write_npy, ".npz": _write_npz, ".h5": _write_hdf5,
    ".hdf5": _write_hdf5, ".nc": _write_netcdf, ".parquet": _write_parquet,
}


def checked_map(
    rho: Any, names: Sequence[str], E: Any, targets: Sequence[str] | None = None
) -> tuple[Any, list[str], list[str], Array]:
    """A map, names of its libraries and targets, and E of each target; InputError where they do not fit each other."""
    if not hasattr(rho, "shape"):
        rho = np.asarray(rho)
    shape = tuple(rho.shape)
    if len(shape) != 2 or 0 in shape or (targets is None and shape[0] != shape[1]):
        needed_shape = "(N, N)" if targets is None else f"({len(names)}, {len(targets)})"
        raise InputError(f"a map has shape {needed_shape}, this one {shape}")
    if len(names) != shape[0]:
        raise InputError(f"{len(names)} names for a map of {shape[0]} series; one name each is needed")
    if targets is not None and len(targets) != shape[1]:
        raise InputError(f"{len(targets)} names for a map of {shape[1]} targets; one name each is needed")
    dims = np.asarray(E)
    if dims.shape not in ((), (shape[1],)):
        raise InputError(f"E has shape {dims.shape}; one value, or one for each of the {shape[1]} targets, is needed")
    libraries = [str(name) for name in names]
    columns = libraries if targets is None else [str(name) for name in targets]
    return rho, libraries, columns, np.broadcast_to(dims, (shape[1],))


def _dtype(rho: Any) -> np.dtype[Any]:
    return np.dtype(getattr(rho, "dtype", np.float64))


def row_blocks(rho: Any, share: int = 1) -> Iterator[tuple[int, Array]]:
    """Blocks of rows (start, array) of bounded size, whole chunks where the map is stored in such.

    ``share`` is how many times as large as a block what is made of it gets.
    """
    for start, stop in row_ranges(rho, share):
        yield start, np.asarray(rho[start:stop])
        report_progress(stop, rho.shape[0], "rows")


def row_ranges(rho: Any, share: int = 1) -> Iterator[tuple[int, int]]:
    """Where :func:`row_blocks` begin and end."""
    n = rho.shape[0]
    row = max(1, rho.shape[1] * _dtype(rho).itemsize)
    step = max(1, _BLOCK_BYTES // share // row)
    chunk = (getattr(rho, "chunks", None) or (1,))[0]
    if isinstance(chunk, int) and chunk > 1 and chunk * row <= _CHUNK_LIMIT:
        step = max(chunk, step - step % chunk)
    for start in range(0, n, step):
        yield start, min(start + step, n)
