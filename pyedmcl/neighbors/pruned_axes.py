"""The axes that the pruned search orders states along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .series import HostStates

# Axes of boxes: data that are wide along more than these have hardly any near neighbours, and each axis costs. Boxes
# of a very smooth series are cut along its narrow axes, too, once they are small.
_AXES_LEAST, AXES_MOST = 3, 4
_NARROW = 0.03  # of the widest axis
_SAMPLE = 2048


@dataclass(frozen=True)
class PrincipalAxes:
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


def principal_axes(states: HostStates) -> PrincipalAxes:
    """Principal axes of a sample of the states; any orthonormal ones would do, these prune best.

    For E = 1 the value itself, to the last bit.
    """
    E, dtype = states.E, states.series.values.dtype
    if E == 1:
        return PrincipalAxes(np.ones((1, 1), dtype), 0.0, 0.0)
    rows = states.rows
    if len(rows) > _SAMPLE:
        rows = rows[np.random.default_rng(0).integers(0, len(rows), _SAMPLE)]
    points = states.points(rows).astype(np.float64)
    # The kernel takes the centre in the precision it computes in. A few wild values must not decide: far from the
    # centre coordinates lose their digits, and with them boxes their use.
    centre = float(dtype.type(np.median(points[:, 0])))
    low, high = np.quantile(points[:, 0], (0.01, 0.99))
    points = np.clip(points, 2 * low - high, 2 * high - low)
    points -= points.mean(axis=0)
    # Not points.T @ points: threads of a BLAS library wait for more work for a while after a product, without sleeping,
    # and take the cores of a processor from the kernels that come next (1.6 times as long on two cores).
    squares, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", points, points))
    wide = int((squares > _NARROW**2 * squares[-1]).sum())
    axes = np.ascontiguousarray(vectors[:, ::-1][:, : min(max(wide, _AXES_LEAST), AXES_MOST)].T, dtype)
    half = float(np.finfo(dtype).eps) / 2
    return PrincipalAxes(axes, centre, (E + 8) * half)
