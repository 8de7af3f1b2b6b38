"""The store that survives: an all-pairs result on disk, block by block, that a killed run can continue."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ..errors import StoreError, StoreMismatchError
from . import durable, layout, records
from .claims import Member, remove_claims, require_alone
from .manifest import Manifest, now
from .stored import SEARCHED, StoredMap

_AGAIN_OR_ELSEWHERE = ", then run the same command again, or choose another output path"


class XmapStore(StoredMap):
    """A result on disk; made by :meth:`create_or_resume` (to write) or :func:`open_store` (to read).

    A context manager; :meth:`close` gives the lease of a writer back. :meth:`write` may be called from several threads.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self._lease: durable.Lease | None = None
        self._journal: durable.Journal | None = None
        self._member: Member | None = None
        self._searched_next: list[dict[str, Any]] = []

    @classmethod
    def create_or_resume(cls, path: str | os.PathLike[str], manifest: Manifest, *, resume: bool = True) -> XmapStore:
        """Open ``path`` for writing: new, or continued where a run with an equal manifest ended.

        Parameters
        ----------
        path : path-like
            A folder of our own, an empty one, or a name not yet used (missing parents are created).
        manifest : Manifest
        resume : bool
            False removes what an earlier run stored there (nothing else) and starts anew.

        Raises
        ------
        StoreForeignError
            There is something that is not ours; it is left alone.
        StoreMismatchError
            It was made from other data, parameters, versions or device; the message lists what differs.
        StoreWriteError
            The folder cannot be written.
        StoreError
            Another run is writing there.
        """
        path = Path(path)
        layout.manifest_to_continue(path, manifest, resume)  # before anything is touched, and again under the lease
        lease = durable.Lease(path / durable.LOCK_NAME)
        with durable.explained(f"{path} cannot be written", _AGAIN_OR_ELSEWHERE):
            try:
                durable.make_folder(path)
                lease.acquire()
                require_alone(path)
                stored = layout.manifest_to_continue(path, manifest, resume)
                if stored is None:
                    layout.begin(path, manifest)
                store = cls(path, stored or manifest)
                layout.describe(path, store.manifest)
                layout.remove_temporaries(path)
                remove_claims(path)
                if not store._done.verify() or layout.is_joined(path):
                    store._done.tell_refused()
                    store._fold()
                store._journal = durable.Journal(path / "rho" / layout.JOURNAL, store.manifest.identity)
            except BaseException:
                lease.release()
                raise
        store._lease = lease
        return store

    @classmethod
    def join(cls, path: str | os.PathLike[str], manifest: Manifest, member: Member) -> XmapStore:
        """Open ``path`` for writing, as one of several processes: the first one creates it.

        Finished blocks are not read, as only :meth:`create_or_resume` does.

        Parameters
        ----------
        path : path-like
        manifest : Manifest
        member : Member
            This process, among those who share the folder.

        Raises
        ------
        StoreForeignError, StoreMismatchError, StoreWriteError
            As for :meth:`create_or_resume`.
        StoreError
            A run that has not joined is writing there.
        """
        path = Path(path)
        layout.manifest_to_continue(path, manifest, True)  # before anything is touched, and again alone
        with durable.explained(f"{path} cannot be written", _AGAIN_OR_ELSEWHERE):
            durable.make_folder(path)
            member.enter()
            lock = path / durable.LOCK_NAME

            def unready() -> bool:
                stored = layout.manifest_to_continue(path, manifest, True)
                return stored is None or lock.exists() or not layout.is_described(path, stored)

            def make_ready() -> None:
                lease = durable.Lease(lock)
                lease.acquire()
                lease.release()
                stored = layout.manifest_to_continue(path, manifest, True)
                if stored is None:
                    layout.begin(path, manifest)
                layout.describe(path, stored or manifest)

            member.once("setup", unready, make_ready)
            stored = layout.manifest_to_continue(path, manifest, True)
        store = cls(path, stored or manifest)
        if member.others():  # a thousand who join do not look at each file
            store._done.load_listed()
        else:
            store._done.load()
        store._done.tell_refused()
        store._member = member
        return store

    def _fold(self) -> None:
        """Write one journal, and put what joined runs kept apart in its place."""
        if layout.is_joined(self.path):
            parameters, searched = self.parameters, self.searched
            if parameters:
                records.write_tuning(self.path, parameters, self.manifest.identity)
            if searched:
                records.write_searched(self.path, searched, self.manifest.identity)
        for entry in self._done.entries.values():
            entry.pop(SEARCHED, None)
        self._write_whole()
        layout.remove_joined(self.path / "rho")

    def gather(self) -> None:
        """Read the journals of all, and write one of the whole, so that of many processes one reads them.

        Raises
        ------
        StoreWriteError
            The folder cannot be written.
        """
        with self._writing("the journal of all blocks"):
            self._done.take()
            self._write_whole()

    def _write_whole(self) -> None:
        lines = [durable.journal_line(entry, self.manifest.identity) for entry in self._done.ordered()]
        durable.write_file(self.path / "rho" / layout.JOURNAL, b"".join(lines))

    def settle(self) -> None:
        """Make a store that joined runs have written like one that a single run wrote, for the last of them.

        Raises
        ------
        StoreError
            A run that has not joined is writing there.
        StoreWriteError
            The folder cannot be written.
        """
        lease = durable.Lease(self.path / durable.LOCK_NAME)
        try:
            with self._mutex, durable.explained(
                f"{self.path} is complete, but its journals could not be joined", ", then run the same command again"
            ):
                lease.acquire()
                if self._journal is not None:
                    self._journal.close()
                    self._journal = None
                self._done.take()
                layout.remove_temporaries(self.path)
                if layout.is_joined(self.path):
                    self._fold()
        finally:
            lease.release()

    def __enter__(self) -> XmapStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def close(self) -> None:
        """Give the lease of a writer back; reading still works. A second call does nothing."""
        with self._mutex:
            if self._journal:
                self._journal.close()
            if self._lease:
                self._lease.release()
            self._journal = self._lease = self._member = None

    def write(self, block: int, rows: ArrayLike) -> None:
        """Store a block; when this returns it is on the disk and counts as done.

        Parameters
        ----------
        block : int
        rows : array-like of float, shape (stop - start, targets)
            rho of the library rows ``start, stop = store.rows(block)``; converted to the stored type. Where edges are
            kept, those of these rows, of type :func:`.chunks.edge_dtype`.

        Raises
        ------
        StoreWriteError
            Disk full, no permission, I/O error: nothing of this block is kept, all finished blocks are.
        InputError
            Shape or type do not fit.
        """
        start, stop = self.rows(block)
        chunk, more = self._chunks.pack(rows, start, stop)
        entry: dict[str, Any] = {"block": block, "sha256": hashlib.sha256(chunk).hexdigest(), "time": now(), **more}
        with self._writing(f"block {block}"):
            if self._done.entries.get(block, entry)["sha256"] != entry["sha256"]:
                del self._done.entries[block]  # other values than before: not done until their sum is journalled
            durable.write_file(self._done.file(block), chunk)
            if self._member is not None:
                me = self._member.me
                entry |= {"writer": me.id, "host": me.host, "device": me.device}
                if self._searched_next:
                    entry[SEARCHED] = self._searched_next
            self._own_journal().append(entry)
            self._done.entries[block] = entry
            self._searched_next = []
            self._done.verified.add(block)

    def _own_journal(self) -> durable.Journal:
        """That of this process; who has joined makes it with the first block."""
        if self._journal is None:
            assert self._member is not None
            folder = self.path / "rho" / layout.JOURNALS
            durable.inner_folder(folder)
            self._journal = durable.Journal(folder / f"{self._member.me.id}.jsonl", self.manifest.identity)
        return self._journal

    def set_E(self, E: ArrayLike) -> None:
        """Store the E of each target durably; a resumed run finds it in :attr:`E`.

        Parameters
        ----------
        E : array-like of int, shape (targets,)
            Each at least 1.

        Raises
        ------
        StoreMismatchError
            Finished blocks were computed with another E.
        StoreWriteError, InputError
            As for :meth:`write`.
        """
        data, digest = records.pack_E(E, self.shape[1])
        with self._writing("E"):
            digests = records.digests_of_E(self.path, self.manifest.identity)
            if self._done.entries and digests and digest not in digests:
                raise StoreMismatchError(
                    f"{self.path}: {len(self._done.entries)} blocks were computed with another E than the one found "
                    "now: choose another output path, or start again with resume=False"
                )
            records.write_E(self.path, data, digest, self.manifest.identity)

    def set_parameters(self, parameters: Mapping[str, dict[str, Any]]) -> None:
        """Store the tuned parameters of this job durably, before blocks that were computed with them.

        Parameters
        ----------
        parameters : mapping
            Question to answer, as :func:`pyedmcl.tuning.parameters.keeping` collects them.

        Raises
        ------
        StoreWriteError
            As for :meth:`write`.
        """
        with self._writing("tuned parameters"):
            if self._member is None:
                records.write_tuning(self.path, dict(parameters), self.manifest.identity)
            else:
                for question, answer in parameters.items():
                    records.keep_answer(self.path, question, answer, self.manifest.identity)

    def keep_answer(self, question: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question for tuned parameters that all who have joined take: that of who asked first.

        Raises
        ------
        StoreWriteError
            As for :meth:`write`.
        """
        with self._writing("tuned parameters"):
            return records.keep_answer(self.path, question, answer, self.manifest.identity)

    def set_searched(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Store durably which searches found the neighbours, as :attr:`searched` gives it back.

        Parameters
        ----------
        entries : sequence of mapping
            Numbers, text and tuples of them.

        Raises
        ------
        StoreWriteError
            As for :meth:`write`.
        """
        with self._writing("the record of searches"):
            plain = [dict(one) for one in entries]
            if self._member is None or self.E is None:  # how E was found is the same for all who join
                records.write_searched(self.path, plain, self.manifest.identity)
            else:
                self._searched_next = plain

    @property
    def _writable(self) -> bool:
        return self._journal is not None or self._member is not None

    @property
    def _joined(self) -> bool:
        return self._member is not None

    @contextlib.contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        with self._mutex:
            if not self._writable:
                raise StoreError(f"{self.path} is open for reading only: XmapStore.create_or_resume opens it to write")
            try:
                yield
            except OSError as error:
                room = "" if self.keep else f" (a block needs {self.block_rows * self._row_bytes / 1e6:.3g} MB)"
                raise durable.write_failure(
                    f"{len(self._done.entries)} of {self.n_blocks} blocks are kept in {self.path}, but {what} could "
                    "not be written",
                    f"{room}, then run the same command again: it continues from there",
                    error,
                ) from error
