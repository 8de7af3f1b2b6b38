"""Kernel texts as GPUs get them, compiled without one, and the resources they use.

For AMD with clang, for Intel with ocloc, for NVIDIA with NVRTC and ptxas, as through ``device="cuda"``. Clang also
compiles what NVRTC gets for AMD's GPUs, as HIP.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from portability_programs import Program

from pyedmcl.device import nvrtc
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.nvrtc import cuda_text
from pyedmcl.errors import BuildError
from pyedmcl.export.kernel_source import TARGETS as OFFLINE
from pyedmcl.kernels.build import local_bytes

# Target -> (number of the device library that states the processor, whether a wave has 64 lanes). The older library
# stands in where the installed set does not know a processor yet; it decides on a few instructions of built-ins only.
AMD = {"gfx90a": (("90a",), True), "gfx942": (("942", "940"), True), "gfx1100": (("1100", "1036"), False),
       "gfx1201": (("1201", "1100", "1036"), False)}  # fmt: skip
# Target -> device of ocloc.
INTEL = {"Gen9": "skl", "Xe-LP": "tgllp", "Xe-HPG": "dg2", "Xe-HPC": "pvc"}
# Target -> what is known of the GPU: a small one (T4), and one with all that quirks grant (H100).
NVIDIA = {"sm_75": OFFLINE["nvidia"], "sm_90": replace(OFFLINE["nvidia"], name="NVIDIA H100", compute_units=132)}
TARGETS = (*AMD, *INTEL, *NVIDIA)
#: Where HIP is installed.
HIP = Path(os.environ.get("ROCM_PATH", "/usr"))
#: The reason of a program that needs double precision where the target has none.
NO_FLOAT64 = "no float64 on this GPU"
_REMARK = re.compile(r"remark:\s+([A-Za-z][\w ]*?)(?: \[[\w/]+\])?: (\w+) \[-Rpass")
_AMD_FIELDS = {"VGPRs": "registers", "ScratchSize": "scratch_bytes", "LDS Size": "lds", "Occupancy": "occupancy",
               "VGPRs Spill": "spills"}  # fmt: skip
_LIBRARIES = ("opencl", "ocml", "ockl", "oclc_correctly_rounded_sqrt_on", "oclc_daz_opt_off", "oclc_finite_only_off",
              "oclc_unsafe_math_off", "oclc_abi_version_500")  # fmt: skip


def gpu(target: str) -> DeviceInfo:
    """A description of a GPU, enough for default parameters and quirks."""
    return NVIDIA.get(target) or OFFLINE[target]


@functools.cache
def nvidia_compiler() -> nvrtc.Nvrtc | None:
    """NVRTC, where it is installed; of several the newest."""
    found = max(nvrtc.libraries(), default=None)
    return None if found is None else nvrtc.Nvrtc(found[1])


def assembler() -> str | None:
    """ptxas, of a package or a toolkit."""
    packages = [f"{folder}/nvidia/cuda_nvcc/bin" for folder in sys.path if folder]
    return shutil.which("ptxas", path=os.pathsep.join([*packages, os.environ.get("PATH", "")]))


def device_libraries() -> Path | None:
    """Folder of AMD's device libraries (bitcode): the one that Debian's rocm-device-libs or a ROCm has."""
    found = [*(HIP / "lib").glob("*/amdgcn/bitcode"), *Path("/opt").glob("rocm*/amdgcn/bitcode")]
    return next((folder for folder in found if (folder / "opencl.bc").exists()), None)


def missing(target: str) -> str | None:
    """Why nothing can be compiled for ``target`` on this machine, or None."""
    if target in INTEL:
        return None if shutil.which("ocloc") else "ocloc is not installed (Debian: intel-opencl-icd)"
    if target in NVIDIA:
        if nvidia_compiler() is None:
            return f"NVRTC is not installed ({nvrtc.HOW_TO_GET_IT})"
        return None if assembler() else "ptxas is not installed (pip install nvidia-cuda-nvcc-cu12)"
    if not shutil.which("clang-19"):
        return "clang-19 is not installed"
    # Without the libraries every built-in stays a call to the unknown, and the reported registers and spills are wrong.
    return None if device_libraries() else "AMD's device libraries are not installed (Debian: rocm-device-libs)"


def compile_program(target: str, program: Program) -> dict[str, Any]:
    """Compile for a target and read what the tool reports.

    Returns
    -------
    dict
        ``ok``; ``spills`` (registers that moved to memory, of the program's worst kernel); where reported registers,
        occupancy, local and scratch memory; ``reason`` where it failed.
    """
    if target in NVIDIA:
        return _nvidia(target, program.code)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cl"
        file.write_text(program.code)
        if target in AMD:
            return _amd(target, file, program.options)
        return _intel(INTEL[target], file, program.options)


def _amd(target: str, file: Path, options: tuple[str, ...]) -> dict[str, Any]:
    language = ("-x", "cl", "-cl-std=CL1.2", *options, "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}")
    done = _clang("clang-19", target, language, file)
    if done.returncode:
        return {"ok": False, "reason": _first_error(done.stderr)}
    result: dict[str, Any] = {"ok": True}
    for name, value in _REMARK.findall(done.stderr):
        field = _AMD_FIELDS.get(name.strip())
        if field is not None:
            worst = min if field == "occupancy" else max
            result[field] = worst(result.get(field, int(value)), int(value))
    if "spills" not in result:
        return {"ok": False, "reason": "clang reported no resource usage"}
    return result


def _clang(clang: str, target: str, language: Sequence[str], file: Path) -> subprocess.CompletedProcess[str]:
    """Compile a file for one of AMD's GPUs; what is used of it stands in the remarks."""
    libraries = device_libraries()
    assert libraries is not None
    processors, wide = AMD[target]
    known = [name for name in processors if (libraries / f"oclc_isa_version_{name}.bc").exists()]
    switch = "on" if wide else "off"
    names = (*_LIBRARIES, f"oclc_isa_version_{(known or ['90a'])[0]}", f"oclc_wavefrontsize64_{switch}")
    linked = [part for name in names
              for part in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(libraries / f"{name}.bc"))]  # fmt: skip
    return subprocess.run(
        [clang, *language, "-nogpulib", "-O3", *linked, "-Rpass-analysis=kernel-resource-usage", "-S", str(file), "-o",
         str(file.with_suffix(".s"))],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def hip_compiler() -> str | None:
    """A clang, where HIP's headers are installed (Debian: libamdhip64-dev)."""
    if device_libraries() is None or not (HIP / "include" / "hip" / "hip_runtime.h").exists():
        return None
    return next(filter(shutil.which, ("clang-19", "clang-17", "clang-15")), None)


def hip_local_bytes(target: str, code: str) -> dict[str, tuple[int, int]]:
    """Of each kernel of a text, compiled as HIP for one of AMD's GPUs: bytes of local memory declared and there.

    Raises BuildError.
    """
    compiler = hip_compiler()
    assert compiler is not None
    # HIP takes what is not marked for the host's, and NVRTC for the device's.
    head, end = (f"#pragma clang force_cuda_host_device {word}\n" for word in ("begin", "end"))
    language = ("-x", "hip", "--cuda-device-only", "-std=c++17", f"--offload-arch={target}", "-ffp-contract=off",
                f"--rocm-path={HIP}")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.hip"
        file.write_text(f"#include <hip/hip_runtime.h>\n{head}{cuda_text(code)}{end}")
        done = _clang(compiler, target, language, file)
    if done.returncode:
        raise BuildError(_first_error(done.stderr), log=done.stderr, source=code)
    found = re.findall(r"Function Name: (\w+).*?LDS Size \[bytes/block\]: (\d+)", done.stderr, re.DOTALL)
    return {name: (local_bytes(_plain(code), name), int(there)) for name, there in found}


def _plain(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if not line.startswith("#line"))


def ptx_of(target: str, code: str) -> str:
    """PTX of a text, which has all kernels with the local memory that they declare. Raises BuildError."""
    compiler = nvidia_compiler()
    assert compiler is not None
    ptx, log = compiler.ptx(cuda_text(code), target.replace("sm_", "compute_"))
    declared = {entry: local_bytes(_plain(code), entry) for entry in nvrtc.entries(ptx)}
    static, asked = nvrtc.shared_bytes(ptx), nvrtc.asked_bytes(ptx)
    got = {entry: static[entry] + asked[entry] for entry in declared}
    if got != declared:
        raise BuildError(f"local memory of {declared} bytes is declared, and {got} are there")
    if log:
        raise BuildError(f"NVRTC warns: {log}")
    return ptx


def _nvidia(target: str, code: str) -> dict[str, Any]:
    try:
        ptx = ptx_of(target, code)
    except BuildError as error:
        return {"ok": False, "reason": _first_error(error.log) or str(error)[:200]}
    done = subprocess.run([str(assembler()), f"-arch={target}", "-v", "/dev/stdin", "-o", os.devnull],
                          input=ptx, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    if done.returncode:
        return {"ok": False, "reason": _first_error(done.stderr)}
    lds = max((nvrtc.shared_bytes(ptx)[name] + asked for name, asked in nvrtc.asked_bytes(ptx).items()), default=0)
    spilt = [int(stored) // 4 for stored in re.findall(r"(\d+) bytes spill stores", done.stderr)]
    return {"ok": True, "spills": max(spilt, default=0), "lds": lds,
            "registers": max(map(int, re.findall(r"Used (\d+) registers", done.stderr)))}  # fmt: skip


def _intel(device: str, file: Path, options: tuple[str, ...]) -> dict[str, Any]:
    done = subprocess.run(
        ["ocloc", "compile", "-file", file.name, "-device", device, "-options", " ".join(("-cl-std=CL1.2", *options)),
         "--format", "zebin", "-out_dir", "."],
        cwd=file.parent, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    log = done.stdout + done.stderr
    binaries = sorted(file.parent.glob("*.bin"))
    if done.returncode or not binaries:
        if "cl_khr_fp64" in log or "double type is not supported" in log.lower():
            return {"ok": False, "reason": NO_FLOAT64}
        silent = f"ocloc ended with code {done.returncode}, without a message"
        return {"ok": False, "reason": _first_error(log) or silent}
    info = _section(binaries[0].read_bytes(), ".ze_info").partition("kernels_misc_info")[0]
    # The symbol table counts as a kernel; its name says so.
    kernels = [part for part in info.split("  - name:")[1:] if "Symbol_Table" not in part.partition("\n")[0]]
    result: dict[str, Any] = {
        "ok": True, "spills": max((int(n) for n in re.findall(r"spilled around (\d+)", log)), default=0),
    }  # fmt: skip
    for field, name in (("simd", "simd_size"), ("registers", "grf_count"), ("lds", "slm_size")):
        values = [int(n) for part in kernels for n in re.findall(rf"{name}:\s+(\d+)", part)]
        if values:
            result[field] = min(values) if field == "simd" else max(values)
    scratch = [int(n) for part in kernels for n in re.findall(r"type:\s+scratch\s+usage:\s+\w+\s+size:\s+(\d+)", part)]
    result["scratch_bytes"] = max(scratch, default=0)
    return result


def _first_error(log: str) -> str:
    errors = (line.strip()[:200] for line in log.splitlines() if "error" in line.lower() and "code:" not in line)
    return next(errors, "")


def _section(binary: bytes, wanted: str) -> str:
    """The text of a section of a 64-bit ELF file; empty where there is none."""
    (table,) = struct.unpack_from("<Q", binary, 40)
    size, count, names_at = struct.unpack_from("<HHH", binary, 58)
    headers = [struct.unpack_from("<IIQQQQ", binary, table + i * size) for i in range(count)]
    names = binary[headers[names_at][4] :]
    for name, _, _, _, offset, length in headers:
        if names[name : names.index(b"\0", name)].decode() == wanted:
            return binary[offset : offset + length].decode()
    return ""
