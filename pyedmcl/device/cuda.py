"""The executor on NVIDIA's driver alone: its devices, and one in-order queue for one device."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import hashlib
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BuildError, DeviceMemoryError, DeviceNotFoundError, LaunchError
from . import nvrtc, runtimes
from .common import CommonExecutor, spare_bytes
from .executor import Argument, Kernel
from .info import DeviceInfo, Slot
from .memory import DeviceBuffer
from .programs import CommonEvent, CommonKernel, CommonProgram
from .quirks import quirks_for
from .runtimes import ProgramCache

# NVIDIA's driver without OpenCL: libcuda by ctypes, and the GPUs that it lists.
#
# They are described as NVIDIA's OpenCL driver describes the same ones, so that quirks, tuned parameters and stores are
# those of their OpenCL twins.


LIBRARY = "libcuda.so.1"
# Of a device: attributes by their numbers in cuda.h.
_WORK_GROUP, _LOCAL, _CLOCK, _UNITS, _MAJOR, _MINOR = 1, 8, 13, 16, 75, 76
POOLS = 115
# Of an address.
_POINTER_CONTEXT, _POINTER_DEVICE = 1, 9
_NAME_BYTES = 256

_P, _U, _I, _Z = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_size_t
# The functions that are called, and what they take: numbers that are addresses must not be taken for C's int.
_FUNCTIONS: dict[str, Sequence[Any]] = {
    "cuInit": (_U,), "cuDriverGetVersion": (_P,), "cuDeviceGetCount": (_P,), "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I), "cuDeviceTotalMem_v2": (_P, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I), "cuDevicePrimaryCtxRelease_v2": (_I,), "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,), "cuModuleLoadDataEx": (_P, _P, _U, _P, _P), "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, _P), "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P), "cuMemAlloc_v2": (_P, _Z), "cuMemFree_v2": (_P,),
    "cuMemPoolCreate": (_P, _P), "cuMemPoolDestroy": (_P,), "cuMemPoolSetAttribute": (_P, _I, _P),
    "cuMemAllocFromPoolAsync": (_P, _Z, _P, _P), "cuMemFreeAsync": (_P, _P), "cuMemAllocHost_v2": (_P, _Z),
    "cuMemFreeHost": (_P,), "cuPointerGetAttribute": (_P, _I, _P), "cuMemcpyHtoDAsync_v2": (_P, _P, _Z, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _P, _Z, _P), "cuStreamCreate": (_P, _U),
    "cuStreamDestroy_v2": (_P,), "cuStreamWaitEvent": (_P, _P, _U), "cuEventCreate": (_P, _U),
    "cuEventRecord": (_P, _P), "cuEventSynchronize": (_P,), "cuEventElapsedTime": (_P, _P, _P),
    "cuEventDestroy_v2": (_P,), "cuGetErrorName": (_I, _P), "cuGetErrorString": (_I, _P),
}  # fmt: skip


class CudaError(Exception):
    """A function of libcuda that failed.

    Attributes
    ----------
    code : int
        The driver's number.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Driver:
    """libcuda: ``driver.cuMemFree_v2(...)`` raises CudaError; ``driver.raw.cuMemFree_v2(...)`` returns a number."""

    def __init__(self) -> None:
        self.raw: Any = ctypes.CDLL(LIBRARY)
        for name, takes in _FUNCTIONS.items():
            function = getattr(self.raw, name)
            function.restype, function.argtypes = ctypes.c_int, list(takes)
            setattr(self, name, self._checked(function, name))
        version = ctypes.c_int()
        self.cuInit(0)
        self.cuDriverGetVersion(ctypes.byref(version))
        self.version = version.value // 1000, version.value % 1000 // 10

    def __getattr__(self, name: str) -> Any:  # for type checkers: all of _FUNCTIONS are set above
        raise AttributeError(name)

    def _checked(self, function: Any, name: str) -> Any:
        def checked(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                raise self.error(code, name)

        return checked

    def error(self, code: int, name: str) -> CudaError:
        """The error for what a function returned."""
        said = [ctypes.c_char_p(), ctypes.c_char_p()]
        self.raw.cuGetErrorName(code, ctypes.byref(said[0]))
        self.raw.cuGetErrorString(code, ctypes.byref(said[1]))
        word, text = ((each.value or b"").decode(errors="replace") for each in said)
        return CudaError(code, f"{name}: {word or code} ({text})")

    def attribute(self, device: int, which: int) -> int:
        """An attribute of a device by its number in cuda.h."""
        value = ctypes.c_int()
        self.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    def capability(self, device: int) -> int:
        """Its compute capability: 90 for 9.0."""
        return 10 * self.attribute(device, _MAJOR) + self.attribute(device, _MINOR)


_lock = threading.Lock()
_driver: Driver | None = None
_found: list[DeviceInfo] | None = None


def driver() -> Driver:
    """NVIDIA's driver, loaded once per process."""
    global _driver
    runtimes.check_fork()
    if _driver is None:
        with _lock:
            if _driver is None:
                try:
                    _driver = Driver()
                except (OSError, AttributeError, CudaError) as error:
                    raise DeviceNotFoundError(f"device='cuda': NVIDIA's driver cannot be used ({error})") from error
                runtimes.in_use()
    return _driver


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """The GPUs that NVIDIA's driver lists, where kernels can be compiled for them."""
    global _found
    if not sys.platform.startswith("linux"):
        raise DeviceNotFoundError("device='cuda' is for Linux; elsewhere NVIDIA's driver brings OpenCL with it")
    known = driver()
    compiler = nvrtc.nvrtc(known.version)
    with _lock:
        if _found is None or refresh:
            try:
                _found = _asked(known, compiler)
            except CudaError as error:
                raise DeviceNotFoundError(f"device='cuda': NVIDIA's driver cannot be used ({error})") from error
        return _found


def _asked(known: Driver, compiler: nvrtc.Nvrtc) -> list[DeviceInfo]:
    """The GPUs that the compiler knows, too. Raises DeviceNotFoundError where it knows none of them."""
    count, found, too_old = ctypes.c_int(), list[DeviceInfo](), None
    known.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        try:
            compiler.target(known.capability(number))
        except DeviceNotFoundError as error:
            too_old = error
        else:
            found.append(_describe(known, number))
    if too_old is not None and not found:
        raise too_old
    return found


def number_of(info: DeviceInfo) -> int:
    """The driver's number of a device."""
    return int(info.id.rpartition(":")[2])


@dataclass(frozen=True)
class CudaStream:
    """A stream of the caller, by its address, and the driver's number of its GPU; usable as ``device=``."""

    address: int
    number: int


def info_of(number: int) -> DeviceInfo | None:
    """What is known of the GPU that CUDA programs call by a number; None where there is none."""
    return next((info for info in devices() if number_of(info) == number), None)


def place_of(address: int) -> tuple[int, int]:
    """The context that memory of a GPU belongs to, and the GPU's number. Raises CudaError for other memory.

    The context is 0 for memory of a pool or of PyTorch's expandable segments, which belongs to none.
    """
    context, number = ctypes.c_void_p(), ctypes.c_int()
    driver().cuPointerGetAttribute(ctypes.byref(context), _POINTER_CONTEXT, address)
    driver().cuPointerGetAttribute(ctypes.byref(number), _POINTER_DEVICE, address)
    return context.value or 0, number.value


def _describe(known: Driver, number: int) -> DeviceInfo:
    name, total = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
    known.cuDeviceGetName(name, _NAME_BYTES, number)
    known.cuDeviceTotalMem_v2(ctypes.byref(total), number)
    return DeviceInfo(
        id=f"cuda:0:{number}", name=name.value.decode(errors="replace").strip(), vendor="NVIDIA Corporation",
        platform="NVIDIA CUDA", version="OpenCL 3.0 CUDA", driver=version_of_module() or "unknown", kind="gpu",
        runtime="nvidia", compute_units=known.attribute(number, _UNITS),
        max_work_group=known.attribute(number, _WORK_GROUP), clock_mhz=known.attribute(number, _CLOCK) // 1000,
        local_bytes=known.attribute(number, _LOCAL), global_bytes=total.value, max_alloc_bytes=total.value // 4,
        fp64=True, fp16=False, subgroups=False, opencl_c="OpenCL C 1.2", executor="cuda",
    )  # fmt: skip


def version_of_module(root: Path = Path("/")) -> str:
    """The driver's version, such as "580.159.04", as the kernel's module says it, or NVML; empty where neither does."""
    with contextlib.suppress(OSError):
        said = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", (root / "proc/driver/nvidia/version").read_text())
        if said:
            return said[0]
    if root != Path("/"):
        return ""
    with contextlib.suppress(OSError, AttributeError):
        management = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(_NAME_BYTES)
        if management.nvmlInit_v2() == 0 and management.nvmlSystemGetDriverVersion(text, _NAME_BYTES) == 0:
            return text.value.decode(errors="replace")
    return ""


# Numbers of cuda.h.
_NON_BLOCKING, _NO_TIMES, _RELEASE_THRESHOLD, _MEMORY_TYPE = 1, 2, 4, 2
_LOCAL_ASKED, _ERROR_LOG, _ERROR_LOG_SIZE = 8, 5, 6
# Errors of a kernel, after which a context serves nobody any more: of addresses, instructions, time, assertions.
_LOST = (700, 702, 710, *range(714, 720))
_GROUP_CODES = (1, 701)  # CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
_LOG_BYTES = 8192
# Downloads up to this size pass through memory that the device reaches by itself. Larger ones the driver takes apart.
_STAGING = 8 << 20


class _PoolProperties(ctypes.Structure):
    """CUmemPoolProps of cuda.h."""

    _fields_ = [
        ("allocation", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
        ("security", ctypes.c_void_p), ("most", ctypes.c_size_t), ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    ]  # fmt: skip


class CudaMemory:
    """A block of the device's memory, or a part of one, which is kept for as long as its parts are."""

    __slots__ = ("_free", "_whole", "address")

    def __init__(self, address: int, free: Callable[[int], None] | None = None, whole: Any = None) -> None:
        self.address, self._free, self._whole = address, free, whole

    def release(self) -> None:
        free, self._free, self._whole = self._free, None, None
        if free is not None:
            free(self.address)

    __del__ = release


class CudaBuffer(DeviceBuffer):
    """Device memory through libcuda."""

    __slots__ = ()


class CudaKernel(CommonKernel):
    """A kernel whose arguments lie side by side, eight bytes each, where every launch reads them."""

    buffer = CudaBuffer

    __slots__ = ("_pointers", "_program", "_values", "arguments", "local_asked")

    def __init__(self, kernel: Any, name: str, slots: Sequence[Slot], program: CudaProgram, local_asked: int) -> None:
        super().__init__(kernel, name, slots)
        self._program = program  # whose module has to stay
        self.local_asked = local_asked
        count = max(len(self.slots), 1)
        values = self._values = (ctypes.c_uint64 * count)()
        first, move = ctypes.addressof(values), ctypes.memmove
        self._pointers = (ctypes.c_void_p * count)(*[first + 8 * index for index in range(count)])
        self.arguments = ctypes.addressof(self._pointers)

        def set_bytes(index: int, packed: bytes) -> None:
            move(first + 8 * index, packed, len(packed))

        def set_memory(index: int, memory: CudaMemory) -> None:
            values[index] = memory.address

        self._set_bytes, self._set_memory = set_bytes, set_memory


class CudaProgram(CommonProgram):
    """A module of the driver."""

    def __init__(self, module: int, log: str, ptx: str, executor: CudaExecutor) -> None:
        super().__init__(module, log, (CudaError, KeyError))
        self._executor = executor
        self._arguments, self._asked = nvrtc.entries(ptx), nvrtc.asked_bytes(ptx)

    def _bare(self, name: str) -> tuple[Any, int]:
        function, driver = ctypes.c_void_p(), self._executor.driver
        count, asked = self._arguments[name], self._asked[name]
        with self._executor.current():
            driver.cuModuleGetFunction(ctypes.byref(function), self.program, name.encode())
            if asked:
                driver.cuFuncSetAttribute(function, _LOCAL_ASKED, asked)
        return function.value, count

    def _wrap(self, kernel: Any, name: str, slots: Sequence[Slot]) -> CudaKernel:
        return CudaKernel(kernel, name, slots, self, self._asked[name])

    def __del__(self) -> None:
        self._executor.unload(self.program)


class _Span:
    """Two events of the stream around a launch, which others use after it; or none, where no times are taken."""

    __slots__ = ("begin", "end", "executor")

    def __init__(self, executor: CudaExecutor, begin: int, end: int) -> None:
        self.executor, self.begin, self.end = executor, begin, end

    def wait(self) -> None:
        if not self.end:
            self.executor._wait()
            return
        with self.executor.current():
            self.executor.driver.cuEventSynchronize(self.end)

    def __del__(self) -> None:
        if self.end:
            self.executor.events += (self.begin, self.end)


class CudaEvent(CommonEvent):
    """A queued launch."""

    __slots__ = ()

    def _nanoseconds(self) -> int:
        span, milliseconds = self._event, ctypes.c_float()
        if not span.end:
            return 0
        with span.executor.current():
            span.executor.driver.cuEventElapsedTime(ctypes.byref(milliseconds), span.begin, span.end)
        return int(milliseconds.value * 1e6)


class _Current:
    """Within it the executor's context is that of this thread; then the one that was, such as PyTorch's."""

    __slots__ = ("_context", "_driver")

    def __init__(self, driver: Any, context: int) -> None:
        self._driver, self._context = driver, context

    def __enter__(self) -> None:
        code = self._driver.raw.cuCtxPushCurrent_v2(self._context)
        if code:
            raise self._driver.error(code, "cuCtxPushCurrent")

    def __exit__(self, *error: object) -> None:
        self._driver.raw.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


class CudaExecutor(CommonExecutor):
    """Executor for one GPU through libcuda; see :class:`pyedmcl.device.executor.Executor`.

    It works in the primary context, which PyTorch, CuPy and others use, too, on a stream and from a pool of its own:
    what they keep for themselves is left alone.

    Parameters
    ----------
    info : DeviceInfo
        A device from :func:`pyedmcl.device.cuda.devices`.
    """

    buffer = CudaBuffer
    memory_codes = ("CUDA_ERROR_OUT_OF_MEMORY",)
    late_memory_codes = ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",)

    def __init__(self, info: DeviceInfo) -> None:
        self.driver: Any = driver()
        super().__init__(info, (CudaError,))
        self.nvrtc = nvrtc.nvrtc(self.driver.version)
        self.part_alignment = 256
        self.events: list[int] = []
        self._lost: list[str] = []  # what unmeasured() knows, too
        self._kept = ProgramCache(info) if quirks_for(info).keep_programs else None
        self._number = number_of(info)
        self._target = self.nvrtc.target(self.driver.capability(self._number))
        self._measured = True
        self._unmeasured: CudaExecutor | None = None
        self._staged = threading.Lock()
        self._pool: int | None = None
        held, stream, mark, staging = (ctypes.c_void_p() for _ in range(4))
        try:
            self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(held), self._number)
            assert held.value is not None
            self._context = held.value
            self._here = _Current(self.driver, self._context)
            with self._here:
                # It waits for no work on stream 0, nor does that for it.
                self.driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING)
                self.driver.cuEventCreate(ctypes.byref(mark), _NO_TIMES)
                self.driver.cuMemAllocHost_v2(ctypes.byref(staging), _STAGING)
                self._pool = self._own_pool()
        except CudaError as error:
            raise self.failure("the driver gave no context", error) from error
        self._queue, self._mark = stream.value, mark.value
        self._staging: Any = staging.value

    def _own_pool(self) -> int | None:
        """A pool that keeps no more of what was given back than other executors do; None where there are no pools."""
        if not self.driver.attribute(self._number, POOLS):
            return None
        pool, kept = ctypes.c_void_p(), ctypes.c_uint64(spare_bytes(self.info))
        properties = _PoolProperties(allocation=1, place=1, device=self._number)
        self.driver.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(properties))
        self.driver.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(kept))
        return pool.value

    def current(self) -> _Current:
        """Within it the executor's context is that of this thread."""
        return self._here

    def unmeasured(self) -> CudaExecutor:
        self._check()
        if self._unmeasured is None:
            self._unmeasured = copy.copy(self)  # of the same stream, on which it puts no events
            self._unmeasured._measured = False
        return self._unmeasured

    def close(self) -> None:
        queue, self._unmeasured = self._queue, None
        if not self._usable():  # of a lost context nothing can be given back
            self._queue = None
            return
        try:
            super().close()
        finally:
            context, self._queue, self._context = self._here, None, None
            with contextlib.suppress(CudaError), context:
                for event in (self._mark, *self.events):
                    self.driver.cuEventDestroy_v2(event)
                self.driver.cuMemFreeHost(self._staging)
                self.driver.cuStreamDestroy_v2(queue)
                if self._pool is not None:
                    self.driver.cuMemPoolDestroy(self._pool)
            self.driver.raw.cuDevicePrimaryCtxRelease_v2(self._number)

    def _check(self) -> None:
        super()._check()
        if self._lost:
            raise LaunchError(self._lost[0])

    def failure(self, what: str, error: Exception, *, memory: bool = False) -> DeviceMemoryError | LaunchError:
        failure = super().failure(what, error, memory=memory)
        if isinstance(error, CudaError) and error.code in _LOST:
            self._lost.append(
                f"{failure} The CUDA context of this process is lost with it, for PyTorch and CuPy, too: end the "
                "process, and begin anew."
            )
            return LaunchError(self._lost[0])
        return failure

    def _compile(self, source: str, flags: tuple[str, ...]) -> CudaProgram:
        defined = tuple(flag for flag in flags if flag.startswith("-D"))
        key = (*defined, self.nvrtc.version, self._target, f"CUDA {self.driver.version}", _digest())
        kept = self._kept.load(source, key) if self._kept else None
        if kept is not None:
            with contextlib.suppress(CudaError):
                return self._loaded(kept.decode(), "")
        try:
            ptx, log = self.nvrtc.ptx(nvrtc.cuda_text(source), self._target, defined)
            program = self._loaded(ptx, log)
        except (BuildError, CudaError) as error:
            raise self._refused(source, getattr(error, "log", "") or str(error)) from error
        if self._kept:
            self._kept.keep(source, key, ptx.encode())
        return program

    def _loaded(self, ptx: str, log: str) -> CudaProgram:
        """The program of PTX. Raises CudaError with what the driver's assembler says."""
        module, said = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(said), _LOG_BYTES)
        with self._here:
            try:
                self.driver.cuModuleLoadDataEx(ctypes.byref(module), ptx.encode() + b"\0", 2, options, values)
            except CudaError as error:
                raise CudaError(error.code, f"{error}\n{said.value.decode(errors='replace')}") from error
        assert module.value is not None
        return CudaProgram(module.value, log, ptx, self)

    def unload(self, module: int) -> None:
        """Give a program back, where there is something to give it back to."""
        if self._usable():
            with contextlib.suppress(CudaError), self._here:
                self.driver.raw.cuModuleUnload(module)

    def _usable(self) -> bool:
        """Whether the driver still knows what this executor made: it may be closed, lost, or another process's."""
        return self._queue is not None and not self._lost and os.getpid() == self._pid

    def _new_memory(self, nbytes: int) -> CudaMemory:
        address = ctypes.c_uint64()
        with self._here:
            if self._pool is None:
                self.driver.cuMemAlloc_v2(ctypes.byref(address), nbytes)
            else:
                self.driver.cuMemAllocFromPoolAsync(ctypes.byref(address), nbytes, self._pool, self._queue)
        return CudaMemory(address.value, self._free)

    def _free(self, address: int) -> None:
        if not self._usable():
            return
        with contextlib.suppress(CudaError), self._here:  # Python may be ending, and the driver with it
            if self._pool is None:
                self.driver.raw.cuMemFree_v2(address)
            else:  # what is queued still uses it
                self.driver.raw.cuMemFreeAsync(address, self._queue)

    def _part(self, memory: CudaMemory, offset: int, nbytes: int) -> CudaMemory:
        return CudaMemory(memory.address + offset, whole=memory)

    def _put(self, memory: CudaMemory, offset: int, array: np.ndarray[Any, Any]) -> None:
        source, kind = array.ctypes.data, ctypes.c_uint()
        with self._here:
            self.driver.cuMemcpyHtoDAsync_v2(memory.address + offset, source, array.nbytes, self._queue)
            # Other memory than the caller's pinned one has been read by now.
            if self.driver.raw.cuPointerGetAttribute(ctypes.byref(kind), _MEMORY_TYPE, source) == 0:
                self._wait_here()

    def _get(self, memory: CudaMemory, offset: int, array: np.ndarray[Any, Any]) -> None:
        address, into, nbytes = memory.address + offset, array.ctypes.data, array.nbytes
        with self._here:
            if nbytes > _STAGING:
                self.driver.cuMemcpyDtoHAsync_v2(into, address, nbytes, self._queue)
                self._wait_here()
                return
            with self._staged:
                self.driver.cuMemcpyDtoHAsync_v2(self._staging, address, nbytes, self._queue)
                self._wait_here()
                ctypes.memmove(into, self._staging, nbytes)

    def reaches(self, context: Any) -> bool:
        """Whether memory can be used here, by its context and GPU (:func:`place_of`)."""
        return context in ((self._context, self._number), (0, self._number))

    def _borrowed(self, memory: Any) -> CudaMemory:
        return CudaMemory(int(memory))

    def _wait(self) -> None:
        with self._here:
            self._wait_here()

    def _wait_here(self) -> None:
        # Sooner than to wait for the stream. Where another thread sets the mark anew, this one waits for its work, too.
        self.driver.cuEventRecord(self._mark, self._queue)
        self.driver.cuEventSynchronize(self._mark)

    def follow(self, queue: Any) -> None:
        """Have what is queued from now on wait for a stream of the caller, by its address. Raises LaunchError."""
        self._check()
        try:
            self._order(int(queue), self._queue)
        except CudaError as error:
            raise self.failure("the caller's stream cannot be waited for", error) from error

    def _order(self, first: int, then: int) -> None:
        """Have a stream wait for what is on another one by now."""
        with self._here, self._event() as event:
            self.driver.cuEventRecord(event, first)
            self.driver.cuStreamWaitEvent(then, event, 0)

    @contextlib.contextmanager
    def _event(self) -> Iterator[int]:
        event = self._new_event()
        try:
            yield event
        finally:
            self.events.append(event)

    def _new_event(self) -> int:
        """An event with times that nobody uses any more, or a new one."""
        try:
            return self.events.pop()
        except IndexError:
            event = ctypes.c_void_p()
            self.driver.cuEventCreate(ctypes.byref(event), 0)
            return int(event.value or 0)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> CudaEvent:
        """Queue a kernel of this thread, its arguments by name."""
        self._check()
        if not isinstance(kernel, CudaKernel):
            raise LaunchError(f"{kernel!r} is no kernel of this executor")
        kernel.set(arguments)
        local = (*(self._group(global_size, local_size) or (1,)), 1, 1)[:3]
        size = (*global_size, 1, 1)[:3]
        what = f"{kernel.name} with global size {tuple(global_size)} and local size {local_size} was refused"
        if any(total % part for total, part in zip(size, local, strict=True)):
            raise LaunchError(f"{what}: work-items are no whole groups")
        groups = [total // part for total, part in zip(size, local, strict=True)]
        driver, queue, begin, end = self.driver, self._queue, 0, 0
        try:
            with self._here:
                if self._measured:
                    begin, end = self._new_event(), self._new_event()
                    driver.cuEventRecord(begin, queue)
                driver.cuLaunchKernel(kernel.kernel, *groups, *local, kernel.local_asked, queue, kernel.arguments, None)
                if end:
                    driver.cuEventRecord(end, queue)
        except CudaError as error:
            failure = self.failure(what, error, memory=True)
            if error.code in _GROUP_CODES:
                failure.kernel, failure.work_group = kernel.name, math.prod(local)
            raise failure from error
        return CudaEvent(_Span(self, begin, end), self)


@functools.cache
def _digest() -> str:
    """What PTX follows from, beside a text and its compiler."""
    here = Path(__file__).parent
    parts = [(here / name).read_bytes() for name in ("opencl_c.cuh", "nvrtc.py")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
