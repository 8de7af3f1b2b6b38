"""Predictions of many targets from the states of many libraries, on the device: the values, not only their skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..codegen.sentinels import GAP
from ..data.condition import condition
from ..device.memory import budget
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..neighbors.choose import SearchRequest
from ..neighbors.coordinates import lay_out_in_itself
from ..neighbors.plan import SearchProblem
from ..neighbors.searcher import open_searcher
from ..neighbors.tables import Tables
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int_]


class PairPredictions:
    """Simplex predictions of pairs (library, target) that share embedding and interval.

    Parameters
    ----------
    executor : Executor
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
