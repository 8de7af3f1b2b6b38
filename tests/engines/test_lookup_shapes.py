"""How a lookup is laid out: launches that fill a device whatever part of the targets they have."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from device_helpers import INTEL, NVIDIA
from window_helpers import TABLE

import pyedmcl
from pyedmcl.engines.lookup import LookupShapes, even_shares
from pyedmcl.engines.targets import columns_of_rho, layout_of_lookup
from pyedmcl.kernels import spec
from pyedmcl.tuning.parameters import using


def rounds(blocks, tasks, slices, resident):
    """Tasks that one place of a device does one after the other."""
    return -(-blocks * slices // resident) * -(-tasks // slices)


@pytest.mark.parametrize(("blocks", "tasks", "resident"), [(250, 63, 132), (1, 2048, 32), (3, 5, 2112), (40, 1, 32)])
def test_no_other_slices_end_earlier(blocks, tasks, resident):
    found = rounds(blocks, tasks, even_shares(blocks, tasks, resident, 0.0), resident)
    assert found == min(rounds(blocks, tasks, slices, resident) for slices in range(1, tasks + 1))


def test_groups_that_are_dear_to_begin_are_few():
    assert even_shares(264, 64, 132, 0.0) == 1  # two full rounds already
    assert even_shares(250, 63, 132, 0.0) > even_shares(250, 63, 132, 2.0) == 1


@pytest.mark.parametrize("info", [INTEL, NVIDIA], ids=["cpu", "gpu"])
def test_a_launch_of_one_block_fills_the_device_too(info):
    shape = LookupShapes(info, 20_000, "float32", 2048).shape(4, 2048, 2048, lambda cost: 1)
    assert shape.blocks == 1
    assert shape.slices >= min(2 * info.compute_units, -(-2048 // shape.parameters["library_lanes"]))


@pytest.mark.parametrize("info", [INTEL, NVIDIA], ids=["cpu", "gpu"])
def test_how_sums_are_split_does_not_follow_from_time(info):
    for k, width, libraries in product((4, 21), (3, 100, 2000), (2, 40, 1024)):
        shapes = LookupShapes(info, 3780, "float32", libraries)
        one, all_of_them = (shapes.shape(k, width, libraries, lambda cost, n=n: n) for n in (1, 10_000))
        assert one.parameters == all_of_them.parameters
        # Nor does it follow from how many of the libraries a device has at once.
        assert shapes.shape(k, width, 1, lambda cost: 1).parameters == one.parameters


def test_launches_have_even_shares():
    shape = LookupShapes(NVIDIA, 3780, "float32", 1024).shape(4, 2000, 1024, lambda cost: 183)
    blocks = -(-2000 // shape.columns)
    assert shape.blocks * -(-blocks // shape.blocks) - blocks < -(-blocks // shape.blocks)
    assert shape.blocks <= 183


@pytest.mark.parametrize("info", [INTEL, NVIDIA], ids=["cpu", "gpu"])
def test_groups_are_not_twice_as_wide_as_their_targets(info):
    with using(lookup={"target_lanes": 4, "vectors": 4, "lanes": 4}):
        widths = {width: LookupShapes(info, 1000, "float32", 100).shape(4, width, 100, lambda cost: 100).columns
                  for width in (1, 4, 5, 9, 16, 17, 30, 33, 1000)}  # fmt: skip
    assert widths == {1: 4, 4: 4, 5: 8, 9: 16, 16: 16, 17: 32, 30: 32, 33: 64, 1000: 64}


def test_maps_of_many_dimensions_share_kernels_on_gpus_unless_they_take_long():
    shapes = LookupShapes(NVIDIA, 1600, "float32", 154)
    assert all(shapes.takes_any_k(k, 7) for k in range(2, 22))
    shared = [shapes.shape(k, 7, 154, lambda cost: 10**9, any_k=True).parameters for k in range(2, 22)]
    assert all(parameters == shared[0] for parameters in shared)
    larger = LookupShapes(NVIDIA, 3780, "float32", 2000)
    assert not any(larger.takes_any_k(k, 100) for k in range(2, 22))
    with using(lookup={"lanes": 4}):
        assert not LookupShapes(NVIDIA, 1600, "float32", 154).takes_any_k(4, 7)


def test_a_group_takes_as_many_targets_as_local_memory_holds_and_its_banks_yield():
    narrow = {"lanes": 4, "vectors": 1, "target_lanes": 2, "row_lanes": 8, "library_lanes": 32, "stage": True}
    with using(lookup=narrow):
        shapes = {steps: LookupShapes(NVIDIA, steps, "float32", 1000).shape(11, 2000, 1000, lambda cost: 10**9)
                  for steps in (600, 1600, 3780)}  # fmt: skip
        double = LookupShapes(NVIDIA, 600, "float64", 1000).shape(11, 2000, 1000, lambda cost: 10**9)
        few = LookupShapes(NVIDIA, 600, "float32", 100).shape(11, 2000, 100, lambda cost: 10**9)
        slim = LookupShapes(NVIDIA, 600, "float32", 1000).shape(11, 9, 1000, lambda cost: 10**9)
    # 128 bytes of a step, half of them, and no more than was asked for: 227 KiB hold no twice as many.
    assert {steps: shape.columns for steps, shape in shapes.items()} == {600: 32, 1600: 16, 3780: 8}
    assert {shape.group for shape in shapes.values()} == {512}
    assert few.columns == double.columns == 8
    assert slim.columns <= 16
    with using(lookup={**narrow, "target_lanes": 3}):  # twice as many is no value of that parameter
        odd = LookupShapes(NVIDIA, 600, "float32", 1000).shape(11, 2000, 1000, lambda cost: 10**9)
    assert odd.parameters["target_lanes"] == 3


@pytest.mark.parametrize("n_targets", [1, 16, 17, 100, 129, 2000])
@pytest.mark.parametrize("n_steps", [1, 96, 97, 3780])
def test_targets_have_the_room_that_other_programs_are_told_to_leave(n_steps, n_targets):
    values = {**spec("lookup").defaults("gpu"), "k": 4, "table_tile": 1, "precision": "full", "narrow_rows": False,
              "gaps": False}  # fmt: skip
    plan = spec("lookup").usage(values).plan(
        n_steps=n_steps, n_targets=n_targets, n_libraries=1, E=3, tau=1, Tp=0, n_slices=1
    )
    layout = layout_of_lookup(n_steps, n_targets)
    assert (layout.rows, layout.stride) == (plan["target_rows"], plan["target_stride"])
    assert layout.elements == plan["elements_targets"]
    assert len(columns_of_rho(np.arange(n_targets))) == plan["elements_target_of"]


def test_lookups_of_windows_of_a_size_are_planned_once(one_device, monkeypatch):
    planned, shape = [], LookupShapes.shape
    monkeypatch.setattr(LookupShapes, "shape", lambda *given, **more: planned.append(given) or shape(*given, **more))
    pyedmcl.xmap(TABLE, E=2, windows=(60, 10), device=one_device)
    assert len(planned) == 1
