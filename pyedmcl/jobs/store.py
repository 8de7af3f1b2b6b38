"""The store that survives: an all-pairs result on disk, block by block, that a killed run can continue."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError, warn
from . import durable, layout, records
from .blocks import Manifest, now
from .claims import Member, remove_claims, require_alone
from .layout import Chunks, EdgeChunks, chunks_of

# Which blocks of a store are done, as its journals and the files of blocks say.


class Finished:
    """The finished blocks of a store.

    Parameters
    ----------
    path : pathlib.Path
        Of the store.
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


# What can be read of a result on disk, finished or not: its blocks, E, tuned parameters, and records of searches.


#: In a line of a journal of joined runs: what searched for neighbours.
SEARCHED = "searched"


class StoredMap:
    """A result on disk, as it is read.

    Parameters
    ----------
    manifest : Manifest
        As stored.

    Attributes
    ----------
    shape : (int, int)
        (N, N), or (N, targets): row = library, column = target.
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
        self._row_bytes = self.shape[1] * records.DTYPES[manifest.dtype].itemsize
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
        """Edges that were kept of a block's rows, of type :func:`.layout.edge_dtype`; None where not yet done."""
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
    def rho(self) -> records.LazyMatrix:
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
        return records.LazyMatrix(self.shape, self.manifest.dtype, self.block_rows, self._read_block)

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
            stored = records.DTYPES[self.manifest.dtype]
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
        resume : bool
            False removes what an earlier run stored there (nothing else) and starts anew.
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
        member : Member
            This process, among those who share the folder.
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
        """Read the journals of all, and write one of the whole, so that of many processes one reads them."""
        with self._writing("the journal of all blocks"):
            self._done.take()
            self._write_whole()

    def _write_whole(self) -> None:
        lines = [durable.journal_line(entry, self.manifest.identity) for entry in self._done.ordered()]
        durable.write_file(self.path / "rho" / layout.JOURNAL, b"".join(lines))

    def settle(self) -> None:
        """Make a store that joined runs have written like one that a single run wrote, for the last of them."""
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
        rows : array-like of float, shape (stop - start, targets)
            rho of the library rows ``start, stop = store.rows(block)``; converted to the stored type. Where edges are
            kept, those of these rows, of type :func:`.layout.edge_dtype`.
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
        """
        with self._writing("tuned parameters"):
            if self._member is None:
                records.write_tuning(self.path, dict(parameters), self.manifest.identity)
            else:
                for question, answer in parameters.items():
                    records.keep_answer(self.path, question, answer, self.manifest.identity)

    def keep_answer(self, question: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question for tuned parameters that all who have joined take: that of who asked first."""
        with self._writing("tuned parameters"):
            return records.keep_answer(self.path, question, answer, self.manifest.identity)

    def set_searched(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Store durably which searches found the neighbours, as :attr:`searched` gives it back.

        Parameters
        ----------
        entries : sequence of mapping
            Numbers, text and tuples of them.
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


# How stored results are opened: to be read, to be written alone or with other processes, or several in a folder.


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
    mode : {"r"}
        Reading is all there is; :meth:`XmapStore.create_or_resume` writes.

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
            f"{path / 'rho' / records.METADATA} is damaged or missing: what is read here is right, other readers "
            "of Zarr may be misled. Running the same command again mends it."
        )
    return store
