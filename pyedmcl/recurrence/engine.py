"""Recurrence matrices cut into rows for devices, their counts put together, and kept in folders."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import path_of
from ..device.memory import budget
from ..errors import StoreError, StoreForeignError
from ..jobs import durable
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..jobs.claims import Member
from ..jobs.records import DamagedError, digest_of_identity, is_ours, mark, refuse_another
from ..jobs.runner import ListSink, LocalRunner, Runner
from ..jobs.sharing import PartsSink, packed, unpacked
from ..kernels import spec
from ..kernels.build import build
from ..launch.staging import wrong_result
from ..tuning.parameters import parameters
from .counts import KINDS, Counts, Partial, finish, in_order, join
from .problem import RqaProblem, require_precision
from .sweep import WALKED_KINDS, Finish, LineBuffers, TileSweep, lines_in, segment_bytes

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..device.info import DeviceInfo


# Parts of a matrix that several devices have walked, joined and finished on one of them.


class DeviceJoin:
    """Joins and finishes on a device, so that the host, which all devices would wait for, only hands parts on.

    Parameters
    ----------
    lines : sequence of int
        Diagonals, rows and columns of a part, as its segments have them.
    """

    def __init__(self, executor: Executor, problem: RqaProblem, lines: Sequence[int]) -> None:
        self._executor, self._problem = executor, problem
        self._longest = max(problem.n_rows, problem.n_columns)
        self._held: list[Buffer] = []
        self._finish = Finish(executor, problem, self._longest)
        self._buffers = LineBuffers.allocated(self._new, lines, self._longest)
        self._other = self._new(segment_bytes(max(lines)))
        values = dict(parameters(spec("recurrence_lines"), {}, executor.info).parameters)
        entries = ("recurrence_clear", "recurrence_zero")
        self._kernels = {entry: build(executor, spec("recurrence_lines"), values, entry) for entry in entries}

    @staticmethod
    def fits(executor: Executor, problem: RqaProblem, lines: Sequence[int]) -> bool:
        """Whether the device has room for it."""
        room, longest = budget(executor.info), max(problem.n_rows, problem.n_columns)
        buffers = [*LineBuffers.sizes(lines, longest).values(), segment_bytes(max(lines))]
        return sum(buffers) <= room.total and max(buffers) <= room.largest

    def _new(self, nbytes: int) -> Buffer:
        self._held.append(self._executor.allocate(nbytes))
        return self._held[-1]

    def counts(self, parts: Sequence[Partial], identity: NDArray[np.bool_] | None) -> Counts:
        """Of one radius.

        Parameters
        ----------
        parts : sequence of Partial
            Of all rows, in any order.
        identity : ndarray of bool, optional
            As for :meth:`Finish.counts`.
        """
        upload, buffers = self._executor.upload, self._buffers
        ordered = in_order(parts)
        buffers.clear(self._executor, self._kernels)
        sums = np.zeros((WALKED_KINDS, max(part.histograms.shape[1] for part in ordered)), np.int64)
        for part in ordered:
            sums[:, : part.histograms.shape[1]] += part.histograms
        for number, row in enumerate(sums):
            upload(row, buffers.sums, 8 * number * (self._longest + 1))
        for number, kind in enumerate(KINDS):
            buffer: Buffer = getattr(buffers, kind)
            n = lines_in(buffer)
            for part in ordered:
                segments = np.ascontiguousarray(getattr(part, kind))
                upload(segments, self._other)
                held = int(part.lines[number, 0]), segments.shape[1]
                self._finish.join(buffer, self._other, n, buffers.counts, verticals=number > 0, held=held)
        return self._finish.counts(buffers, identity)

    def release(self) -> None:
        """Give the device memory back."""
        self._finish.release()
        for buffer in self._held:
            buffer.release()
        self._held.clear()


@dataclass(frozen=True)
class CountingProblem:
    """The lines of a recurrence matrix, which are to be counted; blocks are ranges of rows."""

    matrix: RqaProblem
    # x, y: Series (n,) or points (n, features) of the rows and of the columns; ``y`` None where the matrix is
    # symmetric, pairs where it is joint.
    x: Any
    y: Any
    # Edge of a tile, in cells; the tuned one if None. Counts do not depend on it.
    tile: int | None
    # Blocks give a :class:`Partial` for each radius, to be combined; else there is one block, with all rows, which
    # gives :class:`Counts`.
    partial: bool

    @property
    def unit(self) -> str:
        return "cells"

    @property
    def total(self) -> int:
        return self.cells(0, self.matrix.n_rows)

    def size(self, block: Block) -> int:
        return self.cells(block.begin, block.end)

    def cells(self, begin: int, end: int) -> int:
        """Cells of rows ``begin`` to ``end`` that are looked at: those on and above a symmetric matrix's diagonal."""
        every = (end - begin) * self.matrix.n_columns
        if not self.matrix.symmetric:
            return every
        return every - (end * (end - 1) - begin * (begin - 1)) // 2

    @property
    def operations(self) -> float:
        return operations(self.matrix)

    def blocks(self, parts: int) -> list[Block]:
        """At most ``parts`` ranges of rows with about the same number of cells."""
        return [Block(number, *rows) for number, rows in enumerate(split_rows(self.matrix, parts))]

    def open(self, executor: Executor) -> CountingEngine:
        return CountingEngine(self, executor)


class CountingEngine:
    """The engine of :class:`CountingProblem`: tiles of the matrix on a device."""

    def __init__(self, problem: CountingProblem, executor: Executor) -> None:
        self._problem = problem
        require_precision(executor.info, problem.matrix)
        self._sweep = TileSweep(executor, problem.matrix, problem.x, problem.y, problem.tile)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list: for each radius a Partial of the block's rows, or the Counts of all rows."""
        p, record = self._problem, Record(self._sweep.used)
        if p.partial:
            return BlockResult(self._sweep.run(block.begin, block.end, report), record)
        return BlockResult(self._sweep.counts(lambda radius: identity_line(p.matrix, p.x, radius), report), record)

    def release(self) -> None:
        """Give the device memory back."""
        self._sweep.release()


def operations(matrix: RqaProblem) -> float:
    """Arithmetic operations of a sweep over a matrix, roughly."""
    cells = float(matrix.n_rows) * matrix.n_columns / (2 if matrix.symmetric else 1)
    return cells * (3 * matrix.coordinates + 12)


def quantify(
    executors: Executor | Sequence[Executor], problem: RqaProblem, x: Any, y: Any = None, *, tile: int | None = None
) -> list[Counts]:
    """Count the lines of a recurrence matrix; :mod:`pyedmcl.launch.progress` hears how many cells are done.

    Parameters
    ----------
    executors : Executor or sequence of Executor
        Devices; each takes a part of the rows. The counts are the same for any number of them.
    x, y, tile
        As for :class:`CountingProblem`.

    Returns
    -------
    list of Counts
        One for each radius.
    """
    return counted(LocalRunner(executors if isinstance(executors, Sequence) else [executors]), problem, x, y, tile=tile)


def counted(runner: Runner, problem: RqaProblem, x: Any, y: Any = None, *, tile: int | None = None) -> list[Counts]:
    """As :func:`quantify`, by any runner."""
    counting = CountingProblem(problem, x, y, tile, partial=runner.devices > 1)
    sink = ListSink(counting.blocks(runner.devices))
    runner.run(counting, sink)
    results: list[Any] = sink.results()
    if not counting.partial:
        return require_consistent(runner.infos, problem, results[0])
    executor = runner.executors[0] if isinstance(runner, LocalRunner) else None
    return require_consistent(runner.infos, problem, combine(problem, results, x, executor))


def combine(
    problem: RqaProblem, parts: Sequence[Sequence[Partial]], x: Any, executor: Executor | None = None
) -> list[Counts]:
    """Counts of each radius from parts that cover all rows, in any order; by a device where one has room for them.

    Raises ValueError where they do not cover all rows, each once.
    """
    rows = in_order([part[0] for part in parts])
    if (rows[0].begin, rows[-1].end) != (0, problem.n_rows):
        raise ValueError(f"rows {rows[0].begin} to {rows[-1].end} of {problem.n_rows} are there")
    lines = parts[0][0].lines[:, 1].tolist()
    if executor is not None and len(parts) > 1 and DeviceJoin.fits(executor, problem, lines):
        joining = DeviceJoin(executor, problem, lines)
        try:
            return [
                joining.counts([part[radius] for part in parts], identity_line(problem, x, radius))
                for radius in range(problem.n_radii)
            ]
        finally:
            joining.release()
    return [
        finish(
            part, n_rows=problem.n_rows, n_columns=problem.n_columns, symmetric=problem.symmetric,
            theiler=problem.theiler, theiler_everywhere=problem.theiler_everywhere,
            identity=identity_line(problem, x, radius),
        )
        for radius, part in enumerate(join_rows(problem, parts))
    ]  # fmt: skip


def require_consistent(infos: Sequence[DeviceInfo], problem: RqaProblem, counts: list[Counts]) -> list[Counts]:
    """The counts that devices gave. Raises WrongResultError where their lines do not sum to their recurrent cells."""
    for found in counts:
        why = found.contradiction(problem.theiler)
        if why is not None:
            raise wrong_result(infos[0], why)
    return counts


def join_rows(problem: RqaProblem, parts: Sequence[Sequence[Partial]]) -> list[Partial]:
    """One part for each radius from parts of neighbouring rows, in any order."""
    window, k_first = problem.line_window, problem.k_first
    return [join([part[radius] for part in parts], window, k_first) for radius in range(problem.n_radii)]


def split_rows(problem: RqaProblem, parts: int) -> list[tuple[int, int]]:
    """Ranges of rows with about the same number of cells, cut at multiples of 32."""
    n, columns = problem.n_rows, problem.n_columns
    row = np.arange(0, n, 32, dtype=np.float64)
    cells = np.cumsum(np.maximum(columns - row, 1) if problem.symmetric else np.full(len(row), float(columns)))
    shares = cells[-1] * np.arange(1, parts) / parts
    cuts = [0, *(min(32 * (int(c) + 1), n) for c in np.searchsorted(cells, shares)), n]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def identity_line(problem: RqaProblem, x: Any, radius: int) -> NDArray[np.bool_] | None:
    """Recurrent cells of the main diagonal: points without a gap, whose distance to themselves is 0. None where no line
    is on it."""
    if not problem.symmetric or problem.theiler > 0:
        return None
    if problem.joint is not None:
        return _identity_of(problem, x[0], radius) & _identity_of(problem.joint, x[1], radius)
    return _identity_of(problem, x, radius)


def _identity_of(problem: RqaProblem, x: NDArray[Any], radius: int) -> NDArray[np.bool_]:
    outer, inner = problem.outer_limits()[radius], problem.inner_limits()
    inside = outer > 0 if problem.strict else outer >= 0
    if inner is not None:
        inside = bool(inside and (inner[radius] < 0 if problem.strict else inner[radius] <= 0))
    finite = np.isfinite(x).all(axis=1) if x.ndim == 2 else np.isfinite(x)
    complete = np.ones(problem.n_rows, bool)
    for e in range(1 if problem.embedded else problem.m):
        complete &= finite[e * problem.tau : e * problem.tau + problem.n_rows]
    return complete & bool(inside)


# Counts of a long sweep that may be killed at any moment: finished rows are kept in a file, to go on from there.


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


# Counts of a long sweep that several processes share by a folder; what each has finished is kept there.
#
# The folder holds ``parts.json`` (what is counted) and a file for each range of bands that is done; neighbouring ones
# are joined as they come, to one file in the end.


# Bands are cut by the matrix alone, so that all who join cut them alike: not so small that writing one takes longer
# than counting it, and enough for many processes.
_CELLS_OF_A_BAND = 1 << 34
_FEWEST, _MOST = 16, 256


def quantify_joined(
    folder: Path, begin: float, runner: Runner, problem: RqaProblem, x: Any, y: Any, *,
    tile: int | None,
) -> list[Counts]:  # fmt: skip
    """As :func:`~pyedmcl.recurrence.engine.quantify`, together with all who do the same in a folder.

    Parameters
    ----------
    begin : float
        Where this process begins, from :func:`pyedmcl.jobs.claims.begin_of`.
    runner, problem, x, y, tile
        As for the engine.
    """
    counting = CountingProblem(problem, x, y, tile, partial=True)
    cells = counting.total
    blocks = counting.blocks(min(max(cells // _CELLS_OF_A_BAND, _FEWEST), _MOST))
    identity = _identity(problem, x, y)
    is_ours(folder, identity, "checkpoint")  # before anything is touched
    with Member(folder, runner.infos[0].name) as member:
        member.enter()
        mark(folder, len(blocks), identity, "checkpoint")
        sink = BandsSink(counting, folder, blocks, member, begin, digest_of_identity(identity))
        runner.run(counting, sink)
        counts = require_consistent(runner.infos, problem, combine(problem, sink.results(), x))
        member.settle(lambda: durable.remove_temporaries(folder))
        return counts


class BandsSink(PartsSink):
    """Bands of rows of a recurrence matrix, in a folder."""

    joins = True

    def __init__(self, problem: CountingProblem, folder: Path, *given: Any) -> None:
        super().__init__(folder, "band", *given)
        self._problem = problem

    def _result(self, arrays: Mapping[str, NDArray[Any]]) -> list[Partial]:
        return unpacked_parts(arrays)

    def _arrays(self, result: Sequence[Partial]) -> dict[str, NDArray[Any]]:
        return packed_parts(result)

    def _joined(self, results: Sequence[Sequence[Partial]]) -> list[Partial]:
        return join_rows(self._problem.matrix, results)

    def kept(self) -> str:
        n, left = len(self._blocks), len(self.pending())
        return f"{n - left} of {n} bands are kept in {self._folder}; the same call goes on from there"


def _identity(problem: RqaProblem, x: Any, y: Any) -> dict[str, str]:
    from .. import __version__

    return {**identity_of(problem, x, y), "version of pyedmcl": json.dumps(__version__)}
