"""The random numbers of surrogates: those of each are the same, whatever is drawn with it."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
        return np.random.Philox(self._sequence(*place))

    def _sequence(self, *place: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=place)


def keys(seed: int, numbers: Sequence[int], begin: int, end: int) -> NDArray[np.uint64]:
    """Of the streams that phases of surrogates ``begin`` to ``end - 1`` come from: (n_series, n_streams, 2).

    They are two words of each ``SeedSequence(seed, spawn_key=(number, stream, 1))``, of which one takes 20 us. It mixes
    numbers of 32 bits by multiplications (O'Neill, "Developing a seed_seq alternative", 2015): those of the seed, at
    least four, then those of the key, into a pool of four, from which words are made.
    """
    streams = np.arange(begin // TOGETHER, -(-end // TOGETHER), dtype=np.uint32)
    shape, factor = (len(numbers), len(streams)), 0x43B0D7E5

    def hashed(value: Any, step: int = 0x931E8875) -> Any:
        nonlocal factor
        value = value ^ np.uint32(factor)
        factor = factor * step & 0xFFFFFFFF
        value = value * np.uint32(factor)
        return value ^ (value >> np.uint32(16))

    def mixed(x: Any, y: Any) -> Any:
        value = np.uint32(0xCA01F9DD) * x - np.uint32(0x4973F715) * y
        return value ^ (value >> np.uint32(16))

    words = _words(seed)
    words += [0] * (4 - len(words))
    of_series = np.array(numbers, np.uint32)[:, None]  # there are no 2^32 series
    parts = [np.full((1, 1), word, np.uint32) for word in words]
    parts += [of_series, streams[None], np.ones((1, 1), np.uint32)]
    pool = [hashed(part) for part in parts[:4]]
    for i in range(4):
        for j in range(4):
            if i != j:
                pool[j] = mixed(pool[j], hashed(pool[i]))
    for part in parts[4:]:
        pool = [mixed(held, hashed(part)) for held in pool]
    factor = 0x8B51F9DD
    state = np.stack([np.broadcast_to(hashed(held, 0x58F38DED), shape) for held in pool], axis=-1).astype("<u4")
    return state.view("<u8").astype(np.uint64)


def _words(value: int) -> list[int]:
    """A number as numbers of 32 bits, the lowest first."""
    return [value >> shift & 0xFFFFFFFF for shift in range(0, max(value.bit_length(), 1), 32)]


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
