"""Buffers on a device that are called by name, used again, and replaced by larger ones where that is needed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.buffers import BufferSet, KeptBuffer
from ..device.memory import plan_of

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


class Pool:
    """Named buffers of one device. Users that do not run at the same time may share a pool.

    Parameters
    ----------
    executor : Executor
    *shape : hashable
        The name of the user and whatever the sizes of the buffers follow from. With a shape, the buffers are not freed
        when the pool is released, but kept together for the next pool of the same shape
        (:class:`~pyedmcl.device.buffers.BufferSets`). Without one, they are freed.
    """

    def __init__(self, executor: Executor, *shape: Hashable) -> None:
        self.executor = executor
        self._key = (*shape, plan_of()) if shape else None
        self._held = executor.sets.take(self._key) if shape else BufferSet()
        for held in self._held.values():
            if held.content is None:
                held.buffer.itemsize = 0

    def get(self, name: str, nbytes: int) -> Buffer:
        """The buffer called ``name``, with at least ``nbytes`` bytes. If it has to grow, it loses what it held."""
        held = self._held.get(name)
        if held is None or held.buffer.nbytes < nbytes:
            self.drop(name)
            held = self._held[name] = KeptBuffer(self.executor.allocate(nbytes))
        return held.buffer

    def put(self, name: str, values: NDArray[Any]) -> Buffer:
        """Copy ``values`` into the buffer called ``name``."""
        values = np.ascontiguousarray(values)
        buffer = self.get(name, max(values.nbytes, 1))
        self.changed(name)
        return self.executor.upload(values, buffer)

    def constant(self, name: str, values: NDArray[Any]) -> Buffer:
        """The buffer called ``name``, which holds ``values``; they are copied unless they lie there already.

        No kernel may write to this buffer, unless :meth:`changed` is called before.
        """
        values = np.ascontiguousarray(values)
        buffer, content = self.get(name, max(values.nbytes, 1)), values.tobytes()
        if self._held[name].content != content or buffer.itemsize != values.itemsize:
            self.put(name, values)
            self.changed(name, content)
        return buffer

    def changed(self, name: str, content: bytes | None = None) -> None:
        """Note that a buffer is about to be written to, or that it is now known to hold ``content``."""
        self._held[name].content = content

    def drop(self, *names: str) -> None:
        """Free some buffers."""
        for name in names:
            held = self._held.pop(name, None)
            if held is not None:
                held.buffer.release()

    def release(self) -> None:
        """Free all buffers, or keep them for the next pool of the same shape."""
        if self._key is None:
            self.drop(*list(self._held))
        elif self._held:
            held, self._held = self._held, BufferSet()
            self.executor.sets.keep(self._key, held)
