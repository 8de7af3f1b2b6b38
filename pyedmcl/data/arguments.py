"""Checks of arguments that all functions share: each wrong one is named, with what is allowed."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from ..errors import InputError

DTYPES = ("float32", "float64")


def integer(name: str, value: object, least: int | None = None, meaning: str = "", hint: str = "") -> int:
    """``value`` as an int of at least ``least``; booleans and fractions are refused, 3.0 counts as 3.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
    least : int, optional
    meaning, hint : str
        What the message says the argument is, and at its end.
    """
    number: int | None = None
    if isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)):
        number = int(value)
    elif isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and float(value).is_integer():
        number = int(float(value))
    if number is None or (least is not None and number < least):
        kind = "an integer" if least is None else f"an integer of at least {least}"
        raise InputError(f"{name}={value!r}: {meaning}{', ' if meaning else ''}{kind} is needed{hint}")
    return number


def precision(dtype: Any, fp64: bool | None = None, device: str = "") -> str:
    """``dtype`` as "float32" or "float64"; refuses float64 where the device has none."""
    try:
        name = str(None if dtype is None else np.dtype(dtype).name)  # NumPy takes None for float64
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise InputError(f"dtype={dtype!r}: the kernels compute in float32 or float64")
    if name == "float64" and fp64 is False:
        raise InputError(f"dtype='float64': the device {device} has no double precision; use float32 or another device")
    return name


def reporter(progress: Any, unit: str = "") -> Any:
    """``progress`` if it can be called, or None; ``unit`` is what it is given to count."""
    if progress is not None and not callable(progress):
        called = f"which is given {unit} done, all {unit} and {unit!r}" if unit else "to be called (done, total, unit)"
        raise InputError(f"progress={progress!r}: a function is needed, {called}; or None")
    return progress


def folder(name: str, path: Any) -> Any:
    """``path`` if it can name a folder, or None."""
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{name}={path!r}: the path of a folder is needed, as text or pathlib.Path")
    return path
