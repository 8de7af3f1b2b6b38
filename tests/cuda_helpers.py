"""NVIDIA's driver for tests without a GPU: a libcuda that computes nothing, and a compiler that writes heads only."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

from pyedmcl.device.nvrtc import Nvrtc
from pyedmcl.errors import BuildError

SOURCE = Path(__file__).parent / "device" / "fake_cuda.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")


class FakeState(ctypes.Structure):
    """What the driver notes, and what tests have go wrong; see fake_cuda.c."""

    _fields_ = [
        ("launches", ctypes.c_ulonglong), ("held", ctypes.c_ulonglong), ("most", ctypes.c_ulonglong),
        ("grid", ctypes.c_ulonglong * 6), ("local_memory", ctypes.c_ulonglong), ("arguments", ctypes.c_ulonglong * 8),
        ("kernel_error", ctypes.c_int), ("without_context", ctypes.c_int), ("depth", ctypes.c_int),
        ("limit", ctypes.c_ulonglong), ("pools", ctypes.c_int),
        ("recorded_on", ctypes.c_ulonglong), ("waited_for", ctypes.c_ulonglong), ("lost", ctypes.c_int),
    ]  # fmt: skip


def fake_library(folder: Path) -> Path:
    """The driver's file, compiled in a folder. Its name is not libcuda's, which NVRTC would look for and call."""
    path = folder / "fake_cuda.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return path


def state_of(path: Path) -> FakeState:
    return FakeState.in_dll(ctypes.CDLL(str(path)), "fake")


class HeadsOnly(Nvrtc):
    """A compiler whose PTX has the heads of kernels only, in the place of NVRTC."""

    def __init__(self) -> None:
        self.version, self._targets, self.compiled = "0.0", [50, 90], 0

    def ptx(self, text, target, options=()):
        self.compiled += 1
        if "does_not_exist" in text:
            raise BuildError("refused", log='error: identifier "does_not_exist" is undefined', source=text)
        local = 60 << 10 if "LOCAL_60_KB" in text else 0
        heads = ""
        for name, taken in re.findall(r"__global__\s[^{;]*?(\w+)\s*\(([^()]*)\)\s*\{", text):
            count = taken.count(",") + bool(taken.strip())
            heads += f"// local memory of {name}: {local} bytes\n" if local else ""
            heads += f".visible .entry {name}(\n{','.join(['.param .u64 p'] * count)}\n)\n{{ret;}}\n"
        return heads, ""
