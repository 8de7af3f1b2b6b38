"""Executors for a tuner: one that keeps the events of launches, one that only compiles, one that keeps its memory."""

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


class _Lent:
    """A buffer that goes back to its owner, not to the device."""

    def __init__(self, real: Buffer, free: list[_Lent]) -> None:
        self.real, self._free = real, free
        self.itemsize = 0

    @property
    def nbytes(self) -> int:
        return self.real.nbytes

    def release(self) -> None:
        if self not in self._free:
            self.real.itemsize = 0  # whoever is lent it next may keep something else there
            self._free.append(self)


class Keeping(Recorder):
    """Passes everything on but the release of buffers, until :meth:`release`.

    A figure is then of a kernel, and not of the system that hands out its memory: a processor's runtime takes a large
    buffer from the system and gives it back, and the first write to each of its pages is an interrupt within the
    kernel. Distances of 2,000 x 2,000 rows took 2.4 ms instead of 0.5.

    Parameters
    ----------
    executor : Executor
    """

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._free: list[_Lent] = []
        self._all: list[_Lent] = []

    def allocate(self, nbytes: int) -> Buffer:
        for place, lent in enumerate(self._free):
            if lent.nbytes == nbytes:
                return self._free.pop(place)
        self._all.append(_Lent(self.executor.allocate(nbytes), self._free))
        return self._all[-1]

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> Buffer:
        target = self.allocate(array.nbytes) if into is None else into
        self.executor.upload(array, _real(target), offset)
        return target

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        return self.executor.download(_real(buffer), into, offset)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        real = {name: _real(argument) for name, argument in arguments.items()}
        return self.executor.launch(kernel, global_size, local_size, **real)

    def release(self) -> None:
        """Give all memory back."""
        for lent in self._all:
            lent.real.release()
        self._all.clear()
        self._free.clear()


def _real(argument: Any) -> Any:
    return argument.real if isinstance(argument, _Lent) else argument
