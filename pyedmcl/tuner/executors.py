"""Executors for a tuner: one that keeps the events of launches, one that only compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..device.executor import Argument, Buffer, Event, Executor, Kernel


class Recorder:
    """Passes everything on and keeps the events of launches.

    Parameters
    ----------
    executor : Executor
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.events: list[tuple[str, Event]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executor, name)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        event = self.executor.launch(kernel, global_size, local_size, **arguments)
        self.events.append((kernel.name, event))
        return event

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
