"""What the kernels of a program take, from the declarations in a SPEC.

A declaration reads like a prototype of OpenCL C without its qualifiers, with the arguments of one type together::

    predict(const real* targets; int target_stride, target_front; real* predicted, variance)

``const`` marks a buffer that is only read. ``real``, ``whole`` and ``moment`` are the types of ``clkernels``.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from ..device.slots import Slot
from ..errors import BuildError

_PROTOTYPE = re.compile(r"(\w+)\s*\(([^()]*)\)")
_OF_ONE_TYPE = re.compile(r"\s*(const\s+)?(\w+)(\s*\*\s*|\s+)((?:\w+\s*,\s*)*\w+)\s*")
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8", "ulong": "u8",
    "float": "f4", "double": "f8", "moment": "f8", "int4": "i4",
}  # fmt: skip
_BY_PRECISION = {"real": ("f4", "f8"), "whole": ("i4", "i8")}


@functools.lru_cache(maxsize=256)
def declared(prototypes: str, double: bool) -> dict[str, tuple[Slot, ...]]:
    """Kernel to its slots.

    Parameters
    ----------
    prototypes : str
        One declaration for each kernel of a program.
    double : bool
        Whether ``real`` is double.

    Raises
    ------
    BuildError
        A declaration cannot be understood.
    """
    slots = {name: _slots(name, inside, double) for name, inside in _PROTOTYPE.findall(prototypes)}
    rest = _PROTOTYPE.sub("", prototypes).strip()
    if rest:
        raise BuildError(f"{rest!r} is no declaration of a kernel's arguments: name(type one, two; type three)")
    return slots


def element_type(name: str, double: bool) -> np.dtype[np.generic]:
    """The NumPy type of a number of OpenCL C; that of the components of a vector type."""
    if name in _BY_PRECISION:
        return np.dtype(_BY_PRECISION[name][double])
    if name not in _TYPES:
        raise BuildError(f"{name!r} is no type of an argument; there are {', '.join([*_BY_PRECISION, *_TYPES])}")
    return np.dtype(_TYPES[name])


def _slots(kernel: str, inside: str, double: bool) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for group in inside.split(";"):
        match = _OF_ONE_TYPE.fullmatch(group)
        if match is None:
            raise BuildError(f"kernel {kernel}: {group.strip()!r} is no declaration such as 'const real* x, y'")
        const, kind, star, names = match.groups()
        dtype = element_type(kind, double)
        slots += [Slot(name.strip(), dtype, bool(star.strip()), bool(const)) for name in names.split(",")]
    return tuple(slots)
