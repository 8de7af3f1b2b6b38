"""Simplex projection of series by their own neighbour tables, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.build import build
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..neighbors.tables import Tables
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Staging


class SelfProjection:
    """Predictions of one target per library.

    Parameters
    ----------
    executor : Executor
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
