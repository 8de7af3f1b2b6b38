"""What pyEDM's arguments may look like: names and numbers as text or lists, and data frames."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.intake import to_array
from ...errors import InputError, missing_extra, shown


def pandas() -> Any:
    """The package pandas.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    try:
        import pandas as found
    except ImportError as error:
        raise missing_extra("pandas", "io", "pyedmcl.compat.pyedm") from error
    return found


def frame(data: Any, who: str) -> Any:
    """``data`` if it is a DataFrame. Raises InputError for anything else."""
    if data is None or not isinstance(data, pandas().DataFrame):
        raise InputError(f"{who}: dataFrame is {type(data).__name__}; a pandas DataFrame is needed")
    if not data.columns.is_unique:
        raise InputError(f"{who}: the dataFrame has several columns of one name; give each its own")
    return data


def names(value: Any, what: str, who: str, data: Any) -> list[str]:
    """Column names: text that is split at spaces, or a list.

    Raises
    ------
    InputError
        None is named, or one is not there.
    """
    try:
        columns = value.split() if isinstance(value, str) else list(value)
    except TypeError:
        raise InputError(f"{who}: {what}={shown(value)}; names of columns are needed") from None
    if not columns:
        raise InputError(f"{who}: {what} is empty; name at least one column of the dataFrame")
    for name in columns:
        if not isinstance(name, Hashable) or name not in data.columns:
            raise InputError(f"{who}: {what} names {shown(name)}, which is no column of the dataFrame")
    return columns


def numbers(value: Any, what: str, who: str, kind: type = int) -> list[Any]:
    """Numbers: text that is split at spaces, a list, or one number."""
    try:
        items = value.split() if isinstance(value, str) else list(value) if np.ndim(value) else [value]
        return [kind(item) for item in items]
    except Exception:  # whatever an object's own methods raise
        text = f"{who}: {what}={shown(value)} cannot be read as numbers, such as '1 100' or [1, 100]"
        raise InputError(text) from None


def reals(value: Any, what: str, who: str) -> NDArray[np.float64]:
    """A sequence of real numbers as an array (n,)."""
    values = to_array(value, f"{who}: {what}")
    try:
        if values.ndim != 1 or np.iscomplexobj(values):
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{who}: {what}={shown(value)}; a sequence of real numbers is needed") from None


def doubles(table: Any, who: str) -> NDArray[np.float64]:
    """The numbers of some columns. Raises InputError where they hold something else."""
    try:
        values: NDArray[np.float64] = table.astype("Float64").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{who}: columns of the dataFrame hold something else than numbers ({error})") from None
    return values


def pairs(value: Any, what: str, who: str, n: int) -> list[tuple[int, int]]:
    """1-based inclusive (start, stop) pairs as 0-based half-open ones.

    Raises
    ------
    InputError
        There are none, an odd number of ends, or ends that are not in the data.
    """
    ends = numbers(value, what, who)
    if not ends or len(ends) % 2:
        raise InputError(f"{who}: {what}={shown(value)}: start and stop rows, counted from 1, are needed in pairs")
    ranges = list(zip(ends[::2], ends[1::2], strict=True))
    for start, stop in ranges:
        if not 1 <= start <= stop <= n:
            raise InputError(f"{who}: {what} has rows {start} to {stop}; 1 <= start <= stop <= {n} is needed")
    return [(start - 1, stop) for start, stop in ranges]


def rows_or(value: Any, default: list[int]) -> Any:
    """Rows that were named, or all of them where none were."""
    return default if value is None or (isinstance(value, (str, list, tuple)) and not value) else value


def checked_range(last: int, what: str, who: str, data: Any) -> None:
    """Refuse a sweep that goes on beyond the rows of the frame."""
    n = len(frame(data, who))
    if last > n:
        raise InputError(f"{who}: {what}={last} is more than the {n} rows of the dataFrame")


def mask(given: Any, n: int, who: str) -> NDArray[np.bool_] | None:
    """``validLib`` as a mask (n,), None where it is empty."""
    values = to_array(given, f"{who}: validLib")
    if values.size == 0:
        return None
    if values.shape != (n,) or values.dtype != bool:
        raise InputError(f"{who}: validLib has {values.shape} values of {values.dtype}; {n} booleans are needed")
    return values
