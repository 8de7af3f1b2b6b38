"""Which embedding dimension is taken from the skill of several: the best, or the smallest that is as good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import shown
from ..errors import InputError

Doubles = NDArray[np.float64]

BEST, ONE_SE = "best", "one-se"
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
        known = np.where(np.isnan(rho), -np.inf, rho)
        most = known.max(axis=1, keepdims=True)
        within: Any = self.tolerance
        if within is None:
            assert of_parts is not None
            at = known.argmax(axis=1)
            within = standard_error(of_parts[np.arange(len(rho)), at])[:, None]
        found: NDArray[np.int_] = (known >= most - within).argmax(axis=1) + 1
        return found


def standard_error(of_parts: Doubles) -> Doubles:
    """Standard error (n,) of a mean skill from that of parts (n, PARTS); 0 where fewer than two have one.

    Rows within a part depend on each other; parts, which are long, do so little.
    """
    there = np.isfinite(of_parts)
    n = there.sum(axis=1)
    values = np.where(there, of_parts, 0.0)
    mean = values.sum(axis=1) / np.maximum(n, 1)
    squares = (np.where(there, of_parts - mean[:, None], 0.0) ** 2).sum(axis=1)
    found: Doubles = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1)), 0.0)
    return found
