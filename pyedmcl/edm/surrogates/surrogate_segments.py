"""Surrogates of series with gaps whose kinds need rows that follow each other: each stretch without gaps by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data.columns import many
from ...data.series import Series
from ...errors import InputError
from .surrogate_makers import Maker, adjusted_by, phases
from .surrogate_streams import Streams

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

METHODS = ("phase", "iaaft")
#: Rows of a stretch of which there is a spectrum to speak of.
LEAST_SEGMENT = 30


@dataclass(frozen=True)
class SegmentChoice:
    """What surrogates of a series keep where it has gaps.

    Attributes
    ----------
    method : {"phase", "iaaft"}
    gaps : int
        Rows without a value.
    drawn : int
        Stretches without gaps that have surrogates of their own; 0 where the series is too short for any.
    shuffled : int
        Values of shorter ones, which are shuffled within each.
    """

    method: str
    gaps: int
    drawn: int
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
    """For each series of each part of a table (its groups); nothing where there are no gaps at all.

    Raises
    ------
    InputError
        A series has gaps, and no stretch that is long enough in any part.
    """
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
