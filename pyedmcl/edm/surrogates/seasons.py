"""Series without the cycle that they share: a common season is a driver that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...data.condition import near_one
from ...data.groups import Layout
from ...data.series import Series
from .components import Line, common_line, without_cycle
from .group_surrogates import parts_of
from .method_choices import AnyChoice, choices_of
from .surrogate_choice import Choice, choices

# A rhythm that coupled series have by themselves drifts too little to be told from a season in a few cycles.
_LEAST_CYCLES = 10
_LEAST_PERIOD = 3  # up and down by turns is what populations do by themselves


@dataclass(frozen=True)
class Seasons:
    """Series, and which of them had a cycle that was removed.

    Attributes
    ----------
    series : Series
        Without that cycle.
    choices : tuple of tuple
        What surrogates of these series should keep, in each group; empty where the method says it all.
    period : float
        Rows of the cycle; 0 where none was removed.
    without : tuple of str
        Names of the series that had it.
    """

    series: Series
    choices: tuple[tuple[AnyChoice, ...], ...]
    period: float
    without: tuple[str, ...]


def seasons_of(
    series: Series, surrogate: str | None, period: float | None, *, remove: bool, layout: Layout | None = None
) -> Seasons:
    """Remove the cycle that at least half of the series share, and two at least.

    It has 3 rows at least, there are 10 cycles at least, unless its period is known, and it does not drift: what drifts
    may be a rhythm of the series themselves, and is left to the surrogates. Where there are groups, each
    series of each group counts as one of these series, and has a mean cycle of its own.

    Parameters
    ----------
    series : Series
    surrogate : str or None
        Method of surrogates.
    period : float or None
        Rows of a cycle that is known, and is then removed from all; looked for by default.
    remove : bool
        Otherwise series stay as they are.
    layout : Layout, optional
        How groups lie among the rows.
    """
    method, parts = "auto" if remove else surrogate or "", parts_of(series, layout, "data")
    chosen = [list(choices(part, method, period)) for _, part in parts]
    known: tuple[tuple[AnyChoice, ...], ...] = tuple(map(tuple, chosen)) if surrogate == "auto" else ()
    if surrogate == "seasonal" and period is None:
        known = choices_of([part for _, part in parts], surrogate, None)
    n = max(part.n_steps for _, part in parts)
    shared = common_line([choice.level.lines for own in chosen for choice in own], n) if remove else None
    those = [
        (group, number)
        for group, (own, (_, part)) in enumerate(zip(chosen, parts, strict=True))
        if shared is not None and (period is not None or shared.period * _LEAST_CYCLES <= part.n_steps)
        for number, choice in enumerate(own) if _own(choice, shared, n) is not None
    ]  # fmt: skip
    if shared is None or shared.drift or shared.period < _LEAST_PERIOD or 2 * len(those) < series.n_series * len(parts):
        return Seasons(series, known, 0, ())
    values = series.values.copy()
    for group, number in those:
        rows = slice(None) if layout is None else np.flatnonzero(layout.code == group)
        column, exponent = near_one(values[rows, number].astype(np.float64))
        choice = chosen[group][number]
        season = _own(choice, shared, n)
        assert season is not None
        values[rows, number] = np.ldexp(without_cycle(column, season), exponent)
        lines = tuple(line for line in choice.level.lines if line is not season)
        chosen[group][number] = replace(choice, level=replace(choice.level, lines=lines), removed=shared.period)
    left = replace(series, values=values)
    without = tuple(name for number, name in enumerate(series.names) if any(number == other for _, other in those))
    return Seasons(left, tuple(map(tuple, chosen)) if surrogate == "auto" else known, shared.period, without)


def _own(choice: Choice, shared: Line, n: int) -> Line | None:
    """The season of a series that is the one which others have, too."""
    return next((line for line in choice.level.lines if line.shares(shared, n)), None)
