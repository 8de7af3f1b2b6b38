"""Search spaces: enumeration, validity, neighbours, counts, and what every spec must say of itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest
from device_helpers import INTEL, NVIDIA
from search_helpers import DEFAULT, PAPER, counting

from pyedmcl.kernels import NAMES, spec
from pyedmcl.kernels.kernel_spec import Constraint, Tunable, group
from pyedmcl.tuner.search import Space
from pyedmcl.tuning.records import canonical

KNN = {"dims": (3,), "counts": (4,), "tau": 1, "dtype": "float32"}


@pytest.fixture
def space():
    return Space(PAPER, INTEL, {"dtype": "float32"})


def by_hand():
    for lanes, tile, unroll in itertools.product((1, 2, 4, 8), (0, 64, 128), (1, 2, 4)):
        if tile == 0 or lanes == 1:
            yield {"lanes": lanes, "tile": tile, "unroll": unroll}


def test_enumeration_is_the_product_less_what_breaks_a_constraint(space):
    assert list(space.enumerate()) == list(by_hand())
    assert space.raw_count() == 36
    assert space.count() == len(list(by_hand())) == 18


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("info", [INTEL, NVIDIA], ids=["cpu", "gpu"])
def test_counts_are_those_of_the_enumeration(name, info):
    counted, looks = counting(spec(name))
    space = Space(counted, info, KNN if name == "knn" else {})
    count = space.count()
    assert len(looks) <= 10_000, "branches in which nothing is left to decide are not walked through"
    if count <= 20_000:
        assert count == sum(1 for _ in space.enumerate())
    else:  # millions: counted without walking through them
        some = list(itertools.islice(space.enumerate(), 500))
        assert len({canonical(c) for c in some}) == 500
        assert not any(space.broken(c) for c in some)
    assert 0 < count <= space.raw_count()


def test_a_constraint_on_what_only_the_engine_knows_is_left_to_it():
    unknown = replace(PAPER, constraints=(*PAPER.constraints, Constraint(lambda v: v["capacity"] > v["lanes"], "room")))
    assert Space(unknown, INTEL).count() == 18
    assert Space(unknown, INTEL, {"capacity": 3}).count() == 18 - 6  # lanes 4 and 8, three steps each


def test_a_constraint_that_copies_the_values_waits_for_all_it_needs():
    lone = Constraint(lambda v: dict(v)["tile"] == 0 or dict(v)["lanes"] == 1, "copied")
    copies = replace(PAPER, constraints=(lone,))
    assert Space(copies, INTEL).count() == len(list(Space(copies, INTEL).enumerate())) == 18


def test_validity_names_every_reason(space):
    assert space.broken(DEFAULT) == []
    assert space.broken({**DEFAULT, "tile": 64}) == ["a tile is for scalar work-items"]
    assert space.broken({**DEFAULT, "unroll": 3}) == ["unroll = 3 is none of 1, 2, 4"]
    assert space.broken({**DEFAULT, "unroll": True}) == ["unroll = True is none of 1, 2, 4"]
    has = "the kernel has lanes, tile, unroll"
    assert space.broken({"lanes": 1}) == [f"they name lanes, {has}"]
    assert space.broken({**DEFAULT, "depth": 1}) == [f"they name depth, lanes, tile, unroll, {has}"]


A100 = replace(NVIDIA, name="NVIDIA A100-SXM4-80GB")  # no quirk gives it more local memory


def test_groups_and_tiles_keep_to_the_device():
    lookup = Space(spec("lookup"), replace(INTEL, max_work_group=8))
    assert all(group(c) <= 8 for c in lookup.enumerate())
    assert lookup.count() < Space(spec("lookup"), INTEL).count()
    small = Space(spec("knn"), replace(A100, local_bytes=2048), KNN)
    assert all(c["tile"] <= 512 for c in (small.sample(Random(seed)) for seed in range(200)))


def test_neighbours_are_one_step_away_and_mended_where_a_constraint_needs_it(space):
    around = space.neighbours(DEFAULT)
    assert {"lanes": 4, "tile": 0, "unroll": 1} in around
    assert {"lanes": 8, "tile": 0, "unroll": 2} in around
    assert {"lanes": 1, "tile": 64, "unroll": 1} in around, "a tile for scalar work-items: lanes follow"
    assert len(around) == 3
    assert not any(space.broken(c) for c in around)
    assert DEFAULT not in around


def test_every_configuration_can_be_reached_by_neighbours(space):
    seen, waiting = {canonical(DEFAULT)}, [DEFAULT]
    while waiting:
        for found in space.neighbours(waiting.pop()):
            if canonical(found) not in seen:
                seen.add(canonical(found))
                waiting.append(found)
    assert len(seen) == space.count()


def test_a_value_that_is_not_listed_has_neighbours_on_both_sides():
    space = Space(spec("predict"), INTEL)
    assert [c["wg"] for c in space.neighbours({"wg": 16})] == [1, 32]


def test_samples_are_valid_and_many(space):
    drawn = {canonical(space.sample(Random(seed))) for seed in range(300)}
    assert len(drawn) == space.count()
    assert Space(PAPER, INTEL).sample(Random(5)) == space.sample(Random(5))


def test_samples_of_a_space_with_few_valid_configurations():
    one = Constraint(lambda v: (v["lanes"], v["tile"], v["unroll"]) == (4, 64, 2), "only this")
    rare = Space(replace(PAPER, constraints=(one,)), INTEL)
    assert rare.sample(Random(1)) == {"lanes": 4, "tile": 64, "unroll": 2}
    assert rare.count() == 1
    none = Space(replace(PAPER, constraints=(Constraint(lambda v: False, "never"),)), INTEL)
    assert (none.sample(Random(1)), none.count(), list(none.enumerate())) == (None, 0, [])


def test_perturbed_configurations_differ_in_so_many_places(space):
    for seed in range(50):
        found = space.perturbed({"lanes": 1, "tile": 0, "unroll": 1}, Random(seed), 2)
        assert not space.broken(found)
        assert sum(found[name] != value for name, value in {"lanes": 1, "tile": 0, "unroll": 1}.items()) == 2
    assert Space(spec("stage"), INTEL).perturbed({}, Random(1), 2) is None


@pytest.mark.parametrize("name", NAMES)
def test_specs_say_what_each_tunable_does_and_why_each_constraint_is_there(name):
    the_spec = spec(name)
    for tunable in the_spec.tunables:
        assert isinstance(tunable, Tunable)
        assert len(tunable.why) > 3, tunable.name
        assert {"cpu", "gpu"} <= set(tunable.default), f"{tunable.name} has no default for a device class"
        assert set(tunable.default.values()) <= set(tunable.values), f"{tunable.name}: a default that is never tried"
        assert len(set(tunable.values)) == len(tunable.values) > 1, tunable.name
        assert list(tunable.values) == sorted(tunable.values), f"{tunable.name}: neighbours are values side by side"
    for constraint in the_spec.constraints:
        assert len(constraint.reason) > 10
    module, _, function = the_spec.oracle.partition(":")
    assert module and function, "an oracle to verify against"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("info", [INTEL, NVIDIA], ids=["cpu", "gpu"])
def test_defaults_satisfy_the_constraints(name, info):
    space = Space(spec(name), info, KNN if name == "knn" else {})
    assert [reason for reason in space.broken(space.defaults()) if "is none of" not in reason] == []
