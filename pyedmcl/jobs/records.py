"""The small records of a store (E, tuned parameters, searches), each with a checksum that is compared when it is read.

What a disk or a careless edit has changed is never taken for what was written: a damaged record is an error. The
checksum covers to what run a record belongs (``of``, a digest), so that one of another run is an error, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, StoreError
from ..files import write_new
from . import durable, zarr3

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
    """Content of a record of the run ``of``, None where there is none.

    Raises
    ------
    DamagedError
        It is not what was written.
    ForeignError
        It belongs to another run.
    OSError
        It cannot be read.
    """
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

    Raises
    ------
    StoreError
        They are damaged, of another run, or cannot be read.
    """
    return _read_answers(path / "rho" / TUNING, of)


def keep_answer(path: Path, question: str, answer: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Store an answer to a question for tuned parameters, unless a process that shares the store has done so.

    Returns
    -------
    dict
        The answer that is stored.

    Raises
    ------
    StoreError
        It is damaged.
    OSError
        It cannot be written.
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
    data = values.astype(zarr3.DTYPES["int32"]).tobytes()
    return data, hashlib.sha256(data).hexdigest()


def write_E(path: Path, data: bytes, digest: str, of: str) -> None:
    """Store packed E durably. Raises OSError."""
    folder = path / "E"
    durable.inner_folder(folder)
    durable.write_file(folder / zarr3.chunk_name(0), data)
    # The description comes last and holds the sum: E is known when both are there and agree.
    durable.write_file(folder / zarr3.METADATA, _metadata_of_E(len(data) // 4, digest, of))


def _metadata_of_E(n_series: int, digest: str, of: str) -> bytes:
    return zarr3.array_metadata((n_series,), (n_series,), "int32", 0, ("target",), {_SUM: digest, _OF: of})


def digests_of_E(path: Path, of: str) -> set[str]:
    """SHA-256 of the E that was stored for a run, as far as it can be told: by its description and by its bytes."""
    digests = set()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        attributes = read_json(path / "E" / zarr3.METADATA)["attributes"]
        if attributes.get(_OF, of) != of:
            return set()
        digests.add(str(attributes[_SUM]))
    with contextlib.suppress(OSError):
        digests.add(hashlib.sha256(durable.read_plain(path / "E" / zarr3.chunk_name(0))).hexdigest())
    return digests


def read_E(path: Path, n_series: int, of: str) -> NDArray[np.int32] | None:
    """Stored E, None where it has not been stored yet.

    Raises
    ------
    DamagedError
        Its bytes or its description are not those once written for the run ``of``.
    OSError
        It cannot be read.
    """
    try:
        metadata = read_json(path / "E" / zarr3.METADATA)
    except FileNotFoundError:
        return None  # a run that was killed before, too, has no description
    try:
        data = durable.read_plain(path / "E" / zarr3.chunk_name(0))
    except FileNotFoundError:
        data = b""
    # The description follows from the bytes, so that other readers of Zarr see the same E where we see one.
    if metadata != json.loads(_metadata_of_E(n_series, hashlib.sha256(data).hexdigest(), of)):
        raise DamagedError(f"E of {path} is of another run, or has changed since it was written (its checksum differs)")
    return np.frombuffer(data, dtype=zarr3.DTYPES["int32"]).astype(np.int32)
