"""The executor on PyOpenCL: one context and one in-order, profiled queue for one device."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import struct
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import BuildError, DeviceMemoryError, LaunchError
from . import opencl_devices, runtimes
from .executor import Argument, Buffer, Kernel
from .info import DeviceInfo
from .opencl_memory import MemoryUse, OpenCLBuffer, SpareMemory
from .program_cache import ProgramCache
from .quirks import quirks_for
from .slots import Slot, names_differ, packer, refusal

BASELINE = "-cl-std=CL1.2"
_PROGRAMS_KEPT = 256
_MEMORY_CODES = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "OUT_OF_RESOURCES", "INVALID_BUFFER_SIZE")
# Drivers that take memory when it is first used may run out of it in the middle of work.
_MUCH = 4
# What a driver says of a work-group that it cannot run, be it within the limits that it promised.
_GROUP_CODES = ("INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE", "OUT_OF_RESOURCES")


class OpenCLEvent:
    """A queued launch."""

    __slots__ = ("_event", "_executor")

    def __init__(self, event: Any, executor: OpenCLExecutor) -> None:
        self._event = event
        self._executor = executor

    def wait(self) -> None:
        """Block until the launch has ended. Raises LaunchError where it failed on the device."""
        try:
            self._event.wait()
        except self._executor.errors as error:
            raise self._executor.failure("a kernel failed while it ran", error) from error

    @property
    def seconds(self) -> float:
        """Time on the device in seconds; waits for the end."""
        self.wait()
        profile = self._event.profile
        return float(profile.end - profile.start) * 1e-9


_UNSET = object()


class OpenCLKernel:
    """A kernel of one thread.

    What was set last is remembered, since most arguments do not change from launch to launch: numbers as they were
    given, buffers by their serial number, so that none is kept alive.
    """

    __slots__ = ("_held", "_plan", "_set_bytes", "kernel", "name", "slots")

    def __init__(self, kernel: Any, name: str, slots: Sequence[Slot]) -> None:
        self.kernel = kernel
        self.name = name
        self.slots = tuple(slots)
        self._plan = [(slot.name, None if slot.is_buffer else packer(slot)) for slot in self.slots]
        self._held: list[Any] = [_UNSET] * len(self.slots)
        # set_arg tries the other kinds of argument first, which makes a number cost 6 microseconds instead of 0.4.
        self._set_bytes = getattr(kernel, "_set_arg_buf", kernel.set_arg)

    def set(self, arguments: Mapping[str, Any]) -> None:
        """Set all arguments. Raises LaunchError for those that are not the kernel's, and the driver's errors."""
        held = self._held
        if len(arguments) != len(held):
            raise names_differ(self.name, self.slots, arguments)
        for index, (name, pack) in enumerate(self._plan):
            try:
                value = arguments[name]
            except KeyError:
                raise names_differ(self.name, self.slots, arguments) from None
            if pack is None:
                if type(value) is not OpenCLBuffer or value.serial != held[index] or value.memory is None:
                    self._set_buffer(index, value)
            elif value is not held[index]:
                held[index] = _UNSET
                try:
                    packed = pack(value)
                except (struct.error, OverflowError, TypeError) as error:
                    raise refusal(self.name, self.slots[index], value, f" ({error})") from error
                self._set_bytes(index, packed)
                held[index] = value

    def _set_buffer(self, index: int, value: Any) -> None:
        slot = self.slots[index]
        if not isinstance(value, OpenCLBuffer):
            raise refusal(self.name, slot, value)
        if value.memory is None:
            raise refusal(self.name, slot, value, ", which was released")
        if value.itemsize and value.itemsize != slot.dtype.itemsize:
            raise refusal(self.name, slot, value, f" whose elements have {value.itemsize} bytes")
        self._held[index] = _UNSET
        self.kernel.set_arg(index, value.memory)
        self._held[index] = value.serial


class OpenCLProgram:
    """A compiled source.

    Attributes
    ----------
    log : str
        What the driver said while it compiled; usually empty.
    """

    def __init__(self, program: Any, log: str, executor: OpenCLExecutor) -> None:
        self.program = program
        self.log = log
        self._executor = executor
        self._local = threading.local()

    def kernel(self, name: str, slots: Sequence[Slot]) -> OpenCLKernel:
        """The kernel called ``name``, one object per thread. Raises BuildError where the source has none like it."""
        kernels: dict[str, OpenCLKernel] | None = getattr(self._local, "kernels", None)
        if kernels is None:
            kernels = self._local.kernels = {}
        if name not in kernels:
            try:
                kernel = self._bare(name)
                count = kernel.num_args  # NVIDIA notices a wrong name only here
            except self._executor.errors as error:
                raise BuildError(f"there is no kernel {name!r} in the compiled source ({error})") from error
            if count != len(slots):
                raise BuildError(f"kernel {name} takes {count} arguments, and {len(slots)} are declared for it")
            kernels[name] = OpenCLKernel(kernel, name, slots)
        return kernels[name]


    def _bare(self, name: str) -> Any:
        """PyOpenCL's kernel, which it makes with the help of a file in the user's cache folder."""
        cl = self._executor.cl
        try:
            return cl.Kernel(self.program, name)
        except (OSError, sqlite3.Error):  # the disk is full, the file damaged: PyOpenCL does without
            cl._PYOPENCL_NO_CACHE = True
            return cl.Kernel(self.program, name)


class OpenCLExecutor:
    """Executor for one device through PyOpenCL; see :class:`pyedmcl.device.executor.Executor`.

    Parameters
    ----------
    info : DeviceInfo
        A device from :func:`pyedmcl.device.discover.discover`.

    Raises
    ------
    DeviceNotFoundError
        The device is not on this machine.
    LaunchError
        The driver refuses a context, or this process is a fork of one that used a device.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.cl: Any = runtimes.opencl()
        self._info = info
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._programs: OrderedDict[tuple[str, tuple[str, ...]], OpenCLProgram] = OrderedDict()
        self.errors: type[Exception] = self.cl.Error
        self.memory = MemoryUse()
        self._spare = SpareMemory() if quirks_for(info).reuse_buffers else None
        self._kept = ProgramCache(info) if quirks_for(info).keep_programs else None
        self._group_left_open = quirks_for(info).group_left_open
        self._device = opencl_devices.handle(info)
        try:
            self._context = self.cl.Context([self._device])
            self._queue = self.cl.CommandQueue(
                self._context, properties=self.cl.command_queue_properties.PROFILING_ENABLE
            )
        except self.errors as error:
            raise self.failure("the driver gave no context", error) from error

    @property
    def info(self) -> DeviceInfo:
        return self._info

    def build(self, source: str, options: Sequence[str] = ()) -> OpenCLProgram:
        """Compile OpenCL C (1.2 unless ``options`` name another ``-cl-std``); the same text is compiled once.

        Raises
        ------
        BuildError
            With the driver's raw log in ``.log`` and the text in ``.source``.
        """
        self._check()
        flags = tuple(options)
        if not any(flag.startswith("-cl-std") for flag in flags):
            flags = (BASELINE, *flags)
        key = (source, flags)
        # One build at a time: some drivers' compilers are not safe to enter twice.
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = self._compile(source, flags)
                if len(self._programs) > _PROGRAMS_KEPT:
                    self._programs.popitem(last=False)
            else:
                self._programs.move_to_end(key)
        return program

    def _compile(self, source: str, flags: tuple[str, ...]) -> OpenCLProgram:
        kept = self._kept.load(source, flags) if self._kept else None
        if kept is not None:
            with contextlib.suppress(self.errors):  # a refused binary is compiled again below
                return self._built(self.cl._cl._Program(self._context, [self._device], [kept]), flags)
        # The bare program class, not cl.Program.build: that one caches binaries of its own (and then hides a failed
        # build behind a KeyError), adds options from the environment, and keeps the log for itself.
        program = None
        try:
            program = self.cl._cl._Program(self._context, source)
            compiled = self._built(program, flags)
        except self.errors as error:
            log = self._log(program) or str(error)
            raise BuildError(
                f"the compiler of {self.info.name} ({self.info.platform}) refused a kernel:\n{log}",
                log=log,
                source=source,
            ) from error
        if self._kept:
            with contextlib.suppress(self.errors):  # a driver that gives no binary compiles again next time
                self._kept.keep(source, flags, program.get_info(self.cl.program_info.BINARIES)[0])
        return compiled

    def _built(self, program: Any, flags: tuple[str, ...]) -> OpenCLProgram:
        program._build(options=" ".join(flags).encode())
        return OpenCLProgram(self.cl.Program(program), self._log(program), self)

    def _log(self, program: Any) -> str:
        if program is None:
            return ""
        try:
            log = program.get_build_info(self._device, self.cl.program_build_info.LOG)
        except self.errors:
            return ""
        return str(log or "").strip("\0\n\r\t ")

    def allocate(self, nbytes: int) -> OpenCLBuffer:
        """Uninitialised memory of ``nbytes`` bytes (at least 1). Raises DeviceMemoryError where there is none left."""
        self._check()
        if nbytes < 0:
            raise ValueError(f"a buffer cannot have {nbytes:,} bytes")
        size = max(int(nbytes), 1)
        reason: Exception | str = "it is more than all of the device's memory"
        # NVIDIA takes memory at the first use only, so it has to be told no here.
        if size <= self.info.global_bytes:
            try:
                return OpenCLBuffer(self._memory_of(size), size, self.memory, self._spare)
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
            return self.cl.Buffer(self._context, self.cl.mem_flags.READ_WRITE, size)
        except self.errors:
            if self._spare is None:
                raise
            self._spare.clear()
            return self.cl.Buffer(self._context, self.cl.mem_flags.READ_WRITE, size)

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> OpenCLBuffer:
        """Copy a C-contiguous host array to byte ``offset`` of ``into``, or to a new buffer; the array is free after.

        Raises
        ------
        DeviceMemoryError
            There is no room for a new buffer.
        LaunchError
            The copy failed, or would pass the end of ``into``.
        """
        array = np.ascontiguousarray(array)
        buffer = self.allocate(offset + array.nbytes) if into is None else self._own(into)
        self._copy(buffer, array, offset, upload=True)
        buffer.itemsize = array.itemsize
        return buffer

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        """Copy from byte ``offset`` of ``buffer`` into a C-contiguous host array; blocks until done."""
        if not into.flags.c_contiguous or not into.flags.writeable:
            raise LaunchError("a download needs a writable, C-contiguous host array")
        self._copy(self._own(buffer), into, offset, upload=False)
        return into

    def _copy(self, buffer: OpenCLBuffer, array: np.ndarray[Any, Any], offset: int, *, upload: bool) -> None:
        self._check()
        if offset < 0 or offset + array.nbytes > buffer.nbytes:
            raise LaunchError(
                f"a copy of {array.nbytes:,} bytes at {offset:,} passes the end of a buffer of {buffer.nbytes:,} bytes"
            )
        if array.nbytes == 0:
            return
        try:
            if upload:
                self.cl.enqueue_copy(self._queue, buffer.memory, array, dst_offset=offset, is_blocking=True)
            else:
                self.cl.enqueue_copy(self._queue, array, buffer.memory, src_offset=offset, is_blocking=True)
        except self.errors as error:
            what = f"a copy of {array.nbytes:,} bytes {'to' if upload else 'from'} the device failed"
            raise self.failure(what, error) from error

    def _own(self, buffer: Buffer) -> OpenCLBuffer:
        if not isinstance(buffer, OpenCLBuffer) or buffer.memory is None:
            raise LaunchError("the buffer was released, or belongs to another kind of executor")
        return buffer

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> OpenCLEvent:
        """Queue a kernel of this thread, its arguments by name.

        Raises
        ------
        LaunchError
            The arguments are not those of the kernel, or the driver refuses them or the launch.
        DeviceMemoryError
            The driver has no memory for the launch.
        """
        self._check()
        if not isinstance(kernel, OpenCLKernel):
            raise LaunchError(f"{kernel!r} is no kernel of this executor")
        try:
            kernel.set(arguments)
        except self.errors as error:
            raise self.failure(f"an argument of {kernel.name} was refused", error) from error
        group = None if local_size is None else tuple(local_size)
        if group is None and self._group_left_open:
            group = (math.gcd(global_size[0], self._group_left_open), *(1 for _ in global_size[1:]))
        try:
            event = self.cl.enqueue_nd_range_kernel(self._queue, kernel.kernel, tuple(global_size), group)
        except self.errors as error:
            what = f"{kernel.name} with global size {tuple(global_size)} and local size {local_size} was refused"
            failure = self.failure(what, error, memory=True)
            if any(code in str(error) for code in _GROUP_CODES):
                failure.kernel, failure.work_group = kernel.name, math.prod(local_size or (0,))
            raise failure from error
        return OpenCLEvent(event, self)

    def finish(self) -> None:
        """Wait for everything queued. Raises LaunchError where something failed on the device."""
        self._check()
        try:
            self._queue.finish()
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
        codes = _MEMORY_CODES if memory else _MEMORY_CODES[:2]
        if any(code in text for code in codes):
            refusal = DeviceMemoryError(
                f"{what}: {text}. {device} has {self.info.global_bytes:,} bytes of memory and "
                f"{self.info.local_bytes:,} of local memory per work-group; smaller blocks or a lower "
                f"PYEDMCL_MEMORY_FRACTION need less."
            )
            refusal.refused = True
            return refusal
        return LaunchError(f"{what}: {text}. Device: {device}.")

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise LaunchError(
                f"{self.info.name} was opened before this process was forked, and its driver does not survive a fork. "
                f"Open the device in the worker, or start workers with the 'spawn' or 'forkserver' method."
            )
        if self._queue is None:
            raise LaunchError(f"the session on {self.info.name} was closed; open the device again")

    def close(self) -> None:
        """Wait for the queue, then drop programs, queue and context; a second call does nothing."""
        if self._queue is None or os.getpid() != self._pid:
            return
        try:
            self.finish()
        finally:
            if self._spare is not None:
                self._spare.clear()
            self._programs.clear()
            self._queue = None
            self._context = None
