"""Fixtures: the devices that every test of a kernel runs on, what tests of several packages need, and published
series."""

from __future__ import annotations

import csv
import functools
import gc
import os
from pathlib import Path

import numpy as np
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

PUBLISHED = Path(__file__).with_name("data")
# Two runtimes for processors; on one with a GPU set PYEDMCL_TEST_RUNTIMES=nvidia,pocl, say. "intel" is Intel's for
# processors, "sycl" the first device of dpctl, "cuda" the first GPU of NVIDIA's driver without OpenCL.
TESTED = [name.strip() for name in os.environ.get("PYEDMCL_TEST_RUNTIMES", "intel,pocl").split(",")]

# For the workers and the programs that tests start, which import NumPy later: oracles solve thousands of small systems,
# for which the threads of a BLAS take five times the processor time of one.
for _blas in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_blas}_NUM_THREADS", "1")

# Else each command line that a test runs within its process makes its command of the signature anew.
typer.main.get_command = typer.testing._get_command = functools.cache(typer.main.get_command)

# The examples of "ci" are always the same. "--hypothesis-profile=long" tries others, for some minutes in each test.
_PATIENT = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("ci", derandomize=True, max_examples=20, **_PATIENT)
settings.register_profile("long", max_examples=1000, print_blob=True, **_PATIENT)
settings.load_profile("ci")


@pytest.hookimpl(trylast=True)  # after pytest has put all tests of a device side by side
def pytest_collection_modifyitems(items):
    """Tests of a file stay together, so that one process runs them for all devices and oracles answer once."""
    places = {item.path: place for place, item in reversed(list(enumerate(items)))}
    items.sort(key=lambda item: places[item.path])


def pytest_collection_finish():
    """What is there by now stays to the end: the collector need not look at 400,000 objects again and again."""
    gc.freeze()


def _device_id(name):
    """Id of the first usable device of a runtime; skips, saying why, where there is none."""
    from pyedmcl.device.executor import EXECUTORS
    from pyedmcl.device.info import RUNTIMES
    from pyedmcl.device.quirks import POCL_FROM, quirks_for
    from pyedmcl.device.select import discover, rank

    if name in EXECUTORS:
        return _id_through(name)
    runtime = {"intel": "intel-cpu"}.get(name, name)
    assert runtime in RUNTIMES, f"PYEDMCL_TEST_RUNTIMES: {name}"
    found = sorted((info for info in discover() if info.runtime == runtime), key=rank)
    usable = [info for info in found if quirks_for(info).unusable is None]
    if usable:
        return usable[0].id
    if found:
        pytest.skip(f"{found[0].name}: {quirks_for(found[0]).unusable}")
    source = {"intel": "pip install 'pyedmcl[cpu]'", "pocl": POCL_FROM}.get(name, "its driver brings it")
    pytest.skip(f"the OpenCL runtime {runtime!r} is not on this machine: {source}")


def _id_through(executor):
    """Id of the first device of an executor; skips where there is none."""
    from pyedmcl.device.select import select
    from pyedmcl.errors import DeviceNotFoundError

    try:
        return select(executor).device.id
    except DeviceNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory):
    """A developer's tuning database neither changes the tests nor is changed by them, or by processes they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYEDMCL_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        patch.delenv("PYEDMCL_TUNE", raising=False)
        for display in ("DISPLAY", "WAYLAND_DISPLAY"):
            patch.delenv(display, raising=False)  # no test opens a window
        # Else each process that a test starts would compile all modules anew.
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def nvrtc_as_well():
    """With PYEDMCL_TEST_NVRTC=1 whatever tests compile through OpenCL has to compile through NVRTC, too: all variants
    of kernels, and all fragments. It needs no GPU."""
    if not os.environ.get("PYEDMCL_TEST_NVRTC"):
        yield
        return
    from portability_compile import nvidia_compiler

    from pyedmcl.device.nvrtc import cuda_text
    from pyedmcl.device.opencl import OpenCLExecutor

    by_opencl = OpenCLExecutor._compile

    @functools.cache
    def by_nvrtc(source):
        nvidia_compiler().ptx(cuda_text(source), "compute_90")

    def by_both(executor, source, flags):
        program = by_opencl(executor, source, flags)
        # Programs begin with the first on some PoCL; by the second, tests write PTX of matrix units as C.
        if "opencl_functions.clh" not in source and "vload_half2" not in source:
            by_nvrtc(source)
        return program

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenCLExecutor, "_compile", by_both)
        yield


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """An empty data folder of a test's own; nothing is shipped, and nothing was read so far.

    What was found with another driver counts as verified: the devices of such tests are not there.
    """
    from pyedmcl.tuning import knowledge
    from pyedmcl.tuning.parameters import source

    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: ())
    source.forget()
    source.verifier = lambda *asked: ("ok", "")
    yield tmp_path / "data"
    source.tuner = source.verifier = None
    source.forget()


@pytest.fixture
def own_database(tmp_path, monkeypatch):
    """A tuning database of the test's own, as the processes have that it starts; what is shipped is there."""
    from pyedmcl.tuning.database import Database
    from pyedmcl.tuning.parameters import source

    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("PYEDMCL_TUNE", raising=False)
    source.forget()
    yield Database()
    source.forget()


@pytest.fixture(scope="session", params=TESTED)
def device(request):
    """What to pass as ``device=``: each tested runtime in turn."""
    return _device_id(request.param)


@pytest.fixture(scope="session")
def both_devices():
    """Ids of two runtimes to compare: the first two of the tested ones."""
    first, second = [*TESTED, "pocl"][:2]
    return _device_id(first), _device_id(second)


@pytest.fixture(scope="session")
def one_device():
    """One usable device: the default one of this machine (used where a second would only cost time)."""
    from pyedmcl.device.select import select
    from pyedmcl.errors import DeviceNotFoundError

    try:
        return select().device.id
    except DeviceNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture
def each_call_allocates(one_device, monkeypatch):
    """Calls on ``one_device`` find no buffers that an earlier one has kept together."""
    from pyedmcl.device.select import open_device

    sets = open_device(one_device).sets
    sets.clear()
    monkeypatch.setattr(sets, "_most", -1)


@pytest.fixture(scope="session")
def pocl_device():
    """PoCL, which programs other than this one find by themselves."""
    return _device_id("pocl")


@pytest.fixture(scope="session")
def sycl_device():
    """The first device of dpctl."""
    return _id_through("sycl")


@pytest.fixture(scope="session")
def published_series():
    """``published_series(file, column)``: a column of a file in ``tests/data`` as float64."""

    def load(file, column):
        with (PUBLISHED / file).open(newline="") as lines:
            return np.array([float(row[column]) for row in csv.DictReader(lines)])

    return load


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
