"""Simplex projection of series by their own neighbour tables, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..codegen.build import build
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..neighbors.tables import Tables
from ..tuning.parameters import parameters

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor
    from ..launch.staging import Staging


class Projection:
    """Predictions of one target per library.

    Parameters
    ----------
    executor : Executor
    data : Staging
        Targets, a series for each library.
    a, b : int
        Which of them.
    """

    def __init__(self, executor: Executor, data: Staging, a: int, b: int) -> None:
        self.executor = executor
        self.stride = data.n_steps
        self.targets = executor.allocate((b - a) * self.stride * data.values.itemsize)
        data.series(a, b, 0, self.stride, self.stride, self.targets, centred=True)
        self._out = Pool(executor)

    def predict(self, tables: Tables) -> tuple[Buffer, Buffer]:
        """Predictions and variances of centred targets on the device, valid until the next call.

        Each (dimensions of the pass, n_libraries, n_query), NaN where there is no neighbour.
        """
        problem, knn_pass = tables.problem, tables.knn_pass
        total = len(problem.dims) * tables.n_libraries * problem.n_query
        nbytes = total * problem.itemsize
        out = (self._out.get("predicted", nbytes), self._out.get("variance", nbytes))
        chosen = parameters(spec("predict"), {"dtype": problem.dtype}, self.executor.info).parameters
        values = {**chosen, "counts": problem.ks, "dtype": problem.dtype, "table_tile": knn_pass.table_tile}
        kernel = build(self.executor, spec("predict"), values)
        wg, i = int(chosen["wg"]), np.int32
        self.executor.launch(
            kernel, (round_up(total, wg),), (wg,),
            (self.targets, i(self.stride), i(0), i(tables.first), tables.rows, tables.values, i(problem.n_query),
             i(problem.Tp),
             np.uint64(tables.n_libraries * problem.n_query), i(knn_pass.table_rows),
             np.uint64(tables.n_libraries * knn_pass.table_rows), *out),
        )  # fmt: skip
        return out

    def release(self) -> None:
        """Give the device memory back."""
        self._out.release()
        self.targets.release()
