"""What tells how good predictions are: correlation of values or of ranks, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import near_one
from ...errors import InputError
from . import arguments
from .scores import errors, pearson

Doubles = NDArray[np.float64]

#: The smaller, the better.
ERRORS = ("rmse", "mae", "nrmse")
MEASURES = ("pearson", "spearman", *ERRORS)


def check_skill(skill: Any) -> str:
    """``skill`` if it names a measure."""
    return str(arguments.choice("skill", skill, MEASURES))


def check_room(shape: tuple[int, ...], dtype: Any, what: str) -> NDArray[Any]:
    """Room for predictions of this shape.

    Raises
    ------
    InputError
        This machine has too little memory; with the bytes that are needed.
    """
    try:
        return arguments.room("predictions", shape, dtype)
    except InputError as error:
        needed = str(error).partition(": ")[2].partition(";")[0]
        raise InputError(f"predictions=True: {needed}; {what}") from None


def measure(skill: str, predicted: NDArray[Any], observed: NDArray[Any]) -> Doubles:
    """Skill (m,) of predictions (m, n), over the rows where they and what was observed (n,) or (m, n) are no gaps.

    NaN where there are fewer than 3 such rows, for correlations, or none, for errors; where one side never changes;
    of "nrmse" where what was observed does not.
    """
    p = np.asarray(predicted, np.float64)
    o = np.broadcast_to(np.asarray(observed, np.float64), p.shape)
    if skill == "pearson":
        return pearson(p, o)
    both = np.isfinite(p) & np.isfinite(o)
    if skill == "spearman":
        ranked = np.full((2, *p.shape), np.nan)
        for row, rows in enumerate(both):
            ranked[0, row, rows], ranked[1, row, rows] = _ranks(p[row, rows]), _ranks(o[row, rows])
        return pearson(ranked[0], ranked[1])
    out = np.full(len(p), np.nan)
    for row, rows in enumerate(both):
        mae, rmse = errors(p[row, rows], o[row, rows])
        out[row] = mae if skill == "mae" else rmse
        if skill == "nrmse" and rows.any():
            scaled, exponent = near_one(o[row, rows])
            spread = float(np.ldexp(scaled.std(), exponent))
            out[row] = rmse / spread if spread > 0 else np.nan
    return out


def _ranks(values: Doubles) -> Doubles:
    """Ranks from 0; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: Doubles = (ends - (counts + 1) / 2)[place]
    return mean
