"""How stored results are opened: to be read, to be written alone or with other processes, or several in a folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import InputError, StoreForeignError, warn
from . import layout, zarr3
from .claims import Member, remove_claims
from .manifest import Manifest
from .store import XmapStore


def open_to_write(path: Path, manifest: Manifest, member: Member | None, *, resume: bool = True) -> XmapStore:
    """A store that this process writes alone, or as one of several."""
    if member is None:
        return XmapStore.create_or_resume(path, manifest, resume=resume)
    return XmapStore.join(path, manifest, member)


@contextlib.contextmanager
def several_to_write(
    folder: Path, manifests: Mapping[str, Manifest], member: Member | None, *, resume: bool
) -> Iterator[list[XmapStore]]:
    """Stores of a folder by their names, in this order, open for writing; an error within closes all of them."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(open_to_write(folder / name, manifest, member, resume=resume))
            for name, manifest in manifests.items()
        ]
        stack.pop_all()  # they stay open
    if member is None:
        remove_claims(folder)


def open_store(path: str | os.PathLike[str], mode: str = "r") -> XmapStore:
    """Open a result for reading, finished or not, also while a run writes it.

    Parameters
    ----------
    path : path-like
    mode : {"r"}
        Reading is all there is; :meth:`XmapStore.create_or_resume` writes.

    Raises
    ------
    StoreForeignError
        There is nothing, or it was not written by pyedmcl.
    StoreMismatchError
        It has a format that this version does not know.
    StoreError
        It is damaged or cannot be read.

    Warns
    -----
    RuntimeWarning
        Blocks count as not done since the journal or their files are damaged or of another run; what describes rho to
        other readers of Zarr is damaged.
    """
    if mode != "r":
        raise InputError(f"mode {mode!r}: 'r' (reading) is needed; XmapStore.create_or_resume opens a store to write")
    path = Path(path)
    try:
        attributes = layout.read_attributes(path)
    except StoreForeignError:  # whose message is for those who write there
        attributes = None
    if attributes is None:
        raise StoreForeignError(f"{path} is no result of pyedmcl xmap: name the folder that xmap wrote (-o)")
    store = XmapStore(path, layout.read_manifest(path, attributes))
    # What joined runs are at work on is no damage.
    if not store._done.load() and store.pending() and not layout.is_joined(path):
        gap = "rho is NaN" if store.keep is None else "edges are missing"
        warn(
            f"the journal of {path} and its files do not agree, as after a kill or damage, or with files of another "
            f"run: {len(store.pending())} of "
            f"{store.n_blocks} blocks count as not done, and their {gap}, until the same command is run again"
        )
    if not layout.is_described(path, store.manifest):
        warn(
            f"{path / 'rho' / zarr3.METADATA} is damaged or missing: what is read here is right, other readers of Zarr "
            "may be misled. Running the same command again mends it."
        )
    return store
