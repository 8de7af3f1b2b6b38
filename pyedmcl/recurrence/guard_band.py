"""The guard band: sums so near a limit that a sweep in float32 cannot decide them, so that float64 must.

This is the one place that bounds the rounding errors of float32 sweeps. Series are shifted and scaled first
(:func:`shift_and_scale`, or :func:`pyedmcl.data.condition.condition`), so that float32 keeps the digits that matter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .metrics import Metric

Doubles = NDArray[np.float64]

_UNIT = 2.0**-24  # a float32 operation is wrong by this share of its result at most
_UNIT64 = 2.0**-53  # the same for float64
_SAFETY = 1.5  # for products of errors, which are left out, and for float64's own rounding of what is computed here
_FLUSHED = 2.0**-100  # more than what is lost where a device takes numbers below 2**-126 for zero


class GuardBand(NamedTuple):
    """Sums below ``low`` are below the limit in float64, too; sums of ``high`` and more are not. Numbers of float32."""

    low: Doubles
    high: Doubles


def guard_band(limit: ArrayLike, metric: Metric, coordinates: int, value_error: ArrayLike) -> GuardBand:
    """The guard band of each limit.

    Two coordinates that are off by e each have a difference that is off by 2 e. By the triangle inequality the distance
    is then off by ``spread(coordinates) * 2 e`` at most, whatever the points are. What is compared is the distance to
    the power of ``degree``. On top of that, each operation of the sweep rounds once: the difference and its term (the
    difference enters a square twice), and an addition for each coordinate. A fused multiply-add rounds less often.

    Parameters
    ----------
    limit : array_like of float64
        What sums are compared with, scaled like the coordinates (by ``scale ** degree``).
    metric : Metric
    coordinates : int
        Of a point.
    value_error : array_like of float64
        How far a coordinate in float32 is off at most: see :func:`value_error`.
    """
    limits = np.asarray(limit, np.float64)
    magnitude = np.abs(limits)
    distance = magnitude ** (1 / metric.degree)
    off = 2 * np.asarray(value_error) * metric.spread(coordinates)
    of_values = (distance + off) ** metric.degree - distance**metric.degree
    of_operations = (coordinates + 4) * _UNIT * magnitude
    error = _SAFETY * (of_values + of_operations) + _FLUSHED
    return GuardBand(_next_float32(limits - error, -np.inf), _next_float32(limits + error, np.inf))


def value_error(largest: float, before: float) -> float:
    """How far a coordinate is off in float32.

    Parameters
    ----------
    largest : float
        Largest magnitude of a coordinate as float32 sees it: it was rounded to float32 once.
    before : float
        Magnitude, on the same scale, of the coordinate and of what was subtracted from it in float64 before.
    """
    return largest * _UNIT + 2 * before * _UNIT64


class Scaling(NamedTuple):
    """``(value - shift) * scale`` has magnitude ``largest`` at most."""

    shift: float
    scale: float
    largest: float

    @property
    def value_error(self) -> float:
        """:func:`value_error` of values that were scaled so."""
        return value_error(self.largest, self.largest + abs(self.shift * self.scale))


def shift_and_scale(x: Doubles, y: Doubles) -> Scaling:
    """What brings the finite values of both sides to a magnitude below 1: float32 is relatively best near zero, and
    powers of two round nothing."""
    ranges = [extent for side in ((x,) if y is x else (x, y)) if (extent := _extent(side)) is not None]
    if not ranges:
        return Scaling(0.0, 1.0, 1.0)
    low, high = min(least for least, _ in ranges), max(greatest for _, greatest in ranges)
    shift = low / 2 + high / 2
    largest = max(high - shift, shift - low)
    if largest == 0:
        return Scaling(shift, 1.0, 1.0)
    exponent = math.frexp(largest)[1]
    return Scaling(shift, 2.0**-exponent, largest * 2.0**-exponent)


def _extent(values: Doubles) -> tuple[float, float] | None:
    """The least and the greatest finite value; None where there is none."""
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):  # a search for gaps alone would cost as much as this one
        values = values[np.isfinite(values)]
        if not values.size:
            return None
        low, high = float(values.min()), float(values.max())
    return low, high


def _next_float32(values: Doubles, towards: float) -> Doubles:
    with np.errstate(over="ignore"):
        rounded: NDArray[Any] = values.astype(np.float32)
        rounded = np.nextafter(rounded, np.float32(towards))
    return rounded.astype(np.float64)
