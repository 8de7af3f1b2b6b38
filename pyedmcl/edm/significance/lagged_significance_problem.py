"""The highest skill of several lags against that of surrogates, of all pairs, as a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...engines.lagged_map import LaggedMap
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..maps.lagged_map_problem import libraries_of
from ..maps.pairs import PairsProblem
from ..shared.effort import operations
from ..surrogates.surrogate import SeriesMakers
from .lagged_draws import MOST_OF_A_BLOCK, draws_for

if TYPE_CHECKING:
    from ...device.executor import Executor

Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class LaggedSignificanceProblem(PairsProblem):
    """The highest skill of some lags, E being that of the library, and how many surrogates of the target reach it.

    Blocks are ranges of **targets**. Their layers, each with a cell for each library, are the skill, the number of
    surrogates that reach it, each at its own best lag, and the number of those that have a skill.

    Attributes
    ----------
    makers : SeriesMakers
        Of the surrogates.
    n : int
        Surrogates of each target.
    seed : int
        Chooses them.
    lags : tuple of int
        The field Tp is not used.
    first : int
        Number of the first surrogate.
    pairs : ndarray of bool (n_series, n_series), optional
        Row = library, column = target: which pairs are computed; the others get NaN and 0. All pairs by default.
    """

    makers: SeriesMakers
    n: int
    seed: int
    lags: tuple[int, ...]
    first: int = 0
    pairs: NDArray[np.bool_] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup", "highest")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max(MOST_OF_A_BLOCK // (self.n + 1), 1), 3)

    @property
    def operations(self) -> float:
        L, N = self.data.series.n_steps, self.total
        once = operations(self.dims, n_library=L, n_query=L, n_series=N, n_targets=N * (self.n + 1))
        return once * len(self.lags)

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """Pairs that are computed."""
        wanted = np.ones((self.total, self.total), bool) if self.pairs is None else self.pairs.copy()
        np.fill_diagonal(wanted, False)
        return wanted

    def open(self, executor: Executor) -> LaggedSignificanceEngine:
        return LaggedSignificanceEngine(self, executor)


class LaggedSignificanceEngine:
    """The engine of :class:`LaggedSignificanceProblem`: the libraries that are wanted, and their neighbours."""

    def __init__(self, problem: LaggedSignificanceProblem, executor: Executor) -> None:
        self._problem, self._wanted = problem, problem.wanted
        self._libraries = np.flatnonzero(self._wanted.any(axis=1))
        self._map: LaggedMap | None = None
        if len(self._libraries):
            self._map = LaggedMap(executor, libraries_of(problem, self._libraries, problem.lags))

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and both counts, each (targets of the block, n_series)."""
        p, shape, done = self._problem, (len(block), self._problem.total), 0
        rho, reached, counted = [np.empty(shape), *np.empty((2, *shape), int)] if into is None else into
        rho[...], reached[...], counted[...] = np.nan, 0, 0
        targets = block.begin + np.flatnonzero(self._wanted[:, block.begin : block.end].any(axis=0))
        if self._map is None or not len(targets):
            return BlockResult([rho, reached, counted])
        source = draws_for(p, self._map, targets)
        most = max(source.columns(len(targets) * (p.n + 1)) // (p.n + 1), 1)
        parts = [targets[first : first + most] for first in range(0, len(targets), most)]
        with source:
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                source.load(part, following)
                highest = self._map.highest(p.lags, self._wanted[np.ix_(self._libraries, part)])
                for out, of_part in zip((rho, reached, counted), highest, strict=True):
                    out[np.ix_(part - block.begin, self._libraries)] = of_part.T
                done = int(part.max()) + 1 - block.begin
                report(done)
        return BlockResult([rho, reached, counted], Record(self._map.parameters))

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()
