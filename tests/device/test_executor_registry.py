"""Another executor is a class and a row: devices, functions and results need to know no more of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import executor, select
from pyedmcl.device.executor import ExecutorRow
from pyedmcl.device.opencl import OpenCLExecutor


class Another:
    """Stands for another binding: an executor of its own around one that exists."""

    launches = 0

    def __init__(self, info):
        self.info = info
        self._inner = OpenCLExecutor(replace(info, id=info.id.removeprefix("another:"), executor="opencl"))

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def launch(self, *sizes, **arguments):
        Another.launches += 1
        return self._inner.launch(*sizes, **arguments)


@pytest.fixture
def another(monkeypatch, one_device):
    """The id of a device that only the other executor can open."""
    (info,) = (info for info in select.discover() if info.id == one_device)
    module = ModuleType("pyedmcl.device.another")
    module.devices = lambda refresh: [replace(info, id=f"another:{info.id}", executor="another")]
    module.Another = Another
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(executor.EXECUTORS, "another", ExecutorRow("another:devices", "another:Another"))
    monkeypatch.setattr(select, "_open", {})
    yield f"another:{one_device}"
    select.close_all()


def test_devices_of_all_executors_are_listed(another, one_device):
    ids = [info.id for info in select.discover()]
    assert ids[-1] == another and one_device in ids[:-1]
    assert len(set(ids)) == len(ids)


def test_a_function_runs_on_another_executor_with_the_same_bits(another, one_device):
    x = np.random.default_rng(3).standard_normal(120)
    Another.launches = 0
    got = pyedmcl.simplex(x, E=2, device=another, tune="never")
    assert Another.launches > 0
    launched = Another.launches
    expected = pyedmcl.simplex(x, E=2, device=one_device, tune="never")
    assert Another.launches == launched, "a device goes with its own executor"
    np.testing.assert_array_equal(got.predicted, expected.predicted)


def test_every_row_can_be_loaded():
    for row in executor.EXECUTORS.values():
        assert callable(executor._load(row.devices)) and callable(executor._load(row.executor))
