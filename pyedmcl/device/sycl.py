"""The executor on dpctl: OpenCL C or SPIR-V on an in-order, profiled SYCL queue."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BuildError, DeviceNotFoundError, LaunchError
from . import opencl, runtimes
from .common import CommonExecutor
from .executor import Argument, Kernel
from .info import DeviceInfo, Slot
from .memory import DeviceBuffer
from .opencl import log_on_twin
from .programs import CommonEvent, CommonKernel, CommonProgram

# OpenCL C to SPIR-V, where a compiler for it is installed: ocloc, or clang with the SPIR-V translator.


_VERSIONS = range(25, 13, -1)
HOW_TO_GET_ONE = (
    "ocloc (Debian: intel-opencl-icd), or clang and llvm-spirv of one version (Debian: clang-15, llvm-spirv-15)"
)


def _pair() -> tuple[str, str] | None:
    """clang and llvm-spirv of the same version."""
    for suffix in (*(f"-{version}" for version in _VERSIONS), ""):
        programs = shutil.which(f"clang{suffix}"), shutil.which(f"llvm-spirv{suffix}")
        if programs[0] and programs[1]:
            return programs[0], programs[1]
    return None


def missing() -> str | None:
    """Why nothing can be compiled to SPIR-V here, and what to install; None where a compiler is there."""
    if shutil.which("ocloc") or _pair():
        return None
    return f"no compiler for SPIR-V is installed; one of these is needed: {HOW_TO_GET_ONE}"


def compile_spirv(text: str, options: Sequence[str]) -> bytes:
    """A SPIR-V module."""
    ocloc, pair, why = shutil.which("ocloc"), _pair(), missing()
    if why is not None:
        raise BuildError(why)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.cl").write_text(text)
        if pair:
            # Passes of LLVM would leave instructions that the translator does not know.
            front = ["-c", "-x", "cl", "-target", "spir64", "-emit-llvm", "-Xclang", "-finclude-default-header", "-O2",
                     "-Xclang", "-disable-llvm-passes", *options]  # fmt: skip
            _run([pair[0], *front, "kernel.cl", "-o", "kernel.bc"], place, text)
            _run([pair[1], "--spirv-max-version=1.2", "kernel.bc", "-o", "kernel.spv"], place, text)
        else:
            arguments = ["-options", " ".join(options), "-output_no_suffix", "-output", "kernel", "-out_dir", "."]
            _run([str(ocloc), "compile", "-file", "kernel.cl", "-spv_only", "-device", "skl", *arguments], place, text)
        modules = sorted(place.glob("*.spv"))
        if not modules:
            raise BuildError("the compiler for SPIR-V wrote nothing", source=text)
        return modules[0].read_bytes()


def _run(command: list[str], place: Path, text: str) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        log = done.stdout + done.stderr
        raise BuildError(f"{Path(command[0]).name} refused a kernel:\n{log[-4000:]}", log=log, source=text)


# The devices of this machine that a SYCL queue reaches, as dpctl lists them.
#
# dpctl compiles OpenCL C on its OpenCL back end only, so each device that is listed here is an OpenCL device, too: its
# twin, whose description it takes but for the id. Quirks, tuned parameters and stores are therefore those of the twin.


_lock = threading.Lock()
_found: Found | None = None


@dataclass(frozen=True)
class Found:
    """What dpctl lists."""

    # list of (DeviceInfo, dpctl.SyclDevice). Those that can be opened.
    devices: list[tuple[DeviceInfo, Any]]
    # list of (str, str). A line for each of the others, and why.
    left_out: list[tuple[str, str]]
    # list of (DeviceInfo, dpctl.SyclDevice). Those that can be opened with programs in SPIR-V.
    spirv: list[tuple[DeviceInfo, Any]] = field(default_factory=list)


def devices(refresh: bool = False) -> list[DeviceInfo]:
    """The devices that can be opened, with the ids of their OpenCL twins behind ``sycl:``."""
    return [info for info, _ in found(refresh).devices]


def spirv_devices(refresh: bool = False) -> list[DeviceInfo]:
    """The devices that can be opened with programs in SPIR-V, those of Level Zero before the same ones of OpenCL."""
    listed = [info for info, _ in found(refresh).spirv]
    why = missing()
    if why is not None:
        raise DeviceNotFoundError(f"device='spirv': {why}")
    return listed


def handle(info: DeviceInfo) -> Any:
    """dpctl's device behind ``info``."""
    for known, device in (*found().devices, *found().spirv):
        if known == info:
            return device
    raise DeviceNotFoundError(f"the device {info.name!r} ({info.id}) is not on this machine, as far as dpctl sees")


def found(refresh: bool = False) -> Found:
    """What dpctl lists; asked once per process."""
    global _found
    dpctl = runtimes.sycl()
    twins = opencl.devices(refresh)
    with _lock:
        if _found is None or refresh:
            _found = paired(dpctl.get_devices(), twins)
        return _found


def paired(listed: Sequence[Any], twins: Sequence[DeviceInfo]) -> Found:
    """Each device that dpctl lists with its twin, the n-th of equal ones with the n-th."""
    result = Found([], [])
    free = list(twins)
    for device in listed:
        twin = next((info for info in free if _is_twin(device, info)), None)
        reason = _why_not(device, twin)
        if twin is not None:
            free.remove(twin)
        if reason or twin is None:
            result.left_out.append((f"{device.filter_string}  {device.name} ({device.driver_version})", reason))
        else:
            result.devices.append((replace(twin, id=f"sycl:{twin.id}", executor="sycl"), device))
    result.spirv.extend(_with_spirv(listed, twins, result.devices))
    for devices_of in (result.devices, result.spirv):
        devices_of.sort(key=lambda entry: [int(part) for part in entry[0].id.split(":")[1:]])
    return result


def _with_spirv(
    listed: Sequence[Any], twins: Sequence[DeviceInfo], opened: Sequence[tuple[DeviceInfo, Any]]
) -> list[tuple[DeviceInfo, Any]]:
    """Devices of Level Zero with the descriptions of OpenCL devices of their names, then the others of ``opened``."""
    mine: list[tuple[DeviceInfo, Any]] = []
    free = list(twins)
    for device in listed:
        twin = next((info for info in free if device.name.strip() == info.name), None)
        if device.backend.name == "level_zero" and device.has_aspect_usm_device_allocations and twin is not None:
            free.remove(twin)
            mine.append((twin, device))
    taken = [twin.id for twin, _ in mine]
    mine += [(info, device) for info, device in opened if info.id.removeprefix("sycl:") not in taken]
    return [(replace(info, id=f"spirv:{info.id.removeprefix('sycl:')}", executor="spirv"), device)
            for info, device in mine]  # fmt: skip


def _is_twin(device: Any, info: DeviceInfo) -> bool:
    return bool(
        device.backend.name == "opencl"
        and device.sycl_platform.name.strip() == info.platform
        and device.name.strip() == info.name
        and device.driver_version.strip() == info.driver
    )


def _why_not(device: Any, twin: DeviceInfo | None) -> str:
    """Why a device cannot be opened; empty where it can."""
    if device.backend.name != "opencl":
        return (
            f"dpctl compiles OpenCL C on its OpenCL back end only, and this is its {device.backend.name} back end; "
            "the same device under OpenCL serves where its OpenCL runtime is installed"
        )
    if not device.has_aspect_usm_device_allocations:
        return "its OpenCL runtime has no unified shared memory (USM), without which dpctl can allocate nothing"
    if twin is None:
        return "PyOpenCL does not see the same device, so nothing is known of it"
    return ""


_CTYPES = {
    "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16, "H": ctypes.c_uint16, "i": ctypes.c_int32,
    "I": ctypes.c_uint32, "l": ctypes.c_int64, "L": ctypes.c_uint64, "q": ctypes.c_int64, "Q": ctypes.c_uint64,
    "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip
# dpctl's errors have no code and mostly no text.
_HINT = "dpctl keeps the reason to itself; with DPCTL_VERBOSITY=warning it prints it"


def binary_compiler_of(dpctl: Any) -> Callable[..., Any]:
    """dpctl's function that takes SPIR-V, whose name and module differ between its versions."""
    return _function_of(dpctl, "spirv", "takes SPIR-V")


def errors_of(dpctl: Any) -> tuple[type[Exception], ...]:
    """What dpctl raises: its own errors, and those of the C++ library that it passes on."""
    modules = (dpctl, dpctl.memory, *(getattr(dpctl, name) for name in ("program", "compiler") if hasattr(dpctl, name)))
    classes = [value for module in modules for name, value in vars(module).items()
           if name.endswith("Error") and isinstance(value, type) and issubclass(value, Exception)]  # fmt: skip
    return (*dict.fromkeys(classes), RuntimeError, ValueError)


def compiler_of(dpctl: Any) -> Callable[..., Any]:
    """dpctl's function that compiles OpenCL C, whose name and module differ between its versions."""
    return _function_of(dpctl, "source", "compiles OpenCL C")


def _function_of(dpctl: Any, what: str, does: str) -> Callable[..., Any]:
    for name in (f"create_kernel_bundle_from_{what}", f"create_program_from_{what}"):
        for module in ("compiler", "program"):
            function = getattr(getattr(dpctl, module, None), name, None)
            if function is not None:
                entry: Callable[..., Any] = function
                return entry
    raise BuildError(f"dpctl {dpctl.__version__} has no function that {does}; pip install 'pyedmcl[sycl]'")


class LateFree:
    """Memory that was given back while the queue may still use it.

    A SYCL queue does not keep the memory of what is queued on it, and freeing it may wait for the queue or not: so it
    is freed once what was queued before has ended.

    Attributes
    ----------
    last
        The event that was queued last.
    """

    def __init__(self, complete: Any) -> None:
        self.last: Any = None
        self._pid = os.getpid()
        self._complete = complete
        self._waiting: deque[tuple[Any, Any]] = deque()

    def give(self, memory: Any) -> None:
        if self.last is not None and not self._ended(self.last):
            self._waiting.append((self.last, memory))

    def sweep(self) -> None:
        """Free what nothing uses any more. No lock is taken, since the collector of garbage may call :meth:`give`."""
        while self._waiting:
            try:
                entry = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            if not self._ended(entry[0]):
                self._waiting.appendleft(entry)
                return

    def end(self, queue: Any) -> None:
        """Wait for the queue, after which everything may be freed at once: events cannot be asked while Python ends."""
        if os.getpid() == self._pid:  # in a fork the queue never ends
            queue.wait()
        self.last = None
        self._waiting.clear()

    def _ended(self, event: Any) -> bool:
        return bool(event.execution_status == self._complete)


class UsmMemory:
    """A block of the device's memory, as :class:`pyedmcl.device.memory.DeviceBuffer` holds it."""

    __slots__ = ("_late", "usm")

    def __init__(self, usm: Any, late: LateFree) -> None:
        self.usm = usm
        self._late = late

    def release(self) -> None:
        usm, self.usm = self.usm, None
        if usm is not None:
            self._late.give(usm)

    __del__ = release


class _Part:
    """Memory from a byte on, as dpctl takes it."""

    def __init__(self, usm: Any, offset: int, nbytes: int, queue: Any) -> None:
        address, read_only = usm.__sycl_usm_array_interface__["data"]
        self.__sycl_usm_array_interface__ = {
            "data": (address + offset, read_only), "shape": (nbytes,), "strides": None, "typestr": "|u1", "version": 1,
            "syclobj": queue,
        }  # fmt: skip


class SyclBuffer(DeviceBuffer):
    """Device memory through dpctl."""

    __slots__ = ()


class SyclKernel(CommonKernel):
    """A kernel of dpctl, whose arguments go with each launch."""

    buffer = SyclBuffer

    __slots__ = ("values",)

    def __init__(self, kernel: Any, name: str, slots: Sequence[Slot]) -> None:
        super().__init__(kernel, name, slots)
        self.values: list[Any] = [None] * len(self.slots)
        types = [_CTYPES[slot.dtype.char] for slot in self.slots]

        def set_bytes(index: int, packed: bytes) -> None:
            self.values[index] = types[index].from_buffer_copy(packed)

        def set_memory(index: int, memory: UsmMemory) -> None:
            self.values[index] = memory.usm

        self._set_bytes, self._set_memory = set_bytes, set_memory

    def forget_memory(self) -> None:
        """Hold no memory after a launch, so that what is given back is freed."""
        for index, slot in enumerate(self.slots):
            if slot.is_buffer:
                self.values[index] = None
                self._held[index] = None


class SyclProgram(CommonProgram):
    """A source that dpctl compiled."""

    def _bare(self, name: str) -> tuple[Any, int]:
        if not self.program.has_sycl_kernel(name):  # without the question, dpctl gives a kernel that crashes
            raise ValueError("dpctl finds none of this name")
        kernel = self.program.get_sycl_kernel(name)
        return kernel, kernel.num_args

    def _wrap(self, kernel: Any, name: str, slots: Sequence[Slot]) -> SyclKernel:
        return SyclKernel(kernel, name, slots)


class SyclEvent(CommonEvent):
    """A queued launch."""

    __slots__ = ()

    def _nanoseconds(self) -> int:
        return int(self._event.profiling_info_end - self._event.profiling_info_start)


class SyclExecutor(CommonExecutor):
    """Executor for one device through dpctl; see :class:`pyedmcl.device.executor.Executor`.

    Parameters
    ----------
    info : DeviceInfo
        A device from :func:`pyedmcl.device.sycl.devices`.
    context : dpctl.SyclContext, optional
        The caller's, else a new one. The queue is one of ours in any case: in order, and with times.
    """

    buffer = SyclBuffer
    memory_codes = ("USM allocation failed",)
    late_memory_codes = ()

    def __init__(self, info: DeviceInfo, context: Any = None) -> None:
        self.dpctl: Any = runtimes.sycl()
        super().__init__(info, errors_of(self.dpctl))
        self._build = compiler_of(self.dpctl)
        self._late = LateFree(self.dpctl.event_status_type.complete)
        self._order = threading.Lock()  # what was queued last must be known as such
        device = handle(info)
        try:
            self._context = self.dpctl.SyclContext(device) if context is None else context
            # By default a queue is neither in order nor does it measure times.
            self._queue = self.dpctl.SyclQueue(self._context, device, property=["in_order", "enable_profiling"])
        except self.errors as error:
            raise self.failure("SYCL gave no queue", error) from error
        weakref.finalize(self, self._late.end, self._queue)

    def _compile(self, source: str, flags: tuple[str, ...]) -> SyclProgram:
        try:
            program = self._build(self._queue, source, " ".join(flags))
        except self.errors as error:
            twin = replace(self.info, id=self.info.id.removeprefix("sycl:"), executor="opencl")
            raise self._refused(source, log_on_twin(twin, source, flags) or f"{error} ({_HINT})") from error
        return SyclProgram(program, "", self.errors)

    def _new_memory(self, nbytes: int) -> UsmMemory:
        self._late.sweep()
        try:
            return self._usm(nbytes)
        except self.errors:
            self._wait()  # what was given back can be freed then
            return self._usm(nbytes)

    def _usm(self, nbytes: int) -> UsmMemory:
        return UsmMemory(self.dpctl.memory.MemoryUSMDevice(nbytes, queue=self._queue), self._late)

    def _put(self, memory: UsmMemory, offset: int, array: np.ndarray[Any, Any]) -> None:
        self._queue.memcpy(self._from(memory, offset, array.nbytes), array, array.nbytes)

    def _get(self, memory: UsmMemory, offset: int, array: np.ndarray[Any, Any]) -> None:
        self._queue.memcpy(array, self._from(memory, offset, array.nbytes), array.nbytes)

    def _borrowed(self, memory: Any) -> UsmMemory:
        return UsmMemory(memory, self._late)

    def _from(self, memory: UsmMemory, offset: int, nbytes: int) -> Any:
        if not offset:
            return memory.usm
        return self.dpctl.memory.as_usm_memory(_Part(memory.usm, offset, nbytes, self._queue))

    def _wait(self) -> None:
        self._queue.wait()
        self._late.sweep()

    def follow(self, queue: Any) -> None:
        """Have what is queued from now on wait for all that is on ``queue`` by now. Raises LaunchError."""
        self._check()
        try:
            self._queue.submit_barrier([queue.submit_barrier()])
        except self.errors as error:
            raise self.failure("the caller's queue cannot be waited for", error) from error

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> SyclEvent:
        """Queue a kernel of this thread, its arguments by name."""
        self._check()
        if not isinstance(kernel, SyclKernel):
            raise LaunchError(f"{kernel!r} is no kernel of this executor")
        kernel.set(arguments)
        group = self._group(global_size, local_size)
        # SYCL counts dimensions from the slowest, OpenCL from the fastest.
        sizes = [int(size) for size in reversed(global_size)]
        local = None if group is None else [int(size) for size in reversed(group)]
        try:
            with self._order:
                event = self._late.last = self._queue.submit_async(kernel.kernel, kernel.values, sizes, local)
        except self.errors as error:
            failure = self.failure(
                f"{kernel.name} with global size {tuple(global_size)} and local size {local_size} was refused "
                f"({_HINT})",
                error,
            )
            if group is not None and all(size % part == 0 for size, part in zip(global_size, group, strict=True)):
                failure.kernel, failure.work_group = kernel.name, math.prod(group)
            raise failure from error
        finally:
            kernel.forget_memory()
        self._late.sweep()
        return SyclEvent(event, self)


class SpirvExecutor(SyclExecutor):
    """As :class:`SyclExecutor`, for queues that take SPIR-V only: programs are compiled to it by a tool of the system.
    """

    def _compile(self, source: str, flags: tuple[str, ...]) -> SyclProgram:
        # What asks for registers is for the compiler behind SPIR-V, all else for the one before it.
        behind = tuple(flag for flag in flags if flag.startswith("-cl-intel-"))
        try:
            binary = compile_spirv(source, [flag for flag in flags if flag not in behind])
            program = binary_compiler_of(self.dpctl)(self._queue, binary, " ".join(behind))
        except self.errors as error:
            raise self._refused(source, f"{error} ({_HINT})") from error
        return SyclProgram(program, "", self.errors)
