"""Runtimes that are made visible: ICD folders, the environment, and what a fresh process then sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from device_helpers import vendors

from pyedmcl.device import runtimes


def test_registered_follows_the_environment(tmp_path: Path) -> None:
    system = vendors(tmp_path / "system", pocl="libpocl.so.2")
    own = vendors(tmp_path / "own", mine="libmine.so")
    prefix = tmp_path / "prefix"
    vendors(prefix / "etc/OpenCL/vendors", build_path="/no/such/lib.so", good=str(own / "mine.icd"))

    def registered(**environ: str) -> list[str]:
        return sorted(runtimes.registered(environ, prefix, system).values())

    assert registered() == sorted(["libpocl.so.2", str(own / "mine.icd")])
    assert registered(OPENCL_VENDOR_PATH=str(own)) == sorted(["libmine.so", str(own / "mine.icd")])
    assert registered(OCL_ICD_VENDORS=str(own)) == ["libmine.so"]
    assert registered(OCL_ICD_VENDORS=str(own / "mine.icd")) == ["libmine.so"]
    assert registered(OCL_ICD_VENDORS="pocl.icd") == ["libpocl.so.2"]
    assert registered(OCL_ICD_VENDORS="/lib/libother.so") == ["/lib/libother.so"]


def test_additions_only_where_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "intel_library", lambda: Path("/env/lib/libintelocl.so"))
    monkeypatch.setattr(runtimes, "loadable", lambda library: True)
    monkeypatch.setattr(sys, "platform", "linux")
    assert set(runtimes.additions({}, {}).values()) == {"/env/lib/libintelocl.so", runtimes.NVIDIA_LIBRARY}
    known = {"nvidia.icd": "/usr/lib/libnvidia-opencl.so.1", "intel.icd": "/env/lib/libintelocl.so"}
    assert runtimes.additions(known, {}) == {}
    monkeypatch.setattr(runtimes, "loadable", lambda library: False)
    assert list(runtimes.additions({}, {}).values()) == ["/env/lib/libintelocl.so"]
    named = {"OCL_ICD_FILENAMES": os.pathsep.join(["liba.so", "/usr/lib/libnvidia-opencl.so.1"])}
    assert runtimes.additions(known, named) == {"filename-0.icd": "liba.so"}


def test_the_private_folder_is_shared_by_equal_settings_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runtimes.write_folder(tmp_path, {"a.icd": "liba.so"})
    assert runtimes.write_folder(tmp_path, {"a.icd": "liba.so"}) == first
    assert [file.name for file in first.iterdir()] == ["a.icd"]
    assert runtimes.write_folder(tmp_path, {"a.icd": "libb.so"}) != first
    (first / "a.icd").write_text("torn")
    runtimes.write_folder(tmp_path, {"a.icd": "liba.so"})
    assert (first / "a.icd").read_text() == "liba.so\n"
    monkeypatch.setattr(sys, "prefix", "/another/environment")
    assert runtimes.write_folder(tmp_path, {"a.icd": "liba.so"}) != first


@pytest.mark.parametrize("before", [None, "somewhere"])
def test_visible_restores_the_environment(before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "additions", lambda known, environ: {"extra.icd": "libextra.so"})
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path))
    if before is None:
        monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    else:
        monkeypatch.setenv("OCL_ICD_VENDORS", before)
    with runtimes.visible():
        folder = Path(os.environ["OCL_ICD_VENDORS"])
        assert folder.is_relative_to(tmp_path)
        assert (folder / "extra.icd").read_text() == "libextra.so\n"
    assert os.environ.get("OCL_ICD_VENDORS") == before


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(runtimes, "additions", lambda known, environ: {"extra.icd": "libextra.so"})
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(blocked))
    with runtimes.visible():
        folder = Path(os.environ["OCL_ICD_VENDORS"])
        assert (folder / "extra.icd").read_text() == "libextra.so\n"
    assert not folder.exists()


def python(code: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_no_binding() -> None:
    modules = "doctor, executor, memory, opencl, programs, quirks, runtimes, select"
    code = f"import sys\nfrom pyedmcl.device import {modules}\nprint('pyopencl' in sys.modules)"
    assert python(code).strip() == "False"


def test_the_pip_installed_intel_runtime_is_seen_beside_the_others(tmp_path: Path) -> None:
    if runtimes.intel_library() is None:
        pytest.skip("intel-opencl-rt is not installed in this environment")
    code = (
        "import os\nfrom pyedmcl.device import select as discover\n"
        "print(*sorted({info.runtime for info in discover.discover()}), 'OCL_ICD_VENDORS' in os.environ)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OCL_ICD", "OPENCL_VENDOR"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PYEDMCL_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    *seen, leaked = done.stdout.split()
    assert "intel-cpu" in seen
    assert leaked == "False"
    if Path("/etc/OpenCL/vendors/pocl.icd").exists():
        assert "pocl" in seen


def test_a_simulator_is_seen_but_not_chosen() -> None:
    library = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
    if not library.exists():
        pytest.skip(f"Oclgrind is not installed ({library})")
    code = (
        "from pyedmcl.device import select as discover, select\n"
        "found = discover.discover()\n"
        "print(*[i.kind for i in found if i.runtime == 'oclgrind'], select.select('oclgrind').device.runtime)\n"
        "try: print(select.select().device.kind)\n"
        "except LookupError: print('none')"
    )
    first, second = python(code, OCL_ICD_VENDORS=str(library)).splitlines()
    assert first == "simulator oclgrind"
    assert second != "simulator"


@pytest.mark.skipif(sys.platform == "win32", reason="folders of a user are the user's own there")
@pytest.mark.parametrize("planted", ["zz.icd", "mode of the root", "mode", "link"])
@pytest.mark.filterwarnings("ignore")
def test_runtimes_that_others_may_have_planted_are_not_loaded(planted: str, tmp_path: Path) -> None:
    root, entries = tmp_path / "icd", {"a.icd": "liba.so"}
    folder = runtimes.write_folder(root, entries)
    assert runtimes.write_folder(root, entries) == folder and folder.stat().st_mode & 0o777 == 0o700
    if planted == "zz.icd":
        (folder / planted).write_text("/tmp/evil.so")
    elif planted == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        (folder if planted == "mode" else root).chmod(0o777)
    with pytest.raises(OSError, match=r"others may write|should not be there"):
        runtimes.write_folder(root, entries)
