"""S-map with kEDM's arguments and returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.session import open_device
from ...edm.shared.arguments import theta_of_fit
from ...edm.shared.states import embed
from ...engines.smap import LocalFits
from ...errors import InputError
from .arguments import Floats, check_rows, embedding, numbers
from .nearest import same
from .simplex import check_flat, skill

Doubles = NDArray[np.float64]


def smap(
    lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1, theta: float = 1.0
) -> Floats:
    """Predict a series from another by linear fits that are weighted by nearness.

    Parameters
    ----------
    lib, pred : array_like (n,), (m,)
        Library and prediction series.
    target : array_like (n,), optional
        What is predicted; ``lib`` by default.
    E, tau, Tp : int
        Embedding dimension and lag of at least 1; steps ahead of at least 0.
    theta : float
        Localisation, at least 0. Weights are exp(-theta d / d_mean), where the sum of distances to the library rows
        is divided by their number, a row's own counted.

    Returns
    -------
    ndarray (m - (E-1) tau,) of float32

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query, target_values, E, tau, Tp = _checked(lib, pred, target, E, tau, Tp, "smap")
    return fit(library, query, target_values, E, tau, Tp, theta, "smap").astype(np.float32)


def eval_smap(
    lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1, theta: float = 1.0
) -> float:
    """Skill of :func:`smap`: Pearson's rho of predictions and ``target``, or ``pred`` where that is not given.

    Parameters
    ----------
    lib, pred, target, E, tau, Tp, theta
        As for :func:`smap`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query, target_values, E, tau, Tp = _checked(lib, pred, target, E, tau, Tp, "eval_smap")
    predicted = fit(library, query, target_values, E, tau, Tp, theta, "eval_smap")
    return skill(predicted, query if target is None else target_values, E, tau, Tp)


def _checked(
    lib: Any, pred: Any, target: Any, E: Any, tau: Any, Tp: Any, name: str
) -> tuple[Floats, Floats, Floats, int, int, int]:
    library, query = numbers(lib, "lib", name), numbers(pred, "pred", name)
    check_flat(library, query, function=name)
    E, tau, Tp = embedding(E, tau, Tp, name)
    check_rows(len(library), len(query), E, tau, Tp, E + 1)
    if target is None:
        return library, query, library, E, tau, Tp
    target_values = numbers(target, "target", name)
    if target_values.ndim != 1:
        raise InputError(f"target must be a 1D array: {name} got shape {target_values.shape}")
    if len(target_values) != len(library):
        raise InputError(
            f"lib and target must have same number of time steps: {name} got {len(library)} and {len(target_values)}"
        )
    return library, query, target_values, E, tau, Tp


def fit(lib: Floats, pred: Floats, target: Floats, E: int, tau: int, Tp: int, theta: Any, name: str) -> Doubles:
    """Predictions of checked series; NaN where a row touches a gap."""
    local = theta_of_fit(f"{name}: theta", theta)
    executor = open_device(None)
    if not executor.info.fp64:
        raise InputError(f"{name}: {executor.info.name} lacks double precision, which sums of products need")
    first, n = (E - 1) * tau, len(lib)
    states = embed(lib.reshape(-1, 1).astype(np.float64), E, tau)[first : n - Tp]
    query_states = embed(pred.reshape(-1, 1).astype(np.float64), E, tau)[first:]
    target_values = target[first + Tp :].astype(np.float64)
    present = np.isfinite(states).all(axis=1) & np.isfinite(target_values)
    if present.sum() < 1:
        raise InputError(f"{name}: every library row touches a gap; fill gaps or take a longer lib")
    kept = np.flatnonzero(present)
    twins = _twins(states, query_states, present, same(lib, pred))
    predicted = np.full(len(query_states), np.nan)
    whole = np.isfinite(query_states).all(axis=1)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in np.flatnonzero(whole):
        several = twins[row] if len(twins[row]) > 1 else ()
        groups.setdefault(tuple(several), []).append(int(row))
    for barred, members in groups.items():
        rows = np.setdiff1d(kept, barred)
        if not len(rows):
            continue
        engine = LocalFits(executor, states[rows], target_values[rows], rows, exclusion_radius=0, dtype="float32")
        try:
            # The mean is over all rows in kEDM, over the neighbours in the engine, which theta can make up for.
            for count in (0, 1) if not barred else (len(barred),):
                rows_alike = [row for row in members if len(twins[row]) == count]
                if not rows_alike:
                    continue
                left_out = np.array([twins[row][0] if count == 1 else -(n + 2) for row in rows_alike], np.int64)
                left = len(kept) - count
                if left:
                    used = np.array([local * len(kept) / left])
                    predicted[rows_alike] = engine.fit(query_states[rows_alike], left_out, used).predicted[0]
        finally:
            engine.release()
    return predicted


def _twins(states: Doubles, asked: Doubles, there: NDArray[np.bool_], own: bool) -> list[list[int]]:
    """Library rows that are left out of each prediction: the row itself, or those at distance zero."""
    if own:
        return [[row] if row < len(states) and there[row] else [] for row in range(len(asked))]
    at: dict[bytes, list[int]] = {}
    library, queries = states + 0.0, np.ascontiguousarray(asked + 0.0)  # no negative zeros
    for row in np.flatnonzero(there):
        at.setdefault(library[row].tobytes(), []).append(int(row))
    return [at.get(queries[row].tobytes(), []) for row in range(len(asked))]
