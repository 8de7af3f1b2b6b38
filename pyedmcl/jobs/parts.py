"""What blocks give as files of a folder, one for each block, which processes that share the folder compute together."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import StoreError, warn
from ..files import array_of, open_plain, stored_member
from . import durable
from .blocks import Block, BlockResult, Record, Wait
from .claims import Member
from .manifest import now
from .records import DamagedError, ForeignError, as_searched, digest_of
from .sinks import Sink
from .turns import SharedBlocks

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
    arrays, head : mapping
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
    """Head and arrays of a file from :func:`packed`.

    Raises
    ------
    FileNotFoundError
        It is not there.
    ForeignError
        It is whole, and belongs to something else than ``of``.
    DamagedError
        It is none, or has changed.
    """
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
    folder : Path
    kind : str
        First part of the names of its claims.
    blocks : sequence of Block
        Numbered from 0; all who share the folder cut them alike.
    member : Member
    begin : float
        Where this process begins, from :func:`.turns.begin_of`.
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
