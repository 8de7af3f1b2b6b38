"""The doctor on machines that are put together for it, one fault at a time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from device_helpers import LLVMPIPE, NVIDIA, POCL30, POCL31, POCL_BROKEN, vendors

from pyedmcl.device import doctor, runtimes
from pyedmcl.device.info import DeviceInfo
from pyedmcl.errors import DeviceNotFoundError

CUDA = replace(NVIDIA, id="cuda:0:0", executor="cuda", driver="580.1")


def no_cuda() -> list[DeviceInfo]:
    raise DeviceNotFoundError("NVIDIA's driver cannot be used (libcuda.so.1: cannot open shared object file)")


def system(root: Path, *, broken: dict[str, str] | None = None, **changes: object) -> doctor.System:
    """A healthy machine with Intel's wheels and no GPU, but for the changes."""
    broken = {runtimes.NVIDIA_LIBRARY: "not found", **(broken or {})}
    values: dict[str, object] = {
        "root": root,
        "environ": {},
        "load_error": lambda library: broken.get(library) or None,
        "installed": lambda name: name in ("intel-opencl-rt", "intel-cmplr-lib-rt"),
        "import_error": lambda: None,
        "devices": lambda: [POCL31],
        "accessible": lambda path: True,
        "cuda": no_cuda,
    }
    return doctor.System(**{**values, **changes})  # type: ignore[arg-type]


def only(findings: list[doctor.Finding]) -> doctor.Finding:
    found = [finding for finding in findings if finding.level != "ok"]
    assert len(found) == 1, found
    return found[0]


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ICD files and device nodes are Linux's")


def test_doctor_has_nothing_to_say_about_a_healthy_machine(tmp_path: Path) -> None:
    findings = doctor.diagnose(system(tmp_path))
    assert [finding.level for finding in findings] == ["ok"]
    assert "pthread-AMD EPYC" in findings[0].what


@linux
def test_doctor_no_runtime_at_all(tmp_path: Path) -> None:
    findings = doctor.diagnose(system(tmp_path, installed=lambda name: False, devices=lambda: []))
    text = " ".join(finding.what for finding in findings if finding.level == "error")
    assert "no OpenCL runtime is registered" in text
    assert "no OpenCL device is seen" in text
    assert any("pyedmcl[cpu]" in finding.how_to_mend for finding in findings)


@linux
def test_doctor_nvidia_driver_without_registration(tmp_path: Path) -> None:
    finding = only(doctor.diagnose(system(tmp_path, broken={runtimes.NVIDIA_LIBRARY: ""})))
    assert "not registered" in finding.what
    assert "nvidia.icd" in finding.how_to_mend
    vendors(tmp_path / "etc/OpenCL/vendors", nvidia=runtimes.NVIDIA_LIBRARY)
    assert [f.level for f in doctor.diagnose(system(tmp_path, broken={runtimes.NVIDIA_LIBRARY: ""}))] == ["ok"]


@linux
def test_doctor_nvidia_gpu_without_driver(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").write_text("")
    finding = only(doctor.diagnose(system(tmp_path)))
    assert finding.level == "error"
    assert "NVIDIA_DRIVER_CAPABILITIES" in finding.how_to_mend and "pyedmcl[cuda]" in finding.how_to_mend
    assert "libcuda.so.1: cannot open" in finding.what


@linux
def test_doctor_nvidia_gpu_without_opencl_is_used_through_cuda(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").write_text("")
    usable = {"cuda": lambda: [CUDA], "installed": lambda name: False}
    findings = doctor.diagnose(system(tmp_path, devices=lambda: [CUDA], **usable))  # type: ignore[arg-type]
    assert {finding.level for finding in findings} == {"info", "ok"}
    assert any("used through CUDA" in finding.what for finding in findings)
    assert sum("device='cuda'" in finding.what for finding in findings if finding.level == "ok") == 1

    def devices() -> list[DeviceInfo]:
        raise DeviceNotFoundError("PyOpenCL cannot be imported")

    missing = system(tmp_path, import_error=lambda: "no PyOpenCL", devices=devices, **usable)  # type: ignore[arg-type]
    findings = doctor.diagnose(missing)
    assert {finding.level for finding in findings} == {"info", "ok"}
    assert any("no PyOpenCL" in finding.what for finding in findings)


@linux
@pytest.mark.parametrize(("version", "lacks"), [("580.159.04", True), ("470.1", False), ("", False)])
def test_doctor_nvidia_opencl_without_its_compiler(version: str, lacks: bool, tmp_path: Path) -> None:
    vendors(tmp_path / "etc/OpenCL/vendors", nvidia=runtimes.NVIDIA_LIBRARY)
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(f"NVRM version: NVIDIA UNIX x86_64  {version}  Tue\n")
    broken = {runtimes.NVIDIA_LIBRARY: "", "libnvidia-nvvm.so.4": "cannot open shared object file"}
    findings = doctor.diagnose(system(tmp_path, broken=broken, devices=lambda: [NVIDIA]))
    found = [finding for finding in findings if "libnvidia-nvvm" in finding.what]
    assert bool(found) == lacks
    if found:
        assert found[0].level == "error" and "device='cuda'" in found[0].how_to_mend and version in found[0].what


@linux
def test_doctor_rusticl_shows_only_what_it_is_asked_for(tmp_path: Path) -> None:
    vendors(tmp_path / "etc/OpenCL/vendors", rusticl="libRusticlOpenCL.so.1")
    asked = only(doctor.diagnose(system(tmp_path)))
    assert "RUSTICL_ENABLE=radeonsi" in asked.how_to_mend and "RUSTICL_FEATURES=fp64" in asked.how_to_mend
    single = replace(LLVMPIPE, fp64=False)
    environ = {"RUSTICL_ENABLE": "llvmpipe"}
    asked = only(doctor.diagnose(system(tmp_path, devices=lambda: [single], environ=environ)))
    assert "float32 only" in asked.what and "RUSTICL_FEATURES=fp64" in asked.how_to_mend
    findings = doctor.diagnose(system(tmp_path, devices=lambda: [LLVMPIPE], environ=environ))
    assert [finding.level for finding in findings] == ["ok"]


@linux
def test_doctor_icd_file_that_names_a_missing_library(tmp_path: Path) -> None:
    vendors(tmp_path / "etc/OpenCL/vendors", old="libold.so.1")
    trouble = "libold.so.1: cannot open shared object file"
    finding = only(doctor.diagnose(system(tmp_path, broken={"libold.so.1": trouble})))
    assert trouble in finding.what
    assert "old.icd" in finding.what


def test_doctor_intel_runtime_without_its_libraries(tmp_path: Path) -> None:
    finding = only(doctor.diagnose(system(tmp_path, installed=lambda name: name == "intel-opencl-rt")))
    assert finding.level == "error"
    assert finding.how_to_mend == "pip install intel-cmplr-lib-rt"


@linux
@pytest.mark.parametrize("node", ["dri/renderD128", "nvidia0", "kfd"])
def test_doctor_device_file_without_permission(node: str, tmp_path: Path) -> None:
    path = tmp_path / "dev" / node
    path.parent.mkdir(parents=True)
    path.write_text("")
    healthy = {"broken": {runtimes.NVIDIA_LIBRARY: ""}} if "nvidia" in node else {}
    findings = doctor.diagnose(system(tmp_path, accessible=lambda path: False, **healthy))  # type: ignore[arg-type]
    found = [finding for finding in findings if "may not be opened" in finding.what]
    assert len(found) == 1
    assert str(path) in found[0].what
    assert found[0].how_to_mend


@linux
def test_doctor_no_processor_runtime(tmp_path: Path) -> None:
    vendors(tmp_path / "etc/OpenCL/vendors", mesa="libmesa.so")
    finding = only(doctor.diagnose(system(tmp_path, installed=lambda name: False)))
    assert finding.level == "info"
    assert "pip install 'pyedmcl[cpu]'" in finding.how_to_mend and "conda-forge pocl" in finding.how_to_mend


def test_doctor_pyopencl_cannot_be_imported(tmp_path: Path) -> None:
    def devices() -> list[DeviceInfo]:
        raise DeviceNotFoundError("PyOpenCL cannot be imported (no such file)")

    findings = doctor.diagnose(system(tmp_path, import_error=lambda: "no such file", devices=devices))
    assert only(findings).level == "error"
    assert "no such file" in only(findings).what


def test_doctor_a_device_that_is_seen_but_unusable(tmp_path: Path) -> None:
    finding = only(doctor.diagnose(system(tmp_path, devices=lambda: [POCL_BROKEN])))
    assert "unknown target CPU" in finding.what
    assert "newer PoCL" in finding.how_to_mend


def test_doctor_the_pocl_of_pypi(tmp_path: Path) -> None:
    finding = only(doctor.diagnose(system(tmp_path, devices=lambda: [POCL30, POCL31])))
    assert finding.level == "warning"
    assert "3.0-rc2" in finding.what and "wrong distances" in finding.what
    for part in ("pip uninstall pocl-binary-distribution", "pyedmcl[cpu]", "pocl-opencl-icd", "conda-forge"):
        assert part in finding.how_to_mend


def test_doctor_on_this_machine() -> None:
    findings = doctor.diagnose()
    assert findings
    assert all(finding.how_to_mend for finding in findings if finding.level in ("warning", "error"))
