"""Forecast skill on the host, in float64, of data of any magnitude.

Products of values below 1e-154 vanish and those above 1e154 overflow. Values are therefore brought near 1 before they
are multiplied, by a power of two, which rounds nothing: elsewhere the bits are those of the values as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import exponents

Doubles = NDArray[np.float64]


def pearson(predicted: NDArray[Any], observed: NDArray[Any], noise: float = 0.0) -> Doubles:
    """Two-pass Pearson rho along the last axis over pairs where both are finite.

    NaN for fewer than 3 pairs or where either side does not vary; predictions whose range is up to ``noise``, their own
    rounding errors, do not.
    """
    p, o = np.asarray(predicted, np.float64), np.asarray(observed, np.float64)
    both = np.isfinite(p) & np.isfinite(o)
    n = both.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p, o = np.where(both, p, 0.0), np.where(both, o, 0.0)
        spread_p = _range(p, both) > noise
        spread_o = _range(o, both) > 0
        p, o = (each * np.ldexp(1.0, -exponents(each))[..., None] for each in (p, o))
        p = np.where(both, p - (p.sum(axis=-1) / n)[..., None], 0.0)
        o = np.where(both, o - (o.sum(axis=-1) / n)[..., None], 0.0)
        rho = (p * o).sum(axis=-1) / np.sqrt((p * p).sum(axis=-1) * (o * o).sum(axis=-1))
    out: Doubles = np.where((n >= 3) & spread_p & spread_o, np.clip(rho, -1, 1), np.nan)
    return out


def _range(values: Doubles, valid: NDArray[np.bool_]) -> Doubles:
    high = np.where(valid, values, -np.inf).max(axis=-1)
    low = np.where(valid, values, np.inf).min(axis=-1)
    out: Doubles = high - low
    return out


def errors(predicted: NDArray[Any], observed: NDArray[Any]) -> tuple[float, float]:
    """Mean absolute error and root mean square error over finite pairs; NaN where there are none."""
    difference = np.asarray(predicted, np.float64) - np.asarray(observed, np.float64)
    difference = difference[np.isfinite(difference)]
    if difference.size == 0:
        return float("nan"), float("nan")
    exponent = exponents(difference)
    near_one = np.ldexp(difference, -exponent)
    absolute, square = np.abs(near_one).mean(), np.sqrt((near_one**2).mean())
    return float(np.ldexp(absolute, exponent)), float(np.ldexp(square, exponent))
