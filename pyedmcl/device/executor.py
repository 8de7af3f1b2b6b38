"""The executor protocol: all that the rest of pyedmcl may ask of a device.

PyOpenCL implements it in :mod:`pyedmcl.device.opencl`, dpctl in :mod:`pyedmcl.device.sycl`; nothing above this room
imports a binding, so that another one that accepts OpenCL C source can take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .buffers import BufferSets
from .info import DeviceInfo
from .slots import Slot


class Buffer(Protocol):
    """A block of device memory."""

    itemsize: int  # of the array that was copied into it last; 0 where its elements are not known

    @property
    def nbytes(self) -> int: ...

    def release(self) -> None:
        """Give the memory back; a second call does nothing."""


class Event(Protocol):
    """A launch or copy that was queued."""

    def wait(self) -> None: ...

    @property
    def seconds(self) -> float:
        """Time on the device in seconds, 0 where the driver has no clock; waits for the end."""


class Kernel(Protocol):
    """A kernel of a compiled source, for one thread."""

    @property
    def name(self) -> str: ...

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The arguments that it takes, in their order."""


class Program(Protocol):
    """A compiled source."""

    def kernel(self, name: str, slots: Sequence[Slot]) -> Kernel:
        """The kernel called ``name``, which takes ``slots``: one object per thread, since arguments are set on it."""


Argument = Buffer | float | np.generic


class MemoryAccount(Protocol):
    """Bytes of device memory: held now, and the most so far (which may be set back)."""

    held: int
    peak: int


class Executor(Protocol):
    """One device with one in-order queue."""

    @property
    def info(self) -> DeviceInfo: ...

    @property
    def memory(self) -> MemoryAccount:
        """Bytes held now and at most."""

    @property
    def sets(self) -> BufferSets:
        """Buffers that calls gave back together, for the next ones of the same shapes."""

    def unmeasured(self) -> Executor:
        """The same device by a queue without times; what is on one queue does not wait for the other."""

    def build(self, source: str, options: Sequence[str] = ()) -> Program:
        """Compile OpenCL C. Raises BuildError holding the driver's raw log in ``.log``."""

    def build_ahead(self, sources: Sequence[str], options: Sequence[str] = ()) -> None:
        """Compile texts that are needed soon, where doing so side by side saves time. Raises nothing."""

    def build_meanwhile(self, source: str, options: Sequence[str] = ()) -> bool:
        """Whether :meth:`build` need not be waited for; else the background compiles it. Raises nothing."""

    def settle(self) -> None:
        """Wait until all that is left to the background is compiled, as who measures has to."""

    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory, at least 1 byte. Raises DeviceMemoryError (``refused``) where there is none left."""

    def upload(self, array: np.ndarray, into: Buffer | None = None, offset: int = 0) -> Buffer:
        """Copy a C-contiguous host array to the device (a new buffer unless ``into`` is given)."""

    def download(self, buffer: Buffer, into: np.ndarray, offset: int = 0) -> np.ndarray:
        """Copy from byte ``offset`` of the buffer into a C-contiguous host array; blocks until done."""

    def join(self, buffers: Sequence[Buffer]) -> tuple[Buffer, list[int]] | None:
        """Let buffers lie in one from now on: that one, and where each begins. None where a device cannot."""

    def reaches(self, context: Any) -> bool:
        """Whether memory of a context of the binding can be used here."""

    def borrow(self, memory: Any, nbytes: int) -> Buffer:
        """Memory of the caller, of a context that this executor :meth:`reaches`; no part of the account."""

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        """Queue a kernel, its arguments by name.

        Numbers take the type that the kernel declares. Raises LaunchError for arguments that are not those of the
        kernel, and LaunchError or DeviceMemoryError with the driver's reason.
        """

    def follow(self, queue: Any) -> None:
        """Have what is queued from now on wait for all that the caller has put on ``queue``."""

    def finish(self) -> None:
        """Wait for everything queued."""

    def close(self) -> None:
        """Give everything back; the executor is of no use afterwards."""
