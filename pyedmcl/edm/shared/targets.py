"""Targets of a map that are other series than its libraries."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ...data.columns import some
from ...data.same_rows import require_same_rows
from ...data.series import Series, as_series
from ...errors import InputError


def targets_of(data: Any, libraries: Series, targets: Any) -> Series:
    """The targets that a user gave: columns of ``data``, or series of their own over the same rows.

    Series without names are called y0, y1, and so on, so that they are told from libraries. A target that has the name
    of a library is that series.

    Parameters
    ----------
    data : array_like
        As the user gave it, with columns that are no library.
    libraries : Series
    targets : str, int, list of these, or array_like

    Raises
    ------
    InputError
        They cannot be used, have other rows, or share names with libraries of other values.
    """
    if _names_columns(targets):
        return as_series(data, columns=targets)
    series = as_series(targets, what="targets")
    require_same_rows(data=libraries, targets=series)
    if series.names == tuple(f"x{i}" for i in range(series.n_series)):
        series = series.renamed(tuple(f"y{i}" for i in range(series.n_series)))
    place = {name: i for i, name in enumerate(libraries.names)}
    other = [
        name for column, name in enumerate(series.names) if name in place and not np.array_equal(
            series.values[:, column], libraries.values[:, place[name]], equal_nan=True
        )
    ]  # fmt: skip
    if other:
        raise InputError(f"targets: {some(other)} are names of libraries that hold other values; rename them")
    return series


def _names_columns(targets: Any) -> bool:
    """Whether targets are names or positions of columns."""
    items = targets if isinstance(targets, (list, tuple)) else [targets]
    return bool(items) and all(
        isinstance(item, str) or (isinstance(item, numbers.Integral) and not isinstance(item, (bool, np.bool_)))
        for item in items
    )


