"""Skill has the same bits whatever the tuned parameters: those of each kernel are gone over, on each device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.engines import lookup
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import noting
from pyedmcl.simulate import coupled_maps
from pyedmcl.tuning.parameters import using

LOOKUPS = [
    {"lanes": 1, "vectors": 4, "target_lanes": 2, "row_lanes": 8, "library_lanes": 4, "unroll": 4, "quads": True},
    {"lanes": 2, "vectors": 2, "target_lanes": 3, "row_lanes": 16, "library_lanes": 2, "stage": True},
    {"lanes": 4, "vectors": 1, "target_lanes": 1, "row_lanes": 4, "library_lanes": 32, "unroll": 2},
    {"lanes": 8, "vectors": 1, "target_lanes": 4, "row_lanes": 128, "library_lanes": 1, "unroll": 2, "quads": True},
    {"lanes": 1, "vectors": 1, "target_lanes": 1, "row_lanes": 64, "library_lanes": 8, "stage": True},
    {"lanes": 2, "vectors": 1, "target_lanes": 1, "row_lanes": 32, "library_lanes": 16},
]


def series(gaps):
    """As many rows as it takes that every strand has several chunks, the last of them short."""
    x = coupled_maps(n_series=7, n_steps=1300, seed=4).values.copy()
    if gaps:
        x[40:47, 1] = x[700:703, 4] = np.nan
    return x


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_lookup(device, gaps):
    x = series(gaps)
    wanted = pyedmcl.xmap(x, E=2, device=device).rho
    assert np.isfinite(wanted).all()
    for parameters in LOOKUPS[::3] if gaps else LOOKUPS:
        with using(lookup=parameters):
            np.testing.assert_array_equal(pyedmcl.xmap(x, E=2, device=device).rho, wanted, err_msg=str(parameters))


@pytest.mark.parametrize("group", [{}, {"target_lanes": 8}, {"row_lanes": 4, "library_lanes": 2}], ids=str)
def test_lookup_of_scalars_in_small_groups(device, group):
    """Compilers for processors put fewer than 16 work-items together in other ways, or not at all."""
    x = coupled_maps(n_series=8, n_steps=300, seed=1).values
    wanted = pyedmcl.xmap(x, E=3, device=device).rho
    with using(lookup={"lanes": 1, "target_lanes": 1, "row_lanes": 1, "library_lanes": 1, "unroll": 1} | group):
        np.testing.assert_array_equal(pyedmcl.xmap(x, E=3, device=device).rho, wanted)


def test_tables_whose_rows_have_16_bits(device, monkeypatch):
    """Only some GPUs take them; here a device is told to."""
    x, asked = series(False), []
    wanted = pyedmcl.xmap(x, E=2, device=device).rho

    def told(info):
        asked.append(info)
        return replace(quirks_for(info), narrow_tables=True)

    monkeypatch.setattr(lookup, "quirks_for", told)
    monkeypatch.setattr(lookup, "_NARROW_LEAST", (1, 1))
    for parameters in ({}, {"knn": {"lanes": 1}, "lookup": LOOKUPS[0]}):  # one number at a time, and four
        with using(**parameters):
            np.testing.assert_array_equal(pyedmcl.xmap(x, E=2, device=device).rho, wanted, err_msg=str(parameters))
    assert asked


def test_every_row_lane_and_library_lane_is_tried():
    for tunable in spec("lookup").tunables:
        tried = {parameters.get(tunable.name) for parameters in LOOKUPS} | {tunable.default["cpu"]}
        most = 4 if tunable.name == "target_lanes" else 128  # work-items along the targets do not meet
        assert {value for value in tunable.values if value <= most} <= tried, tunable.name


def all_values(name):
    """Each value of each tunable of a kernel at least once, but every other size of groups, in few combinations."""
    values = {t.name: t.values if t.name != "wg" else t.values[::2] for t in spec(name).tunables}
    for at in range(max(map(len, values.values()))):
        yield {tunable: some[at % len(some)] for tunable, some in values.items()}


@pytest.mark.parametrize("name", ["ccm", "ccm_direct"])
def test_sub_libraries(device, name):
    x = series(True)[:500]
    sizes = [12, 250]  # compared with all members, and scanned

    def skill():
        return pyedmcl.ccm(x[:, 0], x[:, 1], E=3, lib_sizes=sizes, sample=18, seed=2, device=device).rho

    wanted = skill()
    for parameters in all_values(name):
        with using(**{name: parameters}):
            np.testing.assert_array_equal(skill(), wanted, err_msg=str(parameters))


def test_projection_and_its_skill(device):
    x = series(True)

    def outputs():
        found = pyedmcl.simplex(x[:, 1], E=2, device=device)
        # Texts of other sizes of groups need loopy.
        rho = pyedmcl.embed_dimension(x[:, :3], E_max=2, device=device).rho
        return [found.predicted, found.variance, found.rho, rho]

    wanted = outputs()
    groups = [{"predict": {"wg": wg}, "skill": {"wg": 64 if wg > 1 else 1}} for wg in (1, 128)]
    lanes = [{"knn": {"lanes": 4}}] if open_device(device).info.kind == "cpu" else []  # GPUs share tiles among scalars
    for parameters in [*groups, *lanes]:
        with using(**parameters):
            for found, before in zip(outputs(), wanted, strict=True):
                np.testing.assert_array_equal(found, before, err_msg=str(parameters))


@pytest.mark.parametrize(("gaps", "dtype"), [(False, "float32"), (True, "float64")], ids=["whole", "gaps"])
def test_one_lookup_serves_all_dimensions_with_few_targets(device, gaps, dtype):
    """A map of many dimensions would compile for seconds what runs for a millisecond."""
    x, dims = series(gaps)[:400], [1, 2, 3, 5, 8, 2, 11]
    with noting() as noted:
        found = pyedmcl.xmap(x, E=dims, dtype=dtype, device=device).rho
    texts = {tuple(sorted(values.items())) for kernel, values in noted if kernel.name == "lookup" and not values["k"]}
    # On GPUs classes share a kernel where they share tuned parameters.
    assert 1 <= len(texts) <= (2 if quirks_for(open_device(device).info).scalar_work_items else 1)
    with using(lookup={"lanes": 4}):  # parameters that somebody asked for: a kernel for each dimension
        np.testing.assert_array_equal(pyedmcl.xmap(x, E=dims, dtype=dtype, device=device).rho, found)


@pytest.mark.parametrize("quads", [False, True], ids=["one by one", "by fours"])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize(
    ("dims", "narrow"), [([1, 3, 6, 4, 1, 3, 6], True), ([1, 2, 2, 1, 1, 2, 1], False)], ids=["many", "few"]
)
def test_one_lookup_serves_all_dimensions_on_gpus(one_device, monkeypatch, dims, narrow, gaps, quads):
    """With the layout of a GPU, and tables whose rows have 16 bits where any dimension repays it; a processor is told
    to do so.
    """
    x = series(gaps)[:400]
    wanted = pyedmcl.xmap(x, E=dims, device=one_device).rho
    layout = {"lanes": 2, "vectors": 1, "target_lanes": 2, "row_lanes": 8, "library_lanes": 2, "stage": True,
              "unroll": 4, "quads": quads}  # fmt: skip
    monkeypatch.setattr(lookup, "quirks_for", lambda info: replace(quirks_for(info), narrow_tables=True))
    monkeypatch.setattr(lookup, "_NARROW_LEAST", (4, 1))
    monkeypatch.setattr(lookup.LookupShapes, "takes_any_k", lambda self, k, width: True)
    monkeypatch.setattr(lookup.LookupShapes, "_for_any_k", lambda self, k, width: layout)
    with using(knn={"lanes": 1, "list_registers": 8}), noting() as noted:  # neighbours lie side by side
        found = pyedmcl.xmap(x, E=dims, device=one_device).rho
    # A pattern of gaps may have targets of one dimension only, whose kernel is its own.
    asked = [values for kernel, values in noted if kernel.name == "lookup" and not values["k"]]
    assert {values["narrow_rows"] for values in asked} == {narrow}
    assert {values["table_tile"] for values in asked} == {1}
    np.testing.assert_array_equal(found, wanted)


def test_dimensions_with_many_targets_have_lookups_of_their_own(one_device):
    """On processors; on GPUs so much work is little."""
    x = coupled_maps(n_series=40, n_steps=120, seed=3).values
    with noting() as noted:
        pyedmcl.xmap(x, E=[2] * 20 + [3] * 20, device=one_device)
    own = not quirks_for(open_device(one_device).info).scalar_work_items
    assert {values["k"] for kernel, values in noted if kernel.name == "lookup"} == ({3, 4} if own else {0})
