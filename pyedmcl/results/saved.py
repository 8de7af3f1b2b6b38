"""A result as one file, which opens as the same class with the same bits: its values, archive and checksums."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..atomic_files import array_of, output_path, path_of, stored_member, writing
from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError
from ..functions import NAMED, PARTS, RESULTS

# Results as plain data and arrays, and back: what the file of a saved result holds.
#
# A value of JSON stands for itself, a list for a list; an object of one entry is one of the marks below.


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


# NumPy opens it, too (``numpy.load(path)["rho"]``). Nothing in it is a program: values are numbers, texts, arrays, and
# those classes that :data:`pyedmcl.functions.RESULTS` and :data:`~pyedmcl.functions.PARTS` list.


SUFFIX = ".edm"
FORMAT = 1
_KIND = "pyedmcl result"
_DESCRIPTION = "result.json"
_SUM, _OF = "sha256", "of"


class _Summed:
    """What is written to a file, with the checksum of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._state = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._state.update(data)
        return self._file.write(data)

    def digest(self) -> str:
        return self._state.hexdigest()


def save_result(result: Any, path: Any, *, of: str | None = None) -> Path:
    """Write a result, whole or not at all.

    Parameters
    ----------
    of : str, optional
        Digest of the run to whose folder it belongs.
    """
    from .. import __version__

    place = output_path(path, (SUFFIX,), "a result")
    encoder = Encoder()
    content = encoder.encode(result, "")
    with writing(place, "the result") as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        sums = {name: _write_array(archive, name, array) for name, array in encoder.arrays.items()}
        description = {"kind": _KIND, "format": FORMAT, "version": __version__, "content": content, "arrays": sums}
        if of is not None:
            description[_OF] = of
        text = json.dumps({**description, _SUM: _digest(description)}, indent=1, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(_DESCRIPTION), text.encode())
    return place


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> str:
    # The time that ZipInfo takes by default is always the same, so that equal results are equal files.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        summed = _Summed(member)
        npy.write_array(summed, np.asanyarray(array), allow_pickle=False)
    return summed.digest()


def _digest(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_result(path: Any, *, of: str | None = None) -> Any:
    """Read what :func:`save_result` wrote; with ``of``, for the run with that digest."""
    place = path_of(path)
    try:
        with zipfile.ZipFile(place) as archive:
            return _read(archive, place, of)
    except FileNotFoundError as error:
        raise InputError(f"{place}: there is no such file") from error
    except (StoreError, UnknownError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreMismatchError(f"{place} {error}: open it with the version of pyedmcl that wrote it") from error
    except zipfile.BadZipFile as error:
        raise StoreForeignError(f"{place} is no result that pyedmcl saved, or only a part of one ({error})") from error
    except OSError as error:
        raise StoreError(f"{place} cannot be read ({error.strerror}): check its permissions") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, EOFError, NotImplementedError,
            RuntimeError) as error:  # fmt: skip
        raise _damaged(place, f"{type(error).__name__}: {error}") from error


def _damaged(place: Path, why: str) -> StoreError:
    return StoreError(f"{place} is damaged ({why}): bring it back from a copy, or save the result again")


def _read(archive: zipfile.ZipFile, place: Path, of: str | None) -> Any:
    if _DESCRIPTION not in archive.namelist():
        raise StoreForeignError(f"{place} is no result that pyedmcl saved (it holds no {_DESCRIPTION})")
    description = json.loads(stored_member(archive, _DESCRIPTION))
    if not isinstance(description, dict) or description.get("kind") != _KIND:
        raise StoreForeignError(f"{place} is no result that pyedmcl saved")
    if description.get("format") != FORMAT:
        raise UnknownError(
            f"has format {description.get('format')!r} of pyedmcl {description.get('version')}, this one knows format "
            f"{FORMAT}"
        )
    stored = description.pop(_SUM, None)
    if stored != _digest(description):
        raise _damaged(place, "the checksum of its description differs")
    if of is not None and description.get(_OF) != of:
        raise StoreMismatchError(
            f"{place} belongs to another run than the other files of its folder: run the same command again, which "
            "writes it anew, or open the file from another folder"
        )

    def array(name: str) -> NDArray[Any]:
        data = stored_member(archive, f"{name}.npy")
        if hashlib.sha256(data).hexdigest() != description["arrays"][name]:
            raise _damaged(place, f"the checksum of {name} differs")
        return array_of(data)

    return Decoder(array).result(description["content"])
