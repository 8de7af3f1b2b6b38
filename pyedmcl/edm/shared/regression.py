"""From the arguments of S-map to plain arrays: coordinates of library and query rows, targets, what is observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import complete_rows
from ...data.groups import Entries, Layout
from ...data.series import check_embedding
from ...errors import InputError
from . import arguments, ranges
from .options import PredictionOptions
from .rows import library_of, sides_of

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_COORDINATES = 64


@dataclass(frozen=True)
class Regression:
    """A library, and rows to fit around.

    Attributes
    ----------
    library, target : ndarray (m, D), (m,)
        Coordinates of the library rows and what each leads to; a NaN target: only counted as a neighbour.
    library_rows : ndarray of int (m,)
    points : ndarray (n, D)
        Coordinates of the predicted rows; NaN where one touches a gap.
    rows : ndarray of int (n,)
    observed : ndarray (n,)
        Value at row + Tp, NaN where there is none.
    exclusion_radius : int
        -1 where library and predicted rows are those of different series.
    names : tuple of str
        Of the D coordinates.
    E, tau, Tp : int
    layout : Layout or None
        How groups lie among the predicted rows.
    lags : int
        Of each column.
    """

    library: Doubles
    target: Doubles
    library_rows: Integers
    points: Doubles
    rows: Integers
    observed: Doubles
    exclusion_radius: int
    names: tuple[str, ...]
    E: int
    tau: int
    Tp: int
    layout: Layout | None = None
    lags: int = 1

    def entries(self) -> Entries:
        """Which predictions a result shows."""
        return Entries.of(self.rows, self.Tp, (self.lags - 1) * self.tau, self.layout)


def embed(values: NDArray[Any], E: int, tau: int) -> Doubles:
    """Delay coordinates (n, E * columns) of each column in turn; NaN before row (E-1) tau.

    Of a single column they are a view of the series with NaN before it.
    """
    n, columns = values.shape
    if columns == 1:
        front = (E - 1) * tau
        padded = np.full(front + n, np.nan)
        padded[front:] = values[:, 0]
        return np.ndarray((n, E), np.float64, padded, 8 * front, (8, -8 * tau))
    out = np.full((n, E * columns), np.nan)
    for c in range(columns):
        for e in range(E):
            out[e * tau :, c * E + e] = values[: max(n - e * tau, 0), c]
    return out


def coordinate_names(names: tuple[str, ...], E: int, tau: int, embedded: bool) -> tuple[str, ...]:
    """``x(t-0)``, ``x(t-tau)``, ...; the columns' own names where they are the coordinates."""
    if embedded:
        return names
    return tuple(f"{name}(t-{e * tau})" for name in names for e in range(E))


def prepare(
    lib: Any, pred: Any, target: Any, options: PredictionOptions, *, count_gaps: bool = False
) -> Regression:
    """Check the arguments of :func:`pyedmcl.smap` that say which rows are which.

    With ``count_gaps`` library rows whose target is a gap count as neighbours, without entering a fit, as in pyEDM.

    Raises
    ------
    InputError
        An argument cannot be used; the message names it, its value, and what is needed.
    """
    series, groups = library_of(lib, options)
    E, tau, embedded = options.E, options.tau, options.embedded
    if embedded:
        if E is not None and arguments.integer("E", E, 1) != series.n_series:
            raise InputError(f"E={E}: with embedded=True, E is the number of columns of lib, {series.n_series}")
        E, tau = series.n_series, 1
    elif E is None:
        raise InputError("E=None: the number of lagged values is needed, an integer of at least 1; only with "
                         "embedded=True it is the number of columns")  # fmt: skip
    else:
        E, tau = check_embedding(E, tau)
    lags = 1 if embedded else E
    Tp = arguments.integer("Tp", options.Tp)
    if series.n_series * lags > MOST_COORDINATES:
        raise InputError(
            f"lib: {series.n_series} columns with E={lags} are {series.n_series * lags} coordinates; at most "
            f"{MOST_COORDINATES} are supported"
        )
    sides = sides_of(series, groups, pred, target, options, lags=lags, tau=tau, Tp=Tp)
    target_values, coordinates = sides.target_values, embed(sides.library.values, lags, tau)
    has_target = ranges.finite_target(target_values, Tp)
    library_mask = np.zeros(len(coordinates), bool)
    library_mask[(lags - 1) * tau :] = complete_rows(coordinates[(lags - 1) * tau :])
    if count_gaps:  # inside the series all the same
        library_mask &= ranges.finite_target(np.zeros(len(target_values)), Tp)
    else:
        library_mask &= has_target
    if sides.library_mask is not None:
        library_mask &= sides.library_mask
    library_rows = np.flatnonzero(library_mask)
    if not has_target[library_rows].any():
        raise InputError(
            f"lib: no row has all its {series.n_series * lags} coordinates and a target {Tp} steps on; too many gaps, "
            "or lib_range and valid_lib leave only rows with gaps"
        )
    points = coordinates if pred is None else embed(sides.asked.values, lags, tau)
    return Regression(
        library=_rows(coordinates, library_rows),
        target=target_values[library_rows + Tp],
        library_rows=library_rows,
        points=_rows(points, sides.rows),
        rows=sides.rows,
        observed=sides.observed,
        exclusion_radius=sides.exclusion_radius,
        names=coordinate_names(series.names, lags, tau, embedded),
        E=E,
        tau=tau,
        Tp=Tp,
        layout=sides.layout,
        lags=lags,
    )


def _rows(table: Doubles, rows: Integers) -> Doubles:
    """Ascending rows of a table, without a copy where they lie together."""
    if rows[-1] - rows[0] + 1 == len(rows):
        return table[rows[0] : rows[-1] + 1]
    return table[rows]


def check_thetas(theta: Any) -> Doubles:
    """One theta, or several of them, as an array (n_thetas,)."""
    values = arguments.several("theta", theta)
    return np.array([arguments.theta_of_fit("theta", value) for value in values or [theta]])


def check_knn(knn: Any) -> int | None:
    """Neighbours of a local fit; None for all."""
    return None if knn is None else arguments.integer("knn", knn, 1)
