"""The times of the rows of whatever holds series, and rows of gaps put between them.

The container stays of its kind, so that whatever reads it afterwards meets what the caller could have given.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import several
from .intake import Array
from .series import Series, time_of_table
from .unpack import time_dimension, unpack

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Times:
    """Times of rows, whose differences count.

    Attributes
    ----------
    values : ndarray (L,)
    columns : tuple of str
        Names of the columns that hold them; empty for an index.
    """

    values: Array
    columns: tuple[Any, ...] = ()


def may_have_times(data: Any) -> bool:
    """Whether :func:`times_in` may find times; False for whatever is read without them."""
    named = isinstance(data, (Series, Mapping)) or getattr(getattr(data, "dtype", None), "names", None) is not None
    return named or _root(data) in ("pandas", "polars", "xarray", "pyarrow")


def times_in(data: Any, what: str, kept: Any = ()) -> Times | None:
    """The times of the rows of a container; None where it has none, or where its index says that they are regular.

    ``kept`` names columns that are series whatever their names say.
    """
    if isinstance(data, Series):
        return None if data.time is None else Times(data.time)
    index = getattr(data, "index", None)
    if getattr(index, "freq", None) is not None and type(index).__name__ != "PeriodIndex":
        return None  # the frequency of dates, such as that of working days, is what the user calls regular
    table = unpack(data, what)
    labels = table.labels
    wanted = several("columns", kept)
    named = [i for i, label in enumerate(labels) if label in wanted or i in wanted]
    choice = time_of_table(table, named, what)
    if choice.moments is None:
        return None
    values = choice.moments.values if choice.moments.clock is None else choice.moments.clock
    return Times(values, tuple(labels[i] for i in choice.columns))


def with_rows(data: Any, rows: Rows, time: Array, columns: Sequence[Any] = ()) -> Any:
    """The container with other rows.

    Parameters
    ----------
    data : any container that :func:`times_in` finds times in
    rows : ndarray of int64 (n,)
        Row of ``data`` at each place; -1 for a row of gaps.
    time : ndarray (n,)
        Time of each place.
    columns : sequence
        Columns that held the times, which the new ones replace.
    """
    root = _root(data)
    if isinstance(data, Series):
        values = data.values[np.maximum(rows, 0)]
        values[rows < 0] = np.nan
        return replace(data, values=values, time=time)
    if root == "pandas":
        index = sys.modules["pandas"].Index(time, name=columns[0] if columns else data.index.name)
        rest = data.drop(columns=list(columns)) if columns else data
        return rest.reset_index(drop=True).reindex(rows).set_axis(index, axis=0)
    if root == "xarray":
        along = time_dimension(data)
        there = sys.modules["xarray"].DataArray(rows >= 0, dims=[along])
        taken = data.isel({along: np.maximum(rows, 0)}).drop_vars(along)
        return taken.where(there).assign_coords({along: _as_before(data[along].values, time)})
    if root == "polars":
        polars = sys.modules["polars"]
        places = polars.Series([None if row < 0 else row for row in rows.tolist()], dtype=polars.Int64)
        moments = polars.Series(columns[0], time)
        return data.select(polars.all().gather(places)).drop(list(columns[1:])).with_columns(moments)
    table = unpack(data, "data")
    filled = {label: _with_gaps(table.column(i), rows) for i, label in enumerate(table.labels) if label not in columns}
    return {(columns[0] if columns else "time"): time, **filled}


def _as_before(labels: Array, time: Array) -> Array:
    """Durations as dates of the calendar of a climate model, where the labels are such."""
    if time.dtype.kind != "m" or labels.dtype.kind != "O":
        return time
    first = labels[0]
    return np.array([first + step for step in time.astype("timedelta64[us]").tolist()], object)


def _with_gaps(column: Any, rows: Rows) -> Array:
    taken = np.asarray(column)[np.maximum(rows, 0)]
    if taken.dtype.kind in "iub":
        taken = taken.astype(np.float64)
    if taken.dtype.kind in "USV":
        taken = taken.astype(object)
    taken[rows < 0] = None if taken.dtype.kind == "O" else np.array("NaT" if taken.dtype.kind in "mM" else np.nan,
                                                                    taken.dtype)  # fmt: skip
    return taken


def _root(data: Any) -> str:
    return type(data).__module__.partition(".")[0]
