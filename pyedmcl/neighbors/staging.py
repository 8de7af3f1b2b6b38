"""Data on the device in the layouts that the kernels read: raw series travel once and are rearranged there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..plan import round_up

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

_RAW_BYTES_MOST = 64 << 20


class Staging:
    """Raw series, whole on the device where they are small and in blocks of columns otherwise.

    Parameters
    ----------
    executor : Executor
    values : ndarray (n_steps, n_series)
        Of the dtype that kernels compute in, from :func:`pyedmcl.condition.condition`; NaN for gaps.
    """

    def __init__(self, executor: Executor, values: NDArray[Any]) -> None:
        self.executor = executor
        self.values = values
        self.n_steps, self.n_series = values.shape
        self.dtype = values.dtype.name
        self._columns = max(_RAW_BYTES_MOST // max(self.n_steps * values.itemsize, 1), 1)
        self._held: tuple[int, int] | None = None
        self._buffers: dict[str, Buffer] = {}

    def _kernel(self, name: str) -> Any:
        return build(self.executor, spec("stage"), {"dtype": self.dtype}, name)

    def buffer(self, name: str, nbytes: int) -> Buffer:
        """A buffer of this object, made larger when need be."""
        held = self._buffers.get(name)
        if held is None or held.nbytes < nbytes:
            if held is not None:
                held.release()
                del self._buffers[name]
            held = self._buffers[name] = self.executor.allocate(nbytes)
        return held

    def _load(self, a: int, b: int) -> int:
        """Have columns a to b on the device; returns the first column there."""
        if self._held is not None and self._held[0] <= a and b <= self._held[1]:
            return self._held[0]
        if self.n_series <= self._columns:
            a, b = 0, self.n_series
        block = np.ascontiguousarray(self.values[:, a:b])
        raw = self.executor.upload(block, self.buffer("raw", block.nbytes))
        n, item = b - a, block.itemsize
        self.executor.launch(
            self._kernel("centre"), (round_up(n, 16),), None,
            (raw, np.int32(n), np.int32(self.n_steps), self.buffer("shift", n * item), self.buffer("exponent", n * 4)),
        )  # fmt: skip
        self._held = (a, b)
        return a

    def series(self, a: int, b: int, front: int, end: int, stride: int, into: Buffer, *, centred: bool = False) -> None:
        """Write columns a to b series-major: row 0 at column ``front``, gaps before it and from row ``end`` on."""
        first = self._load(a, b)
        assert self._held is not None
        i = np.int32
        self.executor.launch(
            self._kernel("stage_series"), (round_up(stride, 16), b - a), None,
            (self._buffers["raw"], i(self._held[1] - first), i(a - first), i(front), i(end), i(stride), i(centred),
             self._buffers["shift"], self._buffers["exponent"], into),
        )  # fmt: skip

    def targets(self, column_of: NDArray[np.int32], stride: int, into: Buffer) -> None:
        """Write all series centred and time-major, series i to column ``column_of[i]``."""
        columns = self.executor.upload(np.ascontiguousarray(column_of, np.int32))
        i = np.int32
        for a in range(0, self.n_series, self._columns):
            b = min(a + self._columns, self.n_series)
            first = self._load(a, b)
            self.executor.launch(
                self._kernel("stage_targets"), (round_up(b - a, 16), self.n_steps), None,
                (self._buffers["raw"], i(b - first), i(first), columns, i(stride), self._buffers["shift"],
                 self._buffers["exponent"], into),
            )  # fmt: skip
        self.executor.finish()
        columns.release()

    def scaling(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Shift and binary exponent of each series that ``centred`` values were made with; for few series."""
        self._load(0, self.n_series)
        shift, exponent = np.empty(self.n_series, self.dtype), np.empty(self.n_series, np.int32)
        self.executor.download(self._buffers["shift"], shift)
        self.executor.download(self._buffers["exponent"], exponent)
        return shift, exponent

    def release(self) -> None:
        """Give the device memory back."""
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers.clear()
        self._held = None
