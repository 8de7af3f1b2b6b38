"""One row of an S-map by singular values in float64: the way out for rows whose normal equations cannot be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.condition import far_exponent
from ..reference.order import nearest_first

Doubles = NDArray[np.float64]
# The nearest row's weight stays 1 where theta / mean is infinite; of a NaN among the weights LAPACK comes to no end.
_MOST_RATE = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Library:
    """Legal library rows on the host.

    Attributes
    ----------
    x, y : ndarray (m, D), (m,)
        Rows whose target is NaN count as neighbours (for ``knn`` and the mean distance) but not in fits.
    rows : ndarray of int (m,)
        Ascending row numbers.
    radius : int
        Rows with |t - j| up to this are left out; -1 where none is.
    knn : int or None
        Neighbours per query; None for all.
    alpha : float
        Ridge penalty on the slopes; 0 for least squares.
    """

    x: Doubles
    y: Doubles
    rows: NDArray[np.int64]
    radius: int
    knn: int | None
    alpha: float = 0.0

    @cached_property
    def _exponent(self) -> int:
        return far_exponent(self.x)

    def weights(self, point: Doubles, row: int, theta: float) -> tuple[NDArray[np.int_], Doubles, float]:
        """Neighbours of a query, nearest first, their weights relative to the nearest one's, and that one's weight.

        Solvers by reflections keep the digits of heavy rows only where these come first.
        """
        apart = self.x - point
        if self._exponent:  # weights depend on ratios of distances only
            apart = np.ldexp(apart, -self._exponent)
        squared = (apart**2).sum(axis=1)
        rows_left = np.flatnonzero(np.abs(self.rows - row) > self.radius)
        rows_left = rows_left[nearest_first(squared[rows_left], self.knn)]
        d = np.sqrt(squared[rows_left])
        if not len(rows_left):
            return rows_left, d, 1.0
        mean = d.mean()
        present = np.isfinite(self.y[rows_left])
        with np.errstate(over="ignore"):
            rate = min(theta / mean, _MOST_RATE) if mean > 0 else 0.0
            w: Doubles = np.exp(-rate * (d - d.min()))[present]
            return rows_left[present], w, float(np.exp(-rate * d.min()))

    def fit(
        self, point: Doubles, row: int, theta: float, *, singular_values: bool = True, unit: int = 0
    ) -> tuple[Doubles, float, float, Doubles]:
        """Coefficients (D + 1,), prediction, variance, singular values (D + 1,) of one row; NaN without neighbours.

        Singular values are those of coordinates multiplied by ``2**unit``.
        """
        near, w, top = self.weights(point, row, theta)
        width = self.x.shape[1] + 1
        if not len(near):
            return np.full(width, np.nan), np.nan, np.nan, np.full(width, np.nan)
        a = w[:, None] * np.column_stack([np.ones(len(near)), self.x[near]])
        b = w * self.y[near]
        sizes = np.zeros(width)
        if singular_values:
            columns = np.full(width, unit)
            columns[0] = 0
            singular = np.linalg.svd(np.ldexp(a, columns), compute_uv=False)
            sizes[: len(singular)] = singular * top
        if self.alpha:
            a = np.vstack([a, np.sqrt(self.alpha) / max(top, 1e-300) * np.eye(width)[1:]])
            b = np.concatenate([b, np.zeros(width - 1)])
        c = np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], np.float64)
        predicted = float(c[0] + c[1:] @ point)
        variance = float((w * (self.y[near] - predicted) ** 2).sum() / w.sum())
        return c, predicted, variance, sizes
