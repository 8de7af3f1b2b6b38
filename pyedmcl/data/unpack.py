"""Open the containers users hold their series in, without importing the libraries those come from.

A library is recognised by the module of the object's type: an object that exists has its library imported already,
and a library that is absent costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError, missing_extra
from .arguments import shown
from .grid import Grid, on_grid
from .intake import Array as Array
from .intake import to_array
from .numeric import is_missing
from .times import as_dates


@dataclass(frozen=True)
class Table:
    """Columns of equal length, not yet checked to be numbers.

    Attributes
    ----------
    labels : tuple
        One label per column, as the container holds it.
    n_steps : int
        Number of rows L.
    column : callable
        ``column(i)`` gives column ``i``, shape (L,), of any dtype.
    array : ndarray or None
        All columns as one array (L, N) where the container holds them so.
    time : ndarray or None
        Shape (L,).
    grid : Grid or None
        Where the columns lie, if they are a field.
    units : dict or None
        Name of a column to its unit, of those that the container tells of.
    """

    labels: tuple[object, ...]
    n_steps: int
    column: Callable[[int], Array]
    array: Array | None = None
    time: Array | None = None
    grid: Grid | None = None
    units: dict[str, str] | None = None


def unpack(data: Any, what: str) -> Table:
    """Table of the series in ``data``.

    Raises
    ------
    InputError
        For a kind, a dimension or an index that does not hold series along the first axis.
    """
    if type(data) is np.ndarray:
        return of_array(data, what)
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
        return _of_mapping(data, what)
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        raise InputError(
            f"{what}: {shown(data)} is a name, not data; read a file with pyedmcl.io.read_series(path) first"
        )
    return of_array(to_array(data, what), what)


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
        return Table(tuple(fields), len(values), lambda i: values[fields[i]], time=time)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2:
        shape = "a single value" if values.ndim == 0 else f"shape {values.shape}"
        raise InputError(f"{what}: one series (L,) or several (L, N) with time along the first axis are needed, "
                         f"not {shape}")
    if labels is None:
        labels = _numbered(values.shape[1])
    return Table(tuple(labels), len(values), lambda i: values[:, i], array=values, time=time)


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


def _of_mapping(data: Mapping[Any, Any], what: str) -> Table:
    columns = [to_array(values, what) for values in data.values()]
    for label, values in zip(data, columns, strict=True):
        if values.ndim != 1 or len(values) != len(columns[0]):
            raise InputError(f"{what}: the entry {label!r} has shape {values.shape}; all must be (L,), equally long")
    return Table(tuple(data), len(columns[0]) if columns else 0, lambda i: columns[i])


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
    return time_array(np.asarray(index.values))


def _of_polars(data: Any, what: str) -> Table:
    if not hasattr(data, "columns"):
        return Table((data.name or "x0",), len(data), lambda i: np.asarray(data.to_numpy()))
    names, dated, time = list(data.columns), dated_column(data), None
    if dated is not None:
        names.remove(dated)
        time = time_array(np.asarray(data[dated].to_numpy()))
    return Table(tuple(names), len(data), lambda i: np.asarray(data[names[i]].to_numpy()), time=time)


def dated_column(data: Any) -> Any:
    """The one date column of a frame of polars, which has no index: where users keep the time; None for none."""
    schema = getattr(data, "schema", None) or {}
    dated = [name for name, dtype in schema.items() if dtype.is_temporal()]
    return dated[0] if len(dated) == 1 and len(schema) > 1 else None


def _of_arrow(data: Any, what: str) -> Table:
    if not hasattr(data, "column_names"):
        return of_array(to_array(data, what), what)
    labels = tuple(data.column_names)
    return Table(labels, data.num_rows, lambda i: np.asarray(data.column(i).to_numpy(zero_copy_only=False)))


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
    time = time_array(np.asarray(data[data.dims[0]].values)) if data.dims[0] in data.coords else None
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
    table = of_array(values, what, grid.names, None if time is None else time_array(time))
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
    time = time_array(np.asarray(first[first.dims[0]].values)) if first.dims[0] in first.coords else None
    return Table(tuple(names), first.shape[0], lambda i: np.asarray(data[names[i]].values), time=time)


def evaluated(data: Any) -> Any:
    """A table of another library that becomes one of pandas, as that; anything else as it is."""
    root = type(data).__module__.partition(".")[0]
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


def time_array(values: Array) -> Array:
    """``values`` as numbers or dates where they are such or texts that all read as dates, else as text."""
    if values.dtype.kind in "iufMm":
        return values
    texts = ["" if is_missing(value) else str(value) for value in values]
    dates = as_dates(texts)
    return np.array([str(value) for value in values], dtype=np.str_) if dates is None else dates
