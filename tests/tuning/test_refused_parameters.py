"""The second chance where a device refuses the parameters that it was given, and what is learnt from that."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tuning_helpers import best_of, key, run, short_series

import pyedmcl
from pyedmcl.device import memory
from pyedmcl.device.info import device_key
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError, DeviceMemoryError, LaunchError
from pyedmcl.kernels import spec
from pyedmcl.tuning import defaults
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source

pytestmark = pytest.mark.usefixtures("data_dir")
PREDICT = {"dtype": "float32"}


def refuse(monkeypatch, executor, most, words):
    """Let the driver refuse groups of more than ``most`` work-items; returns the groups it was asked for."""
    asked = []
    enqueue = executor.cl.enqueue_nd_range_kernel

    def refusing(queue, kernel, size, local, *more):
        if kernel.function_name == "predict":
            asked.append(math.prod(local))
            if asked[-1] > most:
                raise executor.cl.LogicError(f"clEnqueueNDRangeKernel failed: {words}")
        return enqueue(queue, kernel, size, local, *more)

    monkeypatch.setattr(executor.cl, "enqueue_nd_range_kernel", refusing)
    return asked


@pytest.mark.parametrize("words", ["INVALID_WORK_GROUP_SIZE", "OUT_OF_RESOURCES"])
def test_a_driver_that_lies_about_its_limits_gets_smaller_groups_and_they_are_recorded(
    one_device, monkeypatch, caplog, words
):
    executor = open_device(one_device)
    x = short_series()
    plain = pyedmcl.simplex(x, E=2, device=one_device, tune="never")
    default = plain.provenance["tuning"]["predict"][0]["parameters"]["wg"]
    if default < 4:
        pytest.skip(f"{executor.info.name} starts with groups of {default} already")
    asked = refuse(monkeypatch, executor, default // 4, words)
    result = pyedmcl.simplex(x, E=2, device=one_device)
    times = 2 if words == "OUT_OF_RESOURCES" else 1  # which may be memory, so that half of it is tried first
    assert asked == times * [default] + times * [default // 2] + [default // 4]
    np.testing.assert_array_equal(result.predicted, plain.predicted)
    limits = Database().limits()
    assert [limit[:3] for limit in limits] == [(device_key(executor.info).digest(), "predict", default // 4)]
    assert words in limits[0][3] and f"at most {default // 4} work-items" in caplog.text
    source.forget()  # the next process knows it
    asked.clear()
    pyedmcl.simplex(x, E=2, device=one_device)
    assert asked == [default // 4]


@pytest.mark.parametrize("grade", ["default", "exact"])
def test_a_launch_that_failed_for_memory_bars_nothing(one_device, monkeypatch, grade):
    executor = open_device(one_device)
    plain = pyedmcl.simplex(short_series(), E=2, device=one_device, tune="never")
    if grade == "exact":
        run(Database(), key(info=executor.info), {"wg": 32})
    words, enqueue = "OUT_OF_RESOURCES", executor.cl.enqueue_nd_range_kernel
    shares = []

    def short_of_memory(queue, kernel, size, local, *more):
        if kernel.function_name == "predict":
            shares.append(memory._share.get())
            if shares[-1] > 0.5:
                raise executor.cl.LogicError(f"clEnqueueNDRangeKernel failed: {words}")
        return enqueue(queue, kernel, size, local, *more)

    monkeypatch.setattr(executor.cl, "enqueue_nd_range_kernel", short_of_memory)
    result = pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert shares == [1.0, 0.5]
    np.testing.assert_array_equal(result.predicted, plain.predicted)
    assert result.provenance["tuning"]["predict"][0]["grade"] == grade
    assert not Database().limits() and not Database().trials(status="failed")
    assert not source.knowledge.limits and not source.knowledge.distrusted


def test_parameters_are_not_blamed_for_what_the_driver_refuses_the_defaults_too(one_device, monkeypatch):
    """Smaller groups helped: what was tuned within them may be right."""
    executor = open_device(one_device)
    default = defaults.defaults(spec("predict"), PREDICT, executor.info, executor.info.max_work_group)["wg"]
    if default < 4:
        pytest.skip(f"{executor.info.name} starts with groups of {default} already")
    run(Database(), key(info=executor.info), {"wg": 128})
    asked = refuse(monkeypatch, executor, default // 2, "INVALID_WORK_GROUP_SIZE")
    pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert asked == [128, default, default // 2]
    assert [limit[1:3] for limit in Database().limits()] == [("predict", default // 2)]
    assert Database().trials(status="failed") == [] and not source.knowledge.distrusted


def test_a_device_that_refuses_everything_is_an_error_and_teaches_nothing(one_device, monkeypatch):
    executor = open_device(one_device)
    with monkeypatch.context() as patch:
        refuse(patch, executor, 0, "INVALID_WORK_GROUP_SIZE")
        with pytest.raises(LaunchError, match="predict with global size"):
            pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert Database().limits() == [] and not source.knowledge.limits


def test_tuned_parameters_that_are_refused_give_way_to_the_defaults(one_device, monkeypatch, caplog):
    executor = open_device(one_device)
    run(Database(), key(info=executor.info), {"wg": 128})
    asked = refuse(monkeypatch, executor, 64, "INVALID_WORK_GROUP_SIZE")
    result = pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert asked[0] == 128 and len(asked) == 2
    assert result.provenance["tuning"]["predict"][0]["grade"] == "default"
    assert "tuned parameters of predict (exact) do not work" in caplog.text
    (failed,) = Database().trials(status="failed")
    assert dict(failed.parameters) == {"wg": 128} and "INVALID_WORK_GROUP_SIZE" in failed.note
    assert best_of(Database(), key(info=executor.info)) is None


def test_what_a_tuner_forces_is_never_tried_twice(one_device, monkeypatch):
    asked = refuse(monkeypatch, open_device(one_device), 64, "INVALID_WORK_GROUP_SIZE")
    with source.using(predict={"wg": 128}), pytest.raises(LaunchError):
        pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert asked == [128]


def test_errors_say_which_kernel_it_was(one_device, monkeypatch):
    executor = open_device(one_device)
    refuse(monkeypatch, executor, 0, "MEM_OBJECT_ALLOCATION_FAILURE")
    with pytest.raises(DeviceMemoryError) as caught:
        pyedmcl.simplex(short_series(), E=2, device=one_device)
    assert caught.value.kernel == "" and caught.value.work_group == 0  # memory was short: smaller groups do not help
    from pyedmcl.kernels.build import build

    with pytest.raises(BuildError) as refused:
        build(executor, spec("predict"), {"counts": (3,), "dtype": "float32", "table_tile": 1, "wg": "no number"})
    assert refused.value.kernel == "predict"
