"""Series on a common scale, and radii in other units than that of the data: the one place for both rules.

``normalize`` changes each column of a series by itself, x and y apart, before anything else is done with it. Then a
radius may be given as a multiple of the spread of what is compared. Standard deviations divide by the number of values
(ddof = 0); values that are missing do not count.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import choice
from ..data.condition import exponents
from ..errors import InputError

Doubles = NDArray[np.float64]

NORMALIZATIONS = ("zscore", "range")
UNITS = ("data", "std", "range", "max_distance", "mean_distance")
SEARCHED = ("max_distance", "mean_distance")  # units that follow from all distances
_SCALED = ("fixed", "corridor")  # thresholds whose numbers are radii


class Spread(NamedTuple):
    """Of series, one for each row: all NaN where a series has no value."""

    mean: Doubles
    std: Doubles
    low: Doubles
    high: Doubles


def normalization_named(value: object) -> str | None:
    """``normalize`` if it is known."""
    return None if value is None else choice("normalize", value, NORMALIZATIONS)


def unit_named(value: object, threshold: str) -> str:
    """``radius_unit`` if it is known, and if the threshold has a radius that it can scale."""
    unit = choice("radius_unit", value, UNITS)
    if unit != "data" and threshold not in _SCALED:
        raise InputError(
            f"radius_unit={unit!r} scales a radius, and threshold={threshold!r} has none; leave it out, or choose "
            "threshold='fixed' or 'corridor'"
        )
    return unit


def spread(values: NDArray[Any]) -> Spread:
    """Mean, standard deviation, least and greatest value of each row (series, steps); bit for bit the same for a row
    whatever stands in others."""
    with np.errstate(invalid="ignore", divide="ignore"):
        least, greatest = (of.reduce(values, axis=1).astype(np.float64) for of in (np.fmin, np.fmax))
        exponent = exponents(values)
        near_one = np.ldexp(np.ascontiguousarray(values, np.float64), -exponent[:, None])
        present = ~np.isnan(near_one)
        n = present.sum(axis=1)
        mean = np.where(present, near_one, 0.0).sum(axis=1) / n
        off = np.where(present, near_one - mean[:, None], 0.0)
        std = np.sqrt((off * off).sum(axis=1) / n)
    constant = least == greatest  # whose mean is rounded, so that some deviation from it may be left
    return Spread(
        np.where(constant, least, np.ldexp(mean, exponent)), np.where(constant, 0.0, np.ldexp(std, exponent)),
        least, greatest,
    )  # fmt: skip


def normalized(values: NDArray[Any], how: str | None) -> NDArray[Any]:
    """Rows (series, steps) on a common scale: unchanged without ``how``, 0 everywhere for a constant row."""
    if how is None:
        return values
    spreads = spread(values)
    origin, unit = (spreads.mean, spreads.std) if how == "zscore" else (spreads.low, spreads.high / 2 - spreads.low / 2)
    exponent = np.frexp(np.where(unit > 0, unit, 1.0))[1][:, None]
    with np.errstate(invalid="ignore"):  # halves, and powers of two: no difference of extreme numbers overflows
        off = np.ldexp(values.astype(np.float64) / 2 - origin[:, None] / 2, 1 - exponent)
        scale = np.ldexp(np.where(unit > 0, unit, 1.0)[:, None], -exponent)
        out: Doubles = off / scale if how == "zscore" else off / scale / 2
    return out


def spread_in(unit: str, series: Spread) -> Doubles:
    """The unit of a radius of each row where the columns of a row (rows, columns), of one side or both, are compared:
    the root of their mean variance, or the largest of their ranges."""
    if unit == "range":
        largest: Doubles = 2 * (series.high / 2 - series.low / 2).max(axis=1)
        return largest
    exponent = exponents(series.std)
    near_one = np.ldexp(series.std, -exponent[:, None])
    roots: Doubles = np.ldexp(np.sqrt((near_one * near_one).sum(axis=1) / series.std.shape[1]), exponent)
    return roots


def required(unit: str, length: float, what: str) -> float:
    """The length of a unit, if it is one."""
    if 0 < length < math.inf:
        return length
    why = "no two different values" if length == 0 or math.isnan(length) else "values so large that it overflows"
    raise InputError(
        f"{what}: radius_unit={unit!r} cannot be used, since there are {why}; give the radius in the unit of the data"
    )


def scaled(radii: list[Any], length: float, name: str = "radius") -> list[Any]:
    """Radii, or pairs of them, in the unit of the data."""
    if length == 1.0:
        return radii
    pairs = [isinstance(radius, tuple) for radius in radii]
    out = [
        tuple(part * length for part in radius) if pair else radius * length
        for pair, radius in zip(pairs, radii, strict=True)
    ]
    for asked, radius in zip(radii, out, strict=True):
        outer = radius[1] if isinstance(radius, tuple) else radius
        if not 0 < outer < math.inf and asked != 0:
            raise InputError(f"{name}={asked!r}: times {length!r}, the unit asked for, it is no radius")
    return out
