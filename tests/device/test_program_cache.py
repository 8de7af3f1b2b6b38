"""Compiled programs that are kept on disk: found again, never believed when they are damaged, never in the way."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from device_helpers import INTEL

from pyedmcl.device import runtimes
from pyedmcl.device.info import Slot
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.runtimes import ProgramCache
from pyedmcl.device.select import discover
from pyedmcl.errors import BuildError, PyedmclWarning

SOURCE = "kernel void fill(global int* out) { out[get_global_id(0)] = (int)get_global_id(0) + 7; }"
OPTIONS = ("-cl-std=CL1.2",)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"


@pytest.fixture
def info():
    for device in discover():
        if quirks_for(device).keep_programs:
            return device
    pytest.skip("no runtime whose programs are kept (Intel's for processors) is on this machine")


def filled(executor):
    out = executor.upload(np.zeros(5, np.int32))
    kernel = executor.build(SOURCE).kernel("fill", [Slot("out", np.dtype(np.int32), True)])
    executor.launch(kernel, (5,), (1,), out=out)
    return executor.download(out, np.empty(5, np.int32)).tolist()


def test_what_is_kept_is_found_for_the_same_device_text_and_options_only(folder):
    cache = ProgramCache(INTEL)
    assert cache.load("text", OPTIONS) is None
    cache.keep("text", OPTIONS, b"binary")
    assert cache.load("text", OPTIONS) == b"binary"
    assert cache.load("other", OPTIONS) is None
    assert cache.load("text", (*OPTIONS, "-w")) is None
    assert ProgramCache(replace(INTEL, driver="another")).load("text", OPTIONS) is None
    assert len(list(folder.iterdir())) == 1


def test_every_damaged_byte_is_noticed(folder):
    cache = ProgramCache(INTEL)
    cache.keep("text", OPTIONS, b"binary of a program")
    (path,) = folder.iterdir()
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert cache.load("text", OPTIONS) is None
        path.write_bytes(good[:place])
        assert cache.load("text", OPTIONS) is None


def test_the_oldest_files_go_when_there_are_too_many(folder, monkeypatch):
    monkeypatch.setattr(runtimes, "_FILES_KEPT", 8)
    cache = ProgramCache(INTEL)
    for number in range(20):
        cache.keep(f"text {number}", OPTIONS, b"x")
        assert len(list(folder.iterdir())) <= 8
    assert cache.load("text 19", OPTIONS) == b"x"


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path / "file"))
    cache = ProgramCache(INTEL)
    cache.keep("text", OPTIONS, b"binary")
    assert cache.load("text", OPTIONS) is None


def test_a_second_executor_loads_what_the_first_compiled(folder, info, monkeypatch):
    assert filled(OpenCLExecutor(info)) == [7, 8, 9, 10, 11]
    (path,) = folder.iterdir()
    kept = path.read_bytes()
    monkeypatch.setattr(ProgramCache, "keep", lambda *_: pytest.fail("the program was compiled a second time"))
    assert filled(OpenCLExecutor(info)) == [7, 8, 9, 10, 11]
    assert path.read_bytes() == kept


def test_a_binary_that_the_driver_refuses_is_compiled_again(folder, info):
    cache = ProgramCache(info)
    cache.keep(SOURCE, OPTIONS, b"no program of any device")
    assert filled(OpenCLExecutor(info)) == [7, 8, 9, 10, 11]
    assert cache.load(SOURCE, OPTIONS) not in (None, b"no program of any device")


def test_a_text_that_does_not_compile_is_not_kept(folder, info):
    with pytest.raises(BuildError):
        OpenCLExecutor(info).build("kernel void broken(")
    assert not folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="folders of a user are the user's own there")
@pytest.mark.parametrize("shared", ["written by the group", "written by all", "a link", "of another user"])
def test_what_others_may_have_put_there_is_not_loaded(shared, folder, info, monkeypatch):
    kept = ProgramCache(info)
    kept.keep("text", [], b"binary")
    assert kept.load("text", []) == b"binary" and kept._folder.stat().st_mode & 0o777 == 0o700
    if shared == "a link":
        kept._folder.rename(kept._folder.with_name("elsewhere"))
        kept._folder.symlink_to("elsewhere")
    elif shared == "of another user":
        os.chown(kept._folder, 12345, -1) if os.geteuid() == 0 else pytest.skip("only the administrator can do that")
    else:
        kept._folder.chmod(0o770 if "group" in shared else 0o777)
    with pytest.warns(PyedmclWarning, match="is not used, since others may write there"):
        assert kept.load("text", []) is None
    kept.keep("other", [], b"binary")
    assert len(list(kept._folder.glob("*.bin"))) == 1
