"""Simplex projection with kEDM's arguments and returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...edm.embedding.embed_dimension import embed_dimension
from ...edm.shared.scores import pearson
from ...errors import InputError
from .arguments import Floats, check_rows, embedding, numbers, whole
from .nearest import nearest, same

Doubles = NDArray[np.float64]
_FLOOR = 1e-6  # of the weights


def simplex(lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1) -> Floats:
    """Predict a series from another by nearest neighbours.

    Parameters
    ----------
    lib, pred : array_like (n,) and (m,), or (n, columns) and (m, columns)
        Library and prediction series; of several columns each is embedded.
    target : array_like (n,), optional
        What is predicted; ``lib`` by default, needed where that has several columns.
    E, tau, Tp : int
        Embedding dimension and lag of at least 1; steps ahead of at least 0.

    Returns
    -------
    ndarray (m - (E-1) tau,) of float32
        The value Tp steps after each embedded row of ``pred``.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query = numbers(lib, "lib", "simplex"), numbers(pred, "pred", "simplex")
    if library.ndim != query.ndim:
        raise InputError(
            f"lib and pred must have same dimensionality: simplex got shapes {library.shape} and {query.shape}"
        )
    if library.ndim not in (1, 2):
        raise InputError(f"lib and pred must be 1D or 2D arrays: simplex got shape {library.shape}")
    E, tau, Tp = embedding(E, tau, Tp, "simplex")
    if target is None and library.ndim == 2:
        raise InputError(f"simplex: target=None; lib has shape {library.shape}, so the series to predict must be given")
    target_values = library if target is None else check_target(target, len(library), "simplex")
    return predict(library, query, target_values, E, tau, Tp).astype(np.float32)


def check_target(target: Any, least: int, function: str) -> Floats:
    """A series at least as long as the library."""
    target_values = numbers(target, "target", function)
    if target_values.ndim != 1:
        raise InputError(f"target must be a 1D array: {function} got shape {target_values.shape}")
    if len(target_values) < least:
        raise InputError(
            f"lib must have no more time steps than target: {function} got {least} and {len(target_values)}"
        )
    return target_values


def predict(lib: Floats, pred: Floats, target: Floats, E: int, tau: int, Tp: int) -> Doubles:
    """Predictions of checked arguments; NaN where a row touches a gap."""
    check_rows(len(lib), len(pred), E, tau, Tp, E + 1)
    if lib.ndim == 2 and lib.shape[1] != pred.shape[1]:
        raise InputError(f"simplex: lib has {lib.shape[1]} columns and pred {pred.shape[1]}; they must be the same")
    same_series = same(lib, pred)
    target_values = target.astype(np.float64)
    library, query = lib.reshape(len(lib), -1), pred.reshape(len(pred), -1)
    rows, distance = nearest(library, query, target_values, E, tau, Tp, same_series)
    present = np.isfinite(distance)
    shortest = np.where(present, distance, np.inf).min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(shortest > 0, distance / shortest, np.where(distance > 0, np.inf, 0.0))
    weight = np.where(present, np.maximum(np.exp(-ratio), _FLOOR), 0.0)
    with np.errstate(invalid="ignore"):
        # A target may be long, and its gaps are no neighbours' affair.
        out: Doubles = (weight * np.where(present, target_values[rows + Tp], 0.0)).sum(axis=1) / weight.sum(axis=1)
    return out


def skill(predicted: Doubles, observed: Floats, E: int, tau: int, Tp: int) -> float:
    """rho over the steps that both have."""
    seen = observed[(E - 1) * tau + Tp :].astype(np.float64)
    n = min(len(seen), len(predicted))
    return float(pearson(predicted[:n], seen[:n]))


def check_flat(*arrays: Floats, function: str) -> None:
    """Refuse tables where a series is needed."""
    if any(array.ndim != 1 for array in arrays):
        raise InputError(
            f"lib and pred must be 1D arrays: {function} got shapes {', '.join(str(array.shape) for array in arrays)}"
        )


def eval_simplex(lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1) -> float:
    """Skill of :func:`simplex`: Pearson's rho of predictions and ``target``, or ``pred`` where that is not given.

    Parameters
    ----------
    lib, pred : array_like (n,), (m,)
    target, E, tau, Tp
        As for :func:`simplex`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    name = "eval_simplex"
    library, query = numbers(lib, "lib", name), numbers(pred, "pred", name)
    check_flat(library, query, function=name)
    E, tau, Tp = embedding(E, tau, Tp, name)
    target_values = library if target is None else check_target(target, len(library), name)
    predicted = predict(library, query, target_values, E, tau, Tp)
    return skill(predicted, query if target is None else target_values, E, tau, Tp)


def edim(timeseries: Any, E_max: int = 20, tau: int = 1, Tp: int = 1) -> int:
    """The embedding dimension with which a series predicts itself best, each row from all others.

    Parameters
    ----------
    timeseries : array_like (n,)
    E_max : int
        Dimensions 1 to E_max are tried.
    tau, Tp : int

    Returns
    -------
    int

    Raises
    ------
    InputError
        An argument cannot be used; E_max needs more steps than there are.
    """
    series = numbers(timeseries, "timeseries", "edim")
    if series.ndim != 1:
        raise InputError(f"Expected a 1D array: edim got shape {series.shape}")
    most = whole(E_max, "E_max", "edim")
    if most < 1:
        raise InputError(f"E_max must be greater than zero: edim got E_max={most}")
    _, tau, Tp = embedding(1, tau, Tp, "edim")
    check_rows(len(series), len(series), most, tau, Tp, most + 1)
    return int(embed_dimension(series, E_max=most, tau=tau, Tp=Tp).E)
