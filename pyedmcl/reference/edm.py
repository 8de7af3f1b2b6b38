"""Oracles of the EDM kernels: neighbours bit for bit as a device computes them, simplex and skill in float64.

The arithmetic of a pair is fixed on every device: ``diff = x[t - e*tau] - x[j - e*tau]`` rounded to the working
precision, then ``acc = fma(diff, diff, acc)`` for e = 0 .. E-1 from ``acc = 0``. NumPy has no fma, so both are
emulated here with error-free transformations; one rounding to odd before the last makes the result exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .order import nearest_first

Floats = npt.NDArray[np.floating[Any]]
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

# Pairs handled at once: some twenty temporaries of this length stay in a core's cache, which halves the time.
_CHUNK_CELLS = 1 << 13


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Float64 sum and its exact rounding error (Knuth), for any order of magnitudes."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Float64 product and its exact rounding error (Dekker, Veltkamp splitting)."""
    product = a * b
    a_high = 134217729.0 * a
    a_high = a_high - (a_high - a)
    a_low = a - a_high
    b_high = 134217729.0 * b
    b_high = b_high - (b_high - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _sum_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """Float64 sum rounded to odd: an inexact sum takes the neighbour whose last bit is one.

    Such a value never sits on the midpoint of a shorter format without being it, so that rounding it once more
    is the same as rounding the exact sum once.
    """
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    # An inexact sum is not zero, and its neighbours are one step of its bit pattern away. NaN errors compare false.
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = (error > 0) | (error < 0)
    odd: Doubles = np.where(inexact & (bits & 1 == 0), bits + step, bits).view(np.float64)
    return odd


def fma32(a: Floats, b: Floats, c: Floats) -> npt.NDArray[np.float32]:
    """``a*b + c`` of float32 arrays with a single rounding to float32, subnormal results included.

    Parameters
    ----------
    a, b, c : ndarray of float32
        Of one shape, or broadcastable.
    """
    product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32).astype(np.float64)
    exact, addend = np.broadcast_arrays(product, np.asarray(c, np.float32).astype(np.float64))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return _sum_to_odd(np.array(exact), np.array(addend)).astype(np.float32)


def fma64(a: Floats, b: Floats, c: Floats) -> Doubles:
    """``a*b + c`` of float64 arrays with a single rounding (Boldo and Melquiond's emulation).

    Exact where nothing overflows or underflows on the way: ``|a|``, ``|b|`` below 2^996, ``a*b`` zero or above
    2^-900 in magnitude. Distances of data that a scientist measures are far inside.

    Parameters
    ----------
    a, b, c : ndarray of float64
        Of one shape, or broadcastable.
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    first, second, addend = (np.array(v) for v in arrays)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        product, product_error = _two_product(first, second)
        low, low_error = _two_sum(addend, product_error)
        high, high_error = _two_sum(product, low)
        result: Doubles = high + _sum_to_odd(low_error, high_error)
    return result


def embedded_rows(x: Floats, E: int, tau: int) -> Mask:
    """Boolean (L,): rows t >= (E-1)*tau whose E values ``x[t - e*tau]`` are all finite."""
    finite = np.isfinite(x)
    ok = np.zeros(len(x), dtype=np.bool_)
    first = (E - 1) * tau
    if first < len(x):
        ok[first:] = True
        for e in range(E):
            ok[first:] &= finite[first - e * tau : len(x) - e * tau]
    return ok


def library_mask_of(x: Floats, E: int, tau: int, Tp: int, target: Floats | None = None) -> Mask:
    """Boolean (L,): rows that may be neighbours: embedded, and ``target[j + Tp]`` (default ``x``) there and finite."""
    ok = embedded_rows(x, E, tau)
    values = np.isfinite(x if target is None else target)
    rows = np.arange(len(x)) + Tp
    inside = (rows >= 0) & (rows < len(values))
    ok[~inside] = False
    ok[inside] &= values[rows[inside]]
    return ok


def _knn(
    fma: Callable[[Floats, Floats, Floats], Floats],
    dtype: type[np.floating[Any]],
    x: npt.ArrayLike,
    E: int,
    tau: int,
    k: int,
    Tp: int,
    exclusion_radius: int,
    query: npt.ArrayLike | None,
    target: npt.ArrayLike | None,
    library_mask: Mask | None,
) -> tuple[Floats, Rows]:
    library: Floats = np.asarray(x, dtype=dtype)
    query_series: Floats = library if query is None else np.asarray(query, dtype=dtype)
    mask = library_mask_of(library, E, tau, Tp, None if target is None else np.asarray(target, dtype=dtype))
    if library_mask is not None:
        mask &= library_mask
    rows = np.flatnonzero(mask)
    queries = np.flatnonzero(embedded_rows(query_series, E, tau))
    squared = np.full((len(query_series), k), np.inf, dtype=dtype)
    indices = np.full((len(query_series), k), -1, dtype=np.int32)
    step = max(1, _CHUNK_CELLS // max(1, len(rows)))
    for start in range(0, len(queries) if len(rows) else 0, step):
        part = queries[start : start + step]
        acc: Floats = np.zeros((len(part), len(rows)), dtype=dtype)
        for e in range(E):
            diff = query_series[part - e * tau][:, None] - library[rows - e * tau][None, :]
            acc = fma(diff, diff, acc)
        if query is None:
            acc[np.abs(part[:, None] - rows[None, :]) <= exclusion_radius] = np.inf
        order = nearest_first(acc, k)
        near = np.take_along_axis(acc, order, axis=1)
        squared[part, : order.shape[1]] = near
        indices[part, : order.shape[1]] = np.where(np.isfinite(near), rows[order], -1)
    return squared, indices


def knn_float32_exact(
    x: npt.ArrayLike,
    *,
    E: int,
    tau: int = 1,
    k: int | None = None,
    Tp: int = 0,
    exclusion_radius: int = 0,
    query: npt.ArrayLike | None = None,
    target: npt.ArrayLike | None = None,
    library_mask: Mask | None = None,
) -> tuple[npt.NDArray[np.float32], Rows]:
    """Nearest neighbours with the float32 arithmetic of the kernels, bit for bit.

    Parameters
    ----------
    x : array_like of shape (L,)
        Library series, rounded to float32; NaN marks a gap.
    E, tau : int
        Embedding dimension and lag.
    k : int, optional
        Neighbours per row; E + 1 when left out.
    Tp : int
        ``target[j + Tp]`` must exist and be finite for a neighbour j.
    exclusion_radius : int
        Rows with ``|t - j|`` up to this are no neighbours, when ``query`` is None.
    query : array_like of shape (M,), optional
        Another series whose rows are asked for; ``x`` itself when left out.
    target : array_like, optional
        The predicted series; ``x`` when left out.
    library_mask : ndarray of bool, shape (L,), optional
        Rows that may be neighbours.

    Returns
    -------
    squared : ndarray of float32, shape (M, k)
        Squared Euclidean distances, nearest first; inf where there is no neighbour. A square that
        overflows float32 counts as no neighbour.
    indices : ndarray of int32, shape (M, k)
        Rows of ``x`` ordered by (squared distance, row); -1 where there is no neighbour.
    """
    width = E + 1 if k is None else k
    squared, rows = _knn(fma32, np.float32, x, E, tau, width, Tp, exclusion_radius, query, target, library_mask)
    return squared.astype(np.float32, copy=False), rows


def knn_float64_exact(
    x: npt.ArrayLike,
    *,
    E: int,
    tau: int = 1,
    k: int | None = None,
    Tp: int = 0,
    exclusion_radius: int = 0,
    query: npt.ArrayLike | None = None,
    target: npt.ArrayLike | None = None,
    library_mask: Mask | None = None,
) -> tuple[Doubles, Rows]:
    """As :func:`knn_float32_exact` with the kernels' float64 arithmetic (limits: :func:`fma64`)."""
    width = E + 1 if k is None else k
    squared, rows = _knn(fma64, np.float64, x, E, tau, width, Tp, exclusion_radius, query, target, library_mask)
    return squared.astype(np.float64, copy=False), rows


def simplex_weights(distances: Floats) -> Doubles:
    """Normalised simplex weights (n, k) of distances (n, k), nearest first; 0 at inf, NaN where a row has none."""
    d = np.asarray(distances, dtype=np.float64)
    nearest = d[:, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        w = np.where(nearest == 0, d == 0, np.exp(-d / nearest))
        w = np.where(np.isinf(d), 0.0, w)
        weights: Doubles = w / w.sum(axis=1, keepdims=True)
    return weights


def simplex_predict(indices: Rows, distances: Floats, target: npt.ArrayLike, Tp: int) -> tuple[Doubles, Doubles]:
    """Weighted mean and weighted variance (n,) of ``target`` at the neighbours' rows + Tp; NaN where there are none."""
    w = simplex_weights(distances)
    y = np.where(indices >= 0, np.asarray(target, dtype=np.float64)[np.where(indices >= 0, indices + Tp, 0)], 0.0)
    mean: Doubles = (w * y).sum(axis=1)
    variance: Doubles = (w * (y - mean[:, None]) ** 2).sum(axis=1)
    return mean, variance


def pearson(a: Floats, b: Floats) -> float:
    """Two-pass Pearson correlation where both are finite; NaN below 3 rows or where one does not vary."""
    both = np.isfinite(a) & np.isfinite(b)
    first, second = np.asarray(a, dtype=np.float64)[both], np.asarray(b, dtype=np.float64)[both]
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def skill(indices: Rows, distances: Floats, target: npt.ArrayLike, Tp: int) -> float:
    """rho of a target (L,) mapped from neighbours (L, k): the oracle of one cross-map cell."""
    values = np.asarray(target, dtype=np.float64)
    observed = np.full(len(indices), np.nan)
    rows = np.arange(len(indices)) + Tp
    inside = (rows >= 0) & (rows < len(values))
    observed[inside] = values[rows[inside]]
    return pearson(simplex_predict(indices, distances, values, Tp)[0], observed)


def compacted(x: Floats) -> Doubles:
    """A series without gaps in 16 bits, shifted and scaled: its range becomes [0.5, 1.9999].

    What is left is a step of 2^-16 below 1 and of 2^-15 from there on.
    """
    values = np.asarray(x, np.float64)
    low, high = values.min(), values.max()
    if high == low:
        return np.full(len(values), 0.5)
    scaled = 0.5 + (values - low) * (1.4999 / (high - low))
    step = np.where(scaled < 1, 2.0**-16, 2.0**-15)
    rounded: Doubles = np.round(scaled / step) * step
    return rounded
