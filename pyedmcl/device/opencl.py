"""The executor on PyOpenCL: one context and one in-order, profiled queue for one device."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError
from . import opencl_devices, runtimes
from .common import CommonExecutor
from .common_event import CommonEvent
from .executor import Argument, Kernel
from .info import DeviceInfo
from .opencl_program import OpenCLBuffer, OpenCLKernel, OpenCLProgram, bare_program, log_of
from .program_cache import ProgramCache
from .quirks import quirks_for

# What a driver says of a work-group that it cannot run, be it within the limits that it promised.
_GROUP_CODES = ("INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE", "OUT_OF_RESOURCES")

_LINE = 128  # bytes of a line of any device's caches, which two buffers should not share


class OpenCLEvent(CommonEvent):
    """A queued launch."""

    __slots__ = ()

    def _nanoseconds(self) -> int:
        profile = self._event.profile
        return int(profile.end - profile.start)


class OpenCLExecutor(CommonExecutor):
    """Executor for one device through PyOpenCL; see :class:`pyedmcl.device.executor.Executor`.

    Parameters
    ----------
    info : DeviceInfo
        A device from :func:`pyedmcl.device.discover.discover`.
    context : pyopencl.Context, optional
        The caller's, else a new one. The queue is one of ours in any case: in order, and with times.

    Raises
    ------
    DeviceNotFoundError
        The device is not on this machine.
    LaunchError
        The driver refuses a context, or this process is a fork of one that used a device.
    """

    buffer = OpenCLBuffer
    memory_codes = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY")
    late_memory_codes = ("OUT_OF_RESOURCES", "INVALID_BUFFER_SIZE")

    def __init__(self, info: DeviceInfo, context: Any = None) -> None:
        self.cl: Any = runtimes.opencl()
        super().__init__(info, (self.cl.Error,))
        self._kept = ProgramCache(info) if quirks_for(info).keep_programs else None
        self._device = opencl_devices.handle(info)
        self._unmeasured: OpenCLExecutor | None = None
        self.part_alignment = max(int(self._device.mem_base_addr_align) // 8, _LINE)
        try:
            self._context = self.cl.Context([self._device]) if context is None else context
            self._queue = self.cl.CommandQueue(
                self._context, self._device, properties=self.cl.command_queue_properties.PROFILING_ENABLE
            )
        except self.errors as error:
            raise self.failure("the driver gave no context", error) from error

    def unmeasured(self) -> OpenCLExecutor:
        self._check()
        if self._unmeasured is None:
            other = copy.copy(self)
            try:
                other._queue = self.cl.CommandQueue(self._context, self._device)
            except self.errors:  # a second queue saves time only
                return self
            self._unmeasured = other
        return self._unmeasured

    def close(self) -> None:
        super().close()
        self._unmeasured = None

    def _compile(self, source: str, flags: tuple[str, ...]) -> OpenCLProgram:
        kept = self._kept.load(source, flags) if self._kept else None
        if kept is not None:
            with contextlib.suppress(*self.errors):  # a refused binary is compiled again below
                return self._built(bare_program(self._context, [self._device], [kept]), flags)
        program = None
        try:
            program = bare_program(self._context, source)
            compiled = self._built(program, flags)
        except self.errors as error:
            log = "" if program is None else log_of(program, self._device)
            raise self._refused(source, log or str(error)) from error
        if self._kept:
            with contextlib.suppress(*self.errors):  # a driver that gives no binary compiles again next time
                self._kept.keep(source, flags, program.get_info(self.cl.program_info.BINARIES)[0])
        return compiled

    def _built(self, program: Any, flags: tuple[str, ...]) -> OpenCLProgram:
        program._build(options=" ".join(flags).encode())
        return OpenCLProgram(self.cl.Program(program), log_of(program, self._device), self.errors)

    def _new_memory(self, nbytes: int) -> Any:
        return self.cl.Buffer(self._context, self.cl.mem_flags.READ_WRITE, nbytes)

    def _part(self, memory: Any, offset: int, nbytes: int) -> Any:
        return memory.get_sub_region(offset, nbytes)

    def _put(self, memory: Any, offset: int, array: np.ndarray[Any, Any]) -> None:
        self.cl.enqueue_copy(self._queue, memory, array, dst_offset=offset, is_blocking=True)

    def _get(self, memory: Any, offset: int, array: np.ndarray[Any, Any]) -> None:
        self.cl.enqueue_copy(self._queue, array, memory, src_offset=offset, is_blocking=True)

    def _borrowed(self, memory: Any) -> Any:
        return self.cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)

    def _wait(self) -> None:
        self._queue.finish()

    def follow(self, queue: Any) -> None:
        """Have what is queued from now on wait for all that is on ``queue`` by now. Raises LaunchError."""
        self._check()
        try:
            before = self.cl.enqueue_marker(queue)
            queue.flush()
            self.cl.enqueue_barrier(self._queue, wait_for=[before])
        except self.errors as error:
            raise self.failure("the caller's queue cannot be waited for", error) from error

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
        group = self._group(global_size, local_size)
        try:
            event = self.cl.enqueue_nd_range_kernel(self._queue, kernel.kernel, tuple(global_size), group)
        except self.errors as error:
            what = f"{kernel.name} with global size {tuple(global_size)} and local size {local_size} was refused"
            failure = self.failure(what, error, memory=True)
            if any(code in str(error) for code in _GROUP_CODES):
                failure.kernel, failure.work_group = kernel.name, math.prod(local_size or (0,))
            raise failure from error
        return OpenCLEvent(event, self)
