"""Which blocks of a store are done, as its journals and the files of blocks say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import StoreError, warn
from . import durable, layout
from .chunks import Chunks


class Finished:
    """The finished blocks of a store.

    Parameters
    ----------
    path : pathlib.Path
        Of the store.
    chunks : Chunks
    n_blocks : int
    of : str
        To what run lines of a journal must belong.

    Attributes
    ----------
    entries : dict
        What journals say of blocks, by their numbers.
    verified : set of int
        Blocks whose bytes were seen to be those once written.
    refused : set of int
        Blocks that a journal tells of, but whose bytes have changed, or that are of another run.
    """

    def __init__(self, path: Path, chunks: Chunks, n_blocks: int, of: str) -> None:
        self._path, self._chunks, self._n_blocks, self._of = path, chunks, n_blocks, of
        self.entries: dict[int, dict[str, Any]] = {}
        self.verified: set[int] = set()
        self.refused: set[int] = set()
        self._read: dict[Path, int] = {}  # bytes of journals that were taken
        self._mark: tuple[int, ...] = ()  # of the journal of the whole store, when it was taken

    def file(self, block: int) -> Path:
        """Where a block is."""
        return self._path / "rho" / self._chunks.name(block)

    def ordered(self) -> list[dict[str, Any]]:
        """Entries by the numbers of their blocks."""
        return [self.entries[block] for block in sorted(self.entries)]

    def pending(self) -> list[int]:
        """Blocks not yet done, in order."""
        return [block for block in range(self._n_blocks) if block not in self.entries]

    def unwritten(self) -> list[int]:
        """Blocks that nobody has written, by one look at the folder. What is written is nearly always done."""
        return self._lacking(self.pending())

    def _lacking(self, blocks: Iterable[int]) -> list[int]:
        """Those of some blocks whose file is not there."""
        try:
            written = set(durable.names_in(self._path / "rho"))
        except OSError:
            written = set()
        return [block for block in blocks if self._chunks.name(block) not in written]

    def take(self, *, whole: bool = False) -> bool:
        """Take what journals hold that was not taken before; True where every byte of them was an entry.

        Parameters
        ----------
        whole : bool
            Read only the journal of the whole store: one file, where each process may have one of its own.
        """
        clean = True
        for journal in [self._path / "rho" / layout.JOURNAL] if whole else layout.journals(self._path):
            begin = self._read.get(journal, 0)
            # Who joins the journals of processes writes that of the whole store anew: it is read from its start.
            if journal.name == layout.JOURNAL:
                mark = durable.mark_of(journal)
                if begin and mark == self._mark:
                    continue
                begin, self._mark = 0, mark
            try:
                read = durable.read_journal(journal, self._of, begin)
            except OSError as error:
                raise StoreError(f"{journal} cannot be read ({error.strerror}): check its permissions") from error
            self._read[journal] = read.end
            clean = clean and read.clean
            self.entries |= self._of_blocks(read.entries)
            self.refused |= set(self._of_blocks(read.foreign))
        return clean

    def _of_blocks(self, entries: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Those entries that tell of a block of this store, by its number; of several, the last."""
        return {
            block: entry for entry in entries
            if isinstance(block := entry.get("block"), int) and 0 <= block < self._n_blocks
            and isinstance(entry.get("sha256"), str)
        }  # fmt: skip

    def tell_refused(self) -> None:
        """Warn of blocks that are there and must be computed anew."""
        lost = self.refused.difference(self.entries)
        if lost:
            warn(
                f"{len(lost)} of {self._n_blocks} blocks in {self._path} belong to another run, or have changed since "
                "they were written: they are computed anew"
            )

    def load_listed(self) -> None:
        """Take the entries whose file is there: with one look at the folder instead of one at each file."""
        self.take()
        lacking = set(self._lacking(range(self._n_blocks)))
        self.entries = {block: entry for block, entry in self.entries.items() if block not in lacking}

    def load(self) -> bool:
        """Take the entries whose file is there in full size; True where the journals and the files hold no more."""
        clean = self.take()
        for block in list(self.entries):
            size = -1
            with contextlib.suppress(OSError):
                size = self.file(block).lstat().st_size
            if size != self._chunks.size(self.entries[block]):
                del self.entries[block]
                clean = False
        journalled = {self.file(block).name for block in self.entries}
        with contextlib.suppress(OSError):
            clean = clean and journalled.issuperset(
                n for n in durable.names_in(self._path / "rho") if n.startswith("c.")
            )
        return clean

    def verify(self) -> bool:
        """Load, and keep the blocks whose bytes are those once written; True where these are all."""
        clean = self.load()
        for block, entry in list(self.entries.items()):
            with contextlib.suppress(OSError):  # what cannot be read is written anew
                if layout.sha256(self.file(block)) == entry["sha256"]:
                    self.verified.add(block)
            if block not in self.verified:
                del self.entries[block]
                self.refused.add(block)
                clean = False
        return clean
