"""Executors for a tuner: one that keeps the events of launches, one that only compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..device.executor import Argument, Buffer, Event, Executor, Kernel, MemoryAccount, Program
    from ..device.info import DeviceInfo


class Recorder:
    """Passes everything on and keeps the events of launches.

    Parameters
    ----------
    executor : Executor
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.events: list[tuple[str, Event]] = []

    @property
    def info(self) -> DeviceInfo:
        return self.executor.info

    @property
    def memory(self) -> MemoryAccount:
        return self.executor.memory

    def build(self, source: str, options: Sequence[str] = ()) -> Program:
        return self.executor.build(source, options)

    def allocate(self, nbytes: int) -> Buffer:
        return self.executor.allocate(nbytes)

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> Buffer:
        return self.executor.upload(array, into, offset)

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        return self.executor.download(buffer, into, offset)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        event = self.executor.launch(kernel, global_size, local_size, **arguments)
        self.events.append((kernel.name, event))
        return event

    def finish(self) -> None:
        self.executor.finish()

    def close(self) -> None:
        self.executor.close()

    def seconds(self, entries: Sequence[str]) -> float:
        """Time on the device of the launches of these kernels; waits for them."""
        return sum(event.seconds for name, event in self.events if name in entries)


class _NoEvent:
    """Stands for a launch that did not take place."""

    seconds = 0.0

    def wait(self) -> None:
        pass


class Dry(Recorder):
    """Compiles but launches nothing; downloads give zeros."""

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        into[...] = np.zeros((), into.dtype)
        return into

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        return _NoEvent()
