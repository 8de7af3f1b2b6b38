"""What makes surrogates of a series of numbers near 1 from random streams, a function for each kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from . import arguments
from .surrogate_streams import Streams

Doubles = NDArray[np.float64]
#: Surrogates (n, n_steps) from n streams.
Maker = Callable[[Streams], Doubles]
_MOST_ROUNDS = 1000


def one_by_one(make: Callable[[np.random.Generator], Doubles]) -> Maker:
    """What makes surrogates by a function of a single generator."""
    return lambda streams: np.stack([make(rng) for rng in streams.generators()])


def placed(values: Doubles, there: NDArray[np.bool_]) -> Doubles:
    """Values where there are any, gaps elsewhere."""
    out = np.full(len(there), np.nan)
    out[there] = values
    return out


def phases(values: Doubles) -> Maker:
    """The same power spectrum with random phases."""
    width, turned = turned_by(values)
    return lambda streams: turned(streams.turns(width))


def turned_by(values: Doubles) -> tuple[int, Callable[[NDArray[np.complex128]], Doubles]]:
    """How many random phases make a surrogate of the same spectrum, and what makes it of these, which it overwrites."""
    n, mean = len(values), values.mean()
    spectrum = np.abs(np.fft.rfft(values - mean))

    def make(turned: NDArray[np.complex128]) -> Doubles:
        turned *= spectrum
        turned[:, 0] = 0.0
        if n % 2 == 0:  # the highest frequency is real: its variance is kept on average
            turned[:, -1] = np.sqrt(2.0) * turned[:, -1].real
        out: Doubles = np.fft.irfft(turned, n, axis=1)
        out += mean
        return out

    return len(spectrum), make


def adjusted(values: Doubles) -> Maker:
    """The same values and, nearly, the same spectrum, by turns."""
    return one_by_one(adjusted_by(values))


def adjusted_by(values: Doubles) -> Callable[[np.random.Generator], Doubles]:
    """What makes a surrogate of the same values and nearly the same spectrum of random numbers."""
    ordered, spectrum = np.sort(values), np.abs(np.fft.rfft(values))

    def make(rng: np.random.Generator) -> Doubles:
        out = rng.permutation(values)
        before = np.empty(0, np.intp)
        for _ in range(_MOST_ROUNDS):
            turned = np.fft.rfft(out)
            size = np.abs(turned)
            turned = np.where(size > 0, turned / np.where(size > 0, size, 1.0), 1.0) * spectrum
            order = _order(np.fft.irfft(turned, len(values)))
            out = np.empty_like(values)
            out[order] = ordered
            if np.array_equal(order, before):
                break
            before = order
        return out

    return make


def _order(values: Doubles) -> NDArray[np.intp]:
    """The stable order of values. Where none are equal there is one order only, which the default sort finds sooner."""
    order = np.argsort(values)
    ordered = values[order]
    return np.argsort(values, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def seasonal(values: Doubles, there: NDArray[np.bool_], period: int) -> Maker:
    """The same mean cycle with shuffled deviations from it."""
    length = check_period(period, len(values))
    phase = np.arange(len(values)) % length
    counts = np.bincount(phase[there], minlength=length)
    cycle = np.bincount(phase[there], values[there], length) / np.maximum(counts, 1)
    rest = values[there] - cycle[phase[there]]
    return one_by_one(lambda rng: placed(cycle[phase[there]] + rng.permutation(rest), there))


def check_period(period: int, n: int) -> int:
    """The rows of a cycle of which a series of ``n`` rows has two at least. Raises InputError."""
    length = arguments.integer("period", period, 2)
    if length * 2 > n:
        raise InputError(f"period={period!r}: two cycles are needed at least, and there are {n} rows")
    return length
