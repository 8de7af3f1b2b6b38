"""Simplex projections as a job: the problem, and the engine that computes some of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ...neighbors.choose import SearchRequest
from ..shared.effort import operations
from .simplex_fit import Forecast, Projection, generate, project, project_alike, together

if TYPE_CHECKING:
    from ...device.executor import Executor


_BLOCK_ROWS = 1 << 18  # of the projections that are made together


@dataclass(frozen=True)
class SimplexProblem:
    """Projections that are made one by one.

    Attributes
    ----------
    projections : tuple of Projection
    dtype : str
        What kernels compute in.
    search : SearchRequest
        How neighbours are searched.
    steps : int
        How far to continue the predicted series instead; 0 to predict the projection's rows.
    """

    projections: tuple[Projection, ...]
    dtype: str
    search: SearchRequest
    steps: int = 0

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Projections."""
        return len(self.projections)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Projections that are made together, if they are alike."""
        return cut(self.total, max(_BLOCK_ROWS // max(len(self.projections[0].library), 1), 1))

    @property
    def operations(self) -> float:
        p = self.projections[0]
        return operations([p.E] * self.total, n_library=len(p.library), n_query=len(p.query), n_series=self.total)

    def open(self, executor: Executor) -> SimplexEngine:
        return SimplexEngine(self, executor)


class SimplexEngine:
    """The engine of :class:`SimplexProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: SimplexProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """A list of (Projection, Forecast): which rows were predicted in the end, and how."""
        p, record = self._problem, Record()
        results: list[tuple[Projection, Forecast]] = []
        for projections in _alike(p.projections[block.begin : block.end]):
            if len(projections) > 1:
                forecasts, new_record = project_alike(self._executor, projections, p.dtype, p.search)
                results += zip(projections, forecasts, strict=True)
                record = record.joined(new_record)
                continue
            (projection,) = projections
            if p.steps:
                projection, forecast, new_record = generate(self._executor, projection, p.steps, p.dtype, p.search)
            else:
                forecast, new_record = project(self._executor, projection, p.dtype, p.search)
            results.append((projection, forecast))
            record = record.joined(new_record)
        return BlockResult(results, record)

    def release(self) -> None:
        """Nothing is held."""


def _alike(projections: Sequence[Projection]) -> Iterator[list[Projection]]:
    """Projections one after another, those that are alike together."""
    for kind, group in itertools.groupby(projections, together):
        if kind is None:
            yield from ([projection] for projection in group)
        else:
            yield list(group)
