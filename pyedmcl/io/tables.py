"""Parquet and Feather, through pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.columns import leaves_out, select
from ..data.series import Series, as_series
from ..data.times import as_time, looks_like_time
from ..data.unpack import Array, time_array
from ..errors import InputError
from .optional import need


def read_arrow(path: Path, columns: Sequence[str | int] | None, time_column: str | int | None, what: str) -> Series:
    """Read a Parquet or Feather file; the index of a pandas frame stored in it becomes the time."""
    feather = path.suffix.lower() == ".feather"
    reader = need("pyarrow.feather" if feather else "pyarrow.parquet", f"reading {'Feather' if feather else 'Parquet'}")
    try:
        table = reader.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise InputError(f"{what}: cannot be read as {'Feather' if feather else 'Parquet'} ({error})") from error
    labels = list(table.column_names)
    chosen = select(labels, columns, what)
    kept = None if columns is None or leaves_out(labels, columns) else chosen
    time = select(labels, time_column, what)[0] if time_column is not None else _find_time(table, kept)
    if time is None:
        return as_series(table, columns=columns, what=what)
    value_columns = [labels[i] for i in chosen if i != time]
    if not value_columns:
        raise InputError(f"{what}: there is no column of data beside the time column {labels[time]!r}")
    series = as_series(table.select(value_columns), what=what)
    return Series(series.values, series.names, _times(table, time))


def _find_time(table: Any, kept: Sequence[int] | None) -> int | None:
    labels = list(table.column_names)
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    if len(stored) == 1 and isinstance(stored[0], str) and stored[0] in labels:
        index = labels.index(stored[0])
        return None if kept is not None and index in kept else index
    for i, label in enumerate(labels):
        if len(labels) == 1 or (kept is not None and i in kept):
            continue
        kind = str(table.schema.field(i).type)
        dated = kind.startswith(("timestamp", "date"))
        if not dated and not looks_like_time(label, i == 0, np.arange(0)):
            continue  # no time-like name: do not load the column for it
        if looks_like_time(label, i == 0, _times(table, i)):
            return i
    return None


def _times(table: Any, i: int) -> Array:
    values = np.asarray(table.column(i).to_numpy(zero_copy_only=False))
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        return as_time([str(value) for value in values])
    return time_array(values)
