"""The highest skill of several lags against that of surrogates, of all pairs, as a job."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.quirks import quirks_for
from ..engines.lagged_map import LaggedMap
from ..engines.lagged_targets import Span, centred, laid_out, room_for
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from .effort import operations
from .exceedance import counts
from .lagged_map_problem import libraries_of, missing_of
from .pairs import PairsProblem
from .surrogate import SeriesMakers
from .surrogate_makers import Doubles, Maker
from .surrogate_streams import Streams

if TYPE_CHECKING:
    from ..device.executor import Executor

_MOST_TARGETS = 16384  # series and surrogates that are on the device together
Numbers = NDArray[np.int_]
_PARTS = 4  # of a block: while one is computed, the next is drawn
# Beside drawing processors, what a device does with the last part of a block is waited for: its parts are smaller, but
# not so small that they leave most of a device idle.
_LEAST_TARGETS = 4096


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
        return ("stage", "knn", "lookup")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max(_PARTS * _MOST_TARGETS // (self.n + 1), 1), 3)

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
        self._apart = not quirks_for(executor.info).on_host  # the device is none of the processors that draw
        self._map: LaggedMap | None = None
        if len(self._libraries):
            self._map = LaggedMap(executor, libraries_of(problem, self._libraries, problem.lags))

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and both counts, each (targets of the block, n_series)."""
        p, shape, done = self._problem, (len(block), self._problem.total), 0
        rho, reached, there = [np.empty(shape), *np.empty((2, *shape), int)] if into is None else into
        rho[...], reached[...], there[...] = np.nan, 0, 0
        targets = block.begin + np.flatnonzero(self._wanted[:, block.begin : block.end].any(axis=0))
        if self._map is None or not len(targets):
            return BlockResult([rho, reached, there])
        most = max(self._columns(len(targets) * (p.n + 1), self._map.most_targets) // (p.n + 1), 1)
        parts = [targets[first : first + most] for first in range(0, len(targets), most)]
        with ThreadPoolExecutor(1) as ahead:
            drawn = ahead.submit(self._draw, parts[0])
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                values, spans = drawn.result()
                if following is not None:
                    drawn = ahead.submit(self._draw, following)
                self._map.load(values, spans)
                p.makers.drawer.give_back(values)
                highest = self._map.highest(p.lags, self._wanted[np.ix_(self._libraries, part)])
                for j, (which, skill) in zip((part - block.begin).tolist(), highest, strict=True):
                    place = j, self._libraries[which]
                    rho[place] = skill[:, 0]
                    reached[place], there[place] = counts(skill[:, 0], skill[:, 1:])
                done = int(part.max()) + 1 - block.begin
                report(done)
        return BlockResult([rho, reached, there], Record(self._map.parameters))

    def _columns(self, total: int, most: int) -> int:
        """Columns of a part of ``total`` ones, of which the device takes ``most`` at once."""
        parted = max(total // (2 * _PARTS), _LEAST_TARGETS) if self._apart else _MOST_TARGETS
        return min(parted, _MOST_TARGETS, most)

    def _draw(self, targets: Numbers) -> tuple[NDArray[Any], list[Span]]:
        """Some targets, each before its surrogates, as the device reads them."""
        p, series, each = self._problem, self._problem.data.series.values, self._problem.n + 1
        values = room_for(len(series), len(targets) * each, p.data.dtype, p.makers.drawer.room)
        draws, spans = [], []
        for place, j in enumerate(targets.tolist()):
            column, begin = series[:, j], place * each
            scale, missing = centred(column), missing_of(column)
            values[: len(series), begin] = laid_out(column.astype(np.float64), *scale)
            drawn = values[: len(series), begin + 1 : begin + each].T
            make = functools.partial(_laid_out, p.makers.of(j, (p.E or ())[j]), *scale, missing is not None)
            draws.append((drawn, make, j))
            spans.append(Span(begin, begin + each, missing))
        p.makers.drawer.draw(draws, p.seed, p.first)
        return values, spans

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()


def _laid_out(make: Maker, shift: float, exponent: int, gaps: bool, streams: Streams) -> Doubles:
    """Surrogates as the device reads them."""
    return laid_out(make(streams), shift, exponent, gaps=gaps)
