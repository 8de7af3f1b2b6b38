"""Series and limits as the sweep of a recurrence plot needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import condition
from ..guard_band import guard_band, value_error
from ..metrics import metric_named

if TYPE_CHECKING:
    from ..problem import RqaProblem

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class SweepData:
    """Both sides as the kernel reads them, coordinate by coordinate, shape (coordinates, n); NaN for gaps.

    ``limits`` are compared by "less than": those of the sweep and those of float64.
    """

    rows: Floats
    columns: Floats
    dtype: str
    exact: bool
    limits: tuple[Floats, ...] = ()
    limits64: tuple[Floats, ...] = ()
    rows64: Floats | None = None
    columns64: Floats | None = None
    reach: float = 0.0
    exponent: int = 0

    def scale(self, largest: int) -> float:
        """What distances are multiplied with before they are added as integers: no pixel's sum exceeds 2^62."""
        # Where all distances are 0, any finite factor does; it must be one in float32, too.
        return 2.0 ** (61 - int(np.frexp(max(self.reach, 2.0**-60))[1]) - int(largest).bit_length())

    def distance_of_one(self, largest: int) -> float:
        """The distance, in the unit of the data, that 1 stands for in a sum."""
        return float(2.0**self.exponent / self.scale(largest))


def prepare(problem: RqaProblem, x: Floats, y: Floats, mean: bool) -> SweepData:
    """Values and limits of the sweep, and, where float64 decides the open cells, what it needs."""
    rows, columns = (np.atleast_2d(side.T if side.ndim == 2 else side) for side in (x, y))
    arithmetic = problem.dtype if mean else problem.arithmetic
    limits64 = () if mean else _less_than(problem, arithmetic)
    if not mean and (arithmetic == problem.dtype):
        # The cells are those of this arithmetic: the values are rounded to it and nothing else.
        with np.errstate(over="ignore"):
            return SweepData(rows.astype(arithmetic), columns.astype(arithmetic), arithmetic, False, limits64)
    both = np.concatenate([rows, columns], axis=1).T
    ready = condition(both, problem.dtype, quiet=not mean)
    power = int(ready.exponent.max())
    values = ready.values
    if (ready.exponent != power).any():
        values = np.ldexp(values, (ready.exponent - power).astype(np.int32)).astype(problem.dtype)
    reach = float(np.nanmax(np.abs(values), initial=0.0))
    split = rows.shape[1]
    sides = values[:split].T, values[split:].T
    if mean:
        return SweepData(*sides, problem.dtype, False, reach=2 * reach * problem.coordinates, exponent=power)
    back = np.ldexp(values.astype(np.float64), power) + ready.shift
    rounded = not np.array_equal(back, both, equal_nan=True)
    before = float(np.ldexp(np.nanmax(np.abs(both), initial=0.0), -power))
    error = value_error(reach, before) if rounded else 0.0
    metric = metric_named(problem.metric)
    scaled = (np.ldexp(limit, -power * metric.degree) for limit in limits64)
    bands = (guard_band(limit, metric, problem.coordinates, error) for limit in scaled)
    limits = tuple(bound.astype(np.float32) for band in bands for bound in band)
    wide = rows.astype(np.float64), columns.astype(np.float64)
    return SweepData(*sides, problem.dtype, True, limits, limits64, *wide)


def _less_than(problem: RqaProblem, arithmetic: str) -> tuple[Floats, ...]:
    """Outer and, in a corridor, inner limit such that a cell counts if it is below the one and not below the other.

    Shape (), or (n_columns,) where each column has its own.
    """
    column_limits = problem.column_limits
    outer: Floats = np.asarray(problem.outer_limits()[0] if column_limits is None else column_limits, arithmetic)
    above = np.asarray(np.inf, arithmetic)
    limits = [outer if problem.strict else np.nextafter(outer, above)]
    corridor = problem.inner_limits()
    if corridor is not None:
        inner: Floats = np.asarray(corridor[0], arithmetic)
        limits.append(np.nextafter(inner, above) if problem.strict else inner)
    return tuple(limits)


def complete_at(side: Floats, problem: RqaProblem, n: int) -> NDArray[np.bool_]:
    """Which points of a side (coordinates, n) have no gap."""
    present: NDArray[np.bool_] = np.logical_not(np.isnan(side).any(axis=0))
    if problem.embedded:
        return present
    complete = present[:n].copy()
    for e in range(1, problem.m):
        complete &= present[e * problem.tau : e * problem.tau + n]
    return complete
