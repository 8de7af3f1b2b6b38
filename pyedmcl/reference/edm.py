"""Oracles of the EDM kernels: neighbours and their order, simplex projection, S-map, and cross mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# The order of neighbours on the host: the nearer row comes first, and of two that are equally near the smaller one.
#
# The same rule for kernels is ``clkernels/order.clh``.


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


# The arithmetic of a pair is fixed on every device: ``diff = x[t - e*tau] - x[j - e*tau]`` rounded to the working
# precision, then ``acc = fma(diff, diff, acc)`` for e = 0 .. E-1 from ``acc = 0``. NumPy has no fma, so both are
# emulated here with error-free transformations; one rounding to odd before the last makes the result exact.


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


# Oracle of S-map: locally weighted linear regression by singular values in float64, a row at a time.
#
# Sugihara, Phil. Trans. R. Soc. A 348, 477 (1994): with weights W = exp(-theta d / d_mean), d_mean being the mean
# distance of the query's neighbours, the coefficients minimise sum W^2 (y - c0 - c.x)^2.


Integers = npt.NDArray[np.integer]


class Fit(NamedTuple):
    """Of n query rows: (n,) predictions and variances, (n, D + 1) intercept with slopes, and singular values."""

    predicted: Doubles
    variance: Doubles
    coefficients: Doubles
    singular_values: Doubles


def _neighbours(
    library: Doubles, rows: Integers, point: Doubles, row: int, exclusion_radius: int, knn: int | None
) -> tuple[Integers, Doubles]:
    """Places and distances of the library rows, at most ``knn``, in the order of neighbours.

    The order matters to rounding: solvers by reflections keep the digits of heavy rows only where these come first.
    """
    rows_left = np.flatnonzero(np.abs(np.asarray(rows, np.int64) - row) > exclusion_radius)
    d = np.sqrt(((library[rows_left] - point) ** 2).sum(axis=1))
    order = nearest_first(d, knn)
    return rows_left[order], d[order]


def smap_rows(
    library: npt.ArrayLike,
    target: npt.ArrayLike,
    rows: Integers,
    points: npt.ArrayLike,
    point_rows: Integers,
    theta: float,
    *,
    exclusion_radius: int = 0,
    knn: int | None = None,
    alpha: float = 0.0,
) -> Fit:
    """S-map around each query row.

    Parameters
    ----------
    library : array_like (m, D)
        Coordinates of the library rows.
    target : array_like (m,)
        What each of them leads to.
    rows, point_rows : ndarray of int (m,), (n,)
        Row numbers; pairs up to ``exclusion_radius`` apart are left out (-1: none is).
    points : array_like (n, D)
        Query rows.
    theta : float
        Localisation, at least 0.
    knn : int, optional
        Neighbours; all library rows by default.
    alpha : float
        Ridge penalty on the squared slopes.

    Returns
    -------
    Fit
        NaN for rows without a neighbour.
    """
    x, y, q = (np.asarray(v, np.float64) for v in (library, target, points))
    n, width = len(q), x.shape[1] + 1
    out = Fit(np.full(n, np.nan), np.full(n, np.nan), np.full((n, width), np.nan), np.full((n, width), np.nan))
    for t in range(n):
        near, d = _neighbours(x, rows, q[t], int(point_rows[t]), exclusion_radius, knn)
        if not len(near):
            continue
        mean = d.mean()
        w = np.exp(-theta * d / mean) if mean > 0 else np.ones(len(near))
        if not w.any():  # all of them underflow
            continue
        a = np.column_stack([w, w[:, None] * x[near]])
        b = w * y[near]
        sizes = np.linalg.svd(a, compute_uv=False)
        out.singular_values[t] = 0
        out.singular_values[t, : len(sizes)] = sizes
        if alpha:
            a = np.vstack([a, np.sqrt(alpha) * np.eye(width)[1:]])
            b = np.concatenate([b, np.zeros(width - 1)])
        c = np.asarray(np.linalg.lstsq(a, b, rcond=None)[0], np.float64)
        out.coefficients[t] = c
        out.predicted[t] = c[0] + c[1:] @ q[t]
        out.variance[t] = (w * (y[near] - out.predicted[t]) ** 2).sum() / w.sum()
    return out


def scales(
    library: Doubles, rows: Integers, points: Doubles, point_rows: Integers, *, exclusion_radius: int = 0,
    knn: int | None = None,
) -> tuple[Doubles, Doubles, Integers]:  # fmt: skip
    """Per query row: distance of its nearest library row, mean distance of its neighbours, and how many these are."""
    distances = [_neighbours(library, rows, q, int(t), exclusion_radius, knn)[1]
             for q, t in zip(points, point_rows, strict=True)]  # fmt: skip
    nearest = np.array([d.min() if len(d) else np.inf for d in distances])
    mean = np.array([d.mean() if len(d) else np.nan for d in distances])
    return nearest, mean, np.array([len(d) for d in distances])


def moments(regressors: Doubles, target: Doubles, weights: Doubles) -> Doubles:
    """Sums over rows: W^2 v v' (packed lower triangle) and W^2 v y with v = (1, regressors), then W, W y, W y^2."""
    v = np.column_stack([np.ones(len(target)), regressors])
    weighted = weights[:, None] ** 2 * v
    gram = weighted.T @ v
    packed = [gram[b, a] for b in range(len(gram)) for a in range(b + 1)]
    last = [weights.sum(), (weights * target).sum(), (weights * target**2).sum()]
    return np.array([*packed, *(weighted.T @ target), *last])


def solve(gram: Doubles, right: Doubles) -> Doubles:
    """Solutions (n, K) of symmetric systems (n, K, K) and (n, K)."""
    return np.asarray(np.linalg.solve(gram, right[..., None])[..., 0], np.float64)


def map_rho(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, *, tau: int = 1, Tp: int = 0, exclusion_radius: int = 0,
    ridge: float = 0.0, libraries: Iterable[int] | None = None,
) -> Doubles:  # fmt: skip
    """rho of predictions by S-map, row = library, column = target.

    Parameters
    ----------
    series : array_like (n_steps, n_series)
        NaN for gaps.
    E : int or array_like of int (n_series,)
        Embedding dimension of each target.
    libraries : iterable of int, optional
        All by default.

    Returns
    -------
    ndarray (n_libraries, n_series)
        NaN for fewer than three predictions, and where they or the observations do not vary.
    """
    which, fits = _map_fits(series, E, theta, tau, Tp, exclusion_radius, ridge, libraries)
    rho = np.full((len(which), np.shape(series)[1]), np.nan)
    for place, column, fit, states, target in fits:
        finite = np.isfinite(target)
        if finite.sum() >= 3 and np.ptp(target[finite]) > 0 and np.ptp(states[finite]) > 0:
            rho[place, column] = np.corrcoef(fit.predicted[finite], target[finite])[0, 1]
    return rho


def map_slopes(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, *, tau: int = 1, Tp: int = 0, exclusion_radius: int = 0,
    ridge: float = 0.0, libraries: Iterable[int] | None = None,
) -> Doubles:  # fmt: skip
    """Mean slopes (n_libraries, n_series, largest E) of targets on the lags of libraries, over all rows with a state.

    Arguments are those of :func:`map_rho`; NaN behind the E of a target, and for a library that never changes.
    """
    which, fits = _map_fits(series, E, theta, tau, Tp, exclusion_radius, ridge, libraries)
    slopes = np.full((len(which), np.shape(series)[1], int(np.max(E))), np.nan)
    for place, column, fit, states, _ in fits:
        if np.ptp(states) > 0:
            slopes[place, column, : states.shape[1]] = fit.coefficients[:, 1:].mean(axis=0)
    return slopes


def _map_fits(
    series: npt.ArrayLike, E: npt.ArrayLike, theta: float, tau: int, Tp: int, exclusion_radius: int, ridge: float,
    libraries: Iterable[int] | None,
) -> tuple[list[int], Iterator[tuple[int, int, Fit, Doubles, Doubles]]]:  # fmt: skip
    """The libraries of a map, and (place among them, target, fit, states, what they lead to) of each pair."""
    x = np.asarray(series, np.float64)
    n, n_series = x.shape
    which = list(range(n_series) if libraries is None else libraries)
    target_row = np.arange(n) + Tp
    inside = (target_row >= 0) & (target_row < n)

    def pairs() -> Iterator[tuple[int, int, Fit, Doubles, Doubles]]:
        for place, library in enumerate(which):
            for column, dim in enumerate(np.broadcast_to(E, n_series).tolist()):
                states = np.full((n, dim), np.nan)
                for lag in range(dim):
                    states[lag * tau :, lag] = x[: n - lag * tau, library]
                target = np.where(inside, x[np.where(inside, target_row, 0), column], np.nan)
                rows = np.flatnonzero(np.isfinite(states).all(axis=1) & inside)
                rows_left = rows[np.isfinite(target[rows])]
                fit = smap_rows(
                    states[rows_left], target[rows_left], rows_left, states[rows], rows, theta,
                    exclusion_radius=exclusion_radius, alpha=ridge,
                )  # fmt: skip
                yield place, column, fit, states[rows], target[rows]

    return which, pairs()


# Oracle of convergent cross mapping: random sub-libraries bit for bit as a device draws them, and their skill.
#
# A sub-library is drawn without replacement by going through the rows that may be drawn, in order, and taking each with
# the chance that what is still wanted has among what is left (selection sampling: Fan, Muller and Rezucha, J. Am. Stat.
# Assoc. 57, 387, 1962). The random numbers are those of Philox4x32-10 (Salmon et al., Proc. SC11, 16, 2011), whose
# output is a function of key and counter alone: no draw depends on another.


Words = npt.NDArray[np.uint32]

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox4x32(counter: npt.ArrayLike, key: npt.ArrayLike) -> Words:
    """Ten rounds of Philox.

    Parameters
    ----------
    counter : array_like of uint32 (..., 4)
    key : array_like of uint32 (2,)

    Returns
    -------
    ndarray of uint32 (..., 4)
    """
    c = np.moveaxis(np.asarray(counter, np.uint32), -1, 0).copy()
    k0, k1 = np.asarray(key, np.uint32)
    with np.errstate(over="ignore"):
        for _ in range(10):
            first, second = (c[0].astype(np.uint64) * _MULTIPLIERS[0], c[2].astype(np.uint64) * _MULTIPLIERS[1])
            c = np.stack([
                (second >> _HALF).astype(np.uint32) ^ c[1] ^ k0, (second & _LOW).astype(np.uint32),
                (first >> _HALF).astype(np.uint32) ^ c[3] ^ k1, (first & _LOW).astype(np.uint32),
            ])  # fmt: skip
            k0, k1 = k0 + _STEPS[0], k1 + _STEPS[1]
    return np.moveaxis(c, 0, -1)


def stream_key(seed: int, lib_size: int) -> Words:
    """Key of the streams of a library size: two words that NumPy's SeedSequence makes of both."""
    words: Words = np.random.SeedSequence(entropy=seed, spawn_key=(lib_size,)).generate_state(2).astype(np.uint32)
    return words


def sub_library(
    n_rows: int, lib_size: int, *, seed: int, library: int, target: int, sample: int
) -> npt.NDArray[np.int64]:
    """Ranks (lib_size,) among the rows that may be drawn, ascending, that a sample draws.

    Parameters
    ----------
    n_rows, lib_size : int
        Rows there are, and rows wanted, at most as many.
    library, target : int
        Numbers of the two series, which choose the stream.
    sample : int
        Number of the sample.
    """
    blocks = -(-n_rows // 4)
    counter = np.zeros((blocks, 4), np.uint32)
    counter[:, 0] = np.arange(blocks)
    counter[:, 1:] = sample, library, target
    numbers = philox4x32(counter, stream_key(seed, lib_size)).reshape(-1).tolist()
    taken: list[int] = []
    for p in range(n_rows):
        if numbers[p] * (n_rows - p) >> 32 < lib_size - len(taken):
            taken.append(p)
    return np.array(taken, np.int64)


def ccm_skill(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    lib_size: int,
    *,
    E: int,
    tau: int = 1,
    Tp: int = 0,
    k: int | None = None,
    exclusion_radius: int = 0,
    seed: int = 0,
    library: int = 0,
    target: int = 1,
    sample: int = 0,
    library_mask: Mask | None = None,
) -> float:
    """rho of ``y`` predicted from a random sub-library of the embedding of ``x``, in float64.

    Parameters
    ----------
    x, y : array_like (L,)
        Library series, whose every embedded row is predicted from, and target series.
    library, target, sample, seed : int
        See :func:`sub_library`.
    library_mask : ndarray of bool (L,), optional
        Rows that may be drawn.
    """
    of: Floats = np.asarray(x, np.float64)
    aim: Floats = np.asarray(y, np.float64)
    mask = library_mask_of(of, E, tau, Tp, aim)
    stream = {"seed": seed, "library": library, "target": target, "sample": sample}
    members = _members(mask if library_mask is None else mask & library_mask, lib_size, stream)
    squared, indices = knn_float64_exact(
        of, E=E, tau=tau, k=k, Tp=Tp, exclusion_radius=exclusion_radius, target=aim, library_mask=members
    )
    predicted: Doubles = simplex_predict(indices, np.sqrt(squared), aim, Tp)[0]
    return pearson(predicted, _ahead(aim, Tp))


def ccm_smap_skill(
    x: npt.ArrayLike, y: npt.ArrayLike, lib_size: int, *, E: int, theta: float, ridge: float = 0.0, tau: int = 1,
    Tp: int = 0, exclusion_radius: int = 0, seed: int = 0, library: int = 0, target: int = 1, sample: int = 0,
    library_mask: Mask | None = None,
) -> float:  # fmt: skip
    """As :func:`ccm_skill`, predicted by S-map from all members of the sub-library, where there are E + 1 or more."""
    of: Floats = np.asarray(x, np.float64)
    aim: Floats = np.asarray(y, np.float64)
    mask = library_mask_of(of, E, tau, Tp, aim)
    stream = {"seed": seed, "library": library, "target": target, "sample": sample}
    members = np.flatnonzero(_members(mask if library_mask is None else mask & library_mask, lib_size, stream))
    states = np.column_stack([np.roll(of, lag * tau) for lag in range(E)])  # its rows hold nothing that went round
    ahead, rows = _ahead(aim, Tp), np.flatnonzero(mask)
    fit = smap_rows(
        states[members], ahead[members], members, states[rows], rows, theta, exclusion_radius=exclusion_radius,
        alpha=ridge,
    )  # fmt: skip
    left = (np.abs(rows[:, None] - members) > exclusion_radius).sum(axis=1)
    return pearson(np.where(left > E, fit.predicted, np.nan), ahead[rows])


def _members(mask: Mask, lib_size: int, stream: dict[str, int]) -> Mask:
    """Which of the rows that may be drawn a sample draws."""
    rows, members = np.flatnonzero(mask), np.zeros(len(mask), bool)
    members[rows[sub_library(len(rows), lib_size, **stream)]] = True
    return members


def _ahead(aim: Floats, Tp: int) -> Floats:
    """What each row is to predict; NaN where that lies outside the series."""
    observed = np.full(len(aim), np.nan)
    at = np.arange(len(aim)) + Tp
    inside = (at >= 0) & (at < len(aim))
    observed[inside] = aim[at[inside]]
    return observed


# Oracle of partial cross mapping (Leng et al., Nat. Commun. 11, 2632, 2020): simplex projection and least squares.


def estimate(library: npt.ArrayLike, target: npt.ArrayLike, E: int, tau: int, Tp: int, radius: int = 0) -> Doubles:
    """``target`` as the E + 1 nearest states of ``library`` predict it, at the rows that are predicted, else NaN."""
    x, y = np.asarray(library, np.float64), np.asarray(target, np.float64)
    n, first = len(x), (E - 1) * tau
    states = np.full((n, E), np.nan)
    for lag in range(E):
        states[lag * tau :, lag] = x[: n - lag * tau]
    states[:first] = np.nan
    out = np.full(n, np.nan)
    for t in range(n):
        if not np.isfinite(states[t]).all() or not 0 <= t + Tp < n:
            continue
        neighbours = [
            j for j in range(n)
            if abs(t - j) > radius and 0 <= j + Tp < n and np.isfinite(states[j]).all() and np.isfinite(y[j + Tp])
        ]  # fmt: skip
        apart = np.array([np.sqrt(((states[t] - states[j]) ** 2).sum()) for j in neighbours])
        near = nearest_first(apart, E + 1)
        d = apart[near]
        if not len(d):
            continue
        weight = np.exp(-d / d[0]) if d[0] > 0 else (d == 0).astype(float)
        out[t + Tp] = weight @ y[np.array(neighbours)[near] + Tp] / weight.sum()
    return out


def partial_skill(
    cause: npt.ArrayLike, effect: npt.ArrayLike, given: list[npt.ArrayLike], E: list[int], tau: int, Tp: int
) -> tuple[float, float, list[float]]:
    """Skill of the effect's states for the cause, the same given the estimates through ``given``, and those skills.

    ``E`` holds the dimensions of the effect and of each of ``given``.
    """
    x = np.asarray(cause, np.float64)
    first = estimate(effect, x, E[0], tau, Tp)
    second = [
        estimate(estimate(effect, z, E[0], tau, Tp), x, dim, tau, Tp) for z, dim in zip(given, E[1:], strict=True)
    ]
    present = np.isfinite(np.array([x, first, *second])).all(axis=0)
    controls: Any = np.column_stack([np.ones(present.sum()), *(one[present] for one in second)])
    left = [side[present] - controls @ np.linalg.lstsq(controls, side[present], rcond=None)[0] for side in (x, first)]
    return _rho(x, first), _rho(*left), [_rho(x, one) for one in second]


def _rho(a: Doubles, b: Doubles) -> float:
    present = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(a[present], b[present])[0, 1])
