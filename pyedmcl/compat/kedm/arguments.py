"""kEDM's arguments, checked: each error begins with the words that kEDM has for it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import LARGEST
from ...data.intake import to_array
from ...edm.shared.arguments import MOST_NEIGHBOURS
from ...errors import InputError, shown

Floats = NDArray[np.float32]


def numbers(value: Any, name: str, function: str) -> Floats:
    """An array in single precision, which is what kEDM takes.

    Raises
    ------
    InputError
        It is none, or holds infinite values.
    """
    array = to_array(value, f"{function}: {name}")
    try:
        if np.iscomplexobj(array):
            raise TypeError("complex numbers")
        array = array.astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{function}: {name} is no array of real numbers ({error})") from None
    if np.isinf(array).any():
        where = np.argwhere(np.isinf(array))[0].tolist()
        raise InputError(f"{function}: {name} is infinite at {where}; finite values, or NaN for gaps, are needed")
    return array


def whole(value: Any, name: str, function: str) -> int:
    """An integer of at most 62 bits, which no later step has to fear."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{function}: {name}={shown(value)}; an integer is needed") from None
    if abs(number) > LARGEST:
        raise InputError(f"{function}: {name}={shown(value)}; an integer between -2^62 and 2^62 is needed")
    return number


def whole_numbers(value: Any, name: str, function: str) -> list[int]:
    """A sequence of integers."""
    try:
        items = list(value)
    except TypeError:
        raise InputError(f"{function}: {name}={shown(value)}; a sequence of integers is needed") from None
    return [whole(one, f"{name}[{i}]", function) for i, one in enumerate(items)]


def embedding(E: Any, tau: Any, Tp: Any, function: str) -> tuple[int, int, int]:
    """E and tau above zero, Tp not below."""
    E, tau, Tp = whole(E, "E", function), whole(tau, "tau", function), whole(Tp, "Tp", function)
    if E < 1:
        raise InputError(f"E must be greater than zero: {function} got E={E}")
    if tau < 1:
        raise InputError(f"tau must be greater than zero: {function} got tau={tau}")
    if Tp < 0:
        raise InputError(f"Tp must be greater or equal to zero: {function} got Tp={Tp}")
    if E >= MOST_NEIGHBOURS:
        raise InputError(f"{function}: E={E}; at most {MOST_NEIGHBOURS - 1:,} is supported")
    return E, tau, Tp


def check_rows(n_lib: int, n_pred: int, E: int, tau: int, Tp: int, least: int) -> None:
    """Enough steps for ``least`` library rows with a target and for one prediction."""
    reach = (E - 1) * tau
    if n_lib - reach - Tp < least:
        raise InputError(
            f"lib size is too small: E={E}, tau={tau} and Tp={Tp} need at least {reach + Tp + least} steps, there are "
            f"{n_lib}"
        )
    if n_pred <= reach:
        raise InputError(
            f"pred size is too small: E={E} and tau={tau} need at least {reach + 1} steps, there are {n_pred}"
        )
