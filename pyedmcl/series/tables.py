"""Tables and fields of any library as named columns of numbers; columns of words are left out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from ..arguments import some
from ..call import takes
from ..errors import GroupsWarning, InputError, missing_extra, shown, warn
from .arrays import Array, beyond_float64, to_array
from .date_forms import dates_of_texts
from .fields import Grid, on_grid
from .number_forms import Cells, is_missing_cell, plain_number

# Columns of a table that hold words, such as notes: which of them may be left out, and with what words.


_LABELS = 5  # rows of each number that tells recordings apart, as a mean
# A number with a slip of the pen, a decimal comma, or the sign of a detection limit ("<0.5") is no word.
_LIKE_A_NUMBER = re.compile(r"[\s<>=~≈$€£'\"(]*[+\u2212\u2013\ufe63\uff0d-]?\s*[.,]?\d")


def are_words(cells: Sequence[str]) -> bool:
    """Whether a column holds nothing but words (and gaps): no cell begins like a number, and they are no dates."""
    held = [cell for cell in cells if not is_missing_cell(cell)]
    return bool(held) and not any(_LIKE_A_NUMBER.match(cell) or plain_number(cell) is not None for cell in held) and (
        dates_of_texts(held) is None
    )


def tell_recordings(cells: Sequence[str]) -> bool:
    """Whether words may tell recordings apart: each stands in one stretch of rows, or all take turns, as long as each
    other in each round."""
    stretches = [(label, sum(1 for _ in same)) for label, same in groupby(cell.strip() for cell in cells)]
    labels = [label for label, _ in stretches]
    kinds = len(set(labels))
    if "" in labels or not 2 <= kinds <= len(cells) // 2:
        return False
    rounds = [{length for _, length in stretches[at:at + kinds]} for at in range(0, len(stretches), kinds)]
    in_turns = labels[kinds:] == labels[:-kinds] and all(len(lengths) == 1 for lengths in rounds)
    return len(labels) == kinds or in_turns


def in_stretches(values: Array) -> bool:
    """Whether numbers may tell recordings apart: whole ones, each of which stands in one stretch of some rows."""
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return False
    stretches = 1 + int(np.count_nonzero(values[1:] != values[:-1]))
    return 2 <= stretches <= len(values) // _LABELS and len(np.unique(values)) == stretches


def warn_of_recordings(labels: Sequence[str], name: Any, what: str) -> None:
    """Warn that rows are read as one recording where a column that is not looked at has the labels of several."""
    warn(
        f"{what}: column {shown(name)} ({some(labels)}) seems to tell recordings apart, and all rows are read as one. "
        f"{_by_groups(name)}, or take the rows of one recording",
        GroupsWarning,
    )


def require_no_recordings(cells: Sequence[str], name: Any, what: str, others: int = 2) -> None:
    """Refuse to leave out a column of words by which the rows seem to belong to several recordings.

    ``others`` is how many columns there would be without it.
    """
    if tell_recordings(cells):
        labels = list(dict.fromkeys(cell.strip() for cell in cells))
        long = "; if each of them is a series of its own, give each a column (pivot of pandas)" if others < 2 else ""
        raise InputError(
            f"{what}: the words in column {shown(name)} ({some(labels)}) seem to tell recordings apart. "
            f"{_by_groups(name)}, or leave it out{_by_columns(name)}{long}"
        )


def _by_groups(name: Any) -> str:
    where = "" if takes("groups") or takes("dataset") else " of rqa_batch"
    return f"Name the column with groups={shown(name)}{where}"


def _by_columns(name: Any) -> str:
    return f" with columns={'-' + str(name)!r}" if takes("columns") else ""


# Open the containers users hold their series in, without importing the libraries those come from.
#
# A library is recognised by the module of the object's type: an object that exists has its library imported already,
# and a library that is absent costs nothing.


@dataclass(frozen=True)
class Table:
    """Columns of equal length, not yet checked to be numbers."""

    # One label per column, as the container holds it.
    labels: tuple[object, ...]
    # Number of rows L.
    n_steps: int
    # ``column(i)`` gives column ``i``, shape (L,), of any dtype, or as Cells of a text.
    column: Callable[[int], Array | Cells]
    # All columns as one array (L, N) where the container holds them so.
    array: Array | None = None
    # Shape (L,).
    time: Array | None = None
    # Where the columns lie, if they are a field.
    grid: Grid | None = None
    # Name of a column to its unit, of those that the container tells of.
    units: dict[str, str] | None = None
    # ndarray (L, N) of float64, or None. The numbers of all columns of a text, where cells are such.
    numbers: Array | None = None
    # Columns have no names, but for their number.
    headless: bool = False
    # Columns without a name beside others that have one.
    nameless: frozenset[int] = frozenset()
    # Name of a row in messages.
    where: Callable[[int], str] = lambda row: f"row {row}"
    # When a point is the decimal mark of texts, see :class:`pyedmcl.series.number_forms.NumberOptions`.
    point: str = ""
    # It was read from a file of text.
    of_text: bool = False
    # Names and time are known: no column is looked at as a time.
    settled: bool = False
    # The file, or the kind of the object.
    source: str = ""
    # layout, passed_over, inferred: As in :class:`pyedmcl.series.reading.Reading`.
    layout: str = ""
    passed_over: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()


def unpack(data: Any, what: str) -> Table:
    """Table of the series in ``data``."""
    if type(data) is np.ndarray and data.dtype.kind != "O":
        return of_array(data, what)
    return replace(_opened(data, what), source=_kind_of(data))


def _kind_of(data: Any) -> str:
    root = type(data).__module__.partition(".")[0]
    return type(data).__name__ if root in ("builtins", "__main__") else f"{root} {type(data).__name__}"


def _opened(data: Any, what: str) -> Table:
    root = type(data).__module__.partition(".")[0]
    opener = _OPENERS.get(root) or _by_methods(data)
    if opener is None or root in ("dask", "polars", "pyarrow"):  # a Delayed of Dask has whatever one asks for
        _refuse_unread(data, what)
    if opener is not None:
        try:
            table = opener(data, what)
            return replace(table, units=_units_of(data, table.labels))
        except InputError:
            raise
        except Exception as error:  # an object of that library which holds no columns
            raise InputError(
                f"{what}: a {root} {type(data).__name__} cannot be read as series ({type(error).__name__}: {error})"
            ) from error
    if isinstance(data, Mapping):
        return _side_by_side(data, what)
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        raise InputError(
            f"{what}: {shown(data)} is a name, not data; read a file with pyedmcl.files.read_series(path) first"
        )
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind == "O" and len(data) and (
        isinstance(data[0], np.ndarray)
    ):
        data = list(data)  # cells of MATLAB
    if isinstance(data, (list, tuple)) and data:
        if all(map(has_index, data)):
            names = [f"x{i}" if item.name is None else item.name for i, item in enumerate(data)]
            return _side_by_side(dict(zip(names, data, strict=True)), what) if len(set(names)) == len(names) else (
                _refuse_names(names, what)
            )
        _refuse_arrays(data, what)
    return of_array(to_array(data, what), what)


def has_index(item: Any) -> bool:
    """Whether an object is one series with labels of its rows, such as a Series of pandas."""
    root = type(item).__module__.partition(".")[0]
    return root in ("pandas", "polars", "xarray") and getattr(item, "ndim", 1) == 1 and hasattr(item, "name") and (
        not hasattr(item, "columns")
    )


def _refuse_names(names: Sequence[object], what: str) -> Table:
    raise InputError(f"{what}: several series have one name ({', '.join(map(shown, names[:4]))}); rename them")


def _refuse_arrays(data: Sequence[Any], what: str) -> None:
    """Refuse a list of arrays of one dimension which may be series or rows."""
    if not all(isinstance(item, np.ndarray) and item.ndim == 1 for item in data) or len(data) < 2:
        return
    lengths = sorted({len(item) for item in data})
    if len(lengths) > 1:
        raise InputError(
            f"{what}: the arrays of a list have {' and '.join(f'{n:,}' for n in lengths[:3])} values; series of one "
            "table are equally long"
        )
    if len(data) < lengths[0]:
        raise InputError(
            f"{what}: a list of {len(data)} arrays of {lengths[0]:,} values each may be series or rows. Give "
            "numpy.column_stack(data) where each is a series, or numpy.array(data) where each is a row"
        )


#: Methods that give all of what an object stands for, which holds no values itself.
_READ_BY = ("collect", "compute", "read_all", "to_table", "toarray")


def _refuse_unread(data: Any, what: str) -> None:
    """Refuse what holds no values yet (or only those that are not zero), and say how to get them."""
    kind = type(data)
    if any(hasattr(kind, readable) for readable in ("__array__", "__dlpack__", "to_numpy", "column_names")):
        return
    name = f"a {kind.__module__.partition('.')[0]} {kind.__name__}"
    method = next((method for method in _READ_BY if callable(getattr(kind, method, None))), None)
    if method is not None:
        raise InputError(f"{what}: {name} has no array of values; call .{method}() first")
    if hasattr(kind, "__next__"):
        raise InputError(f"{what}: {name} can be read only once; pass list(...) of it")


@functools.lru_cache(maxsize=4)
def _numbered(n: int) -> tuple[str, ...]:
    """Names of series that have none."""
    return tuple(f"x{i}" for i in range(n))


def of_array(values: Array, what: str, labels: Sequence[object] | None = None, time: Array | None = None) -> Table:
    """Table of an array (L,) or (L, N); labels default to "x0", "x1", ..."""
    if values.dtype.names is not None:
        if values.ndim != 1:
            raise InputError(f"{what}: a structured array must have one dimension, this one has {values.ndim}")
        fields = values.dtype.names
        for field in fields:
            if values[field].ndim != 1:
                raise InputError(f"{what}: the field {field!r} holds arrays; a field for each series is needed")
        return Table(tuple(fields), len(values), lambda i: values[fields[i]], time=time)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2:
        shape = "a single value" if values.ndim == 0 else f"shape {values.shape}"
        several = (
            ". Recordings go one below the other, with a label for each row in groups=" if values.ndim == 3 else ""
        )
        raise InputError(f"{what}: one series (L,) or several (L, N) with time along the first axis are needed, "
                         f"not {shape}{several}")
    headless = labels is None
    if labels is None:
        labels = _numbered(values.shape[1])
    return Table(tuple(labels), len(values), lambda i: values[:, i], array=values, time=time, headless=headless)


def _units_of(data: Any, labels: Sequence[object]) -> dict[str, str] | None:
    """Units as attributes tell them (pandas, xarray): one for all columns, or by their names."""
    names = [str(label) for label in labels]
    held = getattr(data, "data_vars", None)
    if held is not None:
        told = {str(name): getattr(held[name], "attrs", {}).get("units") for name in held}
        if len(told) == 1 and names != list(told):  # a single variable of several columns
            told = dict.fromkeys(names, next(iter(told.values())))
    else:
        attrs = getattr(data, "attrs", None)
        units = attrs.get("units") if isinstance(attrs, Mapping) else None
        units_of_columns = units if isinstance(units, Mapping) else dict.fromkeys(names, units)
        told = {str(name): unit for name, unit in units_of_columns.items()}
    return {name: unit for name, unit in told.items() if name in names and isinstance(unit, str) and unit} or None


def _side_by_side(data: Mapping[Any, Any], what: str) -> Table:
    """Series of a mapping. Those that have labels of their rows are paired by them, which must be equal."""
    time = require_paired(data, what)
    columns = [
        _pandas_values(values) if hasattr(values, "iloc") and has_index(values) else to_array(values, what)
        for values in data.values()
    ]
    for label, values in zip(data, columns, strict=True):
        if values.ndim != 1 or len(values) != len(columns[0]):
            raise InputError(f"{what}: the entry {label!r} has shape {values.shape}; all must be (L,), equally long")
    return Table(tuple(data), len(columns[0]) if columns else 0, lambda i: columns[i], time=time)


def require_paired(data: Mapping[Any, Any], what: str) -> Array | None:
    """The labels that rows of all series of a mapping share; None where they have none."""
    first: tuple[Any, Any] | None = None
    for label, values in data.items():
        index = getattr(values, "index", None) if hasattr(values, "iloc") else (
            values[values.dims[0]].to_index() if hasattr(values, "dims") and values.ndim == 1
            and values.dims[0] in values.coords else None
        )  # fmt: skip
        if index is None or not has_index(values):
            continue
        if first is None:
            first = label, index
        elif not index.equals(first[1]):
            n = min(len(index), len(first[1]))
            row = next((row for row in range(n) if index[row] != first[1][row]), n)
            here, there = (f"{rows[row]}" if row < len(rows) else "none" for rows in (index, first[1]))
            raise InputError(
                f"{what}: {label!r} has other times than {first[0]!r} (row {row}: {here} and {there}): bring both to "
                "the same rows, as with pandas.concat(..., axis=1), or pass the values alone (.to_numpy()) where the "
                "rows are meant to differ"
            )
    return None if first is None else pandas_time(first[1], what)


def _of_pandas(data: Any, what: str) -> Table:
    if not hasattr(data, "index"):  # a bare Index or extension array
        return of_array(to_array(data, what), what)
    time = pandas_time(data.index, what)
    if data.ndim == 1:
        label = "x0" if data.name is None else data.name
        return Table((label,), len(data), lambda i: _pandas_values(data), time=time)
    labels = tuple(data.columns)
    kinds = set(data.dtypes)
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype) and next(iter(kinds)).kind in "fiub":
        return of_array(data.to_numpy(), what, labels, time)
    return Table(labels, len(data), lambda i: _pandas_values(data.iloc[:, i]), time=time)


def _pandas_values(series: Any) -> Array:
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series.to_numpy())
    if series.dtype.kind in "iu" and beyond_float64(series.dropna()):
        return np.asarray(series.to_numpy(dtype=object))
    if series.dtype.kind in "fiub":  # nullable and Arrow types: their missing value is a gap
        dtype = np.float32 if str(series.dtype).lower() in ("float32", "float[pyarrow]") else np.float64
        return np.asarray(series.to_numpy(dtype=dtype, na_value=np.nan))
    return np.asarray(series.to_numpy(dtype=object))


def pandas_time(index: Any, what: str) -> Array | None:
    kind = type(index).__name__
    if kind == "RangeIndex":
        return None
    if kind == "MultiIndex":
        raise InputError(f"{what}: the index has several levels; name those that tell recordings apart in groups=, or "
                         "use .unstack(), so that rows follow each other in time")
    if kind == "PeriodIndex":
        index = index.to_timestamp()
    return np.asarray(index.values)


def _of_polars(data: Any, what: str) -> Table:
    if not hasattr(data, "columns"):
        return Table((data.name or "x0",), len(data), lambda i: _polars_values(data))
    names = list(data.columns)
    return Table(tuple(names), len(data), lambda i: _polars_values(data[names[i]]))


def _polars_values(series: Any) -> Array:
    if series.dtype.is_integer() and series.null_count() and beyond_float64(series.drop_nulls()):
        return np.array(series.to_list(), object)
    return np.asarray(series.to_numpy())


def _of_arrow(data: Any, what: str) -> Table:
    if not hasattr(data, "column_names"):
        return of_array(to_array(data, what), what)
    labels = tuple(data.column_names)
    return Table(labels, data.num_rows, lambda i: _arrow_values(data.column(i)))


def _arrow_values(column: Any) -> Array:
    """A column of an Arrow table; integers that float64 does not hold stay integers of Python, None for a gap."""
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind == "f" and "int" in str(column.type) and (np.abs(values) > 2.0**53).any():
        return np.array(column.to_pylist(), object)
    return values


def _of_xarray(data: Any, what: str) -> Table:
    if hasattr(data, "data_vars"):
        return _of_dataset(data, what)
    dims = tuple(str(dim) for dim in data.dims)
    if not dims:
        raise InputError(f"{what}: a DataArray (time), (time, series) or (time, lat, lon) is needed, this one has no "
                         "dimension")
    if len(dims) > 2:
        return _of_field(data, dims, what)
    if len(dims) == 2 and dims[1].lower() == "time":
        raise InputError(f"{what}: time must run along the first dimension, here they are {dims}; "
                         f"use .transpose('{dims[1]}', '{dims[0]}')")
    time = np.asarray(data[data.dims[0]].values) if data.dims[0] in data.coords else None
    if len(dims) == 1:
        return of_array(np.asarray(data.values), what, ["x0" if data.name is None else data.name], time)
    labels = list(data[data.dims[1]].values.tolist()) if data.dims[1] in data.coords else None
    return of_array(np.asarray(data.values), what, labels, time)


def _of_field(data: Any, dims: tuple[str, ...], what: str) -> Table:
    """Series on a grid; the dimension of the name "time", else the first one, is the time."""
    along = time_dimension(data)
    order = [along, *(dim for dim in data.dims if dim != along)]
    data = data.transpose(*order)
    coords = {str(dim): np.asarray(data[dim].values) for dim in order if dim in data.coords}
    time = coords.pop(str(order[0]), None)
    values, grid = on_grid(np.asarray(data.values), tuple(map(str, order[1:])), coords, what)
    table = of_array(values, what, grid.names, time)
    return replace(table, grid=grid)


def time_dimension(data: Any) -> Any:
    """The dimension of a DataArray or Dataset along which time runs: of a field that of the name "time", else the first
    one; None for none."""
    held = next(iter(data.data_vars.values()), None) if hasattr(data, "data_vars") else data
    dims = () if held is None else tuple(held.dims)
    if len(dims) > 2:
        return next((dim for dim in dims if str(dim).lower() == "time"), dims[0])
    return dims[0] if dims else None


def _of_dataset(data: Any, what: str) -> Table:
    names = list(data.data_vars)
    if len(names) == 1:
        return _of_xarray(data[names[0]], what)
    dims = {data[name].dims for name in names}
    if len(dims) != 1 or len(next(iter(dims))) != 1:
        raise InputError(f"{what}: the variables of a Dataset must share one dimension, these have "
                         f"{sorted(dims, key=str)}; pass one of them: dataset['name']")
    first = data[names[0]]
    time = np.asarray(first[first.dims[0]].values) if first.dims[0] in first.coords else None
    return Table(tuple(names), first.shape[0], lambda i: np.asarray(data[names[i]].values), time=time)


def evaluated(data: Any) -> Any:
    """A table of another library that becomes one of pandas, as that, groups of pandas as a mapping; anything else as
    it is."""
    root = type(data).__module__.partition(".")[0]
    if root == "pandas" and hasattr(data, "groups") and hasattr(data, "obj"):
        return dict(iter(data))
    array = isinstance(data, (np.ndarray, type)) or hasattr(data, "__array_namespace__")
    if root in _OPENERS or array or not hasattr(data, "columns"):
        return data
    made = next((getattr(data, name) for name in ("to_pandas", "compute") if callable(getattr(data, name, None))), None)
    return data if made is None else made()  # compute: a Dask frame


def _by_methods(data: Any) -> Callable[[Any, str], Table] | None:
    """What opens a table of another library: one that becomes a pandas or an Arrow table; None for anything else."""
    if isinstance(data, (np.ndarray, type)) or hasattr(data, "__array_namespace__"):
        return None
    if hasattr(data, "columns") and any(callable(getattr(data, name, None)) for name in ("to_pandas", "compute")):
        return lambda table, what: _of_pandas(evaluated(table), what)
    if callable(getattr(data, "__arrow_c_stream__", None)) and not hasattr(data, "__array__"):
        return _of_arrow_stream
    return None


def _of_arrow_stream(data: Any, what: str) -> Table:
    try:
        import pyarrow
    except ImportError as error:
        raise missing_extra("pyarrow", "io", str(error)) from error
    return _of_arrow(pyarrow.table(data), what)


_OPENERS: dict[str, Callable[[Any, str], Table]] = {
    "pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow, "xarray": _of_xarray,
}
