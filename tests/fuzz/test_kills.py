"""Jobs that are killed at random moments: what is finished is right and kept, and the last run gives the same bits."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import tally
from cli_helpers import environment
from hypothesis import settings
from kill_worker import JOBS
from process_helpers import end_of

import pyedmcl
from pyedmcl.errors import StoreForeignError

KIND = "kills"
WORKER = Path(__file__).with_name("kill_worker.py")


def kills():
    """Of each job: 2 in the usual profile, 70 in the long one."""
    return max(settings().max_examples * 7 // 100, 2)


def start(job, folder, device):
    command = [sys.executable, str(WORKER), job, str(folder), device]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
    return process


def end(process):
    """How it ended, and what it said of it."""
    _, said = end_of(process)
    return process.returncode, said.decode()


def what_is_kept_is_right(job, folder, expected):
    """Finished blocks of stores; what is not whole of a checkpoint or of edges is only read by who continues it."""
    if job in ("rqa", "edges"):
        return
    read = {"xmap": pyedmcl.open_xmap, "ccm_matrix": pyedmcl.open_ccm_matrix}[job]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read(folder)
            rho = np.asarray(found.rho)
    except StoreForeignError:
        return  # not even its first file was whole
    if rho.shape == expected[0].shape:  # else stores of some library sizes are not there yet
        done = ~np.isnan(rho)
        np.testing.assert_array_equal(rho[done], expected[0][done])
        assert np.isin(found.E, [0, *expected[1]]).all()


@pytest.mark.parametrize("job", JOBS)
def test_killed_at_random_moments(job, one_device, tmp_path):
    expected = JOBS[job](None, one_device)
    folder, chance = tmp_path / "out", random.Random()
    process = start(job, folder, one_device)
    begun = time.monotonic()
    assert end(process) == (0, ""), "nothing is said by a run that is not killed"
    seconds = time.monotonic() - begun
    shutil.rmtree(folder)
    killed = 0
    while killed < kills():
        process = start(job, folder, one_device)
        try:
            process.wait(chance.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            killed += 1
            tally.count(KIND, f"of {job}")
        status, said = end(process)
        if status == 0:
            shutil.rmtree(folder)
            tally.count("jobs that came to their end before they were killed", job)
            continue
        assert status < 0 and not said, said
        what_is_kept_is_right(job, folder, expected)
    assert end(start(job, folder, one_device)) == (0, "")
    again = JOBS[job](folder, one_device)
    for found, wanted in zip(again, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert not list(folder.rglob(".pyedmcl-*")), "what killed writers left is cleared"
