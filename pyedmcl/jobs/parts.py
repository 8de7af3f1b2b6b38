"""What blocks give as files of a folder, one for each block, which processes that share the folder compute together."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import StoreError
from . import durable
from .blocks import Block, BlockResult, Record, Wait
from .claims import Member
from .records import DamagedError, as_searched
from .sinks import Sink
from .turns import SharedBlocks


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


class PartsSink:
    """Blocks whose results are files of a folder, which processes that share it compute together.

    Parameters
    ----------
    name : str
        Of the folder, within the private one of those who share; others may have other blocks.
    blocks : sequence of Block
        Numbered from 0; all who share the folder cut them alike.
    member : Member
    begin : float
        Where this process begins, from :func:`.turns.part_of`.
    job : Sink
        Of the job whose stage this is: what it keeps is told, and its tuned parameters are taken.
    """

    def __init__(self, name: str, blocks: Sequence[Block], member: Member, begin: float, job: Sink) -> None:
        self.answers, self.folder = job.answers, job.folder
        self._job, self._blocks = job, list(blocks)
        self._folder = member.folder / name
        self._left = {block.number for block in blocks}
        self._known = set(self._left)  # not done, as the runner knows
        self._shared = SharedBlocks(member, name, len(self._blocks), begin, self._look, self._finished)

    def _path(self, number: int) -> Path:
        return self._folder / f"part-{number}.npz"

    def _look(self) -> set[int]:
        try:
            there = set(os.listdir(self._folder))
        except FileNotFoundError:
            there = set()
        self._left = {number for number in self._left if self._path(number).name not in there}
        return self._left

    def _finished(self, number: int) -> bool:
        return number not in self._left or self._path(number).exists()

    @property
    def record(self) -> Record:
        """Of all blocks, by whomever they were computed."""
        record = Record()
        for block in self._blocks:
            searched = self._read(block.number)[0]["searched"]
            record = record.joined(Record(searched=tuple(as_searched(one) for one in searched)))
        return record

    def results(self) -> list[Any]:
        """What blocks gave, in their order, once none is pending."""
        return [list(self._read(block.number)[1].values()) for block in self._blocks]

    def _read(self, number: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        path = self._path(number)
        try:
            return unpacked(path)
        except (DamagedError, OSError) as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise StoreError(f"{path} is damaged ({error}) and was removed: run the same command again") from error

    def pending(self) -> list[Block]:
        left = self._look()
        return [block for block in self._blocks if block.number in left]

    def claim(self) -> Block | Wait | None:
        found = self._shared.claim()
        return self._blocks[found] if isinstance(found, int) else found

    def give_back(self, block: Block) -> None:
        self._shared.again(block.number)

    def elsewhere(self) -> Sequence[Block]:
        done = self._known - self._left
        self._known -= done
        return [self._blocks[number] for number in sorted(done)]

    def room(self, block: Block) -> None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        head = {"searched": [dict(one) for one in result.record.searched]}
        arrays = {f"array{place}": np.asarray(array) for place, array in enumerate(result.arrays)}
        path = self._path(block.number)
        try:
            durable.make_folder(self._folder)
            durable.write_file(path, packed(arrays, head))
        except OSError as error:
            raise durable.write_failure(
                f"{path} could not be written", ", then run the same command again: it continues from there", error
            ) from error
        self._left.discard(block.number)
        self._known.discard(block.number)
        self._shared.give_back(block.number)

    def kept(self) -> str | None:
        return self._job.kept()
