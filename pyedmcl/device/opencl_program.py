"""Programs and kernels through PyOpenCL: compiling with the driver's log, and arguments that are set once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from . import opencl_devices, runtimes
from .buffers import DeviceBuffer
from .common_program import CommonKernel, CommonProgram
from .info import DeviceInfo
from .slots import Slot


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
    device = opencl_devices.handle(info)
    program = None
    try:
        program = bare_program(cl.Context([device]), source)
        program._build(options=" ".join(flags).encode())
    except cl.Error as error:
        return (log_of(program, device) if program is not None else "") or str(error)
    return log_of(program, device)
