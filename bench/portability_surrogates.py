"""Calls about surrogates of causal networks, in the matrix of runtimes: see portability_calls.py."""

from __future__ import annotations

from unittest import mock

import numpy as np
from numpy.typing import NDArray
from portability_place import Answers, NotThereError, Place

from pyedmcl.engines import lagged
from pyedmcl.engines.lagged import LaggedMap, Libraries, Span, WaveDrawer, WaveSeries, centred, laid_out, room_for
from pyedmcl.launch.staging import round_up
from pyedmcl.statistics import counts
from pyedmcl.surrogates.makers import TURNS, Streams, keys, phases


def surrogates(place: Place) -> Answers:
    """Surrogates with random phases, as targets."""
    if not place.executor.info.fp64:
        raise NotThereError("no float64 on this device")
    n_steps, n, first = 20 * place.E + place.tau, 2 * place.E, 30
    rng = np.random.default_rng(16)
    columns = rng.standard_normal((n_steps, 2)).cumsum(0).astype(np.float32)
    several, right, makers = [], [], []
    for j, column in enumerate(columns.T.astype(np.float64)):
        make, scale, streams = phases(column), centred(column), Streams(17, j, first, first + n)
        own = laid_out(np.concatenate([column[None], make(streams)]), *scale).astype(np.float32)
        several.append(WaveSeries(own[0], make.spectrum, make.mean, None, *scale, keys(17, [j], first, first + n)[0]))
        right.append(own)
        makers.append((make, scale))

    def back(j: int, turned: NDArray[np.complex128]) -> NDArray[np.float32]:
        make, scale = makers[j]
        return laid_out(make.summed(turned), *scale).astype(np.float32)

    stride = round_up(2 * (n + 1), 16)
    targets = place.executor.upload(np.full((n_steps + 3, stride), np.nan, np.float32))
    drawer = WaveDrawer(place.executor, n_steps, TURNS)
    with mock.patch.object(lagged, "_AMPLITUDES_BYTES", 1):  # in several parts
        drawer.draw(several, first, n, targets, n_steps + 3, stride, back)
    drawer.release()
    drawn = place.executor.download(targets, np.empty((n_steps + 3, stride), np.float32))
    yield "zeros", drawn[n_steps:], np.zeros((3, stride), np.float32)
    for j, own in enumerate(right):
        yield f"series {j}", drawn[:n_steps, j * (n + 1) : (j + 1) * (n + 1)].T, own


def highest(place: Place) -> Answers:
    """The highest rho of two lags, and counts of surrogates, of two spans of targets, of which a pair is left out."""
    n_steps, width, lags = 20 * place.E + place.tau, 70, (-1, 0)
    rng = np.random.default_rng(18)
    columns = rng.standard_normal((n_steps, width)).cumsum(0)
    values = room_for(n_steps, width, place.dtype)
    for j, column in enumerate(columns.T):
        values[:n_steps, j] = laid_out(column.copy(), *centred(column))
    wanted = np.array([[True, True], [False, True]])
    libraries = np.ascontiguousarray(columns[:, :2], place.dtype)
    mapping = LaggedMap(place.executor, Libraries(libraries, np.full(2, place.E), place.tau))
    try:
        mapping.load(values, [Span(0, 66), Span(66, width)])
        rho, reached, valid = mapping.highest(lags, wanted)
        best = np.fmax.reduce([mapping.skill(Tp, wanted) for Tp in lags])
    finally:
        mapping.release()
    yield "rho", rho, np.where(wanted, best[:, [0, 66]], np.nan).astype(place.dtype)
    for i, own in enumerate((best[:, :66], best[:, 66:])):
        expected = np.where(wanted[:, i], counts(own[:, 0], own[:, 1:].astype(np.float64)), 0)
        yield f"counts, {i}", np.array([reached[:, i], valid[:, i]]), expected
