"""The cycle that seasonal surrogates keep where nobody has said how long it is: that of the series themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data.series import Series
from ...errors import InputError
from .components import Line, common_line
from .surrogate_choice import Choice, choices, length
from .surrogate_makers import Maker, one_by_one, placed, seasonal


@dataclass(frozen=True)
class SeasonChoice:
    """What seasonal surrogates of a series keep.

    Attributes
    ----------
    period : float
        Rows of the mean cycle; 0 where the series has no two cycles of it.
    own : bool
        Whether the series itself was found to have it; otherwise others have.
    """

    period: float
    own: bool

    @property
    def reason(self) -> str:
        """What is kept, and why, in words."""
        if not self.period:
            return "keeps the values alone, in random order, since there are no two cycles"
        source = "was found in it" if self.own else "was found in others, not in it"
        return f"keeps the mean cycle of {length(Line(self.period))} rows, which {source}"

    def maker(self, values: NDArray[np.float64]) -> Maker:
        """What makes surrogates of these values."""
        present = np.isfinite(values)
        if self.period:
            return seasonal(values, present, self.period)
        return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))


def season_choices(parts: Sequence[Series]) -> tuple[tuple[SeasonChoice, ...], ...]:
    """What is taken for each series of each part of a table (its groups).

    A series in which no cycle is found has the one that most others have.

    Raises
    ------
    InputError
        No series has a cycle.
    """
    found = [_clearest(choice) for part in parts for choice in choices(part, "auto", None)]
    usual = common_line(found, max(part.n_steps for part in parts))
    usual = usual or next((own[0] for own in found if own), None)
    if usual is None:
        names = parts[0].names
        where = repr(names[0]) if len(names) == 1 else f"any of {len(names):,} series"
        raise InputError(
            f"period=None: no cycle was found in {where}, and 'seasonal' needs one; say how many rows it has, such as "
            "period=12 for months, or take 'auto'"
        )
    each = iter(found)
    return tuple(
        tuple(_choice(next(each), usual.period, part.n_steps) for _ in range(part.n_series)) for part in parts
    )


def _clearest(choice: Choice) -> tuple[Line, ...]:
    return choice.level.lines[:1]


def _choice(own: tuple[Line, ...], usual: float, n_steps: int) -> SeasonChoice:
    period = own[0].period if own else usual if 2 * usual <= n_steps else 0
    return SeasonChoice(period, bool(own))
