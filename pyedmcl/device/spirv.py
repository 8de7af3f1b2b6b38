"""OpenCL C to SPIR-V, where a compiler for it is installed: ocloc, or clang with the SPIR-V translator."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import BuildError

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
    """A SPIR-V module.

    Raises
    ------
    BuildError
        No compiler is installed, or it refuses the text; with its log.
    """
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
