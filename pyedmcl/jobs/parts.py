"""What blocks give as files of a folder, one for each block, which processes that share the folder compute together."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import StoreError
from . import durable
from .blocks import Block, BlockResult, Record, Wait
from .claims import Member
from .manifest import now
from .records import DamagedError, as_searched
from .sinks import Sink
from .turns import SharedBlocks

_PART = re.compile(r"part-(\d+)-(\d+)\.npz")


def packed(arrays: Mapping[str, NDArray[Any]], head: Mapping[str, Any]) -> memoryview:
    """The bytes of a file that holds arrays, a head of plain data, and the checksum of the arrays."""
    held = io.BytesIO()
    text = json.dumps({**head, "sha256": digest_of(arrays)})
    named: dict[str, Any] = {"head": np.frombuffer(text.encode(), np.uint8), **arrays}
    np.savez(held, **named)
    return held.getbuffer()


def unpacked(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Head and arrays of a file from :func:`packed`.

    Raises
    ------
    FileNotFoundError
        It is not there.
    DamagedError
        It is none, or has changed.
    """
    try:
        with np.load(path, allow_pickle=False) as held:
            head = json.loads(bytes(held["head"]))
            arrays = {name: held[name] for name in held.files if name != "head"}
            # The first checkpoints of recurrence had none, only the sums of a zip file.
            if head.get("sha256", digest_of(arrays)) != digest_of(arrays) or not arrays:
                raise DamagedError("its checksum differs")
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged zip file, array or text may end in any of Python's errors
        raise DamagedError(str(error)) from error
    return head, arrays


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of named arrays."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def part_name(begin: int, end: int) -> str:
    """The file of what blocks ``begin`` to ``end - 1`` gave, by their numbers: what :func:`blocks_in` counts."""
    return f"part-{begin}-{end}.npz"


def rows_name(begin: int, end: int) -> str:
    """The file of what rows ``begin`` to ``end - 1`` gave, in a folder whose files are of rows and of no blocks."""
    return f"part-{begin}-{end}.npz"


#: The file of a folder that is there once all is done; it counts as a single block.
END = part_name(0, 1)


def covered(folder: Path) -> list[tuple[int, int]]:
    """Ranges of blocks that are done, ascending; what lies within a larger one is left out."""
    disjoint: list[tuple[int, int]] = []
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    ranges = [(int(match[1]), int(match[2])) for name in names if (match := _PART.fullmatch(name))]
    for begin, end in sorted(ranges, key=lambda one: (one[0], -one[1])):
        if not disjoint or end > disjoint[-1][1]:
            disjoint.append((begin, end))
    return disjoint


def blocks_in(folder: Path) -> int:
    """How many blocks are done."""
    return sum(end - begin for begin, end in covered(folder))


def entries_in(folder: Path) -> list[dict[str, Any]]:
    """What is told of the blocks that are done: when, and by whom; nothing of files that cannot be read."""
    entries: list[dict[str, Any]] = []
    for begin, end in covered(folder):
        part = folder / part_name(begin, end)
        # It may have been joined to its neighbour meanwhile, or be damaged.
        with contextlib.suppress(Exception), np.load(part, allow_pickle=False) as held:
            entries += json.loads(bytes(held["head"])).get("done", ())
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
    job : Sink, optional
        Of the job whose stage this is: what it keeps is told, and its tuned parameters are taken.
    """

    def __init__(
        self, folder: Path, kind: str, blocks: Sequence[Block], member: Member, begin: float, job: Sink | None = None
    ) -> None:
        self.answers = None if job is None else job.answers
        self.device: Mapping[str, Any] = {} if job is None else job.device
        self.folder: Path | None = folder if job is None else job.folder
        self._job, self._blocks, self._folder = job, list(blocks), folder
        self._left = {block.number for block in blocks}
        self._known = set(self._left)  # not done, as the runner knows
        self._member = member
        self._shared = SharedBlocks(member, kind, len(self._blocks), begin, self._look, self._finished)

    def _look(self) -> set[int]:
        for begin, end in covered(self._folder):
            self._left.difference_update(range(begin, end))
        return self._left

    def _finished(self, number: int) -> bool:
        return number not in self._left or number not in self._look()

    @property
    def record(self) -> Record:
        """Of all blocks, by whomever they were computed."""
        record = Record()
        for head, _ in self._read_all():
            record = record.joined(Record(searched=tuple(as_searched(one) for one in head["searched"])))
        return record

    def results(self) -> list[Any]:
        """What parts of blocks gave, in their order, once none is pending."""
        return [self._result(arrays) for _, arrays in self._read_all()]

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

    def _read_all(self) -> list[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
        while True:
            try:
                return [self._read(begin, end) for begin, end in covered(self._folder)]
            except FileNotFoundError:  # another process has joined it to its neighbour meanwhile
                continue

    def _read(self, begin: int, end: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        path = self._folder / part_name(begin, end)
        try:
            return unpacked(path)
        except FileNotFoundError:
            raise
        except (DamagedError, OSError) as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise StoreError(f"{path} is damaged ({error}) and was removed: run the same command again") from error

    def pending(self) -> list[Block]:
        left = self._look()
        return [block for block in self._blocks if block.number in left]

    def claim(self) -> Block | Wait | None:
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
            durable.make_folder(self._folder)
            self._write(block.number, block.number + 1, head, result.arrays)
            self._left.discard(block.number)
            self._known.discard(block.number)
            self._shared.done(block.number)
            self._join_neighbours(block.number)

    def _write(self, begin: int, end: int, head: Mapping[str, Any], result: Any) -> None:
        durable.write_file(self._folder / part_name(begin, end), packed(self._arrays(result), head))

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
                halves = [unpacked(self._folder / part_name(*half)) for half in ((first, middle), (middle, end))]
            except (FileNotFoundError, DamagedError):  # not there yet, or joined by somebody else
                return
            result = self._joined([self._result(arrays) for _, arrays in halves])
            head = {name: [one for head, _ in halves for one in head.get(name, ())] for name in ("searched", "done")}
            self._write(first, end, head, result)
            for half in ((first, middle), (middle, end)):
                (self._folder / part_name(*half)).unlink(missing_ok=True)

    def kept(self) -> str | None:
        return None if self._job is None else self._job.kept()


class StageSink(PartsSink):
    """Blocks of a stage, whose arrays have the rows of the stage: in few files, since all who share it read them."""

    joins = True

    def _joined(self, results: Sequence[Any]) -> Any:
        return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]
