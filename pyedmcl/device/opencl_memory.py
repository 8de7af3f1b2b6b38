"""Device memory through PyOpenCL, and the account of it."""

from __future__ import annotations

import itertools
from typing import Any

_serials = itertools.count(1)


class MemoryUse:
    """How many bytes of a device this process holds, and the most it has held.

    Attributes
    ----------
    held, peak : int
        Bytes; ``peak`` may be set back to ``held`` to measure a part of a program.
    """

    def __init__(self) -> None:
        self.held = self.peak = 0

    def take(self, nbytes: int) -> None:
        self.held += nbytes
        self.peak = max(self.peak, self.held)

    def give(self, nbytes: int) -> None:
        self.held -= nbytes


class OpenCLBuffer:
    """Device memory; released when asked or when the last reference goes.

    Attributes
    ----------
    nbytes : int
    itemsize : int
        Bytes of an element of the array that was copied into it last; 0 where none was.
    serial : int
        No two buffers of a process have the same.
    """

    __slots__ = ("_use", "itemsize", "memory", "nbytes", "serial")

    def __init__(self, memory: Any, nbytes: int, use: MemoryUse) -> None:
        self.memory = memory
        self.nbytes = nbytes
        self.itemsize = 0
        self.serial = next(_serials)
        self._use = use
        use.take(nbytes)

    def release(self) -> None:
        """Give the memory back once nothing queued uses it; a second call does nothing."""
        if self.memory is not None:
            self.memory.release()
            self.memory = None
            self._use.give(self.nbytes)

    def __del__(self) -> None:
        # The runtime frees the memory itself when the last reference goes; only the account is ours to keep.
        if getattr(self, "memory", None) is not None:
            self._use.give(self.nbytes)
