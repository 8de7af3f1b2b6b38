"""Skill of simplex projection over E, tau and Tp: the problem, and its engine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...data.condition import Prepared
from ...jobs.blocks import Arrays, Block, BlockResult, Report, cut, series_of_a_block
from ...neighbors.choose import SearchRequest
from .embed_dimension_problem import EmbedDimensionProblem, SelfSkill

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class EmbeddingScanProblem:
    """Skill of each series by itself for E = 1 to E_max and all pairs of tau and Tp.

    Rows of the result are all series of the first pair, of the second one, and so on.

    Attributes
    ----------
    data : Prepared
    E_max : int
    tau, Tp : tuple of int
    exclusion_radius : int
    knn : int or None
        Neighbours; E + 1 if None.
    search : SearchRequest
    """

    data: Prepared
    E_max: int
    tau: tuple[int, ...]
    Tp: tuple[int, ...]
    exclusion_radius: int
    knn: int | None
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = EmbedDimensionProblem.kernels
    unit: ClassVar[str] = "series"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(tau, Tp) in their order."""
        return list(itertools.product(self.tau, self.Tp))

    @property
    def total(self) -> int:
        return self.data.series.n_series * len(self.pairs)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of series of one pair each."""
        n = self.data.series.n_series
        rows = series_of_a_block(n, self.data.series.n_steps, devices if len(self.pairs) < 4 * devices else 1)
        parts = [
            (place * n + part.begin, place * n + part.end) for place in range(len(self.pairs)) for part in cut(n, rows)
        ]
        return [Block(number, *part) for number, part in enumerate(parts)]

    @property
    def operations(self) -> float:
        return sum(self.of(pair).operations for pair in range(len(self.pairs)))

    def of(self, pair: int) -> EmbedDimensionProblem:
        """The problem of one pair."""
        tau, Tp = self.pairs[pair]
        return EmbedDimensionProblem(
            self.data, self.E_max, tau, Tp, self.exclusion_radius, self.knn, self.search
        )

    def open(self, executor: Executor) -> ScanEngine:
        return ScanEngine(self, executor)


class ScanEngine:
    """The engine of :class:`EmbeddingScanProblem`: that of one pair after the other."""

    def __init__(self, problem: EmbeddingScanProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._pair, self._engine = 0, SelfSkill(problem.of(0), executor)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max)."""
        n = self._problem.data.series.n_series
        pair, begin = divmod(block.begin, n)
        if pair != self._pair:
            self._engine.release()
            self._engine = SelfSkill(self._problem.of(pair), self._executor)
            self._pair = pair
        return self._engine.block(Block(block.number, begin, begin + len(block)), into, report)

    def release(self) -> None:
        """Give the device memory back."""
        self._engine.release()
