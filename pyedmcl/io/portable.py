"""Results as plain data and arrays, and back: what the file of a saved result holds.

A value of JSON stands for itself, a list for a list; an object of one entry is one of the marks below.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..registry import NAMED, PARTS, RESULTS

_PLAIN = "biufcUmMV"  # kinds of arrays that are written without pickling


class UnknownError(Exception):
    """A file holds what this version does not know."""


class Encoder:
    """Turns a result into values of JSON.

    Attributes
    ----------
    arrays : dict of str to ndarray
        What is written beside them, by names that say where in the result they belong.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._parts: dict[int, tuple[int, Any]] = {}  # by id; the part is kept, so that no other takes its id

    def encode(self, value: Any, name: str) -> Any:
        """``value`` as a value of JSON; ``name`` says where it belongs."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), name)}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            items = [self.encode(item, f"{name}.{place}") for place, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = ((self.encode(key, name), self.encode(item, f"{name}.{key}")) for key, item in value.items())
            return {"dict": [list(pair) for pair in pairs]}
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        kind = type(value).__name__
        if kind in NAMED:
            return {"named": [kind, value.name]}
        if kind in RESULTS or kind in PARTS:
            return self._part(value, kind, name)
        return self._array(np.asarray(value), name)

    def _part(self, part: Any, kind: str, name: str) -> Any:
        entry = self._parts.get(id(part))
        if entry is not None:
            return {"same": entry[0]}
        number = len(self._parts)
        self._parts[id(part)] = number, part
        held = part.held() if kind in RESULTS else part
        content = {
            field: self.encode(getattr(held, field), f"{name}.{field}" if name else field)
            for field in _fields(type(held))
        }
        return {"part": [number, kind, content]}

    def _array(self, array: NDArray[Any], name: str) -> Any:
        if array.dtype == object and array.ndim:
            items = [self.encode(item, f"{name}.{place}") for place, item in enumerate(array.ravel().tolist())]
            return {"objects": [list(array.shape), items]}
        if array.dtype.kind not in _PLAIN or array.dtype.hasobject:
            raise TypeError(f"{name} is of a kind that cannot be saved: {array.dtype}")
        safe = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in name)[:80] or "value"
        unique, count = safe, 1
        while unique in self.arrays:
            count += 1
            unique = f"{safe}-{count}"
        self.arrays[unique] = array
        return {"array": unique}


class Decoder:
    """The inverse of :class:`Encoder`.

    Parameters
    ----------
    array : callable
        Gives the array of a name.

    Raises
    ------
    UnknownError
        Something that this version does not know.
    ValueError, LookupError, TypeError
        What no :class:`Encoder` made.
    """

    def __init__(self, array: Callable[[str], NDArray[Any]]) -> None:
        self._array = array
        self._parts: dict[int, Any] = {}

    def result(self, content: Any) -> Any:
        """The result that the whole of a file describes."""
        kind = content["part"][1]
        if kind not in RESULTS:
            raise UnknownError(f"holds a {kind!r}, which is no result")
        return self.decode(content)

    def decode(self, value: Any) -> Any:
        """The value that a value of JSON stands for."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((mark, content),) = value.items()
        reader = _MARKS.get(mark)
        if reader is None:
            raise UnknownError(f"holds a value of the unknown kind {mark!r}")
        return reader(self, content)

    def _tuple(self, items: Any) -> Any:
        return tuple(map(self.decode, items))

    def _dict(self, items: Any) -> Any:
        return {self.decode(key): self.decode(item) for key, item in items}

    def _scalar(self, content: Any) -> Any:
        return self.decode(content)[()]

    def _objects(self, content: Any) -> Any:
        shape, items = content
        array = np.empty(len(items), object)
        for place, item in enumerate(items):
            array[place] = self.decode(item)
        return array.reshape(shape)

    def _named(self, content: Any) -> Any:
        kind, name = content
        module, function = NAMED[kind]
        return getattr(importlib.import_module(f"pyedmcl.{module}"), function)(name)

    def _part(self, content: Any) -> Any:
        number, kind, values = content
        module = RESULTS.get(kind) or PARTS.get(kind)
        if module is None:
            raise UnknownError(f"holds a {kind!r}")
        cls = getattr(importlib.import_module(f"pyedmcl.{module}"), kind)
        unknown = sorted(set(values) - set(_fields(cls)))
        if unknown:
            raise UnknownError(f"holds a {kind} with {', '.join(unknown)}")
        self._parts[number] = cls(**{name: self.decode(item) for name, item in values.items()})
        return self._parts[number]

    def _same(self, number: Any) -> Any:
        return self._parts[number]


_MARKS: dict[str, Callable[[Decoder, Any], Any]] = {
    "float": lambda decoder, text: float(text),
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "array": lambda decoder, name: decoder._array(name),
    "scalar": Decoder._scalar,
    "objects": Decoder._objects,
    "named": Decoder._named,
    "part": Decoder._part,
    "same": Decoder._same,
}


def _fields(cls: Any) -> tuple[str, ...]:
    if hasattr(cls, "_fields"):  # of a NamedTuple
        return tuple(cls._fields)
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)
