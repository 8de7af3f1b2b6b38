"""Skill of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.arguments import integer
from ...edm.shared.scores import errors, pearson
from ...errors import InputError, warn
from ..checked import checked
from . import frames

_LEAST = 5
_MOST_DIGITS = 300


@checked
def ComputeError(obs: Any, pred: Any, digits: int = 6) -> dict[str, float]:
    """rho, MAE, CAE and RMSE of pairs that are both there, rounded; NaN for fewer than 5.

    MAE is the mean absolute error (pyEDM 2.5.7 returns the largest signed one under this name).

    Parameters
    ----------
    obs, pred : array_like (n,)
    digits : int

    Returns
    -------
    dict
    """
    integer("ComputeError: digits", digits, -_MOST_DIGITS, most=_MOST_DIGITS)
    observed, predicted = (
        frames.reals(values, name, "ComputeError") for values, name in ((obs, "obs"), (pred, "pred"))
    )
    if observed.shape != predicted.shape:
        raise InputError(f"ComputeError: obs has {len(observed)} values, pred has {len(predicted)}")
    both = np.isfinite(observed) & np.isfinite(predicted)
    observed, predicted = observed[both], predicted[both]
    if len(observed) < _LEAST:
        few = f"ComputeError: {len(observed)} pairs are too few; {_LEAST} are needed"
        warn(few, UserWarning)
        return {"rho": float("nan"), "MAE": float("nan"), "RMSE": float("nan")}
    mean, root = errors(predicted, observed)
    measures = {"rho": float(pearson(predicted, observed)), "MAE": mean, "CAE": mean * len(observed), "RMSE": root}
    return {name: np.round(value, digits) for name, value in measures.items()}
