"""Series as a sweep in float32 sees them, and the band of sums within which float32 decides nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_UNIT = 2.0**-24  # rounding of float32
_SAFETY = 1.5


def shift_and_scale(x: Doubles, y: Doubles) -> tuple[float, float, float]:
    """(shift, scale, largest magnitude after both), gaps left out: float32 is relatively best near zero, and
    powers of two cost none."""
    ranges = [found for side in ((x,) if y is x else (x, y)) if (found := _range(side)) is not None]
    if not ranges:
        return 0.0, 1.0, 1.0
    low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
    shift = low / 2 + high / 2
    largest = max(high - shift, shift - low)
    if largest == 0:
        return shift, 1.0, 1.0
    exponent = math.frexp(largest)[1]
    return shift, 2.0**-exponent, largest * 2.0**-exponent


def _range(values: Doubles) -> tuple[float, float] | None:
    """The least and the greatest finite value; None where there is none."""
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):  # a gap, which is not worth a look of its own
        values = values[np.isfinite(values)]
        if not values.size:
            return None
        low, high = float(values.min()), float(values.max())
    return low, high


def band(limit: Doubles, metric: str, coordinates: int, largest: float, offset: float) -> tuple[Doubles, Doubles]:
    """Sums below the first are below the limit in float64, too; sums above the second are above it.

    A coordinate is rounded once (at most largest * 2**-24, and what subtracting the shift in float64 lost), a
    difference once more, then squares and sums: the standard bounds, first order, times a margin.

    Parameters
    ----------
    limit : ndarray of float64
        What sums are compared with, scaled like the series (by the square for the Euclidean metric).
    metric : str
    coordinates : int
        Of a point.
    largest : float
        Largest magnitude of a coordinate as float32 sees it.
    offset : float
        Magnitude of the shift on the same scale: subtracting it in float64 was rounded to 2**-53 of that.
    """
    each = 2 * (largest * _UNIT + (largest + abs(offset)) * 2.0**-52)
    magnitude = np.abs(limit)
    if metric == "euclidean":
        error = 2 * each * np.sqrt(coordinates * magnitude) + coordinates * each**2
    else:
        error = np.full_like(limit, each * (coordinates if metric == "manhattan" else 1))
    error = _SAFETY * (error + (coordinates + 4) * _UNIT * magnitude) + 2.0**-100
    return _towards(limit - error, -np.inf), _towards(limit + error, np.inf)


def _towards(values: Doubles, where: float) -> Doubles:
    with np.errstate(over="ignore"):
        rounded: NDArray[Any] = values.astype(np.float32)
        rounded = np.nextafter(rounded, np.float32(where))
    return rounded.astype(np.float64)
