"""Problems that kernels are tuned on: their cases, answers that are verified, and figures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from device_helpers import INTEL
from loopy_helpers import needs_loopy

from pyedmcl.device.select import open_device
from pyedmcl.kernels import NAMES, spec
from pyedmcl.kernels.kernel_spec import GROUP, group
from pyedmcl.tuner import measure
from pyedmcl.tuner.measure import Bench, Recorder, chosen
from pyedmcl.tuner.problem import Close, WrongAnswerError, require, require_same
from pyedmcl.tuner.problems import names, problem, tuned_spec
from pyedmcl.tuner.search import Space


def test_every_kernel_that_can_be_tuned_has_a_problem_whose_sampled_configurations_are_verified():
    tunable = {name for name in NAMES if spec(name).tunables}
    assert tunable == set(names()) == set(SMALL)


@pytest.mark.parametrize("name", names())
def test_problems_describe_their_cases(name):
    tuned = problem(name)
    assert tuned.kernel == name
    for mode in ("rapid", "normal", "exhaustive"):
        cases = tuned.cases(mode, INTEL)
        assert cases
        assert len({case.text() for case in cases}) == len(cases)
        for case in cases:
            assert json.loads(case.text()) == {"kernel": name, "name": case.name, **case.numbers}


@pytest.mark.parametrize("name", names())
def test_devices_without_float64_get_no_case_of_it(name):
    cases = problem(name).cases("exhaustive", replace(INTEL, fp64=False))
    assert cases and not [case for case in cases if case.given.get("dtype") == "float64"]


# One small problem per kernel, and how many configurations of it are tried beside the defaults: each is compiled, on
# each device. It is one where the kernel's own tests go over its parameters (tests/engines, neighbors, recurrence).
SMALL = {
    "knn": ({"dims": (1, 3), "tau": 2, "dtype": "float32"}, {"rows": 150, "library": 150}, 3),
    "lookup": ({"k": 4, "dtype": "float32", "columns": 19}, {"rows": 120, "targets": 19}, 1),
    "predict": ({"dtype": "float32"}, {}, 1),
    "skill": ({"dtype": "float32"}, {}, 1),
    "recurrence_image": ({"m": 3, "tau": 2, "mode": "count"}, {"rows": 150, "columns": 150}, 1),
    "recurrence_bits": (
        {"m": 3, "tau": 2, "metric": "euclidean", "dtype": "float32", "exact": True, "strict": True, "n_radii": 2},
        {"rows": 150, "columns_of_matrix": 150},
        1,
    ),
    "smap": ({"coordinates": 3, "regressors": 4, "limited": False, "dtype": "float32"}, {"library": 120}, 1),
    "smap_shared": (
        {"coordinates": 8, "regressors": 9, "limited": False, "matrix_units": False, "dtype": "float32"},
        {"library": 120}, 1,
    ),
    "smap_scale": ({"coordinates": 3, "limited": True, "dtype": "float32"}, {"library": 120}, 2),
    "smap_solve": ({"coordinates": 3, "regressors": 4, "dtype": "float32"}, {"library": 120}, 2),
    "smap_white": ({"E": 3, "gaps": False, "penalised": False, "dtype": "float32"}, {"rows": 120}, 2),
    "smap_gram": (
        {"E": 3, "gaps": False, "penalised": False, "slopes": False, "dtype": "float32"}, {"rows": 120, "targets": 9}, 2
    ),
    "smap_slopes": ({"E": 3, "gaps": False, "dtype": "float32"}, {"rows": 120}, 2),
    "smap_map": ({"E": 3, "gaps": False, "dtype": "float32"}, {"rows": 120, "targets": 9}, 2),
    "ccm": ({"k": 4, "dtype": "float32"}, {"rows": 150}, 1),
    "ccm_direct": ({"E": 3, "k": 4, "dtype": "float32"}, {"rows": 150}, 1),
    "ccm_draw": ({}, {"rows": 150}, 1),
    "recurrence_network": ({"m": 3, "step": 2, "metric": "euclidean", "dtype": "float64", "strict": True}, {}, 2),
    "recurrence_windows": ({"m": 3, "step": 2, "metric": "maximum", "dtype": "float64", "strict": False}, {}, 1),
    "recurrence_ranks": ({"m": 3, "step": 2, "metric": "euclidean", "dtype": "float64"}, {}, 1),
    "recurrence_transpose": ({}, {}, 1),
    "recurrence_lines": ({}, {}, 1),
    "pruned": ({"E": 3, "tau": 2, "k": 4, "dtype": "float32", "excluding": True}, {"rows": 700, "library": 700}, 2),
    "pruned_order": ({"dtype": "float32", "axes": 3, "leaf": 16}, {"rows": 900}, 1),
    "shared_sums": ({"E": 9, "tau": 2, "k": 10, "dtype": "float32", "side": 8}, {"rows": 400, "library": 400}, 2),
}


LOOPY = ("skill",)


@pytest.fixture(scope="module")
def benches():
    made = {}

    def bench(device):
        if device not in made:
            made[device] = Bench(open_device(device))
        return made[device]

    return bench


def unlike(space, count):
    """Of valid configurations drawn at random at most ``count``, chosen so that they hold many values of tunables.

    One that has no value which the defaults and those before it lack is left out. Of more that are drawn, those with
    the largest of all values would be chosen, and of groups larger than 64 PoCL takes up to 4 seconds to compile one.
    """
    rng = Random(1)
    drawn = [space.sample(rng) for _ in range(20)]
    drawn = [one for one in drawn if group({name: one[name] for name in GROUP if name in one}) <= 64]
    held, chosen = set(space.defaults().items()), []
    for _ in range(count):
        best = max(drawn, key=lambda one: len(one.items() - held))
        if best.items() <= held:
            break
        chosen.append(best)
        held |= best.items()
    return chosen


@pytest.mark.parametrize(("name", "most"), [("knn", 26), ("lookup", 15), ("smap", 13), ("skill", 2), ("smap_solve", 1)])
def test_few_configurations_hold_many_values(name, most):
    """Nearly as many as more of them do that are drawn at random; smap_solve has one configuration, its defaults."""
    specialisation, sizes, count = SMALL[name]
    space = Space(tuned_spec(name), INTEL, problem(name).like(specialisation, sizes, INTEL).numbers["given"])
    tried = unlike(space, count)
    assert len(tried) == min(count, space.count() - 1) and not any(map(space.broken, tried))
    assert len({value for one in (space.defaults(), *tried) for value in one.items()}) >= most


@pytest.mark.parametrize("name", [n if n not in LOOPY else pytest.param(n, marks=needs_loopy) for n in SMALL])
def test_a_sample_of_valid_configurations_gives_the_oracles_answer(benches, device, name):
    """Bit for bit where the spec says so (neighbours, squared distances), else within rounding."""
    specialisation, sizes, count = SMALL[name]
    bench = benches(device)
    info = bench.executor.info
    case = problem(name).like(specialisation, sizes, info)
    tried = unlike(Space(tuned_spec(name), info, case.numbers["given"]), count)
    for configuration in (None, *tried):
        reply = bench.verify(case, configuration)
        assert reply.status == "ok", (configuration, reply.note)


@pytest.mark.parametrize("name", ["knn", "pruned", "recurrence_bits", "ccm_draw"])
def test_the_verification_notices_a_wrong_answer(benches, one_device, name, monkeypatch):
    """An oracle that is off in the last bit of one array stands for a kernel that is."""
    specialisation, sizes, _ = SMALL[name]
    bench, tuned = benches(one_device), problem(name)
    case = tuned.like(specialisation, sizes, bench.executor.info)
    *_, (words, small) = tuned.ragged(case)
    monkeypatch.setattr(tuned, "ragged", lambda case: iter([(words, small)]))
    right = tuned.expected(case, small)
    for what in sorted(right.keys() & tuned.computed(bench.executor, case, small).keys()):
        if not isinstance(right[what], Close) and np.size(right[what]):
            monkeypatch.setattr(tuned, "_right", {})
            monkeypatch.setattr(tuned, "expected", lambda case, small, what=what: {**right, what: off(right[what])})
            reply = bench.verify(case, None)
            assert reply.status == "wrong"
            assert f"{what} of {words}: 1 of" in reply.note and "differ" in reply.note


def off(values):
    """The values, the last of them changed by as little as possible."""
    changed = np.array(values)
    last = np.flatnonzero(np.isfinite(changed))[-1]
    if changed.dtype.kind == "f":
        changed.flat[last] = np.nextafter(changed.flat[last], changed.dtype.type(np.inf))
    else:
        changed.flat[last] ^= 1
    return changed


@pytest.mark.parametrize("name", [name for name in SMALL if spec(name).tunables])
def test_cases_are_asked_for_as_the_engines_ask(benches, one_device, name):
    """What is tuned is found again: a case like a question makes the engine ask that question."""
    bench = benches(one_device)
    specialisation, sizes, _ = SMALL[name]
    reply = bench.describe(problem(name).like(specialisation, sizes, bench.executor.info), None)
    assert reply.status == "ok", reply.note
    first = reply.asked[0]
    decided = specialisation.keys() - {"matrix_units"}  # which a device has or has not
    assert {n: first.specialisation.get(n) for n in decided} == {n: specialisation[n] for n in decided}
    assert dict(first.sizes) == sizes


class Timed:
    """An executor whose launches take a picosecond per work-item."""

    def __init__(self, executor):
        self._executor = executor

    def __getattr__(self, name):
        return getattr(self._executor, name)

    def launch(self, kernel, global_size, local_size, /, **arguments):
        event = self._executor.launch(kernel, global_size, local_size, **arguments)
        return SimpleNamespace(seconds=1e-12 * math.prod(global_size), wait=event.wait)


def test_a_figure_is_the_time_of_the_kernels_own_launches(one_device, monkeypatch):
    monkeypatch.setattr(measure, "_RUNS_MOST", 1)
    executor = open_device(one_device)
    bench = Bench(Timed(executor))
    case = problem("knn").like({"dims": (3,), "tau": 1, "dtype": "float32"}, {"rows": 200, "library": 200},
                                executor.info)  # fmt: skip
    recorder = Recorder(bench.executor)
    with chosen("knn", None), problem("knn").open(recorder, case) as go:
        go()
    own, everything = problem("knn").timed(), {name for name, _ in recorder.events}
    assert set(own) < everything, "other kernels were launched too"
    assert 0 < recorder.seconds(own) < recorder.seconds(everything)
    assert bench.sample(case, None).seconds == pytest.approx([recorder.seconds(own)])


def test_a_configuration_that_does_not_compile_is_told_with_the_reason(benches, one_device):
    bench = benches(one_device)
    specialisation, sizes, _ = SMALL["knn"]
    case = problem("knn").like(specialisation, sizes, bench.executor.info)
    (reply,) = bench.prepare(case, [{**spec("knn").defaults("cpu"), "lanes": 8, "tile": 256}])
    assert reply.status == "failed"
    assert "tile" in reply.note


def test_answers_are_compared():
    a = {"rows": np.array([1, 2]), "weights": np.array([0.5, np.nan], np.float32)}
    require_same(a, {**a}, (0.0, 0.0))
    require_same(a, {**a, "weights": np.array([0.5 + 1e-7, np.nan], np.float32)}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match=r"rows: 1 of 2.*\[1\]"):
        require_same(a, {**a, "rows": np.array([1, 3])}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match="weights"):
        require_same(a, {**a, "weights": np.array([0.5, 0.5], np.float32)}, (1e-5, 0.0))
    with pytest.raises(WrongAnswerError, match="holds"):
        require_same({}, a, (0.0, 0.0))
    with pytest.raises(WrongAnswerError, match="shape"):
        require("x", np.zeros(2), np.zeros(3))
    with pytest.raises(WrongAnswerError, match="1 of 1"):
        require("x", np.float64(1.1), Close(np.float64(1.0), 1e-3))
    require("x", np.array([1.1, 5.0]), Close(np.array([1.0, 5.0]), 0.0, np.array([0.2, 0.0])))
