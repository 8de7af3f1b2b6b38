"""How series, buffers and launches are put on a device, and checks of what comes back."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import BufferSet, KeptBuffer, plan_of
from ..device.quirks import quirks_for
from ..device.select import ForeignArray
from ..errors import WrongResultError
from ..kernels import spec
from ..kernels.build import build
from ..parallel import present_extent

if TYPE_CHECKING:
    from ..device.executor import Buffer, Event, Executor
    from ..device.info import DeviceInfo


# Sizes of launches and buffers.


_OPEN_STEP = 64


def round_up(value: int, to: int) -> int:
    """``value`` rounded up to a multiple of ``to``."""
    return -(-value // to) * to


def open_size(first: int, *more: int) -> tuple[int, ...]:
    """Work-items of a launch that leaves the size of its groups to the driver; those behind the last one idle.

    A multiple of 64 along the first axis can be cut into groups that suit any device. PoCL, which compiles a kernel for
    each size of its groups, gets by with one: see ``group_left_open`` in :mod:`pyedmcl.device.quirks`.
    """
    return (round_up(first, _OPEN_STEP), *more)


# Buffers on a device that are called by name, used again, and replaced by larger ones where that is needed.


class Pool:
    """Named buffers of one device. Users that do not run at the same time may share a pool.

    Parameters
    ----------
    *shape : hashable
        The name of the user and whatever the sizes of the buffers follow from. With a shape, the buffers are not freed
        when the pool is released, but kept together for the next pool of the same shape
        (:class:`~pyedmcl.device.memory.BufferSets`). Without one, they are freed.
    """

    def __init__(self, executor: Executor, *shape: Hashable) -> None:
        self.executor = executor
        self._key = (*shape, plan_of()) if shape else None
        self._held = executor.sets.take(self._key) if shape else BufferSet()
        for held in self._held.values():
            if held.content is None:
                held.buffer.itemsize = 0

    def get(self, name: str, nbytes: int) -> Buffer:
        """The buffer called ``name``, with at least ``nbytes`` bytes. If it has to grow, it loses what it held."""
        held = self._held.get(name)
        if held is None or held.buffer.nbytes < nbytes:
            self.drop(name)
            held = self._held[name] = KeptBuffer(self.executor.allocate(nbytes))
        return held.buffer

    def put(self, name: str, values: NDArray[Any]) -> Buffer:
        """Copy ``values`` into the buffer called ``name``."""
        values = np.ascontiguousarray(values)
        buffer = self.get(name, max(values.nbytes, 1))
        self.changed(name)
        return self.executor.upload(values, buffer)

    def constant(self, name: str, values: NDArray[Any]) -> Buffer:
        """The buffer called ``name``, which holds ``values``; they are copied unless they lie there already.

        No kernel may write to this buffer, unless :meth:`changed` is called before.
        """
        values = np.ascontiguousarray(values)
        buffer, content = self.get(name, max(values.nbytes, 1)), values.tobytes()
        if self._held[name].content != content or buffer.itemsize != values.itemsize:
            self.put(name, values)
            self.changed(name, content)
        return buffer

    def changed(self, name: str, content: bytes | None = None) -> None:
        """Note that a buffer is about to be written to, or that it is now known to hold ``content``."""
        self._held[name].content = content

    def drop(self, *names: str) -> None:
        """Free some buffers."""
        for name in names:
            held = self._held.pop(name, None)
            if held is not None:
                held.buffer.release()

    def release(self) -> None:
        """Free all buffers, or keep them for the next pool of the same shape."""
        if self._key is None:
            self.drop(*list(self._held))
        elif self._held:
            held, self._held = self._held, BufferSet()
            self.executor.sets.keep(self._key, held)


# Keeps launches short enough for watchdogs and Ctrl-C: how much is launched at once follows from measured time.


#: How long a launch should take.
LAUNCH_SECONDS = 0.2
# A launch that is expected to take less is not waited for, and tells nothing of the rate.
_UNTIMED = 0.01
_KEPT_MOST = 4096

# Rates (cost per second) that launches of this process have shown, by device and work.
_shown: dict[Hashable, float] = {}


class Pacer:
    """Keeps the rate of one kernel on one device and says how much to launch next.

    Parameters
    ----------
    info : DeviceInfo
        The device. Its quirks give the first guess of the rate.
    *work : hashable
        A name for what is launched: the kernel, and whatever its rate depends on beside the cost. The first guess is
        then the rate that earlier launches of the same name have shown, so that a small call is launched as a whole and
        not waited for. Without a name the guess is that of the device.
    """

    def __init__(self, info: DeviceInfo, *work: Hashable) -> None:
        self._place = (info, work) if work else None
        self._rate = _shown.get(self._place) or quirks_for(info).first_rate

    def units(self, cost_per_unit: float) -> int:
        """How many units of work take about :data:`LAUNCH_SECONDS`; at least one."""
        return max(int(LAUNCH_SECONDS * self._rate / max(cost_per_unit, 1.0)), 1)

    def launched(self, event: Event, cost: float) -> None:
        """Learn the rate from a launch. A long one is waited for, so that a queue never holds seconds of work."""
        if cost / self._rate < _UNTIMED:
            return
        seconds = event.seconds
        if seconds > 1e-6:  # some drivers report no time
            self._rate = cost / seconds
            if self._place is not None:
                if len(_shown) > _KEPT_MOST:
                    _shown.clear()
                _shown[self._place] = self._rate


# What must hold for every answer of a device, whatever it was asked: cheap checks of what comes to the host.
#
# A driver, a compiler or a memory that is broken seldom ends in an error. Where its numbers cannot be, no result is
# returned: an error names the device and asks for a report.


#: A correlation may pass 1 by rounding errors, which grow where a series hardly varies; wrong numbers pass it by more.
MOST_RHO = 1.01


def wrong_result(info: DeviceInfo, what: str) -> WrongResultError:
    """The error for an answer of a device that cannot be; ``what`` ends the sentence "the device gave"."""
    return WrongResultError(
        f"{info.name} ({info.platform}, driver {info.driver}) gave {what}. Its driver or a kernel is at fault, and "
        "nothing is returned. Please report this with what 'pyedmcl devices --doctor' prints; another device "
        "(device=, --device) or tune='never' may do better."
    )


def require_rho(executor: Executor, rho: NDArray[Any], kernel: str) -> None:
    """Demand that correlations lie within [-1, 1], or are NaN: a series or a prediction does not vary."""
    if not rho.size:
        return
    least, most = present_extent(rho)  # where nothing is present no comparison holds
    if most > MOST_RHO or least < -MOST_RHO:
        raise wrong_result(executor.info, f"correlations from {least:.4g} to {most:.4g} (kernel {kernel})")


def require_rows(executor: Executor, rows: NDArray[np.int32], n_library: int, kernel: str) -> None:
    """Demand that neighbours are rows of a library, or -1 where there is none."""
    if rows.size and (int(rows.min()) < -1 or int(rows.max()) >= n_library):
        raise wrong_result(
            executor.info,
            f"neighbours in rows {int(rows.min()):,} to {int(rows.max()):,} of a library of {n_library:,} rows "
            f"(kernel {kernel})",
        )


# Bytes of raw series that lie on the device at a time. The kernels go down columns, which should fit the caches of a
# processor. Other devices take an eighth of the room if that is more, since series that are uploaded as a whole need
# not be copied on the host first.
_RAW_BYTES, _RAW_BYTES_CACHED = 64 << 20, 4 << 20


class Staging:
    """Holds raw series on the device, all of them where they are small and some columns at a time otherwise.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
        Series from :func:`pyedmcl.series.scaling.condition`, in the dtype that kernels compute in; NaN marks a gap.
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


# Results into arrays of the caller on the device, where they are wanted there, instead of to the host.
#
# What this module demands of an answer is counted on the device then.


@dataclass(frozen=True)
class DeviceRows:
    """Rows of an array of the caller, which a block of a job writes."""

    # All memory of the array.
    buffer: Buffer
    # Its element that the rows begin with.
    first: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, array: ForeignArray, executor: Executor) -> DeviceRows:
        """All rows of an array. Raises InputError where it does not lie in the executor's context."""
        return cls(array.on(executor), array.first, array.shape, array.dtype)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> DeviceRows:
        begin, end, _ = rows.indices(self.shape[0])
        first = self.first + begin * math.prod(self.shape[1:])
        return replace(self, first=first, shape=(max(end - begin, 0), *self.shape[1:]))


def deliver_neighbours(
    executor: Executor, rows: Buffer, squared: Buffer, into: Sequence[DeviceRows], *, n_library: int, exponent: int
) -> None:
    """Rows and squared distances of neighbours to ``into``, its rows and distances in the data's unit."""
    indices, distances = into
    wrong = executor.upload(np.zeros(1, np.uint32))
    _launch(
        executor, "deliver_neighbours", distances.dtype, open_size(indices.size), rows=rows, squared=squared,
        n=indices.size, n_library=n_library, exponent=exponent, indices=indices.buffer, first_index=indices.first,
        distances=distances.buffer, first_distance=distances.first, wrong=wrong,
    )  # fmt: skip
    _demand(executor, wrong, f"neighbours outside a library of {n_library:,} rows (kernel knn)")


def deliver_skill(executor: Executor, rho: Buffer, begin: int, into: DeviceRows) -> None:
    """Correlations from element ``begin`` on."""
    wrong = executor.upload(np.zeros(1, np.uint32))
    _launch(
        executor, "deliver_skill", into.dtype, open_size(into.size), rho=rho, begin=begin, n=into.size, most=MOST_RHO,
        out=into.buffer, first_out=into.first, wrong=wrong,
    )  # fmt: skip
    _demand(executor, wrong, f"correlations beyond {MOST_RHO} (kernel lookup)")


@dataclass(frozen=True)
class Pixels:
    """An image on the device, as sums of ``words`` words."""

    buffer: Buffer
    # Only pixels on and above the diagonal were computed; both halves are delivered.
    symmetric: bool
    words: int


def deliver_counts(executor: Executor, image: Pixels, into: DeviceRows) -> None:
    """Pixels to numbers of 64 bits."""
    _deliver_pixels(executor, "deliver_counts", np.dtype(np.float32), image, into, counts=into.buffer,
                    first_count=into.first)  # fmt: skip


def deliver_means(
    executor: Executor, image: Pixels, into: DeviceRows, present: Sequence[NDArray[np.float64]], exponent: int
) -> None:
    """Pixels to means in float64.

    Parameters
    ----------
    present : (ndarray, ndarray)
        Points without a gap of the rows and of the columns of pixels.
    exponent : int
        Of the power of two that sums are multiplied with.
    """
    sides = [executor.upload(np.ascontiguousarray(side, np.float64)) for side in present]
    try:
        _deliver_pixels(
            executor, "deliver_means", np.dtype(np.float64), image, into, present_rows=sides[0],
            present_columns=sides[1], exponent=exponent, means=into.buffer, first_mean=into.first,
        )  # fmt: skip
    finally:
        for side in sides:
            side.release()


def _deliver_pixels(
    executor: Executor, entry: str, dtype: np.dtype[Any], image: Pixels, into: DeviceRows, **arguments: Any
) -> None:
    rows, columns = into.shape
    _launch(
        executor, entry, dtype, open_size(columns, rows), image=image.buffer, n_columns=columns,
        symmetric=image.symmetric, words=image.words, **arguments,
    )  # fmt: skip
    executor.finish()


def _launch(executor: Executor, entry: str, dtype: np.dtype[Any], size: tuple[int, ...], **arguments: Any) -> None:
    executor.launch(build(executor, spec("deliver"), {"dtype": dtype.name}, entry), size, None, **arguments)


def _demand(executor: Executor, wrong: Buffer, what: str) -> None:
    n = int(executor.download(wrong, np.empty(1, np.uint32))[0])
    wrong.release()
    if n:
        raise wrong_result(executor.info, f"{n:,} {what}")
