"""Sequences of copies and launches that are gone through again: same bits as without them, and never where they lie."""

import threading

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.memory import counting
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import open_device
from pyedmcl.embedding import dimension
from pyedmcl.errors import DeviceMemoryError, LaunchError
from pyedmcl.launch import replay as replay_module
from pyedmcl.launch import staging
from pyedmcl.tuning.parameters import source


@pytest.fixture
def recordings(monkeypatch):
    """How often a sequence was recorded."""
    made = []
    recorded = replay_module._recorded
    monkeypatch.setattr(replay_module, "_recorded", lambda *given: made.append(given) or recorded(*given))
    return made


def series(seed, n=137):
    return np.random.default_rng(seed).standard_normal(n)


def bits(result):
    return [np.asarray(getattr(result, name)).tobytes() for name in ("predicted", "variance", "rho", "mae", "rmse")]


def alone(x, device, function=pyedmcl.simplex, **given):
    """Of a device that keeps nothing."""
    open_device(device).sets.clear()
    return function(x, device=device, **given)


@pytest.mark.parametrize(
    "given", [{"E": 3}, {"E": 3, "Tp": -2}, {"E": 2, "neighbors": "auto"}, {"E": 2, "dtype": "float64"}]
)
def test_other_data_of_the_same_shape_give_their_own_bits(device, recordings, given):
    expected = [alone(series(seed), device, **given) for seed in range(3)]
    open_device(device).sets.clear()
    recordings.clear()
    found = [pyedmcl.simplex(series(seed), device=device, **given) for seed in range(3)]
    assert [bits(one) for one in found] == [bits(one) for one in expected]
    assert len(recordings) == 1
    for name in ("tuning", "parameters", "grade", "neighbors", "kernels"):
        assert [one.provenance[name] for one in found] == [one.provenance[name] for one in expected]


@pytest.mark.parametrize(
    "given",
    [{"E": 3, "theta": 2.0}, {"E": 2, "theta": [0.0, 1.5], "dtype": "float64"}, {"E": 4, "knn": 40}, {"E": 20}],
    ids=str,
)
def test_local_fits_of_other_data(device, recordings, given):
    """Their bases have numbers of their own, which launches are told."""
    data = [(1 + 9 * seed) * series(seed, 400) + 100 * seed for seed in range(3)]
    expected = [alone(x, device, pyedmcl.smap, **given) for x in data]
    open_device(device).sets.clear()
    recordings.clear()
    found = [pyedmcl.smap(x, device=device, **given) for x in data]
    assert [bits(one) for one in found] == [bits(one) for one in expected]
    assert [one.coefficients.tobytes() for one in found] == [one.coefficients.tobytes() for one in expected]
    assert len(recordings) == 1
    for name in ("tuning", "parameters", "grade", "kernels"):
        assert [one.provenance[name] for one in found] == [one.provenance[name] for one in expected]


@pytest.mark.parametrize(
    "given",
    [{"E": 3}, {"E": 3, "k": 9, "query": True}, {"E": 2, "Tp": 1}, {"E": 2, "dtype": "float64"},
     {"E": 2, "neighbors": "auto", "exclusion_radius": 3}],
    ids=str,
)  # fmt: skip
def test_neighbours_in_other_data(device, recordings, given):
    def searched(seed):
        query = {"query": 7 * series(seed + 9, 90)} if "query" in given else {}
        found = pyedmcl.knn(50 * series(seed), **{**given, **query}, device=device)
        record = {name: found.provenance[name] for name in ("tuning", "parameters", "grade", "neighbors", "kernels")}
        return found.indices.tobytes(), found.distances.tobytes(), record

    same_as_the_first_call_of_a_kind(device, recordings, searched)


@pytest.mark.parametrize(
    "given",
    [{"E_max": 4}, {"E_max": 12, "Tp": -2, "tau": 2}, {"E_max": 3, "E_rule": "one-se"}, {"E_max": 3, "n": 5, "knn": 6},
     {"E_max": 3, "dtype": "float64"}],
    ids=str,
)  # fmt: skip
def test_embedding_dimensions_of_other_data(device, recordings, given):
    def scanned(seed):
        x = series(seed).reshape(-1, 1) + np.zeros(given.get("n", 1))
        x[:, 1:] += np.random.default_rng(seed).standard_normal((len(x), x.shape[1] - 1))
        options = {name: value for name, value in given.items() if name != "n"}
        found = pyedmcl.embed_dimension(x, **options, device=device)
        record = {name: found.provenance[name] for name in ("tuning", "parameters", "grade", "neighbors", "kernels")}
        return np.asarray(found.E).tobytes(), np.asarray(found.rho).tobytes(), record

    same_as_the_first_call_of_a_kind(device, recordings, scanned)


def same_as_the_first_call_of_a_kind(device, recordings, function, recorded=1):
    """Calls with other data give what each gives alone, and all but the first go through its copies and launches."""
    sets, expected = open_device(device).sets, []
    for seed in range(3):
        sets.clear()
        expected.append(function(seed))
    sets.clear()
    recordings.clear()
    assert [function(seed) for seed in range(3)] == expected
    assert recorded is None or len(recordings) == recorded


def test_local_fits_that_are_nearly_singular_are_made_anew_after_a_repeated_map(device, recordings):
    def mapped(x):
        return pyedmcl.xmap(x, E=3, method="smap", theta=[0.5, 8.0], device=device).rho.tobytes()

    plain = np.random.default_rng(1).standard_normal((150, 3))
    spikes = plain * 1e-3
    spikes[::37, 1] = 1e6
    sets, expected = open_device(device).sets, []
    for x in (plain, spikes, plain):
        sets.clear()
        expected.append(mapped(x))
    sets.clear()
    recordings.clear()
    assert [mapped(x) for x in (plain, spikes, plain)] == expected
    assert expected[0] == expected[2] and len(recordings) == 1


def test_series_that_do_not_fit_together_are_computed_in_batches(device, monkeypatch):
    x = np.stack([series(seed) for seed in range(7)], axis=1)
    expected, batches = alone(x, device, pyedmcl.embed_dimension, E_max=4).rho, []
    opened = dimension._SeriesOnDevice
    sums = opened.sums

    def few(self, *given):
        made(self, *given)
        self.batch = 3

    def noted(self, a, b, *given):
        batches.append((a, b))
        return sums(self, a, b, *given)

    made = opened.__init__
    monkeypatch.setattr(opened, "__init__", few)
    monkeypatch.setattr(opened, "sums", noted)
    for _ in range(2):
        assert alone(x, device, pyedmcl.embed_dimension, E_max=4).rho.tobytes() == expected.tobytes()
    assert batches == [(0, 3), (3, 6), (6, 7)] * 2
    assert pyedmcl.embed_dimension(x, E_max=4, device=device).rho.tobytes() == expected.tobytes()


@pytest.mark.parametrize("gap", [None, 40])
def test_gaps_and_many_series_have_the_same_embedding_dimensions_as_each_alone(device, monkeypatch, gap):
    x = np.stack([series(seed) for seed in range(6)], axis=1)
    if gap is not None:
        x[gap, 2:4] = np.nan
    together = [pyedmcl.embed_dimension(x, E_max=4, device=device).rho for _ in range(2)]
    monkeypatch.setattr(dimension, "FEW_BYTES", 0)
    the_long_way = pyedmcl.embed_dimension(x, E_max=4, device=device).rho
    assert together[0].tobytes() == together[1].tobytes() == the_long_way.tobytes()


@pytest.mark.parametrize("function", [pyedmcl.simplex, pyedmcl.smap])
def test_a_call_that_is_repeated_copies_once_each_way(device, function):
    given = {"E": 2, "device": device} | ({"theta": 1.0} if function is pyedmcl.smap else {})
    executor = open_device(device)
    executor.sets.clear()
    executor.finish()
    before = executor.memory.held
    expected = function(series(1), **given)
    with counting() as copies:
        found = function(series(1), **given)
    assert bits(found) == bits(expected)
    if executor.part_alignment:  # unified memory has no parts of buffers
        assert (copies.uploads, copies.downloads) == (1, 1)
    assert executor.memory.held == before, "what is kept is in nobody's account"
    executor.sets.clear()
    assert executor.memory.held == before


def test_devices_without_parts_of_buffers_copy_one_by_one(device, recordings, monkeypatch):
    expected = [bits(alone(series(seed), device, E=3)) for seed in range(2)]
    executor = open_device(device)
    executor.sets.clear()
    recordings.clear()
    monkeypatch.setattr(executor, "part_alignment", 0)
    assert [bits(pyedmcl.simplex(series(seed), E=3, device=device)) for seed in range(2)] == expected
    assert len(recordings) == 1
    executor.sets.clear()


@pytest.mark.parametrize("reason", [DeviceMemoryError, LaunchError])
def test_where_buffers_cannot_be_joined_nothing_is_kept(one_device, recordings, monkeypatch, reason):
    expected, executor = bits(alone(series(1), one_device, E=3)), open_device(one_device)
    executor.sets.clear()
    recordings.clear()

    def refused(self, buffers):
        raise reason("not to be had")

    with monkeypatch.context() as patch:
        patch.setattr(OpenCLExecutor, "join", refused)
        for _ in range(2):
            assert bits(pyedmcl.simplex(series(1), E=3, device=one_device)) == expected
    assert len(recordings) == 2


def test_a_device_that_gives_one_queue_only_uses_that(one_device, recordings, monkeypatch):
    executor, expected = open_device(one_device), bits(alone(series(1), one_device, E=3))
    recordings.clear()

    def refused(*given, **options):
        raise executor.errors[0]("CREATE_QUEUE", -6)

    monkeypatch.setattr(executor, "_unmeasured", None)
    monkeypatch.setattr(executor.cl, "CommandQueue", refused)
    assert executor.unmeasured() is executor
    assert bits(pyedmcl.simplex(series(1), E=3, device=one_device)) == expected
    assert not recordings, "it went through the copies and launches of the first call"


def test_local_fits_of_other_rows_and_kinds(device):
    x, gappy, other = series(1), series(2), series(3)
    gappy[40] = np.nan
    table = np.column_stack([x, other])
    cases = [(x, {}), (gappy, {}), (x[:-1], {}), (x, {"theta": 2.0}), (x, {"theta": [1.0, 2.0]}), (x, {"E": 3}),
             (x, {"exclusion_radius": 4}), (x, {"knn": 20}), (x, {"pred": other}), (x, {"pred": series(4, 90)}),
             (x, {"pred": series(4, 190)}), (x, {"lib_range": (0, 90)}), (x, {"lib_range": (20, 110)}),
             (x, {"pred_range": (60, 100)}), (x, {"target": other}), (x, {"solver": "ridge", "alpha": 0.5}),
             (x, {"solver": "ridge", "alpha": 5.0}), (table, {"E": None, "embedded": True, "target": x}),
             (x, {"singular_values": True}), (x, {"generate_steps": 3}), (np.zeros(60) + x[:60] * 1e-200, {}),
             (np.ones(80), {})]  # fmt: skip
    cases = [(data, {"E": 2, "theta": 1.0} | given) for data, given in cases]

    def fits(result):
        return [*bits(result), result.coefficients.tobytes()]

    expected = [fits(alone(data, device, pyedmcl.smap, **given)) for data, given in cases]
    for _ in range(2):
        assert [fits(pyedmcl.smap(data, device=device, **given)) for data, given in cases] == expected


def test_gaps_other_shapes_and_options_are_not_those_that_were_recorded(device):
    x, gappy = series(1), series(2)
    gappy[40] = np.nan
    cases = [(x, {"E": 3}), (gappy, {"E": 3}), (x[:-1], {"E": 3}), (x, {"E": 3, "knn": 7}), (x, {"E": 3, "Tp": 2}),
             (x, {"E": 3, "exclusion_radius": 4}), (x, {"E": 3, "pred": gappy}), (x, {"E": 3, "pred": series(4)}),
             (x, {"E": 3, "lib_range": (0, 90)}), (x, {"E": 3, "target": series(5)})]  # fmt: skip
    expected = [bits(alone(data, device, **given)) for data, given in cases]
    for _ in range(2):
        assert [bits(pyedmcl.simplex(data, device=device, **given)) for data, given in cases] == expected


def test_what_the_user_or_the_database_says_anew_is_heeded(one_device, recordings, monkeypatch):
    x = series(1)
    alone(x, one_device, E=2)
    for change in ("mode", "environment", "knowledge", "forced"):
        recordings.clear()
        if change == "mode":
            pyedmcl.simplex(x, E=2, device=one_device, tune="never")
        elif change == "environment":
            monkeypatch.setenv("PYEDMCL_MEMORY_FRACTION", "0.31")
            pyedmcl.simplex(x, E=2, device=one_device)
        elif change == "knowledge":
            source.forget()
            pyedmcl.simplex(x, E=2, device=one_device)
        else:
            with source.using(predict={"wg": 1}):
                grade = pyedmcl.simplex(x, E=2, device=one_device).provenance["tuning"]["predict"][0]["grade"]
            assert grade == "forced"
            assert not recordings
            continue
        assert len(recordings) == 1, change
        pyedmcl.simplex(x, E=2, device=one_device, tune="never" if change == "mode" else None)
        assert len(recordings) == 1, change


def test_work_that_is_told_or_timed_in_parts_is_not_kept(one_device, recordings, monkeypatch):
    x = series(1)
    open_device(one_device).sets.clear()
    monkeypatch.setattr(staging, "LAUNCH_SECONDS", 1e-12)
    monkeypatch.setattr(staging, "_UNTIMED", 0.0)
    for _ in range(2):
        pyedmcl.simplex(x, E=2, device=one_device)
    assert len(recordings) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, LaunchError])
def test_after_a_failure_in_the_middle_the_next_call_records_anew(one_device, recordings, monkeypatch, stop):
    x = series(3)
    expected = bits(alone(x, one_device, E=2))
    launch, held = OpenCLExecutor.launch, open_device(one_device).memory.held
    recordings.clear()

    def fails(self, kernel, *sizes, **arguments):
        if kernel.name == "predict":
            raise stop
        return launch(self, kernel, *sizes, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(OpenCLExecutor, "launch", fails)
        with pytest.raises(stop):
            pyedmcl.simplex(x, E=2, device=one_device)
    assert not recordings
    assert bits(pyedmcl.simplex(x, E=2, device=one_device)) == expected
    assert len(recordings) == 1
    assert open_device(one_device).memory.held == held


def test_threads_have_sequences_of_their_own(one_device):
    expected = {seed: bits(alone(series(seed), one_device, E=2)) for seed in range(4)}
    wrong = []

    def calls(seed):
        for _ in range(12):
            if bits(pyedmcl.simplex(series(seed), E=2, device=one_device)) != expected[seed]:
                wrong.append(seed)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_sequence_goes_with_its_buffers(one_device, recordings):
    x, executor = series(1), open_device(one_device)
    alone(x, one_device, E=2)
    recordings.clear()
    executor.sets.clear()
    pyedmcl.simplex(x, E=2, device=one_device)
    assert len(recordings) == 1


@pytest.mark.parametrize(
    "fits",
    [{}, *({"method": "smap", "theta": theta} for theta in (2.0, [0.0, 0.5, 3.0], "best"))],
    ids=["simplex", "smap", "several theta", "best theta"],
)
@pytest.mark.parametrize(
    "given",
    [{"E": 3}, {"E": [1, 2, 3, 2]}, {"E": 2, "targets": True}, {"E": 2, "Tp": 1}, {"E": "auto", "E_max": 3}],
    ids=str,
)
def test_maps_of_the_same_shape_have_their_own_bits(device, recordings, given, fits):
    def mapped(seed):
        x = (1 + seed) * np.random.default_rng(seed).standard_normal((120, 4))
        targets = {"targets": np.random.default_rng(seed + 9).standard_normal((120, 3))} if "targets" in given else {}
        found = pyedmcl.xmap(x, **{**given, **fits, **targets}, device=device)
        record = {name: found.provenance[name] for name in ("tuning", "parameters", "neighbors", "kernels")}
        return found.rho.tobytes(), record

    # The best E, by which a map is recorded, are others in other data.
    same_as_the_first_call_of_a_kind(device, recordings, mapped, recorded=None if given["E"] == "auto" else 1)


def test_a_map_reports_and_is_checked_when_it_is_gone_through_again(one_device, recordings, monkeypatch):
    x, seen = np.random.default_rng(1).standard_normal((100, 5)), []
    open_device(one_device).sets.clear()
    for _ in range(2):
        pyedmcl.xmap(x, E=2, device=one_device, progress=lambda *told: seen.append(told))
    half = len(seen) // 2
    assert half and seen[:half] == seen[half:] and len(recordings) == 1
    monkeypatch.setattr(OpenCLExecutor, "download", lambda self, buffer, into, offset=0: into.fill(7) or into)
    with pytest.raises(pyedmcl.errors.WrongResultError):
        pyedmcl.xmap(x, E=2, device=one_device)
