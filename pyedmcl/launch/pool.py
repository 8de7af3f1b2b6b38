"""Device buffers by name that are reused, and made larger when need be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.buffers import KeptBuffer
from ..device.memory import plan_of

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


class Pool:
    """Named buffers of one device; several users that do not run at the same time may share a pool.

    Parameters
    ----------
    executor : Executor
    *shape : hashable
        What the sizes of the buffers follow from, and who uses them: what is released is then kept as a whole for the
        next pool of the same shape (:class:`~pyedmcl.device.buffers.BufferSets`). Nothing is kept by default.
    """

    def __init__(self, executor: Executor, *shape: Hashable) -> None:
        self.executor = executor
        self._key = (*shape, plan_of()) if shape else None
        self._held: dict[str, KeptBuffer] = executor.sets.take(self._key) if shape else {}
        for held in self._held.values():
            if held.content is None:
                held.buffer.itemsize = 0

    def get(self, name: str, nbytes: int) -> Buffer:
        """The buffer called ``name`` with at least ``nbytes`` bytes; growing it loses what it held."""
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
        """A buffer of that name that holds ``values``, which are copied unless they lie there from before.

        No kernel may write to it, unless :meth:`changed` says so beforehand.
        """
        values = np.ascontiguousarray(values)
        buffer, content = self.get(name, max(values.nbytes, 1)), values.tobytes()
        if self._held[name].content != content or buffer.itemsize != values.itemsize:
            self.put(name, values)
            self.changed(name, content)
        return buffer

    def changed(self, name: str, content: bytes | None = None) -> None:
        """Say that a buffer is written to; or, where it turns out that ``content`` lies there, say that."""
        self._held[name].content = content

    def drop(self, *names: str) -> None:
        """Give some buffers back."""
        for name in names:
            held = self._held.pop(name, None)
            if held is not None:
                held.buffer.release()

    def release(self) -> None:
        """Give all of them back."""
        if self._key is None:
            self.drop(*list(self._held))
        elif self._held:
            held, self._held = self._held, {}
            self.executor.sets.keep(self._key, held)
