"""From series to states: what simplex, cross mapping and multiview search among."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.columns import some
from ...data.condition import condition
from ...data.series import Series
from ...engines.ccm import States
from ...errors import warn
from ...neighbors.coordinates import coordinate_problem, delay_problem, lay_out_in_itself, lay_out_states


def embed(values: NDArray[Any], E: int, tau: int) -> NDArray[Any]:
    """Delay coordinates (n, E * columns) of each column in turn, newest first; NaN before row (E-1) tau."""
    n, columns = values.shape
    out = np.full((n, E * columns), np.nan, values.dtype)
    for c in range(columns):
        for e in range(E):
            out[e * tau :, c * E + e] = values[: max(n - e * tau, 0), c]
    return out


def tell_stateless(series: Series, E: int, tau: int) -> None:
    """Warn of series whose gaps leave no row with all its lags: as libraries they predict nothing."""
    gappy = np.flatnonzero(np.isnan(series.extent[0]))
    if not gappy.size:
        return
    present = np.isfinite(series.values[:, gappy])
    rows = series.n_steps - (E - 1) * tau
    lost = E * (series.n_steps - present.sum(axis=0)) >= rows  # a gap takes E rows at most
    empty = [
        series.names[gappy[i]] for i in np.flatnonzero(lost)
        if present[:, i].any() and not np.all([present[e * tau : e * tau + rows, i] for e in range(E)], axis=0).any()
    ]  # fmt: skip
    if empty:
        warn(f"series whose gaps leave no row with all {E} lags at tau={tau}, so that rho of their states is NaN: "
             f"{some(empty)}")  # fmt: skip


def delay_states(
    values: NDArray[Any], E: int, tau: int, *, k: int, Tp: int, exclusion_radius: int, dtype: str
) -> States:
    """States of each column (n_steps, n_series) by itself."""
    n = len(values)
    ready = condition(values, dtype).values
    search = delay_problem(E, tau, k, Tp, exclusion_radius, n, n, dtype)
    library, query = lay_out_in_itself(ready, search)
    present = np.isfinite(values)
    embedded = np.zeros((values.shape[1], n), bool)
    if n > (E - 1) * tau:
        embedded[:, (E - 1) * tau :] = True
        for e in range(E):
            embedded[:, (E - 1) * tau :] &= present[(E - 1) * tau - e * tau : n - e * tau].T
    return States(search, library, query, embedded)


def given_states(
    coordinates: NDArray[Any], *, k: int, Tp: int, exclusion_radius: int, dtype: str
) -> States:
    """One series of states with these coordinates (n_steps, n_coordinates)."""
    n = len(coordinates)
    ready = condition_together(coordinates, dtype)
    search = coordinate_problem(coordinates.shape[1], k, Tp, exclusion_radius, n, n, dtype)
    library = lay_out_states(ready, search, n, search.library_end)
    query = library if search.library_end == n else lay_out_states(ready, search, n, n)
    return States(search, library, query, np.isfinite(coordinates).all(axis=1)[None])


def condition_together(coordinates: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Coordinates as the kernels may have them: each may be shifted, all are scaled by one power of two.

    Distances between states then are those of the data, up to that power.
    """
    wide = coordinates.astype(np.float64)
    if np.dtype(dtype).itemsize < coordinates.dtype.itemsize:
        present = np.isfinite(wide)
        middle = [np.median(column[ok]) if ok.any() else 0.0 for column, ok in zip(wide.T, present.T, strict=True)]
        with np.errstate(over="ignore", under="ignore"):
            exact = np.array_equal(wide.astype(dtype), wide, equal_nan=True)
        wide = wide if exact else wide - middle
    out: NDArray[Any] = condition(wide.reshape(-1, 1), dtype).values.reshape(coordinates.shape)
    return out


def standardised(values: NDArray[Any]) -> NDArray[np.float64]:
    """Series (n_steps,) or (n_steps, n_series) less their means, by their standard deviations; gaps stay, and what does
    not vary is 0."""
    wide = values.astype(np.float64)
    centred = wide - np.nanmean(wide, axis=0)
    spread = np.nanstd(centred, axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def future(target: NDArray[Any], Tp: int) -> NDArray[np.float64]:
    """``target[..., t + Tp]`` for each row t (..., n_steps), NaN where there is none."""
    n = target.shape[-1]
    out = np.full(target.shape, np.nan)
    first, end = max(-Tp, 0), min(n - Tp, n)
    if first < end:
        out[..., first:end] = target[..., first + Tp : end + Tp]
    return out
