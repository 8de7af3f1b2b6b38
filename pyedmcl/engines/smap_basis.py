"""A basis in which the library of an S-map is white, so that normal equations do not square the data's own condition.

Delay coordinates of a smooth series are nearly collinear: their Gram matrix has a condition of 1e10 and more. A fit
does not depend on the basis its regressors are given in, hence one is chosen in which the whole library has unit
covariance; what is left is the condition of a neighbourhood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.condition import largest as largest_of
from ..data.condition import run_of

Doubles = NDArray[np.float64]

# Above this ratio of variances the eigenvectors of the covariance are accurate enough to whiten with.
_SAFE_RATIO = 1e-9
# Directions this much smaller than the largest one are read off differences of large numbers: more digits are needed.
_FLAT = 1e-6
_ENOUGH = 1000
_EXTENDED = np.finfo(np.longdouble).eps < 1e-18


@dataclass(frozen=True)
class WhiteBasis:
    """``z = (x - shift) @ map`` and ``v = (y - target_shift) / target_scale``.

    Attributes
    ----------
    shift : ndarray (D,)
    map : ndarray (D, rank)
        Directions in which the library does not vary (to rounding) are left out.
    inverse : ndarray (rank, D)
        ``x = shift + z @ inverse`` within the library's own plane.
    exponent : int
        Coordinates for distances are ``(x - shift) * 2**-exponent``, of magnitude 1 or so in the library.
    target_shift, target_scale : float
    flat : bool
        Some directions are less than 1e-6 of the largest one.
    """

    shift: Doubles
    map: Doubles
    inverse: Doubles
    exponent: int
    target_shift: float
    target_scale: float
    flat: bool = False

    @property
    def sound(self) -> bool:
        """Whether regressors have enough digits on this machine."""
        return not self.flat or bool(_EXTENDED)

    @property
    def rank(self) -> int:
        return int(self.map.shape[1])

    @cached_property
    def by_rows(self) -> Doubles:
        """``map`` as the device reads it, row by row."""
        return np.ascontiguousarray(self.map)

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


def basis_of(x: Doubles, y: Doubles) -> WhiteBasis:
    """The basis of a library (m, D) with targets (m,), all finite.

    Some rows are enough for it, unless they leave a doubt whether all directions are there.
    """
    if len(x) > 2 * _ENOUGH:
        of_sample = _basis_of(x[:: len(x) // _ENOUGH], y)
        if of_sample is not None:
            return of_sample
    basis = _basis_of(x, y, final=True)
    assert basis is not None
    return basis


def _basis_of(x: Doubles, y: Doubles, *, final: bool = False) -> WhiteBasis | None:
    m, dims = x.shape
    shift = x.mean(axis=0)
    scaled = x - shift  # the one array of this size: the system takes back the memory of several after each call
    largest = max(float(scaled.max(initial=0.0)), -float(scaled.min(initial=0.0)))
    exponent = math.frexp(largest)[1]
    if abs(exponent) < 1000:  # a product takes a tenth of the time, and has the same bits where the factor is a number
        scaled *= 2.0**-exponent
    else:
        np.ldexp(scaled, -exponent, out=scaled)
    squares, directions = np.linalg.eigh(scaled.T @ scaled)
    if squares[0] > _SAFE_RATIO * squares[-1]:
        sizes = np.sqrt(squares)
    elif final:
        _, sizes, rows = np.linalg.svd(scaled, full_matrices=False)
        directions = rows.T
    else:
        return None
    # What is left of a constant column is the rounding of its mean.
    rounding = 4 * np.finfo(float).eps * math.ldexp(largest_of(run_of(x)), -exponent) * math.sqrt(m)
    kept = sizes > max(np.finfo(float).eps * max(m, dims + 1) * float(sizes.max(initial=0.0)), rounding)
    if not (final or kept.all()):
        return None
    directions, sizes = directions[:, kept], sizes[kept] / np.sqrt(m)
    flat = bool(len(sizes)) and float(sizes.min()) < _FLAT * float(sizes.max())
    target_shift = float(y.mean())
    target_scale = float(np.abs(y - target_shift).max(initial=0.0)) or 1.0
    return WhiteBasis(
        shift=shift,
        map=np.ldexp(directions / sizes, -exponent),
        inverse=np.ldexp((directions * sizes).T, exponent),
        exponent=exponent,
        target_shift=target_shift,
        target_scale=target_scale,
        flat=flat,
    )
