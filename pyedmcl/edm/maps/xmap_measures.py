"""Maps of other measures than Pearson's rho, and of predictions themselves: pair by pair, in blocks of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...engines.pair_predictions import PairPredictions
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..shared.measures import measure
from .pair_predictions_problem import PairOptions

if TYPE_CHECKING:
    from ...device.executor import Executor
    from ..shared.map_rows import MapRows
    from .xmap_problem import XmapProblem

Doubles = NDArray[np.float64]
KERNELS = ("knn", "predict")
#: Libraries of a block: their tables and predictions are on the device together.
BLOCK_LIBRARIES = 64
_ROWS = 64  # predictions that are measured together


class MeasuredXmapEngine:
    """The engine of an :class:`~pyedmcl.edm.maps.xmap_problem.XmapProblem` whose predictions are looked at on the host.

    It holds nothing on the device between blocks.
    """

    def __init__(self, problem: XmapProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill (libraries of the block, n_targets), of each fold where that is asked for, and predictions.

        Predictions are (libraries of the block, n_targets, n_steps); of folds, each row's from the other folds.
        """
        p, record, done = self._problem, Record(), 0
        shape = len(block), p.target_data.series.n_series
        if into is None:
            dtype, made = np.dtype(p.data.dtype), len(block.layers) - p.predictions
            wide = (*shape, p.target_data.series.n_steps)
            into = [np.empty(shape if layer < made else wide, dtype) for layer in block.layers]
        predictions = into[-1] if p.predictions else None
        if predictions is not None:
            predictions[...] = np.nan
        of_folds: list[Doubles] = []
        for rows in p.folds or (p.rows,):
            of_folds.append(np.empty(shape))
            record = record.joined(self._measure(block, rows, _Found(p, of_folds[-1], predictions, rows)))
            done += len(block)
            report(done // max(len(p.folds), 1))
        for layer, skill in zip(into[1:], of_folds if p.each_fold else (), strict=False):
            layer[...] = skill
        into[0][...] = np.mean(of_folds, axis=0)
        return BlockResult(list(into), record)

    def _measure(self, block: Block, rows: MapRows | None, found: _Found) -> Record:
        """Have what is found of one choice of rows be put in its place."""
        p, record = self._problem, Record()
        libraries = p.data.series.values[:, block.begin : block.end]
        targets, E = p.target_data.series.values, np.array(p.E, int)
        for dim in np.unique(E).tolist():
            columns = np.flatnonzero(dim == E)
            n, options = len(targets), PairOptions(p.tau, p.exclusion_radius, p.knn, p.data.dtype)
            library_mask = None if rows is None else rows.library_mask(n, dim, p.tau, p.Tp)
            engine = PairPredictions(
                self._executor, libraries, targets[:, columns], options.search(dim, p.Tp, n), p.search, library_mask
            )
            pairs = [(i, j) for i in range(len(block)) for j in range(len(columns))]
            held: list[tuple[int, int]] = []
            made = []
            try:
                for number, predicted in engine.predict(pairs):
                    held.append((pairs[number][0], int(columns[pairs[number][1]])))
                    made.append(predicted)
                    if len(made) == _ROWS:
                        found.put(held, made)
                        held, made = [], []
                if made:
                    found.put(held, made)
                record = record.joined(Record(engine.parameters, "", tuple(engine.searched)))
            finally:
                engine.release()
        return record

    def release(self) -> None:
        """Nothing is held."""


class _Found:
    """Skill and predictions of one choice of rows, on their way into the arrays of a block.

    Parameters
    ----------
    problem : XmapProblem
    skill : ndarray (libraries of the block, n_targets)
    predictions : ndarray (libraries of the block, n_targets, n_steps) or None
    rows : MapRows or None
    """

    def __init__(
        self, problem: XmapProblem, skill: Doubles, predictions: NDArray[Any] | None, rows: MapRows | None
    ) -> None:
        self._measure, self._skill, self._predictions = problem.skill, skill, predictions
        self._observed = problem.target_data.series.values
        self._asked: NDArray[np.bool_] | None = None
        if rows is not None:  # predictions stand where the predicted rows lead to
            n, Tp = len(self._observed), problem.Tp
            self._asked = np.zeros(n, bool)
            led_to = np.flatnonzero(rows.predicted_mask(n)) + Tp
            self._asked[led_to[(led_to >= 0) & (led_to < n)]] = True

    def put(self, pairs: Sequence[tuple[int, int]], predictions: Sequence[Doubles]) -> None:
        """Predictions of some pairs (library, target)."""
        (libraries, targets), predicted = np.array(pairs).T, np.array(predictions)
        if self._asked is not None:
            predicted[:, ~self._asked] = np.nan
        self._skill[libraries, targets] = measure(self._measure, predicted, self._observed[:, targets].T)
        if self._predictions is None:
            return
        if self._asked is None:
            self._predictions[libraries, targets] = predicted
        else:
            rows = np.flatnonzero(self._asked)
            self._predictions[libraries[:, None], targets[:, None], rows] = predicted[:, rows]
