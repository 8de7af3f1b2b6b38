"""Which embedding dimension is taken from the skill of several: the best, or the smallest that is as good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import shown
from ...data.columns import some
from ...errors import InputError, warn

Doubles = NDArray[np.float64]

BEST, ONE_SE = "best", "one-se"
#: A skill below this is one of noise, whose best E is any; one that is this near the best is nearly as good, and a
#: dimension that is larger by so much than one that is nearly as good costs neighbours for nothing.
_SKILL, _NEARLY, _FLAT = 0.3, 0.01, 3
#: Parts of the predicted rows, one behind the other, from whose skill its standard error follows.
PARTS = 8


@dataclass(frozen=True)
class DimensionRule:
    """A rule, checked.

    Attributes
    ----------
    tolerance : float or None
        The smallest E whose skill is within this of the best; None for one standard error.
    """

    tolerance: float | None = 0.0

    @classmethod
    def parse(cls, value: Any) -> DimensionRule:
        """The rule that the argument ``E_rule`` names. Raises InputError for any other value."""
        if isinstance(value, str) and value in (BEST, ONE_SE):
            return cls(0.0 if value == BEST else None)
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
        if number and 0 <= value < 2:
            return cls(float(value))
        raise InputError(f"E_rule={shown(value)}: {BEST!r}, {ONE_SE!r}, or a tolerance of rho from 0 to below 2")

    @property
    def parts(self) -> int:
        """Parts of the rows whose skill the rule needs; 0 for none."""
        return PARTS if self.tolerance is None else 0

    @property
    def value(self) -> str | float:
        """As the user gave it."""
        return ONE_SE if self.tolerance is None else self.tolerance or BEST

    def choose(self, rho: Doubles, of_parts: Doubles | None = None) -> NDArray[np.int_]:
        """Dimension of each series: the smallest one of a tie, 1 where no skill is defined.

        Parameters
        ----------
        rho : ndarray (n_series, E_max)
        of_parts : ndarray (n_series, E_max, PARTS), optional
            Skill of parts of the rows, for "one-se".
        """
        skill = np.where(np.isnan(rho), -np.inf, rho)
        most = skill.max(axis=1, keepdims=True)
        within: Any = self.tolerance
        if within is None:
            assert of_parts is not None
            at = skill.argmax(axis=1)
            within = standard_error(of_parts[np.arange(len(rho)), at])[:, None]
        smallest: NDArray[np.int_] = (skill >= most - within).argmax(axis=1) + 1
        return smallest


def tell_doubtful(names: Sequence[str], E: NDArray[np.int_], rho: Doubles) -> None:
    """Warn of dimensions at the upper end of their range, and of those that a much smaller one is nearly as good as.

    Parameters
    ----------
    names : sequence of str (n_series,)
    E : ndarray of int (n_series,)
        What was chosen.
    rho : ndarray (n_series, E_max)
    """
    highest = rho.shape[1]
    skill_of_all = np.where(np.isnan(rho), -np.inf, rho)
    at = skill_of_all[np.arange(len(E)), E - 1]
    least = (skill_of_all >= at[:, None] - _NEARLY).argmax(axis=1) + 1
    flat = (at >= _SKILL) & (least + _FLAT <= E)
    end = (at >= _SKILL) & (highest == E) & (highest > 1) & ~flat
    if end.any():
        warn(
            f"E is at the upper end of its range for {_some(names, end)}: more lags than E_max={highest} may do better"
        )
    if flat.any():
        first = int(np.argmax(flat))
        warn(
            f"skill hardly depends on E for {_some(names, flat)}: {names[first]!r} takes {E[first]} lags, and "
            f"{least[first]} are within {_NEARLY:g} of their skill. E_rule={_NEARLY:g} takes so few"
        )


def _some(names: Sequence[str], which: NDArray[np.bool_]) -> str:
    return some([names[place] for place in np.flatnonzero(which).tolist()])


def standard_error(of_parts: Doubles) -> Doubles:
    """Standard error (n,) of a mean skill from that of parts (n, PARTS); 0 where fewer than two have one.

    Rows within a part depend on each other; parts, which are long, do so little.
    """
    present = np.isfinite(of_parts)
    n = present.sum(axis=1)
    values = np.where(present, of_parts, 0.0)
    mean = values.sum(axis=1) / np.maximum(n, 1)
    squares = (np.where(present, of_parts - mean[:, None], 0.0) ** 2).sum(axis=1)
    deviation: Doubles = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1)), 0.0)
    return deviation
