"""The folder of a store: its files, and its arrays in chunks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError, warn
from . import durable
from . import records as zarr3
from .blocks import FORMATS, KIND, RECTANGULAR, Manifest, mismatch
from .records import SEARCHED, TUNING, DamagedError, digest_of, read_json, require_plain

# What a block of a store is as bytes: rows of a matrix, or the edges that were kept of them.


def edge_dtype(rho: Any) -> np.dtype[Any]:
    """Type of an array of edges: positions of library and target, and their ``rho`` of a type."""
    return np.dtype([("library", "<i4"), ("target", "<i4"), ("rho", np.dtype(rho).newbyteorder("<"))])


class Chunks(Protocol):
    """How blocks of a store become files."""

    def name(self, block: int) -> str:
        """Name of a block's file."""

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        """Bytes of what the libraries ``begin`` to ``end - 1`` gave, and what the journal tells of them."""

    def size(self, entry: Mapping[str, Any]) -> int:
        """Bytes of a block with such an entry in the journal."""


def chunks_of(manifest: Manifest) -> Chunks:
    """How blocks of a store with such a manifest become files."""
    return RowChunks(manifest) if manifest.keep is None else EdgeChunks(manifest)


class RowChunks:
    """Rows of the matrix, as chunks of a Zarr array, all of one size."""

    def __init__(self, manifest: Manifest) -> None:
        self._rows, self._n, self._dtype = manifest.block_rows, manifest.shape[1], manifest.dtype

    def name(self, block: int) -> str:
        return zarr3.chunk_name(block, 0)

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        data = zarr3.checked_rows(content, (end - begin, self._n), self._dtype)
        return zarr3.chunk_bytes(data, self._rows, self._dtype), {}

    def size(self, entry: Mapping[str, Any]) -> int:
        return self._rows * self._n * zarr3.DTYPES[self._dtype].itemsize


class EdgeChunks:
    """Kept edges, as NPY files of one structured array each: any NumPy reads them, and their bytes follow from them."""

    def __init__(self, manifest: Manifest) -> None:
        self._dtype = edge_dtype(manifest.dtype)
        self._n = manifest.shape[1]

    def name(self, block: int) -> str:
        return zarr3.chunk_name(block) + ".npy"

    def pack(self, content: Any, begin: int, end: int) -> tuple[memoryview, dict[str, Any]]:
        edges = np.asarray(content)
        if edges.dtype != self._dtype or edges.ndim != 1:
            raise InputError(f"edges are a list of {self._dtype}, got {edges.dtype} {edges.shape}")
        held = io.BytesIO()
        np.lib.format.write_array(held, edges, (1, 0), allow_pickle=False)
        return held.getbuffer(), {"bytes": held.getbuffer().nbytes, "edges": len(edges)}

    def size(self, entry: Mapping[str, Any]) -> int:
        held = entry.get("bytes")
        return held if isinstance(held, int) else -1

    def unpack(self, data: bytes) -> NDArray[Any]:
        """Edges of a block's file, whose bytes are what was once written."""
        edges: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        return edges


# A Zarr v3 group::
#
#     zarr.json            group; attributes: names, targets where these are other series, pyedmcl (the manifest)
#     rho/zarr.json        N x N, or N x targets; one chunk = one block of library rows x all targets
#     rho/c.<block>.0      chunks
#     rho/c.<block>.npy    instead of them, where the strongest pairs were kept only: edges of a block of library rows
#     rho/blocks.jsonl     journal: one line per finished block (in here since Zarr readers list the group's folder
#                          and warn of names that they do not know)
#     rho/tuning.json      tuned parameters that the first run was given; a later one takes them again
#     rho/searched.json    which searches found the neighbours, why, and how good they were; only where they can differ
#     E/zarr.json, E/c.0   the E of each target, once known
#     .pyedmcl-*           lock and temporary files of a run, claims of those who share a store
#
# While several processes write it, each has files of its own, which the last one puts in the places above::
#
#     rho/journals/<id>.jsonl   journal of a process; its lines also hold host, device, and searches
#     rho/tuning/<digest>.json  a tuned parameter's question and answer, by the first process that asked
#
# Every file has a SHA-256: chunks in the journal, the manifest and the records (:mod:`.records`) within themselves, E
# in its description. The descriptions of arrays follow from the manifest.


JOURNAL = "blocks.jsonl"
JOURNALS = "journals"
_SUM = "sha256"


def read_attributes(path: Path) -> dict[str, Any] | None:
    """Group attributes of our store at ``path``; None where there is nothing yet."""

    def foreign(what: str) -> NoReturn:
        raise StoreForeignError(f"{path} {what} and is left alone: choose another output path, or move it away first")

    if not os.path.isdir(path):
        if os.path.lexists(path):
            foreign("exists, is not a folder,")
        return None
    require_plain(path)
    try:
        attributes = read_json(path / zarr3.METADATA)["attributes"]
        if attributes["pyedmcl"]["kind"] == KIND:
            return dict(attributes)
    except FileNotFoundError:
        # A run killed before its first file was whole leaves names of this kind only.
        names = os.listdir(path)
        if all(name.startswith(durable.PRIVATE_PREFIX) for name in names):
            return None
        if zarr3.METADATA in names:  # another process has made it a moment ago
            return read_attributes(path)
    except (ValueError, LookupError, TypeError):
        pass
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    foreign("was not written by pyedmcl xmap")


def _group_metadata(manifest: Manifest) -> bytes:
    """The text of the group's description, which holds the manifest and its checksum."""
    attributes = manifest.attributes()
    attributes["pyedmcl"][_SUM] = digest_of(attributes)
    return zarr3.group_metadata(attributes)


def read_manifest(path: Path, attributes: dict[str, Any]) -> Manifest:
    """The manifest in ``attributes``. Raises StoreMismatchError for an unknown format, StoreError where damaged."""
    record = dict(attributes["pyedmcl"])
    if record.get("format") not in FORMATS:
        raise StoreMismatchError(
            f"{path} has store format {record.get('format')}, this pyedmcl knows format {FORMATS[-1]}: use the version "
            f"that wrote it ({record.get('version')}), or choose another output path"
        )
    try:
        # Those who look at the result with other tools may add attributes beside ours.
        ours = {"names": attributes["names"], "pyedmcl": record}
        if record["format"] == RECTANGULAR:
            ours["targets"] = attributes["targets"]
        stored = record.pop(_SUM, None)
        if stored != digest_of(ours):
            raise DamagedError("its checksum differs")
        return Manifest.from_attributes(ours)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"the manifest of {path} is damaged ({error}): bring {path / zarr3.METADATA} back from a copy, or remove "
            "the folder and run again"
        ) from error


def manifest_to_continue(path: Path, asked: Manifest, resume: bool) -> Manifest | None:
    """The stored manifest where the run ``asked`` for may continue with it, None where it starts anew."""
    attributes = read_attributes(path)
    if attributes is None:
        return None
    if not resume:
        if attributes["pyedmcl"].get("format") not in FORMATS:
            read_manifest(path, attributes)  # raises: which files another format has is not known here
        return None
    stored = read_manifest(path, attributes)
    message = mismatch(str(path), stored, asked)
    if message:
        raise StoreMismatchError(message)
    return stored


def begin(path: Path, manifest: Manifest) -> None:
    """Make a new store, in place of what an earlier run left there."""
    _remove_content(path)
    durable.write_file(path / zarr3.METADATA, _group_metadata(manifest))


def _remove_content(path: Path) -> None:
    """Remove an earlier run's arrays. Files that someone put beside ours stay."""
    for folder in (path / "rho", path / "E"):
        if folder.is_dir():
            # The journal first: from then on no chunk counts, wherever a kill may come.
            durable.remove_from(folder, JOURNAL.__eq__)
            remove_joined(folder)
            durable.sync_folder(folder)
            durable.remove_from(folder, lambda name: _CONTENT.fullmatch(name) is not None)
            durable.sync_folder(folder)


# What a run writes in rho and E, beside its journals.
_CONTENT = re.compile(rf"c\.\d+(\.0|\.npy)?|{'|'.join(map(re.escape, (zarr3.METADATA, TUNING, SEARCHED)))}")


def remove_joined(rho: Path) -> None:
    """Remove what joined runs kept apart in the folder of rho, and nothing else that lies there."""
    for name, ours in ((JOURNALS, _is_journal), (zarr3.ANSWERS, zarr3.is_answer)):
        remove_folder(rho / name, ours)


def remove_folder(folder: Path, ours: Callable[[str], bool]) -> None:
    """Remove a folder with the files in it that are ours; what is not, and the folder then, stays, and is told."""
    left = durable.remove_from(folder, lambda name: ours(name) or name.startswith(durable.TEMPORARY_PREFIX))
    if left:
        warn(f"{folder} holds what pyedmcl did not write, and which is left there: {', '.join(left[:5])}")
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder.rmdir()


def _is_journal(name: str) -> bool:
    return name.endswith(".jsonl")


def journals(path: Path) -> list[Path]:
    """Journals of a store. That of the whole comes last: the others vanish once it holds what they hold."""
    rho = path / "rho"
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        own = sorted(filter(_is_journal, durable.names_in(rho / JOURNALS)))
        return [*(rho / JOURNALS / name for name in own), rho / JOURNAL]
    return [rho / JOURNAL]


def is_joined(path: Path) -> bool:
    """Whether joined runs keep files of their own there."""
    return os.path.isdir(path / "rho" / JOURNALS) or os.path.isdir(path / "rho" / zarr3.ANSWERS)


def remove_temporaries(path: Path) -> None:
    """Clear what killed writers left, where nobody else writes."""
    for folder in (path, path / "rho", path / "rho" / JOURNALS, path / "rho" / zarr3.ANSWERS, path / "E"):
        durable.remove_temporaries(folder)


def describe(path: Path, manifest: Manifest) -> None:
    """Write the metadata of rho where it is missing or differs."""
    rho = path / "rho"
    durable.inner_folder(rho)
    metadata, described = _metadata_of_rho(manifest), rho / zarr3.METADATA
    if not described.is_file() or durable.read_plain(described) != metadata:
        durable.write_file(described, metadata)


def _metadata_of_rho(manifest: Manifest) -> bytes:
    if manifest.keep is not None:  # other readers of Zarr see no matrix, and list no files that they do not know
        attributes = {"keep": manifest.keep, "edges": "c.<block>.npy"}
        return zarr3.array_metadata((0,), (1,), manifest.dtype, "NaN", ("edge",), attributes)
    chunk_shape = (manifest.block_rows, manifest.shape[1])
    return zarr3.array_metadata(manifest.shape, chunk_shape, manifest.dtype, "NaN", ("library", "target"))


def is_described(path: Path, manifest: Manifest) -> bool:
    """Whether rho's description says what the manifest says, so that other readers of Zarr see the same numbers."""
    try:
        return bool(read_json(path / "rho" / zarr3.METADATA) == json.loads(_metadata_of_rho(manifest)))
    except (OSError, ValueError):
        return False


def sha256(path: Path) -> str:
    """SHA-256 of a file, read piecewise."""
    digest = hashlib.sha256()
    with os.fdopen(durable.open_plain(path), "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
