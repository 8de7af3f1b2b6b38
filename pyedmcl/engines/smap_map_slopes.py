"""Mean slopes of local linear fits of all targets to the lags of a library, from what each row adds to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .smap_map_kernels import MapKernels, TargetClass

Doubles = NDArray[np.float64]

# Libraries whose products with the targets are one: few enough that what they need stays in the caches.
_TOGETHER = 32


def host_bytes(rows: int, E: int) -> int:
    """What the host holds of a library of ``rows`` rows while it computes mean slopes."""
    return 8 * rows * (4 * E + 1)


class MeanSlopes:
    """The host's part: products with the targets, and the way back from white regressors to lags.

    Parameters
    ----------
    kernels : MapKernels
    libraries : ndarray (n_steps, n_series)
    targets : ndarray (n_steps, n_targets) of float64
    exponents : (ndarray of int (n_series,), ndarray of int (n_targets,))
        Libraries and targets are the data times ``2**-exponent``.
    """

    def __init__(
        self, kernels: MapKernels, libraries: Doubles, targets: Doubles,
        exponents: tuple[NDArray[np.int_], NDArray[np.int_]],
    ) -> None:  # fmt: skip
        self._kernels, self._libraries, self._targets, self._exponents = kernels, libraries, targets, exponents
        self._held: tuple[tuple[int, int], Doubles] | None = None

    def of(
        self, each: TargetClass, a: int, n: int, columns: NDArray[np.int_], library_mask: NDArray[np.bool_],
        asked: NDArray[np.bool_],
    ) -> Doubles:  # fmt: skip
        """Mean slopes (n, targets of the class, E) of libraries a to a + n, in units of the data.

        Parameters
        ----------
        each : TargetClass
            Whose states and systems are on the device.
        a, n : int
        columns : ndarray of int (targets of the class,)
        library_mask : ndarray of bool (n_steps,)
            Library rows that may be neighbours.
        asked : ndarray of bool (n_steps,)
            Rows that are predicted, around each of which there is a fit.
        """
        first, m, _ = self._kernels.shape.extent(each.E)
        rows = slice(first, first + m)
        of_rows, (weights, z) = self._kernels.weigh(each, n), self._kernels.regressors(each, n)
        ahead = self._ahead(each, columns)
        out = np.empty((n, len(columns), each.E))
        of_libraries, of_targets = self._exponents
        begin = a
        while begin < a + n:  # groups begin at multiples of their size, wherever a block of libraries begins
            end = min((begin // _TOGETHER + 1) * _TOGETHER, a + n)
            part = slice(begin - a, end - a)
            lags, present = self._lags(begin, end - begin, each.E)
            fits = (present & asked[rows]).sum(axis=1)
            counted = present & library_mask[rows]
            kept = of_rows[part] if counted.all() else np.where(counted[:, None], of_rows[part], 0.0)
            of_z = _products(kept, begin % _TOGETHER, ahead) / np.maximum(fits, 1)[:, None, None]
            lags = lags if present.all() else np.where(present[:, None], lags, 0.0)
            slopes = self._of_lags(of_z, weights[part], z[part], lags)
            slopes[(fits == 0) | ~z[part].any(axis=(1, 2))] = np.nan
            units = of_targets[columns] - of_libraries[begin:end, None]
            np.ldexp(slopes, units[..., None], out=out[part])
            begin = end
        return out

    @staticmethod
    def _of_lags(of_z: Doubles, weights: Doubles, z: Doubles, lags: Doubles) -> Doubles:
        """Slopes (n, targets, E) of lags, from those (n, E, targets) of white regressors."""
        # Regressors are orthonormal under the weights, so that products with them tell what lags are made of.
        total = weights.sum(axis=1)[:, None, None]
        made_of = np.triu((z * weights[:, None]) @ lags.swapaxes(1, 2) / np.where(total > 0, total, 1.0))
        slopes: Doubles = (np.linalg.pinv(made_of, rcond=1e-15) @ of_z).swapaxes(1, 2)
        return slopes

    def _ahead(self, each: TargetClass, columns: NDArray[np.int_]) -> Doubles:
        """What rows lead to (rows, targets of the class), kept for the next libraries; 0 in gaps."""
        if self._held is None or self._held[0] != (each.begin, each.end):
            first, m, _ = self._kernels.shape.extent(each.E)
            begin = first + self._kernels.shape.Tp
            ahead = self._targets[begin : begin + m, columns]
            finite = np.isfinite(ahead)
            # Slopes do not change with a shift; around the mean there is less to round.
            mean = ahead.sum(axis=0, where=finite) / np.maximum(finite.sum(axis=0), 1)
            self._held = (each.begin, each.end), np.where(finite, ahead - mean, 0.0)
        return self._held[1]

    def _lags(self, a: int, n: int, E: int) -> tuple[Doubles, NDArray[np.bool_]]:
        """Coordinates (n, E, rows) of the states of libraries a to a + n, and which rows (n, rows) have them all."""
        shape = self._kernels.shape
        first, m, _ = shape.extent(E)
        x = self._libraries[:, a : a + n].T
        lags = np.stack([x[:, first - e * shape.tau : first - e * shape.tau + m] for e in range(E)], axis=1)
        return lags, np.asarray(np.isfinite(lags).all(axis=1))


def _products(of_rows: Doubles, place: int, ahead: Doubles) -> Doubles:
    """What rows add (n, E, rows) times what they lead to: (n, E, targets), by one product of matrices.

    The order of its sums, and so its bits, may depend on the size of the matrices and on the place of a row in them. So
    the matrix is always that of a whole group of libraries, in which the first of these has ``place``.
    """
    n, E, rows = of_rows.shape
    if n < _TOGETHER:
        padded = np.zeros((_TOGETHER, E, rows))
        padded[place : place + n] = of_rows
        of_rows = padded
    product = of_rows.reshape(_TOGETHER * E, rows) @ ahead
    products: Doubles = product.reshape(_TOGETHER, E, -1)
    return products[place : place + n] if n < _TOGETHER else products
