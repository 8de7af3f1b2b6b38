"""The executor protocol: all that the rest of pyedmcl may ask of a device.

PyOpenCL implements it in :mod:`pyedmcl.device.opencl`; nothing above this room imports an OpenCL
binding, so that another runtime that accepts OpenCL C source (a SYCL queue, say) can take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .info import DeviceInfo


@dataclass(frozen=True)
class LocalMemory:
    """A kernel argument: ``nbytes`` of work-group local memory."""

    nbytes: int


class Buffer(Protocol):
    """A block of device memory."""

    @property
    def nbytes(self) -> int: ...

    def release(self) -> None:
        """Give the memory back; a second call does nothing."""


class Event(Protocol):
    """A launch or copy that was queued."""

    def wait(self) -> None: ...

    @property
    def seconds(self) -> float:
        """Time on the device in seconds; waits for the end."""


class Program(Protocol):
    """A compiled source."""

    def kernel(self, name: str) -> Any:
        """The kernel called ``name``: one object per thread, since arguments are set on it."""


Argument = Buffer | LocalMemory | np.generic


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

    def build(self, source: str, options: Sequence[str] = ()) -> Program:
        """Compile OpenCL C. Raises BuildError holding the driver's raw log in ``.log``."""

    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory, at least 1 byte. Raises DeviceMemoryError (``refused``) where there is none left."""

    def upload(self, array: np.ndarray, into: Buffer | None = None, offset: int = 0) -> Buffer:
        """Copy a C-contiguous host array to the device (a new buffer unless ``into`` is given)."""

    def download(self, buffer: Buffer, into: np.ndarray, offset: int = 0) -> np.ndarray:
        """Copy from byte ``offset`` of the buffer into a C-contiguous host array; blocks until done."""

    def launch(
        self, kernel: Any, global_size: Sequence[int], local_size: Sequence[int] | None, arguments: Sequence[Argument]
    ) -> Event:
        """Queue a kernel. Raises LaunchError or DeviceMemoryError with the driver's reason."""

    def finish(self) -> None:
        """Wait for everything queued."""
