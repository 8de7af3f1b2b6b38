"""Explain why a device is not seen, and how to mend it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import PyedmclError
from . import cuda as cuda_devices
from . import nvrtc, runtimes
from .info import DeviceInfo
from .quirks import POCL_FROM, quirks_for
from .sycl import Found, found

_PROCESSOR = f"for an x86-64 processor: pip install 'pyedmcl[cpu]'; for any other: {POCL_FROM}"
# NVIDIA's OpenCL compiles by it, from the first of these drivers on.
_NVVM, _NVVM_FROM = "libnvidia-nvvm.so.4", 510
_NODES = ("dev/dri/renderD*", "dev/nvidia[0-9]*", "dev/nvidiactl", "dev/kfd")


@dataclass(frozen=True)
class Finding:
    """One thing noticed."""

    # "ok", "info", "warning" or "error".
    level: str
    # What was found.
    what: str
    # What to do about it; empty where nothing is needed.
    how_to_mend: str = ""


def load_error(library: str) -> str | None:
    """Why the dynamic linker cannot load ``library``, in its words; None where it can."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return None


def _installed(distribution: str) -> bool:
    from importlib import metadata

    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _import_error() -> str | None:
    try:
        runtimes.opencl()
    except PyedmclError as error:
        return str(error)
    return None


def _devices() -> list[DeviceInfo]:
    from . import select

    return select.discover()


@dataclass(frozen=True)
class System:
    """What the doctor looks at; tests put their own in its place."""

    # Where ``etc/OpenCL/vendors`` and ``dev`` are.
    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    # Library name -> text of the failure, or None.
    load_error: Callable[[str], str | None] = load_error
    # Distribution name -> whether it is installed.
    installed: Callable[[str], bool] = _installed
    # Text of the failure to import PyOpenCL, or None.
    import_error: Callable[[], str | None] = _import_error
    # The devices that are seen.
    devices: Callable[[], Sequence[DeviceInfo]] = _devices
    # What dpctl lists.
    sycl: Callable[[], Found] = found
    # The GPUs that NVIDIA's driver lists without OpenCL.
    cuda: Callable[[], Sequence[DeviceInfo]] = cuda_devices.devices
    # Whether this user may open a device node for reading and writing.
    accessible: Callable[[Path], bool] = lambda path: os.access(path, os.R_OK | os.W_OK)

    @property
    def vendors(self) -> Path:
        return self.root / runtimes.SYSTEM_VENDORS.relative_to("/")

    def registered(self) -> dict[str, str]:
        """ICD file -> library, as a loader sees them without help."""
        return runtimes.registered(self.environ, self.root / "no-environment", self.vendors)

    def cuda_or_why(self) -> tuple[Sequence[DeviceInfo], str]:
        """The GPUs that can be used through CUDA; else why there are none."""
        try:
            return self.cuda(), ""
        except PyedmclError as error:
            return [], str(error)


def diagnose(system: System | None = None) -> list[Finding]:
    """Look for everything that commonly keeps a device from being seen; the gravest findings come first."""
    system = system or System()
    findings = [*_pyopencl(system), *_wheels(system)]
    if sys.platform.startswith("linux"):
        findings += [*_icd_files(system), *_nvidia(system), *_permissions(system), *_rusticl(system)]
    findings += [*_seen(system), *_sycl(system)]
    order = {"error": 0, "warning": 1, "info": 2, "ok": 3}
    return sorted(findings, key=lambda finding: order[finding.level])


def _pyopencl(system: System) -> list[Finding]:
    trouble = system.import_error()
    if trouble is None:
        return []
    # GPUs of NVIDIA need it not.
    return [Finding("info" if system.cuda_or_why()[0] else "error", trouble, "pip install --upgrade pyopencl")]


def _wheels(system: System) -> list[Finding]:
    intel = system.installed("intel-opencl-rt")
    findings = []
    if intel and not system.installed("intel-cmplr-lib-rt"):
        findings.append(
            Finding(
                "error",
                "the Intel CPU runtime (intel-opencl-rt) is installed without the libraries that it needs "
                "(libimf, libsvml, libirng, libintlc)",
                "pip install intel-cmplr-lib-rt",
            )
        )
    if not intel:
        findings.append(
            Finding(
                "info",
                "no processor runtime is installed with pip (intel-opencl-rt)",
                _PROCESSOR,
            )
        )
    return findings


def _icd_files(system: System) -> list[Finding]:
    named = system.environ.get("OCL_ICD_VENDORS")
    folder = named or str(system.vendors)
    entries = system.registered()
    intel = system.installed("intel-opencl-rt")
    if not entries and not intel and system.load_error(runtimes.NVIDIA_LIBRARY) is not None:
        if system.cuda_or_why()[0]:
            return []  # told with NVIDIA's
        mend = f"{_PROCESSOR}; for a GPU, install the OpenCL package of its driver"
        if named:
            mend = f"unset OCL_ICD_VENDORS, which hides {system.vendors}; else {mend}"
        return [Finding("error", f"no OpenCL runtime is registered: there is no .icd file in {folder}", mend)]
    findings = []
    for name, library in entries.items():
        trouble = system.load_error(library)
        if trouble is not None:
            findings.append(
                Finding(
                    "warning",
                    f"{name} names {library}, which cannot be loaded: {trouble}",
                    f"reinstall the package that owns {name} in {folder}, or remove that file",
                )
            )
    return findings


def _nvidia(system: System) -> list[Finding]:
    library = runtimes.NVIDIA_LIBRARY
    registered = any(Path(entry).name.startswith("libnvidia-opencl") for entry in system.registered().values())
    if registered or system.load_error(library) is None:
        unregistered = Finding(
            "info",
            f"NVIDIA's OpenCL driver ({library}) is here but not registered, as is usual in containers; pyedmcl "
            "registers it for itself",
            f"for other programs: echo {library} > {system.vendors / 'nvidia.icd'}",
        )
        return [*([] if registered else [unregistered]), *_nvidia_compiler(system)]
    usable, why_not = system.cuda_or_why()
    package = "install the driver's OpenCL part (libnvidia-compute or nvidia-opencl-icd); in a container set " \
              "NVIDIA_DRIVER_CAPABILITIES=compute,utility"  # fmt: skip
    missing = f"its OpenCL driver {library} cannot be loaded"
    if usable:
        return [Finding("info", f"there is an NVIDIA GPU, but {missing}: it is used through CUDA (device='cuda')",
                        f"nothing is needed; for OpenCL, {package}")]  # fmt: skip
    if list(system.root.glob("dev/nvidia[0-9]*")):
        return [Finding("error", f"there is an NVIDIA GPU, but {missing}, and CUDA cannot be used either: {why_not}",
                        f"{nvrtc.HOW_TO_GET_IT}, to use it without OpenCL; or {package}")]  # fmt: skip
    return []


def _nvidia_compiler(system: System) -> list[Finding]:
    """Whether NVIDIA's OpenCL lacks its compiler, with which it lists devices and refuses every kernel."""
    version = cuda_devices.version_of_module(system.root)
    trouble = system.load_error(_NVVM)
    if trouble is None or not version or int(version.partition(".")[0]) < _NVVM_FROM:
        return []
    return [
        Finding(
            "error",
            f"NVIDIA's OpenCL driver {version} is here without {_NVVM}, by which it compiles ({trouble}): it will "
            "refuse every kernel",
            f"add {_NVVM} to the container, since Apptainer leaves it out (a line in its nvliblist.conf, or --bind); "
            f"until then name device='cuda' ({nvrtc.HOW_TO_GET_IT})",
        )
    ]


def _rusticl(system: System) -> list[Finding]:
    """Mesa's rusticl shows drivers and double precision only where it is asked for them."""
    try:
        seen = [info for info in system.devices() if info.runtime == "rusticl"]
    except PyedmclError:
        return []  # reported with PyOpenCL
    findings = [
        Finding("info", f"{info.id}  {info.name} computes in float32 only, as rusticl does unless it is asked for more",
                "set RUSTICL_FEATURES=fp64, where float64 is needed")
        for info in seen if not info.fp64
    ]  # fmt: skip
    registered = any("rusticl" in Path(library).name.lower() for library in system.registered().values())
    if registered and not seen and not system.environ.get("RUSTICL_ENABLE"):
        findings.append(
            Finding("info", "Mesa's rusticl is registered, and shows no device unless it is told of which driver",
                    "for a GPU of AMD, set RUSTICL_ENABLE=radeonsi, for one of Intel RUSTICL_ENABLE=iris; for float64 "
                    "RUSTICL_FEATURES=fp64, too")
        )  # fmt: skip
    return findings


def _permissions(system: System) -> list[Finding]:
    findings = []
    for pattern in _NODES:
        for node in sorted(system.root.glob(pattern)):
            if system.accessible(node):
                continue
            if "nvidia" in node.name:
                mend = f"give this user access to {node} (see: ls -l {node})"
            else:
                mend = "sudo usermod -aG render,video $USER, then log in again"
            findings.append(Finding("warning", f"the GPU's device file {node} may not be opened by this user", mend))
    return findings


def _seen(system: System) -> list[Finding]:
    try:
        devices = system.devices()
    except PyedmclError:
        devices = []  # reported with PyOpenCL
        if not system.cuda_or_why()[0]:
            return []
    devices = [*devices, *(info for info in system.cuda_or_why()[0] if info not in devices)]
    if not devices:
        return [Finding("error", "no OpenCL device is seen", _PROCESSOR)]
    findings = []
    for info in devices:
        quirks = quirks_for(info)
        through = f", through CUDA: device='{info.executor}'" if info.executor == "cuda" else ""
        seen = f"{info.id}  {info.name} ({info.platform} {info.driver}{through})"
        if quirks.unusable is None:
            findings.append(Finding("ok", seen))
        else:
            findings.append(Finding("warning", f"{seen}: {quirks.unusable}", quirks.instead))
    return findings


def _sycl(system: System) -> list[Finding]:
    if not system.installed("dpctl"):
        return []  # nothing needs it
    try:
        listed = system.sycl()
    except PyedmclError as error:
        return [Finding("warning", str(error), "pip install --upgrade 'pyedmcl[sycl]'")]
    findings = [Finding("ok", f"{info.id}  {info.name} through SYCL (dpctl)") for info, _ in listed.devices]
    findings += [Finding("info", f"{name} cannot be used as device='sycl': {why}") for name, why in listed.left_out]
    if not findings:
        hidden = system.environ.get("ONEAPI_DEVICE_SELECTOR")
        mend = f"unset ONEAPI_DEVICE_SELECTOR, which is {hidden!r}" if hidden else _PROCESSOR
        findings.append(Finding("warning", "dpctl lists no device", mend))
    return findings
