"""Users without a home that can be written, such as services and those of containers: everything is computed."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from pyedmcl import config
from pyedmcl.device import runtimes
from pyedmcl.device.info import Slot
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import open_device
from pyedmcl.kernels import loopy_source

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import sys
import pyedmcl
x = [float(t * t % 17) for t in range(60)]
for tune in ("cached", "never"):
    print(pyedmcl.knn(x, E=2, device=sys.argv[1], tune=tune).distances.sum())
"""
FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "POCL_CACHE_DIR", "PYEDMCL_CACHE_DIR", "PYEDMCL_DATA_DIR")


def run(device, **more):
    environment = {name: value for name, value in os.environ.items() if name not in FOLDERS}
    code = [sys.executable, "-c", CODE, device]
    return subprocess.run(
        code, env={**environment, "PYTHONPATH": str(ROOT), **more}, capture_output=True, text=True, cwd=ROOT
    )


def test_everything_is_computed_with_one_remark(device, tmp_path):
    with contextlib.redirect_stdout(io.StringIO()) as usual, mock.patch.object(sys, "argv", ["", device]):
        exec(CODE, {})  # with the folders of this process
    (tmp_path / "file").write_text("")
    lacking = run(device, HOME=str(tmp_path / "file" / "home"))
    assert lacking.returncode == 0, lacking.stderr
    assert lacking.stdout == usual.getvalue() != ""
    assert lacking.stderr.count("Warning") == 1
    assert "compiled programs are not kept" in lacking.stderr and "Set PYEDMCL_CACHE_DIR" in lacking.stderr
    kept = run(device, HOME=str(tmp_path / "file" / "home"), PYEDMCL_CACHE_DIR=str(tmp_path / "cache"))
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, usual.getvalue(), "")


def test_a_home_that_is_not_known_is_no_folder_in_the_working_directory(monkeypatch):
    """Of a user without an entry in the list of users "~" stays as it is."""
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    settings = config.current()
    for folder in (settings.cache_dir, settings.data_dir):
        assert folder.is_absolute() and not runtimes.usable(folder)
    assert not runtimes.others_usable()

    def unknown(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", "~/cache")
    assert not runtimes.usable(config.current().cache_dir)


def test_folders_that_can_be_made_are_usable(tmp_path):
    (tmp_path / "file").write_text("")
    assert runtimes.usable(tmp_path) and runtimes.usable(tmp_path / "a" / "b")
    assert not runtimes.usable(tmp_path / "file") and not runtimes.usable(tmp_path / "file" / "a")


def test_loopy_learns_that_it_can_keep_nothing(tmp_path, monkeypatch):
    pytest.importorskip("loopy", reason="loopy is not installed")
    seen = []
    monkeypatch.setattr(runtimes, "others_usable", lambda: False)
    with runtimes.for_loopy():
        seen.append(os.environ["LOOPY_NO_CACHE"])
    assert seen == ["1"] and "LOOPY_NO_CACHE" not in os.environ
    assert loopy_source._loopy("a test").__name__ == "loopy"


@pytest.mark.parametrize("error", [OSError("no space"), "database"])
def test_pyopencl_may_not_be_able_to_keep_what_it_knows_of_a_kernel(one_device, monkeypatch, error):
    executor = OpenCLExecutor(open_device(one_device).info)
    cl, real = executor.cl, executor.cl.Kernel
    importlib.import_module("pyopencl.invoker")  # with the cache that other tests go on to use
    monkeypatch.setattr(cl, "_PYOPENCL_NO_CACHE", False)

    def failing(program, name):
        if not cl._PYOPENCL_NO_CACHE:
            raise sqlite3.OperationalError("disk full") if error == "database" else error
        return real(program, name)

    monkeypatch.setattr(cl, "Kernel", failing)
    program = executor.build("kernel void nothing(global int* out) { out[0] = 1; }")
    assert program.kernel("nothing", [Slot("out", "int32", True)]).name == "nothing"
    executor.close()
