"""Make surrogates of each kind from streams of random numbers."""

from __future__ import annotations

import functools
import hashlib
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import many
from ..errors import InputError
from ..jobs.blocks import cut
from ..parallel import KeptThreads, n_threads
from ..series.groups import Layout
from ..series.series import Series
from ..states import arguments
from .components import Components, Line, normal_scores

# The random numbers of surrogates: those of each are the same, whatever is drawn with it.


#: Surrogates whose phases come from one random stream: to begin a stream takes longer than to draw the phases of one.
TOGETHER = 32
_MOST = (1 << 64) - 1
_A_STEP = 16  # 16-bit numbers that a step of Philox gives
#: The phases that there are: random ones are 16-bit numbers of these. Sines and cosines take ten times as long.
TURNS = np.exp(2j * np.pi * np.arange(1 << 16) / (1 << 16))
_held = threading.local()  # many threads that ask the system for memory wait for each other


@dataclass(frozen=True)
class Streams:
    """Of the surrogates ``begin`` to ``end - 1`` of series ``number``."""

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


# Twins: rows whose states recur at the very same times, between which a path may jump unnoticed.


_CELLS = 1 << 22  # pairs of rows looked at together
_SAMPLED = 1 << 20  # pairs that a threshold is taken from


def twin_groups(values: NDArray[np.float64], E: int, tau: int, recurrence: float) -> NDArray[np.intp]:
    """Number of the group of twins of each state (m,); a state without twins is alone in its group.

    Two states recur if their largest difference of coordinates does not exceed a threshold, by which a share
    ``recurrence`` of all pairs recurs; twins have the same recurrences.

    Parameters
    ----------
    values : ndarray (n,)
    E, tau : int
        m = n - (E-1) tau.
    """
    n = len(values)
    m = n - (E - 1) * tau
    states = np.column_stack([values[(E - 1 - e) * tau : n - e * tau] for e in range(E)])
    threshold = _threshold(states, recurrence)
    step = max(_CELLS // m, 1)
    numbers: dict[bytes, int] = {}
    groups = np.empty(m, np.intp)
    for a in range(0, m, step):
        near = np.ones((min(step, m - a), m), bool)
        for e in range(E):
            near &= np.abs(states[a : a + step, e, None] - states[None, :, e]) <= threshold
        for i, row in enumerate(np.packbits(near, axis=1)):
            groups[a + i] = numbers.setdefault(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), len(numbers))
    return groups


def _threshold(states: NDArray[np.float64], recurrence: float) -> float:
    m = len(states)
    every = max(m * m // _SAMPLED, 1)
    sample = states[::every] if every < m else states[:1]
    distance = np.abs(sample[:, None] - states[None]).max(axis=2)
    return float(np.quantile(distance, recurrence))


def twin_path(groups: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows (n,) of a path that starts anywhere, and at each row goes on from it or from one of its twins.

    After the last state, if no twin leads on, the path starts anywhere again.
    """
    m = len(groups)
    order = np.argsort(groups, kind="stable")
    begin = np.searchsorted(groups[order], np.arange(groups.max() + 2))
    path = np.empty(n, np.intp)
    at = int(rng.integers(m))
    for t in range(n):
        path[t] = at
        first, last = begin[groups[at]], begin[groups[at] + 1]
        at = int(order[first + rng.integers(last - first)]) if last - first > 1 else at
        at = at + 1 if at + 1 < m else int(rng.integers(m))
    return path


# What makes surrogates of a series of numbers near 1 from random streams, a function for each kind.


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
    """Makes surrogates of one power spectrum with random phases; some devices draw them by themselves from this."""

    n_steps: int
    # ndarray (n_steps // 2 + 1,). Magnitudes of the transform.
    spectrum: Doubles
    mean: float
    # ndarray (n_steps,) or None. What is added to each step.
    base: Doubles | None = None
    # ndarray of bool (n_steps,) or None. Steps that are gaps.
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


# Surrogates of series with gaps whose kinds need rows that follow each other: each stretch without gaps by itself.


Mask = NDArray[np.bool_]

METHODS = ("phase", "iaaft")
#: Rows of a stretch of which there is a spectrum to speak of.
LEAST_SEGMENT = 30


@dataclass(frozen=True)
class SegmentChoice:
    """What surrogates of a series keep where it has gaps."""

    method: str
    # Rows without a value.
    gaps: int
    # Stretches without gaps that have surrogates of their own; 0 where the series is too short for any.
    drawn: int
    # Values of shorter ones, which are shuffled within each.
    shuffled: int

    @property
    def reason(self) -> str:
        """What is kept, in words."""
        kept = "the power spectrum" if self.method == "phase" else "the values and, nearly, the spectrum"
        if not self.gaps:
            return f"keeps {kept}"
        stretches = f"each of {self.drawn:,} stretches" if self.drawn != 1 else "the one stretch"
        parts = [f"keeps {kept} of {stretches} of {LEAST_SEGMENT} rows or more without gaps"] if self.drawn else []
        if self.shuffled:
            parts.append(f"shuffles {self.shuffled:,} values within shorter stretches")
        return f"{' and '.join(parts) or 'keeps nothing'}; {many(self.gaps, 'gap', 'stays', 'stay')}"

    def maker(self, values: Doubles) -> Maker:
        """What makes surrogates of these values."""
        segments = segments_of(np.isfinite(values))
        if not self.gaps:
            long, short = segments, []
        else:
            long = [own for own in segments if own.stop - own.start >= LEAST_SEGMENT]
            short = [own for own in segments if own.stop - own.start < LEAST_SEGMENT]
        by_turns = [(own, phases(values[own])) for own in long] if self.method == "phase" else []
        by_rounds = [(own, adjusted_by(values[own])) for own in long] if self.method == "iaaft" else []
        one_by_one: list[tuple[slice, Callable[[np.random.Generator], Doubles]]] = [
            *by_rounds, *((own, _shuffled(values[own])) for own in short)
        ]  # fmt: skip
        width = sum(len(waves.spectrum) for _, waves in by_turns)

        def make(streams: Streams) -> Doubles:
            out = np.full((len(streams), len(values)), np.nan)
            first, turns = 0, streams.turns(width) if width else None
            for own, waves in by_turns:
                assert turns is not None
                end = first + len(waves.spectrum)
                out[:, own] = waves.summed(waves.turned(turns[:, first:end]))
                first = end
            if one_by_one:
                for row, rng in zip(out, streams.generators(), strict=True):
                    for own, made in one_by_one:
                        row[own] = made(rng)
            return out

        return make


def _shuffled(values: Doubles) -> Callable[[np.random.Generator], Doubles]:
    return lambda rng: rng.permutation(values)


def segments_of(there: Mask) -> list[slice]:
    """The stretches of rows without gaps."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    return [slice(begin, end) for begin, end in edges.reshape(-1, 2).tolist()]


def segment_choices(parts: Sequence[Series], method: str) -> tuple[tuple[SegmentChoice, ...], ...]:
    """For each series of each part of a table (its groups); nothing where there are no gaps at all."""
    choices = tuple(tuple(_choice(method, np.isfinite(column)) for column in part.values.T) for part in parts)
    if not any(one.gaps for own in choices for one in own):
        return tuple(() for _ in parts)
    for name, of_series in zip(parts[0].names, zip(*choices, strict=True), strict=True):
        if any(one.gaps for one in of_series) and not any(one.drawn for one in of_series):
            raise InputError(
                f"{method!r} surrogates of series {name!r}, which has gaps, need {LEAST_SEGMENT} rows without a gap "
                "somewhere; fill gaps first, or take 'auto', 'shuffle' or 'seasonal' as surrogate method"
            )
    return choices


def _choice(method: str, there: Mask) -> SegmentChoice:
    lengths = np.array([own.stop - own.start for own in segments_of(there)], int)
    if there.all():
        return SegmentChoice(method, 0, 1, 0)
    short = lengths < LEAST_SEGMENT
    return SegmentChoice(method, int((~there).sum()), int((~short).sum()), int(lengths[short].sum()))


# Surrogates of recordings that stand one below the other: each has those of its own rows.


def grouped(code: NDArray[np.int64], makers: Sequence[Maker]) -> Maker:
    """What makes surrogates (n, n_rows) from those of each group.

    Parameters
    ----------
    code : ndarray of int (n_rows,)
        Group of each row; -1 for none, where surrogates have gaps.
    makers : sequence
        Of each group. Group g of series j has random streams of its own, those of series j * n_groups + g.
    """
    rows = [np.flatnonzero(code == number) for number in range(len(makers))]

    def make(streams: Streams) -> Doubles:
        out = np.full((len(streams), len(code)), np.nan)
        for number, (where, own) in enumerate(zip(rows, makers, strict=True)):
            out[:, where] = own(replace(streams, number=streams.number * len(makers) + number))
        return out

    return make


def parts_of(series: Series, layout: Layout | None, what: str) -> list[tuple[str, Series]]:
    """The rows of each group, and how messages call them: all rows where there are no groups."""
    if layout is None:
        return [(what, series)]
    named = enumerate(layout.groups.names.tolist())
    return [
        (f"{what}, group {name}", Series(series.values[layout.code == number], series.names)) for number, name in named
    ]


def said_together(reasons: Sequence[str]) -> str:
    """What was taken for a series in each of its groups, the most frequent first."""
    most_common = Counter(reasons).most_common()
    if len(most_common) == 1:
        return most_common[0][0]
    return "; ".join(f"in {count} of {len(reasons)} groups {reason}" for reason, count in most_common)


# Surrogates of many series at a time: the threads that draw them, and the memory that they fill.


# Of surrogates that are made together: what they are made of fits into a cache, and is used again
_SURROGATE_DRAWS_CELLS = 1 << 16
# Threads take turns at the interpreter after each step of NumPy: more of them wait longer, and longer steps wait less.
# 16,384 surrogates of 3,000 steps took 1.2 s on one core, 0.90 on 16, 0.73 on 4, and with longer steps 0.31 on 4.
# With threads and memory that are kept, numbers take 14.8 ns on a host of 8 cores with two threads each; on 8 threads
# 3.35, on 12 3.04, on 16 2.92, where the thread that launches kernels is to have one, too.
_THREADS, _LONGER = 12, 8


class Drawer:
    """Draws surrogates. Its threads, and memory that it gets back, serve from one draw to the next.

    A system clears each page of memory that is asked for afresh: where that is dear, as on virtual machines, it takes
    as long as to draw what the page will hold.
    """

    def __init__(self) -> None:
        self._threads = KeptThreads(n_threads(_THREADS))  # NumPy lets others work while it transforms an array
        self._free: list[NDArray[np.uint8]] = []

    def draw(self, several: Sequence[tuple[NDArray[Any], Maker, int]], seed: int, first: int) -> None:
        """Surrogates from ``first`` on of several series: (out, make, number) of each.

        ``out`` (n, n_steps) may be of any type and layout. How the random streams of series are kept apart is said in
        :mod:`pyedmcl.surrogates.makers`.
        """

        cells = _SURROGATE_DRAWS_CELLS * (_LONGER if self._threads.n > 2 else 1)
        parts = []
        for out, make, number in several:
            rows = max(cells // out.shape[1], 1)  # whole streams where there are many
            rows -= rows % TOGETHER if rows > TOGETHER else 0
            for part in cut(len(out), rows):
                streams = Streams(seed, number, first + part.begin, first + part.end)
                parts.append(functools.partial(_fill, out[part.begin : part.end], make, streams))
        self.run(parts)

    def run(self, parts: Sequence[Callable[[], None]]) -> None:
        """Do all parts of some work, side by side where there are several."""
        self._threads.share(lambda part: part(), parts)

    def room(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array of unknown content, in memory that was given back where that is large enough."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        held = self._free.pop() if self._free else None
        if held is None or held.nbytes < nbytes:
            held = np.empty(nbytes, np.uint8)
        array: NDArray[Any] = held[:nbytes].view(dtype).reshape(shape)
        return array

    def give_back(self, array: NDArray[Any]) -> None:
        """Have the memory of an array from :meth:`room` used again."""
        if array.base is not None:
            self._free.append(array.base)

    def release(self) -> None:
        """Give all memory back to the system, and end the threads; the next draw begins others."""
        self._free.clear()
        self._threads.end()


def _fill(out: NDArray[Any], make: Maker, streams: Streams) -> None:
    out[...] = make(streams).astype(out.dtype, copy=False)  # where time is the first axis, turned


def draw(make: Maker, n: int, seed: int, number: int, n_steps: int, first: int = 0) -> Doubles:
    """n surrogates (n, n_steps) of series ``number`` from ``first`` on."""
    out = arguments.room("n", (n, n_steps))
    drawer = Drawer()
    try:
        drawer.draw([(out, make, number)], seed, first)
    finally:
        drawer.release()
    return out
