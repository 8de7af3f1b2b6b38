"""Whether a possible cause improves forecasts of its effect, beside the effect's own states and its other causes.

A direct cause knows of the next value of its effect what neither the effect's past nor the other causes tell. A series
that acts through one of these, or is driven by the effect, adds nothing but a coordinate, with which neighbours lie
farther apart. Granger, Econometrica 37, 424 (1969), asks the same of linear fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ..forecasts.multiview_problem import ViewsEngine, ViewsProblem
from ..shared.convergence import upper_tail
from ..shared.effort import operations
from ..shared.states import condition_together, embed, future, standardised
from .lag_order import z_of_difference

if TYPE_CHECKING:
    from ...device.executor import Executor

Doubles = NDArray[np.float64]
_AHEAD = 1  # rows from the states to what is forecast
_BLOCK_FORECASTS = 1024
_TOGETHER = 64  # pairs that are compared at once


@dataclass(frozen=True, order=True)
class Forecast:
    """The next row of an effect, from its delay coordinates and the present values of others; series by numbers."""

    effect: int
    others: tuple[int, ...] = ()

    @property
    def alike(self) -> tuple[int, int]:
        """Forecasts of which this is the same are computed together."""
        return self.effect, len(self.others)


@dataclass(frozen=True)
class ForecastsProblem:
    """Simplex forecasts of series from states that others take part in; rows of the result are forecasts.

    Attributes
    ----------
    values : ndarray (n_steps, n_series)
        NaN for gaps; each is taken in units of its standard deviation, so that all coordinates count alike.
    E : tuple of int
        Delay coordinates of each series.
    forecasts : tuple of Forecast
        Those that are alike side by side.
    tau, exclusion_radius : int
    knn : int or None
        Neighbours; the number of coordinates + 1 if None.
    dtype : str
        What kernels compute in.
    """

    values: NDArray[Any]
    E: tuple[int, ...]
    forecasts: tuple[Forecast, ...]
    tau: int
    exclusion_radius: int
    knn: int | None
    dtype: str

    kernels: ClassVar[tuple[str, ...]] = ViewsProblem.kernels
    unit: ClassVar[str] = "predictions"

    @property
    def total(self) -> int:
        return len(self.forecasts)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Ranges of forecasts."""
        return cut(self.total, _BLOCK_FORECASTS)

    @property
    def operations(self) -> float:
        n, dims = len(self.values), [self.E[one.effect] + len(one.others) for one in self.forecasts]
        return operations(dims or [1], n_library=n, n_query=n, n_series=self.total, n_targets=1)

    def open(self, executor: Executor) -> ForecastsEngine:
        return ForecastsEngine(self, executor)


class ForecastsEngine:
    """The engine of :class:`ForecastsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: ForecastsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Forecasts (forecasts of the block, n_steps), each at the row of the state that it is made from."""
        p, record, done = self._problem, Record(), 0
        (out,) = [np.empty((len(block), len(p.values)))] if into is None else into
        for _, group in itertools.groupby(p.forecasts[block.begin : block.end], lambda one: one.alike):
            alike = list(group)
            engine = ViewsEngine(self._views(alike), self._executor)
            try:
                made = engine.block(Block(0, 0, len(alike)), None, lambda _: None)
            finally:
                engine.release()
            (out[done : done + len(alike)],) = made.arrays
            record = record.joined(made.record)
            done += len(alike)
            report(done)
        return BlockResult([out], record)

    def _views(self, forecasts: Sequence[Forecast]) -> ViewsProblem:
        """Those that are alike, as views of the coordinates that any of them has."""
        p, effect = self._problem, forecasts[0].effect
        others = sorted({other for one in forecasts for other in one.others})
        series = condition_together(standardised(p.values[:, [effect, *others]]), p.dtype)
        E = p.E[effect]
        states = np.concatenate([embed(series[:, :1], E, p.tau), series[:, 1:]], axis=1)
        views = tuple((*range(E), *(E + others.index(other) for other in one.others)) for one in forecasts)
        return ViewsProblem(
            states, p.values[:, effect].astype(np.float64), views, p.knn or len(views[0]) + 1, _AHEAD,
            p.exclusion_radius, None, p.dtype, None,
        )  # fmt: skip

    def release(self) -> None:
        """Nothing is held."""


def p_of_forecasts(
    runner: Runner, values: NDArray[Any], E: NDArray[np.int_], links: Sequence[tuple[int, Forecast]], *, tau: int,
    exclusion_radius: int, knn: int | None, dtype: str,
) -> tuple[Doubles, Record]:  # fmt: skip
    """P-values (n_links,), one-sided, of a cause improving the forecast of its effect.

    Parameters
    ----------
    runner : Runner
    values : ndarray (n_steps, n_series)
        NaN for gaps.
    E : ndarray of int (n_series,)
    links : sequence of (int, Forecast)
        A cause, and the forecast of its effect without it.
    tau, exclusion_radius, knn, dtype
        As for :class:`ForecastsProblem`.
    """
    pairs = [(Forecast(known.effect, (*known.others, cause)), known) for cause, known in links]
    forecasts = tuple(sorted({one for pair in pairs for one in pair}, key=lambda one: (one.alike, one.others)))
    problem = ForecastsProblem(
        values, tuple(int(dim) for dim in E), forecasts, tau, exclusion_radius, knn, dtype
    )  # fmt: skip
    gains = np.empty((problem.total, len(values)))
    record = runner.run(problem, ArraySink(problem.blocks(), [gains]))
    place = {one: number for number, one in enumerate(forecasts)}
    z = np.empty(len(pairs))
    for part in cut(len(pairs), _TOGETHER):
        few = pairs[part.begin : part.end]
        goals = np.stack([future(values[:, known.effect].astype(np.float64), _AHEAD) for _, known in few])
        better, worse = (gains[[place[pair[side]] for pair in few]] for side in (0, 1))
        z[part.begin : part.end] = z_of_difference((better, goals), (worse, goals))
    return np.array([upper_tail(float(value)) for value in z]), record
