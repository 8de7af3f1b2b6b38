"""Shift and scale of data before they become float32, and the way back.

Distances do not change under a shift and scale with a factor. A power of two is exact, so scaling costs no bit; it
keeps squares from overflowing and marks of gaps far away from data. Most data need neither and pass untouched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import warn
from ..parallel import bounds, side_by_side

if TYPE_CHECKING:
    from .series import Series

# Sums of squared differences stay below FAR of kernels/texts.py, and those in which a gap takes part above it.
_LARGEST, _SMALLEST = 1e13, 1e-6
MOST_EXPONENT = 1000  # 2**1000 and 2**-1000 are numbers with all their digits, and enough for any float64
FAR_EXPONENT = 100  # beyond it, products of some numbers may vanish or overflow
_BLOCK = 1 << 20  # numbers that are looked at together
_SAMPLE = 1000
# Of sorted values, the span of so many neighbours is compared with what rounding changes: levels that hold fewer are
# not told apart. Where rounding is a larger share of it than this, for a larger share of values than that, other
# neighbours are found: skills change by 0.001 and more. Of usual data of any shape it is 1e-5 at most.
_ROUNDING = 1e-14  # of the largest value: values nearer than this are equal but for rounding in float64
_LEVEL, _LOST, _VALUES_LOST = 1 / 100, 1e-2, 0.05


@dataclass(frozen=True)
class Conditioned:
    """Series ready for the device."""

    # ndarray (n_steps, n_series). ``(x - shift) * 2**-exponent`` of magnitude at most 1e13, NaN for gaps; the input
    # itself if it needs nothing.
    values: NDArray[Any]
    # ndarray (n_series,) of float64
    shift: NDArray[np.float64]
    # ndarray (n_series,) of int
    exponent: NDArray[np.int_]
    # ndarray (n_series,) of bool. Which series have any gap.
    gaps: NDArray[np.bool_]


def condition(
    values: NDArray[Any], dtype: str, known: tuple[NDArray[Any], NDArray[Any]] | None = None, *, quiet: bool = False
) -> Conditioned:
    """Bring series to what the kernels may assume, as far as there is need.

    Series that do not fit a shorter type as they are lose their middle value first, so that an offset costs no
    digits; otherwise the differences are to be those of the data themselves. Series of extreme magnitude are scaled.

    Parameters
    ----------
    values : ndarray (n_steps, n_series), float32 or float64, finite or NaN
    dtype : str
        What the kernel computes in.
    known : (ndarray, ndarray), optional
        Extent of each series, where it has been found before.
    quiet : bool
        Say nothing of outliers and levels: what float32 cannot decide is decided otherwise.
    """
    target = np.dtype(dtype)
    low, high, gaps = bounds(values, known)
    # Where digits will be lost, the fewest are if the bulk of the values lies around zero.
    shift, lost = np.zeros(values.shape[1]), np.zeros(values.shape[1], bool)
    if target.itemsize < values.dtype.itemsize:
        shift, lost = _middles(values, target)
    if lost.any() and not quiet:
        warn(
            f"{np.count_nonzero(lost)} series with values on levels so far apart, or so unevenly spread, that "
            f"{target.name} loses digits by which neighbours are found: use dtype='float64', or bring the levels "
            "together"
        )
    offset = shift != 0
    reach = np.maximum(np.abs(low - shift), np.abs(high - shift))
    scaled = (reach > _LARGEST) | ((reach > 0) & (reach < _SMALLEST))
    exponent: NDArray[Any] = np.zeros(len(shift), np.int32)
    far = bool(scaled.any())
    if far:
        exponent[scaled] = np.frexp(reach[scaled])[1]
        if not quiet:
            _tell_of_outliers(values, reach, scaled, target)
    if not (far or offset.any()):
        return Conditioned(np.ascontiguousarray(values, target), shift, exponent, gaps)
    out = np.empty(values.shape, target)

    def convert(part: slice) -> None:
        if far:
            out[:, part] = np.ldexp(values[:, part].astype(np.float64) - shift[part], -exponent[part])
        else:  # in float64, and rounded once
            np.subtract(values[:, part], shift[part], out=out[:, part], casting="same_kind", dtype=np.float64)

    side_by_side(convert, _parts(values))
    return Conditioned(out, shift, exponent, gaps)


def _parts(values: NDArray[Any]) -> list[slice]:
    """Ranges of columns that are looked at together."""
    step = max(_BLOCK // max(len(values), 1), 1)
    return [slice(a, a + step) for a in range(0, values.shape[1], step)]


def _middles(values: NDArray[Any], target: np.dtype[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The median of each series, or of a sample of its rows, and whether digits that neighbours need are lost then.

    0 and False where a shorter type holds the series as it is.
    """
    out, lost = np.zeros(values.shape[1]), np.zeros(values.shape[1], bool)

    def find(part: slice) -> None:
        x = values[:, part]
        sample = np.ascontiguousarray(x[:: max(len(x) // _SAMPLE, 1)].T)
        gaps = np.isnan(sample).any(axis=1)
        exact = _held(sample, target, axis=1)
        if len(x) > sample.shape[1] and exact.any():  # of most series the sample has shown that they are not
            exact[exact] = _held(x[:, exact], target, axis=0)
        gapless = np.flatnonzero(~exact & ~gaps)
        if gapless.size:
            out[part.start + gapless] = _medians(sample[gapless])
            lost[part.start + gapless] = _loses(sample[gapless], out[part.start + gapless], target)
        for each in np.flatnonzero(~exact & gaps):
            present = sample[each][~np.isnan(sample[each])]
            if present.size:
                out[part.start + each] = np.median(present)
                lost[part.start + each] = _loses(present[None], out[part.start + each], target)[0]

    side_by_side(find, _parts(values))
    return out, lost


def _loses(rows: NDArray[Any], middles: NDArray[np.float64], target: np.dtype[Any]) -> NDArray[np.bool_]:
    """Whether rounding to a type changes which values of a series (series, values) are near each other."""
    near = max(int(_LEVEL * rows.shape[1]), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.sort(rows, axis=1) - np.reshape(middles, (-1, 1))
        span = away[:, 2 * near :] - away[:, : -2 * near]
    rounded = np.abs(away[:, near:-near]) * (np.finfo(target).eps / 2)
    apart = span > _ROUNDING * np.abs(away).max(axis=1, keepdims=True)
    found: NDArray[np.bool_] = ((rounded > _LOST * span) & apart).sum(axis=1) > _VALUES_LOST * rows.shape[1]
    return found


def _held(values: NDArray[Any], target: np.dtype[Any], axis: int) -> NDArray[np.bool_]:
    """Whether a shorter type holds all values along an axis as they are, gaps left out."""
    with np.errstate(over="ignore", under="ignore"):
        held: NDArray[np.bool_] = ((values.astype(target) == values) | np.isnan(values)).all(axis=axis)
    return held


def _medians(rows: NDArray[Any]) -> NDArray[Any]:
    """The bits of ``numpy.median`` of each row, which looks for NaN and takes four times as long for a few rows."""
    low, high = (rows.shape[1] - 1) // 2, rows.shape[1] // 2
    parts = np.partition(rows, (low, high), axis=1)
    middle = (parts[:, low] + parts[:, high]) / 2 if low < high else parts[:, low]
    return middle + 0.0  # which is not -0


def _tell_of_outliers(
    values: NDArray[Any], reach: NDArray[np.float64], scaled: NDArray[np.bool_], dtype: np.dtype[Any]
) -> None:
    """Warn of values so far from the others that differences of these vanish when they are squared."""
    least = 2.0 ** (int(np.finfo(dtype).minexp) // 3)  # squares of a thousandth of such differences have their digits
    far = 0
    for each in np.flatnonzero(scaled):
        x = values[:: max(len(values) // _SAMPLE, 1), each]
        x = x[~np.isnan(x)]
        if x.size:
            low, high = np.quantile(x, (0.25, 0.75))
            far += int(0 < high - low < least * reach[each])
    if far:
        also = "" if dtype == np.float64 else ", or use dtype='float64'"
        warn(
            f"{far} series with values so large that differences of the others vanish in {dtype.name}, and with them "
            f"what is nearest: treat outliers as gaps (NaN){also}"
        )


def exponents(values: NDArray[Any]) -> NDArray[np.int32]:
    """Binary exponents e of the largest finite magnitudes along the last axis, 0 where all are 0.

    Values times ``2.0**-e``, which is a number with all its digits, are near 1.
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    exponent = np.frexp(np.abs(finite).max(axis=-1, initial=0.0))[1]
    out: NDArray[np.int32] = np.clip(exponent, -MOST_EXPONENT, MOST_EXPONENT)
    return out


def largest(values: NDArray[Any]) -> float:
    """The largest magnitude, 0 where there is nothing but NaN; without a temporary array."""
    # fmin and fmax pass over NaN, and take a third of the time of nanmin and nanmax for a few values.
    low, high = (np.asarray(of.reduce(values, axis=None, initial=0.0)) for of in (np.fmin, np.fmax))
    return max(-float(low), float(high))


def run_of(values: NDArray[Any]) -> NDArray[Any]:
    """The numbers of delay coordinates, each once where they are a view of a series; else the values themselves."""
    base = values.base
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != values.dtype or values.ndim != 2:
        return values
    step, (row, lag), (n, width) = values.itemsize, values.strides, values.shape
    if not n or row != step or base.strides != (step,) or lag > 0 or lag % step or -lag > n * step:
        return values
    first = (values.__array_interface__["data"][0] - base.__array_interface__["data"][0] + (width - 1) * lag) // step
    return base[first : first + n - (width - 1) * lag // step]


def complete_rows(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows (n, coordinates) without a gap."""
    run = run_of(values)
    if run is not values and np.isfinite(run).all():
        return np.ones(len(values), bool)
    return np.asarray(np.isfinite(values).all(axis=1))


def exponent_of(magnitude: float) -> int:
    """As :func:`exponents`, of one number."""
    exponent = math.frexp(magnitude)[1] if math.isfinite(magnitude) else 0
    return min(max(exponent, -MOST_EXPONENT), MOST_EXPONENT)


def far_exponent(values: NDArray[Any]) -> int:
    """Exponent of values so far from 1 that products of some of them may vanish or overflow; 0 for others."""
    exponent = exponent_of(largest(run_of(values)))
    return exponent if abs(exponent) > FAR_EXPONENT else 0


def near_one(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Values times ``2.0**-exponent`` and that exponent: the values themselves and 0 where they are not far from 1."""
    exponent = far_exponent(values)
    return (np.ldexp(values, -exponent) if exponent else values), exponent


def squares(values: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    """Variances of data that were multiplied by ``2**-exponent``, in the unit of the data.

    Those of data below 1e-162 or above 1e154 may be no numbers of float64, of which a warning tells.
    """
    scaled = np.asarray(values, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        out: NDArray[np.float64] = np.ldexp(scaled, 2 * exponent)
    far = abs(exponent) > FAR_EXPONENT
    if far and ((np.isinf(out) & np.isfinite(scaled)).any() or ((out == 0) & (scaled > 0)).any()):
        warn(f"variances of data of magnitude 2**{exponent} are beyond float64 and given as inf or 0; rescale the data")
    return out


@dataclass(frozen=True, eq=False)
class Prepared:
    """Series, and how a device of some precision gets them; all stages of a job share that."""

    series: Series
    # What kernels compute in.
    dtype: str
    # Say nothing of outliers and levels, as of series that were drawn from others.
    quiet: bool = False

    @cached_property
    def conditioned(self) -> Conditioned:
        """The series conditioned for ``dtype``: found once, and left out where the object is pickled."""
        return condition(self.series.values, self.dtype, self.series.extent, quiet=self.quiet)

    @cached_property
    def stateless(self) -> NDArray[np.bool_]:
        """Series (n_series,) that never change: as libraries they estimate nothing."""
        low, high, _ = bounds(self.series.values, self.series.extent)
        return np.asarray(low == high)

    @cached_property
    def libraries(self) -> Conditioned:
        """The same as libraries: one that never changes is all gaps."""
        found = self.conditioned
        if not self.stateless.any():
            return found
        return replace(found, values=np.where(self.stateless, np.nan, found.values), gaps=found.gaps | self.stateless)

    def __reduce__(self) -> tuple[Any, ...]:
        return Prepared, (self.series, self.dtype, self.quiet)
