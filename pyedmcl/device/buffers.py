"""Device memory, whatever binding it comes from, and the account of it."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .executor import Buffer

_serials = itertools.count(1)
_MOST_SETS = 256  # kept at a time, however small they are


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


class SpareMemory:
    """Some device memory that was given back, for the next allocations of the same sizes.

    A small call needs a dozen buffers that the call before it needed, too, and making and freeing these took up to a
    fourth of its time on a processor; of larger ones each page is a fault when it is first written to. What a queue
    still uses may be taken again, since queues are in order.

    Parameters
    ----------
    most : int
        Bytes of all that is kept. A single buffer may have a fourth of it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[int, list[Any]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> Any:
        """Memory of exactly this size, or None."""
        with self._lock:
            held = self._held.get(nbytes)
            if not held:
                return None
            self._held.move_to_end(nbytes)
            self._nbytes -= nbytes
            return held.pop()

    def keep(self, memory: Any, nbytes: int) -> None:
        """Keep memory for later, or free it where it is large; sizes that were not used for long go first."""
        if nbytes > self._most // 4:
            memory.release()
            return
        with self._lock:
            self._held.setdefault(nbytes, []).append(memory)
            self._held.move_to_end(nbytes)
            self._nbytes += nbytes
            while self._nbytes > self._most:
                size, old = self._held.popitem(last=False)
                self._nbytes -= size * len(old)
                for each in old:
                    each.release()

    def clear(self) -> None:
        """Free all of it."""
        with self._lock:
            held, self._held, self._nbytes = self._held, OrderedDict(), 0
        for old in held.values():
            for each in old:
                each.release()


class BufferSets:
    """Buffers that one call needed together, kept together for the next call of the same shape.

    To take them one by one from :class:`SpareMemory`, and to copy small arrays into them that are there already, costs
    a small call more than its kernels. While a set is kept, its bytes are in nobody's account.

    Parameters
    ----------
    most : int
        Bytes of all that is kept. A single set may have half of it.
    use : MemoryUse
        Of the buffers.
    """

    def __init__(self, most: int, use: MemoryUse) -> None:
        self._most, self._use = most, use
        self._held: OrderedDict[Hashable, list[BufferSet]] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> BufferSet:
        """The set that was kept last under a key; it is the caller's from now on. Empty where there is none."""
        with self._lock:
            held = self._held.get(key)
            if not held:
                return BufferSet()
            buffers = held.pop()
            if not held:
                del self._held[key]
            self._count(buffers, -1)
        return buffers

    def keeps(self, buffers: BufferSet) -> bool:
        """Whether a set is small enough to be kept."""
        return _bytes_of(buffers) <= self._most // 2

    def keep(self, key: Hashable, buffers: BufferSet) -> None:
        """Keep a set for later, or give its buffers back where they are large; sets that wait longest go first."""
        gone = [buffers]
        if self.keeps(buffers):
            with self._lock:
                self._held.setdefault(key, []).append(buffers)
                self._held.move_to_end(key)
                self._count(buffers, 1)
                gone = []
                while self._nbytes > self._most or len(self._held) > _MOST_SETS:
                    _, old = self._held.popitem(last=False)
                    for each in old:
                        self._count(each, -1)
                    gone += old
        _release(gone)

    def clear(self) -> None:
        """Give all of them back."""
        with self._lock:
            gone = [each for of_key in self._held.values() for each in of_key]
            self._held.clear()
            for each in gone:
                self._count(each, -1)
        _release(gone)

    def _count(self, buffers: BufferSet, sign: int) -> None:
        """Move the bytes of a set between this account and that of the buffers."""
        nbytes = _bytes_of(buffers)
        self._nbytes += sign * nbytes
        (self._use.give if sign > 0 else self._use.take)(nbytes)


def _bytes_of(buffers: BufferSet) -> int:
    return sum([each.buffer.nbytes for each in buffers.values()])


def _release(sets: Iterable[BufferSet]) -> None:
    for buffers in sets:
        buffers.release()


class DeviceBuffer:
    """Device memory; released when asked or when the last reference goes.

    Each executor has a class of its own below this one, so that it knows its buffers from those of another.

    Attributes
    ----------
    memory
        The binding's object, which has ``release()`` and frees its memory with its last reference; None once released.
    nbytes : int
    itemsize : int
        Bytes of an element of the array that was copied into it last; 0 where none was.
    serial : int
        No two buffers of a process have the same.
    """

    __slots__ = ("_spare", "_use", "itemsize", "memory", "nbytes", "serial")

    def __init__(self, memory: Any, nbytes: int, use: MemoryUse, spare: SpareMemory | None = None) -> None:
        self.memory = memory
        self.nbytes = nbytes
        self.itemsize = 0
        self.serial = next(_serials)
        self._use = use
        self._spare = spare
        use.take(nbytes)

    def lie_in(self, memory: Any) -> None:
        """Give the memory back, and be a part of another buffer from now on, which has the account.

        Parameters
        ----------
        memory
            The binding's object for that part; it holds what the other buffer holds there.
        """
        self.release()
        self.memory, self._use, self._spare = memory, MemoryUse(), None
        self.serial = next(_serials)

    def release(self) -> None:
        """Give the memory back once nothing queued uses it; a second call does nothing."""
        if self.memory is not None:
            memory, self.memory = self.memory, None
            self._use.give(self.nbytes)
            if self._spare is None:
                memory.release()
            else:
                self._spare.keep(memory, self.nbytes)

    def __del__(self) -> None:
        # The runtime frees the memory itself when the last reference goes; only the account is ours to keep.
        if getattr(self, "memory", None) is not None:
            self._use.give(self.nbytes)


@dataclass
class KeptBuffer:
    """A buffer with what is known to lie at its beginning.

    Attributes
    ----------
    buffer : Buffer
    content : bytes or None
        What was copied there, where nothing has been written there since.
    """

    buffer: Buffer
    content: bytes | None = None


class BufferSet(dict[str, KeptBuffer]):
    """Buffers by name, which one call needed together.

    Attributes
    ----------
    sequence : object
        What was done with them, where it can be done again (:mod:`pyedmcl.launch.replay`).
    """

    sequence: object = None

    def release(self) -> None:
        """Give all of them back."""
        for each in self.values():
            each.buffer.release()
