"""What can be read of a result on disk, finished or not: its blocks, E, tuned parameters, and records of searches."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, StoreError, StoreForeignError, warn
from . import durable, layout, records, zarr3
from .chunks import EdgeChunks, chunks_of
from .finished import Finished
from .manifest import Manifest

#: In a line of a journal of joined runs: what searched for neighbours.
SEARCHED = "searched"


class StoredMap:
    """A result on disk, as it is read.

    Parameters
    ----------
    path : pathlib.Path
    manifest : Manifest
        As stored.

    Attributes
    ----------
    path, manifest
    shape : (int, int)
        (N, N), or (N, targets): row = library, column = target.
    block_rows, n_blocks : int
    names : tuple of str
    targets : tuple of str or None
        Names of the targets, where these are not the N series.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.shape = manifest.shape
        self.block_rows = manifest.block_rows
        self.n_blocks = -(-self.shape[0] // self.block_rows)
        self.names: tuple[str, ...] = tuple(manifest.names)
        self.targets: tuple[str, ...] | None = None if manifest.targets is None else tuple(manifest.targets)
        self._chunks = chunks_of(manifest)
        self._row_bytes = self.shape[1] * zarr3.DTYPES[manifest.dtype].itemsize
        self._done = Finished(path, self._chunks, self.n_blocks, manifest.identity)
        self._mutex = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as the folder that it is, which is opened again to be read."""
        return _opened_again, (type(self), os.path.abspath(self.path))

    @property
    def _writable(self) -> bool:
        """Whether this process writes it."""
        return False

    @property
    def _joined(self) -> bool:
        """Whether this process is one of several that write it."""
        return False

    def entries(self) -> list[dict[str, Any]]:
        """What the journals say of finished blocks, by their numbers."""
        return self._done.ordered()

    def refresh(self, *, whole: bool = False) -> None:
        """Learn what others have finished since; with ``whole`` from the journal of the whole alone."""
        with self._mutex:
            self._done.take(whole=whole)

    def unwritten(self) -> list[int]:
        """Blocks that nobody has written, by one look at the folder. What is written is nearly always done."""
        return self._done.unwritten()

    def written(self, block: int) -> bool:
        """Whether somebody has written a block, which nearly always means that it is done."""
        return block in self._done.entries or self._done.file(block).exists()

    def finished(self, block: int) -> bool:
        """Whether a block is done, as far as the journals that were read say."""
        return block in self._done.entries

    def rows(self, block: int) -> tuple[int, int]:
        """First library row of ``block`` and the one after its last."""
        if not 0 <= block < self.n_blocks:
            raise InputError(f"block {block} does not exist: there are blocks 0 to {self.n_blocks - 1}")
        return block * self.block_rows, min((block + 1) * self.block_rows, self.shape[0])

    def pending(self) -> list[int]:
        """Blocks not yet done, in order."""
        return self._done.pending()

    @property
    def complete(self) -> bool:
        """Whether every block of rho is done."""
        return len(self._done.entries) == self.n_blocks

    def kept_answer(self, question: str) -> dict[str, Any] | None:
        """The answer that the first one of those who have joined gave; None where nobody has asked."""
        return records.kept_answer(self.path, question, self.manifest.identity)

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Tuned parameters of the blocks that are there; empty where none are, or none were recorded.

        Raises StoreError where they are damaged.
        """
        # Who has joined takes those of others at once.
        if not self._done.entries and not self._joined:
            return {}
        of = self.manifest.identity
        return records.read_answers(self.path, of) | records.read_tuning(self.path, of)

    @property
    def searched(self) -> list[dict[str, Any]]:
        """Which searches found the neighbours, why, and how good they were; empty where none were recorded.

        A damaged record is told to a reader by a warning, since rho can be read without it. For a writer it is an error
        (StoreError), since the blocks that are added must go on with it.
        """
        try:
            searches = records.read_searched(self.path, self.manifest.identity)
        except StoreError as error:
            if self._writable:
                raise
            warn(f"{error} It is left out here.")
            return []
        for block in sorted(self._done.entries):
            more = [records.as_searched(one) for one in self._done.entries[block].get(SEARCHED, ())]
            searches += [one for one in more if one not in searches]
        return searches

    @property
    def E(self) -> NDArray[np.int32] | None:
        """E of each target, int32; None until set, and for a writer where it is damaged and must be set.

        Raises StoreError for a reader where it is damaged.
        """
        try:
            return records.read_E(self.path, self.shape[1], self.manifest.identity)
        except (records.DamagedError, OSError) as error:
            if not self._writable:
                raise self._without_E(error) from error
            return None

    def dimensions(self) -> NDArray[np.int_]:
        """:attr:`E` as integers; 0 where it was not found yet.

        Raises StoreError where it is damaged, or missing although blocks were computed with it.
        """
        E = self.E
        if E is None and self._done.entries:
            raise self._without_E(f"E of {self.path} is missing")
        return np.zeros(self.shape[1], int) if E is None else np.asarray(E, int)

    def _without_E(self, why: Exception | str) -> StoreError:
        return StoreError(f"{why}: run the same command again, it finds E anew and keeps the blocks that are there")

    @property
    def keep(self) -> str | None:
        """Which edges were kept; None where all pairs were."""
        return self.manifest.keep

    def edges(self, block: int) -> NDArray[Any] | None:
        """Edges that were kept of a block's rows, of type :func:`.chunks.edge_dtype`; None where not yet done.

        Raises
        ------
        InputError
            The store holds a map.
        StoreError
            They cannot be read, or were changed since they were written.
        """
        entry = self._done.entries.get(block)
        if not isinstance(self._chunks, EdgeChunks):
            raise InputError(f"{self.path} holds a map, not edges")
        if entry is None:
            return None
        try:
            data = durable.read_plain(self._done.file(block))
        except OSError as error:
            raise self._unreadable(block, error) from error
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise self._changed(block)
        return self._chunks.unpack(data)

    @property
    def rho(self) -> zarr3.LazyMatrix:
        """The result, of shape :attr:`shape`, read when indexed; NaN where not yet done.

        Raises InputError where edges were kept instead.
        """
        if self.keep is not None:
            raise InputError(
                f"{self.path} holds edges only (keep={self.keep!r}), no map: open_xmap reads them, and "
                "'pyedmcl export' writes them as a list"
            )
        # Made anew each time: kept, it would tie a knot that keeps an abandoned writer's lease until the next
        # garbage collection.
        return zarr3.LazyMatrix(self.shape, self.manifest.dtype, self.block_rows, self._read_block)

    def _read_block(self, block: int, first: int, last: int) -> NDArray[Any] | None:
        entry = self._done.entries.get(block)
        if entry is None:
            return None
        path = self._done.file(block)
        try:
            # Opening for reading does not read it all; a block is checked when first used.
            if block not in self._done.verified and layout.sha256(path) != entry["sha256"]:
                raise self._changed(block)
            self._done.verified.add(block)
            stored = zarr3.DTYPES[self.manifest.dtype]
            with os.fdopen(durable.open_plain(path), "rb") as file:
                data: NDArray[Any] = np.fromfile(
                    file, dtype=stored, count=(last - first) * self.shape[1], offset=first * self._row_bytes
                )
        except OSError as error:
            raise self._unreadable(block, error) from error
        if data.size != (last - first) * self.shape[1]:
            raise StoreError(f"block {block} of {self.path} became shorter while it was in use: check the disk")
        return data.reshape(last - first, self.shape[1])

    def _changed(self, block: int) -> StoreError:
        return StoreError(
            f"block {block} of {self.path} has changed since it was written (its checksum differs): "
            "run the same xmap command again, it computes such blocks anew"
        )

    def _unreadable(self, block: int, error: OSError) -> StoreError:
        return StoreError(f"block {block} of {self.path} cannot be read ({error.strerror}): check the disk")


def _opened_again(kind: type[StoredMap], path: str) -> StoredMap:
    """A result that was pickled. Raises StoreForeignError where it is not there any more."""
    attributes = layout.read_attributes(Path(path))
    if attributes is None:
        raise StoreForeignError(f"{path}: the result whose folder this was is not there any more")
    store = kind(Path(path), layout.read_manifest(Path(path), attributes))
    store._done.load()
    return store
