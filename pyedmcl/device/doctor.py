"""Explain why a device is not seen, and how to mend it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import PyedmclError
from . import runtimes
from .info import DeviceInfo
from .quirks import POCL_FROM, quirks_for
from .sycl_devices import Found, found

_PROCESSOR = f"for an x86-64 processor: pip install 'pyedmcl[cpu]'; for any other: {POCL_FROM}"
_NODES = ("dev/dri/renderD*", "dev/nvidia[0-9]*", "dev/nvidiactl", "dev/kfd")


@dataclass(frozen=True)
class Finding:
    """One thing noticed.

    Attributes
    ----------
    level : str
        "ok", "info", "warning" or "error".
    what : str
        What was found.
    how_to_mend : str
        What to do about it; empty where nothing is needed.
    """

    level: str
    what: str
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
    from . import discover

    return discover.discover()


@dataclass(frozen=True)
class System:
    """What the doctor looks at; tests put their own in its place.

    Attributes
    ----------
    root : pathlib.Path
        Where ``etc/OpenCL/vendors`` and ``dev`` are.
    environ : mapping
    load_error : callable
        Library name -> text of the failure, or None.
    installed : callable
        Distribution name -> whether it is installed.
    import_error : callable
        Text of the failure to import PyOpenCL, or None.
    devices : callable
        The devices that are seen.
    sycl : callable
        What dpctl lists.
    accessible : callable
        Whether this user may open a device node for reading and writing.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    load_error: Callable[[str], str | None] = load_error
    installed: Callable[[str], bool] = _installed
    import_error: Callable[[], str | None] = _import_error
    devices: Callable[[], Sequence[DeviceInfo]] = _devices
    sycl: Callable[[], Found] = found
    accessible: Callable[[Path], bool] = lambda path: os.access(path, os.R_OK | os.W_OK)

    @property
    def vendors(self) -> Path:
        return self.root / runtimes.SYSTEM_VENDORS.relative_to("/")

    def registered(self) -> dict[str, str]:
        """ICD file -> library, as a loader sees them without help."""
        return runtimes.registered(self.environ, self.root / "no-environment", self.vendors)


def diagnose(system: System | None = None) -> list[Finding]:
    """Look for everything that commonly keeps a device from being seen; the gravest findings come first."""
    system = system or System()
    findings = [*_pyopencl(system), *_wheels(system)]
    if sys.platform.startswith("linux"):
        findings += [*_icd_files(system), *_nvidia(system), *_permissions(system)]
    findings += [*_seen(system), *_sycl(system)]
    order = {"error": 0, "warning": 1, "info": 2, "ok": 3}
    return sorted(findings, key=lambda finding: order[finding.level])


def _pyopencl(system: System) -> list[Finding]:
    trouble = system.import_error()
    if trouble is None:
        return []
    return [Finding("error", trouble, "pip install --upgrade pyopencl")]


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
    if any(Path(entry).name.startswith("libnvidia-opencl") for entry in system.registered().values()):
        return []
    nodes = bool(list(system.root.glob("dev/nvidia[0-9]*")))
    if system.load_error(library) is None:
        return [
            Finding(
                "info",
                f"NVIDIA's OpenCL driver ({library}) is here but not registered, as is usual in containers; pyedmcl "
                "registers it for itself",
                f"for other programs: echo {library} > {system.vendors / 'nvidia.icd'}",
            )
        ]
    if nodes:
        return [
            Finding(
                "error",
                f"there is an NVIDIA GPU, but its OpenCL driver {library} cannot be loaded",
                "install the driver's OpenCL part (libnvidia-compute or nvidia-opencl-icd); in a container set "
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            )
        ]
    return []


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
        return []  # reported with PyOpenCL
    if not devices:
        return [Finding("error", "no OpenCL device is seen", _PROCESSOR)]
    findings = []
    for info in devices:
        quirks = quirks_for(info)
        seen = f"{info.id}  {info.name} ({info.platform} {info.driver})"
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
