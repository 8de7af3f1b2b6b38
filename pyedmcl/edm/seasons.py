"""Series without the cycle that they share: a common season is a driver that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.condition import near_one
from ..data.series import Series
from .cycles import common_period, without_cycle
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
    choices : tuple of Choice
        What surrogates of these series should keep.
    period : int
        Rows of the cycle; 0 where none was removed.
    without : tuple of str
        Names of the series that had it.
    """

    series: Series
    choices: tuple[Choice, ...]
    period: int
    without: tuple[str, ...]


def seasons_of(series: Series, surrogate: str | None, period: int | None, *, remove: bool) -> Seasons:
    """Remove the cycle that at least half of the series share, and two at least.

    It has 3 rows at least, and there are 10 cycles at least, unless its period is known.

    Parameters
    ----------
    series : Series
    surrogate : str or None
        Method of surrogates.
    period : int or None
        Rows of a cycle that is known, and is then removed from all; looked for by default.
    remove : bool
        Otherwise series stay as they are.
    """
    chosen = choices(series, "auto" if remove else surrogate or "", period)
    shared = common_period([choice.period for choice in chosen]) if remove else 0
    those = [number for number, choice in enumerate(chosen) if shared and choice.period and choice.period % shared == 0]
    few = period is None and shared * _LEAST_CYCLES > series.n_steps
    if shared < _LEAST_PERIOD or few or 2 * len(those) < series.n_series:
        return Seasons(series, chosen if surrogate == "auto" else (), 0, ())
    values = series.values.copy()
    for number in those:
        column, exponent = near_one(values[:, number].astype(np.float64))
        values[:, number] = np.ldexp(without_cycle(column, shared), exponent)
    left = Series(values, series.names, series.time)
    # Of a longer cycle what the shared one does not explain stays.
    kept = tuple(
        replace(one, period=0 if one.period == shared else one.period, removed=shared if number in those else 0)
        for number, one in enumerate(chosen)
    )
    return Seasons(left, kept if surrogate == "auto" else (), shared, tuple(series.names[number] for number in those))
