"""Predictions on the device: simplex projection of series and pairs, and their skill."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..device.memory import budget
from ..errors import InputError
from ..jobs.blocks import Record
from ..kernels import spec
from ..kernels.build import build
from ..kernels.specs.maps import CHUNK
from ..kernels.texts import GAP
from ..launch.replay import replayed
from ..launch.staging import Pacer, Pool, round_up
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.searcher import Searcher, open_searcher, sure_of
from ..search.tables import Tables, lay_out_in_itself
from ..series.scaling import FAR_EXPONENT, MOST_EXPONENT, condition, exponent_of, squares
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Staging


# Skill of predictions that lie on the device: sums over rows there, rho, MAE and RMSE of them here.


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
    predicted : Buffer
        ``dtype`` [n_pairs][n_rows]; NaN where there is no prediction.
    observed : Buffer
        Of ``dtype``. Row t of pair p was observed at element ``observed_of[p]*observed_stride + observed_offset + t``;
        a magnitude from PRESENT (1e15) on marks a gap. The data should be centred.
    observed_of : array_like of int, shape (n_pairs,)
        Series of each pair.
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


# Simplex projection of one target from the states of one or several libraries, laid out on the host.


def _scale_of(mean: float, low: float, high: float) -> tuple[float, int]:
    """What is subtracted from a target, and the binary exponent of the largest distance from it.

    That is the mean, but of few digits: what the data have of digits is then left after it was subtracted. The largest
    distance is that of the least or of the largest value, also after rounding, which keeps the order of differences.
    """
    spread = max(abs(low - mean), abs(high - mean))
    if spread:
        step = math.ldexp(1.0, max(math.frexp(spread)[1] - 8, -1074))
        mean = round(mean / step) * step + 0.0  # which is not -0
    return mean, math.frexp(max(abs(low - mean), abs(high - mean)))[1]


def _means(values: Doubles, reach: list[float]) -> list[float]:
    """The mean of each row, of which no value is beyond ``reach``: its sum is one of numbers near 1."""
    far = [each if abs(each) > FAR_EXPONENT else 0 for each in map(exponent_of, reach)]
    if not any(far):
        return list((np.add.reduce(values, axis=1) / values.shape[1]).tolist())
    scaled = np.ldexp(values, -np.array(far)[:, None])
    return list(np.ldexp(scaled.mean(axis=1), far).tolist())


def _places(mask: NDArray[np.bool_]) -> slice | NDArray[np.bool_]:
    """Where a mask is true, as a range of places if it is one: NumPy copies that ten times as fast."""
    n = int(np.count_nonzero(mask))
    first = int(mask.argmax()) if n else 0
    return slice(first, first + n) if mask[first : first + n].all() else mask


def _near_one(future_targets: Doubles, dtype: str) -> tuple[NDArray[Any], Doubles, NDArray[np.int32]]:
    """Targets (n, rows) as the kernel reads them, and shifts and binary exponents that are undone in predictions.

    All are absent in the same rows.
    """
    present = _places(np.isfinite(future_targets[0]))
    values_present = np.ascontiguousarray(future_targets[:, present])
    values = np.full(future_targets.shape, GAP, dtype)
    if not values_present.size:
        return values, np.zeros(len(values_present)), np.zeros(len(values_present), np.int32)
    low, high = values_present.min(axis=1).tolist(), values_present.max(axis=1).tolist()
    mean = _means(values_present, [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)])
    scales = [_scale_of(*of_row) for of_row in zip(mean, low, high, strict=True)]
    shift, exponent = np.array([each for each, _ in scales]), np.array([each for _, each in scales], np.int32)
    centred = values_present - shift[:, None]
    if np.abs(exponent).max() < MOST_EXPONENT:  # a product has the same bits, in half the time
        centred *= np.ldexp(1.0, -exponent)[:, None]
    else:
        np.ldexp(centred, -exponent[:, None], out=centred)
    values[:, present] = centred
    return values, shift, exponent


@dataclass(frozen=True)
class Predicted:
    """Predictions of one target (n_query,), their variance, their rounding noise, and the shift that was undone."""

    mean: Doubles
    variance: Doubles
    noise: float
    shift: float


def project_each(
    executor: Executor, problem: SearchProblem, future_targets: Doubles, library: NDArray[Any],
    query: NDArray[Any], request: SearchRequest | None = None,
) -> tuple[list[Predicted], Searcher]:  # fmt: skip
    """Predictions of a target of its own from each library, in few launches; none has gaps.

    The bits are those of a :class:`Projector` for each.

    Parameters
    ----------
    future_targets : ndarray (n_libraries, n_library)
        What library row j leads to, NaN only where that is outside the series.
    library, query : ndarray (n_libraries, stride)
        In the layout of the search; the same object where both are alike.
    """
    pool = Pool(executor, "project_each", problem, len(library))
    values, shift, exponent = _near_one(future_targets, problem.dtype)
    searcher = open_searcher(
        executor, problem, "weights", request, room=budget(executor.info).total // 2, pool=pool
    )
    try:
        held = executor.upload(values, pool.get("target", values.nbytes))
        mean, variance = np.empty((2, len(library), problem.n_query), problem.dtype)
        for tables in searcher.tables(searcher.load_layouts(library, query), None):
            target = {"targets": held, "target_stride": values.shape[1], "first_series": tables.first}
            _predict(executor, pool, tables, target, mean, variance)
        return _of_data(mean, variance, shift, exponent, problem.dtype), searcher
    finally:
        searcher.release()
        pool.release()


def _predict(
    executor: Executor, pool: Pool, tables: Tables, target: Mapping[str, Any], mean: NDArray[Any],
    variance: NDArray[Any],
) -> None:  # fmt: skip
    """Write what the libraries of some tables predict of targets that say already what rows lead to."""
    problem, padded = tables.problem, tables.knn_pass.table_rows
    chosen = parameters(spec("predict"), {"dtype": problem.dtype}, executor.info).parameters
    total, wg = tables.n_libraries * problem.n_query, int(chosen["wg"])
    out = [pool.get(name, total * problem.itemsize) for name in ("predicted", "variance")]
    values = {**chosen, "counts": problem.ks, "dtype": problem.dtype, "table_tile": tables.knn_pass.table_tile}
    executor.launch(
        build(executor, spec("predict"), values), (round_up(total, wg),), (wg,), target_front=0, rows=tables.rows,
        weights=tables.values, n_rows=problem.n_query, Tp=0, rows_per_slot=total, table_rows=padded,
        table_rows_per_slot=tables.n_libraries * padded, predicted=out[0], variance=out[1], **target,
    )  # fmt: skip
    libraries = slice(tables.first, tables.first + tables.n_libraries)
    for buffer, into in zip(out, (mean, variance), strict=True):
        executor.download(buffer, into[libraries])


def _noise(predicted: Doubles, dtype: str) -> float:
    """What rounding may change predictions by before their shift is undone."""
    largest = np.fmax.reduce(np.abs(predicted), axis=None, initial=0.0, where=np.isfinite(predicted))
    return 8 * float(np.finfo(dtype).eps) * float(largest)


def _of_data(
    mean: NDArray[Any], variance: NDArray[Any], shift: Doubles, exponent: NDArray[np.int32], dtype: str
) -> list[Predicted]:
    """Predictions (n, n_query) in the unit of the data, each with its own shift and exponent."""
    predicted = np.ldexp(mean.astype(np.float64), exponent[:, None])
    noise = [_noise(own, dtype) for own in predicted]
    predicted += shift[:, None]
    if (np.abs(exponent) > FAR_EXPONENT).any():
        spreads = [squares(own, one) for own, one in zip(variance, exponent.tolist(), strict=True)]
    else:
        spreads = list(np.ldexp(variance.astype(np.float64), 2 * exponent[:, None]))
    of_each = zip(predicted, spreads, noise, shift.tolist(), strict=True)
    return [Predicted(*one) for one in of_each]


@dataclass(frozen=True)
class _Target:
    """A target as the kernel reads it."""

    # ndarray (1, n_library)
    values: NDArray[Any]
    shift: float
    # These are undone in predictions.
    exponent: int
    # ndarray of bool (n_library,) or None. Rows that may be neighbours, where these are not all that the search takes.
    library_mask: NDArray[np.bool_] | None

    @classmethod
    def of(cls, future_target: Doubles, problem: SearchProblem, library_mask: NDArray[np.bool_] | None) -> _Target:
        """As :class:`Projector` is given them."""
        present = np.isfinite(future_target)
        values, shift, exponent = _near_one(future_target[None], problem.dtype)
        # Rows whose target lies outside the series are left out by the search itself.
        mask = present if library_mask is None else present & library_mask
        mask[: max(-problem.Tp, 0)] = mask[problem.library_end :] = True
        return cls(values, float(shift[0]), int(exponent[0]), None if mask.all() else mask)

    def in_units(self, mean: NDArray[Any], variance: NDArray[Any]) -> tuple[Doubles, Doubles, float]:
        """Predictions and variances in the unit of the data, and the rounding noise of predictions."""
        predicted = np.ldexp(mean.astype(np.float64), self.exponent)
        return predicted + self.shift, squares(variance, self.exponent), _noise(predicted, mean.dtype.name)


def project_once(
    executor: Executor, problem: SearchProblem, future_target: Doubles, library: NDArray[Any], query: NDArray[Any],
    library_mask: NDArray[np.bool_] | None = None, request: SearchRequest | None = None,
) -> tuple[Predicted, Record]:  # fmt: skip
    """What one library predicts of a target: the arguments are those of a :class:`Projector`."""
    target = _Target.of(future_target, problem, library_mask)
    mean, variance = np.empty((2, 1, problem.n_query), problem.dtype)

    def work(executor: Executor) -> Record:
        projector = Projector.around(executor, problem, target, request)
        try:
            projector.fill(library, query, mean, variance)
            return Record.of(projector.searcher)
        finally:
            projector.release()

    sure = None if target.library_mask is not None else sure_of(request, executor.info, problem)
    if sure is None:
        record = work(executor)
    else:
        inputs = {"target": target.values, "library": library, "query": query}
        record = replayed(
            executor, ("project_once", problem, request, sure), inputs, {"mean": mean, "variance": variance}, work
        )
    predicted, spread, noise = target.in_units(mean, variance)
    return Predicted(predicted[0], spread[0], noise, target.shift), record


class Projector:
    """Predictions of one target from neighbours in one or several libraries.

    Parameters
    ----------
    future_target : ndarray (n_library,) of float64
        What library row j leads to (the target's value at j + Tp), NaN where there is none.
    library_mask : ndarray of bool (n_library,), optional
        Rows that may be neighbours; among them only those count that have a state and a future target.
    request : SearchRequest, optional
        How neighbours are searched.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, future_target: Doubles,
        library_mask: NDArray[np.bool_] | None = None, request: SearchRequest | None = None,
    ) -> None:  # fmt: skip
        self.target = _Target.of(future_target, problem, library_mask)
        self._open(executor, problem, request)

    @classmethod
    def around(
        cls, executor: Executor, problem: SearchProblem, target: _Target, request: SearchRequest | None
    ) -> Projector:
        """The same of a target that was brought near 1 before."""
        made = cls.__new__(cls)
        made.target = target
        made._open(executor, problem, request)
        return made

    def _open(self, executor: Executor, problem: SearchProblem, request: SearchRequest | None) -> None:
        self.executor, self.problem = executor, problem
        self._pool = Pool(executor, "projector", problem)
        values = self.target.values
        self._target = executor.upload(values, self._pool.get("target", max(values.nbytes, 1)))
        room = budget(executor.info).total // 2
        self.searcher = open_searcher(executor, problem, "weights", request, room=room, pool=self._pool)

    @property
    def shift(self) -> float:
        """What was subtracted from the target."""
        return self.target.shift

    def predict(self, library: NDArray[Any], query: NDArray[Any]) -> tuple[Doubles, Doubles, float]:
        """Predictions and variances (n_libraries, n_query), NaN where there is no neighbour, and their rounding noise.

        Parameters
        ----------
        library, query : ndarray (n_libraries, stride)
            In the layout of the search; the same object where both are alike.
        """
        mean, variance = np.empty((2, len(library), self.problem.n_query), self.problem.dtype)
        self.fill(library, query, mean, variance)
        return self.target.in_units(mean, variance)

    def fill(
        self, library: NDArray[Any], query: NDArray[Any], mean: NDArray[Any], variance: NDArray[Any]
    ) -> None:
        """Write predictions and variances of the target as it lies on the device."""
        series = self.searcher.load_layouts(library, query)
        # All libraries have the same target: its rows are not apart. What rows lead to has been looked up before.
        target = {"targets": self._target, "target_stride": 0, "first_series": 0}
        for tables in self.searcher.tables(series, self.target.library_mask):
            _predict(self.executor, self._pool, tables, target, mean, variance)

    def release(self) -> None:
        """Give the device memory back."""
        self.searcher.release()
        self._pool.release()


# Simplex projection of series by their own neighbour tables, on the device.


class SelfProjection:
    """Predictions of one target per library.

    Parameters
    ----------
    data : Staging
        Targets, a series for each library.
    a, b : int
        Which of them.
    dims : int
        Dimensions that are predicted from, in all passes together.
    """

    def __init__(self, executor: Executor, data: Staging, a: int, b: int, dims: int) -> None:
        self.executor = executor
        self.stride = data.n_steps
        self._pool = Pool(executor, "self_projection", b - a, dims, self.stride, data.dtype)
        series_bytes = (b - a) * self.stride * data.values.itemsize
        self.targets = self._pool.get("targets", series_bytes)
        self._most_bytes = dims * series_bytes
        data.series(a, b, 0, self.stride, self.stride, self.targets, centred=True)

    def predict(self, tables: Tables) -> tuple[Buffer, Buffer]:
        """Predictions and variances of centred targets on the device, valid until the next call.

        Each (dimensions of the pass, n_libraries, n_query), NaN where there is no neighbour.
        """
        problem, knn_pass = tables.problem, tables.knn_pass
        total = len(problem.dims) * tables.n_libraries * problem.n_query
        # As large as all passes together need them, so that none is replaced by a larger one.
        out = (self._pool.get("predicted", self._most_bytes), self._pool.get("variance", self._most_bytes))
        chosen = parameters(spec("predict"), {"dtype": problem.dtype}, self.executor.info).parameters
        values = {**chosen, "counts": problem.ks, "dtype": problem.dtype, "table_tile": knn_pass.table_tile}
        kernel = build(self.executor, spec("predict"), values)
        wg = int(chosen["wg"])
        self.executor.launch(
            kernel, (round_up(total, wg),), (wg,), targets=self.targets, target_stride=self.stride, target_front=0,
            first_series=tables.first, rows=tables.rows, weights=tables.values, n_rows=problem.n_query, Tp=problem.Tp,
            rows_per_slot=tables.n_libraries * problem.n_query, table_rows=knn_pass.table_rows,
            table_rows_per_slot=tables.n_libraries * knn_pass.table_rows, predicted=out[0], variance=out[1],
        )  # fmt: skip
        return out

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()


# Predictions of many targets from the states of many libraries, on the device: the values, not only their skill.


Mask = NDArray[np.bool_]
Numbers = NDArray[np.int_]


class PairPredictions:
    """Simplex predictions of pairs (library, target) that share embedding and interval.

    Parameters
    ----------
    libraries, targets : ndarray (n_steps, n_libraries), (n_steps, n_targets)
        NaN for gaps.
    problem : SearchProblem
        Of one library: embedding, interval, number of neighbours and type.
    request : SearchRequest, optional
        How neighbours are searched.
    library_mask : ndarray of bool (n_steps,), optional
        Rows that may be neighbours; all by default.
    """

    def __init__(
        self, executor: Executor, libraries: NDArray[Any], targets: NDArray[Any], problem: SearchProblem,
        request: SearchRequest | None = None, library_mask: Mask | None = None,
    ) -> None:  # fmt: skip
        self.executor, self.n, self.problem = executor, len(libraries), problem
        Tp, dtype = problem.Tp, problem.dtype
        self._libraries = condition(libraries, dtype, quiet=True).values
        self._targets = condition(targets, dtype, quiet=True)
        # What row t leads to; rows whose target lies outside the series are left out by the search itself.
        self._future = np.full((targets.shape[1], self.n), np.nan, dtype)
        begin, end = max(-Tp, 0), max(min(self.n, self.n - Tp), 0)
        if begin < end:
            self._future[:, begin:end] = self._targets.values[begin + Tp : end + Tp].T
        self._masks = np.isfinite(self._future)
        if library_mask is not None:
            self._masks &= library_mask
        self._masks[:, :begin] = self._masks[:, end:] = True
        self._pool = Pool(executor)
        chosen = parameters(spec("predict"), {"dtype": dtype}, executor.info).parameters
        self._chosen, self._wg = chosen, int(chosen["wg"])
        self._searcher = open_searcher(
            executor, self.problem, "weights", request, room=budget(executor.info).total // 2, pool=self._pool
        )
        future = np.where(np.isnan(self._future), GAP, self._future).astype(dtype)
        self._held = executor.upload(future, self._pool.get("future", future.nbytes))

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the search."""
        return {"knn": self._searcher.parameters}

    @property
    def searched(self) -> list[dict[str, Any]]:
        """What searched for neighbours, why, and how good it was."""
        return self._searcher.decisions

    def predict(self, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """(number of the pair, predictions) of each pair, in any order.

        A prediction stands at the row that is predicted, that of the state plus Tp; NaN where there is none.
        """
        pairs_array = np.array(pairs).reshape(-1, 2)
        masks = [self._masks[target].tobytes() for target in pairs_array[:, 1]]
        for mask in dict.fromkeys(masks):
            members = np.flatnonzero([own == mask for own in masks])
            library_mask = self._masks[pairs_array[members[0], 1]]
            yield from self._alike(pairs_array, members, None if library_mask.all() else library_mask)

    def _alike(
        self, wanted: Numbers, members: Numbers, library_mask: Mask | None
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Pairs whose targets have the same gaps: they share the tables of a library."""
        used, place = np.unique(wanted[members, 0], return_inverse=True)
        problem = self.problem
        library, query = lay_out_in_itself(self._libraries[:, used], problem)
        series = self._searcher.load_layouts(library, query)
        for tables in self._searcher.tables(series, library_mask):
            last = tables.first + tables.n_libraries
            here = members[(place >= tables.first) & (place < last)]
            for target in np.unique(wanted[here, 1]):
                predicted = self._of_target(tables, int(target))
                for pair in here[wanted[here, 1] == target]:
                    at = int(np.searchsorted(used, wanted[pair, 0])) - tables.first
                    yield int(pair), self._placed(predicted[at], int(target))

    def _of_target(self, tables: Tables, target: int) -> NDArray[Any]:
        """Predictions (n_libraries, n_steps) of a target from all libraries of some tables."""
        problem, knn_pass = self.problem, tables.knn_pass
        total = tables.n_libraries * self.n
        out: list[Buffer] = [self._pool.get(name, total * problem.itemsize) for name in ("predicted", "variance")]
        values = {**self._chosen, "counts": problem.ks, "dtype": problem.dtype, "table_tile": knn_pass.table_tile}
        # All libraries have the same target: its rows are not apart. What rows lead to has been looked up before.
        self.executor.launch(
            build(self.executor, spec("predict"), values), (round_up(total, self._wg),), (self._wg,),
            targets=self._held, target_stride=0, target_front=target * self.n, first_series=0, rows=tables.rows,
            weights=tables.values, n_rows=self.n, Tp=0, rows_per_slot=total, table_rows=knn_pass.table_rows,
            table_rows_per_slot=tables.n_libraries * knn_pass.table_rows, predicted=out[0], variance=out[1],
        )  # fmt: skip
        return self.executor.download(out[0], np.empty((tables.n_libraries, self.n), problem.dtype))

    def _placed(self, predicted: NDArray[Any], target: int) -> NDArray[np.float64]:
        """Predictions in the unit of the data, at the rows that they predict."""
        out, Tp = np.full(self.n, np.nan), self.problem.Tp
        begin, end = max(Tp, 0), max(min(self.n, self.n + Tp), 0)
        if begin < end:
            out[begin:end] = predicted[begin - Tp : end - Tp]
        scaled = np.ldexp(out, int(self._targets.exponent[target]))
        return np.asarray(scaled + float(self._targets.shift[target]))

    def release(self) -> None:
        """Give the device memory back."""
        self._searcher.release()
        self._pool.release()
