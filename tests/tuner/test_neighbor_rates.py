"""What searches cost, measured by a clock of its own: the budget, and what is left out."""

from __future__ import annotations

import pytest
from rates_helpers import CPU, GPU, Pretended

from pyedmcl.errors import DeviceMemoryError
from pyedmcl.search.rates import errors, fit, suffices
from pyedmcl.tuner.neighbor_rates import SEARCHES, RateCase, cases, measure


@pytest.mark.parametrize("budget", [8.0, 20.0, 60.0])
@pytest.mark.parametrize(("rates", "gpu"), [(CPU, False), (GPU, True)])
def test_the_budget_is_kept_and_the_rates_are_found(budget, rates, gpu):
    runner = Pretended(rates, compile_seconds=0.05 if budget < 20 else 0.5)
    found = list(measure(runner, cases(gpu), budget, runner.clock))
    assert runner.now - 100 <= budget * 1.1
    assert suffices(found)
    assert max(errors(found, fit(found, CPU))) < 1.3


def test_long_problems_are_left_out_one_by_one():
    runner = Pretended()
    found = list(measure(runner, cases(False), 30.0, runner.clock))
    most = {(t.series, t.E, s): t.n for t in found for s in ("exact", "pruned") if getattr(t, s) is not None}
    assert most["lorenz", 20, "pruned"] > most["lorenz", 20, "exact"]
    assert most["lorenz", 1, "exact"] > most["noise", 20, "exact"]


def test_without_scipy_the_tree_is_left_out():
    runner = Pretended(searches=tuple(s for s in SEARCHES if s not in ("build", "tree")))
    found = list(measure(runner, cases(False), 10.0, runner.clock))
    assert suffices(found) and all(t.tree is None and t.build is None for t in found)


def test_what_does_not_fit_the_memory_is_left_out():
    def fails(problem, search):
        if search == "pruned" and problem.n > 5000:
            raise DeviceMemoryError("too large")

    runner = Pretended(fails=fails)
    found = list(measure(runner, cases(False), 20.0, runner.clock))
    assert suffices(found)
    assert all((t.pruned is None) == (t.n > 5000) for t in found)


def test_what_was_timed_before_ctrl_c_has_been_handed_over():
    def fails(problem, search):
        if problem.n > 10_000:
            raise KeyboardInterrupt

    runner = Pretended(fails=fails)
    found = []
    with pytest.raises(KeyboardInterrupt):
        for timing in measure(runner, cases(False), 60.0, runner.clock):
            found.append(timing)
    assert suffices(found) and max(t.n for t in found) < 10_000


def test_a_problem_says_what_it_is():
    assert RateCase("noise", 4096, 20).name == "noise, 4,096 steps, E=20"
