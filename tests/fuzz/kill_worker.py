"""A job that can be killed and continued: ``python kill_worker.py JOB FOLDER DEVICE``; the test of kills starts it."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import pyedmcl
from pyedmcl.recurrence import engine

warnings.filterwarnings("ignore", "E is at the upper end of its range")  # which says nothing about kills


def series():
    return np.random.default_rng(8).standard_normal((200, 64)).cumsum(axis=0)


def slowly(done, total, unit):
    """Blocks of so small jobs take no time; a kill should fall between any two steps."""
    time.sleep(0.02)


def xmap(folder, device, progress=None):
    result = pyedmcl.xmap(series(), E_max=3, out=folder, device=device, progress=progress)
    return np.asarray(result.rho), result.E


def edges(folder, device, progress=None):
    result = pyedmcl.xmap(series(), E=2, keep="top:2:target", out=folder, device=device, progress=progress)
    return result.rho, result.library, result.target


def ccm_matrix(folder, device, progress=None):
    result = pyedmcl.ccm_matrix(
        series()[:, :40], E=2, lib_sizes=[20, 60], sample=4, seed=1, out=folder, device=device, progress=progress
    )
    return result.rho, result.E


def rqa(folder, device, progress=None):
    engine._FIRST_CELLS, engine._BLOCK_SECONDS = 1, 0.0  # blocks of 32 rows
    file = None if folder is None else f"{folder}/run.npz"
    x = series()[:, 0].repeat(3)
    result = pyedmcl.rqa(x, m=2, radius=1.0, checkpoint=file, device=device, progress=progress)
    return result.counts.diagonals, result.counts.verticals, result.counts.columns


JOBS = {"xmap": xmap, "edges": edges, "ccm_matrix": ccm_matrix, "rqa": rqa}

if __name__ == "__main__":
    job, folder, device = sys.argv[1:]
    print("ready", flush=True)
    JOBS[job](folder, device, slowly)
    print("done", flush=True)
