"""Default parameters: what a device class starts from, and where the problem or the device bends them."""

from __future__ import annotations

import functools
from dataclasses import replace
from types import SimpleNamespace

import pytest
from device_helpers import AMD, ARC, INTEL, LLVMPIPE, NVIDIA, POCL31
from hypothesis import given
from hypothesis import strategies as st

from pyedmcl.device import quirks
from pyedmcl.export.kernel_source import usual_values
from pyedmcl.kernels import spec
from pyedmcl.search.plan import KnnPass, SearchProblem, with_enough_groups
from pyedmcl.search.tables import TableSpace
from pyedmcl.tuning import defaults
from pyedmcl.tuning.parameters import parameters

#: Without the quirk that gives an H200 more local memory than its driver reports.
A100 = replace(NVIDIA, name="NVIDIA A100-SXM4-80GB")


def knn(info=A100, **given):
    asked = {"dtype": "float32", "dims": (3,), "tau": 1, "simplexes": 1, **given}
    return parameters(spec("knn"), asked, info).parameters


def test_every_default_satisfies_its_constraints():
    for dims, tau, dtype in (((3,), 1, "float32"), (tuple(range(1, 11)), 3, "float32"), ((20,), 500, "float64")):
        chosen = knn(dims=dims, tau=tau, dtype=dtype)
        search = SearchProblem(dims, tuple(E + 1 for E in dims), tau, 0, 0, 100_000, 100_000, dtype)
        for emit in ("weights", "neighbours"):
            spec("knn").check(KnnPass(search, emit, chosen).values(False))


def test_lags_that_do_not_fit_into_local_memory_are_read_directly():
    assert knn(dims=(20,), tau=1)["tile"] > 0
    assert knn(dims=(20,), tau=5000)["tile"] == 0
    assert 0 < knn(replace(A100, local_bytes=4096), dims=(20,), tau=1)["tile"] <= 256
    assert knn(replace(A100, local_bytes=512), dims=(20,), tau=1)["tile"] == 0


def test_lags_fit_into_local_memory_that_the_driver_does_not_report():
    assert 0 < knn(A100, dims=(20,), tau=200)["tile"] < knn(NVIDIA, dims=(20,), tau=200)["tile"]


def test_groups_respect_the_device():
    assert knn(replace(NVIDIA, max_work_group=32))["wg"] == 32


def test_narrow_classes_of_targets_get_narrow_vectors_on_processors():
    cpu = replace(NVIDIA, kind="cpu", runtime="intel-cpu")
    wide = parameters(spec("lookup"), {"dtype": "float32", "columns": 1000}, cpu).parameters
    narrow = parameters(spec("lookup"), {"dtype": "float32", "columns": 5}, cpu).parameters
    assert narrow["lanes"] * narrow["vectors"] == 8
    assert wide["lanes"] * wide["vectors"] == 64
    # A block is computed whole: 82 targets would fill 128 columns of four vectors, and 96 of two.
    for columns, vectors in ((50, 4), (82, 2), (154, 2), (180, 4), (200, 2), (257, 4)):
        chosen = parameters(spec("lookup"), {"dtype": "float32", "columns": columns}, cpu).parameters
        assert (chosen["lanes"], chosen["vectors"]) == (16, vectors), columns


def test_a_bound_that_is_tuned_for_few_neighbours_holds_for_many():
    tuned = {"unroll": 16, "bound_share": 3, "tile": 1024}
    few, many = SearchProblem((3,), (4,), 1, 0, 0, 4000, 4000), SearchProblem((3,), (96,), 1, 0, 0, 4000, 4000)
    assert with_enough_groups(tuned, few) == tuned
    assert with_enough_groups(tuned, many) == {**tuned, "bound_share": 1}
    most = with_enough_groups(tuned, SearchProblem((3,), (256,), 1, 0, 0, 4000, 4000))
    assert most == {**tuned, "bound_share": 1, "unroll": 4}  # 1,000 steps for 645 groups
    short = with_enough_groups(tuned, SearchProblem((3,), (128,), 1, 0, 0, 1000, 1000))
    assert short == {"unroll": 2, "bound_share": 1, "tile": 0}  # staged rows would be read four at a time
    long = SearchProblem((3,), (96,), 1, 0, 0, 100_000, 100_000)
    assert with_enough_groups(tuned, long) == tuned


def test_a_compiler_of_few_registers_gets_passes_of_few_dimensions():
    gpu_max = replace(NVIDIA, name="Intel(R) Data Center GPU Max 1550", runtime="intel-gpu", vendor="Intel")
    search = SearchProblem(tuple(range(1, 21)), tuple(range(2, 22)), 1, 0, 0, 1000, 1000)
    few, many = (TableSpace(SimpleNamespace(info=info), search, "weights").passes for info in (gpu_max, NVIDIA))
    assert [len(p.problem.dims) for p in few] == [4, 4, 4, 4, 4]
    assert len(many) < len(few)
    assert [E for p in few for E in p.problem.dims] == list(search.dims)


@pytest.mark.parametrize(("dtype", "tau", "tile", "wg"), [
    ("float32", 1, 2048, 128), ("float64", 1, 1024, 128), ("float32", 100, 2048, 128), ("float32", 500, 256, 128),
    ("float32", 5000, 0, 128),
])  # fmt: skip
def test_default_tiles_shrink_rather_than_vanish(dtype, tau, tile, wg):
    chosen = defaults.defaults(spec("knn"), {"dtype": dtype, "dims": (1, 11), "tau": tau}, A100, 1024)
    assert (chosen["tile"], chosen["wg"]) == (tile, wg)


def test_by_default_a_bound_on_many_neighbors_looks_at_row_by_row():
    asked = {"dtype": "float32", "dims": (3,), "tau": 1, "simplexes": 24}
    chosen = defaults.defaults(spec("knn"), asked, A100, 1024)
    assert (chosen["unroll"], chosen["tile"], chosen["wg"]) == (1, 0, 32)
    assert defaults.defaults(spec("knn"), {**asked, "simplexes": 1}, A100, 1024)["unroll"] == 16
    on_processor = defaults.defaults(spec("knn"), asked, INTEL, 1024)
    assert on_processor == defaults.defaults(spec("knn"), {**asked, "simplexes": 1}, INTEL, 1024)


@pytest.mark.parametrize(
    ("E", "dtype", "lanes"),
    [(1, "float32", 4), (3, "float32", 4), (10, "float32", 1), (1, "float64", 4), (3, "float64", 1)],
)
def test_a_work_item_of_a_gpu_has_several_query_rows_where_registers_hold_them(E, dtype, lanes):
    asked = {"E": E, "k": E + 1, "dtype": dtype}
    assert defaults.defaults(spec("ccm_direct"), asked, NVIDIA, 1024)["lanes"] == lanes
    assert defaults.defaults(spec("ccm_direct"), asked, INTEL, 1024)["lanes"] == (8 if dtype == "float64" else 16)


@functools.cache
def specialisations():
    """What each kernel's text is made for in a usual problem."""
    made = usual_values(A100)
    return {name: {given: values[given] for given in spec(name).specialisation} for name, values in made.items()}


# Whatever holds for a device: each subset of rows stands for one that may come. Those that make a device unusable, or
# begin its programs with a text of their own, say nothing of parameters.
_ROWS = [row for row in quirks.TABLE if not {"unusable", "prelude", "lone_prelude"} & set(row.change)]


def device_of(rows, monkeypatch, base=A100):
    """A device for which some rows of the table hold, and no others."""
    monkeypatch.setattr(quirks, "TABLE", tuple(replace(row, applies=lambda info: True) for row in rows))
    quirks.quirks_for.cache_clear()
    return base


def contradictions(info):
    """Kernels whose defaults the kernel itself would refuse on a device, and why."""
    found = {}
    for name, specialisation in specialisations().items():
        kernel = spec(name)
        chosen = defaults.defaults(kernel, specialisation, info, info.max_work_group)
        known = {**specialisation, **quirks.quirks_for(info).values}
        said = [*defaults.objections(kernel, chosen, known, kernel.constraints)]
        found.update({name: said} if said else {})
    return found


@given(st.sets(st.integers(0, len(_ROWS) - 1)))
def test_defaults_respect_whatever_quirks_meet(numbers):
    with pytest.MonkeyPatch.context() as patch:
        try:
            assert contradictions(device_of([_ROWS[number] for number in sorted(numbers)], patch)) == {}
        finally:
            quirks.quirks_for.cache_clear()


@pytest.mark.parametrize("info", [replace(LLVMPIPE, driver="25.0.7"), INTEL, POCL31, ARC, AMD, NVIDIA, A100],
                         ids=lambda info: f"{info.runtime} {info.name}")  # fmt: skip
def test_defaults_respect_the_quirks_of_each_device(info):
    assert contradictions(info) == {}
