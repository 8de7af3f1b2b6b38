"""What makes surrogates of a series of numbers near 1 from random streams, a function for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..shared import arguments
from .components import Components, Line, normal_scores
from .surrogate_streams import Streams

Doubles = NDArray[np.float64]
Amplitudes = NDArray[np.complex128]
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


@dataclass(frozen=True, eq=False)
class Waves:
    """Makes surrogates of one power spectrum with random phases; some devices draw them by themselves from this.

    Attributes
    ----------
    n_steps : int
    spectrum : ndarray (n_steps // 2 + 1,)
        Magnitudes of the transform.
    mean : float
    base : ndarray (n_steps,) or None
        What is added to each step.
    missing : ndarray of bool (n_steps,) or None
        Steps that are gaps.
    """

    n_steps: int
    spectrum: Doubles
    mean: float
    base: Doubles | None = None
    missing: NDArray[np.bool_] | None = None

    def __call__(self, streams: Streams) -> Doubles:
        return self.summed(self.turned(streams.turns(len(self.spectrum))))

    def turned(self, turns: Amplitudes) -> Amplitudes:
        """Transforms of surrogates by random phases (n, n_steps // 2 + 1), which are overwritten."""
        turns *= self.spectrum
        turns[:, 0] = 0.0
        if self.n_steps % 2 == 0:  # the highest frequency is real: its variance is kept on average
            turns[:, -1] = np.sqrt(2.0) * turns[:, -1].real
        return turns

    def summed(self, turned: Amplitudes) -> Doubles:
        """Surrogates (n, n_steps) by their transforms."""
        out: Doubles = np.fft.irfft(turned, self.n_steps, axis=1)
        out += self.mean
        if self.base is not None:
            out += self.base
        if self.missing is not None:
            out[:, self.missing] = np.nan
        return out


def phases(values: Doubles) -> Waves:
    """The same power spectrum with random phases."""
    mean = values.mean()
    return Waves(len(values), np.abs(np.fft.rfft(values - mean)), mean)


def ranked(values: Doubles) -> Maker:
    """The same values in the order of waves with the spectrum of their normal scores and random phases.

    Theiler et al., Physica D 58, 77 (1992).
    """
    ordered, waves = np.sort(values), phases(normal_scores(values))

    def make(streams: Streams) -> Doubles:
        drawn = waves(streams)
        np.put_along_axis(drawn, np.argsort(drawn, axis=1), ordered[None], axis=1)
        return drawn

    return make


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


def seasonal(values: Doubles, there: NDArray[np.bool_], period: float) -> Maker:
    """The same mean cycle with shuffled deviations from it."""
    length = check_period(period, len(values))
    line = Line(length, max(min(int(length / 2), int(there.sum()) // 4), 1))
    cycle = Components(lines=(line,)).fitted(values, there)[there]
    rest = values[there] - cycle
    return one_by_one(lambda rng: placed(cycle + rng.permutation(rest), there))


def check_period(period: float, n: int) -> float:
    """The rows of a cycle, of which a series of ``n`` rows has two at least. Raises InputError."""
    length = arguments.real("period", period, "a number of rows, at least 2", lambda rows: rows >= 2)
    if length * 2 > n:
        raise InputError(f"period={period!r}: two cycles are needed at least, and there are {n} rows")
    return length
