"""The recurrence network as a job: the problem, and the engine that finds the triangles of some points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..errors import DeviceMemoryError
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..jobs.runner import LocalRunner, Runner
from ..jobs.sinks import ArraySink
from ..kernels import spec
from ..launch.pacing import Pacer
from ..tuning.parameters import parameters
from .engine import operations
from .problem import RqaProblem, require_precision

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

_BLOCK_BYTES = 1 << 26  # of the links that the host holds
_ROWS_MOST = 60_000  # along the second axis of a launch; NVIDIA refuses more than 65,535
_SUMS_MOST = 1_000_000  # points of a launch that finds triangles, however few links they have


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """The network of a recurrence matrix; blocks are ranges of points.

    A block gives the degree of each point, and how many ordered pairs of its neighbours are linked with each other
    (closed pairs: twice the triangles through the point).

    Attributes
    ----------
    matrix : RqaProblem
        Symmetric, with one radius.
    x : ndarray (n,) or (n_points, n_features)
        Series, or points where the matrix is ``embedded``. NaN for gaps.
    """

    matrix: RqaProblem
    x: NDArray[Any]

    @property
    def unit(self) -> str:
        return "points"

    @property
    def total(self) -> int:
        return self.matrix.n_rows

    def size(self, block: Block) -> int:
        return len(block)

    @property
    def words(self) -> int:
        """Words of 32 bits that hold the links of a point."""
        return -(-self.total // 32)

    @property
    def operations(self) -> float:
        return operations(self.matrix)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of points, to be shared by ``devices``."""
        most = max(_BLOCK_BYTES // (4 * self.words), 1)
        return cut(self.total, rows_of_a_block(self.total, most, devices), layers=2)

    def open(self, executor: Executor) -> NetworkEngine:
        return NetworkEngine(self, executor)


class NetworkEngine:
    """The engine of :class:`NetworkProblem`. It makes all links, a bit for each pair of points, and keeps them."""

    def __init__(self, problem: NetworkProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        matrix = problem.matrix
        require_precision(executor.info, matrix)
        x = np.ascontiguousarray(problem.x, matrix.arithmetic)
        self._require_room(x)
        values: dict[str, Any] = {**matrix.cell, "strict": matrix.strict}
        choice = parameters(spec("recurrence_network"), values, executor.info)
        self._record = Record(dict(choice.parameters), choice.grade)
        values |= choice.parameters
        self._wg = values["wg"]
        link, self._close = (
            build(executor, spec("recurrence_network"), values, entry) for entry in (None, "recurrence_triangles")
        )
        self._bits = executor.allocate(4 * problem.words * problem.total)
        try:
            self._make_links(link, x)
        except BaseException:
            self.release()
            raise

    def _require_room(self, x: NDArray[Any]) -> None:
        n, room = self._problem.total, budget(self._executor.info)
        links = 4 * self._problem.words * n
        if links > room.largest or links + x.nbytes + 16 * n > room.total:
            raise DeviceMemoryError(
                f"x: the adjacency matrix of {n:,} points needs {links:,} bytes; {room.largest:,} may be used for "
                f"one buffer on {self._executor.info.name} and {room.total:,} for all (raise PYEDMCL_MEMORY_FRACTION "
                "or PYEDMCL_MEMORY_LIMIT, or thin out the series)"
            )

    def _make_links(self, kernel: Any, x: NDArray[Any]) -> None:
        matrix, n, words = self._problem.matrix, self._problem.total, self._problem.words
        # Of each pair and coordinate a difference, a term and a sum.
        pacer, cost = Pacer(self._executor.info), float(words * 32 * 3 * matrix.cell["m"])
        across = -(-words // self._wg) * self._wg
        data = self._executor.upload(x)
        try:
            row = 0
            while row < n:
                end = min(row + min(pacer.units(cost), _ROWS_MOST), n)
                event = self._executor.launch(
                    kernel, (across, end - row), (self._wg, 1), x=data, bits=self._bits, row_begin=row, n=n,
                    words=words, window=matrix.theiler, limit=float(matrix.outer_limits()[0]),
                )  # fmt: skip
                pacer.launched(event, cost * (end - row))
                row = end
        finally:
            data.release()

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Degrees and closed pairs of neighbours of the block's points (int64)."""
        words = self._problem.words
        links = np.empty((len(block), words), np.uint32)
        degree = _ones(self._executor.download(self._bits, links, 4 * words * block.begin))
        closed = np.empty(len(block), np.uint64)
        sums = self._executor.allocate(closed.nbytes)
        try:
            self._find_triangles(block, degree, closed, sums, report)
        finally:
            sums.release()
        return BlockResult([degree, closed.astype(np.int64)], self._record)

    def _find_triangles(
        self, block: Block, degree: NDArray[np.int64], closed: NDArray[np.uint64], sums: Buffer, report: Report
    ) -> None:
        words, pacer = self._problem.words, Pacer(self._executor.info)
        before = np.concatenate([[0], np.cumsum(degree)])
        row = 0
        while row < len(block):
            # A point takes as long as it has links: as many points as fill a launch with theirs.
            links = pacer.units(float(words))
            end = max(int(np.searchsorted(before, before[row] + links, side="right")) - 1, row + 1)
            end = min(end, len(block), row + _SUMS_MOST)
            event = self._executor.launch(
                self._close, ((end - row) * self._wg,), (self._wg,), bits=self._bits, closed=sums,
                row_begin=block.begin + row, words=words,
            )  # fmt: skip
            pacer.launched(event, float(words) * max(int(before[end] - before[row]), 1))
            self._executor.download(sums, closed[row:end])
            row = end
            report(row)

    def release(self) -> None:
        """Give the device memory back."""
        self._bits.release()


def links_of(runner: Runner, problem: NetworkProblem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Degrees and closed pairs of neighbours of all points, by any runner."""
    degree, closed = np.empty(problem.total, np.int64), np.empty(problem.total, np.int64)
    runner.run(problem, ArraySink(problem.blocks(runner.devices), [degree, closed]))
    return degree, closed


def list_links(executor: Executor, problem: NetworkProblem) -> NDArray[np.int32]:
    """Pairs of linked points (links, 2), the earlier one first, in ascending order."""
    engine, words, n = NetworkEngine(problem, executor), problem.words, problem.total
    found = [np.empty((0, 2), np.int32)]
    try:
        step = max((_BLOCK_BYTES >> 3) // (4 * words), 1)
        for begin in range(0, n, step):
            rows = np.empty((min(step, n - begin), words), np.uint32)
            executor.download(engine._bits, rows, 4 * words * begin)
            bits = np.unpackbits(rows.astype("<u4").view(np.uint8), axis=1, bitorder="little")
            i, j = np.nonzero(bits)
            later = j > i + begin
            found.append(np.stack([i[later] + begin, j[later]], axis=1).astype(np.int32))
    finally:
        engine.release()
    return np.concatenate(found)


def count_links(executor: Executor, matrix: RqaProblem, x: NDArray[Any]) -> tuple[NDArray[np.int64], ...]:
    """The same on one device."""
    return links_of(LocalRunner([executor]), NetworkProblem(matrix, x))


_BYTE_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def _ones(bits: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Set bits of each row; NumPy before 2.0 has no population count."""
    out = np.empty(len(bits), np.int64)
    step = max((1 << 22) // bits.shape[1], 1)
    for row in range(0, len(bits), step):
        part = _BYTE_ONES[bits[row : row + step].view(np.uint8)]
        out[row : row + step] = part.sum(axis=1, dtype=np.int64)
    return out
