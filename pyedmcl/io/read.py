"""One function that reads series from any of the known file formats."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.arguments import column_names, shown
from ..data.series import Series
from ..errors import InputError, PyedmclError
from ..files import path_of
from .arrays import read_hdf5, read_npy, read_npz, read_zarr
from .netcdf import read_netcdf
from .tables import read_arrow
from .text import read_text


@dataclass(frozen=True)
class _Format:
    """A kind of file.

    Attributes
    ----------
    name : str
        As messages list it.
    suffixes : tuple of str
    read : callable
        Gets path, (``several``: the name of an array in the file), columns, time column, and what messages call it.
    several : bool
        Whether a file may hold several arrays.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Series]
    several: bool = False


_FORMATS = (
    _Format("CSV, TSV and other text tables, also with .gz", (".csv", ".tsv", ".txt", ".dat", ".tab"), read_text),
    _Format("NPY", (".npy",), read_npy),
    _Format("NPZ", (".npz",), read_npz, several=True),
    _Format("HDF5", (".h5", ".hdf5", ".hdf"), read_hdf5, several=True),
    _Format("NetCDF", (".nc", ".nc4", ".cdf"), read_netcdf, several=True),
    _Format("Parquet", (".parquet", ".pq"), read_arrow),
    _Format("Feather", (".feather",), read_arrow),
    _Format("Zarr", (".zarr",), read_zarr, several=True),
)
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


def read_series(path: str | os.PathLike[str], *, columns: Sequence[str | int] | str | int | None = None,
                time_column: str | int | None = None, dataset: str | None = None) -> Series:
    """Read series from a file, with time along its rows.

    Parameters
    ----------
    path : path
        A text table, NPY, NPZ, HDF5, Parquet, Feather, NetCDF (by xarray) or Zarr; the suffix decides.
    columns : sequence of str or int, str or int, optional
        Which columns to keep, in this order: names, or positions in the file from 0. The others are not looked at,
        so they may be text.
    time_column : str or int, optional
        The column (in NPZ, HDF5 and Zarr also the 1-D data set) that holds the time. Without it a table's column
        is the time if it is called time, date, year, day, month, index, t or timestamp and holds dates, text or
        numbers that increase, or if it is the first one and holds dates; in NPZ, HDF5 and Zarr a data set "time"
        of fitting length is.
    dataset : str, optional
        Which array of an NPZ, HDF5 or Zarr file to read. Without it: "values", else the only 2-D one, with the names
        in "names" beside it (kEDM's layout).

    Returns
    -------
    Series
        Missing cells (empty, NA, N/A, NaN, null, None) are NaN. Text gives float64; other formats keep float32.
        A text table without header names its columns "x0", "x1", ... by their position in the file.

    Raises
    ------
    InputError
        For a file that is missing, of an unknown format or damaged, and for columns that are missing or not numeric
        (with the line of the first bad cell).
    MissingExtraError
        If the format needs a package of the extra "io" that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyedmcl.io import read_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "lake.csv")
    ...     _ = path.write_text("date,prey,hunter\\n2001-01-01,1.5,7\\n2001-01-02,2.5,\\n2001-01-03,4.0,9\\n")
    ...     series = read_series(path)
    ...     hunter = read_series(path, columns="hunter")
    >>> series.names, series.values.shape
    (('prey', 'hunter'), (3, 2))
    >>> hunter.values.ravel().tolist()  # the empty cell is a gap
    [7.0, nan, 9.0]
    """
    path = path_of(path)
    what = str(path)
    if dataset is not None and not isinstance(dataset, str):
        raise InputError(f"dataset={shown(dataset)}: the name of an array in the file is needed")
    if isinstance(time_column, bool) or not isinstance(time_column, (str, int, np.integer, type(None))):
        raise InputError(f"time_column={shown(time_column)}: the name or the position of a column is needed")
    chosen_columns = column_names("columns", columns)
    try:
        if not path.exists():
            raise InputError(_not_there(path))
        return replace(_read(path, chosen_columns, time_column, dataset, what), source=what)
    except (PyedmclError, NameError):  # the latter is a mistake of ours
        raise
    except Exception as error:  # of the library that knows the format, about a damaged file
        kind = path.suffix.lower().lstrip(".").upper() or "a file of series"
        raise InputError(f"{what}: cannot be read as {kind} ({type(error).__name__}: {error})") from error


def _read(
    path: Path, wanted: list[Any] | None, time_column: str | int | None, dataset: str | None, what: str
) -> Series:
    """Read with the reader of the format."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower() if suffix == ".gz" else suffix
    if path.is_dir():
        is_zarr = suffix == ".zarr" or any((path / mark).exists() for mark in _ZARR_MARKS)
        if not is_zarr:
            raise InputError(f"{what}: this is a folder, not a file of series; known formats: {_known()}")
        inner = ".zarr"
    suitable = [one for one in _FORMATS if inner in one.suffixes and (suffix == inner or one.read is read_text)]
    if dataset is not None and not (suitable and suitable[0].several):
        several = ", ".join(one.name for one in _FORMATS if one.several)
        raise InputError(f"{what}: dataset= chooses an array of a file of these formats: {several}; leave it out here")
    if not suitable:
        raise InputError(f"{what}: unknown format {suffix or '(no suffix)'!r}; known are {_known()}")
    named = (dataset,) if suitable[0].several else ()
    return suitable[0].read(path, *named, wanted, time_column, what)


def _known() -> str:
    return "; ".join(f"{one.name} ({', '.join(one.suffixes)})" for one in _FORMATS)


def _not_there(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: there is no folder {str(folder)!r}; check the path"
    try:
        present = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        present = []
    near = difflib.get_close_matches(path.name, present, n=3, cutoff=0.6)
    folded = {name.lower(): name for name in present}
    if path.name.lower() in folded and folded[path.name.lower()] not in near:
        near.insert(0, folded[path.name.lower()])
    hint = f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    return f"{path}: there is no such file in {str(folder.resolve())!r}{hint}"
