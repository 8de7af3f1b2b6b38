"""Checks of arguments that all functions share, with their limits, and columns that are named."""

from __future__ import annotations

import contextlib
import decimal
import math
import numbers
import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .atomic_files import path_of
from .errors import InputError, shown
from .functions import LARGEST, MOST_STEPS

# What is checked here once is plain afterwards: an int, a float, a bool, a str or a list of these, within limits that
# no later step has to fear.


__all__ = [
    "DTYPES", "LARGEST", "MOST_STEPS", "boolean", "choice", "column_names", "folder", "integer",
    "precision", "real", "reporter", "room", "several", "shown",
]  # fmt: skip

DTYPES = ("float32", "float64")


def integer(
    name: str, value: object, least: int | None = None, meaning: str = "", hint: str = "", most: int = LARGEST
) -> int:
    """``value`` as an int from ``least`` to ``most``; booleans and fractions are refused, 3.0 counts as 3.

    Parameters
    ----------
    name : str
        Of the argument.
    least : int, optional
        ``-LARGEST`` by default.
    meaning, hint : str
        What the message says the argument is, and at its end.
    """
    number: int | None = None
    if isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)):
        number = int(value)
    elif _is_real(value):
        held = float(value)  # type: ignore[arg-type]  # a Real
        number = int(held) if held.is_integer() else None
    if number is None or number < (-LARGEST if least is None else least):
        kind = "an integer" if least is None else f"an integer of at least {least}"
    elif number > most:
        kind = f"an integer of at most {most:,}"
    else:
        return number
    raise InputError(f"{name}={shown(value)}: {meaning}{', ' if meaning else ''}{kind} is needed{hint}")


def _is_real(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    try:
        float(value)
    except (OverflowError, ValueError, TypeError):
        return False
    return True


def real(name: str, value: object, needed: str, allowed: Callable[[float], bool] = math.isfinite) -> float:
    """``value`` as a float that is ``allowed``; the message says what is ``needed``. A 0-d array is a number, too."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if _is_real(value):
        number = float(value)  # type: ignore[arg-type]  # a Real
        if allowed(number):
            return number
    raise InputError(f"{name}={shown(value)}: {needed} is needed")


def boolean(name: str, value: object) -> bool:
    """``value`` as a bool; texts and numbers are refused, which would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}={shown(value)}: True or False is needed")
    return bool(value)


def choice(name: str, value: object, choices: Collection[str]) -> str:
    """``value`` if it is one of some words."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name}={shown(value)}: one of {', '.join(map(repr, choices))} is needed")
    return str(value)


def place_of(name: str, value: object, values: Sequence[Any], said: str = "was not computed") -> int:
    """Where a text or number stands among those that there are."""
    if isinstance(value, (str, numbers.Number, np.bool_)):
        for i, there in enumerate(values):
            with contextlib.suppress(decimal.InvalidOperation):  # a NaN that signals
                if there == value:
                    return i
    there = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)
    raise InputError(f"{name}={shown(value)} {said}; there are {there}")


def several(name: str, value: Any) -> list[Any]:
    """``value`` as a list: one thing, or a sequence of them. Texts are one thing, as are mappings and sets."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return [value.item()]
    if isinstance(value, (str, bytes, Mapping, Set)) or not hasattr(value, "__len__"):
        return [value]
    try:
        return list(value)
    except Exception as error:
        raise InputError(f"{name}={shown(value)}: a sequence is needed ({error})") from error


def column_names(name: str, value: Any) -> list[Any] | None:
    """Names and positions of columns as texts, ints and other labels; None for None."""
    if value is None:
        return None
    picked: list[Any] = []
    for item in several(name, value):
        if isinstance(item, str):
            picked.append(str(item))
        elif isinstance(item, numbers.Integral) and not isinstance(item, (bool, np.bool_)):
            picked.append(int(item))
        elif isinstance(item, Hashable) and item is not None and not isinstance(item, (bool, np.bool_)):
            picked.append(item)  # a label of another kind, such as a date or a pair
        else:
            raise InputError(f"{name}={shown(value)}: names or positions of columns are needed")
    return picked


def precision(dtype: Any, fp64: bool | None = None, device: str = "") -> str:
    """``dtype`` as "float32" or "float64"; refuses float64 where the device has none."""
    try:
        name = str(None if dtype is None else np.dtype(dtype).name)  # NumPy takes None for float64
    except Exception:  # NumPy parses texts such as "0:0", and asks objects for their dtype
        name = ""
    if name not in DTYPES:
        raise InputError(f"dtype={shown(dtype)}: the kernels compute in float32 or float64")
    if name == "float64" and fp64 is False:
        raise InputError(f"dtype='float64': the device {device} has no double precision; use float32 or another device")
    return name


def reporter(name: str, value: Any) -> Any:
    """``value`` if it can be called, a bool, or None."""
    if value is None or isinstance(value, bool) or callable(value):
        return value
    raise InputError(
        f"{name}={shown(value)}: a function is needed, to be called (done, total, unit); or True for a bar, or None"
    )


def folder(name: str, path: Any) -> Any:
    """``path`` as a Path if it can name a folder, or None."""
    return None if path is None else path_of(path, name)


def room(name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """An array for a result whose size ``name`` decides."""
    needed, available = np.dtype(dtype).itemsize * math.prod(shape), _host_bytes()
    if needed <= available:
        try:
            return np.empty(shape, dtype)
        except (MemoryError, ValueError, OverflowError):
            pass
    raise InputError(
        f"{name}: the result of {' x '.join(f'{n:,}' for n in shape)} numbers needs {needed:,} bytes of memory, and "
        f"this machine has {available:,}; take a smaller {name}"
    )


def _host_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not of this system: the allocation will tell
        return LARGEST


# Which of the columns of a table are meant, by name, by position, or by what is left out.


SHOWN = 8  #: How many names a message lists before it says how many more there are.


def select(
    labels: Sequence[object], columns: Sequence[str | int] | str | int | None, what: str, argument: str = "columns"
) -> list[int]:
    """Positions of ``columns`` among ``labels``; all of them for None. Errors call them by the caller's ``argument``.
    """
    if columns is None:
        return list(range(len(labels)))
    chosen_columns = column_names(argument, columns) or []
    if leaves_out(labels, chosen_columns):
        without = set(select(labels, [item[1:] for item in chosen_columns if isinstance(item, str)], what, argument))
        return [i for i in range(len(labels)) if i not in without]
    by_label: dict[object, int] = {}
    ambiguous: set[object] = set()
    for i, label in enumerate(labels):
        for key in {label, str(label)}:
            if by_label.setdefault(key, i) != i:
                ambiguous.add(key)
    # With labels that are numbers a position would silently pick another series than the label meant.
    positions = not any(isinstance(label, numbers.Integral) or str(label).strip().isdigit() for label in labels)
    chosen: list[int] = []
    missing: list[object] = []
    for item in chosen_columns:
        if item in ambiguous:
            raise InputError(f"{what}: several columns are called {shown(item)}; rename them, or choose by position")
        if item in by_label:
            chosen.append(by_label[item])
        elif positions and isinstance(item, int) and -len(labels) <= item < len(labels):
            chosen.append(item % len(labels))
        elif positions and isinstance(item, str) and item.isdigit() and int(item) < len(labels):
            chosen.append(int(item))  # in a shell all names are texts
        else:
            missing.append(item)
    if missing:
        digits = "" if positions else (
            ". Names of columns are numbers here, so that a position cannot be told from them: give names"
        )
        raise InputError(f"{what}: no column {some(missing)}; there are {len(labels)}: {some(labels)}{digits}")
    if len(set(chosen)) != len(chosen):
        again = [labels[i] for i, count in counts(chosen).items() if count > 1]
        raise InputError(f"{what}: {argument}= names {some(again)} more than once; name each once")
    if not chosen:
        raise InputError(f"{what}: {argument}= is empty; name at least one of {some(labels)}")
    return chosen


def leaves_out(labels: Sequence[object], columns: Sequence[str | int] | str | int | None) -> bool:
    """Whether ``columns`` says what to leave out: names with a minus before them, which no label has."""
    chosen_columns = column_names("columns", columns) or []
    names = {str(label) for label in labels}
    return bool(chosen_columns) and all(
        isinstance(item, str) and item[:1] == "-" and item not in names and item[1:] in names for item in chosen_columns
    )


def many(count: int, noun: str, one: str = "", several: str = "") -> str:
    """A number of things as a sentence has it, with the verb where one is given: "1 row is", "2 rows are"."""
    said, verb = (f"{count:,} {noun}", one) if count == 1 else (f"{count:,} {noun}s", several)
    return f"{said} {verb}" if verb else said


def some(items: Sequence[object]) -> str:
    """The first few items, quoted, and how many more there are."""
    first = ", ".join(shown(item) for item in items[:SHOWN])
    return first + (f" and {len(items) - SHOWN} more" if len(items) > SHOWN else "")


def counts(items: Sequence[Any]) -> dict[Any, int]:
    """How often each item occurs."""
    times: dict[Any, int] = {}
    for item in items:
        times[item] = times.get(item, 0) + 1
    return times
