"""The executor on PyOpenCL: its devices, programs, and one in-order, profiled queue for one device."""

from __future__ import annotations

import contextlib
import copy
import math
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DeviceNotFoundError, LaunchError
from . import runtimes
from .common import CommonExecutor
from .executor import Argument, Kernel
from .info import DeviceInfo, Slot
from .memory import DeviceBuffer
from .programs import CommonEvent, CommonKernel, CommonProgram
from .quirks import quirks_for
from .runtimes import ProgramCache

# The OpenCL devices of this machine, as PyOpenCL lists them.


_lock = threading.Lock()
_found: list[tuple[DeviceInfo, Any]] | None = None


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """All OpenCL devices. A platform that fails to answer is left out and hides no other.

    Platforms are numbered in the order of their names and versions, not in the order of the loader, which changes with
    the file system; so an id like ``"1:0"`` stays the same from run to run.
    """
    return [info for info, _ in _devices(refresh)]


def handle(info: DeviceInfo) -> Any:
    """The OpenCL device object behind ``info``."""
    for known, device in _devices(False):
        if known == info:
            return device
    raise DeviceNotFoundError(f"the device {info.name!r} ({info.id}) is not on this machine")


def info_of(device: Any) -> DeviceInfo | None:
    """What is known of an OpenCL device object, whoever asked for it; None where it is not in the list."""
    return next((info for info, known in _devices(False) if known.int_ptr == device.int_ptr), None)


def _devices(refresh: bool) -> list[tuple[DeviceInfo, Any]]:
    global _found
    cl = runtimes.opencl()
    with _lock:
        if _found is None or refresh:
            _found = _ask(cl)
        return _found


def _ask(cl: Any) -> list[tuple[DeviceInfo, Any]]:
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []
    answers: dict[int, tuple[str, str, str, Any]] = {}
    for platform in platforms:
        try:
            # One library seen through two entries is one platform: the handle is the same.
            answers[platform.int_ptr] = (
                platform.name.strip(),
                platform.version.strip(),
                platform.vendor.strip(),
                platform.get_devices(),
            )
        except cl.Error:
            continue
    handles: list[tuple[DeviceInfo, Any]] = []
    usable = [answer for answer in answers.values() if answer[3]]
    for p, (name, version, vendor, devices) in enumerate(sorted(usable, key=lambda answer: answer[:3])):
        for d, device in enumerate(devices):
            try:
                handles.append((_describe(cl, f"{p}:{d}", name, version, vendor, device), device))
            except cl.Error:
                continue
    return handles


def classify(platform: str, vendor: str, name: str, kind: str) -> tuple[str, str]:
    """``(runtime, kind)`` from the strings of a platform and a device and from the type the driver reports."""
    text = f"{platform} {vendor}".lower()
    if "oclgrind" in text or "oclgrind" in name.lower():
        return "oclgrind", "simulator"
    if "fpga emulation" in text:
        return "other", "simulator"
    if "portable computing language" in text or "pocl" in text:
        return "pocl", kind
    if "rusticl" in text:
        # llvmpipe runs on the processor, whatever type it reports.
        return "rusticl", "cpu" if "llvmpipe" in name.lower() else kind
    if "nvidia" in text:
        return "nvidia", kind
    if "advanced micro devices" in text or "amd" in text.split():
        return "amd", kind
    if "intel" in text:
        return ("intel-cpu" if kind == "cpu" else "intel-gpu"), kind
    return "other", kind


def _describe(cl: Any, id: str, platform: str, platform_version: str, vendor: str, device: Any) -> DeviceInfo:
    types = cl.device_type
    kind = "accelerator"
    for bit, label in ((types.GPU, "gpu"), (types.CPU, "cpu")):
        if device.type & bit:
            kind = label
            break
    name = device.name.strip()
    runtime, kind = classify(platform, f"{vendor} {platform_version}", name, kind)
    extensions = set(device.extensions.split())
    return DeviceInfo(
        id=id,
        name=name,
        vendor=device.vendor.strip(),
        platform=platform,
        version=device.version.strip(),
        driver=device.driver_version.strip(),
        kind=kind,
        runtime=runtime,
        compute_units=int(device.max_compute_units),
        max_work_group=int(device.max_work_group_size),
        clock_mhz=int(device.max_clock_frequency),
        local_bytes=int(device.local_mem_size),
        global_bytes=int(device.global_mem_size),
        max_alloc_bytes=int(device.max_mem_alloc_size),
        fp64="cl_khr_fp64" in extensions,
        fp16="cl_khr_fp16" in extensions,
        subgroups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        opencl_c=device.opencl_c_version.strip(),
    )


# Programs and kernels through PyOpenCL: compiling with the driver's log, and arguments that are set once.


class OpenCLBuffer(DeviceBuffer):
    """Device memory through PyOpenCL."""

    __slots__ = ()


class OpenCLKernel(CommonKernel):
    """A kernel of PyOpenCL, on which arguments are set."""

    buffer = OpenCLBuffer

    __slots__ = ()

    def __init__(self, kernel: Any, name: str, slots: Sequence[Slot]) -> None:
        super().__init__(kernel, name, slots)
        # set_arg tries the other kinds of argument first, which makes a number cost 6 microseconds instead of 0.4.
        self._set_bytes = getattr(kernel, "_set_arg_buf", kernel.set_arg)
        self._set_memory = kernel.set_arg


class OpenCLProgram(CommonProgram):
    """A source that PyOpenCL compiled."""

    def _bare(self, name: str) -> tuple[Any, int]:
        """PyOpenCL's kernel, which it makes with the help of a file in the user's cache folder."""
        cl = runtimes.opencl()
        try:
            kernel = cl.Kernel(self.program, name)
        except (OSError, sqlite3.Error):  # the disk is full, the file damaged: PyOpenCL does without
            cl._PYOPENCL_NO_CACHE = True
            kernel = cl.Kernel(self.program, name)
        return kernel, kernel.num_args  # NVIDIA notices a wrong name only here

    def _wrap(self, kernel: Any, name: str, slots: Sequence[Slot]) -> OpenCLKernel:
        return OpenCLKernel(kernel, name, slots)


def bare_program(context: Any, *content: Any) -> Any:
    """PyOpenCL's program of a text, or of devices and binaries.

    The bare class, not cl.Program: that one caches binaries of its own (and then hides a failed build behind a
    KeyError), adds options from the environment, and keeps the log for itself.
    """
    return runtimes.opencl()._cl._Program(context, *content)


def log_of(program: Any, device: Any) -> str:
    """What the driver said of a program that was built, or not; empty where it said nothing."""
    cl = runtimes.opencl()
    try:
        log = program.get_build_info(device, cl.program_build_info.LOG)
    except cl.Error:
        return ""
    return str(log or "").strip("\0\n\r\t ")


def log_on_twin(info: DeviceInfo, source: str, flags: Sequence[str]) -> str:
    """What the compiler says of a text on the OpenCL device ``info``, for bindings that keep the log to themselves."""
    cl = runtimes.opencl()
    device = handle(info)
    program = None
    try:
        program = bare_program(cl.Context([device]), source)
        program._build(options=" ".join(flags).encode())
    except cl.Error as error:
        return (log_of(program, device) if program is not None else "") or str(error)
    return log_of(program, device)


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
        A device from :func:`pyedmcl.device.select.discover`.
    context : pyopencl.Context, optional
        The caller's, else a new one. The queue is one of ours in any case: in order, and with times.
    """

    buffer = OpenCLBuffer
    memory_codes = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY")
    late_memory_codes = ("OUT_OF_RESOURCES", "INVALID_BUFFER_SIZE")

    def __init__(self, info: DeviceInfo, context: Any = None) -> None:
        self.cl: Any = runtimes.opencl()
        super().__init__(info, (self.cl.Error,))
        self._kept = ProgramCache(info) if quirks_for(info).keep_programs else None
        self._device = handle(info)
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
        """Queue a kernel of this thread, its arguments by name."""
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
