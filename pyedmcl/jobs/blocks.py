"""The parts of a job as a runner sees them: problems, blocks, engines, and records of how blocks came about.

A job is a problem cut into blocks, and a sink; a block is a pure function of (problem, block, device).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from ..errors import InputError

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..neighbors.searcher import Searcher

Arrays = Sequence[NDArray[Any]]
#: Is called with how much of a block is done, in the unit of its problem.
Report = Callable[[int], None]


@dataclass(frozen=True)
class Block:
    """Rows ``begin`` to ``end - 1`` of a result (libraries, series, windows): computed, stored and resumed as one.

    Attributes
    ----------
    number : int
        Number of the block in the job, from 0 on.
    begin, end : int
    layers : tuple of int
        The layers of the result that are to be computed. A result may have several, such as one for each library size,
        some of which may have been computed before.
    """

    number: int
    begin: int
    end: int
    layers: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return self.end - self.begin


def cut(n: int, rows: int, layers: int = 1) -> list[Block]:
    """Blocks of ``rows`` rows, the last one perhaps shorter, that cover ``n`` rows of ``layers`` layers."""
    return [
        Block(number, begin, min(begin + rows, n), tuple(range(layers)))
        for number, begin in enumerate(range(0, n, rows))
    ]


@dataclass(frozen=True)
class Wait:
    """Says that no block can be claimed now, while other processes compute some that come back if these are lost.

    Attributes
    ----------
    seconds : float
        Time to wait before the sink is asked again.
    """

    seconds: float


_BLOCK_BYTES = 8 << 20
_LEAST_WORK = 1 << 31  # pairs x steps of a block: about a second of two processor cores
_MOST_BLOCKS = 20_480  # of a store that is cut for many: a metadata server must claim and write them all
# The process that takes the last block works while the others wait. With this many blocks for each, that wait is some
# percent of the run.
_BLOCKS_OF_A_PROCESS = 20
# Each of several devices gets some blocks, so that a slower device takes fewer and none waits long for the last block.
_BLOCKS_OF_A_DEVICE = 4
_BLOCK_VALUES = 1 << 24  # of the series of a block


def rows_of_a_block(n: int, most: int, devices: int = 1) -> int:
    """Rows of a block where ``devices`` share ``n`` rows, and a block has at most ``most``."""
    return most if devices == 1 else max(min(most, -(-n // (_BLOCKS_OF_A_DEVICE * devices))), 1)


def series_of_a_block(n: int, n_steps: int, devices: int = 1) -> int:
    """Series of a block where ``devices`` share ``n`` of them, whose values a block holds in memory."""
    return rows_of_a_block(n, max(_BLOCK_VALUES // n_steps, 1), devices)


def default_block_rows(n_series: int, n_targets: int | None = None) -> int:
    """Library rows per block for ``n_series`` series: 16 to 64, fewer where a row is so long that 8 MiB hold fewer.

    With fewer targets than libraries, rows are shorter and blocks have more of them, up to 1,024.
    """
    if n_series < 1:
        raise InputError(f"a result needs at least one series, got {n_series}")
    columns = n_series if n_targets is None else n_targets
    most = min(max(64 * (n_series // columns), 64), 1024)
    fine = min(max(n_series // 16, 16), most)
    return min(fine, max(_BLOCK_BYTES // (4 * columns), 1), n_series)


def shared_block_rows(rows: int, n_series: int, row_work: int, processes: int) -> int:
    """Library rows per block where processes share them: fewer for many, so that nobody waits long for the last ones.

    Not so few that claiming and writing blocks takes long beside computing them.

    Parameters
    ----------
    rows : int
        For one process.
    n_series : int
    row_work : int
        Pairs x steps of a row.
    processes : int
        As far as their number is known.
    """
    if processes < 2:
        return rows
    least = max(-(-_LEAST_WORK // row_work), -(-n_series // _MOST_BLOCKS))
    return min(rows, max(n_series // (_BLOCKS_OF_A_PROCESS * processes), least))


@dataclass(frozen=True)
class Record:
    """How blocks came about, as plain data.

    Attributes
    ----------
    parameters : mapping
        Kernel to its tuned parameters.
    grade : str
        How well these parameters are known to suit the device and the problem.
    searched : tuple of mapping
        Entries that say which search found the neighbours, why it was chosen, and how good it was; and how targets were
        looked up, where the user chose that (:func:`.provenance.entries_by_kind` tells the two apart). No entry comes
        twice.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    grade: str = ""
    searched: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, searcher: Searcher) -> Record:
        """What a searcher for neighbours tells of its work."""
        return cls(searcher.parameters, searcher.grade, tuple(searcher.decisions))

    def joined(self, other: Record) -> Record:
        """This record with the entries that another one adds. Parameters and grade are the last ones that are known."""
        more = tuple(entry for entry in other.searched if entry not in self.searched)
        return Record(other.parameters or self.parameters, other.grade or self.grade, self.searched + more)


@dataclass(frozen=True)
class BlockResult:
    """What an engine computes for a block.

    Attributes
    ----------
    arrays : sequence of ndarray
        An array for each layer of the block, whose first axis are the rows. Some sinks take results of another kind.
    record : Record
    """

    arrays: Any
    record: Record = field(default_factory=Record)


class Engine(Protocol):
    """A problem that is open on a device. It computes blocks in any order; no block depends on those before it."""

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Compute a block.

        Parameters
        ----------
        block : Block
        into : sequence of ndarray or None
            Arrays that the engine may write to and return instead of new ones.
        report : callable
            May be called with how much of the block is done, as long as that is not all of it.
        """

    def release(self) -> None:
        """Give all device memory back."""


class Problem(Protocol):
    """All numbers that define a result. A problem is frozen, can be pickled, and knows of no device."""

    @property
    def unit(self) -> str:
        """What progress counts, such as series; empty where the engine reports its progress itself."""

    @property
    def total(self) -> int:
        """Size of the whole problem in that unit."""

    def size(self, block: Block) -> int:
        """Size of a block in that unit."""

    @property
    def operations(self) -> float:
        """A rough number of arithmetic operations of the whole job, from which follows whether tuning would repay."""

    def open(self, executor: Executor) -> Engine:
        """Open the problem on a device. Where that fails, all of its memory is given back."""
