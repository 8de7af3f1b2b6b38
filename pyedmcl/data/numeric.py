"""Columns of a container as numbers: which values are missing, and which cannot be numbers at all."""

from __future__ import annotations

import decimal
import math
import numbers
from typing import Any

import numpy as np

from .intake import Array


def is_missing(value: object) -> bool:
    """True for None and for the missing values of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


class NotNumericError(Exception):
    """A column cannot be used as numbers; the text says why."""


def numeric_column(values: Array) -> Array:
    """``values`` (L,) as float32 where they are float16 or float32, else as float64; missing values become NaN.

    Raises
    ------
    NotNumericError
        With the first row (0-based) that is no real number.
    """
    kind = values.dtype.kind
    if kind == "c":
        raise NotNumericError("holds complex numbers: pass .real, .imag or abs() of it")
    if kind in "fiub":
        return values.astype(float_type(values.dtype), copy=False)
    if kind in "Mm":
        held = "dates" if kind == "M" else "durations"
        raise NotNumericError(f"holds {held}")
    if kind != "O":
        first = repr(values[0].item()) if len(values) else str(values.dtype)
        raise NotNumericError(f"is not numeric: row 0 holds {first}")
    return np.fromiter((_number(value, row) for row, value in enumerate(values)), np.float64, len(values))


def _number(value: object, row: int) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            raise NotNumericError(f"has a number too large for float64 in row {row}") from None
    raise NotNumericError(f"is not numeric: row {row} holds {value!r}")


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype a Series keeps numbers of ``dtype`` in: float32 for half and single precision, else float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)
