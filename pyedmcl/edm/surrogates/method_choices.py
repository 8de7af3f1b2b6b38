"""What each kind of surrogates takes from the series themselves, where its name does not say it all."""

from __future__ import annotations

from collections.abc import Sequence

from ...data.series import Series
from .season_choice import SeasonChoice, season_choices
from .surrogate_choice import Choice, choices
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
