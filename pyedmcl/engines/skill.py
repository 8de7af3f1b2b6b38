"""Skill of predictions that lie on the device: sums over rows there, rho, MAE and RMSE of them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..errors import InputError
from ..kernels import spec
from ..kernels.skill import CHUNK
from ..launch.pacing import Pacer
from ..launch.pool import Pool
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Doubles = NDArray[np.float64]

#: Columns of the sums: rows counted, p, o, p^2, o^2, p*o, |p - o|, (p - o)^2 of predictions p and observations o.
SUMS = ("n", "sum_p", "sum_o", "sum_pp", "sum_oo", "sum_po", "sum_abs_error", "sum_squared_error")

_SUMS_BYTES_MOST = 64 << 20
_PAIRS_MOST = 1 << 20
_KEPT_PAIRS_MOST = 1 << 14  # whose small arrays stay on the device for the next call
_OPERATIONS_PER_ROW = 24.0
# Roundings of a sum that count as none of its variance: twice as many as a chunk has rows.
_ROUNDINGS = 2 * CHUNK


def skill_sums(
    executor: Executor,
    predicted: Buffer,
    observed: Buffer,
    *,
    observed_of: ArrayLike,
    n_rows: int,
    observed_stride: int,
    observed_offset: int = 0,
    t_begin: ArrayLike = 0,
    t_end: ArrayLike | None = None,
    dtype: str = "float32",
    into: NDArray[Any] | None = None,
) -> Doubles:
    """Sums over the rows t of each pair (prediction, observed series) that has both values.

    Parameters
    ----------
    executor : Executor
    predicted : Buffer
        ``dtype`` [n_pairs][n_rows]; NaN where there is no prediction.
    observed : Buffer
        Of ``dtype``. Row t of pair p was observed at element ``observed_of[p]*observed_stride + observed_offset + t``;
        a magnitude from PRESENT (1e15) on marks a gap. The data should be centred.
    observed_of : array_like of int, shape (n_pairs,)
        Series of each pair.
    n_rows : int
    observed_stride, observed_offset : int
        Elements from series to series, and of row 0 of a series with the prediction interval Tp added.
    t_begin, t_end : array_like of int, shape (n_pairs,) or one for all
        Rows outside ``[t_begin, t_end)`` are not read. All of them when left out.
    dtype : str
        "float32" or "float64".
    into : ndarray of ``dtype``, shape (n_pairs, :func:`chunks_of` n_rows, 8), optional
        Gets the sums of each chunk, as they come from the device.

    Returns
    -------
    ndarray of float64, shape (n_pairs, 8)
        Columns: :data:`SUMS`. Rows of a chunk are added in ``dtype`` in their order, chunks in float64 in theirs: the
        same numbers on every device.

    Raises
    ------
    InputError
        A row that is asked for lies outside a buffer, or the device has no float64.
    DeviceMemoryError
        No room for the sums of one pair.
    """
    series = np.ascontiguousarray(observed_of, dtype=np.int32)
    n_pairs = len(series)
    begin, end = (
        np.ascontiguousarray(np.broadcast_to(np.asarray(row, np.int32), n_pairs))
        for row in (t_begin, n_rows if t_end is None else t_end)
    )
    check_dtype(executor, dtype)
    itemsize = np.dtype(dtype).itemsize
    _check_inside(predicted, observed, itemsize, series, n_rows, observed_stride, observed_offset, begin, end)
    sums = np.zeros((n_pairs, len(SUMS)))
    if n_pairs == 0 or n_rows == 0:
        return sums
    kernel_spec = spec("skill")
    specialisation = {"dtype": dtype, "chunk": CHUNK}
    values = {**specialisation, **parameters(kernel_spec, specialisation, executor.info).parameters}
    kernel = build(executor, kernel_spec, values)
    n_chunks, wg = chunks_of(n_rows), values["wg"]
    pair_bytes = n_chunks * len(SUMS) * itemsize
    room = min(_SUMS_BYTES_MOST, budget(executor.info).largest)
    block = max(min(room // pair_bytes, n_pairs, _PAIRS_MOST), 1)
    pacer = Pacer(executor.info, "skill", dtype)
    cost = _OPERATIONS_PER_ROW * n_rows
    constants = {"observed_of": series, "t_begin": begin, "t_end": end}
    small = n_pairs <= _KEPT_PAIRS_MOST
    pool = Pool(executor, *(("skill", dtype, n_rows, *map(bytes, constants.values())) if small else ()))
    try:
        held = {name: pool.constant(name, array) for name, array in constants.items()}
        held["sums"] = pool.get("sums", block * pair_bytes)
        first = 0
        while first < n_pairs:
            last = min(first + min(pacer.units(cost), block), n_pairs)
            n = last - first
            event = executor.launch(
                kernel, (n * wg, -(-n_chunks // wg)), (wg, 1), predicted=predicted, observed=observed, **held,
                pair_begin=first, n_pairs=n, n_chunks=n_chunks, n_rows=n_rows, observed_stride=observed_stride,
                observed_offset=observed_offset,
            )  # fmt: skip
            pacer.launched(event, cost * n)
            parts = np.empty((n, n_chunks, len(SUMS)), dtype) if into is None else into[first:last]
            sums[first:last] = added(executor.download(held["sums"], parts))
            first = last
    finally:
        pool.release()
    return sums


def chunks_of(n_rows: int) -> int:
    """How many chunks ``n_rows`` rows have, each with sums of its own."""
    return -(-n_rows // CHUNK)


def added(parts: NDArray[Any]) -> Doubles:
    """Sums (n_pairs, 8) of those of chunks (n_pairs, n_chunks, 8), in their order, whatever NumPy's sum would do."""
    sums = np.zeros((len(parts), parts.shape[2]))
    for chunk in range(parts.shape[1]):
        sums += parts[:, chunk]
    return sums


def check_dtype(executor: Executor, dtype: str) -> None:
    """Raise InputError where ``dtype`` is unknown, or is float64 and the device has none."""
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype = {dtype!r} is not supported; choose 'float32' or 'float64'")
    if dtype == "float64" and not executor.info.fp64:
        raise InputError(f"{executor.info.name} has no float64; use dtype='float32' or another device")


def _check_inside(
    predicted: Buffer,
    observed: Buffer,
    itemsize: int,
    series: NDArray[np.int32],
    n_rows: int,
    stride: int,
    offset: int,
    begin: NDArray[np.int32],
    end: NDArray[np.int32],
) -> None:
    if predicted.nbytes < len(series) * n_rows * itemsize:
        raise InputError(
            f"{len(series):,} predictions of {n_rows:,} rows need {len(series) * n_rows * itemsize:,} bytes; "
            f"the buffer has {predicted.nbytes:,}"
        )
    first, last = np.maximum(begin, 0).astype(np.int64), np.minimum(end, n_rows).astype(np.int64)
    read = first < last
    if not read.any():
        return
    origin = series[read].astype(np.int64) * stride + offset
    lowest, highest = int((origin + first[read]).min()), int((origin + last[read]).max())
    if lowest < 0 or highest * itemsize > observed.nbytes:
        raise InputError(
            f"observations [{lowest:,}, {highest:,}) are asked for and there are {observed.nbytes // itemsize:,}; "
            f"narrow t_begin and t_end to the rows that were observed"
        )


def scores(sums: Doubles, dtype: str = "float32") -> tuple[Doubles, Doubles, Doubles]:
    """Skill from sums.

    Parameters
    ----------
    sums : ndarray of float64, shape (..., 8)
        From :func:`skill_sums`, or sums of such sums.
    dtype : str
        The precision that the rows were added in. A variance below its rounding errors counts as zero: that happens
        where the mean is more than a hundred times (float32) the standard deviation, so centred data lose nothing.

    Returns
    -------
    rho, mae, rmse : ndarray of float64, shape (...)
        Pearson's correlation, NaN below 3 rows or where one side does not vary; mean absolute error and root mean
        squared error in the data's units, NaN where there is no row.
    """
    n, sum_p, sum_o, sum_pp, sum_oo, sum_po, sum_abs, sum_squares = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    noise = _ROUNDINGS * float(np.finfo(np.dtype(dtype)).eps)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        var_p, var_o = sum_pp - sum_p * (sum_p / n), sum_oo - sum_o * (sum_o / n)
        covariance = sum_po - sum_p * (sum_o / n)
        varies = (n >= 3) & (var_p > noise * sum_pp) & (var_o > noise * sum_oo)
        rho: Any = np.where(varies, covariance / (np.sqrt(var_p) * np.sqrt(var_o)), np.nan)
        return np.clip(rho, -1.0, 1.0), sum_abs / n, np.sqrt(sum_squares / n)
