"""From the p-values of many tests to false discovery rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

Doubles = NDArray[np.float64]

#: A rate within _ROUNDINGS roundings of a number of _DIGITS digits is that number.
_ROUNDINGS, _DIGITS = 4, 9


def false_discovery(p_values: Any) -> Doubles:
    """Smallest false discovery rate at which each test would be called significant, NaN where there is no p-value.

    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 289 (1995).

    Parameters
    ----------
    p_values : array_like
        Of any shape, from 0 to 1; NaN for tests that were not made.

    Returns
    -------
    ndarray of float64
        Of the same shape.

    Raises
    ------
    InputError
        A value is no probability.

    See Also
    --------
    xmap_significance : p-values of all pairs.

    Notes
    -----
    Cost: sorts the p-values.

    A test is significant at a rate if its value here is at most that rate: compare by ``<=``. What the arithmetic makes
    of 3 p-values of 1 / 40 among 6 is a rounding above 0.05; such values are set to the short number that they stand
    for, so that this comparison needs no tolerance.

    Examples
    --------
    >>> import pyedmcl
    >>> pyedmcl.false_discovery([0.01, 0.02, 0.5]).tolist()
    [0.03, 0.03, 0.5]
    """
    p = _probabilities(p_values)
    present = ~np.isnan(p)
    tested = p[present]
    order = np.argsort(tested, kind="stable")
    scaled = tested[order] * len(tested) / np.arange(1, len(tested) + 1)
    adjusted = np.empty_like(scaled)
    adjusted[order] = _short(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0))
    out = np.full(p.shape, np.nan)
    out[present] = adjusted
    return out


def _short(rates: Doubles) -> Doubles:
    """Rates, of which those that differ by rounding only from a decimal number of few digits are that number."""
    with np.errstate(divide="ignore"):
        digits = _DIGITS - 1 - np.floor(np.log10(rates))
    size = 10.0 ** np.clip(np.nan_to_num(digits, posinf=0.0), 0, 22)  # powers of ten that are exact
    decimal = np.rint(rates * size) / size
    return np.where(np.abs(rates - decimal) <= _ROUNDINGS * np.spacing(decimal), decimal, rates)


def _probabilities(p_values: Any) -> Doubles:
    """An array of numbers from 0 to 1, NaN where there is none or it is masked."""
    wrong = "p_values: numbers from 0 to 1, or NaN, are needed"
    try:
        values = np.ma.asanyarray(p_values) if isinstance(p_values, np.ma.MaskedArray) else np.asarray(p_values)
    except Exception as cause:  # whatever the object's own methods raise
        raise InputError(f"{wrong}: {cause}") from cause
    if values.dtype.kind not in "fiuO":  # a complex one would lose a part without a word
        raise InputError(f"{wrong}, not {values.dtype.name}")
    try:
        p: Doubles = np.ma.filled(values.astype(np.float64), np.nan)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InputError(f"{wrong}: {cause}") from cause
    outside = p[(p < 0) | (p > 1)]
    if outside.size:
        raise InputError(f"{wrong}; there is {outside[0]:g}")
    return p
