"""kEDM for the tests that compare with it."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def kedm():
    """kEDM, with the cores of the process as they were.

    Importing it pins the calling thread to one core; whatever the tests start or open later would see one core less.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    module = pytest.importorskip("kedm", reason="kedm is not installed: pip install 'pyedmcl[peers]'")
    if cores is not None:
        os.sched_setaffinity(0, cores)
    yield module
    if cores is not None:
        assert os.sched_getaffinity(0) == cores
