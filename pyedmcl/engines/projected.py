"""Simplex projection of one target from the states of one or several libraries, laid out on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP
from ..data.condition import near_one, squares
from ..device.memory import budget
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..neighbors.choose import SearchRequest
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import open_searcher
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Executor

Doubles = NDArray[np.float64]


def _middle(values: Doubles) -> float:
    """The mean, but of few digits: what the data have of digits is then left after it was subtracted."""
    scaled, exponent = near_one(values)
    mean = float(np.ldexp(scaled.mean(), exponent))
    spread = float(np.abs(values - mean).max())
    if spread == 0:
        return mean
    step = 2.0 ** max(int(np.frexp(spread)[1]) - 8, -1074)
    return round(mean / step) * step


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
        self.executor, self.problem = executor, problem
        self._pool = Pool(executor)
        present = np.isfinite(future_target)
        self.shift = _middle(future_target[present]) if present.any() else 0.0
        centred = np.where(present, future_target, self.shift) - self.shift
        self.exponent = int(np.frexp(float(np.abs(centred).max(initial=0.0)))[1])
        values = np.where(present, np.ldexp(centred, -self.exponent), GAP).astype(problem.dtype)
        self._target = executor.upload(values, self._pool.get("target", max(values.nbytes, 1)))
        # Rows whose target lies outside the series are left out by the search itself.
        mask = present if library_mask is None else present & library_mask
        mask[: max(-problem.Tp, 0)] = mask[problem.library_end :] = True
        self._library_mask = None if mask.all() else mask
        room = budget(executor.info).total // 2
        self.searcher = open_searcher(executor, problem, "weights", request, room=room, pool=self._pool)

    def predict(self, library: NDArray[Any], query: NDArray[Any]) -> tuple[Doubles, Doubles, float]:
        """Predictions and variances (n_libraries, n_query), NaN where there is no neighbour, and their rounding noise.

        Parameters
        ----------
        library, query : ndarray (n_libraries, stride)
            In the layout of the search; the same object where both are alike.
        """
        executor, problem = self.executor, self.problem
        mean, variance = np.empty((2, len(library), problem.n_query), problem.dtype)
        chosen = parameters(spec("predict"), {"dtype": problem.dtype}, executor.info).parameters
        wg = int(chosen["wg"])
        series = self.searcher.load_layouts(library, query)
        for tables in self.searcher.tables(series, self._library_mask):
            total = tables.n_libraries * problem.n_query
            out = [self._pool.get(name, total * problem.itemsize) for name in ("predicted", "variance")]
            # All libraries have the same target: its rows are not apart. What rows lead to has been looked up before.
            padded = tables.knn_pass.table_rows
            values = {**chosen, "counts": problem.ks, "dtype": problem.dtype,
                      "table_tile": tables.knn_pass.table_tile}  # fmt: skip
            executor.launch(
                build(executor, spec("predict"), values), (round_up(total, wg),), (wg,), targets=self._target,
                target_stride=0, target_front=0, first_series=0, rows=tables.rows, weights=tables.values,
                n_rows=problem.n_query, Tp=0, rows_per_slot=total, table_rows=padded,
                table_rows_per_slot=tables.n_libraries * padded, predicted=out[0], variance=out[1],
            )  # fmt: skip
            libraries = slice(tables.first, tables.first + tables.n_libraries)
            for buffer, into in zip(out, (mean, variance), strict=True):
                part = np.empty((tables.n_libraries, problem.n_query), problem.dtype)
                into[libraries] = executor.download(buffer, part)
        predicted = np.ldexp(mean.astype(np.float64), self.exponent)
        largest = float(np.abs(predicted[np.isfinite(predicted)]).max(initial=0.0))
        noise = 8 * float(np.finfo(problem.dtype).eps) * largest
        return predicted + self.shift, squares(variance, self.exponent), noise

    def release(self) -> None:
        """Give the device memory back."""
        self.searcher.release()
        self._pool.release()
