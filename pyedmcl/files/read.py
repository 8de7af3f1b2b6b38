"""Read series from a file of any known format."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import column_names, several
from ..atomic_files import path_of
from ..call import recorded
from ..errors import InputError, PyedmclError, shown
from ..series.calendar import moment
from ..series.number_forms import Cells, cells_of, plain_number
from ..series.reading import ReadingOptions, reading_options, step_in_words
from ..series.series import Series, series_of
from ..series.tables import Table, of_array, unpack
from .formats import read_arrow, read_hdf5, read_mat, read_netcdf, read_npy, read_npz, read_spreadsheet, read_zarr
from .text import read_text


@dataclass(frozen=True)
class _Format:
    """A kind of file."""

    # As messages list it.
    name: str
    suffixes: tuple[str, ...]
    # Gets path, (``several``: the name of an array in the file, and that of its times), and what messages call it.
    read: Callable[..., Table]
    # Whether a file may hold several arrays.
    several: bool = False


_FORMATS = (
    _Format("CSV, TSV and other text tables, also with .gz", (".csv", ".tsv", ".txt", ".dat", ".tab",
            ".data", ".asc", ".ascii", ".prn"), read_text),
    _Format("NPY", (".npy",), read_npy),
    _Format("NPZ", (".npz",), read_npz, several=True),
    _Format("HDF5", (".h5", ".hdf5", ".hdf"), read_hdf5, several=True),
    _Format("NetCDF", (".nc", ".nc4", ".cdf"), read_netcdf, several=True),
    _Format("Parquet", (".parquet", ".pq"), read_arrow),
    _Format("Feather", (".feather",), read_arrow),
    _Format("Zarr", (".zarr",), read_zarr, several=True),
    _Format("MATLAB", (".mat",), read_mat, several=True),
    _Format("Excel", (".xlsx", ".xls", ".xlsm", ".ods"), read_spreadsheet, several=True),
)
_ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


@recorded
def read_series(
    data: Any, *, columns: Sequence[str | int] | str | int | None = None,
    time_column: str | int | Sequence[str | int] | None = None, dataset: str | None = None,
    skip_rows: int | Sequence[int] | str = 0, comment: str | None = None,
    missing: str | float | Sequence[str | float] = (), decimal: str | None = None, thousands: str | None = None,
    header: int | bool | None = None, time_format: str | None = None,
    names: Sequence[str] | str | os.PathLike[str] | None = None, transpose: bool = False,
    standardize: bool = False, categories: bool = False,
) -> Series:  # fmt: skip
    """Read series from a file, or from an object that holds them, with time along the rows.

    Parameters
    ----------
    data : path, or any data that functions take
        A text table, NPY, NPZ, HDF5, Parquet, Feather, NetCDF (by xarray), Zarr, MATLAB (by SciPy) or Excel file (by
        pandas); the suffix decides. Or a frame, a mapping, an array, for which the options below say what is meant.
    columns : sequence of str or int, str or int, optional
        Which columns to keep, in this order: names, or positions from 0 (of a file, all its columns are counted). The
        others are not looked at, so they may be text. Names with a minus before them are left out.
    time_column : str or int, or a sequence of these, optional
        The column that holds the time (in NPZ, HDF5 and Zarr also the 1-D data set), or columns of years, months,
        days and so on that are a date together. Without it names decide, see docs/reading.
    dataset : str, optional
        Which array of an NPZ, HDF5, Zarr or MATLAB file to read, or sheet of an Excel file. Without it: "values", else
        the only 2-D one, with the names in "names" beside it (kEDM's layout); the first sheet.
    skip_rows : int, sequence of int or str
        How many lines at the top of a text are left out, or the numbers of lines from 1, as in [4, 7] or "4:7".
    comment : str, optional
        Lines of a text that begin so are left out; "#" by default, unless it begins a spreadsheet's error such as #N/A.
    missing : str, number, or sequence of these
        Texts and numbers that stand for a missing value, as in "-9999,ND". "<" stands for all limits such as <0.05.
    decimal, thousands : str, optional
        Decimal mark ("." or ",") and mark between thousands, where cells leave it open.
    header : int or False, optional
        Number of the line that holds the names, counted from 1; False where none does.
    time_format : str, optional
        Form of times: letters of ``datetime.strptime`` as in "%d.%m.%Y", or words as in "day/month/year"; "number" for
        numbers that are no dates.
    names : sequence of str or path, optional
        Name of each column, or a text file with one in each line, for data that have none.
    transpose : bool
        Each row is a series.
    standardize : bool
        Give each series in units of its standard deviation, around 0, as series that are one state together need.
    categories : bool
        Columns of words are categories, which functions of recurrence compare as equal or not. Among columns of numbers
        they are left out unless ``columns`` names them.

    Returns
    -------
    Series
        Missing cells (empty, NA, N/A, NaN, null, None) are NaN. Text gives float64; other formats keep float32.
        ``reading`` says what was found: ``print(series.reading)``. A text table without header names its columns
        "x0", "x1", ... by their position in the file.

    Raises
    ------
    InputError
        For a file that is missing, of an unknown format or damaged, for columns that are missing or not numeric (with
        the line of the first bad cell), and for whatever may mean two things (with the option that decides).
    MissingExtraError
        If the format needs a package of the extra "io" that is not installed.

    Warns
    -----
    ReadingWarning
        Something was inferred or left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pyedmcl.files import read_series
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "lake.csv")
    ...     _ = path.write_text("date;prey;hunter\\n05/01/2001;1,5;7\\n20/01/2001;2,5;\\n04/02/2001;4,0;ND\\n")
    ...     series = read_series(path, missing="ND")
    >>> series.names, series.values.shape
    (('prey', 'hunter'), (3, 2))
    >>> series.values[:, 1].tolist()  # the empty cell is a gap, and so is ND
    [7.0, nan, nan]
    >>> series.reading.time
    "'date', day/month/year, 2001-01-05 to 2001-02-04, a row every 15 days"
    """
    options = reading_options(
        skip_rows=skip_rows, comment=comment, missing=missing, decimal=decimal, thousands=thousands, header=header,
        time_format=time_format, names=names, transpose=transpose, standardize=standardize, categories=categories,
    )  # fmt: skip
    if dataset is not None and not isinstance(dataset, str):
        raise InputError(f"dataset={shown(dataset)}: the name of an array in the file is needed")
    names_of_time = [] if time_column is None else several("time_column", time_column)
    if not all(isinstance(one, (str, int, np.integer)) and not isinstance(one, bool) for one in names_of_time):
        raise InputError(f"time_column={shown(time_column)}: the name or the position of a column is needed")
    chosen_columns = column_names("columns", columns)
    of_file = isinstance(data, (str, os.PathLike))
    what = os.fspath(path_of(data)) if of_file else "data"
    try:
        path = Path(what) if of_file else None
        if path is not None and not path.exists():
            raise InputError(_not_there(path))
        table = unpack(data, what) if path is None else _read(path, dataset, time_column, options, what)
        if path is None and (dataset is not None or options.of_text):
            raise InputError(f"{[*options.of_text, 'dataset'][0]}= is for files; leave it out here")
        series = series_of(_arranged(table, options, what), chosen_columns, what, options=options,
                           time_column=None if table.time is not None else time_column)  # fmt: skip
        return _oldest_first(replace(series, source=what), what) if of_file else series
    except (PyedmclError, NameError):  # the latter is a mistake of ours
        raise
    except Exception as error:  # of the library that knows the format, about a damaged file
        kind = Path(what).suffix.lower().lstrip(".").upper() or "a file of series"
        raise InputError(f"{what}: cannot be read as {kind} ({type(error).__name__}: {error})") from error


def _read(path: Path, dataset: str | None, time_column: Any, options: ReadingOptions, what: str) -> Table:
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
        listed = ", ".join(one.name for one in _FORMATS if one.several)
        raise InputError(f"{what}: dataset= chooses an array of a file of these formats: {listed}; leave it out here")
    if not suitable:
        raise InputError(f"{what}: unknown format {suffix or '(no suffix)'!r}; known are {_known()}")
    if suitable[0].read is read_text:
        return read_text(path, options, what)
    if options.of_text:
        raise InputError(f"{what}: {options.of_text[0]}= is for tables of text; leave it out here")
    return suitable[0].read(path, *((dataset, time_column) if suitable[0].several else ()), what)


def _oldest_first(series: Series, what: str) -> Series:
    """Rows that run from newest to oldest turned round, which is told."""
    time = series.time
    if time is None or series.reading is None or time.dtype.kind not in "iufM" or len(time) < 3 or not (
        time[1:] < time[:-1]
    ).all():
        return series
    reading = series.reading.told(f"{what}: the rows run from newest to oldest and are turned round")
    ends = f"{moment(time[0])} to {moment(time[-1])}"
    turned = (f"{moment(time[-1])} to {moment(time[0])}", step_in_words(time[::-1]))
    words = reading.time.replace(ends, ", ".join(filter(None, turned)))
    values = np.ascontiguousarray(series.values[::-1])
    return replace(series, values=values, time=time[::-1], reading=replace(reading, time=words))


def _arranged(table: Table, options: ReadingOptions, what: str) -> Table:
    """The table with each row as a series where that was asked for, and with the names that were given."""
    if options.transpose:
        table = _transposed(table, what)
    names = options.names
    if names is None:
        return table
    if len(names) == len(table.labels) - 1 and not table.headless and not table.settled:
        names = (str(table.labels[0]), *names)  # of the series beside the time
    if len(names) != len(table.labels):
        raise InputError(f"{what}: names= holds {len(names):,} names, and there are {len(table.labels):,} columns")
    return replace(table, labels=names, headless=False, nameless=frozenset())


def _transposed(table: Table, what: str) -> Table:
    """Each row as a series, named by the first column where that holds words."""
    columns = [table.column(i) for i in range(len(table.labels))] if table.array is None else []
    if table.array is not None:
        values = np.ascontiguousarray(table.array.T)
        labels = None if table.time is None else [str(label) for label in table.time.tolist()]
        made = of_array(values, what, labels, None if table.headless else np.asarray([str(n) for n in table.labels]))
        return replace(made, source=table.source)
    cells = [column if isinstance(column, Cells) else cells_of(np.asarray(column, object)) for column in columns]
    texts = [None if own is None else own.listed() for own in cells]
    words = texts and texts[0] is not None and any(cell and plain_number(cell) is None for cell in texts[0])
    again = next((
        name for name, *row in zip(*filter(None, texts if words else ()), strict=True)
        if name and plain_number(name) is None and name in row
    ), None)  # fmt: skip
    first = 1 if (words and again is None) or 0 in table.nameless else 0
    if len(texts) == first:
        raise InputError(f"{what}: transpose: there are names, but no columns of data; leave it out")
    body = np.array([["" if cell is None else cell for cell in own or ()] for own in texts[first:]], object)
    labels = [str(cell) for cell in texts[0] or ()] if first else None
    head = None if table.headless else np.array([str(label) for label in table.labels[first:]], object)
    rows = [body[:, i] for i in range(body.shape[1])] if body.ndim == 2 else []
    made_labels = tuple(labels) if labels is not None else tuple(f"x{i}" for i in range(len(rows)))
    return replace(
        table, labels=made_labels, n_steps=len(body), column=lambda i: rows[i], time=head, headless=labels is None,
        nameless=frozenset(), where=lambda row: f"column {row}", units=None,
        inferred=(*table.inferred, f"{what}: the first cell of each row is data, as {again!r} occurs again in its row")
        if again is not None else table.inferred,
    )  # fmt: skip


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
