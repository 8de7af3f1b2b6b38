"""P-values by counting: how many surrogates do as well as what was observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def counts(observed: Any, surrogates: Doubles) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Surrogates at least as large, and those that have a value, along the last axis; 0 where ``observed`` has none."""
    observed = np.asarray(observed, np.float64)
    present = np.isfinite(surrogates) & np.isfinite(observed)[..., None]
    with np.errstate(invalid="ignore"):
        reached = (present & (surrogates >= observed[..., None])).sum(axis=-1)
    return reached, present.sum(axis=-1)


def p_values(reached: Any, n: Any) -> Doubles:
    """(1 + ``reached``) / (1 + ``n``), NaN where n is 0."""
    return np.where(np.asarray(n) > 0, (1.0 + np.asarray(reached)) / (1.0 + np.asarray(n)), np.nan)


def smallest_p(n: int) -> float:
    """The p-value of what none of ``n`` surrogates reaches."""
    return 1 / (n + 1)


def reached_of(p_value: Any, n: Any) -> NDArray[np.int_]:
    """How many of ``n`` surrogates did as well, given :func:`p_values`; 0 where these are NaN."""
    made = np.isfinite(p_value)
    return np.where(made, np.rint(np.where(made, p_value, 1.0) * (1 + np.asarray(n))) - 1, 0).astype(np.int64)


def exceedance(observed: Any, surrogates: Doubles) -> Doubles:
    """(1 + surrogates at least as large) / (1 + surrogates) along the last axis; undefined surrogates do not count.

    NaN where ``observed`` is, or where no surrogate has a value.
    """
    return p_values(*counts(observed, surrogates))
