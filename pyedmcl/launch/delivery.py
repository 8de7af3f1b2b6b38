"""Results into arrays of the caller on the device, where they are wanted there, instead of to the host.

What :mod:`.invariants` demands of an answer is counted on the device then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.foreign_arrays import ForeignArray
from ..kernels import spec
from .invariants import MOST_RHO, wrong_result
from .sizes import open_size

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


@dataclass(frozen=True)
class DeviceRows:
    """Rows of an array of the caller, which a block of a job writes.

    Attributes
    ----------
    buffer : Buffer
        All memory of the array.
    first : int
        Its element that the rows begin with.
    shape : tuple of int
    dtype : numpy.dtype
    """

    buffer: Buffer
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
    """Rows and squared distances of neighbours to ``into``, its rows and distances in the data's unit.

    Raises
    ------
    WrongResultError
        A row is none of the library.
    """
    indices, distances = into
    wrong = executor.upload(np.zeros(1, np.uint32))
    _launch(
        executor, "deliver_neighbours", distances.dtype, open_size(indices.size), rows=rows, squared=squared,
        n=indices.size, n_library=n_library, exponent=exponent, indices=indices.buffer, first_index=indices.first,
        distances=distances.buffer, first_distance=distances.first, wrong=wrong,
    )  # fmt: skip
    _demand(executor, wrong, f"neighbours outside a library of {n_library:,} rows (kernel knn)")


def deliver_skill(executor: Executor, rho: Buffer, begin: int, into: DeviceRows) -> None:
    """Correlations from element ``begin`` on.

    Raises
    ------
    WrongResultError
        One is beyond 1.
    """
    wrong = executor.upload(np.zeros(1, np.uint32))
    _launch(
        executor, "deliver_skill", into.dtype, open_size(into.size), rho=rho, begin=begin, n=into.size, most=MOST_RHO,
        out=into.buffer, first_out=into.first, wrong=wrong,
    )  # fmt: skip
    _demand(executor, wrong, f"correlations beyond {MOST_RHO} (kernel lookup)")


@dataclass(frozen=True)
class Pixels:
    """An image on the device, as sums of ``words`` words.

    Attributes
    ----------
    buffer : Buffer
    symmetric : bool
        Only pixels on and above the diagonal were computed; both halves are delivered.
    words : int
    """

    buffer: Buffer
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
    executor : Executor
    image : Pixels
    into : DeviceRows
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
