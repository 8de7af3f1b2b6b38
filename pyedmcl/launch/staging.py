"""Series in the layouts that kernels read. Raw series are uploaded once, and rearranged on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.quirks import quirks_for
from ..kernels import spec
from .pool import Pool
from .sizes import open_size

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

# Bytes of raw series that lie on the device at a time. The kernels go down columns, which should fit the caches of a
# processor. Other devices take an eighth of the room if that is more, since series that are uploaded as a whole need
# not be copied on the host first.
_RAW_BYTES, _RAW_BYTES_CACHED = 64 << 20, 4 << 20


class Staging:
    """Holds raw series on the device, all of them where they are small and some columns at a time otherwise.

    Parameters
    ----------
    executor : Executor
    values : ndarray (n_steps, n_series)
        Series from :func:`pyedmcl.data.condition.condition`, in the dtype that kernels compute in; NaN marks a gap.
    scored : (ndarray of int (n_series,) or int, int), optional
        The first row of each series that counts in its score, and one past the last. Targets are centred on the mean of
        these rows. By default all rows count.
    room : int, optional
        Bytes of device memory that raw series may take.
    """

    def __init__(
        self, executor: Executor, values: NDArray[Any], *, scored: tuple[Any, int] | None = None,
        room: int = _RAW_BYTES,
    ) -> None:  # fmt: skip
        self.executor = executor
        self.values = values
        self.n_steps, self.n_series = values.shape
        self.dtype = values.dtype.name
        first, end = scored or (0, self.n_steps)
        self._n_scored = int(end)
        self._scored_from = self._of_each(first)
        most = _RAW_BYTES_CACHED if quirks_for(executor.info).on_host else max(_RAW_BYTES, room // 8)
        self._columns = max(min(room, most) // max(self.n_steps * values.itemsize, 1), 1)
        self._held = (0, 0)
        self._centred = False  # whether shift and exponent have been computed for the columns on the device
        self._pool = Pool(executor, "staging", values.shape, self.dtype, self._columns)

    def _of_each(self, row: Any) -> NDArray[np.int32]:
        """Rows for each series, given one for each or one for all."""
        rows = np.empty(self.n_series, np.int32)
        rows[...] = row
        return rows

    def score(self, first: Any, end: int) -> None:
        """Let other rows count in a score; see the argument ``scored`` of the class."""
        scored_from = self._of_each(first)
        if end != self._n_scored or not np.array_equal(scored_from, self._scored_from):
            self._n_scored, self._scored_from, self._centred = int(end), scored_from, False

    def _kernel(self, name: str) -> Any:
        return build(self.executor, spec("stage"), {"dtype": self.dtype}, name)

    def _load(self, a: int, b: int, *, centred: bool = True) -> tuple[int, int, tuple[Buffer, Buffer, Buffer]]:
        """Bring columns a to b to the device; returns the first column there, how many there are, and the buffers."""
        held = self._held[0] <= a and b <= self._held[1]
        if not held:
            self._held = (0, self.n_series) if self.n_series <= self._columns else (a, b)
        first, n = self._held[0], self._held[1] - self._held[0]
        item = self.values.itemsize
        pieces = ("raw", n * self.n_steps * item), ("shift", n * item), ("exponent", n * 4)
        raw, shift, exponent = (self._pool.get(name, nbytes) for name, nbytes in pieces)
        if not held:
            self.executor.upload(np.ascontiguousarray(self.values[:, first : first + n]), raw)
            self._centred = False
        if centred and not self._centred:
            scored_from = self._pool.constant("scored_from", self._scored_from[first : first + n])
            self._centred = True
            self.executor.launch(
                self._kernel("centre"), open_size(n), None, raw=raw, n_series=n, n_steps=self.n_steps,
                scored_from=scored_from, n_scored=self._n_scored, shift=shift, exponent=exponent,
            )  # fmt: skip
        return first, n, (raw, shift, exponent)

    def series(self, a: int, b: int, front: int, end: int, stride: int, into: Buffer, *, centred: bool = False) -> None:
        """Write columns a to b series-major, row 0 at column ``front``; gaps lie before it and from row ``end`` on."""
        first, n, (raw, shift, exponent) = self._load(a, b, centred=centred)
        self.executor.launch(
            self._kernel("stage_series"), open_size(stride, b - a), None, raw=raw, n_series=n, first=a - first,
            front=front, end=end, stride=stride, centred=centred, shift=shift, exponent=exponent, series=into,
        )  # fmt: skip

    def series_in_double(self, a: int, b: int, into: Buffer) -> None:
        """Write columns a to b series-major in double precision, as they are, without padding."""
        if self.dtype == "float64":
            self.series(a, b, 0, self.n_steps, self.n_steps, into)
            return
        first, n, (raw, _, _) = self._load(a, b, centred=False)
        self.executor.launch(
            build(self.executor, spec("stage"), {"dtype": "float64"}, "widen_series"), open_size(self.n_steps, b - a),
            None, raw=raw, n_series=n, first=a - first, n_steps=self.n_steps, series=into,
        )  # fmt: skip

    def targets(self, column_of: NDArray[np.int32], stride: int, into: Buffer, rows: int = 0) -> None:
        """Write all series centred and time-major, series i to column ``column_of[i]``; zeros fill up to ``rows``."""
        columns = self._pool.constant("column_of", np.ascontiguousarray(column_of, np.int32))
        for a in range(0, self.n_series, self._columns):
            first, n, (raw, shift, exponent) = self._load(a, min(a + self._columns, self.n_series))
            width = n if first + n < self.n_series else stride - first  # the last columns write the padding, too
            self.executor.launch(
                self._kernel("stage_targets"), open_size(width, max(rows, self.n_steps)), None,
                raw=raw, n_series=n, begin=first, n_all=self.n_series, n_steps=self.n_steps, column_of=columns,
                target_stride=stride, shift=shift, exponent=exponent, targets=into,
            )  # fmt: skip

    def scaling(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Shift and binary exponent by which each series was centred; for series that fit the device together."""
        _, n, (_, at_shift, at_exponent) = self._load(0, self.n_series)
        shift, exponent = np.empty(n, self.dtype), np.empty(n, np.int32)
        self.executor.download(at_shift, shift)
        self.executor.download(at_exponent, exponent)
        return shift, exponent

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()
        self._held = (0, 0)
