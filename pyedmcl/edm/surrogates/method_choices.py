"""What each kind of surrogates takes from the series themselves, and what it loses of them, which is told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...data.columns import some
from ...data.condition import near_one
from ...data.series import Series
from ...errors import warn
from .season_choice import SeasonChoice, season_choices
from .surrogate_choice import Choice, choices, season_words, sure_change
from .surrogate_segments import METHODS, SegmentChoice, segment_choices

AnyChoice = Choice | SeasonChoice | SegmentChoice


def choices_of(parts: Sequence[Series], method: str, period: float | None) -> tuple[tuple[AnyChoice, ...], ...]:
    """What is taken for each series of each part of a table (its groups).

    By "auto", by "seasonal" without a period, and by "phase" and "iaaft" where there are gaps; nothing for others.

    Raises
    ------
    InputError
        No series has a cycle, or one has gaps everywhere.
    """
    if method == "seasonal" and period is None:
        return season_choices(parts)
    if method in METHODS:
        return segment_choices(parts, method)
    return tuple(choices(part, method, period) for part in parts)


#: Kinds that a season, slow change, a step or a walk passes through.
_BLIND = ("shuffle", "phase", "iaaft", "twin")


def tell_lost(parts: Sequence[Series], method: str) -> None:
    """Warn where series have what surrogates of a method do not keep, and what makes them seem linked."""
    if method not in _BLIND:
        return
    lost: dict[str, list[str]] = {}
    for part in parts:
        for name, column, choice in zip(part.names, part.values.T, choices(part, "auto", None), strict=True):
            values, _ = near_one(column.astype(np.float64))
            words = [season_words(line) for line in choice.level.lines if line.period > 2]
            change = sure_change(values, choice)
            words += ["slow change"] * bool(change.slow) + ["steps"] * bool(change.jumps)
            words += ["a walk that returns to no mean"] * choice.steps
            for word in words[:1]:
                lost.setdefault(word, []).append(name)
    if lost:
        what = "; ".join(f"{word} ({some(list(dict.fromkeys(names)))})" for word, names in list(lost.items())[:3])
        warn(
            f"surrogate={method!r} does not keep what could explain a skill: {what}. Series that share it seem to be "
            "linked: take surrogate='auto', which keeps it"
        )
