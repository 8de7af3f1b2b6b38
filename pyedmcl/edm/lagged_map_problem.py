"""Cross maps of all pairs at several intervals as a job: at which lag does an effect remember its cause best?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.condition import Prepared
from ..data.series import Series
from ..engines.crossmap import CrossMap
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from .effort import operations
from .pairs import PairsProblem
from .xmap_problem import map_data

if TYPE_CHECKING:
    from ..device.executor import Executor


@dataclass(frozen=True)
class LaggedMapProblem(PairsProblem):
    """Skill of each series as library against each as target, E being that of the library; rows are intervals.

    Attributes
    ----------
    lags : tuple of int
        Tp of each map; the field Tp is not used.
    """

    lags: tuple[int, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup")

    @property
    def unit(self) -> str:
        return "lags"

    @property
    def total(self) -> int:
        return len(self.lags)

    def blocks(self) -> list[Block]:
        """Lag by lag."""
        return cut(self.total, 1)

    @property
    def operations(self) -> float:
        n, N = self.data.series.n_steps, self.data.series.n_series
        return len(self.lags) * operations(self.dims, n_library=n, n_query=n, n_series=N, n_targets=N)

    def open(self, executor: Executor) -> LaggedMapEngine:
        return LaggedMapEngine(self, executor)


class LaggedMapEngine:
    """The engine of :class:`LaggedMapProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: LaggedMapProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        # Libraries of one dimension lie side by side.
        self._E = np.array(problem.E, int)
        self._order = np.argsort(self._E, kind="stable")
        series = problem.data.series
        sorted_series = Series(
            np.ascontiguousarray(series.values[:, self._order]), tuple(series.names[i] for i in self._order)
        )
        self._data = Prepared(sorted_series, problem.data.dtype)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (lags of the block, n_series, n_series)."""
        N, record = len(self._E), Record()
        (out,) = [np.empty((len(block), N, N))] if into is None else into
        dims = self._E[self._order]
        for place, Tp in enumerate(self._problem.lags[block.begin : block.end]):
            sorted_rho = np.full((N, N), np.nan)
            for E in np.unique(dims).tolist():
                a, b = np.searchsorted(dims, E), np.searchsorted(dims, E, side="right")
                part = replace(self._problem, data=self._data, E=(E,) * N, Tp=Tp)
                mapping = CrossMap(self._executor, replace(map_data(part), n_libraries=int(b - a)))
                try:
                    sorted_rho[a:b] = mapping.skill(int(a), int(b))
                    record = record.joined(Record(mapping.parameters))
                finally:
                    mapping.release()
            out[place][np.ix_(self._order, self._order)] = sorted_rho
            report(place + 1)
        return BlockResult([out], record)

    def release(self) -> None:
        """Nothing is held."""
