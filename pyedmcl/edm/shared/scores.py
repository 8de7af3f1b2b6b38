"""Forecast skill on the host, in float64, of data of any magnitude.

Products of values below 1e-154 vanish and those above 1e154 overflow. Values are therefore brought near 1 before they
are multiplied, by a power of two, which rounds nothing: elsewhere the bits are those of the values as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import FAR_EXPONENT, exponents, near_one

Doubles = NDArray[np.float64]


def pearson(predicted: NDArray[Any], observed: NDArray[Any], noise: float | Doubles = 0.0) -> Doubles:
    """Two-pass Pearson rho along the last axis over pairs where both are finite.

    NaN for fewer than 3 pairs or where either side does not vary; predictions whose range is up to ``noise``, their own
    rounding errors, of all rows or of each, do not.
    """
    p, o = np.asarray(predicted, np.float64), np.asarray(observed, np.float64)
    both = np.isfinite(p) & np.isfinite(o)
    n = both.sum(axis=-1)
    if not both.shape[-1]:
        return np.full(n.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        if (n == both.shape[-1]).all():
            (p, range_p), (o, range_o) = _near_one(p), _near_one(o)
            p = p - (p.sum(axis=-1) / n)[..., None]
            o = o - (o.sum(axis=-1) / n)[..., None]
        else:
            p, o = np.where(both, p, 0.0), np.where(both, o, 0.0)
            (p, range_p), (o, range_o) = _near_one(p, both), _near_one(o, both)
            p = np.where(both, p - (p.sum(axis=-1) / n)[..., None], 0.0)
            o = np.where(both, o - (o.sum(axis=-1) / n)[..., None], 0.0)
        rho = (p * o).sum(axis=-1) / np.sqrt((p * p).sum(axis=-1) * (o * o).sum(axis=-1))
    out: Doubles = np.where((n >= 3) & (range_p > noise) & (range_o > 0), np.clip(rho, -1, 1), np.nan)
    return out


def _near_one(values: Doubles, valid: NDArray[np.bool_] | None = None) -> tuple[Doubles, Doubles]:
    """Values of each row, times a power of two where they are far from 1, and their range before."""
    high = (values if valid is None else np.where(valid, values, -np.inf)).max(axis=-1)
    low = (values if valid is None else np.where(valid, values, np.inf)).min(axis=-1)
    reach = np.maximum(np.abs(high), np.abs(low))
    if not ((reach > 2.0**-FAR_EXPONENT) & (reach < 2.0**FAR_EXPONENT)).all():
        values = values * np.ldexp(1.0, -exponents(reach[..., None]))[..., None]
    return values, high - low


def errors_of_rows(predicted: NDArray[Any], observed: NDArray[Any]) -> list[tuple[float, float]]:
    """:func:`errors` of each row; those whose pairs are at the same places together."""
    difference = np.asarray(predicted, np.float64) - np.asarray(observed, np.float64)
    present = np.isfinite(difference)
    if not present[0].any() or (present != present[0]).any():
        return [errors(*row) for row in zip(predicted, observed, strict=True)]
    difference = np.ascontiguousarray(difference[:, present[0]])
    largest_exponent = exponents(difference)
    exponent = np.where(np.abs(largest_exponent) > FAR_EXPONENT, largest_exponent, 0)
    scaled = np.ldexp(difference, -exponent[:, None]) if exponent.any() else difference
    absolute, square = np.abs(scaled).mean(axis=1), np.sqrt((scaled**2).mean(axis=1))
    return list(zip(np.ldexp(absolute, exponent).tolist(), np.ldexp(square, exponent).tolist(), strict=True))


def errors(predicted: NDArray[Any], observed: NDArray[Any]) -> tuple[float, float]:
    """Mean absolute error and root mean square error over finite pairs; NaN where there are none."""
    difference = np.asarray(predicted, np.float64) - np.asarray(observed, np.float64)
    difference = difference[np.isfinite(difference)]
    if difference.size == 0:
        return float("nan"), float("nan")
    scaled, exponent = near_one(difference)
    absolute, square = np.abs(scaled).mean(), np.sqrt((scaled**2).mean())
    return float(np.ldexp(absolute, exponent)), float(np.ldexp(square, exponent))
