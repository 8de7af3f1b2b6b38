"""Random sub-libraries and their skill on the device: the oracle's members, and the same bits however found."""

from __future__ import annotations

import re

import naive
import numpy as np
import pytest

from pyedmcl.device.select import open_device
from pyedmcl.engines import ccm
from pyedmcl.engines.ccm import ENTRIES, CcmPair, ColumnKernels, Field, SampledSkill, reach, split_sizes
from pyedmcl.kernels.specs.maps import CCM_CHUNK, SAMPLES, SUMS
from pyedmcl.kernels.texts import read_text
from pyedmcl.reference import edm as oracle
from pyedmcl.search.tables import TableSpace
from pyedmcl.states.states import delay_states, future
from pyedmcl.tuning.parameters import using


@pytest.fixture
def executor(device):
    return open_device(device)


def gaps(x, seed):
    x = x.copy()
    x[np.random.default_rng(seed).choice(len(x), 4, replace=False)] = np.nan
    return x


def skill(executor, x, sizes, samples, *, seed=3, E=3, tau=1, Tp=0, k=None, R=0, dtype="float32", allowed=None):
    states = delay_states(x, E, tau, k=k or E + 1, Tp=Tp, exclusion_radius=R, dtype=dtype)
    engine = SampledSkill(executor, states, np.array([future(column, Tp) for column in x.T]), allowed)
    try:
        return engine.skill([CcmPair(0, 1, (0, 1)), CcmPair(1, 0, (1, 0))], sizes, samples, seed)
    finally:
        engine.release()


def test_host_and_kernels_describe_columns_alike():
    text = read_text("clkernels", "ccm.clh")
    found = re.findall(r"#define COLUMN_(\w+)\(c\) (?:\(uint\))?\(c\)\[(\d+)\]", text)
    assert {name: int(place) for name, place in found} == {field.name: field.value for field in Field}
    constants = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)\s", text)}
    wanted = {"COLUMN_INTS": len(Field), "SAMPLES": SAMPLES, "CHUNK": CCM_CHUNK, "SUMS": SUMS}
    assert {name: constants[name] for name in wanted} == wanted


def test_random_numbers_are_those_of_the_paper():
    # Known answers of the authors' library (Random123, kat_vectors).
    known = [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ]  # fmt: skip
    for counter, key, expected in known:
        assert " ".join(f"{v:08x}" for v in oracle.philox4x32(counter, key)) == expected


@pytest.mark.parametrize("lanes", [1, 16])
def test_members_are_the_oracles(executor, lanes):
    x = naive.noisy_maps(2, 150, 1)
    x[:, 0] = gaps(x[:, 0], 1)
    states = delay_states(x, 2, 1, k=3, Tp=1, exclusion_radius=0, dtype="float32")
    engine = SampledSkill(executor, states, np.array([future(column, 1) for column in x.T]))
    with using(ccm_draw={"lanes": lanes, "wg": 1 if lanes > 1 else 32}):
        for pair in (CcmPair(0, 1, (0, 7)), CcmPair(1, 0, (2**20, 0))):
            rows = np.flatnonzero(engine.library_mask(pair))
            sizes = [4, 77, len(rows)]
            for size, found in zip(sizes, engine.members(pair, sizes, 19, 2**40 + 5), strict=True):
                for sample in range(19):
                    drawn = oracle.sub_library(len(rows), size, seed=2**40 + 5, library=pair.stream[0],
                                               target=pair.stream[1], sample=sample)  # fmt: skip
                    np.testing.assert_array_equal(np.flatnonzero(found[sample]), rows[drawn])
    engine.release()


def test_samples_are_uniform_and_independent():
    n, size, samples = 40, 10, 1500
    drawn = np.zeros((samples, n))
    for sample in range(samples):
        drawn[sample, oracle.sub_library(n, size, seed=1, library=0, target=1, sample=sample)] = 1
    # Each row has the same chance; two rows exclude each other slightly, as in drawing without replacement.
    share = drawn.mean(axis=0)
    assert np.abs(share - size / n).max() < 5 * np.sqrt(0.25 * 0.75 / samples)
    both = drawn.T @ drawn / samples
    expected = size * (size - 1) / (n * (n - 1))
    off = both[~np.eye(n, dtype=bool)]
    assert np.abs(off - expected).max() < 6 * np.sqrt(expected / samples)
    # Overlaps of different samples, sizes, directions and seeds are those of chance.
    others = [oracle.sub_library(n, size, seed=s, library=a, target=b, sample=m)
              for s, a, b, m in ((2, 0, 1, 0), (1, 1, 0, 0), (1, 0, 2, 0))]  # fmt: skip
    first = oracle.sub_library(n, size, seed=1, library=0, target=1, sample=0)
    assert all(not np.array_equal(first, other) for other in others)


CASES = {
    "plain": (lambda: naive.noisy_maps(2, 230, 2), {}),
    "lagged": (lambda: naive.noisy_maps(2, 230, 3), {"E": 2, "tau": 3, "Tp": 2, "R": 4}),
    "before": (lambda: naive.noisy_maps(2, 230, 4), {"Tp": -3}),
    "many": (lambda: naive.noisy_maps(2, 230, 5), {"E": 9, "k": 12}),
    "one": (lambda: naive.noisy_maps(2, 230, 5), {"E": 1, "k": 1}),
    "ties": (lambda: np.random.default_rng(6).integers(0, 4, (230, 2)).astype(np.float32), {}),
    "gaps": (lambda: np.column_stack([gaps(c, i) for i, c in enumerate(naive.noisy_maps(2, 230, 7).T)]), {"Tp": 1}),
    "offset": (lambda: naive.noisy_maps(2, 230, 8).astype(np.float64) + 1e4, {}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_skill_is_the_oracles(executor, case):
    make, options = CASES[case]
    x = make()
    E, tau, Tp = (options.get(name, default) for name, default in (("E", 3), ("tau", 1), ("Tp", 0)))
    most = min(int((oracle.library_mask_of(x[:, a], E, tau, Tp, x[:, b])).sum()) for a, b in ((0, 1), (1, 0)))
    sizes, samples = [14, 30, 75, 160, most], [0, 1, 16]
    named = {"R": "exclusion_radius"}
    expected = np.array([
        [[oracle.ccm_skill(x[:, a], x[:, b], size, seed=3, library=a, target=b, sample=sample,
                           **{"E": 3, **{named.get(name, name): value for name, value in options.items()}})
          for sample in samples] for size in sizes] for a, b in ((0, 1), (1, 0))
    ])  # fmt: skip
    exactly = case in ("plain", "gaps", "offset")  # which share their kernels
    for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-10))[: 1 + exactly]:
        if case == "ties" and dtype == "float32":
            tolerance = 1e-6  # whole numbers are exact
        found = skill(executor, x, sizes, 17, dtype=dtype, **options)[:, :, samples]
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def forced(direct, entries):
    return lambda sizes, *_: (np.isin(np.arange(len(sizes)), direct), entries)


@pytest.mark.parametrize(
    ("options", "dtype"), [({}, "float32"), ({}, "float64"), ({"k": 10, "R": 5}, "float32")]
)
def test_the_way_to_a_skill_does_not_change_a_bit(device, monkeypatch, options, dtype):
    executor = open_device(device)
    x = np.column_stack([gaps(c, i + 9) for i, c in enumerate(naive.noisy_maps(2, 300, 9).T)])
    sizes = [17, 40, 150, 270]
    first = skill(executor, x, sizes, 20, dtype=dtype, **options)
    assert np.isfinite(first).all()
    # All from distances to members; all by scans of lists that are mostly too short; all by scans of long ones.
    for direct, entries in ((range(4), 0), ((), 16), ((), 256)):
        monkeypatch.setattr(ccm, "split_sizes", forced(list(direct), entries))
        np.testing.assert_array_equal(skill(executor, x, sizes, 20, dtype=dtype, **options), first)
    for parameters in ({"lanes": 1, "wg": 32, "unroll": 2}, {"lanes": 4, "wg": 1, "unroll": 8}):
        monkeypatch.setattr(ccm, "split_sizes", forced([0, 2], 256))
        with using(ccm=parameters, ccm_direct={"lanes": parameters["lanes"], "wg": parameters["wg"]}):
            np.testing.assert_array_equal(skill(executor, x, sizes, 20, dtype=dtype, **options), first)


def test_two_runtimes_give_the_same_bits(both_devices):
    x = naive.noisy_maps(2, 400, 10)
    one, other = (skill(open_device(device), x, [20, 100, 397], 40) for device in both_devices)
    np.testing.assert_array_equal(one, other)


def test_little_memory_changes_nothing(one_device, monkeypatch):
    executor = open_device(one_device)
    x = naive.noisy_maps(2, 400, 11)
    sizes = [20, 60, 200]
    plenty = skill(executor, x, sizes, 50)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", str(300_000))
    np.testing.assert_array_equal(skill(executor, x, sizes, 50), plenty)


@pytest.mark.parametrize("Tp", [0, 2])
def test_tables_that_are_cut_by_memory_change_nothing(one_device, monkeypatch, Tp):
    """A library of a later table is found among all of them, also where distances to members are computed."""
    executor = open_device(one_device)
    x, sizes = naive.noisy_maps(2, 400, 11), [20, 60, 200]
    whole = skill(executor, x, sizes, 20, Tp=Tp)
    make = TableSpace.__init__

    def one_library_each(self, *arguments, **options):
        make(self, *arguments, **options)
        self._table_limit = 1

    monkeypatch.setattr(TableSpace, "__init__", one_library_each)
    np.testing.assert_array_equal(skill(executor, x, sizes, 20, Tp=Tp), whole)


def test_rows_that_may_be_drawn(executor):
    x = naive.noisy_maps(2, 200, 12)
    allowed = np.random.default_rng(0).random(200) < 0.5
    n = int((oracle.library_mask_of(x[:, 0], 3, 1, 0, x[:, 1]) & allowed).sum())
    found = skill(executor, x, [10, n], 2, allowed=allowed)
    for place, size in enumerate((10, n)):
        expected = oracle.ccm_skill(x[:, 0], x[:, 1], size, E=3, seed=3, library=0, target=1, sample=1,
                                    library_mask=allowed)  # fmt: skip
        assert found[0, place, 1] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("k", "wanted", "n"), [(4, 80, 998), (2, 20, 60), (11, 300, 1000), (1, 50, 5000)])
def test_reach_is_the_quantile_it_says(k, wanted, n):
    found = reach(k, wanted, n, 0.01)
    rng = np.random.default_rng(1)
    short = rng.binomial(found, wanted / n, 40_000) < k
    assert short.mean() < 0.013
    assert (rng.binomial(found - 1, wanted / n, 40_000) < k).mean() > 0.007
    assert reach(k, n, n) == k and reach(2, 5, 60) == 60


def test_sizes_are_split_by_what_they_cost():
    direct, entries = split_sizes([5, 900], 1000, 3, 4, 10**6)
    assert direct.tolist() == [True, False] and entries == ENTRIES[0]
    direct, entries = split_sizes([5, 900], 1000, 3, 4, 3)
    assert direct.all() and entries == 0
    direct, entries = split_sizes([500, 900], 100_000, 3, 4, 64)
    assert direct.all()


def test_pairs_that_draw_the_same_rows_share_their_draws(one_device, monkeypatch):
    """As windows do, and surrogates of a target: the stream and the rows to draw from decide, not the series."""
    x, sizes = naive.noisy_maps(4, 140, 7), [9, 60]
    x[50, 3] = np.nan
    pairs = [CcmPair(0, 1, (0, 1)), CcmPair(2, 0, (0, 1)), CcmPair(1, 2, (1, 0)), CcmPair(3, 1, (0, 1))]
    states = delay_states(x, 3, 1, k=4, Tp=0, exclusion_radius=0, dtype="float32")
    engine = SampledSkill(open_device(one_device), states, np.array([future(column, 0) for column in x.T]))
    draw, drawn = ColumnKernels.draw, []
    monkeypatch.setattr(ColumnKernels, "draw", lambda *given: drawn.append(len(given[2])) or draw(*given))
    together = engine.skill(pairs, sizes, 40, 3)
    assert drawn == [3 * len(sizes) * 3]  # of four pairs; forty samples are three columns
    for pair, rho in zip(pairs, together, strict=True):
        np.testing.assert_array_equal(engine.skill([pair], sizes, 40, 3)[0], rho)
    engine.release()


@pytest.mark.parametrize("k", [4, 11])
def test_members_drawn_elsewhere_and_rows_with_too_few_neighbours(executor, monkeypatch, k):
    x = naive.noisy_maps(2, 90, 13)
    rng, sizes = np.random.default_rng(1), [k + 2, 40]
    rows = np.arange(2, 90)
    members = np.zeros((1, 2, 20, 90), bool)
    for place, size in enumerate(sizes):
        for sample in range(20):
            members[0, place, sample, rng.choice(rows, size, replace=False)] = True
    states = delay_states(x[:, :1], 3, 1, k=k, Tp=0, exclusion_radius=12, dtype="float64")
    found = []
    for direct, entries in (([0, 1], 0), ([], 64)):
        monkeypatch.setattr(ccm, "split_sizes", forced(direct, entries))
        for least in (1, 3, k):
            engine = SampledSkill(executor, states, x[:, 1][None].astype(float), least=least)
            found.append(engine.skill([CcmPair(0, 0, (0, 0))], sizes, 20, 0, members))
            engine.release()
    for one, other in zip(found[:3], found[3:], strict=True):
        np.testing.assert_array_equal(one, other)
    for least, rho in zip((1, 3, k), found, strict=False):
        for place, sample in ((0, 0), (0, 19), (1, 7)):
            indices, distances = naive.knn(x[:, 0], 3, k=k, exclusion_radius=12, lib=members[0, place, sample])
            predicted, _ = naive.predict(indices, distances, x[:, 1], 0)
            predicted[(indices >= 0).sum(axis=1) < least] = np.nan
            expected = naive.pearson(predicted, x[:, 1].astype(float))
            np.testing.assert_allclose(rho[0, place, sample], expected, atol=1e-10)
