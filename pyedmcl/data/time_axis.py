"""Where containers hold the times of their rows, and how rows of gaps are put between them.

The container stays of its kind, so that whatever reads it afterwards meets what the caller could have given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .intake import Array
from .series import Series
from .unpack import dated_column, pandas_time, time_array, time_dimension

Rows = NDArray[np.int64]


def may_have_times(data: Any) -> bool:
    """Whether :func:`times_in` may find times; False for whatever is read without them."""
    return isinstance(data, Series) or _root(data) in _AXES


def times_in(data: Any, what: str) -> Array | None:
    """The times of the rows of a container; None where it has none, or where its index says that they are regular."""
    if isinstance(data, Series):
        return data.time
    axis = _AXES.get(_root(data))
    try:
        return None if axis is None else axis[0](data, what)
    except InputError:
        raise
    except Exception:  # an object of that library which holds no columns: whatever reads it says so
        return None


def with_rows(data: Any, rows: Rows, time: Array) -> Any:
    """The container with other rows.

    Parameters
    ----------
    data : any container that :func:`times_in` finds times in
    rows : ndarray of int64 (n,)
        Row of ``data`` at each place; -1 for a row of gaps.
    time : ndarray (n,)
        Time of each place.
    """
    if isinstance(data, Series):
        values = data.values[np.maximum(rows, 0)]
        values[rows < 0] = np.nan
        return replace(data, values=values, time=time)
    return _AXES[_root(data)][1](data, rows, time)


def _root(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _pandas_times(data: Any, what: str) -> Array | None:
    index = getattr(data, "index", None)
    if index is None or (getattr(index, "freq", None) is not None and type(index).__name__ != "PeriodIndex"):
        return None  # the frequency of dates, such as that of working days, is what the user calls regular
    return pandas_time(index, what)


def _pandas_rows(data: Any, rows: Rows, time: Array) -> Any:
    index = sys.modules["pandas"].Index(time, name=data.index.name)
    return data.reset_index(drop=True).reindex(rows).set_axis(index, axis=0)


def _polars_times(data: Any, what: str) -> Array | None:
    dated = dated_column(data) if hasattr(data, "to_numpy") else None
    return None if dated is None else time_array(np.asarray(data[dated].to_numpy()))


def _polars_rows(data: Any, rows: Rows, time: Array) -> Any:
    polars = sys.modules["polars"]
    dated = dated_column(data)
    places = polars.Series([None if row < 0 else row for row in rows.tolist()], dtype=polars.Int64)
    moments = polars.Series(dated, time).cast(data.schema[dated])
    return data.select(polars.all().gather(places)).with_columns(moments)


def _xarray_times(data: Any, what: str) -> Array | None:
    along = time_dimension(data)
    return None if along is None or along not in data.coords else time_array(np.asarray(data[along].values))


def _xarray_rows(data: Any, rows: Rows, time: Array) -> Any:
    along = time_dimension(data)
    there = sys.modules["xarray"].DataArray(rows >= 0, dims=[along])
    taken = data.isel({along: np.maximum(rows, 0)}).drop_vars(along)
    return taken.where(there).assign_coords({along: time})


_AXES: dict[str, tuple[Callable[[Any, str], Array | None], Callable[[Any, Rows, Array], Any]]] = {
    "pandas": (_pandas_times, _pandas_rows),
    "polars": (_polars_times, _polars_rows),
    "xarray": (_xarray_times, _xarray_rows),
}
