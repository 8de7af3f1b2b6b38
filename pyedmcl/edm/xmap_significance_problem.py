"""All-pairs cross mapping onto surrogates as a job: the problem, and the engine that computes blocks of targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import Prepared
from ..data.series import Series, build_series
from ..device.memory import budget
from ..engines.crossmap import CrossMap
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from .effort import operations
from .pairs import PairsProblem
from .significance import exceedance
from .surrogate import draw, maker
from .xmap_problem import map_data

if TYPE_CHECKING:
    from ..device.executor import Executor

_MOST_TARGETS = 16384  # series and surrogates of a block


@dataclass(frozen=True)
class XmapSignificanceProblem(PairsProblem):
    """Skill of each series as library against each as target, and against surrogates of the target.

    Blocks are ranges of **targets**, whose rows hold skill and p-value of each library.

    Attributes
    ----------
    method : str
        Of the surrogates.
    n : int
        Surrogates of each target.
    seed : int
        Chooses them.
    period, recurrence
        As for :func:`pyedmcl.surrogate`.
    """

    method: str
    n: int
    seed: int
    period: Any
    recurrence: Any

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max((_MOST_TARGETS - self.total) // self.n, 1), 2)

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
        targets = [
            build_series(np.ascontiguousarray(series.values[:, j]), [name]) for j, name in enumerate(series.names)
        ]
        self._makers = [
            maker(
                target, p.method, E=E, tau=p.tau, period=p.period, recurrence=p.recurrence, what="data",
                name="surrogate",
            )
            for target, E in zip(targets, p.E or (), strict=True)
        ]
        # All series are libraries; of targets, as many surrogates at a time as fit into an eighth of the memory.
        fit = int(budget(executor.info).total // 8 // (series.n_steps * np.dtype(p.data.dtype).itemsize))
        self._batch = max((fit - p.total) // p.n, 1)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and p-value (targets of the block, n_series)."""
        rho, p_value = np.empty((2, len(block), self._problem.total)) if into is None else into
        record = Record()
        for a in range(block.begin, block.end, self._batch):
            b = min(a + self._batch, block.end)
            skill, surrogates, own = self._skill(a, b)
            place = slice(a - block.begin, b - block.begin)
            rho[place], p_value[place] = skill.T, exceedance(skill, surrogates).T
            record = record.joined(own)
            report(b - block.begin)
        p_value[np.arange(len(block)), np.arange(block.begin, block.end)] = np.nan  # a series and itself
        return BlockResult([rho, p_value], record)

    def _skill(self, a: int, b: int) -> tuple[NDArray[np.float64], NDArray[np.float64], Record]:
        """Skill (n_series, b - a) of targets a to b, and (n_series, b - a, n) of their surrogates."""
        p, series, N = self._problem, self._problem.data.series, self._problem.total
        drawn = np.concatenate([draw(self._makers[j], p.n, p.seed, j, series.n_steps) for j in range(a, b)])
        values = np.concatenate([series.values, drawn.T.astype(series.values.dtype)], axis=1)
        names = (*series.names, *(f"{series.names[j]}~{i}" for j in range(a, b) for i in range(p.n)))
        E = np.array(p.E, int)
        together = replace(
            p, data=Prepared(Series(np.ascontiguousarray(values), names), p.data.dtype),
            E=tuple(np.concatenate([E, np.repeat(E[a:b], p.n)]).tolist()),
        )  # fmt: skip
        mapping = CrossMap(self._executor, replace(map_data(together), n_libraries=N))
        try:
            rho = mapping.skill(0, N).astype(np.float64)
            return rho[:, a:b], rho[:, N:].reshape(N, b - a, p.n), Record(mapping.parameters)
        finally:
            mapping.release()

    def release(self) -> None:
        """Nothing is held."""
