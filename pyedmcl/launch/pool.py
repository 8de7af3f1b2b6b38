"""Device buffers by name that are reused, and made larger when need be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


class Pool:
    """Named buffers of one device; several users that do not run at the same time may share a pool.

    Parameters
    ----------
    executor : Executor
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._held: dict[str, Buffer] = {}

    def get(self, name: str, nbytes: int) -> Buffer:
        """The buffer called ``name`` with at least ``nbytes`` bytes; growing it loses what it held."""
        held = self._held.get(name)
        if held is None or held.nbytes < nbytes:
            self.drop(name)
            held = self._held[name] = self.executor.allocate(nbytes)
        return held

    def drop(self, *names: str) -> None:
        """Give some buffers back."""
        for name in names:
            held = self._held.pop(name, None)
            if held is not None:
                held.release()

    def release(self) -> None:
        """Give all of them back."""
        self.drop(*list(self._held))
