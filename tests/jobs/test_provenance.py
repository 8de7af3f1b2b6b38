"""Every result says where it comes from, and all say it in the same words."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError

COMMON = {
    "version", "device", "device_id", "driver", "device_key", "devices", "device_ids", "drivers", "kernels", "tuning"
}  # fmt: skip


def series(n=120):
    return np.random.default_rng(1).standard_normal(n)


def results(device):
    x = series()
    yield pyedmcl.knn(x, E=2, device=device)
    yield pyedmcl.simplex(x, E=2, device=device)
    yield pyedmcl.rqa(x, radius=0.5, device=device)
    yield pyedmcl.windowed_rqa(x, 60, 30, radius=0.5, device=device)[1]
    yield pyedmcl.recurrence_network(x, radius=0.5, device=device)
    yield pyedmcl.recurrence_plot(x, radius=0.5, device=device)
    yield pyedmcl.distance_plot(x, device=device)


def test_all_results_say_the_same_of_device_and_kernels(one_device):
    for result in results(one_device):
        record = result.provenance
        assert record.keys() >= COMMON
        assert record["devices"] == [record["device"]] and record["device_ids"] == [record["device_id"]]
        assert record["drivers"] == [record["driver"]] and record["version"] == pyedmcl.__version__
        assert record["tuning"].keys() <= record["kernels"].keys()
        json.dumps(dict(record))


def test_several_devices_are_all_named(both_devices):
    record = pyedmcl.rqa(series(), radius=0.5, device=list(both_devices)).provenance
    assert len(record["devices"]) == len(record["drivers"]) == 2
    assert record["device"] == record["devices"][0] and record["device_id"] == record["device_ids"][0]


@pytest.mark.parametrize("plot", [pyedmcl.distance_plot, lambda x, **o: pyedmcl.recurrence_plot(x, radius=0.5, **o)])
def test_plots_take_tuned_parameters_as_asked(one_device, plot):
    record = plot(series(), tune="never", device=one_device).provenance
    assert {entry["grade"] for entry in record["tuning"]["recurrence_image"]} == {"default"}
    with pytest.raises(InputError, match="tune='often'"):
        plot(series(), tune="often", device=one_device)
