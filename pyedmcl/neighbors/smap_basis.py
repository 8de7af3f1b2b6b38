"""A basis in which the library of an S-map is white, so that normal equations do not square the data's own condition.

Delay coordinates of a smooth series are nearly collinear: their Gram matrix has a condition of 1e10 and more. A fit
does not depend on the basis its regressors are given in, hence one is chosen in which the whole library has unit
covariance; what is left is the condition of a neighbourhood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

# Above this ratio of variances the eigenvectors of the covariance are accurate enough to whiten with.
_SAFE_RATIO = 1e-9
# Directions this much smaller than the largest one are read off differences of large numbers: more digits are needed.
_FLAT = 1e-6
_EXTENDED = np.finfo(np.longdouble).eps < 1e-18


@dataclass(frozen=True)
class Basis:
    """``z = (x - shift) @ map`` and ``v = (y - aim_shift) / aim_scale``.

    Attributes
    ----------
    shift : ndarray (D,)
    map : ndarray (D, rank)
        Directions in which the library does not vary (to rounding) are left out.
    inverse : ndarray (rank, D)
        ``x = shift + z @ inverse`` within the library's own plane.
    exponent : int
        Coordinates for distances are ``(x - shift) * 2**-exponent``, of magnitude at most 1 in the library.
    aim_shift, aim_scale : float
    flat : bool
        Some directions are less than 1e-6 of the largest one.
    """

    shift: Doubles
    map: Doubles
    inverse: Doubles
    exponent: int
    aim_shift: float
    aim_scale: float
    flat: bool = False

    @property
    def sound(self) -> bool:
        """Whether regressors have enough digits on this machine."""
        return not self.flat or bool(_EXTENDED)

    @property
    def rank(self) -> int:
        return int(self.map.shape[1])

    @cached_property
    def null(self) -> Doubles:
        """Orthonormal directions (D + 1, D - rank) of (intercept, coefficients) that no library row can tell apart."""
        full = np.linalg.svd(np.vstack([self.inverse, np.zeros_like(self.shift)]), full_matrices=True)[2]
        free = full[self.rank :].T
        if free.shape[1] == 0:
            return np.zeros((len(self.shift) + 1, 0))
        out: Doubles = np.linalg.qr(np.vstack([-(self.shift @ free)[None], free]))[0]
        return out

    def regressors(self, x: Doubles) -> Doubles:
        """Rows (n, D) of coordinates in the basis: (n, rank)."""
        if self.flat:
            x = x.astype(np.longdouble)
        return np.asarray((x - self.shift) @ self.map, np.float64)

    def coordinates(self, x: Doubles, dtype: str) -> NDArray[Any]:
        """Rows (n, D) as distances are computed from: shifted, scaled by a power of two, rounded."""
        return np.ldexp(x - self.shift, -self.exponent).astype(dtype)

    def coefficients(self, fits: Doubles) -> Doubles:
        """Fits (..., rank + 1) in the basis as intercept and slopes (..., D + 1) of the data, of least norm."""
        slopes = fits[..., 1:] @ self.map.T * self.aim_scale
        intercept = self.aim_shift + self.aim_scale * fits[..., 0] - slopes @ self.shift
        raw = np.concatenate([intercept[..., None], slopes], axis=-1)
        if self.rank < len(self.shift):
            raw -= (raw @ self.null) @ self.null.T
        out: Doubles = raw
        return out


def basis_of(x: Doubles, y: Doubles) -> Basis:
    """The basis of a library (m, D) with targets (m,), all finite."""
    m, dims = x.shape
    shift = x.mean(axis=0)
    centred = x - shift
    largest = float(np.abs(centred).max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    scaled = np.ldexp(centred, -exponent)
    directions, sizes = _directions(scaled)
    # What is left of a constant column is the rounding of its mean.
    rounding = 4 * np.finfo(float).eps * float(np.ldexp(np.abs(x).max(initial=0.0), -exponent)) * np.sqrt(m)
    kept = sizes > max(np.finfo(float).eps * max(m, dims + 1) * float(sizes.max(initial=0.0)), rounding)
    directions, sizes = directions[:, kept], sizes[kept] / np.sqrt(m)
    flat = bool(len(sizes)) and float(sizes.min()) < _FLAT * float(sizes.max())
    aim_shift = float(y.mean())
    aim_scale = float(np.abs(y - aim_shift).max(initial=0.0)) or 1.0
    return Basis(
        shift=shift,
        map=np.ldexp(directions / sizes, -exponent),
        inverse=np.ldexp((directions * sizes).T, exponent),
        exponent=exponent,
        aim_shift=aim_shift,
        aim_scale=aim_scale,
        flat=flat,
    )


def _directions(x: Doubles) -> tuple[Doubles, Doubles]:
    """Right singular vectors (D, D) and singular values of centred rows (m, D)."""
    squares, vectors = np.linalg.eigh(x.T @ x)
    if squares[0] > _SAFE_RATIO * squares[-1]:
        return vectors, np.sqrt(squares)
    _, sizes, rows = np.linalg.svd(x, full_matrices=False)
    return rows.T, sizes
