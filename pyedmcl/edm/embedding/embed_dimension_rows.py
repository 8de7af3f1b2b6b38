"""Skill against E where rows are chosen or another series is predicted: a projection for each series and dimension.

The one pass of :mod:`embed_dimension_problem` shares its neighbours' rows among all dimensions. Here each dimension has
a library of its own: the first rows of a segment have no state of E lags, and that depends on E.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...data.condition import Prepared
from ...data.series import build_series
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ...neighbors.choose import SearchRequest
from ..forecasts.simplex_fit import Projection, prepare, project
from ..forecasts.simplex_problem import SimplexProblem
from ..shared.effort import operations
from ..shared.options import PredictionOptions

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class EmbedDimensionRowsProblem:
    """Skill over the rows that are predicted, for E = 1 to E_max.

    Attributes
    ----------
    data : Prepared
    E_max : int
    target : array_like (n_steps,) or None
        What each series predicts; itself if None.
    options : PredictionOptions
        But for E.
    search : SearchRequest
        How neighbours are searched.
    """

    data: Prepared
    E_max: int
    target: Any
    options: PredictionOptions
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = SimplexProblem.kernels

    @property
    def unit(self) -> str:
        return "series"

    @property
    def total(self) -> int:
        return self.data.series.n_series

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Series by series, whatever the number of devices."""
        return cut(self.total, 1)

    @property
    def operations(self) -> float:
        n = self.data.series.n_steps
        return operations(range(1, self.E_max + 1), n_library=n, n_query=n, n_series=self.total)

    def check(self) -> None:
        """Refuse, before a device is opened, rows that some dimension cannot use. Raises InputError."""
        self.projections(0)

    def projections(self, number: int) -> list[Projection]:
        """The projection of a series for each dimension."""
        series = self.data.series
        column = np.ascontiguousarray(series.values[:, number])
        library = build_series(column, [series.names[number]], series.time)
        return [
            prepare(library, None, self.target, replace(self.options, E=E), gaps_only=True, quiet=True)
            for E in range(1, self.E_max + 1)
        ]

    def open(self, executor: Executor) -> RowsSkill:
        return RowsSkill(self, executor)


class RowsSkill:
    """The engine of :class:`EmbedDimensionRowsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: EmbedDimensionRowsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max)."""
        p, record = self._problem, Record()
        rho = np.empty((len(block), p.E_max)) if into is None else into[0]
        for place, number in enumerate(range(block.begin, block.end)):
            for e, projection in enumerate(p.projections(number)):
                forecast, new_record = project(self._executor, projection, p.data.dtype, p.search)
                rho[place, e] = forecast.rho
                record = record.joined(new_record)
        return BlockResult([rho], record)

    def release(self) -> None:
        """Nothing is held."""
