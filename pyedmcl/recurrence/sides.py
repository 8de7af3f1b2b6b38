"""Both sides of a recurrence matrix on a device: values and limits, padded with what recurs with nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .limits import band, shift_and_scale

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from .problem import RqaProblem


_BLOCK = 1 << 15


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
        rows = _coordinates(x, problem)
        columns = rows if y is None else _coordinates(y, problem)
        self._held: list[Buffer] = []
        arithmetic = np.float64 if self.checked else np.dtype(problem.dtype)
        shift, scale = 0.0, 1.0
        if self.checked:
            shift, scale, largest = shift_and_scale(rows, columns)
            n = problem.n_features if problem.embedded else problem.m
            outer, inner = self._bands(problem, n, scale, largest, shift * scale)
        self.x_stride, self.y_stride = (side.shape[1] + padding.behind for side in (rows, columns))
        self.y_stride += padding.front
        self.x, self.y = self._values(executor, rows, columns, padding, np.dtype(problem.dtype), shift, scale)
        self.x64, self.y64 = self.x, self.y
        if self.checked:
            self.x64, self.y64 = self._values(executor, rows, columns, padding, np.dtype(arithmetic), 0.0, 1.0)
        per_column = problem.column_limits is not None
        exact = problem.column_limits if per_column else problem.outer_limits()
        assert exact is not None
        inside = problem.inner_limits()
        wanted = [exact] if inside is None else [exact, inside]
        kinds = [*outer, *inner] if self.checked else wanted
        self.limits_per_radius = len(kinds)
        self.limit_stride = self.y_stride if per_column else 0
        self.limits = self._limits(executor, kinds, np.dtype(problem.dtype), per_column, padding)
        self.limits64 = self._limits(executor, wanted, np.dtype(arithmetic), per_column, padding)

    @staticmethod
    def _bands(
        problem: RqaProblem, coordinates: int, scale: float, largest: float, offset: float
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        power = scale * scale if problem.metric == "euclidean" else scale
        limit = problem.column_limits if problem.column_limits is not None else problem.outer_limits()
        below, upto = band(limit * power, problem.metric, coordinates, largest, offset)
        inside = problem.inner_limits()
        if inside is None:
            return [below, upto], []
        least, above = band(inside * power, problem.metric, coordinates, largest, offset)
        return [below, upto], [above, least]

    def _values(
        self, executor: Executor, rows: NDArray[np.float64], columns: NDArray[np.float64], padding: Padding,
        dtype: np.dtype[Any], shift: float, scale: float,
    ) -> tuple[Buffer, Buffer]:  # fmt: skip
        """Both sides shifted, scaled, rounded and padded."""
        x = _padded(rows, 0, padding.behind, dtype, shift, scale)
        found = x[:, : rows.shape[1]] if columns is rows else None
        y = _padded(columns, padding.front, padding.behind, dtype, shift, scale, found)
        for padded, front, n, gap in ((x, 0, rows.shape[1], 1), (y, padding.front, columns.shape[1], -1)):
            _mark(padded, front, n, gap * np.finfo(dtype).max)
            self._held.append(executor.upload(padded))
        return self._held[-2], self._held[-1]

    def _limits(
        self, executor: Executor, kinds: list[NDArray[np.float64]], dtype: np.dtype[Any], per_column: bool,
        padding: Padding,
    ) -> Buffer:  # fmt: skip
        with np.errstate(over="ignore"):
            table = np.stack(kinds).astype(dtype)
        if per_column:
            short = self.y_stride - padding.front - table.shape[1]
            table = np.pad(table, ((0, 0), (padding.front, short)), constant_values=-1)
        else:
            table = np.ascontiguousarray(table.T)
        self._held.append(executor.upload(table))
        return self._held[-1]

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._held:
            buffer.release()
        self._held.clear()


def _coordinates(values: NDArray[Any], problem: RqaProblem) -> NDArray[np.float64]:
    """One row per coordinate of a given point; a series is its only row."""
    given: NDArray[np.float64] = np.asarray(values, np.float64)
    return np.ascontiguousarray(given.T) if problem.embedded else given.reshape(1, -1)


def _padded(
    values: NDArray[np.float64], front: int, behind: int, dtype: np.dtype[Any], shift: float, scale: float,
    found: NDArray[Any] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Values shifted and scaled with room around them, which is not filled; ``found`` holds what they become, if known.

    A block at a time, so that what lies between the steps stays in the processor's cache.
    """
    n = values.shape[1]
    padded = np.empty((len(values), front + n + behind), dtype)
    if found is not None:
        padded[:, front : front + n] = found
        return padded
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, n, _BLOCK):
            block = values[:, at : at + _BLOCK]
            if (shift, scale) != (0.0, 1.0):
                block = (block - shift) * scale
            padded[:, front + at : front + at + block.shape[1]] = block
    return padded


def _mark(padded: NDArray[Any], front: int, n: int, gap: float) -> None:
    """Put ``gap`` around the ``n`` values and in place of those that are missing."""
    padded[:, :front] = gap
    padded[:, front + n :] = gap
    inside = padded[:, front : front + n]
    if np.isnan(inside.min(initial=0.0)):
        inside[np.isnan(inside)] = gap
