"""What S-map's host and device exchange: where rows lie, numbers of a basis, and arrays that fits are copied to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .smap_basis import WhiteBasis

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Solved:
    """Fits as the device has them, for n rows.

    Attributes
    ----------
    predicted, variance, doubt : ndarray (n_thetas, n)
        The last: what the prediction may be off by, in roundings of the scaled targets.
    coefficients : ndarray (n_thetas, n, D + 1)
        Intercept and slopes in the data's units.
    counts : ndarray of int (n,)
        Legal neighbours.
    """

    predicted: Doubles
    variance: Doubles
    doubt: Doubles
    coefficients: Doubles
    counts: NDArray[np.int32]


@dataclass(frozen=True)
class Fitted:
    """Where a block's fits are copied to: fits (n_thetas, 3, n), coefficients (n_thetas, n, D + 1) and counts (n,).

    Of fits the prediction comes first, then its variance and what it may be off by.
    """

    fits: Doubles
    coefficients: Doubles
    counts: NDArray[np.int32]

    @classmethod
    def empty(cls, n_thetas: int, n: int, dims: int, coefficients: Doubles | None = None) -> Fitted:
        """Arrays of these sizes; ``coefficients`` serves as its own where its memory is in one piece."""
        if coefficients is None or not coefficients.flags.c_contiguous:
            coefficients = np.empty((n_thetas, n, dims + 1))
        return cls(np.empty((n_thetas, 3, n)), coefficients, np.empty(n, np.int32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By the names of the buffers that they are copied from."""
        return {"fits": self.fits, "coefficients": self.coefficients, "count": self.counts}

    def solved(self) -> Solved:
        """The fits, once they were copied."""
        return Solved(self.fits[:, 0], self.fits[:, 1], self.fits[:, 2], self.coefficients, self.counts)


def numbers_of(basis: WhiteBasis) -> dict[str, float]:
    """The numbers that kernels are told of a basis."""
    return {
        "unit": 2.0**-basis.exponent, "target_shift": basis.target_shift, "target_unit": 1 / basis.target_scale,
        "target_scale": basis.target_scale,
    }  # fmt: skip


def series_of(x: Doubles) -> tuple[Doubles, dict[str, int]] | None:
    """The series that rows (n, D) of delays are a view of, and where they lie in it; None where they are no such view.

    The latter as the kernels are told: first element, steps from row to row and from column to column.
    """
    base = x.base
    if not (isinstance(base, np.ndarray) and base.ndim == 1 and base.dtype == x.dtype and base.flags.c_contiguous):
        return None
    start = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 8
    step, lag = (stride // 8 for stride in x.strides)
    return base, {"start": start, "step": step, "lag": lag}
