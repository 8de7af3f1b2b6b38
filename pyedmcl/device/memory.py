"""Device memory: buffers of any binding, their account, and how much of it a plan may use."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import config
from ..errors import HostMemoryError
from .info import DeviceInfo
from .quirks import quirks_for

if TYPE_CHECKING:
    from .executor import Buffer


# Copies between host and devices, counted for who wants to know where the bytes of a call go.


@dataclass
class Copies:
    """How often this process has copied, and how much."""

    # uploads, uploaded: Copies to a device, and their bytes.
    uploads: int = 0
    uploaded: int = 0
    # downloads, downloaded: Copies from a device, and their bytes.
    downloads: int = 0
    downloaded: int = 0

    def __str__(self) -> str:
        return f"{self.uploads:,} uploads of {self.uploaded:,} bytes, {self.downloads:,} downloads of " \
               f"{self.downloaded:,} bytes"  # fmt: skip


_lock = threading.Lock()
_asked: list[Copies] = []


@contextlib.contextmanager
def counting() -> Iterator[Copies]:
    """Count the copies that this process makes from here to the end of the block, by all threads and on all devices.

    Yields
    ------
    Copies
        It grows as copies are made. Those that the device makes of its own memory are none.
    """
    copies = Copies()
    with _lock:
        _asked.append(copies)
    try:
        yield copies
    finally:
        with _lock:
            _asked[:] = [each for each in _asked if each is not copies]


def uploaded(nbytes: int) -> None:
    """Take note of a copy to a device."""
    if _asked:
        with _lock:
            for each in _asked:
                each.uploads += 1
                each.uploaded += nbytes


def downloaded(nbytes: int) -> None:
    """Take note of a copy from a device."""
    if _asked:
        with _lock:
            for each in _asked:
                each.downloads += 1
                each.downloaded += nbytes


# Device memory, whatever binding it comes from, and the account of it.


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
    """A buffer with what is known to lie at its beginning."""

    buffer: Buffer
    # What was copied there, where nothing has been written there since.
    content: bytes | None = None


class BufferSet(dict[str, KeptBuffer]):
    """Buffers by name, which one call needed together."""

    # What was done with them, where it can be done again (:mod:`pyedmcl.launch.replay`).
    sequence: object = None

    def release(self) -> None:
        """Give all of them back."""
        for each in self.values():
            each.buffer.release()


_share: ContextVar[float] = ContextVar("share", default=1.0)


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes that may be planned with."""

    # For all buffers together.
    total: int
    # For one buffer.
    largest: int


def host_available() -> int | None:
    """Bytes of host memory that can be had without swapping, or None where the system does not say.

    A container's limit counts where it is lower than what the machine has free.
    """
    free: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free.append(max(int(Path(limit).read_text()) - int(Path(used).read_text()), 0))
        except (OSError, ValueError):  # "max": no limit
            continue
    if not free:
        try:
            free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    return min(free)


@functools.lru_cache(maxsize=1)
def _recently_available(second: int) -> int | None:
    # Small calls plan several times in a millisecond; asking the system each time would cost more than they do.
    return host_available()


def host_refusal(error: MemoryError) -> HostMemoryError:
    """Our error for memory that this machine did not give; as after a refusal of a device, less may do."""
    free = host_available()
    refusal = HostMemoryError(
        f"this machine has not enough free memory: {error or 'an allocation failed'}"
        f"{'' if free is None else f'; {free:,} bytes are free'}. Compute fewer series or rows at a time; "
        "a function with out= keeps its result on the disk."
    )
    refusal.refused = True
    return refusal


@contextlib.contextmanager
def memory_share(share: float) -> Iterator[None]:
    """Within the block, plans may use this share of the memory that they might use around it.

    How work is tried again after a device refused what was planned: everything that plans asks :func:`budget`.
    """
    token = _share.set(_share.get() * share)
    try:
        yield
    finally:
        _share.reset(token)


def plan_of() -> tuple[object, ...]:
    """What the user and a second try say of the memory to plan with: where it is equal, so are sizes of plans."""
    settings = config.current()
    return settings.memory_fraction, settings.memory_limit, _share.get()


def budget(info: DeviceInfo, *, settings: config.Config | None = None, host_free: int | None = None) -> MemoryBudget:
    """The budget of a device under the user's settings.

    Parameters
    ----------
    settings : Config, optional
        Else :func:`pyedmcl.config.current`.
    host_free : int, optional
        Available host memory in bytes, asked from the system where left out; counts for devices that live in it.
    """
    settings = settings or config.current()
    quirks = quirks_for(info)
    total = int(info.global_bytes * quirks.memory_share * settings.memory_fraction)
    if info.kind in ("cpu", "simulator"):
        free = _recently_available(int(time.monotonic())) if host_free is None else host_free
        if free is not None:
            total = min(total, int(free * settings.memory_fraction))
    if settings.memory_limit is not None:
        total = min(total, settings.memory_limit)
    total = max(int(total * _share.get()), 1)
    return MemoryBudget(total=total, largest=max(min(total, quirks.largest_bytes), 1))
