"""An executor that computes nothing: engines show on it what they would build on a device that is not at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.buffers import BufferSets, MemoryUse
from ..device.executor import Argument, Buffer, Kernel
from ..device.info import DeviceInfo
from ..device.slots import Slot, check


class DryBuffer:
    """Memory that is not there."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.itemsize = 0

    def release(self) -> None:
        """Nothing."""


class _DryEvent:
    seconds = 0.0  # as of drivers that report none: a second would have launches split until each does one unit of work

    def wait(self) -> None:
        pass


@dataclass(frozen=True)
class _DryKernel:
    name: str
    slots: tuple[Slot, ...]


class _DryProgram:
    def kernel(self, name: str, slots: Sequence[Slot]) -> _DryKernel:
        return _DryKernel(name, tuple(slots))


class _DryMemory:
    held = peak = 0


class DryExecutor:
    """An executor (:class:`pyedmcl.device.executor.Executor`) that computes nothing: all that it returns is zero.

    Parameters
    ----------
    info : DeviceInfo
        The device that it stands for.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info, self.memory = info, _DryMemory()
        self.sets = BufferSets(-1, MemoryUse())

    def unmeasured(self) -> DryExecutor:
        return self

    def build(self, source: str, options: Sequence[str] = ()) -> _DryProgram:
        return _DryProgram()

    def build_ahead(self, sources: Sequence[str], options: Sequence[str] = ()) -> None:
        pass

    def build_meanwhile(self, source: str, options: Sequence[str] = ()) -> bool:
        return True

    def settle(self) -> None:
        """Nothing is compiled."""

    def allocate(self, nbytes: int) -> DryBuffer:
        return DryBuffer(max(int(nbytes), 1))

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> Buffer:
        return into or DryBuffer(offset + array.nbytes)

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        into[...] = 0
        return into

    def join(self, buffers: Sequence[Buffer]) -> None:
        """Buffers that hold nothing lie nowhere."""

    def reaches(self, context: Any) -> bool:
        return False

    def borrow(self, memory: Any, nbytes: int) -> DryBuffer:
        return DryBuffer(nbytes)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> _DryEvent:
        check(kernel.name, kernel.slots, arguments)
        return _DryEvent()

    def follow(self, queue: Any) -> None:
        """Nothing is queued."""

    def finish(self) -> None:
        """Nothing is queued."""

    def close(self) -> None:
        """Nothing is held."""
