"""Predictions of pairs of series as a job: the problem, and the engine that computes some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...engines.pair_predictions import PairPredictions
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...neighbors.coordinates import delay_problem
from ...neighbors.plan import SearchProblem
from ..shared.effort import operations

if TYPE_CHECKING:
    from ...device.executor import Executor

_BLOCK_PAIRS = 4096
Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class PairOptions:
    """What all pairs share.

    Attributes
    ----------
    tau, exclusion_radius : int
    knn : int or None
        Neighbours; E + 1 if None.
    dtype : str
        What kernels compute in.
    """

    tau: int
    exclusion_radius: int
    knn: int | None
    dtype: str

    def search(self, E: int, Tp: int, n: int) -> SearchProblem:
        """The search of a library of ``n`` steps."""
        return delay_problem(E, self.tau, self.knn or E + 1, Tp, self.exclusion_radius, n, n, self.dtype)


@dataclass(frozen=True)
class PairPredictionsProblem:
    """Simplex predictions of targets from the states of libraries, pair by pair; rows of the result are pairs.

    Attributes
    ----------
    libraries, targets : ndarray (n_steps, n_libraries), (n_steps, n_targets)
        NaN for gaps.
    pairs : ndarray of int (n_pairs, 4)
        Library, target, embedding dimension, and Tp; pairs of one dimension, Tp and library side by side.
    options : PairOptions
    """

    libraries: NDArray[Any]
    targets: NDArray[Any]
    pairs: Numbers
    options: PairOptions

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = "predictions"

    @property
    def total(self) -> int:
        return len(self.pairs)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Ranges of pairs."""
        return cut(self.total, _BLOCK_PAIRS)

    @property
    def operations(self) -> float:
        n, n_libraries = len(self.libraries), len(np.unique(self.pairs[:, [0, 2, 3]], axis=0))
        dims = self.pairs[:, 2].tolist() or [1]
        return operations(dims, n_library=n, n_query=n, n_series=n_libraries, n_targets=self.total // n_libraries + 1)

    def open(self, executor: Executor) -> PairPredictionsEngine:
        return PairPredictionsEngine(self, executor)


class PairPredictionsEngine:
    """The engine of :class:`PairPredictionsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: PairPredictionsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Predictions (pairs of the block, n_steps) at the rows that are predicted."""
        p, record, done = self._problem, Record(), 0
        pairs = p.pairs[block.begin : block.end]
        (out,) = [np.empty((len(pairs), len(p.libraries)))] if into is None else into
        for E, Tp in np.unique(pairs[:, 2:], axis=0).tolist():
            rows = np.flatnonzero((pairs[:, 2] == E) & (pairs[:, 3] == Tp))
            libraries, library = np.unique(pairs[rows, 0], return_inverse=True)
            targets, target = np.unique(pairs[rows, 1], return_inverse=True)
            search = p.options.search(E, Tp, len(p.libraries))
            engine = PairPredictions(self._executor, p.libraries[:, libraries], p.targets[:, targets], search)
            try:
                for number, predicted in engine.predict(list(zip(library.tolist(), target.tolist(), strict=True))):
                    out[rows[number]] = predicted
                record = record.joined(Record(engine.parameters))
            finally:
                engine.release()
            done += len(rows)
            report(done)
        return BlockResult([out], record)

    def release(self) -> None:
        """Nothing is held."""


def predict_pairs(
    runner: Runner, libraries: NDArray[Any], targets: NDArray[Any], pairs: Numbers, options: PairOptions
) -> tuple[NDArray[np.float64], Record]:
    """Predictions (n_pairs, n_steps) of pairs in any order; see :class:`PairPredictionsProblem`."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], pairs[:, 3], pairs[:, 2]))
    problem = PairPredictionsProblem(libraries, targets, pairs[order], options)
    rho = np.empty((len(pairs), len(libraries)))
    record = runner.run(problem, ArraySink(problem.blocks(), [rho]))
    out = np.empty_like(rho)
    out[order] = rho
    return out, record
