"""The executor protocol, which is all that the package may ask of a device, and the table of executors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import DeviceNotFoundError
from .info import DeviceInfo, Slot
from .memory import BufferSets

# PyOpenCL implements it in :mod:`pyedmcl.device.opencl`, dpctl in :mod:`pyedmcl.device.sycl`; nothing above this
# package
# imports a binding, so that another one that accepts OpenCL C source can take its place.


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


# The executors that there are. A new one is a class, a row here, and a test: nothing above this package knows of it.
#
# Modules are named and not imported, so that a machine needs only the binding of the executor that it uses.


@dataclass(frozen=True)
class ExecutorRow:
    """One implementation of :class:`pyedmcl.device.executor.Executor`."""

    # ``module:function`` of this package. ``function(refresh)`` lists the devices that the executor can open, each with
    # ``executor`` set to the row's name and an id ``"name:p:d"`` ("p:d" in the first row).
    devices: str
    # ``module:class`` of this package, called with a device of that list, and perhaps with a context of the caller.
    executor: str
    # Whether its devices count only where a request names the executor ("name", "name:gpu", "name:0:0"), so that its
    # binding is not even imported otherwise.
    when_named: bool = False
    # A runtime. Where a row that is not named has no device of it, the devices of this row count unnamed, too.
    stands_in_for: str = ""


#: Name to row, in the order in which devices are listed.
EXECUTORS: dict[str, ExecutorRow] = {
    "opencl": ExecutorRow("opencl:devices", "opencl:OpenCLExecutor"),
    "sycl": ExecutorRow("sycl:devices", "sycl:SyclExecutor", when_named=True),
    "spirv": ExecutorRow("sycl:spirv_devices", "sycl:SpirvExecutor", when_named=True),
    "cuda": ExecutorRow("cuda:devices", "cuda:CudaExecutor", when_named=True, stands_in_for="nvidia"),
}


def named_in(request: str) -> tuple[str | None, str]:
    """The executor that a request names, if it does, and the rest of the request."""
    name, _, rest = request.strip().partition(":")
    return (name.lower(), rest.strip()) if name.lower() in EXECUTORS else (None, request.strip())


def devices(executor: str | None = None, *, refresh: bool = False) -> list[DeviceInfo]:
    """The devices of an executor, or of all whose devices count unless they are named."""
    if executor is not None:
        listed: list[DeviceInfo] = _load(EXECUTORS[executor].devices)(refresh)
        return listed
    infos: list[DeviceInfo] = []
    missing: list[DeviceNotFoundError] = []
    # Those that stand in come last, when it is known whether they are needed.
    for name, row in sorted(EXECUTORS.items(), key=lambda item: item[1].when_named):
        if not row.when_named or (row.stands_in_for and not _has(infos, row.stands_in_for)):
            try:
                infos += devices(name, refresh=refresh)
            except DeviceNotFoundError as error:
                missing += [] if row.when_named else [error]
    if missing and not infos:
        raise missing[0]
    return infos


def unnamed(infos: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """Those of a list that count where no executor is named."""
    plain = [info for info in infos if not EXECUTORS[info.executor].when_named]
    return plain + [info for info in infos if (runtime := EXECUTORS[info.executor].stands_in_for)
                    and not _has(plain, runtime)]  # fmt: skip


def _has(infos: Sequence[DeviceInfo], runtime: str) -> bool:
    return any(info.runtime == runtime for info in infos)


def open_executor(info: DeviceInfo, context: Any = None) -> Executor:
    """A new executor for a device, in a context of the caller where there is one. Raises what the executor raises."""
    passed = (info,) if context is None else (info, context)
    executor: Executor = _load(EXECUTORS[info.executor].executor)(*passed)
    return executor


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return loaded
