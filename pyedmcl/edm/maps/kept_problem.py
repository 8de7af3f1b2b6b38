"""A map of which only some pairs are kept, as a job: each block is reduced before it leaves its engine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...jobs.blocks import Arrays, Block, BlockResult, Engine, Problem, Record, Report, cut
from ...jobs.sinks import ArraySink
from .keep import Edges, Keep, Places, TargetTop

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class KeptProblem:
    """Another problem, whose blocks are rows of a map, reduced to the edges that are kept.

    A block of it is a pure function as well: of a rule that compares libraries it gives what may be kept of the block.

    Attributes
    ----------
    problem : Problem
        Its unit is a library.
    keep : Keep
    dtype : str
        Of rho.
    itself : ndarray of int (n_libraries,)
        Which target each library is; -1 for none.
    n_targets : int
    """

    problem: Problem
    keep: Keep
    dtype: str
    itself: Places
    n_targets: int

    @property
    def unit(self) -> str:
        return self.problem.unit

    @property
    def total(self) -> int:
        return self.problem.total

    @property
    def operations(self) -> float:
        return self.problem.operations

    @property
    def kernels(self) -> Sequence[str]:
        """Kernels that the answer depends on, as far as the problem tells."""
        return getattr(self.problem, "kernels", ())

    def size(self, block: Block) -> int:
        return self.problem.size(block)

    def open(self, executor: Executor) -> _KeptEngine:
        return _KeptEngine(self, self.problem.open(executor))


class _KeptEngine:
    """The problem's engine, asked for few rows at a time."""

    def __init__(self, kept: KeptProblem, engine: Engine) -> None:
        self._engine = engine
        self._kept = kept
        self._rows = kept.keep.rows_at_a_time((kept.total, kept.n_targets), kept.dtype)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """The kept edges of the block's libraries."""
        kept = self._kept
        selection = kept.keep.selection(kept.itself, kept.n_targets, kept.dtype)
        record = Record()
        for part in cut(len(block), self._rows):
            begin, end = block.begin + part.begin, block.begin + part.end
            part_block = replace(block, begin=begin, end=end)
            rows = self._engine.block(part_block, None, functools.partial(_report, report, part.begin))
            selection.add_rows(rows.arrays[0], begin)
            record = record.joined(rows.record)
        return BlockResult([selection.edges()], record)

    def release(self) -> None:
        """Give the device memory back."""
        self._engine.release()


def _report(report: Report, before: int, done: int) -> None:
    report(before + done)


class EdgeSink(ArraySink):
    """Kept edges in memory.

    Parameters
    ----------
    blocks : sequence of Block
    keep : Keep
    itself, n_targets, dtype
        As of :class:`KeptProblem`.
    """

    def __init__(self, blocks: Sequence[Block], keep: Keep, itself: Places, n_targets: int, dtype: str) -> None:
        super().__init__(blocks, [])
        self._top = TargetTop(keep.most or 1, itself, n_targets, dtype) if keep.merges else None

    def room(self, block: Block) -> None:  # type: ignore[override]  # edges have no place of their own
        return None

    def _take(self, block: Block, arrays: Any) -> None:
        if self._top is None:
            super(ArraySink, self)._take(block, arrays[0])
        else:
            self._top.add(arrays[0])

    def parts(self) -> tuple[Edges, ...]:
        """Edges in parts, in their order."""
        return tuple(self.results()) if self._top is None else (self._top.edges(),)
