"""What a small call looks up: each thing once."""

import os

import numpy as np

import pyedmcl
from pyedmcl import config
from pyedmcl.device import select
from pyedmcl.device.select import discover


def test_a_call_reads_the_environment_once(one_device, monkeypatch):
    read, get = [], os.environ.get
    x = np.random.default_rng(1).standard_normal(100)
    pyedmcl.simplex(x, E=2, device=one_device)
    monkeypatch.setattr(os.environ, "get", lambda name, *rest: read.append(name) or get(name, *rest))
    pyedmcl.simplex(x, E=2, device=one_device)
    assert len(read) == len(set(read)) > 0


def test_the_next_call_sees_another_environment(monkeypatch):
    with config.read_once():
        before = config.current().memory_fraction
        monkeypatch.setenv("PYEDMCL_MEMORY_FRACTION", str(before / 2))
        assert config.current().memory_fraction == before
    with config.read_once():
        assert config.current().memory_fraction == before / 2


def test_a_device_is_chosen_once_of_the_same_devices(monkeypatch):
    devices, chosen = discover(), []
    choose = select._choose
    monkeypatch.setattr(select, "_choose", lambda *given: chosen.append(given) or choose(*given))
    name = devices[0].id
    first = select.select(name, devices=devices)
    chosen.clear()
    assert select.select(name, devices=devices) is first and chosen == []
    assert select.select(name, devices=devices[:1]).device is devices[0]
    assert len(chosen) == (len(devices) > 1)
