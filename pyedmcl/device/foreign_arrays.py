"""Arrays of the caller in device memory, as places for results: which there are, and what must hold for them.

As in :mod:`pyedmcl.device.foreign`, objects are known by what they are made of, and no binding is imported for others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from . import cuda_devices, runtimes
from .cuda_devices import CudaError, CudaStream
from .executor import Buffer, Executor

# CU_STREAM_LEGACY, for which all other streams wait but those that say not to.
_DEFAULT_STREAM = 1
#: What results can be put into.
KINDS = "a pyopencl.array.Array, an array of CUDA (PyTorch, CuPy, numba), or one in memory of SYCL (USM), is needed"


@dataclass(frozen=True)
class ForeignArray:
    """A contiguous array in device memory that may be written.

    Attributes
    ----------
    array
        The caller's object.
    what : str
        How messages call it.
    shape : tuple of int
    dtype : numpy.dtype
    memory
        The binding's object.
    first : int
        Number of the element of the memory that the array begins with.
    queue
        A queue of the memory's context, which may be given as ``device=``.
    context
        The binding's context of the memory.
    """

    array: Any
    what: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory: Any
    first: int
    queue: Any
    context: Any

    def require(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise InputError unless the array has room for a result of this shape and type, and no more."""
        if self.shape != shape or self.dtype != np.dtype(dtype):
            raise InputError(
                f"{self.what}: it has the shape {self.shape} and {self.dtype} numbers, the result has {shape} and "
                f"{np.dtype(dtype)}; make the array with these"
            )

    def on(self, executor: Executor) -> Buffer:
        """The array's memory as a buffer of an executor, which must be of the same context. Raises InputError."""
        if not executor.reaches(self.context):
            raise InputError(
                f"{self.what}: the array does not lie in the context of {executor.info.id} {executor.info.name}, on "
                f"which the work is done; leave device= out, or give a queue of the array's own context"
            )
        return executor.borrow(self.memory, (self.first + math.prod(self.shape)) * self.dtype.itemsize)


def is_array(value: Any) -> bool:
    """Whether a value is an array in device memory, of whatever library."""
    return _reader(value) is not None


def described(value: Any, what: str) -> ForeignArray:
    """What there is to know of an array of the caller.

    Raises
    ------
    InputError
        It is none, or it may not be written or has gaps between its elements.
    """
    reader = _reader(value)
    if reader is None:
        raise InputError(f"{what}: {KINDS}, not a {type(value).__name__}")
    return reader(value, what)


def _reader(value: Any) -> Callable[[Any, str], ForeignArray] | None:
    if type(value).__module__.partition(".")[0] == "pyopencl" and hasattr(value, "base_data"):
        return _of_pyopencl
    if isinstance(getattr(value, "__sycl_usm_array_interface__", None), dict):
        return _of_usm
    if isinstance(getattr(value, "__cuda_array_interface__", None), dict):
        return _of_cuda
    return None


def _of_pyopencl(array: Any, what: str) -> ForeignArray:
    cl = runtimes.opencl()
    if not isinstance(array.base_data, cl.MemoryObject):
        raise InputError(f"{what}: the array lies in shared virtual memory; make it with pyopencl.array.empty(queue, "
                         "...)")  # fmt: skip
    if array.queue is None:
        raise InputError(f"{what}: the array has no queue; give it one with .with_queue(queue)")
    _require_plain(array.flags.c_contiguous, not array.base_data.flags & cl.mem_flags.READ_ONLY, what)
    dtype = np.dtype(array.dtype)
    first, rest = divmod(array.offset, dtype.itemsize)
    if rest:
        raise InputError(f"{what}: the array begins between two elements of its memory; make a new one")
    return ForeignArray(array, what, tuple(array.shape), dtype, array.base_data, first, array.queue, array.context)


def _of_usm(array: Any, what: str) -> ForeignArray:
    dpctl = runtimes.sycl()
    held = array.__sycl_usm_array_interface__
    dtype, shape = np.dtype(held["typestr"]), tuple(held["shape"])
    address, read_only = held["data"]
    strides = held.get("strides")
    _require_plain(strides is None or _steps(shape) == tuple(strides), not read_only, what)
    memory = dpctl.memory.as_usm_memory(array)
    # The memory may begin with the allocation, and the array behind that.
    start = address + held.get("offset", 0) * dtype.itemsize - memory.__sycl_usm_array_interface__["data"][0]
    first, rest = divmod(start, dtype.itemsize)
    if rest or first < 0:
        raise InputError(f"{what}: the array begins between two elements of its memory; make a new one")
    queue = memory.sycl_queue
    return ForeignArray(array, what, shape, dtype, memory, first, queue, queue.sycl_context)


def _of_cuda(array: Any, what: str) -> ForeignArray:
    held = array.__cuda_array_interface__
    dtype, shape = np.dtype(held["typestr"]), tuple(held["shape"])
    address, read_only = held["data"]
    strides = held.get("strides")
    in_bytes = tuple(step * dtype.itemsize for step in _steps(shape))
    _require_plain(strides is None or in_bytes == tuple(strides), not read_only, what)
    try:
        place = cuda_devices.place_of(address)
    except CudaError as error:
        raise InputError(f"{what}: NVIDIA's driver does not know the array's memory ({error})") from error
    stream = CudaStream(_stream_of(array, held, place[1]), place[1])
    return ForeignArray(array, what, shape, dtype, address, 0, stream, place)


def _stream_of(array: Any, held: dict[str, Any], number: int) -> int:
    """The stream on which an array's values are made: what its interface says, else its library's at the moment."""
    if held.get("stream") is not None:
        return int(held["stream"])
    if type(array).__module__.partition(".")[0] == "torch":
        return int(sys.modules["torch"].cuda.current_stream(number).cuda_stream)
    return _DEFAULT_STREAM


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one entry to the next along each axis of a contiguous array."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _require_plain(contiguous: bool, writable: bool, what: str) -> None:
    if not contiguous:
        raise InputError(
            f"{what}: the array has gaps between its elements, or another order than C's; give a contiguous one"
        )
    if not writable:
        raise InputError(f"{what}: the array's memory is read-only; give memory that kernels may write")
