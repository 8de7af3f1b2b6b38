"""Mean slopes of local linear fits of all targets to the lags of a library, from what each row adds to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .smap_map_kernels import MapKernels, TargetClass

Doubles = NDArray[np.float64]


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

    def of(
        self, each: TargetClass, a: int, n: int, columns: NDArray[np.int_], allowed: NDArray[np.bool_],
        asked: NDArray[np.bool_],
    ) -> Doubles:  # fmt: skip
        """Mean slopes (n, targets of the class, E) of libraries a to a + n, in units of the data.

        Parameters
        ----------
        each : TargetClass
            Whose states and systems are on the device.
        a, n : int
        columns : ndarray of int (targets of the class,)
        allowed : ndarray of bool (n_steps,)
            Library rows that may be neighbours.
        asked : ndarray of bool (n_steps,)
            Rows that are predicted, around each of which there is a fit.
        """
        first, m, _ = self._kernels.shape.extent(each.E)
        Tp = self._kernels.shape.Tp
        ahead = self._targets[first + Tp : first + Tp + m, columns]
        known = np.isfinite(ahead)
        # Slopes do not change with a shift; around the mean there is less to round.
        mean = ahead.sum(axis=0, where=known) / np.maximum(known.sum(axis=0), 1)
        ahead = np.where(known, ahead - mean, 0.0)
        added, (weights, z) = self._kernels.weigh(each, n), self._kernels.regressors(each, n)
        out = np.full((n, len(columns), each.E), np.nan)
        for place in range(n):
            lags, there = self._lags(a + place, each.E)
            fits = int((there & asked[first : first + m]).sum())
            if not fits or not z[place].any():
                continue
            of_z = np.where(there & allowed[first : first + m], added[place], 0.0) @ ahead / fits  # (E, targets)
            # Regressors are orthonormal under the weights, so that products with them tell what lags are made of.
            made_of = np.triu((z[place] * weights[place]) @ np.where(there, lags, 0.0).T / weights[place].sum())
            out[place] = (np.linalg.pinv(made_of, rcond=1e-15) @ of_z).T
        of_libraries, of_targets = self._exponents
        in_units: Doubles = np.ldexp(out, (of_targets[columns] - of_libraries[a : a + n, None])[..., None])
        return in_units

    def _lags(self, library: int, E: int) -> tuple[Doubles, NDArray[np.bool_]]:
        """Coordinates (E, rows) of a library's states, and which rows have them all."""
        shape = self._kernels.shape
        first, m, _ = shape.extent(E)
        x: Any = self._libraries[:, library]
        lags = np.array([x[first - e * shape.tau : first - e * shape.tau + m] for e in range(E)])
        return lags, np.isfinite(lags).all(axis=0)
