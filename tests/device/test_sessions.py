"""Executors that are closed, shared by the threads of a process, and met again in a forked one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pyedmcl.device import executor as registry
from pyedmcl.device import select
from pyedmcl.device.info import DeviceInfo
from pyedmcl.errors import LaunchError


@pytest.fixture
def info(one_device: str) -> DeviceInfo:
    return next(info for info in select.discover() if info.id == one_device)


def test_a_closed_executor_says_so(info: DeviceInfo) -> None:
    executor = registry.open_executor(info)
    executor.close()
    executor.close()
    with pytest.raises(LaunchError, match="closed"):
        executor.allocate(1)


def test_sessions_are_shared_and_lazy(info: DeviceInfo) -> None:
    select.close_all()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(select.executor_for(info))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert select.open_device(info.id) is found[0]
    select.close_all()
    assert select.open_device(info.id) is not found[0]
    select.close_all()


FORK = """
import os, sys
import numpy as np
from pyedmcl.kernels.kernel_spec import declared
from pyedmcl.device import select as discover, executor as registry, select as session
from pyedmcl.errors import LaunchError
used_before = sys.argv[1] == "used"
if used_before:
    executor = session.open_device(sys.argv[2])
child = os.fork()
if child == 0:
    try:
        if used_before:
            refused = 0
            for use in (lambda: executor.allocate(4), lambda: session.open_device(sys.argv[2]), discover.discover):
                try:
                    use()
                except LaunchError as error:
                    refused += "fork" in str(error)
            os._exit(0 if refused == 3 else 1)
        session.open_device(sys.argv[2]).allocate(4)
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("when", ["used", "unused"])
def test_a_fork_is_noticed(info: DeviceInfo, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, when, info.id],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
