"""Targets that sampled cross maps predict, centred once for all libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..codegen.sentinels import GAP


class FutureTargets:
    """What each row is to predict, for several targets.

    Parameters
    ----------
    values : ndarray (n_targets, n_steps) of float64
        The target's value at t + Tp in row t, NaN where there is none.

    Attributes
    ----------
    present : ndarray of bool (n_targets, n_steps)
        Where there is one.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values, self.present = values, np.isfinite(values)
        self._centred: dict[int, NDArray[Any]] = {}

    def centred(self, target: int, dtype: DTypeLike) -> NDArray[Any]:
        """A target (n_steps,) around its mean and below 1 in magnitude; ``GAP`` where there is none."""
        row = self._centred.get(target)
        if row is None or row.dtype != dtype:
            values, present = self.values[target], self.present[target]
            mean = values[present].mean() if present.any() else 0.0
            centred = values[present] - mean
            reach = float(np.abs(centred).max(initial=0.0))
            row = np.full(len(values), GAP, dtype)
            row[present] = np.ldexp(centred, -int(np.frexp(reach)[1]))
            self._centred[target] = row
        return row
