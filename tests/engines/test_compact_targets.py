"""Targets of 16 bits: what they do to rho, which targets and pairs are computed in full, and that bits are the same."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from device_helpers import NVIDIA

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.engines import crossmap, lookup
from pyedmcl.engines.targets import CompactTargets, TargetLayout
from pyedmcl.kernels import build, spec
from pyedmcl.kernels.specs.maps import MOST_ERROR, STRANDS
from pyedmcl.kernels.texts import read_text
from pyedmcl.launch.staging import Pool
from pyedmcl.reference import compacted, skill
from pyedmcl.series.scaling import condition
from pyedmcl.simulate import coupled_maps
from pyedmcl.tuning.parameters import using

pytestmark = pytest.mark.filterwarnings("ignore:constant series")

N, LENGTH = 6, 1500
#: As the H200 has them, for the same lookup: staged in local memory, several rows and libraries at once.
STAGED = {"lanes": 4, "vectors": 1, "target_lanes": 2, "row_lanes": 8, "library_lanes": 4, "stage": True, "unroll": 4,
          "quads": True}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def any_number_of_targets():
    """Targets have 16 bits however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossmap, "COMPACT_LEAST", 1)
        yield


def series(kind, length=LENGTH):
    rng = np.random.default_rng(7)
    if kind == "maps":
        return coupled_maps(n_series=N, n_steps=length, seed=2).values.copy()
    noise = rng.standard_normal((length, N))
    if kind == "smooth noise":
        x = noise.copy()
        for t in range(1, length):
            x[t] += 0.7 * x[t - 1]
    elif kind == "log-normal":
        x = np.exp(1.5 * noise)
    elif kind == "heavy tails":
        x = rng.standard_t(2, (length, N))
    elif kind == "spikes":
        x = noise.copy()
        for column in range(N):
            x[rng.choice(length, 5, replace=False), column] += 1e4
    elif kind == "far away":
        x = 1e6 + noise
    else:  # periodic
        t = np.arange(length)[:, None]
        x = np.sin(2 * np.pi * (t / 20 + np.arange(N) / 7)) + 0.3 * np.sin(2 * np.pi * (t / 10))
    return x


def told(found):
    """How many targets were computed in full, and why."""
    [entry] = found.provenance["precision"]
    assert entry["asked"] == "compact" and entry["targets"] == found.rho.shape[1]
    assert bool(entry["full"]) == bool(entry["why"])
    return entry["full"], entry["why"]


def warning(full):
    """What a call must warn of."""
    if not full:
        return contextlib.nullcontext()
    return pytest.warns(RuntimeWarning, match=f"{full} of {N} targets were computed in full, since they do not")


def oracle(x, E, device):
    """rho of all pairs in float64, from the neighbours that maps have."""
    rho = []
    for library in x.T:
        found = pyedmcl.knn(library, E=E, device=device)
        rho.append([skill(found.indices, found.distances, target, 0) for target in x.T])
    return np.array(rho)


@pytest.mark.parametrize(("kind", "length", "full"), [
    ("maps", LENGTH, 0), ("smooth noise", LENGTH, 0), ("periodic", LENGTH, 0), ("log-normal", LENGTH, N),
    ("heavy tails", LENGTH, N), ("spikes", LENGTH, N), ("smooth noise", 200, N), ("maps", 200, N),
])  # fmt: skip
def test_rho_errs_by_no_more_than_was_promised(one_device, kind, length, full):
    x = series(kind, length).astype(np.float32)
    with warning(full):
        found = pyedmcl.xmap(x, E=3, precision="compact", device=one_device)
    in_full = pyedmcl.xmap(x, E=3, device=one_device)
    count, why = told(found)
    assert count == full and ("range" in why or not full)
    assert "precision" not in in_full.provenance
    assert np.abs(found.rho - oracle(x.astype(np.float64), 3, one_device)).max() < MOST_ERROR
    assert (found.rho == in_full.rho).all() == (full == N)


def test_some_targets_in_full(one_device):
    """Those that are allowed 16 bits have them, whatever stands beside them; others keep their bits."""
    x = series("maps")
    x[:, [1, 4]] = series("heavy tails")[:, :2]
    x[:, 5] = 3.0
    with pytest.warns(RuntimeWarning, match="3 of 6 targets"):
        found = pyedmcl.xmap(x, E=[3, 2, 3, 2, 2, 3], precision="compact", device=one_device)
    whole = pyedmcl.xmap(x, E=[3, 2, 3, 2, 2, 3], device=one_device)
    np.testing.assert_array_equal(found.rho[:, [1, 4, 5]], whole.rho[:, [1, 4, 5]])
    others = np.abs(found.rho - whole.rho)[:5, [0, 2, 3]]
    assert 0 < others.max() < MOST_ERROR
    alone = pyedmcl.xmap(x, targets=x[:, [0, 2]], E=3, precision="compact", device=one_device)
    np.testing.assert_array_equal(alone.rho, found.rho[:, [0, 2]])


def test_gaps_are_computed_in_full(one_device):
    x = series("maps")
    x[100:103, 2] = np.nan
    with pytest.warns(RuntimeWarning, match="6 of 6 targets were computed in full, since data have gaps"):
        found = pyedmcl.xmap(x, E=2, precision="compact", device=one_device)
    np.testing.assert_array_equal(found.rho, pyedmcl.xmap(x, E=2, device=one_device).rho)
    assert told(found)[0] == N


def hardly_varying():
    """Libraries, the first of which never change or have a few events: what they predict is mostly one number."""
    x = series("maps")
    x[:, 0] = 2.0
    x[:, 1] = 0
    x[40:45, 1] = x[900:905, 1] = [1, 3, 2, 5, 4]
    return x, series("maps")[:, 2:]


@pytest.mark.parametrize("as_gpus", [False, True], ids=["one work-item", "groups"])
def test_pairs_whose_predictions_hardly_vary_are_computed_again(one_device, monkeypatch, as_gpus):
    libraries, targets = hardly_varying()
    options = {"targets": targets, "E": 2, "device": one_device}
    in_full = pyedmcl.xmap(libraries, **options).rho
    if as_gpus:
        like = quirks_for(open_device(one_device).info)
        like = replace(like, scalar_work_items=True, defaults_for="gpu", local_bytes=1 << 20)
        monkeypatch.setattr(lookup, "quirks_for", lambda info: like)
    with using(lookup=STAGED if as_gpus else {}):
        found = pyedmcl.xmap(libraries, precision="compact", **options).rho
    np.testing.assert_array_equal(found[:2], in_full[:2])
    assert (found[2:] != in_full[2:]).any(), "only pairs that need it"
    assert np.abs(found[2:] - in_full[2:]).max() < MOST_ERROR


def test_two_runtimes_and_other_parameters_give_the_same_bits(both_devices):
    x = np.hstack([series("maps"), series("smooth noise")])
    one, other = (pyedmcl.xmap(x, E=1, precision="compact", device=device).rho for device in both_devices)
    np.testing.assert_array_equal(one, other)
    for parameters in (
        STAGED, {"lanes": 2, "vectors": 2, "target_lanes": 3, "row_lanes": 16, "library_lanes": 2, "stage": True},
    ):  # fmt: skip
        with using(lookup=parameters):
            found = pyedmcl.xmap(x, E=1, precision="compact", device=both_devices[0]).rho
        np.testing.assert_array_equal(found, one, err_msg=str(parameters))


@pytest.mark.parametrize("precision", ["full", "compact"])
def test_sums_that_wait_in_local_memory_have_the_same_bits(device, monkeypatch, precision):
    """Whether they do follows from the size of local memory; here a device is told to."""
    monkeypatch.setattr(lookup, "_REPAID", 0)  # a map as small as this would not stage its targets
    x = series("maps")
    wanted = pyedmcl.xmap(x, E=3, precision=precision, device=device).rho
    for some in (0, 1, 2):
        monkeypatch.setattr(lookup.LookupShapes, "_local_sums", lambda *_, some=some, **__: some)
        # One library at once, so that work-items along the rows stay as many as strands on devices of many units, too.
        with using(lookup={**STAGED, "library_lanes": 1}), build.noting() as noted:
            found = pyedmcl.xmap(x, E=3, precision=precision, device=device).rho
        asked = [values for kernel, values in noted if kernel.name == "lookup" and values["precision"] == precision]
        assert {values["local_sums"] for values in asked} == {some}
        np.testing.assert_array_equal(found, wanted, err_msg=str(some))


def test_sums_wait_where_tables_keep_their_cache():
    info = replace(NVIDIA, name="NVIDIA H200", compute_units=132, max_work_group=1024)

    def waiting(steps, k, *, compact, libraries=1000):
        shapes = lookup.LookupShapes(info, steps, "float32", libraries)
        return shapes.shape(k, 2000, libraries, lambda cost: 1000, compact=compact).local_sums

    with using(lookup={**STAGED, "library_lanes": 32}):
        assert [waiting(steps, 4, compact=True) for steps in (3780, 5000, 5900)] == [2, 1, 0]
        assert waiting(5000, 21, compact=True) == 1
        in_full = [waiting(steps, 4, compact=False, libraries=500) for steps in (1600, 2500, 3780)]
        assert in_full == [2, 2, 0], "room for one group"
        assert waiting(2500, 4, compact=False) == 0, "twice the targets take that room"


def test_the_kernel_deals_rows_into_as_many_strands_as_engines_think():
    assert f"#define STRANDS {STRANDS}\n" in read_text("templates", "lookup.cl.mako")


def repeating():
    """Libraries of few states, and targets that they know: predictions are made of the same rows again and again."""
    rng, t = np.random.default_rng(3), np.arange(3000)
    few = [rng.standard_normal((period, 6))[t % period] for period in (2, 3, 4)]
    return np.hstack(few), np.hstack([*few, series("smooth noise", 3000)])


def test_libraries_of_few_states_are_looked_up_in_full(one_device, monkeypatch):
    libraries, targets = repeating()
    for E in (3, 1):
        options = {"targets": targets, "E": E, "device": one_device}
        in_full = pyedmcl.xmap(libraries, **options).rho
        found = pyedmcl.xmap(libraries, precision="compact", **options)
        assert told(found)[0] == 0
        np.testing.assert_array_equal(found.rho, in_full)
    # Without counting they would err by more than was promised.
    count = CompactTargets.repeats

    def uncounted(self, tables, E, predicted):
        found = count(self, tables, E, predicted)
        self._executor.upload(np.ones(tables.n_libraries, np.float32), found)
        return found

    monkeypatch.setattr(CompactTargets, "repeats", uncounted)
    careless = pyedmcl.xmap(libraries, precision="compact", **options).rho
    assert np.nanmax(np.abs(careless - in_full)) > MOST_ERROR


def test_rounded_libraries_err_no_more(one_device):
    x = np.round(series("smooth noise", 3000))
    for E in (1, 2):
        rho = [pyedmcl.xmap(x, E=E, precision=how, device=one_device).rho for how in ("compact", "full")]
        assert np.abs(rho[0] - rho[1]).max() < MOST_ERROR


@pytest.mark.parametrize("kind", ["maps", "heavy tails", "far away"])
def test_codes_are_those_of_the_oracle(one_device, kind):
    executor = open_device(one_device)
    values = np.ascontiguousarray(condition(series(kind), "float32").values)
    pool = Pool(executor)
    half = CompactTargets(executor, pool, LENGTH, TargetLayout(LENGTH, N))
    codes = half.encode(executor.upload(values), 3, LENGTH)
    bits, centres = np.empty((LENGTH, N), np.uint16), np.empty(N, np.float32)
    executor.download(codes.values, bits)
    executor.download(codes.centres, centres)
    found = (bits.astype(np.uint32) << 8 | 0x3F000000).view(np.float32)
    wanted = np.column_stack([compacted(column) for column in values.T])
    assert np.abs(found - wanted).max() <= 2.0**-15, "a number between two codes may become either"
    assert (found == wanted).mean() > 0.98
    assert found.min() >= 0.5 and found.max() < 2
    zero = 0.5 - values.min(axis=0) * (1.4999 / np.ptp(values, axis=0))
    np.testing.assert_allclose(centres, zero, rtol=1e-5)
    allowed = np.ptp(values, axis=0) <= 0.2 * np.sqrt(LENGTH - 3) * values[3:].std(axis=0)
    np.testing.assert_array_equal(half.allowed(N), allowed)
    pool.release()


def test_nvidia_permutes_bytes_and_others_shift():
    values = {**spec("lookup").defaults("gpu"), "k": 4, "dtype": "float32", "gaps": False, "stage_rows": 512,
              "table_tile": 1, "narrow_rows": True, "precision": "compact", "local_sums": 0}  # fmt: skip
    for lanes in (2, 8):
        text = build.text_for(spec("lookup"), {**values, "lanes": lanes}, NVIDIA)
        assert "#define BYTE_PERMUTE 1" in text and "top_byte" in text
    assert not quirks_for(replace(NVIDIA, runtime="amd")).byte_permute


def test_wider_vectors_serve_half_the_bytes(monkeypatch):
    """On GPUs 16 bytes hold eight targets; where these do not fit into local memory, a group owns as many as before."""
    info = replace(NVIDIA, name="NVIDIA H200", compute_units=132, max_work_group=1024)
    with using(lookup={**STAGED, "library_lanes": 32}):
        for steps, wanted in ((3780, (8, 2, 8, 32)), (8528, (8, 1, 8, 64)), (20000, (4, 2, 8, 32))):
            shapes = lookup.LookupShapes(info, steps, "float32", 1000)
            found = shapes.shape(4, 2000, 1000, lambda cost: 1000, compact=True)
            chosen = found.parameters
            names = "lanes", "target_lanes", "row_lanes", "library_lanes"
            assert tuple(chosen[name] for name in names) == wanted, steps
            assert bool(found.stage_rows) == (steps < 20000)
            assert found.local_sums == {3780: 2, 8528: 1, 20000: 0}[steps]
            assert shapes.shape(4, 2000, 1000, lambda cost: 1000).parameters["lanes"] == 4
