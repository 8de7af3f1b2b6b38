"""The order of neighbours on the host: the nearer row comes first, and of two that are equally near the smaller one.

The same rule for kernels is ``clkernels/order.clh``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def nearest_first(distances: npt.NDArray[Any], k: int | None = None) -> npt.NDArray[np.intp]:
    """Places of the ``k`` nearest along the last axis, nearest first.

    Parameters
    ----------
    distances : ndarray of float, shape (..., n)
        Of rows in ascending order, so that of two places the smaller one is the smaller row. They may be squared.
    k : int, optional
        All n by default.

    Returns
    -------
    ndarray of int, shape (..., min(k, n))
    """
    order: npt.NDArray[np.intp] = np.argsort(distances, axis=-1)  # a fifth of the time of a stable sort
    last = None if k is None else k + 1
    first = np.take_along_axis(distances, order[..., :last], axis=-1)
    if not (first[..., 1:] > first[..., :-1]).all():  # ties, or NaN
        order = np.argsort(distances, axis=-1, kind="stable")  # which leaves ties as they are
    return order[..., :k]
