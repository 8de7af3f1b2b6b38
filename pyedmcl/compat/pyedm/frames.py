"""What pyEDM's arguments may look like: names and numbers as text or lists, and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, missing_extra


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
    return data


def names(given: Any, what: str, who: str, data: Any) -> list[str]:
    """Column names: text that is split at spaces, or a list.

    Raises
    ------
    InputError
        None is named, or one is not there.
    """
    found = given.split() if isinstance(given, str) else list(given)
    if not found:
        raise InputError(f"{who}: {what} is empty; name at least one column of the dataFrame")
    for name in found:
        if name not in data.columns:
            raise InputError(f"{who}: {what} names {name!r}, which is no column of the dataFrame")
    return found


def numbers(given: Any, what: str, who: str, kind: type = int) -> list[Any]:
    """Numbers: text that is split at spaces, a list, or one number."""
    try:
        items = given.split() if isinstance(given, str) else list(given) if np.ndim(given) else [given]
        return [kind(item) for item in items]
    except (TypeError, ValueError):
        raise InputError(f"{who}: {what}={given!r} cannot be read as numbers, such as '1 100' or [1, 100]") from None


def pairs(given: Any, what: str, who: str, n: int) -> list[tuple[int, int]]:
    """1-based inclusive (start, stop) pairs as 0-based half-open ones.

    Raises
    ------
    InputError
        There are none, an odd number of ends, or ends that are not in the data.
    """
    ends = numbers(given, what, who)
    if not ends or len(ends) % 2:
        raise InputError(f"{who}: {what}={given!r}: start and stop rows, counted from 1, are needed in pairs")
    found = list(zip(ends[::2], ends[1::2], strict=True))
    for start, stop in found:
        if not 1 <= start <= stop <= n:
            raise InputError(f"{who}: {what} has rows {start} to {stop}; 1 <= start <= stop <= {n} is needed")
    return [(start - 1, stop) for start, stop in found]


def mask(given: Any, n: int, who: str) -> NDArray[np.bool_] | None:
    """``validLib`` as a mask (n,), None where it is empty."""
    values = np.asarray(given)
    if values.size == 0:
        return None
    if values.shape != (n,) or values.dtype != bool:
        raise InputError(f"{who}: validLib has {values.shape} values of {values.dtype}; {n} booleans are needed")
    return values
