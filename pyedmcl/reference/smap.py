"""Oracle of S-map: locally weighted linear regression by singular values in float64, a row at a time.

Sugihara, Phil. Trans. R. Soc. A 348, 477 (1994): with weights W = exp(-theta d / d_mean), d_mean being the mean
distance of the query's neighbours, the coefficients minimise sum W^2 (y - c0 - c.x)^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .order import nearest_first

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]


class Fit(NamedTuple):
    """Of n query rows: (n,) predictions and variances, (n, D + 1) intercept with slopes, and singular values."""

    predicted: Doubles
    variance: Doubles
    coefficients: Doubles
    singular_values: Doubles


def _neighbours(
    library: Doubles, rows: Integers, point: Doubles, row: int, exclusion_radius: int, knn: int | None
) -> tuple[Integers, Doubles]:
    """Places and distances of the library rows, at most ``knn``, in the order of neighbours.

    The order matters to rounding: solvers by reflections keep the digits of heavy rows only where these come first.
    """
    rows_left = np.flatnonzero(np.abs(np.asarray(rows, np.int64) - row) > exclusion_radius)
    d = np.sqrt(((library[rows_left] - point) ** 2).sum(axis=1))
    order = nearest_first(d, knn)
    return rows_left[order], d[order]


def smap_rows(
    library: npt.ArrayLike,
    target: npt.ArrayLike,
    rows: Integers,
    points: npt.ArrayLike,
    point_rows: Integers,
    theta: float,
    *,
    exclusion_radius: int = 0,
    knn: int | None = None,
    alpha: float = 0.0,
) -> Fit:
    """S-map around each query row.

    Parameters
    ----------
    library : array_like (m, D)
        Coordinates of the library rows.
    target : array_like (m,)
        What each of them leads to.
    rows, point_rows : ndarray of int (m,), (n,)
        Row numbers; pairs up to ``exclusion_radius`` apart are left out (-1: none is).
    points : array_like (n, D)
        Query rows.
    theta : float
        Localisation, at least 0.
    knn : int, optional
        Neighbours; all library rows by default.
    alpha : float
        Ridge penalty on the squared slopes.

    Returns
    -------
    Fit
        NaN for rows without a neighbour.
    """
    x, y, q = (np.asarray(v, np.float64) for v in (library, target, points))
    n, width = len(q), x.shape[1] + 1
    out = Fit(np.full(n, np.nan), np.full(n, np.nan), np.full((n, width), np.nan), np.full((n, width), np.nan))
    for t in range(n):
        near, d = _neighbours(x, rows, q[t], int(point_rows[t]), exclusion_radius, knn)
        if not len(near):
            continue
        mean = d.mean()
        w = np.exp(-theta * d / mean) if mean > 0 else np.ones(len(near))
        if not w.any():  # all of them underflow
            continue
        a = np.column_stack([w, w[:, None] * x[near]])
        b = w * y[near]
        sizes = np.linalg.svd(a, compute_uv=False)
        out.singular_values[t] = 0
        out.singular_values[t, : len(sizes)] = sizes
        if alpha:
            a = np.vstack([a, np.sqrt(alpha) * np.eye(width)[1:]])
            b = np.concatenate([b, np.zeros(width - 1)])
        c = np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], np.float64)
        out.coefficients[t] = c
        out.predicted[t] = c[0] + c[1:] @ q[t]
        out.variance[t] = (w * (y[near] - out.predicted[t]) ** 2).sum() / w.sum()
    return out


def scales(
    library: Doubles, rows: Integers, points: Doubles, point_rows: Integers, *, exclusion_radius: int = 0,
    knn: int | None = None,
) -> tuple[Doubles, Doubles, Integers]:  # fmt: skip
    """Per query row: distance of its nearest library row, mean distance of its neighbours, and how many these are."""
    distances = [_neighbours(library, rows, q, int(t), exclusion_radius, knn)[1]
             for q, t in zip(points, point_rows, strict=True)]  # fmt: skip
    nearest = np.array([d.min() if len(d) else np.inf for d in distances])
    mean = np.array([d.mean() if len(d) else np.nan for d in distances])
    return nearest, mean, np.array([len(d) for d in distances])


def moments(regressors: Doubles, target: Doubles, weights: Doubles) -> Doubles:
    """Sums over rows: W^2 v v' (packed lower triangle) and W^2 v y with v = (1, regressors), then W, W y, W y^2."""
    v = np.column_stack([np.ones(len(target)), regressors])
    weighted = weights[:, None] ** 2 * v
    gram = weighted.T @ v
    packed = [gram[b, a] for b in range(len(gram)) for a in range(b + 1)]
    last = [weights.sum(), (weights * target).sum(), (weights * target**2).sum()]
    return np.array([*packed, *(weighted.T @ target), *last])


def solve(gram: Doubles, right: Doubles) -> Doubles:
    """Solutions (n, K) of symmetric systems (n, K, K) and (n, K)."""
    return np.asarray(np.linalg.solve(gram, right[..., None])[..., 0], np.float64)


def map_rho(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, *, tau: int = 1, Tp: int = 0, exclusion_radius: int = 0,
    ridge: float = 0.0, libraries: Iterable[int] | None = None,
) -> Doubles:  # fmt: skip
    """rho of predictions by S-map, row = library, column = target.

    Parameters
    ----------
    series : array_like (n_steps, n_series)
        NaN for gaps.
    E : int or array_like of int (n_series,)
        Embedding dimension of each target.
    theta, ridge : float
    tau, Tp, exclusion_radius : int
    libraries : iterable of int, optional
        All by default.

    Returns
    -------
    ndarray (n_libraries, n_series)
        NaN for fewer than three predictions, and where they or the observations do not vary.
    """
    which, fits = _map_fits(series, E, theta, tau, Tp, exclusion_radius, ridge, libraries)
    rho = np.full((len(which), np.shape(series)[1]), np.nan)
    for place, column, fit, states, target in fits:
        finite = np.isfinite(target)
        if finite.sum() >= 3 and np.ptp(target[finite]) > 0 and np.ptp(states[finite]) > 0:
            rho[place, column] = np.corrcoef(fit.predicted[finite], target[finite])[0, 1]
    return rho


def map_slopes(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, *, tau: int = 1, Tp: int = 0, exclusion_radius: int = 0,
    ridge: float = 0.0, libraries: Iterable[int] | None = None,
) -> Doubles:  # fmt: skip
    """Mean slopes (n_libraries, n_series, largest E) of targets on the lags of libraries, over all rows with a state.

    Arguments are those of :func:`map_rho`; NaN behind the E of a target, and for a library that never changes.
    """
    which, fits = _map_fits(series, E, theta, tau, Tp, exclusion_radius, ridge, libraries)
    slopes = np.full((len(which), np.shape(series)[1], int(np.max(E))), np.nan)
    for place, column, fit, states, _ in fits:
        if np.ptp(states) > 0:
            slopes[place, column, : states.shape[1]] = fit.coefficients[:, 1:].mean(axis=0)
    return slopes


def _map_fits(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, tau: int, Tp: int, exclusion_radius: int, ridge: float,
    libraries: Iterable[int] | None,
) -> tuple[list[int], Iterator[tuple[int, int, Fit, Doubles, Doubles]]]:  # fmt: skip
    """The libraries of a map, and (place among them, target, fit, states, what they lead to) of each pair."""
    x = np.asarray(series, np.float64)
    n, n_series = x.shape
    which = list(range(n_series) if libraries is None else libraries)
    target_row = np.arange(n) + Tp
    inside = (target_row >= 0) & (target_row < n)

    def pairs() -> Iterator[tuple[int, int, Fit, Doubles, Doubles]]:
        for place, library in enumerate(which):
            for column, dim in enumerate(np.broadcast_to(E, n_series).tolist()):
                states = np.full((n, dim), np.nan)
                for lag in range(dim):
                    states[lag * tau :, lag] = x[: n - lag * tau, library]
                target = np.where(inside, x[np.where(inside, target_row, 0), column], np.nan)
                rows = np.flatnonzero(np.isfinite(states).all(axis=1) & inside)
                rows_left = rows[np.isfinite(target[rows])]
                fit = smap_rows(
                    states[rows_left], target[rows_left], rows_left, states[rows], rows, theta,
                    exclusion_radius=exclusion_radius, alpha=ridge,
                )  # fmt: skip
                yield place, column, fit, states[rows], target[rows]

    return which, pairs()
