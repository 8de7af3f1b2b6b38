"""Counts of a long sweep that may be killed at any moment: finished rows are kept in a file, to go on from there."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import StoreError, StoreForeignError
from ..files import path_of
from ..jobs import durable
from ..jobs.blocks import Block, BlockResult, Record
from ..jobs.ownership import refuse_another
from ..jobs.parts import packed, unpacked
from ..jobs.records import DamagedError
from ..jobs.runner import Runner
from .counts import Counts
from .engine import CountingProblem, combine, join_rows, require_consistent
from .partial import Partial
from .problem import RqaProblem

_FORMAT = "pyedmcl recurrence checkpoint 3"
_BLOCK_SECONDS = 20.0  # between two writes, once the speed is known
_FIRST_CELLS = 1 << 32
_FIELDS = tuple(f.name for f in fields(Partial))


def quantify_with_checkpoint(
    path: str | os.PathLike[str], runner: Runner, problem: RqaProblem, x: Any, y: Any, *,
    tile: int | None,
) -> list[Counts]:  # fmt: skip
    """As :func:`~pyedmcl.recurrence.engine.quantify`, block by block of rows; each finished one is on disk at once.

    Parameters
    ----------
    path : path
        The file; where it exists, the work goes on behind the rows that it holds.
    runner, problem, x, y, tile
        As for the engine.

    Raises
    ------
    StoreForeignError
        The file is something else.
    StoreMismatchError
        It belongs to other data or parameters; the message says which differ.
    StoreError
        Another run writes it at this moment; the message names the process.
    StoreWriteError
        It cannot be written.
    Interrupted
        Ctrl-C; the message says what is kept.
    """
    file = path_of(path, "checkpoint")
    identity = identity_of(problem, x, y)
    read(file, identity)  # before anything is touched, and again under the lease
    lease = _Lease(file)
    try:
        sink = CheckpointSink(file, identity, CountingProblem(problem, x, y, tile, partial=True))
        runner.run(sink.problem, sink)
        return require_consistent(runner.infos, problem, combine(problem, [sink.state()], x))
    finally:
        lease.release()


class CheckpointSink:
    """Rows of a matrix in a file that is replaced after each block, of such a size that it takes some seconds.

    The file holds the rows from the first one on; a block that is finished before those above it waits in memory.

    Parameters
    ----------
    file : Path
    identity : dict
        From :func:`identity_of`.
    problem : CountingProblem
        One whose blocks are partial.
    """

    answers = None

    def __init__(self, file: Path, identity: dict[str, str], problem: CountingProblem) -> None:
        self.problem, self.record = problem, Record()
        self.folder = file.absolute().parent
        self.device: Mapping[str, Any] = {}
        self._file, self._identity = file, identity
        self._state = read(file, identity)
        self._claimed = self._done
        self._begun: dict[int, float] = {}  # when blocks were claimed, by their first row
        self._waiting: dict[int, list[Partial]] = {}
        self._returned: list[Block] = []
        self._cells = _FIRST_CELLS  # of the next block

    @property
    def _done(self) -> int:
        return self._state[0].end if self._state else 0

    def state(self) -> list[Partial]:
        """Rows from the first one on, one part for each radius."""
        assert self._state is not None
        return self._state

    def pending(self) -> list[Block]:
        n = self.problem.matrix.n_rows
        return [Block(self._done, self._done, n)] if self._done < n else []

    def claim(self) -> Block | None:
        if self._returned:
            block = self._returned.pop()
            self._begun[block.begin] = time.monotonic()
            return block
        matrix, begin = self.problem.matrix, self._claimed
        if begin >= matrix.n_rows:
            return None
        width = max(matrix.n_columns - begin, 1) if matrix.symmetric else matrix.n_columns
        rows = max(self._cells // width // 32, 1) * 32
        self._claimed = min(begin + rows, matrix.n_rows)
        self._begun[begin] = time.monotonic()
        return Block(begin, begin, self._claimed)

    def give_back(self, block: Block) -> None:
        self._returned.append(block)

    def elsewhere(self) -> Sequence[Block]:
        return ()

    def room(self, block: Block) -> None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        seconds = max(time.monotonic() - self._begun.pop(block.begin), 1e-3)
        self._cells = int(max(self.problem.size(block) / seconds * _BLOCK_SECONDS, _FIRST_CELLS))
        self.record = self.record.joined(result.record)
        self._waiting[block.begin] = result.arrays
        parts = [] if self._state is None else [self._state]
        end = self._done
        while end in self._waiting:
            parts.append(self._waiting.pop(end))
            end = parts[-1][0].end
        if end > self._done:
            state = join_rows(self.problem.matrix, parts)
            write(self._file, self._identity, state)
            self._state = state

    def kept(self) -> str:
        n = self.problem.matrix.n_rows
        return f"{self._done:,} of {n:,} rows are kept in {self._file}; the same call goes on from there"


class _Lease(durable.Lease):
    """One run at a time for a checkpoint; others in the same folder are free."""

    def __init__(self, file: Path) -> None:
        folder = file.absolute().parent
        super().__init__(folder / f"{durable.LOCK_NAME}-{file.name}")
        try:
            durable.make_folder(folder)
            self.acquire()
            for left in folder.glob(f"{durable.TEMPORARY_PREFIX}*-{glob.escape(file.name)}"):  # by killed runs
                left.unlink(missing_ok=True)
        except OSError as error:
            self.release()
            raise durable.write_failure(
                f"checkpoint={str(file)!r} could not be written", "; what it holds is kept", error
            ) from error
        except StoreError as error:
            # The lease speaks of the folder, which other runs may use.
            raise StoreError(f"checkpoint={str(file)!r}{str(error).removeprefix(str(folder))}") from None


def identity_of(problem: RqaProblem, x: Any, y: Any) -> dict[str, str]:
    """What a checkpoint belongs to: the problem's fields and the data's digests, as JSON texts."""
    fields_of = asdict(problem)
    sides = [side for pair in (x, y) if pair is not None for side in (pair if isinstance(pair, tuple) else (pair,))]
    described: dict[str, Any] = {"data": [_digest(side) for side in sides]}
    for name, value in fields_of.items():
        described[name] = _digest(value) if isinstance(value, np.ndarray) else value
    if fields_of["joint"] is not None and fields_of["joint"]["column_limits"] is not None:
        described["joint"] = {**fields_of["joint"], "column_limits": _digest(fields_of["joint"]["column_limits"])}
    # As text, so that a radius that is NaN equals itself.
    return {name: json.dumps(value) for name, value in described.items()}


def _digest(values: NDArray[Any]) -> str:
    head = f"{values.dtype.name} {values.shape} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(values).tobytes()).hexdigest()


def packed_parts(state: Sequence[Partial]) -> dict[str, NDArray[Any]]:
    """Arrays of the same rows, a part per radius."""
    return {f"{name}{r}": np.asarray(getattr(part, name)) for r, part in enumerate(state) for name in _FIELDS}


def unpacked_parts(arrays: Mapping[str, NDArray[Any]]) -> list[Partial]:
    """The inverse of :func:`packed_parts`."""
    radii = range(len(arrays) // len(_FIELDS))
    return [Partial(**_unpacked({name: arrays[f"{name}{r}"] for name in _FIELDS})) for r in radii]


def write(file: Path, identity: dict[str, str], state: Sequence[Partial]) -> None:
    """Replace the file by ``state``: rows 0 to ``state[0].end``, a part per radius."""
    held = packed(packed_parts(state), {"identity": identity}, _FORMAT)
    with durable.explained(f"checkpoint={str(file)!r} could not be written", "; finished rows of before are kept"):
        durable.write_file(file, held)


def read(file: Path, identity: dict[str, str]) -> list[Partial] | None:
    """What the file holds, or None where there is none."""
    if not os.path.exists(file):
        return None
    try:
        head, arrays = unpacked(file, _FORMAT)
        state, stored = unpacked_parts(arrays), head["identity"]
    except (DamagedError, LookupError, TypeError, ValueError, OSError) as error:
        raise StoreForeignError(
            f"checkpoint={str(file)!r} is no recurrence checkpoint of this version, or is damaged ({error}); name "
            "another file, or remove it"
        ) from error
    refuse_another(file, stored, identity, "checkpoint")
    return state


def _unpacked(part: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: int(array) if array.ndim == 0 else array for name, array in part.items()}
