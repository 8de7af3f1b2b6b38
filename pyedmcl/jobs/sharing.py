"""Folders that several processes fill together: stores, and files of blocks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..atomic_files import PRIVATE_PREFIX, array_of, open_plain, stored_member
from ..errors import StoreError, StoreWriteError, warn
from . import durable, layout
from .blocks import Block, BlockResult, Record, Wait, cut, default_block_rows, now
from .claims import Member, Pace, SharedBlocks
from .records import DamagedError, ForeignError, as_searched, digest_of
from .runner import ListSink, ResultsSink, Sink, StoreSink
from .store import XmapStore

# What blocks give as files of a folder, one for each block, which processes that share the folder compute together.


_PART = re.compile(r"part-(\d+)-(\d+)\.npz")
_HEAD, _SUM, _OF = "head", "sha256", "of"

#: Head and arrays of a file.
Part = tuple[dict[str, Any], dict[str, NDArray[Any]]]
#: Numbers of blocks that a file holds: the first, and the one behind the last.
Span = tuple[int, int]


def packed(arrays: Mapping[str, NDArray[Any]], head: Mapping[str, Any], of: str) -> memoryview:
    """The bytes of a file that holds arrays and a head of plain data.

    Parameters
    ----------
    of : str
        To what the file belongs: a digest of the question, the step, and which part of it. The checksum covers it.
    """
    held = io.BytesIO()
    head = {**head, _OF: of}
    text = json.dumps({**head, _SUM: _digest(head, arrays)})
    named: dict[str, Any] = {_HEAD: np.frombuffer(text.encode(), np.uint8), **arrays}
    np.savez(held, **named)
    return held.getbuffer()


def unpacked(path: Path, of: str) -> Part:
    """Head and arrays of a file from :func:`packed`."""
    try:
        with _archive(path) as archive:
            head = _head(archive)
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            arrays = {name: array_of(stored_member(archive, f"{name}.npy")) for name in names if name != _HEAD}
        if head.pop(_SUM) != _digest(head, arrays) or not arrays:
            raise DamagedError("its checksum differs")
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged zip file, array or text may end in any of Python's errors
        raise DamagedError(str(error)) from error
    if head[_OF] != of:
        raise ForeignError("it belongs to another run, or to another place of this one")
    return head, arrays


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with os.fdopen(open_plain(path), "rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


def _head(archive: zipfile.ZipFile) -> dict[str, Any]:
    return dict(json.loads(bytes(array_of(stored_member(archive, f"{_HEAD}.npy")))))


def found(path: Path, of: str) -> Part | None:
    """As :func:`unpacked`; None where nothing is there, or what there is cannot be used, which a warning tells."""
    try:
        return unpacked(path, of)
    except FileNotFoundError:
        return None
    except (DamagedError, OSError) as error:
        why = "is not of this run" if isinstance(error, ForeignError) else "is damaged"
        warn(f"{path} {why} ({error}): it is computed anew")
        return None


def _digest(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of a head and of named arrays."""
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def part_name(begin: int, end: int) -> str:
    """The file of what blocks ``begin`` to ``end - 1`` gave, by their numbers: what :func:`blocks_in` counts."""
    return f"part-{begin}-{end}.npz"


def is_part(name: str) -> bool:
    """Whether files are named so."""
    return _PART.fullmatch(name) is not None


def rows_name(begin: int, end: int) -> str:
    """The file of what rows ``begin`` to ``end - 1`` gave, in a folder whose files are of rows and of no blocks."""
    return f"part-{begin}-{end}.npz"


#: The file of a folder that is there once all is done; it counts as a single block.
END = part_name(0, 1)


def end_of(of: str) -> str:
    """To what :data:`END` belongs, in the folder of a question with the digest ``of``."""
    return f"{of} end"


def covered(folder: Path, but: Collection[Span] = ()) -> list[Span]:
    """Ranges of blocks that are done, ascending, as names of files say; some may be left out."""
    try:
        names = durable.names_in(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    ranges = [(int(match[1]), int(match[2])) for name in names if (match := _PART.fullmatch(name))]
    return _disjoint(one for one in ranges if one not in but)


def _disjoint(ranges: Iterable[Span]) -> list[Span]:
    """Ranges in order, without those that lie within, or reach into, one that begins before."""
    disjoint: list[Span] = []
    for begin, end in sorted(ranges, key=lambda one: (one[0], -one[1])):
        if begin < end and (not disjoint or begin >= disjoint[-1][1]):
            disjoint.append((begin, end))
    return disjoint


def blocks_in(folder: Path) -> int:
    """How many blocks are done."""
    return sum(end - begin for begin, end in covered(folder))


def entries_in(folder: Path) -> list[dict[str, Any]]:
    """What is told of the blocks that are done: when, and by whom; nothing of files that cannot be read."""
    entries: list[dict[str, Any]] = []
    for begin, end in covered(folder):
        # It may have been joined to its neighbour meanwhile, or be damaged.
        with contextlib.suppress(Exception), _archive(folder / part_name(begin, end)) as archive:
            entries += [dict(entry) for entry in _head(archive).get("done", ())]
    return entries


class PartsSink:
    """Blocks whose results are files of a folder, which processes that share it compute together.

    Parameters
    ----------
    kind : str
        First part of the names of its claims.
    blocks : sequence of Block
        Numbered from 0; all who share the folder cut them alike.
    begin : float
        Where this process begins, from :func:`.claims.begin_of`.
    of : str
        Digest of the question; with ``kind`` and how the blocks are cut, it says to what files belong.
    job : Sink, optional
        Of the job whose stage this is: what it keeps is told, and its tuned parameters are taken.
    """

    def __init__(
        self, folder: Path, kind: str, blocks: Sequence[Block], member: Member, begin: float, of: str,
        job: Sink | None = None,
    ) -> None:  # fmt: skip
        self.answers = None if job is None else job.answers
        self.device: Mapping[str, Any] = {} if job is None else job.device
        self.folder: Path | None = folder if job is None else job.folder
        self._job, self._blocks, self._folder = job, list(blocks), folder
        self._left = {block.number for block in blocks}
        self._known = set(self._left)  # not done, as the runner knows
        self._parts: dict[Span, Part] = {}  # that were read
        self._refused: set[Span] = set()  # of which the files are damaged or foreign, until they are written anew
        self._of = digest_of([of, kind, [block.end for block in blocks]])
        self._member = member
        self._shared = SharedBlocks(member, kind, len(self._blocks), begin, self._look, self._finished)

    def _look(self) -> set[int]:
        for begin, end in covered(self._folder, self._refused):
            self._left.difference_update(range(begin, end))
        return self._left

    def _finished(self, number: int) -> bool:
        return number not in self._left or number not in self._look()

    @property
    def record(self) -> Record:
        """Of all blocks, by whomever they were computed."""
        record = Record()
        for head, _ in self._all():
            record = record.joined(Record(searched=tuple(as_searched(one) for one in head["searched"])))
        return record

    def results(self) -> list[Any]:
        """What parts of blocks gave, in their order, once none is pending."""
        return [self._result(arrays) for _, arrays in self._all()]

    def _result(self, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """What a block gave, of the arrays of its file."""
        return list(arrays.values())

    def _arrays(self, result: Any) -> dict[str, NDArray[Any]]:
        """The arrays of a file, of what a block gave."""
        return {f"array{place}": np.asarray(array) for place, array in enumerate(result)}

    #: Whether neighbouring blocks are joined to one file.
    joins = False

    def _joined(self, results: Sequence[Any]) -> Any:
        """What neighbouring blocks give together."""
        raise NotImplementedError

    def _all(self) -> list[Part]:
        """What was read of all blocks, in their order."""
        if self._unread() and self._lacking():
            raise StoreError(f"parts of {self._folder} were removed while they were read: run the same command again")
        return [self._parts[span] for span in sorted(self._parts)]

    def _unread(self) -> set[int]:
        """Blocks of which nothing was read yet."""
        return set(range(len(self._blocks))).difference(*(range(*span) for span in self._parts))

    def _lacking(self) -> set[int]:
        """Read all files that were not read yet. What then lacks must be computed: no file has it, or one that is
        damaged or belongs to another run."""
        joined = True
        while joined:
            joined = False
            for span in covered(self._folder, self._refused):
                if span not in self._parts:
                    file = self._folder / part_name(*span)
                    part = found(file, self._file_of(span))
                    if part is not None:
                        self._parts[span] = part
                    elif os.path.lexists(file):
                        self._refused.add(span)
                        with contextlib.suppress(OSError):
                            file.unlink()
                    else:  # another process has joined it to its neighbour meanwhile
                        joined = True
        self._parts = {span: self._parts[span] for span in _disjoint(self._parts)}
        return self._unread()

    def _file_of(self, span: Span) -> str:
        """To what the file of some blocks belongs."""
        return f"{self._of} {span[0]}-{span[1]}"

    def pending(self) -> list[Block]:
        left = self._look()
        return [block for block in self._blocks if block.number in left]

    def claim(self) -> Block | Wait | None:
        block = self._shared.claim()
        if block is None and not self._shared.at_work and (lacking := self._unread() and self._lacking()):
            # What counted as done is not there any more, or was never of this run.
            self._left |= lacking
            block = self._shared.claim()
        return self._blocks[block] if isinstance(block, int) else block

    def give_back(self, block: Block) -> None:
        self._shared.give_back(block.number)

    def elsewhere(self) -> Sequence[Block]:
        done = self._known - self._left
        self._known -= done
        return [self._blocks[number] for number in sorted(done)]

    def room(self, block: Block) -> None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        me = self._member.me
        entry = {"time": now(), "writer": me.id, "host": me.host, "device": me.device}
        head = {"searched": [dict(one) for one in result.record.searched], "done": [entry]}
        part = self._folder / part_name(block.number, block.number + 1)
        advice = ", then run the same command again: it continues from there"
        with durable.explained(f"{part} could not be written", advice):
            durable.inner_folder(self._folder)
            self._write(block.number, block.number + 1, head, result.arrays)
            self._left.discard(block.number)
            self._known.discard(block.number)
            self._shared.done(block.number)
            self._join_neighbours(block.number)

    def _write(self, begin: int, end: int, head: Mapping[str, Any], result: Any) -> None:
        file = packed(self._arrays(result), head, self._file_of((begin, end)))
        durable.write_file(self._folder / part_name(begin, end), file)
        self._refused.discard((begin, end))

    def _join_neighbours(self, number: int) -> None:
        """Make one file of two, as long as both halves of a range are there: there are few files, and less to read.

        Ranges begin at multiples of their length, a power of two, so that whoever joins at the same time writes the
        same.
        """
        n, length = len(self._blocks), 1
        while self.joins and length < n:
            first = number // (2 * length) * 2 * length
            middle, end = min(first + length, n), min(first + 2 * length, n)
            length *= 2
            if middle == end:
                continue
            try:
                spans = (first, middle), (middle, end)
                halves = [unpacked(self._folder / part_name(*span), self._file_of(span)) for span in spans]
            except (OSError, DamagedError):  # not there yet, or joined by somebody else
                return
            result = self._joined([self._result(arrays) for _, arrays in halves])
            head = {name: [one for head, _ in halves for one in head.get(name, ())] for name in ("searched", "done")}
            self._write(first, end, head, result)
            for span in spans:
                (self._folder / part_name(*span)).unlink(missing_ok=True)

    def kept(self) -> str | None:
        return None if self._job is None else self._job.kept()


class StageSink(PartsSink):
    """Blocks of a stage, whose arrays have the rows of the stage: in few files, since all who share it read them."""

    joins = True

    def _joined(self, results: Sequence[Any]) -> Any:
        return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]


# Stores that several processes fill together: sinks whose blocks are claimed in a folder; see :mod:`.claims`.


#: Seconds between two looks at what others have done, while there is work; more where a look takes long.
LOOK_SECONDS = 5.0
_STAGE_FILES = 16  # of a first stage that one process computes
_GATHERING = 0.2  # seconds between two looks whether somebody else has read all journals
_GATHER = "journals"  # the claim of who reads them


@contextlib.contextmanager
def sink_at(
    where: Path, device: str, begin: float | None, open_stores: Callable[[Member | None], Sequence[XmapStore]]
) -> Iterator[AloneSink | SharedSink]:
    """A sink for the stores of a folder, which this process fills alone or together with others.

    Parameters
    ----------
    where : Path
        The folder.
    device : str
        Its name, to be told to others.
    begin : float or None
        From :func:`.claims.begin_of`; None: alone.
    open_stores : callable
        Gives stores that are open for writing, one for each layer, for this process as one of several or alone.
    """
    with contextlib.ExitStack() as stack:
        member = None if begin is None else stack.enter_context(Member(where, device))
        stores = open_stores(member)
        for store in stores:
            stack.enter_context(store)
        if member is None or begin is None:
            yield AloneSink(stores, where)
        else:
            yield stack.enter_context(SharedSink(stores, where, member, begin))


class AloneSink(StoreSink):
    """Stores that this process fills alone. What a first stage finds is kept until the stores have it."""

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """Cut so that some minutes of work are not lost, and that there are few files."""
        rows = min(len(blocks[0]), max(default_block_rows(n), -(-n // _STAGE_FILES)))
        blocks = cut(n, rows, len(blocks[0].layers))
        return KeptStage(self._stage_folder(name), blocks, self, identity_of(self.stores[0]))

    def set_E(self, E: ArrayLike, record: Record) -> None:
        super().set_E(E, record)
        with contextlib.suppress(OSError):
            layout.remove_folder(self._stage_folder("E"), is_part)

    def _stage_folder(self, name: str) -> Path:
        return Path(self._where) / f"{PRIVATE_PREFIX}{name}-{identity_of(self.stores[0])}"


class KeptStage(ListSink):
    """Blocks of a stage, each in a file named by its rows, of which those that are there are not computed again.

    Parameters
    ----------
    folder : Path
        Made when the first block is written.
    job : StoreSink
        Whose stage this is.
    of : str
        Digest of what decides it.
    """

    def __init__(self, folder: Path, blocks: Sequence[Block], job: StoreSink, of: str) -> None:
        super().__init__(blocks, job)
        self._kept_in, self._n, self._of = folder, len(blocks), of
        for block in blocks:
            part = found(folder / rows_name(block.begin, block.end), self._rows_of(block))
            if part is not None:
                head, arrays = part
                searched = tuple(as_searched(one) for one in head["searched"])
                self._unclaimed.remove(block)
                super().write(block, BlockResult(list(arrays.values()), Record(searched=searched)))

    def write(self, block: Block, result: BlockResult) -> None:
        arrays = {f"array{place}": np.asarray(array) for place, array in enumerate(result.arrays)}
        head = {"searched": [dict(one) for one in result.record.searched]}
        part = self._kept_in / rows_name(block.begin, block.end)
        with durable.explained(f"{part} could not be written", ", then run the same command again"):
            durable.inner_folder(self._kept_in)
            durable.write_file(part, packed(arrays, head, self._rows_of(block)))
        super().write(block, result)

    def _rows_of(self, block: Block) -> str:
        """To what the file of a block belongs."""
        return f"{self._of} rows {block.begin}-{block.end}"

    def kept(self) -> str:
        done = self._n - len(self._pending)
        return (
            f"{done:,} of {self._n:,} blocks of the search for E are kept in {self._kept_in.parent}; the same call (or "
            "command) continues there"
        )


def identity_of(store: XmapStore) -> str:
    """What decides a first stage of the job of a store, as a few letters."""
    manifest = store.manifest
    same = {name: value for name, value in manifest.parameters.items() if name != "lib_size"}
    return digest_of([manifest.input_digest, same, manifest.version])[:16]


def stage_blocks(n: int, block_rows: int) -> list[Block]:
    """Blocks of a stage of a job whose store has blocks of ``block_rows`` rows: of all who share it, the same."""
    return cut(n, min(default_block_rows(n), block_rows))


class SharedAnswers(MutableMapping[str, dict[str, Any]]):
    """Tuned parameters of a job that several processes share: who asks first decides for all.

    What a device refuses may be replaced for this process only.

    Parameters
    ----------
    stores : sequence of XmapStore
        Where they are kept, each in all; the first one decides.
    """

    def __init__(self, stores: Sequence[XmapStore]) -> None:
        self._stores = stores
        self._known: dict[str, dict[str, Any]] = {}
        for store in stores:
            self._known |= store.parameters

    def __getitem__(self, question: str) -> dict[str, Any]:
        answer = self._known.get(question) or self._stores[0].kept_answer(question)
        if answer is None:
            raise KeyError(question)
        if question not in self._known:
            self[question] = answer
        return answer

    def __setitem__(self, question: str, answer: dict[str, Any]) -> None:
        if question not in self._known:
            for store in self._stores:
                answer = store.keep_answer(question, answer)
        self._known[question] = answer

    def __delitem__(self, question: str) -> None:
        del self._known[question]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class SharedSink(StoreSink):
    """Stores that several processes fill together; a context manager.

    Parameters
    ----------
    stores : sequence of XmapStore
        One for each layer, from :meth:`.store.XmapStore.join`.
    where : path-like
        The folder that is shared.
    begin : float
        From :func:`.claims.begin_of`.
    """

    def __init__(self, stores: Sequence[XmapStore], where: Any, member: Member, begin: float) -> None:
        super().__init__(stores, where)
        self.answers = SharedAnswers(stores)
        self._member, self._begin = member, begin
        self._known = {block.number: block for block in super().pending()}  # not done, as the runner knows
        self._lacking = set(self._known)  # not done, at the last look
        self._doubtful: set[int] = set()  # written, but in no journal: who wrote it was killed in between
        self._looks = Pace(LOOK_SECONDS)
        self._blocks = SharedBlocks(member, "block", stores[0].n_blocks, begin, self._left, self._finished)

    def __enter__(self) -> SharedSink:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None and self._complete():
            self._member.settle(self._settle)

    def _settle(self) -> None:
        for store in self.stores:
            store.settle()

    def _left(self) -> set[int] | Wait:
        self._lacking = {number for store in self.stores for number in store.unwritten()}
        if self._lacking or self._complete():
            return self._lacking
        # There may be a thousand journals. One process reads them, once all is written, and the others its summary.
        for store in self.stores:
            store.refresh(whole=True)
        if not self._complete():
            if not (self._member.take(_GATHER) or self._member.take_over(_GATHER)):
                return Wait(_GATHERING)
            try:
                for store in self.stores:
                    store.gather()
            finally:
                self._member.give(_GATHER)
            self._lacking = {block.number for block in self.pending()}
            self._doubtful = set(self._lacking)
        return self._lacking

    def _complete(self) -> bool:
        return all(store.complete for store in self.stores)

    def _finished(self, number: int) -> bool:
        return all([self._has(store, number) for store in self.stores])

    def _has(self, store: XmapStore, number: int) -> bool:
        """Whether a store has a block, also if somebody else wrote it a moment ago."""
        if number not in self._doubtful:
            return store.written(number)
        store.refresh()
        return store.finished(number)

    def _is_done(self, block: Block) -> bool:
        """Whether somebody else has finished what was asked of a block."""
        stores = [self.stores[place] for place in block.layers]
        for store in stores:
            store.refresh()
        return all(store.finished(block.number) for store in stores)

    def claim(self) -> Block | Wait | None:
        number = self._blocks.claim()
        if number is None or isinstance(number, Wait):
            return number
        layers: tuple[int, ...] = (0,)
        if len(self.stores) > 1:
            layers = tuple(place for place, store in enumerate(self.stores) if not self._has(store, number))
        return Block(number, *self.stores[0].rows(number), layers)

    def give_back(self, block: Block) -> None:
        self._blocks.give_back(block.number)

    def elsewhere(self) -> Sequence[Block]:
        with self._looks as due:
            if due:
                self._left()
        if len(self._lacking) >= len(self._known):
            return ()
        done = [block for number, block in self._known.items() if number not in self._lacking]
        self._known = {number: block for number, block in self._known.items() if number in self._lacking}
        return done

    def write(self, block: Block, result: BlockResult) -> None:
        try:
            super().write(block, result)
        except StoreWriteError as error:
            # Others computed the block while this process gave no sign of life, as when it was suspended, and the last
            # of them cleared what it had begun to write.
            if not isinstance(error.__cause__, FileNotFoundError) or not self._is_done(block):
                raise
        self._known.pop(block.number, None)
        self._lacking.discard(block.number)
        self._blocks.done(block.number)

    def _keep_answers(self, place: int) -> None:
        pass  # they were kept when they were asked for

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """As every process that shares the folder cuts and keeps it."""
        kind = f"{name}-{identity_of(self.stores[0])}"
        blocks = stage_blocks(n, self.stores[0].block_rows)
        folder, of = self._member.folder / kind, identity_of(self.stores[0])
        return StageSink(folder, kind, blocks, self._member, self._begin, of, self)
