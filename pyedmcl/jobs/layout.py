"""The folder of a store: what is ours in it, what belongs where, and E, the one small array beside rho.

A Zarr v3 group::

    zarr.json            group; attributes: names, pyedmcl (the manifest)
    rho/zarr.json        N x N, one chunk = one block of library rows x all targets
    rho/c.<block>.0      chunks
    rho/blocks.jsonl     journal: one line per finished block (in here since Zarr readers list the group's folder
                         and warn of names that they do not know)
    rho/tuning.json      tuned parameters that the first run was given; a later one takes them again
    rho/searched.json    which searches found the neighbours, why, and how good they were; only where they can differ
    E/zarr.json, E/c.0   the E of each target, once known
    .pyedmcl-*           lock and temporary files of a run
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError
from . import durable, zarr3
from .manifest import FORMAT, KIND, Manifest, mismatch

JOURNAL = "blocks.jsonl"
TUNING = "tuning.json"
SEARCHED = "searched.json"


def read_attributes(path: Path) -> dict[str, Any] | None:
    """Group attributes of our store at ``path``; None where there is nothing yet.

    Raises
    ------
    StoreForeignError
        There is something else.
    StoreError
        It cannot be read.
    """

    def foreign(what: str) -> NoReturn:
        raise StoreForeignError(f"{path} {what} and is left alone: choose another output path, or move it away first")

    if not os.path.isdir(path):
        if os.path.lexists(path):
            foreign("exists, is not a folder,")
        return None
    try:
        attributes = json.loads((path / zarr3.METADATA).read_bytes())["attributes"]
        if attributes["pyedmcl"]["kind"] == KIND:
            return dict(attributes)
    except FileNotFoundError:
        # A run killed before its first file was whole leaves names of this kind only.
        if all(name.startswith(durable.PRIVATE_PREFIX) for name in os.listdir(path)):
            return None
    except (ValueError, LookupError, TypeError):
        pass
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    foreign("was not written by pyedmcl xmap")


def read_manifest(path: Path, attributes: dict[str, Any]) -> Manifest:
    """The manifest in ``attributes``. Raises StoreMismatchError for an unknown format, StoreError where damaged."""
    record = attributes["pyedmcl"]
    if record.get("format") != FORMAT:
        raise StoreMismatchError(
            f"{path} has store format {record.get('format')}, this pyedmcl knows format {FORMAT}: use the version "
            f"that wrote it ({record.get('version')}), or choose another output path"
        )
    try:
        return Manifest.from_attributes(attributes)
    except (LookupError, TypeError, InputError) as error:
        raise StoreError(f"the manifest of {path} is damaged ({error}): remove the folder and run again") from error


def manifest_to_continue(path: Path, asked: Manifest, resume: bool) -> Manifest | None:
    """The stored manifest where the run ``asked`` for may continue with it, None where it starts anew.

    Raises
    ------
    StoreForeignError, StoreMismatchError, StoreError
        As :meth:`XmapStore.create_or_resume` says.
    """
    attributes = read_attributes(path)
    if attributes is None:
        return None
    if not resume:
        if attributes["pyedmcl"].get("format") != FORMAT:
            read_manifest(path, attributes)  # raises: which files another format has is not known here
        return None
    stored = read_manifest(path, attributes)
    message = mismatch(str(path), stored, asked)
    if message:
        raise StoreMismatchError(message)
    return stored


def remove_content(path: Path) -> None:
    """Remove an earlier run's arrays. Files that someone put beside ours stay."""
    for folder in (path / "rho", path / "E"):
        if folder.is_dir():
            # The journal first: from then on no chunk counts, wherever a kill may come.
            (folder / JOURNAL).unlink(missing_ok=True)
            durable.sync_folder(folder)
            for name in os.listdir(folder):
                if name in (zarr3.METADATA, TUNING, SEARCHED) or name.startswith("c."):
                    (folder / name).unlink()
            durable.sync_folder(folder)


def describe(path: Path, manifest: Manifest) -> None:
    """Write the metadata of rho where it is missing or differs, and clear what killed writers left."""
    rho = path / "rho"
    durable.make_folder(rho)
    for folder in (path, rho, path / "E"):
        durable.remove_temporaries(folder)
    chunk_shape = (manifest.block_rows, manifest.shape[1])
    metadata = zarr3.array_metadata(manifest.shape, chunk_shape, manifest.dtype, "NaN", ("library", "target"))
    described = rho / zarr3.METADATA
    if not described.is_file() or described.read_bytes() != metadata:
        durable.write_file(described, metadata)


def sha256(path: Path) -> str:
    """SHA-256 of a file, read piecewise."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def pack_E(E: ArrayLike, n_series: int) -> tuple[bytes, str]:
    """E (n_series,) as it is stored, and its SHA-256. Raises InputError unless these are integers of at least 1."""
    values = np.asarray(E)
    if values.shape != (n_series,) or values.dtype.kind not in "iu":
        raise InputError(f"one integer E per series is needed ({n_series} of them), got {values.dtype} {values.shape}")
    if values.min() < 1 or values.max() > np.iinfo(np.int32).max:
        raise InputError(f"E must be at least 1, got {values.min()} to {values.max()}")
    data = values.astype(zarr3.DTYPES["int32"]).tobytes()
    return data, hashlib.sha256(data).hexdigest()


def write_E(path: Path, data: bytes, digest: str) -> None:
    """Store packed E durably. Raises OSError."""
    folder = path / "E"
    durable.make_folder(folder)
    durable.write_file(folder / zarr3.chunk_name(0), data)
    # The description comes last and holds the sum: E is known when both are there and agree.
    shape = (len(data) // 4,)
    metadata = zarr3.array_metadata(shape, shape, "int32", 0, ("target",), {"sha256": digest})
    durable.write_file(folder / zarr3.METADATA, metadata)


def write_tuning(path: Path, parameters: dict[str, dict[str, Any]]) -> None:
    """Store tuned parameters durably. Raises OSError."""
    durable.write_file(path / "rho" / TUNING, json.dumps(parameters, indent=1, sort_keys=True).encode() + b"\n")


def read_tuning(path: Path) -> dict[str, dict[str, Any]]:
    """Stored parameters, by question; empty where there are none, or the file is damaged."""
    try:
        found = json.loads((path / "rho" / TUNING).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(answer, dict) for answer in found.values()):
        return {}
    return found


def write_searched(path: Path, records: list[dict[str, Any]]) -> None:
    """Store records of searches durably. Raises OSError."""
    durable.write_file(path / "rho" / SEARCHED, json.dumps(records, indent=1).encode() + b"\n")


def read_searched(path: Path) -> list[dict[str, Any]]:
    """Stored records of searches; none where there are none, or the file is damaged."""
    try:
        found = json.loads((path / "rho" / SEARCHED).read_bytes())
    except (OSError, ValueError):
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        return []
    return [{key: tuple(item) if isinstance(item, list) else item for key, item in one.items()} for one in found]


def stored_E_digest(path: Path) -> str | None:
    """SHA-256 of the E that was stored, None where there is none."""
    try:
        return str(json.loads((path / "E" / zarr3.METADATA).read_bytes())["attributes"]["sha256"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def read_E(path: Path) -> NDArray[np.int32] | None:
    """Stored E, None where there is none or its bytes are not those once written."""
    try:
        data = (path / "E" / zarr3.chunk_name(0)).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != stored_E_digest(path):
        return None
    return np.frombuffer(data, dtype=zarr3.DTYPES["int32"]).astype(np.int32)
