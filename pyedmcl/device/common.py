"""What all executors share: programs that are kept, checked copies, memory with its account, and errors."""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import BuildError, DeviceMemoryError, LaunchError
from . import memory as copies
from .executor import Buffer
from .info import DeviceInfo
from .memory import BufferSets, DeviceBuffer, MemoryUse, SpareMemory
from .programs import CommonProgram, Programs, flags_of
from .quirks import quirks_for

# What is given back is kept for the next call: a small part of all memory, and of the host's no more than many
# processes can have at once.
_SPARE_SHARE, _SPARE, _SPARE_ON_HOST = 64, 1 << 30, 128 << 20
# Drivers that take memory when it is first used may run out of it in the middle of work.
_MUCH = 4


def spare_bytes(info: DeviceInfo) -> int:
    """Bytes of a device's memory that are kept for later, when they are given back."""
    return min(info.global_bytes // _SPARE_SHARE, _SPARE_ON_HOST if quirks_for(info).on_host else _SPARE)


class CommonExecutor(ABC):
    """What an executor of any binding does alike; see :class:`pyedmcl.device.executor.Executor`.

    Parameters
    ----------
    errors : tuple of type
        What the binding raises.

    Attributes
    ----------
    part_alignment : int
        Bytes at whose multiples a buffer may lie within another one; 0 where it cannot.
    """

    # The class of its buffers.
    buffer: ClassVar[type[DeviceBuffer]]
    # memory_codes, late_memory_codes: What the binding's errors say where memory is lacking: at once, and where the
    # cause may be another, too.
    memory_codes: ClassVar[tuple[str, ...]]
    late_memory_codes: ClassVar[tuple[str, ...]]

    def __init__(self, info: DeviceInfo, errors: tuple[type[Exception], ...]) -> None:
        self._info = info
        self._pid = os.getpid()
        self._used = time.monotonic()
        self._queue: Any = None
        self._context: Any = None
        self.errors = errors
        self.memory = MemoryUse()
        self.part_alignment = 0
        quirks = quirks_for(info)
        self.programs = Programs(self._compile, quirks.compilers, lambda: self._used)
        spare = spare_bytes(info)
        self._spare = SpareMemory(spare) if quirks.reuse_buffers else None
        self.sets = BufferSets(spare // 2 if quirks.reuse_buffers else -1, self.memory)
        self._group_left_open = quirks.group_left_open

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def unmeasured(self) -> CommonExecutor:
        """The same device by a queue that takes no times, where that is sooner done; else this executor.

        What is queued on the one does not wait for the other: work has to end before its buffers change hands.
        """
        self._check()
        return self

    # What a binding does in its own way; all may raise what is in ``errors``.

    @abstractmethod
    def _compile(self, source: str, flags: tuple[str, ...]) -> CommonProgram:
        """Compile a text. Raises BuildError."""

    @abstractmethod
    def _new_memory(self, nbytes: int) -> Any:
        """New device memory."""

    @abstractmethod
    def _put(self, memory: Any, offset: int, array: np.ndarray[Any, Any]) -> None:
        """Copy to the device, and wait until the array is free."""

    @abstractmethod
    def _get(self, memory: Any, offset: int, array: np.ndarray[Any, Any]) -> None:
        """Copy from the device, and wait for the values."""

    @abstractmethod
    def _borrowed(self, memory: Any) -> Any:
        """The caller's memory as that of a buffer: to release it leaves the caller's own hold on it."""

    def _part(self, memory: Any, offset: int, nbytes: int) -> Any:
        """Memory within memory, where ``part_alignment`` allows it."""
        raise NotImplementedError

    @abstractmethod
    def _wait(self) -> None:
        """Wait for the queue."""

    def build(self, source: str, options: Sequence[str] = ()) -> CommonProgram:
        """Compile OpenCL C (1.2 unless ``options`` name another ``-cl-std``); the same text is compiled once."""
        self._check()
        return self.programs.get((source, flags_of(options)))

    def build_ahead(self, sources: Sequence[str], options: Sequence[str] = ()) -> None:
        """Compile texts that are needed soon, side by side where the compiler gains by it (``Quirks.compilers``).

        A text that the compiler refuses is left to :meth:`build`, which says so.
        """
        self._check()
        flags = flags_of(options)
        self.programs.get_ahead((source, flags) for source in sources)

    def build_meanwhile(self, source: str, options: Sequence[str] = ()) -> bool:
        """Whether :meth:`build` need not be waited for; else the background compiles the text, when there is time."""
        self._check()
        return self.programs.is_ready((source, flags_of(options)))

    def settle(self) -> None:
        """Wait until all that is left to the background is compiled."""
        self.programs.background.wait()

    def _refused(self, source: str, log: str) -> BuildError:
        """The error for a text that the compiler refused."""
        return BuildError(
            f"the compiler of {self.info.name} ({self.info.platform}) refused a kernel:\n{log}",
            log=log,
            source=source,
        )

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Uninitialised memory of ``nbytes`` bytes (at least 1). Raises DeviceMemoryError where there is none left."""
        self._check()
        if nbytes < 0:
            raise ValueError(f"a buffer cannot have {nbytes:,} bytes")
        size = max(int(nbytes), 1)
        reason: Exception | str = "it is more than all of the device's memory"
        # NVIDIA takes memory at the first use only, so it has to be told no here.
        if size <= self.info.global_bytes:
            try:
                return self.buffer(self._memory_of(size), size, self.memory, self._spare)
            except self.errors as error:
                reason = error
        failure = DeviceMemoryError(
            f"{self.info.name} cannot give {size:,} bytes in one piece: {reason}. Its memory has "
            f"{self.info.global_bytes:,} bytes, its largest piece {self.info.max_alloc_bytes:,}; lower "
            f"PYEDMCL_MEMORY_FRACTION or free other users of the device."
        )
        failure.refused = True
        raise failure from (reason if isinstance(reason, Exception) else None)

    def _memory_of(self, size: int) -> Any:
        """Memory of a size: what was given back, else new. Raises the driver's errors."""
        spare = None if self._spare is None else self._spare.take(size)
        if spare is not None:
            return spare
        try:
            return self._new_memory(size)
        except self.errors:
            if self._spare is None:
                raise
            self.sets.clear()
            self._spare.clear()
            return self._new_memory(size)

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> DeviceBuffer:
        """Copy a C-contiguous host array to byte ``offset`` of ``into``, or to a new buffer; the array is free after.
        """
        array = np.ascontiguousarray(array)
        buffer = self.allocate(offset + array.nbytes) if into is None else self._own(into)
        self._copy(self._put, "to", buffer, array, offset)
        copies.uploaded(array.nbytes)
        buffer.itemsize = array.itemsize
        return buffer

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        """Copy from byte ``offset`` of ``buffer`` into a C-contiguous host array; blocks until done."""
        if not into.flags.c_contiguous or not into.flags.writeable:
            raise LaunchError("a download needs a writable, C-contiguous host array")
        self._copy(self._get, "from", self._own(buffer), into, offset)
        copies.downloaded(into.nbytes)
        return into

    def join(self, buffers: Sequence[Buffer]) -> tuple[DeviceBuffer, list[int]] | None:
        """Let buffers lie in one, in their order, so that one copy serves all of them. What they hold is lost.

        Parameters
        ----------
        buffers : sequence of Buffer
            Which nothing that is queued still uses.

        Returns
        -------
        joint : DeviceBuffer
            It is to be released in their stead.
        begins : list of int
            Bytes of it before each of them. None in place of both where the device has no parts of buffers.
        """
        if not self.part_alignment:
            return None
        owned, begins, end = [self._own(each) for each in buffers], [], 0
        for each in owned:
            begins.append(end)
            end += -(-each.nbytes // self.part_alignment) * self.part_alignment
        joint = self.allocate(end)
        try:
            parts = [self._part(joint.memory, begin, each.nbytes) for begin, each in zip(begins, owned, strict=True)]
        except self.errors as error:
            joint.release()
            raise self.failure("a part of a buffer was refused", error) from error
        for each, part in zip(owned, parts, strict=True):
            each.lie_in(part)
        return joint, begins

    def reaches(self, context: Any) -> bool:
        """Whether memory of a context of the binding can be used here."""
        return bool(self._context == context)

    def borrow(self, memory: Any, nbytes: int) -> DeviceBuffer:
        """Memory of the caller, of a context that this executor :meth:`reaches`; no part of the account."""
        self._check()
        return self.buffer(self._borrowed(memory), nbytes, MemoryUse())

    def _copy(
        self, copy: Callable[..., None], way: str, buffer: DeviceBuffer, array: np.ndarray[Any, Any], offset: int
    ) -> None:
        self._check()
        if offset < 0 or offset + array.nbytes > buffer.nbytes:
            raise LaunchError(
                f"a copy of {array.nbytes:,} bytes at {offset:,} passes the end of a buffer of {buffer.nbytes:,} bytes"
            )
        if array.nbytes == 0:
            return
        try:
            copy(buffer.memory, offset, array)
        except self.errors as error:
            raise self.failure(f"a copy of {array.nbytes:,} bytes {way} the device failed", error) from error

    def _own(self, buffer: Buffer) -> DeviceBuffer:
        if not isinstance(buffer, self.buffer) or buffer.memory is None:
            raise LaunchError("the buffer was released, or belongs to another kind of executor")
        return buffer

    def _group(self, global_size: Sequence[int], local_size: Sequence[int] | None) -> tuple[int, ...] | None:
        """The work-group of a launch, where its size is not left to the driver."""
        if local_size is not None:
            return tuple(local_size)
        if not self._group_left_open:
            return None
        return (math.gcd(global_size[0], self._group_left_open), *(1 for _ in global_size[1:]))

    def finish(self) -> None:
        """Wait for everything queued. Raises LaunchError where something failed on the device."""
        self._check()
        try:
            self._wait()
        except self.errors as error:
            raise self.failure("work on the device failed", error) from error

    def failure(self, what: str, error: Exception, *, memory: bool = False) -> DeviceMemoryError | LaunchError:
        """The typed error for a driver's ``error``.

        Where ``memory`` is set, "out of resources" can mean memory. Later, while work runs, it does where this process
        holds much of the device's memory; else a kernel has crashed.
        """
        device = f"{self.info.name} ({self.info.platform}, driver {self.info.driver})"
        text = str(error)
        memory = memory or self.memory.held > self.info.global_bytes // _MUCH
        codes = (*self.memory_codes, *(self.late_memory_codes if memory else ()))
        if any(code in text for code in codes):
            refused = DeviceMemoryError(
                f"{what}: {text}. {device} has {self.info.global_bytes:,} bytes of memory and "
                f"{quirks_for(self.info).local_bytes:,} of local memory per work-group; smaller blocks or a lower "
                f"PYEDMCL_MEMORY_FRACTION need less."
            )
            refused.refused = True
            return refused
        return LaunchError(f"{what}: {text}. Device: {device}.")

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise LaunchError(
                f"{self.info.name} was opened before this process was forked, and its driver does not survive a fork. "
                f"Open the device in the worker, or start workers with the 'spawn' or 'forkserver' method."
            )
        if self._queue is None:
            raise LaunchError(f"the session on {self.info.name} was closed; open the device again")
        self._used = time.monotonic()

    def close(self) -> None:
        """Wait for the queue, then drop programs, queue and context; a second call does nothing."""
        if self._queue is None or os.getpid() != self._pid:
            return
        try:
            self.finish()
        finally:
            self.sets.clear()
            if self._spare is not None:
                self._spare.clear()
            self._queue = None
            self._context = None
