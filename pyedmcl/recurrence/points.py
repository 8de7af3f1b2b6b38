"""From the user's series to points of a recurrence matrix: one series, several, or points already embedded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import as_series, check_embedding
from ..errors import InputError

_MOST_POINTS = 2**31 - 1024


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one side of a matrix.

    Attributes
    ----------
    values : ndarray
        A series (n,) to be embedded with ``m`` and ``tau``, or points (n, features).
    m, tau : int
        1 and 1 for given points.
    embedded : bool
    coordinates : int
        Coordinates of a point.
    complete : ndarray of bool
        Points without a gap; their number is that of the points.
    """

    values: NDArray[Any]
    m: int
    tau: int
    embedded: bool
    coordinates: int
    complete: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.complete)

    @property
    def n_features(self) -> int:
        """Coordinates of a given point; 1 for a series."""
        return self.coordinates if self.embedded else 1


def points_of(data: Any, what: str, *, m: Any, tau: Any, embedded: bool, suffix: str = "") -> Points:
    """Validate ``data`` and say what its points are.

    Parameters
    ----------
    data : array_like (n,) or (n, d)
        One series; or d series, whose values at one time are coordinates of one state and are delayed together; or,
        if ``embedded``, n points of d coordinates. NaN marks gaps.
    what : str
        The argument's name.
    m, tau : int
    embedded : bool
    suffix : str
        Of the names of m and tau.

    Raises
    ------
    InputError
        For what is no series, infinite values, m and tau that leave fewer than two points, an embedding of points.
    """
    dimension, lag = _embedding(m, tau, suffix)
    if not isinstance(embedded, (bool, np.bool_)):
        raise InputError(f"embedded={embedded!r}: True or False is needed")
    if embedded and dimension > 1:
        raise InputError(f"m={m!r} contradicts embedded=True: {what} holds points already; leave m and tau out")
    series = as_series(data, what=what)
    values = series.values
    first = (dimension - 1) * lag
    if series.n_steps < first + 2:
        raise InputError(
            f"{what}: m{suffix}={dimension}, tau{suffix}={lag} needs at least {first + 2} values to give two points, "
            f"there are {series.n_steps}; use a smaller m{suffix} or tau{suffix}, or a longer series"
        )
    if series.n_steps > _MOST_POINTS:
        raise InputError(f"{what}: {series.n_steps:,} steps; at most {_MOST_POINTS:,} are supported")
    n = series.n_steps - first
    present: NDArray[np.bool_] = np.logical_not(np.isnan(values).any(axis=1))
    complete = present[:n].copy()
    for e in range(1, dimension):
        complete &= present[e * lag : e * lag + n]
    if series.n_series == 1:
        return Points(np.ascontiguousarray(values[:, 0]), dimension, lag, False, dimension, complete)
    if dimension > 1:  # lag by lag, all series of a time together
        values = np.concatenate([values[e * lag : e * lag + n] for e in range(dimension)], axis=1)
    return Points(np.ascontiguousarray(values), 1, 1, True, values.shape[1], complete)


def _embedding(m: object, tau: object, suffix: str) -> tuple[int, int]:
    numbers = []
    for name, value, meaning in ("m", m, "the number of coordinates of a point"), ("tau", tau, "the lag, in steps"):
        try:
            numbers.append(check_embedding(value, 1)[0])
        except InputError:
            raise InputError(f"{name}{suffix}={value!r}: {meaning}, an integer of at least 1, is needed") from None
    return numbers[0], numbers[1]


def same_coordinates(x: Points, y: Points) -> None:
    """Refuse two sides whose points have different numbers of coordinates."""
    if x.coordinates != y.coordinates:
        raise InputError(
            f"y: its points have {y.coordinates} coordinates and those of x have {x.coordinates}; cross recurrence "
            "needs the same m for both"
        )
