"""Runs that are killed and continued: the same counts, and nothing taken from another run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkpoint_helpers import CASES, counts_of, series
from process_helpers import wait_until

import pyedmcl
from pyedmcl.errors import (
    InputError,
    Interrupted,
    StoreError,
    StoreForeignError,
    StoreMismatchError,
    StoreWriteError,
)
from pyedmcl.recurrence import engine


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 32 rows, however fast the device is."""
    monkeypatch.setattr(engine, "_FIRST_CELLS", 1)
    monkeypatch.setattr(engine, "_BLOCK_SECONDS", 0.0)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("case", CASES)
def test_stopped_after_every_block_and_continued(one_device, tmp_path, monkeypatch, case):
    options, cross = CASES[case]
    x, y = series(230), series(170, 1) if cross else None
    file = tmp_path / "new" / "run.npz"
    whole = counts_of(pyedmcl.rqa(x, y, device=one_device, **options))
    write, stops = engine.write, 0

    def killed(*given):
        write(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "write", killed)
    for _ in range(20):
        try:
            pyedmcl.rqa(x, y, checkpoint=file, device=one_device, **options)
        except Interrupted as stop:
            assert str(file) in str(stop)
            stops += 1
        else:
            break
    assert stops >= 6
    again = pyedmcl.rqa(x, y, checkpoint=file, device=one_device, **options)
    assert counts_of(again) == whole
    assert os.listdir(file.parent) == ["run.npz"]


@pytest.mark.usefixtures("small_blocks")
def test_joint_recurrence_and_several_devices(both_devices, tmp_path):
    x, y, seen = series(200), series(200, 2), []
    options = {"m": 2, "radius": 1.5, "radius_y": 2.0}
    found = pyedmcl.joint_rqa(
        x, y, checkpoint=tmp_path / "run", progress=lambda *at: seen.append(at), device=list(both_devices), **options
    )
    assert found.counts == pyedmcl.joint_rqa(x, y, device=both_devices[0], **options).counts
    assert seen[-1] == (199 * 200 // 2, 199 * 200 // 2, "cells") and len(seen) > 5


def test_a_killed_process_leaves_a_file_to_continue(one_device, tmp_path):
    file = tmp_path / "run.npz"
    script = tmp_path / "run.py"
    script.write_text(
        "import os, sys, time, numpy as np, pyedmcl\n"
        "from pyedmcl.recurrence import engine as checkpoint\n"
        "checkpoint._FIRST_CELLS, checkpoint._BLOCK_SECONDS = 1, 0.0\n"
        "replace = os.replace\n"
        "def once(source, target, **options):\n"
        "    replace(source, target, **options)\n"
        "    if os.fspath(target) == sys.argv[1]:\n"  # kept programs are put in place by the same function
        "        time.sleep(600)\n"
        "os.replace = once\n"
        "x = np.cumsum(np.random.default_rng(5).standard_normal(6000)) / 3\n"
        f"found = pyedmcl.rqa(x, m=2, radius=0.5, checkpoint=sys.argv[1], device={one_device!r})\n"
    )
    path = os.pathsep.join([str(Path(pyedmcl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen([sys.executable, str(script), str(file)], env={**os.environ, "PYTHONPATH": path})
    try:
        wait_until(file.exists, process, "a first checkpoint")
        assert process.poll() is None, "it was over before it could be killed"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    x = np.cumsum(np.random.default_rng(5).standard_normal(6000)) / 3
    continued = pyedmcl.rqa(x, m=2, radius=0.5, checkpoint=file, device=one_device)
    assert continued.counts == pyedmcl.rqa(x, m=2, radius=0.5, device=one_device).counts


def test_another_run_is_refused_with_what_differs(one_device, tmp_path):
    x, file = series(100), tmp_path / "run.npz"
    pyedmcl.rqa(x, radius=1.0, checkpoint=file, device=one_device)
    with pytest.raises(StoreMismatchError, match=r"radii = \[1.0\] there, \[2.0\] asked for"):
        pyedmcl.rqa(x, radius=2.0, checkpoint=file, device=one_device)
    with pytest.raises(StoreMismatchError, match="data differ"):
        pyedmcl.rqa(-x, radius=1.0, checkpoint=file, device=one_device)
    assert pyedmcl.rqa(x, radius=1.0, lmin=3, checkpoint=file, device=one_device).lmin == 3


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut off"])
def test_another_file_is_refused(one_device, tmp_path, content):
    file = tmp_path / "notes"
    file.write_bytes(content)
    with pytest.raises(StoreForeignError, match="is no recurrence checkpoint"):
        pyedmcl.rqa(series(100), radius=1.0, checkpoint=file, device=one_device)
    assert file.read_bytes() == content


def test_a_file_that_cannot_be_written(one_device, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreWriteError, match="could not be written"):
        pyedmcl.rqa(series(100), radius=1.0, checkpoint=tmp_path / "file" / "run", device=one_device)


def test_a_second_run_is_refused_while_the_first_writes(one_device, tmp_path):
    x, file, messages = series(100), tmp_path / "run.npz", []

    def second(done, total, unit):
        for name in (file, tmp_path / "other.npz") if done == total else ():
            try:
                pyedmcl.rqa(x, radius=1.0, checkpoint=name, device=one_device)
            except StoreError as error:
                messages.append(str(error))

    found = pyedmcl.rqa(x, radius=1.0, checkpoint=file, progress=second, device=one_device)
    assert found.counts == pyedmcl.rqa(x, radius=1.0, device=one_device).counts
    assert len(messages) == 1, "another file in the same folder is free"
    assert messages[0].startswith(f"checkpoint={str(file)!r} is being written by another run (pid {os.getpid()} on")
    assert "wait until it ends" in messages[0]
    assert sorted(os.listdir(tmp_path)) == ["other.npz", "run.npz"], "locks are given back"


@pytest.mark.usefixtures("small_blocks")
def test_a_run_that_failed_gives_its_lock_back_and_removes_what_killed_ones_left(one_device, tmp_path, monkeypatch):
    x, file = series(100), tmp_path / "run.npz"
    left = tmp_path / ".pyedmcl-tmp-1-run.npz"
    left.write_bytes(b"half")

    def full(*_):
        raise StoreWriteError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "write", full)
        with pytest.raises(StoreWriteError, match="disk full"):
            pyedmcl.rqa(x, radius=1.0, checkpoint=file, device=one_device)
    assert os.listdir(tmp_path) == []
    pyedmcl.rqa(x, radius=1.0, checkpoint=file, device=one_device)
    assert os.listdir(tmp_path) == ["run.npz"]


def test_several_sweeps_need_several_files(one_device, tmp_path):
    with pytest.raises(InputError, match=r"checkpoint=.*2 sweeps"):
        pyedmcl.rqa(
            series(100), radius=[3, 5], threshold="neighbours", checkpoint=tmp_path / "run", device=one_device
        )
