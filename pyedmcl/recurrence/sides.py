"""Both sides of a recurrence matrix on a device: values and limits, padded with what recurs with nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .guard_band import Scaling, guard_band, shift_and_scale
from .metrics import metric_named

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem

Doubles = NDArray[np.float64]

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
    x_stride, y_stride, front : int
    limit_stride : int
        Numbers of one kind of limit, where columns have their own; 0 otherwise.
    limits_per_radius : int
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
