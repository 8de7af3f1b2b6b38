"""What the pruned search decides on the host: which rows take part, and the axes that states are ordered along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Axes of boxes: data that are wide along more than these have hardly any near neighbours, and each axis costs. Boxes
# of a very smooth series are cut along its narrow axes, too, once they are small.
_AXES_LEAST, AXES_MOST = 3, 4
_NARROW = 0.03  # of the widest axis
_SAMPLE = 2048


@dataclass(frozen=True)
class Basis:
    """Axes of the states of one embedding.

    Attributes
    ----------
    axes : ndarray (n_axes, E)
        Orthonormal but for rounding, the widest first.
    centre : float
        Taken from each value before it is projected.
    rounding : float
        A coordinate is off by at most this times the sum of ``|x - centre|`` over the lags.
    """

    axes: NDArray[Any]
    centre: float
    rounding: float

    @property
    def n_axes(self) -> int:
        return len(self.axes)


def states_of(
    x: NDArray[Any], E: int, tau: int, begin: int, end: int, allowed: NDArray[np.bool_] | None
) -> NDArray[np.int32]:
    """Rows in [begin, end) whose E values are all there and that are allowed, ascending int32.

    Parameters
    ----------
    x : ndarray (n,)
        NaN for gaps.
    E, tau : int
    begin, end : int
    allowed : ndarray of bool (n,), optional
    """
    begin, end = max(begin, (E - 1) * tau), min(end, len(x))
    if end <= begin:
        return np.empty(0, np.int32)
    gap = np.isnan(x)
    if allowed is None and not gap.any():
        return np.arange(begin, end, dtype=np.int32)
    ok = np.ones(end - begin, np.bool_) if allowed is None else allowed[begin:end].copy()
    for e in range(E):
        ok &= ~gap[begin - e * tau : end - e * tau]
    return (np.flatnonzero(ok) + begin).astype(np.int32)


def basis_of(x: NDArray[Any], rows: NDArray[Any], E: int, tau: int) -> Basis:
    """Principal axes of a sample of the states; any orthonormal ones would do, these prune best.

    For E = 1 the value itself, to the last bit.
    """
    if E == 1:
        return Basis(np.ones((1, 1), x.dtype), 0.0, 0.0)
    some = rows
    if len(rows) > _SAMPLE:
        some = rows[np.random.default_rng(0).integers(0, len(rows), _SAMPLE)]
    states = x[some[:, None].astype(np.int64) - np.arange(E) * tau].astype(np.float64)
    # The kernel takes the centre in the precision it computes in. A few wild values must not decide: far from the
    # centre coordinates lose their digits, and with them boxes their use.
    centre = float(x.dtype.type(np.median(states[:, 0])))
    low, high = np.quantile(states[:, 0], (0.01, 0.99))
    states = np.clip(states, 2 * low - high, 2 * high - low)
    states -= states.mean(axis=0)
    # Not states.T @ states: threads of a BLAS library wait for more work for a while after a product, without sleeping,
    # and take the cores of a processor from the kernels that come next (1.6 times as long on two cores).
    squares, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", states, states))
    wide = int((squares > _NARROW**2 * squares[-1]).sum())
    axes = np.ascontiguousarray(vectors[:, ::-1][:, : min(max(wide, _AXES_LEAST), AXES_MOST)].T, x.dtype)
    half = float(np.finfo(x.dtype).eps) / 2
    return Basis(axes, centre, (E + 8) * half)
