"""Simplex projection of series by their own neighbour tables, on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..plan import round_up
from ..tuning.policy import parameters
from .exact import Tables

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


class Projection:
    """Predictions of one target per library.

    Parameters
    ----------
    executor : Executor
    targets : ndarray (n_series, n_steps)
        Conditioned targets, one for each library.
    """

    def __init__(self, executor: Executor, targets: NDArray[Any]) -> None:
        self.executor = executor
        self.targets = executor.upload(np.ascontiguousarray(targets))
        self.stride = targets.shape[1]
        self._out: list[Buffer] = []

    def predict(self, tables: Tables) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions and variances, each (dimensions of the pass, n_libraries, n_query); NaN where there is none."""
        s = tables.sweep.search
        dtype = np.dtype(s.dtype)
        shape = (len(s.dims), tables.n_libraries, s.n_query)
        nbytes = int(np.prod(shape)) * dtype.itemsize
        if not self._out or self._out[0].nbytes < nbytes:
            self.release(out_only=True)
            self._out = [self.executor.allocate(nbytes), self.executor.allocate(nbytes)]
        chosen = parameters(spec("predict"), {"dtype": s.dtype}, self.executor.info).parameters
        kernel = build(self.executor, spec("predict"), {**chosen, "counts": s.counts, "dtype": s.dtype})
        total, wg, i = int(np.prod(shape)), int(chosen["wg"]), np.int32
        self.executor.launch(
            kernel, (round_up(total, wg),), (wg,),
            (self.targets, i(self.stride), i(0), i(tables.first), tables.rows, tables.values, i(s.n_query), i(s.Tp),
             np.uint64(tables.n_libraries * s.n_query), *self._out),
        )  # fmt: skip
        predicted, variance = np.empty(shape, dtype), np.empty(shape, dtype)
        self.executor.download(self._out[0], predicted)
        self.executor.download(self._out[1], variance)
        return predicted, variance

    def release(self, *, out_only: bool = False) -> None:
        """Give the device memory back."""
        for buffer in self._out:
            buffer.release()
        self._out = []
        if not out_only:
            self.targets.release()
