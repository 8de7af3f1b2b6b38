"""Targets of a test at several lags, each series before its surrogates: drawn by the host, or by the device itself."""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...device.quirks import quirks_for
from ...engines.lagged_map import LaggedMap
from ...engines.lagged_targets import Span, centred, laid_out, room_for
from ...engines.waves import WaveDrawer, WaveSeries
from ..maps.lagged_map_problem import missing_of
from ..surrogates.surrogate_makers import Amplitudes, Doubles, Maker, Waves
from ..surrogates.surrogate_streams import TURNS, Streams, keys

if TYPE_CHECKING:
    from .lagged_significance_problem import LaggedSignificanceProblem

#: Series and surrogates of a block.
MOST_OF_A_BLOCK = 1 << 17
# Those that are on the device together: of the host, which draws some while the device computes with others; and of the
# device itself, which is filled by more.
_MOST, _MOST_DRAWN_THERE = 1 << 14, 1 << 17
_PARTS = 4  # of a block, at least
# Beside drawing processors, what a device does with the last part of a block is waited for: its parts are smaller, but
# not so small that they leave most of a device idle.
_LEAST_TARGETS = 4096
_AGAIN = 32  # surrogates that a thread transforms at a time, of those that the device left to the host
Numbers = NDArray[np.int_]


class Draws(Protocol):
    """Where the targets of a map come from."""

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones: series and surrogates."""

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Put some targets on the device; ``following`` come next."""

    def __enter__(self) -> Draws: ...

    def __exit__(self, *error: Any) -> None: ...


def draws_for(problem: LaggedSignificanceProblem, lagged: LaggedMap, targets: Numbers) -> Draws:
    """Whoever draws the surrogates of these targets sooner; the bits are the same."""
    if quirks_for(lagged.executor.info).draws_waves and problem.data.dtype == "float32":
        makers = {j: problem.makers.of(j, (problem.E or ())[j]) for j in targets.tolist()}
        if all(isinstance(maker, Waves) for maker in makers.values()):
            return DeviceDraws(problem, lagged)
    return HostDraws(problem, lagged)


class HostDraws:
    """Surrogates that the host draws: those of the next part while the device computes with one."""

    def __init__(self, problem: LaggedSignificanceProblem, lagged: LaggedMap) -> None:
        self._problem, self._map = problem, lagged
        self._apart = not quirks_for(lagged.executor.info).on_host  # the device is none of the processors that draw
        self._ahead = ThreadPoolExecutor(1)
        self._drawn: Future[tuple[NDArray[Any], list[Span]]] | None = None

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones."""
        parted = max(total // (2 * _PARTS), _LEAST_TARGETS) if self._apart else _MOST
        return min(parted, _MOST, self._map.most_targets)

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Put some targets on the device, and begin to draw those that come next."""
        drawn = self._drawn or self._ahead.submit(self._draw, targets)
        values, spans = drawn.result()
        self._drawn = None if following is None else self._ahead.submit(self._draw, following)
        self._map.load(values, spans)
        self._problem.makers.drawer.give_back(values)

    def _draw(self, targets: Numbers) -> tuple[NDArray[Any], list[Span]]:
        """Some targets, each before its surrogates, as the device reads them."""
        p, series = self._problem, self._problem.data.series.values
        spans = _spans(p, targets)
        values = room_for(len(series), spans[-1].end, p.data.dtype, p.makers.drawer.room)
        draws = []
        for span, j in zip(spans, targets.tolist(), strict=True):
            scale = centred(series[:, j])
            values[: len(series), span.begin] = laid_out(series[:, j].astype(np.float64), *scale)
            drawn = values[: len(series), span.begin + 1 : span.end].T
            draws.append((drawn, _maker(p, j, scale, gaps=span.missing is not None), j))
        p.makers.drawer.draw(draws, p.seed, p.first)
        return values, spans

    def __enter__(self) -> HostDraws:
        return self

    def __exit__(self, *error: Any) -> None:
        self._ahead.shutdown()


class DeviceDraws:
    """Surrogates with random phases, which the device draws; the host does the few that rounding could decide."""

    def __init__(self, problem: LaggedSignificanceProblem, lagged: LaggedMap) -> None:
        self._problem, self._map = problem, lagged
        self._waves = WaveDrawer(lagged.executor, lagged.n_steps, TURNS)

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones."""
        return min(total, _MOST_DRAWN_THERE, self._map.most_targets)

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Draw some targets on the device."""
        p, spans = self._problem, _spans(self._problem, targets)
        numbers = targets.tolist()
        streams = keys(p.seed, numbers, p.first, p.first + p.n)
        several = [self._series(j, own) for j, own in zip(numbers, streams, strict=True)]
        room, layout = self._map.room(spans), self._map.layout_of(spans)

        def back(place: int, turned: Amplitudes) -> NDArray[np.float32]:
            one, waves = several[place], p.makers.of(int(targets[place]), (p.E or ())[targets[place]])
            assert isinstance(waves, Waves)
            out = np.empty((len(turned), self._map.n_steps), np.float32)

            def part(rows: slice) -> None:
                out[rows] = laid_out(waves.summed(turned[rows]), one.shift, one.exponent)

            p.makers.drawer.run([functools.partial(part, slice(i, i + _AGAIN)) for i in range(0, len(out), _AGAIN)])
            return out

        self._waves.draw(several, p.first, p.n, room, layout.rows, layout.stride, back)

    def _series(self, j: int, streams: NDArray[np.uint64]) -> WaveSeries:
        p = self._problem
        column, waves = p.data.series.values[:, j], p.makers.of(j, (p.E or ())[j])
        assert isinstance(waves, Waves)
        scale = centred(column)
        base = waves.base
        if waves.missing is not None:
            base = np.where(waves.missing, np.nan, 0.0 if base is None else base)
        values = laid_out(column.astype(np.float64), *scale).astype(np.float32)
        return WaveSeries(values, waves.spectrum, waves.mean, base, *scale, streams)

    def __enter__(self) -> DeviceDraws:
        return self

    def __exit__(self, *error: Any) -> None:
        self._waves.release()


def _spans(problem: LaggedSignificanceProblem, targets: Numbers) -> list[Span]:
    """Columns of some targets, each before its surrogates."""
    width, series = problem.n + 1, problem.data.series.values
    return [
        Span(place * width, (place + 1) * width, missing_of(series[:, j])) for place, j in enumerate(targets.tolist())
    ]


def _maker(problem: LaggedSignificanceProblem, j: int, scale: tuple[float, int], *, gaps: bool) -> Maker:
    """What makes surrogates of a series as the device reads them."""
    return functools.partial(_laid_out, problem.makers.of(j, (problem.E or ())[j]), *scale, gaps)


def _laid_out(make: Maker, shift: float, exponent: int, gaps: bool, streams: Streams) -> Doubles:
    return laid_out(make(streams), shift, exponent, gaps=gaps)
