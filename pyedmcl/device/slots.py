"""The arguments that a kernel takes: named slots, and values packed as they are declared."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LaunchError


@dataclass(frozen=True)
class Slot:
    """One argument of a kernel, as it is declared there.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
        Of the number, or of a buffer's elements (of a vector type: of its components).
    is_buffer : bool
        Whether it is a buffer in device memory; else a number that is copied.
    is_const : bool
        Of a buffer: whether the kernel only reads it.
    """

    name: str
    dtype: np.dtype[Any]
    is_buffer: bool = False
    is_const: bool = False

    def __str__(self) -> str:
        return f"a buffer of {self.dtype}" if self.is_buffer else f"a number of type {self.dtype}"


def packer(slot: Slot) -> Callable[[Any], bytes]:
    """What turns a number into the bytes of its slot.

    It raises ``struct.error`` for a number that does not fit and for one of another kind: an integer's slot takes no
    float.
    """
    return struct.Struct(slot.dtype.char).pack  # the letters of NumPy's types are those of struct


def is_buffer(value: Any) -> bool:
    """Whether a value is device memory, of whatever executor."""
    return hasattr(value, "release") and hasattr(value, "nbytes")


def refusal(kernel: str, slot: Slot, value: Any, why: str = "") -> LaunchError:
    """The error for a value that does not suit its slot."""
    shown = "a buffer" if is_buffer(value) else repr(value)
    return LaunchError(f"argument {slot.name!r} of kernel {kernel} is {slot}, and {shown} was given{why}")


def names_differ(kernel: str, slots: Iterable[Slot], arguments: Mapping[str, Any]) -> LaunchError:
    """The error for arguments that are not those of the kernel."""
    declared = [slot.name for slot in slots]
    missing = [name for name in declared if name not in arguments]
    unknown = [name for name in arguments if name not in declared]
    said = [f"no value was given for {', '.join(missing)}"] if missing else []
    said += [f"it has no argument {', '.join(unknown)}"] if unknown else []
    return LaunchError(f"kernel {kernel}: {' and '.join(said)}. It takes {', '.join(declared)}.")


def check(kernel: str, slots: Iterable[Slot], arguments: Mapping[str, Any]) -> None:
    """Raise LaunchError unless the arguments are those of the kernel, each of its kind, as a launch would."""
    slots = tuple(slots)
    if {slot.name for slot in slots} != set(arguments):
        raise names_differ(kernel, slots, arguments)
    for slot in slots:
        value = arguments[slot.name]
        if slot.is_buffer != is_buffer(value):
            raise refusal(kernel, slot, value)
        if not slot.is_buffer:
            try:
                packer(slot)(value)
            except (struct.error, OverflowError, TypeError) as error:
                raise refusal(kernel, slot, value, f" ({error})") from error
