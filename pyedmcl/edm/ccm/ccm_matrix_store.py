"""The folder of a matrix of convergent cross mapping: one resumable store of all pairs for each library size."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import StoreForeignError, StoreMismatchError
from ...jobs.claims import Member, require_alone
from ...jobs.manifest import Manifest
from ...jobs.opening import open_store, several_to_write
from ...jobs.ownership import require_plain
from ...jobs.store import XmapStore

if TYPE_CHECKING:
    from ...device.info import DeviceInfo
    from .ccm_matrix_problem import CcmMatrixProblem

_NAME = re.compile(r"library_(\d+)")


def store_name(size: int) -> str:
    """Folder of a library size."""
    return f"library_{size:07d}"


def sizes_there(path: str | os.PathLike[str]) -> dict[int, Path]:
    """Library sizes that have a store in a folder, ascending, and where.

    Raises
    ------
    StoreForeignError
        The folder holds other things, or it is none.
    """
    folder = Path(path)
    if not os.path.lexists(folder):
        return {}
    if not os.path.isdir(folder):
        raise StoreForeignError(f"{folder} exists, is not a folder, and is left alone: choose another output path")
    require_plain(folder)
    arrays = {}
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match:
            arrays[int(match[1])] = folder / name
        elif not name.startswith("."):
            raise StoreForeignError(
                f"{folder} holds {name!r}, which pyedmcl ccm-matrix did not write, and is left alone: choose another "
                "output path"
            )
    return dict(sorted(arrays.items()))


def stored_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of a result that is there already; None for a new folder."""
    for store in sizes_there(path).values():
        with contextlib.suppress(StoreForeignError):
            seed = open_store(store).manifest.parameters.get("seed")
            return seed if isinstance(seed, int) else None  # of something else, which is refused when it is opened
    return None


def shared_seed(path: Path, seed: int) -> int:
    """The seed of a result that processes compute together, none of which was given one: that of the first.

    Parameters
    ----------
    path : Path
    seed : int
        What this process would take.
    """
    with Member(path) as member:
        return int(member.decide("seed", seed))


def _essence(manifest: Manifest) -> Any:
    """What library sizes of one result have in common."""
    compared = {name: value for name, value in manifest.parameters.items() if name != "lib_size"}
    return manifest.input_digest, tuple(manifest.names), compared


def open_stores(
    path: Path, problem: CcmMatrixProblem, info: DeviceInfo, member: Member | None, *, resume: bool
) -> list[XmapStore]:
    """Stores of all library sizes of a problem on a device, in their order, open for writing.

    Raises
    ------
    StoreForeignError, StoreMismatchError, StoreWriteError, StoreError
        As for :meth:`~pyedmcl.jobs.store.XmapStore.create_or_resume`.
    """
    if member is None:
        require_alone(path)
    common = _essence(problem.manifest(info))
    for size, where in sizes_there(path).items():
        if size not in problem.lib_sizes and _essence(open_store(where).manifest) != common:
            raise StoreMismatchError(
                f"{path} holds library size {size}, computed from other data or with other parameters: choose another "
                f"output path, or remove its folder {store_name(size)}"
            )
    manifests = {store_name(size): problem.manifest(info, lib_size=size) for size in problem.lib_sizes}
    with several_to_write(path, manifests, member, resume=resume) as stores:
        return stores


def read_stores(path: str | os.PathLike[str]) -> dict[int, XmapStore]:
    """Stores of a result, for reading.

    Raises
    ------
    StoreForeignError
        There is no such result.
    StoreMismatchError
        Its library sizes were computed from different data or with different parameters.
    """
    try:
        folders = sizes_there(path)
    except StoreForeignError:  # whose message is for those who write there
        folders = {}
    if not folders:
        raise StoreForeignError(f"{path} is no result of pyedmcl ccm-matrix: name the folder that it wrote")
    stores = {size: open_store(where) for size, where in folders.items()}
    manifest = next(iter(stores.values())).manifest
    if not all(isinstance(manifest.parameters.get(name), int) for name in ("sample", "seed")):
        raise StoreForeignError(f"{path} holds maps that pyedmcl ccm-matrix did not write")
    first = _essence(manifest)
    for size, store in stores.items():
        there = store.manifest.parameters.get("lib_size")
        if there != size:
            raise StoreMismatchError(
                f"{path}: the folder of library size {size} holds library size {there}; give the folders their own "
                f"names again, or remove {store_name(size)}, and run the same command"
            )
        if _essence(store.manifest) != first:
            raise StoreMismatchError(
                f"{path}: library size {size} was computed from other data or with other parameters than "
                f"{next(iter(stores))}; compute it again, or remove its folder {store_name(size)}"
            )
    return stores
