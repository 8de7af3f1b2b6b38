"""Which cells of a recurrence matrix are recurrent, which are counted, and which float64 must decide."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .arguments import Metric, metric_named

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..device.info import DeviceInfo


# Cell (i, j) joins row i (a point of ``x``) and column j (a point of ``y``, or of ``x`` where there is no ``y``). Point
# t of a series is (x[t], x[t + tau], ..., x[t + (m-1) tau]). The arithmetic is fixed, so that every device and every
# configuration finds the same cells: each difference is rounded to the working precision, squares are rounded on their
# own (no fused multiply-add), and sums run over the lags in ascending order. What is compared with a limit is, for the
# Euclidean metric, that sum of squares; no root is taken. :mod:`pyedmcl.recurrence.arguments` says it of each metric.


@dataclass(frozen=True)
class RqaProblem:
    """A recurrence matrix, for one or several radii at once.

    A point with a NaN (a gap) recurs with no point: its row and its column are white. Everything that a convention
    makes of gaps follows from the counts and from where the gaps are, on the host.
    """

    # m, tau: Embedding dimension and lag. 1 and 1 where the points are ``embedded`` already.
    m: int
    tau: int
    # One of :data:`pyedmcl.recurrence.arguments.METRICS`.
    metric: str
    # "float32" or "float64": what the sweep over the cells computes in.
    dtype: str
    # The cells are those of float64 arithmetic on the given series, whatever ``dtype`` the sweep uses. Otherwise the
    # series and the limits are rounded to ``dtype`` first.
    exact: bool
    # Ascending; all in one pass.
    radii: tuple[float, ...]
    # Radius corridor: one inner radius for each of ``radii``; recurrent is ``inner < d`` and ``d < radius`` (``inner <=
    # d <= radius`` unless ``strict``).
    inner: tuple[float, ...] | None
    # ``d < r`` instead of ``d <= r``.
    strict: bool
    # Cells with |i - j| < theiler are on no diagonal line; 0 keeps all.
    theiler: int
    # These cells are also treated as not recurrent in vertical and white lines, columns, points and offsets. White runs
    # are then interrupted by nothing: a dropped cell is white.
    theiler_everywhere: bool
    # n_rows, n_columns: Points (after embedding).
    n_rows: int
    n_columns: int
    # There is no ``y``: the matrix is its own transpose, and all its cells are counted.
    symmetric: bool
    # ``x`` (and ``y``) are given as points, shape (n_rows, n_features); else as series, shape (n,).
    embedded: bool = False
    # Coordinates of a given point; 1 for series.
    n_features: int = 1
    # The points are those of the data times ``2**-exponent``; radii are in the unit of the data all the same.
    exponent: int = 0
    # ndarray of float64 (n_columns,) or None. Where given, each column's own limit instead (fixed amount of
    # neighbours). ``radii`` then has one entry that counts for nothing, and the problem is not ``symmetric``.
    column_limits: NDArray[np.float64] | None = field(default=None, compare=False)
    # The partner of a joint recurrence: a cell counts as recurrent if it is recurrent in both, the partner's radius
    # being the one of the same number. It has as many rows, columns and radii, and the same ``strict`` and Theiler
    # fields.
    joint: RqaProblem | None = None

    def __post_init__(self) -> None:
        metric_named(self.metric)  # an unknown one is refused here, before any kernel is made for it

    @property
    def arithmetic(self) -> str:
        """The precision that decides which cells are recurrent: "float64" where ``exact``, else ``dtype``."""
        return "float64" if self.exact else self.dtype

    @property
    def coordinates(self) -> int:
        """Numbers in a point."""
        return self.n_features if self.embedded else self.m

    @property
    def cell(self) -> dict[str, Any]:
        """Specialisation of the kernels that compute a cell by itself: coordinate e of point t lies at
        ``t * stride + e * step``."""
        return {
            "m": self.coordinates, "step": 1 if self.embedded else self.tau, "stride": self.n_features,
            "metric": self.metric, "dtype": self.arithmetic,
        }  # fmt: skip

    @property
    def k_first(self) -> int:
        """Offset j - i of the first diagonal that is walked."""
        return 0 if self.symmetric else 1 - self.n_rows

    @property
    def line_window(self) -> int:
        """Diagonals |k| < this hold no lines that a device counts: where the main diagonal of a symmetric matrix holds
        lines, these are added on the host."""
        return max(self.theiler, 1) if self.symmetric else self.theiler

    @property
    def n_radii(self) -> int:
        """How many matrices are counted at once."""
        return len(self.radii)

    def outer_limits(self) -> NDArray[np.float64]:
        """What is compared with the sums, one per radius; numbers of :attr:`arithmetic`, held as float64."""
        return self.limits_of(self.radii)

    def inner_limits(self) -> NDArray[np.float64] | None:
        """As :meth:`outer_limits` for the corridor's inner radii; None without a corridor."""
        return None if self.inner is None else self.limits_of(self.inner)

    def limits_of(self, radii: tuple[float, ...]) -> NDArray[np.float64]:
        """Radii in the unit of what is compared: rounded to the arithmetic, and again by the metric's formula.

        What overflows is a quarter of the largest number: gaps, which are kept as that number, recur with nothing
        still. What vanishes is the smallest normal number: points at a distance of 0 lie within any radius but 0.
        """
        thresholds, numbers = np.asarray(radii, np.float64), np.finfo(self.arithmetic)
        with np.errstate(over="ignore", under="ignore"):
            rounded: NDArray[Any] = np.ldexp(thresholds, -self.exponent).astype(self.arithmetic)
            exact = metric_named(self.metric).limit_of(rounded).astype(np.float64)
        limits: NDArray[np.float64] = np.minimum(exact, float(numbers.max / 4))
        return np.where(thresholds > 0, np.maximum(limits, float(numbers.tiny)), limits)


def require_precision(info: DeviceInfo, problem: RqaProblem) -> None:
    """Refuse a device that cannot compute in the problem's arithmetic, or in that of its partner. Raises InputError."""
    for partner in (problem, problem.joint):
        if partner is not None and partner.arithmetic == "float64" and not info.fp64:
            raise InputError(
                f"exact=True: the device {info.name} has no double precision, in which cells are decided here; "
                "use exact=False or another device"
            )


# The guard band: sums so near a limit that a sweep in float32 cannot decide them, so that float64 must.
#
# This is the one place that bounds the rounding errors of float32 sweeps. Series are shifted and scaled first
# (:func:`shift_and_scale`, or :func:`pyedmcl.series.scaling.condition`), so that float32 keeps the digits that matter.


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


# Both sides of a recurrence matrix on a device: values and limits, padded with what recurs with nothing.


_PIECE = 1 << 15  # values that are scaled together
_UNCHANGED = Scaling(0.0, 1.0, math.inf)


@dataclass(frozen=True)
class Padding:
    """Columns before the first one, and values behind the last one of either side."""

    front: int
    behind: int


class Sides:
    """Values and limits of one problem (one partner of a joint one), uploaded.

    Attributes
    ----------
    x, y, x64, y64, limits, limits64 : Buffer
        As ``recurrence_bits`` wants them; the second precision repeats the first where nothing is rechecked.
    limit_stride : int
        Numbers of one kind of limit, where columns have their own; 0 otherwise.
    checked : bool
        Whether float32 leaves cells open that float64 decides.
    dtype : str
        What the sweep computes in.
    """

    def __init__(
        self, executor: Executor, problem: RqaProblem, x: NDArray[Any], y: NDArray[Any] | None, padding: Padding
    ) -> None:
        self.checked = problem.exact and problem.dtype == "float32"
        self.dtype = problem.dtype
        self.front = padding.front
        self._executor, self._problem, self._padding = executor, problem, padding
        self._held: list[Buffer] = []
        rows = _coordinates(x, problem)
        columns = rows if y is None else _coordinates(y, problem)
        self.x_stride, self.y_stride = (side.shape[1] + padding.behind for side in (rows, columns))
        self.y_stride += padding.front
        limits = [problem.outer_limits() if problem.column_limits is None else problem.column_limits]
        inner = problem.inner_limits()
        if inner is not None:
            limits.append(inner)
        if self.checked:
            scaling = shift_and_scale(rows, columns)
            self.x, self.y = self._values(rows, columns, problem.dtype, scaling)
            self.x64, self.y64 = self._values(rows, columns, "float64")
            swept = self._guarded(limits, scaling)
        else:
            self.x, self.y = self.x64, self.y64 = self._values(rows, columns, problem.dtype)
            swept = limits
        self.limits_per_radius = len(swept)
        self.limit_stride = 0 if problem.column_limits is None else self.y_stride
        self.limits = self._limits(swept, problem.dtype)
        self.limits64 = self._limits(limits, problem.arithmetic)

    def _guarded(self, limits: list[Doubles], scaling: Scaling) -> list[Doubles]:
        """The guard bands of the outer and the inner limits in the order of ``recurrence_bits``: a cell is surely
        recurrent below the first and above the third, and surely not from the second on or up to the fourth."""
        metric = metric_named(self._problem.metric)
        unit = scaling.scale**metric.degree
        outer, *inner = (
            guard_band(limit * unit, metric, self._problem.coordinates, scaling.value_error) for limit in limits
        )
        return [outer.low, outer.high, *(bound for band in inner for bound in (band.high, band.low))]

    def _values(
        self, rows: Doubles, columns: Doubles, dtype: str, scaling: Scaling = _UNCHANGED
    ) -> tuple[Buffer, Buffer]:
        """Both sides scaled, rounded and padded."""
        padding, kind = self._padding, np.dtype(dtype)
        x = _padded(rows, 0, padding.behind, kind, scaling)
        ready = x[:, : rows.shape[1]] if columns is rows else None
        y = _padded(columns, padding.front, padding.behind, kind, scaling, ready)
        for padded, front, n, gap in ((x, 0, rows.shape[1], 1), (y, padding.front, columns.shape[1], -1)):
            _mark(padded, front, n, gap * np.finfo(kind).max)
            self._held.append(self._executor.upload(padded))
        return self._held[-2], self._held[-1]

    def _limits(self, limits: list[Doubles], dtype: str) -> Buffer:
        """Limits radius by radius; or, where columns have their own, kind by kind and padded like the columns."""
        with np.errstate(over="ignore"):
            table = np.stack(limits).astype(dtype)
        if self.limit_stride:
            front = self._padding.front
            table = np.pad(table, ((0, 0), (front, self.y_stride - front - table.shape[1])), constant_values=-1)
        else:
            table = np.ascontiguousarray(table.T)
        self._held.append(self._executor.upload(table))
        return self._held[-1]

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._held:
            buffer.release()
        self._held.clear()


def _coordinates(values: NDArray[Any], problem: RqaProblem) -> Doubles:
    """One row per coordinate of a given point; a series is its only row."""
    doubles: Doubles = np.asarray(values, np.float64)
    return np.ascontiguousarray(doubles.T) if problem.embedded else doubles.reshape(1, -1)


def _padded(
    values: Doubles, front: int, behind: int, dtype: np.dtype[Any], scaling: Scaling, ready: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Values shifted and scaled with room around them, which is not filled; ``ready``: what they become, where known.

    A piece at a time, so that what lies between the steps stays in the processor's cache.
    """
    n = values.shape[1]
    padded = np.empty((len(values), front + n + behind), dtype)
    if ready is not None:
        padded[:, front : front + n] = ready
        return padded
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, n, _PIECE):
            piece = values[:, at : at + _PIECE]
            if (scaling.shift, scaling.scale) != (0.0, 1.0):
                piece = (piece - scaling.shift) * scaling.scale
            padded[:, front + at : front + at + piece.shape[1]] = piece
    return padded


def _mark(padded: NDArray[Any], front: int, n: int, gap: float) -> None:
    """Put ``gap`` around the ``n`` values and in place of those that are missing."""
    padded[:, :front] = gap
    padded[:, front + n :] = gap
    inside = padded[:, front : front + n]
    if np.isnan(inside.min(initial=0.0)):
        inside[np.isnan(inside)] = gap
