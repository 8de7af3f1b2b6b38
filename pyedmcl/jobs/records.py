"""What a folder of a job remembers: small records with checksums, arrays in Zarr v3, and to which run a file belongs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atomic_files import PRIVATE_PREFIX, kind_of, write_new
from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError
from . import durable

# The Zarr v3 layout of a matrix kept in blocks of rows: metadata, chunk names and bytes, reading in parts.
#
# The layout is written here and not by zarr-python: a block must be on the disk (file and name) before the journal
# calls it done, which no Zarr library promises. It stays the plainest form of the standard (raw little-endian chunks,
# no compression), so that every Zarr v3 reader opens it. The optional crc32c codec is left out since the standard
# library has no such sum; the journal holds a SHA-256 of each chunk instead.


METADATA = "zarr.json"
#: Data types in use: Zarr's name -> NumPy's, byte order fixed.
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int32": np.dtype("<i4")}


def group_metadata(attributes: dict[str, Any]) -> bytes:
    """The text of a group's ``zarr.json``."""
    return _text({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def array_metadata(
    shape: tuple[int, ...],
    chunk_shape: tuple[int, ...],
    dtype: str,
    fill_value: int | str,
    dimension_names: tuple[str, ...],
    attributes: dict[str, Any] | None = None,
) -> bytes:
    """The text of an array's ``zarr.json``; ``dtype`` is a key of :data:`DTYPES`, "NaN" is a legal fill value."""
    return _text(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
            # "." keeps all chunks of an array in one folder: one fsync makes a new name durable.
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": fill_value,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "dimension_names": list(dimension_names),
            "attributes": attributes or {},
        }
    )


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def chunk_name(*index: int) -> str:
    """File name of a chunk within its array's folder, e.g. ``c.3.0``."""
    return ".".join(["c", *map(str, index)])


def chunk_bytes(rows: NDArray[Any], chunk_rows: int, dtype: str) -> memoryview:
    """A chunk's bytes: ``rows`` (r x n), followed by rows of NaN up to ``chunk_rows``.

    The standard wants the last chunk as large as all others. Copies only where it must.
    """
    stored = DTYPES[dtype]
    if len(rows) == chunk_rows:
        chunk = np.ascontiguousarray(rows, dtype=stored)
    else:
        chunk = np.full((chunk_rows, rows.shape[1]), np.nan, dtype=stored)
        chunk[: len(rows)] = rows
    return chunk.reshape(-1).view(np.uint8).data


class LazyMatrix:
    """A matrix on disk that is read when indexed, block by block; never more than a block beside the result.

    Index it with rows or (rows, columns), each an int, a slice, or a one-dimensional array of ints or booleans (an
    array on one axis only). ``numpy.asarray`` reads all of it.

    Parameters
    ----------
    shape : (int, int)
    dtype : str
        Key of :data:`DTYPES`.
    block_rows : int
        Rows per block.
    read : callable
        ``read(block, first, last)`` gives rows first..last-1 of a block (numbered within it), or None where the block
        is not there: its rows are NaN then.
    """

    ndim = 2

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: str,
        block_rows: int,
        read: Callable[[int, int, int], NDArray[Any] | None],
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._block_rows = block_rows
        self._read = read

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"LazyMatrix(shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, key: Any) -> Any:
        rows, columns = self._split(key)
        # The index arrays have NumPy find the meaning (negative, step, out of range) at 8 bytes per row or column.
        row_numbers = np.arange(self.shape[0])[rows]
        width = np.arange(self.shape[1])[columns]
        out = np.empty((row_numbers.size, *width.shape), dtype=self.dtype)
        flat = row_numbers.reshape(-1)
        blocks = flat // self._block_rows
        for block in np.unique(blocks):
            places = np.flatnonzero(blocks == block)
            local = flat[places] - block * self._block_rows
            first, last = int(local.min()), int(local.max()) + 1
            part = self._read(int(block), first, last)
            # Columns first: for an int or a slice that is a view, and the copy is as small as the answer.
            out[places] = np.nan if part is None else part[:, columns][local - first]
        return out[0] if row_numbers.ndim == 0 else out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a matrix on disk cannot be turned into an array without a copy")
        whole: NDArray[Any] = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _split(self, key: Any) -> tuple[Any, Any]:
        parts = list(key) if isinstance(key, tuple) else [key]
        for place, part in enumerate(parts):
            if part is Ellipsis:
                parts[place : place + 1] = [slice(None)] * (3 - len(parts))
                break
        if len(parts) > 2 or any(part is None or part is Ellipsis for part in parts):
            raise IndexError(f"two axes, rows and columns, can be indexed here; got {key!r}")
        parts += [slice(None)] * (2 - len(parts))
        arrays = [np.ndim(part) for part in parts if not isinstance(part, slice)]
        if any(ndim > 1 for ndim in arrays) or arrays.count(1) > 1:
            raise IndexError("one-dimensional index arrays only, and on one axis: take the other from the result")
        return parts[0], parts[1]


def checked_rows(rows: Any, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """``rows`` as an array of ``shape`` that may be stored as ``dtype``. Raises InputError."""
    array = np.asarray(rows)
    if array.shape != shape:
        raise InputError(f"this block has the shape {shape}, got {array.shape}")
    if array.dtype.kind != "f":
        raise InputError(f"rho is stored as {dtype}; floating point numbers are needed, got {array.dtype}")
    return array


# What a disk or a careless edit has changed is never taken for what was written: a damaged record is an error. The
# checksum covers to what run a record belongs (``of``, a digest), so that one of another run is an error, too.


TUNING = "tuning.json"
SEARCHED = "searched.json"
ANSWERS = "tuning"
_SUM, _OF, _CONTENT = "sha256", "of", "content"


class DamagedError(ValueError):
    """The bytes of a record are not those once written."""


class ForeignError(DamagedError):
    """A record is whole, and belongs to another run or another place of it."""


def digest_of(document: Any) -> str:
    """SHA-256 of plain data, whatever the order of its names and the space between them."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_json(path: Path) -> Any:
    """A file of JSON. Raises DamagedError where it is none, OSError where it cannot be read."""
    try:
        return json.loads(durable.read_plain(path))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is no JSON ({error})") from error


def checked(content: Any, of: str = "") -> bytes:
    """The text of a record of plain data with its checksum, for :func:`read_checked`."""
    document = {_OF: of, _CONTENT: content}
    return json.dumps({_SUM: digest_of(document), **document}, indent=1, sort_keys=True).encode() + b"\n"


def read_checked(path: Path, of: str = "") -> Any:
    """Content of a record of the run ``of``, None where there is none."""
    try:
        document = read_json(path)
    except FileNotFoundError:
        return None
    if isinstance(document, dict) and set(document) == {_SUM, _OF, _CONTENT}:
        with contextlib.suppress(ValueError, RecursionError):
            if digest_of({_OF: document[_OF], _CONTENT: document[_CONTENT]}) == document[_SUM]:
                if document[_OF] != of:
                    raise ForeignError(f"{path} belongs to another run")
                return document[_CONTENT]
    raise DamagedError(f"{path} has changed since it was written (its checksum differs)")


def write_tuning(path: Path, parameters: dict[str, dict[str, Any]], of: str) -> None:
    """Store tuned parameters durably. Raises OSError."""
    durable.write_file(path / "rho" / TUNING, checked(parameters, of))


def read_tuning(path: Path, of: str) -> dict[str, dict[str, Any]]:
    """Stored parameters, by question; empty where there are none.

    Parameters
    ----------
    path : pathlib.Path
        Of the store.
    of : str
        To what run they belong.
    """
    return _read_answers(path / "rho" / TUNING, of)


def keep_answer(path: Path, question: str, answer: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Store an answer to a question for tuned parameters, unless a process that shares the store has done so.

    Returns
    -------
    dict
        The answer that is stored.
    """
    file = path / "rho" / ANSWERS / f"{_short_digest(question)}.json"
    durable.inner_folder(file.parent)
    write_new(file, checked({question: dict(answer)}, _answer_of(file, of)))
    return _read_answers(file, _answer_of(file, of))[question]


def kept_answer(path: Path, question: str, of: str) -> dict[str, Any] | None:
    """What :func:`keep_answer` has stored; None where nothing is."""
    file = path / "rho" / ANSWERS / f"{_short_digest(question)}.json"
    return _read_answers(file, _answer_of(file, of)).get(question)


def _answer_of(file: Path, of: str) -> str:
    """To what the file of an answer belongs: to a run, and to the question by which it is named."""
    return f"{of} {file.stem}"


def _short_digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def read_answers(path: Path, of: str) -> dict[str, dict[str, Any]]:
    """All that :func:`keep_answer` has stored."""
    answers: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(durable.names_in(path / "rho" / ANSWERS)):
            if is_answer(name):
                file = path / "rho" / ANSWERS / name
                answers |= _read_answers(file, _answer_of(file, of))
    return answers


def is_answer(name: str) -> bool:
    """Whether :func:`keep_answer` names files so."""
    return re.fullmatch(r"[0-9a-f]{32}\.json", name) is not None


def _read_answers(file: Path, of: str) -> dict[str, dict[str, Any]]:
    """Parameters by question. Raises StoreError where they are damaged or cannot be read."""
    advice = "the blocks that are there were computed with these parameters. "
    answers = _read_needed(file, advice, of)
    if answers is None:
        return {}
    if not isinstance(answers, dict) or not all(isinstance(answer, dict) for answer in answers.values()):
        raise _cannot_continue(f"{file} is damaged", advice)
    return answers


def _read_needed(path: Path, advice: str, of: str) -> Any:
    """What a file holds without which a store cannot be continued; None where it is not there."""
    try:
        return read_checked(path, of)
    except (DamagedError, OSError) as error:
        raise _cannot_continue(error, advice) from error


def write_searched(path: Path, entries: list[dict[str, Any]], of: str) -> None:
    """Store records of searches durably. Raises OSError."""
    durable.write_file(path / "rho" / SEARCHED, checked(entries, of))


def read_searched(path: Path, of: str) -> list[dict[str, Any]]:
    """Stored records of searches; none where there are none. Arguments and errors as for :func:`read_tuning`."""
    advice = "it says which searches found the neighbours of the blocks that are there. "
    records = _read_needed(path / "rho" / SEARCHED, advice, of)
    if records is None:
        return []
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise _cannot_continue(f"{path / 'rho' / SEARCHED} is damaged", advice)
    return [as_searched(one) for one in records]


def as_searched(found: Mapping[str, Any]) -> dict[str, Any]:
    """A record of a search as it was before it became JSON."""
    return {key: tuple(item) if isinstance(item, list) else item for key, item in found.items()}


def _cannot_continue(why: Exception | str, advice: str) -> StoreError:
    return StoreError(
        f"{why}: {advice}Bring the file back from a copy, or start again with resume=False, which "
        "removes what is there."
    )


def pack_E(E: ArrayLike, n_series: int) -> tuple[bytes, str]:
    """E (n_series,) as it is stored, and its SHA-256. Raises InputError unless these are integers of at least 1."""
    values = np.asarray(E)
    if values.shape != (n_series,) or values.dtype.kind not in "iu":
        raise InputError(f"one integer E per series is needed ({n_series} of them), got {values.dtype} {values.shape}")
    if values.min() < 1 or values.max() > np.iinfo(np.int32).max:
        raise InputError(f"E must be at least 1, got {values.min()} to {values.max()}")
    data = values.astype(DTYPES["int32"]).tobytes()
    return data, hashlib.sha256(data).hexdigest()


def write_E(path: Path, data: bytes, digest: str, of: str) -> None:
    """Store packed E durably. Raises OSError."""
    folder = path / "E"
    durable.inner_folder(folder)
    durable.write_file(folder / chunk_name(0), data)
    # The description comes last and holds the sum: E is known when both are there and agree.
    durable.write_file(folder / METADATA, _metadata_of_E(len(data) // 4, digest, of))


def _metadata_of_E(n_series: int, digest: str, of: str) -> bytes:
    return array_metadata((n_series,), (n_series,), "int32", 0, ("target",), {_SUM: digest, _OF: of})


def digests_of_E(path: Path, of: str) -> set[str]:
    """SHA-256 of the E that was stored for a run, as far as it can be told: by its description and by its bytes."""
    digests = set()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        attributes = read_json(path / "E" / METADATA)["attributes"]
        if attributes.get(_OF, of) != of:
            return set()
        digests.add(str(attributes[_SUM]))
    with contextlib.suppress(OSError):
        digests.add(hashlib.sha256(durable.read_plain(path / "E" / chunk_name(0))).hexdigest())
    return digests


def read_E(path: Path, n_series: int, of: str) -> NDArray[np.int32] | None:
    """Stored E, None where it has not been stored yet."""
    try:
        metadata = read_json(path / "E" / METADATA)
    except FileNotFoundError:
        return None  # a run that was killed before, too, has no description
    try:
        data = durable.read_plain(path / "E" / chunk_name(0))
    except FileNotFoundError:
        data = b""
    # The description follows from the bytes, so that other readers of Zarr see the same E where we see one.
    if metadata != json.loads(_metadata_of_E(n_series, hashlib.sha256(data).hexdigest(), of)):
        raise DamagedError(f"E of {path} is of another run, or has changed since it was written (its checksum differs)")
    return np.frombuffer(data, dtype=DTYPES["int32"]).astype(np.int32)


# To what a folder belongs: processes that share it compute the same, and what is not ours in it is left alone.


#: The file that says it.
IDENTITY = "parts.json"
_FORMAT = "pyedmcl parts 2"
# Names of ours at the top of a folder of any kind. What else lies there is the user's own, and not looked at.
_OURS = re.compile(
    r"zarr\.json|rho|E|parts\.json|grid\.json|part-\d+-\d+\.npz|\w+\.edm|library_\d+|E_\d+-tau.*|\d{3,}-\w+|"
    + re.escape(PRIVATE_PREFIX) + ".*"
)  # fmt: skip


def require_plain(folder: Path) -> None:
    """Make sure that a folder of ours leads nowhere else, before anything in it is read, changed or removed."""
    try:
        _require_plain(folder, folder, _OURS)
    except OSError as error:
        raise StoreError(f"{folder} cannot be listed ({error.strerror}): check its permissions") from error


def _require_plain(top: Path, folder: Path, ours: re.Pattern[str] | None) -> None:
    inner = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if ours is not None and not ours.fullmatch(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif not entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile by who shares the folder
                    if kind := kind_of(entry.stat(follow_symlinks=False).st_mode):
                        raise StoreForeignError(
                            f"{folder / entry.name} is {kind}, where pyedmcl keeps files and folders only: {top} is "
                            "left alone; remove that, or choose another output path"
                        )
    # Library sizes and maps of a grid are folders of ours by themselves, in which users may keep their own.
    for name in inner:
        _require_plain(top, folder / name, _OURS if _STORE.fullmatch(name) and ours is not None else None)


_STORE = re.compile(r"library_\d+|E_\d+-tau.*")


def digest_of_identity(identity: Mapping[str, Any]) -> str:
    """By which each file of a folder says that it belongs to a run with such an identity."""
    return digest_of(dict(identity))


def identity_file(blocks: int, identity: Mapping[str, Any]) -> bytes:
    """The text of :data:`IDENTITY`: into how many blocks a problem is cut, and what it is."""
    return checked({"format": _FORMAT, "blocks": blocks, "identity": dict(identity)})


def read_identity(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """What :func:`identity_file` says there; None where it is not there."""
    record = read_checked(folder / IDENTITY)
    if record is None:
        return None
    try:
        if record["format"] != _FORMAT:
            raise DamagedError(f"its format is {record['format']}")
        return int(record["blocks"]), dict(record["identity"])
    except (LookupError, TypeError, ValueError) as error:
        raise DamagedError(str(error)) from error


def digest_in(folder: Path) -> str | None:
    """:func:`digest_of_identity` of what a folder says of itself; None where it says nothing."""
    try:
        identity = read_identity(folder)
    except (DamagedError, OSError) as error:
        raise StoreError(
            f"{folder / IDENTITY} is damaged ({error}): bring it back from a copy, or remove the folder and run again"
        ) from error
    return None if identity is None else digest_of_identity(identity[1])


def is_ours(folder: Path, identity: Mapping[str, str], argument: str) -> bool:
    """Whether a folder is of this very run; False where it is empty or not there.

    Parameters
    ----------
    identity : mapping
        What decides the answer, each as text; the name "data" stands for their digest.
    argument : str
        The name under which users gave the folder.
    """
    require_plain(folder)
    try:
        stored = read_identity(folder)
        entries = os.listdir(folder) if stored is None and os.path.lexists(folder) else []
    except (DamagedError, OSError) as error:
        is_file = os.path.exists(folder) and not os.path.isdir(folder)
        raise _foreign(folder, "it is a file" if is_file else str(error), argument) from error
    if IDENTITY in entries:  # another process has written it a moment ago
        return is_ours(folder, identity, argument)
    if any(not name.startswith(PRIVATE_PREFIX) for name in entries):
        raise _foreign(folder, "it holds other things", argument)
    if stored is not None:
        refuse_another(folder, stored[1], identity, argument)
    return stored is not None


def mark(folder: Path, blocks: int, identity: Mapping[str, str], argument: str) -> None:
    """Say that a folder is of this run, unless it says so; other arguments and errors as for :func:`is_ours`.

    Parameters
    ----------
    blocks : int
        Into how many the problem is cut; a folder that says so already keeps its number.
    """
    if not is_ours(folder, identity, argument):
        with durable.explained(f"{folder} cannot be written", ", then run the same command again"):
            write_new(folder / IDENTITY, identity_file(blocks, identity))
        is_ours(folder, identity, argument)  # somebody else may have been quicker


def refuse_another(path: Path, stored: Mapping[str, Any], identity: Mapping[str, str], argument: str) -> None:
    """Raise StoreMismatchError where what is kept belongs to something else than is asked for, with what differs."""
    if stored != identity:
        names = [name for name in identity if stored.get(name) != identity[name]]
        shown = "; ".join(
            "data differ" if name == "data" else f"{name} = {stored.get(name)} there, {identity[name]} asked for"
            for name in names
        )
        anew = ", or start again with resume=False, which removes what is there" if argument == "out" else ""
        raise StoreMismatchError(f"{argument}={str(path)!r} belongs to another run ({shown}); name another one{anew}")


def _foreign(folder: Path, why: str, argument: str) -> StoreForeignError:
    return StoreForeignError(
        f"{argument}={str(folder)!r} is no folder of this run, or is damaged ({why}), and is left alone; name a new or "
        "empty folder, or one of the same run"
    )
