"""Targets that sampled cross maps predict, centred once for all libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..codegen.sentinels import GAP

_TOGETHER = 256  # targets that are centred at once, for the memory that it takes


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
    pattern : ndarray of int (n_targets,)
        Targets that are present in the same rows have the same number.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values, self.present = values, np.isfinite(values)
        self.pattern = patterns(self.present)
        self._centred: NDArray[Any] | None = None
        self._known = np.zeros(len(values), bool)  # rows of it that have been computed

    def centred(self, targets: NDArray[np.int_], dtype: DTypeLike) -> NDArray[Any]:
        """Targets (n, n_steps) around their means and below 1 in magnitude; ``GAP`` where there is none."""
        if self._centred is None or self._centred.dtype != dtype:
            self._centred = np.full(self.values.shape, GAP, dtype)
            self._known[:] = False
        missing = np.unique(targets[~self._known[targets]])
        for number in np.unique(self.pattern[missing]):
            alike = missing[self.pattern[missing] == number]
            for first in range(0, len(alike), _TOGETHER):
                self._centre(alike[first : first + _TOGETHER], self._centred)
        self._known[missing] = True
        return self._centred[targets]

    def _centre(self, targets: NDArray[np.int_], out: NDArray[Any]) -> None:
        """Targets that are present in the same rows."""
        present = self.present[targets[0]]
        if present.any():
            values = np.ascontiguousarray(self.values[targets][:, present])
            values -= values.mean(axis=1, keepdims=True)
            reach = np.maximum(values.max(axis=1, keepdims=True), -values.min(axis=1, keepdims=True))
            rows = np.full((len(targets), out.shape[1]), GAP, out.dtype)
            rows[:, present] = np.ldexp(values, -np.frexp(reach)[1])
            out[targets] = rows


def patterns(masks: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Numbers (n,) of masks (n, n_steps), the same for masks that are alike, in the order in which they appear."""
    if masks.all():
        return np.zeros(len(masks), int)
    number_of: dict[bytes, int] = {}
    return np.array([number_of.setdefault(mask.tobytes(), len(number_of)) for mask in masks], int)
