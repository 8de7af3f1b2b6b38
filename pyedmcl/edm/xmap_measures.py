"""Maps of other measures than Pearson's rho, and of predictions themselves: pair by pair, in blocks of libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..engines.pair_predictions import PairPredictions
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from .measures import measure

if TYPE_CHECKING:
    from ..device.executor import Executor
    from .xmap_problem import XmapProblem

KERNELS = ("knn", "predict")
#: Libraries of a block: their tables and predictions are on the device together.
BLOCK_LIBRARIES = 64
_ROWS = 64  # predictions that are measured together


class MeasuredXmapEngine:
    """The engine of an :class:`~pyedmcl.edm.xmap_problem.XmapProblem` whose predictions are looked at on the host.

    It holds nothing on the device between blocks.
    """

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill (libraries of the block, n_targets), and predictions (..., n_steps) where they are asked for."""
        p, record = self._problem, Record()
        libraries = p.data.series.values[:, block.begin : block.end]
        targets, E = p.aimed.series.values, np.array(p.E, int)
        shape = len(block), targets.shape[1]
        if into is None:
            dtype = np.dtype(p.data.dtype)
            into = [np.empty(shape if layer == 0 else (*shape, len(targets)), dtype) for layer in block.layers]
        for dim in np.unique(E).tolist():
            columns = np.flatnonzero(dim == E)
            engine = PairPredictions(
                self._executor, libraries, targets[:, columns], E=dim, tau=p.tau, Tp=p.Tp, k=p.knn or dim + 1,
                exclusion_radius=p.exclusion_radius, dtype=p.data.dtype, request=p.search,
            )  # fmt: skip
            pairs = [(i, j) for i in range(len(block)) for j in range(len(columns))]
            held: list[tuple[int, int]] = []
            rows = []
            try:
                for number, predicted in engine.predict(pairs):
                    held.append((pairs[number][0], int(columns[pairs[number][1]])))
                    rows.append(predicted)
                    if len(rows) == _ROWS:
                        self._put(into, held, np.array(rows))
                        held, rows = [], []
                if rows:
                    self._put(into, held, np.array(rows))
                record = record.joined(Record(engine.parameters, "", tuple(engine.searched)))
            finally:
                engine.release()
        report(len(block))
        return BlockResult(list(into), record)

    def _put(self, into: Arrays, pairs: list[tuple[int, int]], predicted: NDArray[np.float64]) -> None:
        p, (libraries, targets) = self._problem, np.array(pairs).T
        observed = p.aimed.series.values[:, targets].T
        into[0][libraries, targets] = measure(p.skill, predicted, observed)
        if p.predictions:
            into[1][libraries, targets] = predicted

    def release(self) -> None:
        """Nothing is held."""
