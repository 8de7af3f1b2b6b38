"""Simplex projection of one target from the states of one or several libraries, laid out on the host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP
from ..data.condition import FAR_EXPONENT, MOST_EXPONENT, exponent_of, squares
from ..device.memory import budget
from ..jobs.blocks import Record
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.replay import replayed
from ..launch.sizes import round_up
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import Searcher, open_searcher, sure_of
from ..neighbors.tables import Tables
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Executor

Doubles = NDArray[np.float64]


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
    executor : Executor
    problem : SearchProblem
    future_targets : ndarray (n_libraries, n_library)
        What library row j leads to, NaN only where that is outside the series.
    library, query : ndarray (n_libraries, stride)
        In the layout of the search; the same object where both are alike.
    request : SearchRequest, optional
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
    """A target as the kernel reads it.

    Attributes
    ----------
    values : ndarray (1, n_library)
    shift : float
    exponent : int
        These are undone in predictions.
    library_mask : ndarray of bool (n_library,) or None
        Rows that may be neighbours, where these are not all that the search takes.
    """

    values: NDArray[Any]
    shift: float
    exponent: int
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
    executor : Executor
    problem : SearchProblem
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
