"""The random numbers of surrogates: those of each are the same, whatever is drawn with it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Surrogates whose phases come from one random stream: to begin a stream takes longer than to draw the phases of one.
TOGETHER = 32
_MOST = (1 << 64) - 1
_A_STEP = 16  # 16-bit numbers that a step of Philox gives
#: The phases that there are: random ones are 16-bit numbers of these. Sines and cosines take ten times as long.
TURNS = np.exp(2j * np.pi * np.arange(1 << 16) / (1 << 16))
_held = threading.local()  # many threads that ask the system for memory wait for each other


@dataclass(frozen=True)
class Streams:
    """Of the surrogates ``begin`` to ``end - 1`` of series ``number``.

    Attributes
    ----------
    seed, number, begin, end : int
    """

    seed: int
    number: int
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def generators(self) -> list[np.random.Generator]:
        """One for each surrogate."""
        return [self._generator(self.number, i) for i in range(self.begin, self.end)]

    def turns(self, width: int) -> NDArray[np.complex128]:
        """Random complex numbers (n, width) of magnitude 1; valid until this thread asks for others."""
        parts = []
        for group in range(self.begin // TOGETHER, -(-self.end // TOGETHER)):
            first = max(self.begin, group * TOGETHER)
            last = min(self.end, (group + 1) * TOGETHER)
            # What other surrogates of the stream take of its numbers is leapt over, not drawn.
            leap, few = divmod((first - group * TOGETHER) * width, _A_STEP)
            philox = self._philox(self.number, group, 1)
            if leap:
                philox.advance(leap)
            many = few + (last - first) * width
            parts.append(_short(philox, many)[few:].reshape(last - first, width))
        out = _room((len(self), width))
        drawn = np.concatenate(parts) if len(parts) > 1 else parts[0]
        TURNS.take(drawn, out=out, mode="clip")  # which needs no copy, unlike the default
        return out

    def _generator(self, *place: int) -> np.random.Generator:
        return np.random.Generator(self._philox(*place))

    def _philox(self, *place: int) -> np.random.Philox:
        return np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=place))


def _short(philox: np.random.Philox, n: int) -> NDArray[np.uint16]:
    """n random numbers of 16 bits, those that ``Generator.integers`` gives: numbers of 64 bits, lowest bits first."""
    long = np.random.Generator(philox).integers(0, _MOST, -(-n // 4), np.uint64, endpoint=True)  # in half the time
    return long.astype("<u8", copy=False).view("<u2")[:n]


def _room(shape: tuple[int, int]) -> NDArray[np.complex128]:
    """Memory that a thread uses again and again."""
    held: NDArray[np.complex128] | None = getattr(_held, "room", None)
    if held is None or held.size < math.prod(shape):
        held = _held.room = np.empty(math.prod(shape), np.complex128)
    return held[: math.prod(shape)].reshape(shape)
