"""All-pairs cross mapping onto surrogates as a job: the problem, and the engine that computes blocks of targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...data.condition import Prepared
from ...data.series import Series
from ...device.memory import budget
from ...engines.crossmap import CrossMap
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..maps.pairs import PairsProblem
from ..maps.xmap_data import map_data
from ..shared import arguments
from ..shared.effort import operations
from ..shared.exceedance import counts
from ..surrogates.surrogate import SeriesMakers

if TYPE_CHECKING:
    from ...device.executor import Executor

_MOST_TARGETS = 16384  # series and surrogates of a block
Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class XmapSignificanceProblem(PairsProblem):
    """Skill of each series as library against each as target, and of how many surrogates it is reached.

    Blocks are ranges of **targets**. Their layers, each with a cell for each library, are the skill, the number of
    surrogates that reach it, and the number of those that have a skill.

    Attributes
    ----------
    makers : SeriesMakers
        Of the surrogates.
    n : int
        Surrogates of each target.
    seed : int
        Chooses them.
    first : int
        Number of the first surrogate.
    pairs : ndarray of bool (n_series, n_series), optional
        Row = library, column = target: which pairs are computed; the others get NaN and 0. All pairs by default.
    """

    makers: SeriesMakers
    n: int
    seed: int
    first: int = 0
    pairs: NDArray[np.bool_] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max((_MOST_TARGETS - self.total) // self.n, 1), 3)

    @property
    def operations(self) -> float:
        L, N = self.data.series.n_steps, self.total
        return operations(self.dims, n_library=L, n_query=L, n_series=N, n_targets=N * (self.n + 1))

    def open(self, executor: Executor) -> XmapSignificanceEngine:
        return XmapSignificanceEngine(self, executor)


class XmapSignificanceEngine:
    """The engine of :class:`XmapSignificanceProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: XmapSignificanceProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, series = problem, problem.data.series
        self._makers = [p.makers.of(number, E) for number, E in enumerate(p.E or ())]
        # All series are libraries; of targets, as many surrogates at a time as fit into an eighth of the memory.
        fit = int(budget(executor.info).total // 8 // (series.n_steps * np.dtype(p.data.dtype).itemsize))
        self._batch = max((fit - p.total) // p.n, 1)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and both counts, each (targets of the block, n_series)."""
        shape = len(block), self._problem.total
        rho, reached, compared = [np.empty(shape), *np.empty((2, *shape), int)] if into is None else into
        rho[...], reached[...], compared[...] = np.nan, 0, 0
        record = Record()
        for libraries, targets in self._maps(block):
            skill, surrogates, new_record = self._skill(libraries, targets)
            place = np.ix_(targets - block.begin, libraries)
            rho[place] = skill.T
            counted = counts(skill, surrogates)
            reached[place], compared[place] = counted[0].T, counted[1].T
            record = record.joined(new_record)
            report(int(targets.max()) + 1 - block.begin)
        itself = np.arange(len(block)), np.arange(block.begin, block.end)
        reached[itself], compared[itself] = 0, 0
        return BlockResult([rho, reached, compared], record)

    def _maps(self, block: Block) -> Iterator[tuple[Numbers, Numbers]]:
        """Libraries and targets of each map that a block is computed by."""
        p, N = self._problem, self._problem.total
        pairs = np.ones((N, N), bool) if p.pairs is None else p.pairs
        for targets in self._together(pairs, block):
            yield np.flatnonzero(pairs[:, targets].any(axis=1)), targets

    def _together(self, wanted: NDArray[np.bool_], block: Block) -> Iterator[Numbers]:
        """Targets that share a map: where the search that they share costs more than the pairs that nobody wants."""
        p, L = self._problem, self._problem.data.series.n_steps
        E = p.highest
        search, lookup = (operations([E], n_library=L, n_query=L, n_targets=targets) for targets in (0, p.n))
        targets: list[int] = []
        libraries = np.zeros(p.total, bool)
        for j in range(block.begin, block.end):
            libraries_of_target = wanted[:, j]
            if not libraries_of_target.any():
                continue
            both, lookups = libraries | libraries_of_target, lookup - search
            apart = (int(libraries.sum()) + int(libraries_of_target.sum())) * search
            apart += (int(libraries.sum()) * len(targets) + int(libraries_of_target.sum())) * lookups
            joined = int(both.sum()) * (search + (len(targets) + 1) * lookups)
            if targets and (len(targets) == self._batch or joined > apart):
                yield np.array(targets)
                targets, both = [], libraries_of_target
            targets.append(j)
            libraries = both
        if targets:
            yield np.array(targets)

    def _skill(self, libraries: Numbers, targets: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64], Record]:
        """Skill (n_libraries, n_targets) of some targets, and (n_libraries, n_targets, n) of their surrogates."""
        p, series, M = self._problem, self._problem.data.series, len(libraries)
        # Libraries that are all of the series hold the targets, too.
        also = targets if p.total > M else targets[:0]
        columns = np.concatenate([libraries, also])
        n_series = len(columns)
        values = arguments.room("n", (series.n_steps, n_series + len(targets) * p.n), series.values.dtype)
        values[:, :n_series] = series.values[:, columns]
        begins = n_series + np.arange(len(targets)) * p.n
        draws = [(values[:, a : a + p.n].T, self._makers[j], int(j)) for a, j in zip(begins, targets, strict=True)]
        p.makers.drawer.draw(draws, p.seed, p.first)
        names = (*(series.names[i] for i in columns), *(f"{series.names[j]}~{i}" for j in targets for i in range(p.n)))
        E = np.array(p.E, int)
        dims = np.concatenate([E[columns], np.repeat(E[targets], p.n)])
        together = replace(p, data=Prepared(Series(values, names), p.data.dtype, quiet=True), E=tuple(dims.tolist()))
        mapping = CrossMap(self._executor, replace(map_data(together), n_libraries=M))
        try:
            rho, record = mapping.skill(0, M).astype(np.float64), Record(mapping.parameters)
        finally:
            mapping.release()
        skill = rho[:, M : M + len(also)] if len(also) else rho[:, targets]
        return skill, rho[:, n_series:].reshape(M, len(targets), p.n), record

    def release(self) -> None:
        """Nothing is held."""
