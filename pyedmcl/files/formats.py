"""Files of other formats: arrays in NPY, NPZ, HDF5 and Zarr, fields in NetCDF, tables in Parquet and Feather."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import some
from ..atomic_files import output_path, writing
from ..errors import InputError, MissingExtraError, need, shown
from ..series.arrays import Array
from ..series.tables import Table, of_array, unpack

# NPY, NPZ, HDF5, Zarr and MATLAB: files that hold named arrays.


@dataclass(frozen=True)
class Entry:
    """One array of a container: its shape, its dtype kind and how to load it."""

    shape: tuple[int, ...]
    kind: str
    load: Callable[[], Any]


def read_npy(path: Path, what: str) -> Table:
    """Read one array (L,), (L, N) or a structured array (L,)."""
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{what}: cannot be read as NPY ({error})") from error
    return replace(of_array(values, what), source=what)


def read_mat(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read a variable of a MATLAB file, of version 7.3 through h5py, else through SciPy."""
    if path.read_bytes()[:10].startswith(b"MATLAB 7.3"):
        table = read_hdf5(path, dataset, time_column, what)
        return table if table.array is None else replace(
            of_array(np.ascontiguousarray(table.array.T), what), source=what
        )  # MATLAB writes columns first
    matlab = need("scipy.io", "reading MATLAB files")
    try:
        held = matlab.loadmat(path, squeeze_me=False)
    except (ValueError, TypeError, NotImplementedError, OSError) as error:
        raise InputError(f"{what}: cannot be read as MATLAB ({error})") from error
    entries = {}
    for name, values in held.items():
        if not name.startswith("__") and isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            flat = values[0] if values.ndim == 2 and len(values) == 1 else values  # a row vector
            entries[name] = Entry(flat.shape, flat.dtype.kind, partial(np.asarray, flat))
    return _read(entries, dataset, time_column, what)


def read_npz(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read an array of an NPZ file, with its "names" and "time" if they are there."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            entries = {}
            for name in archive.files:
                values = archive[name]
                entries[name] = Entry(values.shape, values.dtype.kind, partial(np.asarray, values))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{what}: cannot be read as NPZ ({error})") from error
    return _read(entries, dataset, time_column, what)


def read_hdf5(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read a data set of an HDF5 file: kEDM's /values with /names, or another one."""
    h5py = need("h5py", "reading HDF5")
    try:
        with h5py.File(path, "r") as file:
            entries = {
                name: Entry(tuple(item.shape), item.dtype.kind, partial(item.__getitem__, ()))
                for name, item in _own_datasets(file, what).items() if item.shape is not None
            }  # fmt: skip
            return _read(entries, dataset, time_column, what)
    except OSError as error:
        raise InputError(f"{what}: cannot be read as HDF5 ({error})") from error


def _own_datasets(file: Any, what: str) -> dict[str, Any]:
    """The data sets of an HDF5 file; one that leads into other files is refused, before anything of them is opened."""
    h5py = need("h5py", "reading HDF5")
    found: dict[str, Any] = {}

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item
            virtual = item.virtual_sources() if item.is_virtual else []
            sources = [each.file_name for each in virtual if each.file_name != "."]  # "." is this file
            sources += [each[0] for each in item.external or ()]
        else:
            links = [(key, item.get(key, getlink=True)) for key in item]
            sources = [link.filename for _, link in links if isinstance(link, h5py.ExternalLink)]
        if sources:
            raise InputError(
                f"{what}: /{name} lies in another file, {shown(sources[0])}, and a file that leads into others is not "
                "read; copy the values into one file"
            )

    look("", file)
    file.visititems(look)
    return found


def read_zarr(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read a Zarr array, or an array of a Zarr group."""
    zarr = need("zarr", "reading Zarr")
    _require_plain_zarr(path, what)
    try:
        # A store of this folder and nothing else: a text may be taken for an address, or for the folder of an N5.
        local = getattr(zarr.storage, "LocalStore", None)
        store = zarr.storage.DirectoryStore(str(path)) if local is None else local(path, read_only=True)
        node = zarr.open(store, mode="r")
    except Exception as error:  # zarr's own errors differ between its versions
        raise InputError(f"{what}: cannot be read as Zarr ({type(error).__name__}: {error})") from error
    if hasattr(node, "shape"):
        if dataset is not None:
            raise InputError(f"{what}: this is one array, not a group; leave out dataset=")
        return _table(np.asarray(node[...]), node.attrs.get("names"), None, what)
    entries: dict[str, Entry] = {}
    _walk(node, "", entries)
    return _read(entries, dataset, time_column, what)


#: Codecs that turn bytes into numbers and texts, and nothing else. Others may run code (pickle) or load plug-ins.
_CODECS = frozenset({
    "adler32", "astype", "base64", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta", "fixedscaleoffset",
    "fletcher32", "gzip", "jenkins_lookup3", "json2", "lz4", "lzma", "packbits", "pcodec", "quantize",
    "sharding_indexed", "shuffle", "transpose", "vlen-bytes", "vlen-utf8", "zlib", "zstd",
})  # fmt: skip
# Where a description names codecs, in versions 2 and 3 of the format and in the configuration of a shard.
_CODEC_KEYS = ("compressor", "filters", "codecs", "index_codecs")
_DESCRIPTIONS = (".zarray", ".zgroup", ".zmetadata", "zarr.json")


def _require_plain_zarr(path: Path, what: str) -> None:
    """Refuse a folder whose codecs may run code, or that leads elsewhere by links."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                kind = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                place = Path(folder, name).relative_to(path)
                raise InputError(f"{what}: {place} is {kind}, which is not followed; copy the arrays themselves there")
        for name in _DESCRIPTIONS:
            if name in files:
                file = Path(folder, name)
                try:
                    _require_known_codecs(json.loads(file.read_bytes()), what, str(file.relative_to(path)))
                except (ValueError, RecursionError) as error:
                    if isinstance(error, InputError):
                        raise
                    raise InputError(f"{what}: {file.relative_to(path)} is no JSON ({error})") from error


def _require_known_codecs(described: Any, what: str, file: str) -> None:
    """Check the codecs of a description, and of those of arrays that the description of a group holds."""
    if not isinstance(described, dict):
        return
    for key in _CODEC_KEYS:
        named = described.get(key)
        for codec in named if isinstance(named, list) else [named]:
            name = codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec
            # The third version of the format calls some codecs of the second one "numcodecs.zlib".
            if isinstance(name, str) and name.removeprefix("numcodecs.") in _CODECS:
                if isinstance(codec, dict):
                    _require_known_codecs(codec.get("configuration"), what, file)
            elif codec is not None:
                raise InputError(
                    f"{what}: {file} asks for the codec {shown(name)}, which is not known to be free of code; store "
                    "the numbers with another one, such as zstd or blosc"
                )
    inner = described.get("consolidated_metadata")
    for within in (described.get("metadata"), inner.get("metadata") if isinstance(inner, dict) else None):
        for one in within.values() if isinstance(within, dict) else ():
            _require_known_codecs(one, what, file)


def _walk(group: Any, prefix: str, entries: dict[str, Entry]) -> None:
    for name, array in sorted(group.arrays()):
        entries[prefix + name] = Entry(tuple(array.shape), getattr(array.dtype, "kind", "O"),
                                       partial(array.__getitem__, ...))
    for name, child in sorted(group.groups()):
        _walk(child, f"{prefix}{name}/", entries)


def _read(entries: Mapping[str, Entry], dataset: str | None, time_column: Any, what: str) -> Table:
    name = _choose(entries, dataset, what)
    folder = name.rpartition("/")[0]
    beside = {key.rpartition("/")[2]: entry for key, entry in entries.items()
              if key.rpartition("/")[0] == folder and key != name}
    values = np.asarray(entries[name].load())
    names = _texts(beside["names"].load()) if "names" in beside and len(beside["names"].shape) == 1 else None
    if names is not None and "values" in beside and values.ndim == 2 and len(names) != values.shape[1]:
        names = None  # they belong to "values", and another array was asked for
    named_in_values = time_column is not None and (
        not isinstance(time_column, str) or (names is not None and time_column in names)
    )
    time_name = "time" if time_column is None else str(time_column)
    time = None
    if time_name in beside and not named_in_values and values.ndim and beside[time_name].shape == values.shape[:1]:
        time = np.asarray(beside[time_name].load())
        if time.dtype.kind not in "iufMm":
            time = np.array(_texts(time), np.str_)
    return _table(values, names, time, what)


def _choose(entries: Mapping[str, Entry], dataset: str | None, what: str) -> str:
    listed = ", ".join(f"{name} {entry.shape}" for name, entry in list(entries.items())[:20]) or "none"
    if dataset is not None:
        name = dataset.strip("/")
        if name not in entries:
            raise InputError(f"{what}: there is no data set {dataset!r}; there are: {listed}")
        return name
    if "values" in entries:
        return "values"
    numeric = {name: entry for name, entry in entries.items() if entry.kind in "fiub"}
    flat = [name for name, entry in numeric.items() if len(entry.shape) == 2]
    if len(flat) == 1:
        return flat[0]
    if len(entries) == 1 or (len(numeric) == 1 and not flat):
        return next(iter(numeric or entries))
    raise InputError(f"{what}: which data set holds the series? Name it with dataset=. There are: {listed}")


def _texts(values: Any) -> list[str]:
    items = np.asarray(values).tolist()
    return [item.decode("utf-8", "replace").rstrip("\0") if isinstance(item, bytes) else str(item) for item in items]


def _table(values: Array, names: Sequence[str] | None, time: Array | None, what: str) -> Table:
    table = of_array(values, what, None, time)
    if names is not None and len(names) != len(table.labels):
        raise InputError(f"{what}: {some(list(names))} are {len(names)} names for {len(table.labels)} series")
    named = table if names is None else replace(table, labels=tuple(names), headless=False)
    return replace(named, source=what)


# NetCDF through xarray: read by whichever of its engines is installed (netCDF4, h5netcdf or SciPy).


def read_netcdf(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read a variable of a NetCDF file, such as a field (time, lat, lon); the only one, or that named ``dataset``."""
    xarray = need("xarray", "reading NetCDF")
    if time_column is not None:
        raise InputError(f"{what}: time_column= is not used with NetCDF, whose first dimension is the time")
    _require_own_hdf5(path, what)
    try:
        with xarray.open_dataset(path) as file:
            if dataset is not None and dataset not in file.data_vars:
                variables = ", ".join(map(str, file.data_vars))
                raise InputError(f"{what}: there is no variable {dataset!r}; there are: {variables}")
            data = (file if dataset is None else file[dataset]).load()
    except ValueError as error:  # of xarray, where no engine knows the file
        raise InputError(f"{what}: cannot be read as NetCDF ({error})") from error
    return replace(unpack(data, what), source=what)


def _require_own_hdf5(path: Path, what: str) -> None:
    """Refuse a NetCDF file of version 4, which is HDF5, that leads into other files."""
    with open(path, "rb") as raw:
        hdf5 = raw.read(8) == b"\x89HDF\r\n\x1a\n"
    if hdf5:
        with contextlib.suppress(OSError), need("h5py", "reading NetCDF").File(path, "r") as file:
            _own_datasets(file, what)


def write_netcdf(made: Callable[[], Any], path: str | os.PathLike[str]) -> Path:
    """Write the array or dataset of xarray that ``made`` gives as NetCDF of version 4."""
    place = output_path(path, (".nc",), "NetCDF")
    need("h5netcdf", "writing NetCDF")
    array = made()
    names = getattr(array, "data_vars", ())
    # A slash in a name would make a group of the file.
    array = array.rename({name: str(name).replace("/", "|") for name in names if "/" in str(name)}) if names else array
    with writing(place, "the NetCDF file") as draft, tempfile.TemporaryDirectory() as folder:
        # xarray of 2023 writes to a path only.
        array.to_netcdf(Path(folder) / "result.nc", engine="h5netcdf")
        with open(Path(folder) / "result.nc", "rb") as file:
            shutil.copyfileobj(file, draft)
    return place


# Parquet and Feather through pyarrow, and sheets of Excel through pandas.


def read_arrow(path: Path, what: str) -> Table:
    """Read a Parquet or Feather file; the index of a pandas frame stored in it becomes the time."""
    feather = path.suffix.lower() == ".feather"
    reader = need("pyarrow.feather" if feather else "pyarrow.parquet", f"reading {'Feather' if feather else 'Parquet'}")
    try:
        table = reader.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise InputError(f"{what}: cannot be read as {'Feather' if feather else 'Parquet'} ({error})") from error
    labels = list(table.column_names)
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    if len(stored) == 1 and isinstance(stored[0], str) and stored[0] in labels:
        index = labels.index(stored[0])
        time = np.asarray(table.column(index).to_numpy(zero_copy_only=False))
        opened = unpack(table.drop_columns([stored[0]]), what)
        return replace(opened, time=time, source=what)
    return replace(unpack(table, what), source=what)


def read_spreadsheet(path: Path, sheet: str | None, time_column: Any, what: str) -> Table:
    """Read a sheet of an Excel file by name, else the first one, as cells."""
    pandas = need("pandas", "reading Excel files")
    try:
        cells = pandas.read_excel(path, sheet_name=0 if sheet is None else sheet, dtype=object)
    except ImportError as error:
        engine = next((word for word in str(error).replace("'", " ").split() if word in _ENGINES), "openpyxl")
        raise MissingExtraError(
            f"reading {path.suffix} files needs the package {engine!r}: pip install {engine}; or save the sheet as CSV"
        ) from error
    except ValueError as error:  # of pandas, about the file or the sheet
        raise InputError(f"{what}: cannot be read as a spreadsheet ({error})") from error
    typed = cells.infer_objects()
    unnamed = frozenset(i for i, name in enumerate(typed.columns) if str(name).startswith("Unnamed: "))
    return replace(unpack(typed, what), source=what, nameless=unnamed, where=lambda row: f"row {row + 2} of the sheet")


_ENGINES = ("openpyxl", "xlrd", "odfpy", "pyxlsb", "python-calamine")
