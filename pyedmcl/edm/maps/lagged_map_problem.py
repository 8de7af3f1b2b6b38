"""Cross maps of all pairs at several intervals as a job: at which lag does an effect remember its cause best?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...engines.lagged_map import LaggedMap, Libraries
from ...engines.lagged_targets import Span, centred, laid_out, room_for
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..shared.effort import operations
from .pairs import PairsProblem

if TYPE_CHECKING:
    from ...device.executor import Executor


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
    """The engine of :class:`LaggedMapProblem`: all series on a device, as libraries and as targets."""

    def __init__(self, problem: LaggedMapProblem, executor: Executor) -> None:
        self._problem, self._n = problem, problem.data.series.n_series
        self._map = LaggedMap(executor, libraries_of(problem, np.arange(self._n), problem.lags))
        series = problem.data.series.values
        values = room_for(len(series), self._n, problem.data.dtype)
        for j in range(self._n):
            values[: len(series), j] = laid_out(series[:, j].astype(np.float64), *centred(series[:, j]))
        try:
            self._map.load(values, [Span(j, j + 1, missing_of(series[:, j])) for j in range(self._n)])
        except BaseException:
            self._map.release()
            raise

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (lags of the block, n_series, n_series)."""
        (out,) = [np.empty((len(block), self._n, self._n))] if into is None else into
        everything = np.ones((self._n, self._n), bool)
        for place, Tp in enumerate(self._problem.lags[block.begin : block.end]):
            out[place] = self._map.skill(Tp, everything)
            report(place + 1)
        return BlockResult([out], Record(self._map.parameters))

    def release(self) -> None:
        """Give the device memory back."""
        self._map.release()


def missing_of(values: NDArray[np.floating]) -> NDArray[np.bool_] | None:
    """Rows of a series that are gaps; None where there is none."""
    missing = np.isnan(values)
    return missing if missing.any() else None


def libraries_of(problem: PairsProblem, which: NDArray[np.int_], lags: tuple[int, ...]) -> Libraries:
    """Some series of a problem as libraries, each with its own E."""
    conditioned, n_steps = problem.data.conditioned, problem.data.series.n_steps
    E = np.array(problem.E, int)
    far = max(abs(lag) for lag in lags)
    rows = n_steps - (int(E.max()) - 1) * problem.tau - far - 2 * problem.exclusion_radius - 1
    return Libraries(
        conditioned.values[:, which], E[which], problem.tau, problem.exclusion_radius, problem.knn,
        bool(conditioned.gaps.any()) or rows < 1, problem.search,
    )  # fmt: skip
