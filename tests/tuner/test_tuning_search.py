"""The search without a device: strategies, tuning of a case on known times, the last comparison."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest
from device_helpers import INTEL
from search_helpers import CASE, DEFAULT, PAPER, Scripted, counting, seconds_of
from tuning_helpers import best_of

from pyedmcl.kernels import spec
from pyedmcl.tuner import search
from pyedmcl.tuner.measure import Settings, winner
from pyedmcl.tuner.search import STRATEGIES, Space, Tuning, TuningSession, ask
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.records import Entry, canonical, tuning_key

BEST = {"lanes": 4, "tile": 0, "unroll": 4}
KEY = tuning_key(PAPER, {"dtype": "float32"}, INTEL, {})


@pytest.fixture
def space():
    return Space(PAPER, INTEL)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "tuning.sqlite3")


def asked_by(name, space, starts=(), seed=0, batch=8):
    return STRATEGIES[name](space, starts, Random(seed), batch)


def walk(strategy, costs, most=1000):
    """Ask and tell until nothing is left; the order in which configurations were asked for."""
    order, batch = [], ask(strategy)
    while batch and len(order) < most:
        order += [canonical(c) for c in batch]
        batch = ask(strategy, {canonical(c): costs(c) for c in batch})
    return order


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_visit_a_small_space_wholly_and_nothing_twice(name, space):
    order = walk(asked_by(name, space, [DEFAULT], batch=4), seconds_of)
    assert order[0] == canonical(DEFAULT)
    assert len(order) == len(set(order)) == space.count()


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_seed_asks_for_the_same(name, space):
    first, second = (walk(asked_by(name, space, [DEFAULT], seed=7), seconds_of) for _ in range(2))
    assert first == second


def test_another_seed_asks_in_another_order(space):
    first, second = (walk(asked_by("greedy", space, seed=seed), seconds_of) for seed in (1, 2))
    assert first != second


def test_greedy_finds_the_best_of_a_smooth_space_early(space):
    order = walk(asked_by("greedy", space, [DEFAULT], batch=4), seconds_of)
    assert order.index(canonical(BEST)) < space.count() / 2


def test_greedy_leaves_a_valley_by_restarts():
    """Two minima: the walk from the defaults ends in the worse one."""
    deep = {"lanes": 1, "tile": 128, "unroll": 4}

    def cost(c):
        return 0.1 if c == deep else seconds_of(c) + (9.0 if c["lanes"] < 4 else 0.0)

    space = Space(PAPER, INTEL)
    assert canonical(deep) in walk(asked_by("greedy", space, [DEFAULT], seed=3, batch=2), cost)


def test_greedy_goes_on_where_configurations_cannot_be_used(space):
    order = walk(asked_by("greedy", space, [DEFAULT]), lambda c: None if c["lanes"] == 8 else seconds_of(c))
    assert canonical(BEST) in order


def test_strategies_of_a_large_space_do_not_walk_through_it():
    knn, looks = counting(spec("knn"))
    space = Space(knn, INTEL, {"dims": (3,), "counts": (4,), "tau": 1, "dtype": "float32"})
    assert space.raw_count() > 1_000_000
    for name in STRATEGIES:
        assert len(walk(asked_by(name, space, [space.defaults()]), lambda c: float(c["unroll"]), most=200)) >= 200
        assert 0 < len(looks) < 20_000, name
        looks.clear()


def tune(database, backend=None, *, session="s1", until=math.inf, **settings):
    backend = backend or Scripted()
    shared = TuningSession(INTEL, database, Settings(batch=4, **settings), name=session)
    return Tuning(backend, PAPER, CASE, shared, until).run()


def test_the_best_is_kept_with_its_gain(database):
    outcome = tune(database)
    assert outcome.kept
    assert outcome.parameters == BEST
    assert outcome.gain == pytest.approx(seconds_of(DEFAULT) / seconds_of(BEST))
    assert best_of(database, KEY).parameters == BEST
    assert best_of(database, KEY).final
    assert outcome.counts["failed"] == 0
    (noted,) = database.known(KEY.kernel, KEY.digest).gains.values()
    assert noted == pytest.approx(outcome.gain)


def test_every_trial_is_in_the_database_with_its_end(database):
    outcome = tune(database, strategy="exhaustive")
    trials = [t for t in database.trials(KEY) if not t.final]
    assert {t.status for t in trials} <= {"ok", "slow"}
    assert len({t.canonical for t in trials}) == 18
    assert outcome.tried == 18
    assert all(t.rounds for t in trials)
    verified = {t.canonical for t in trials if t.status == "ok"}
    assert canonical(BEST) in verified
    assert len(verified) < 18, "what is clearly slower is not verified, and not called right"


def test_hopeless_configurations_are_timed_once(database):
    backend = Scripted()
    tune(database, backend, strategy="exhaustive", rounds=5)
    slowest = canonical({"lanes": 1, "tile": 128, "unroll": 1})
    assert backend.asked_to("attempt").count(slowest) == 1
    assert backend.asked_to("sample").count(slowest) == 0
    assert backend.asked_to("sample").count(canonical(BEST)) >= 5


@pytest.mark.parametrize(("at", "status"), [("verify", "wrong"), ("attempt", "wrong"), ("prepare", "failed"),
                                            ("sample", "hung"), ("prepare", "hung")])  # fmt: skip
def test_what_cannot_be_used_never_wins_and_is_never_tried_again(database, at, status):
    bad = {canonical(BEST): (at, status)}
    outcome = tune(database, Scripted(ends=bad))
    assert outcome.parameters not in (BEST, DEFAULT)
    assert outcome.kept
    assert outcome.trouble == [(BEST, status, f"{status} on purpose")]
    assert canonical(BEST) in database.barred(KEY)
    again = Scripted()
    assert tune(database, again, session="s2", resume=False).parameters != BEST
    assert canonical(BEST) not in [text for _, text in again.calls]


def test_a_finalist_that_fails_in_the_last_comparison_does_not_win(database):
    outcome = tune(database, Scripted(ends={canonical(BEST): ("duel", "failed")}))
    assert outcome.kept
    assert outcome.parameters != BEST


def test_defaults_that_are_wrong_end_the_tuning_with_the_reason(database):
    outcome = tune(database, Scripted(ends={canonical(DEFAULT): ("verify", "wrong")}))
    assert not outcome.kept
    assert "wrong on purpose" in outcome.note
    assert best_of(database, KEY) is None


def test_defaults_stay_where_nothing_is_faster(database):
    outcome = tune(database, Scripted(seconds=lambda c: 1e-3 if c == DEFAULT else 1.2e-3))
    assert not outcome.kept
    assert outcome.gain == 1.0
    assert best_of(database, KEY).parameters == DEFAULT
    assert list(database.known(KEY.kernel, KEY.digest).gains.values()) == [1.0]


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_makes_no_winner(database, seed):
    outcome = tune(database, Scripted(seconds=lambda c: 1e-3, noise=0.05, seed=seed), strategy="exhaustive")
    assert not outcome.kept or outcome.gain < 1.08


def test_a_gain_beyond_noise_is_kept(database):
    outcome = tune(database, Scripted(noise=0.05, seed=1))
    assert outcome.kept
    assert outcome.parameters["lanes"] == 4


@pytest.mark.parametrize("seed", range(5))
def test_a_parameter_that_makes_no_difference_keeps_its_default(database, seed):
    seconds = lambda c: 1e-3 if c["lanes"] == DEFAULT["lanes"] else 5e-4 * c["lanes"]  # noqa: E731
    outcome = tune(database, Scripted(seconds=seconds, noise=0.002, seed=seed), strategy="exhaustive")
    assert outcome.parameters == {**DEFAULT, "lanes": 1}


def test_a_machine_that_gets_slower_misleads_nobody(database):
    """Each figure takes longer than the one before; what is compared is what ran in the same rounds."""
    clock = itertools.count()
    slower = Scripted(seconds=lambda c: seconds_of(c) * (1 + 0.002 * next(clock)))
    outcome = tune(database, slower, strategy="exhaustive")
    assert outcome.parameters == BEST


def test_a_winner_must_win_most_rounds():
    assert winner({"d": [1.0] * 4, "a": [0.9] * 4}, "d", 0.01) == "a"
    assert winner({"d": [1.0] * 4, "a": [0.995] * 4}, "d", 0.01) is None
    assert winner({"d": [1.0] * 4, "a": [0.8, 0.9, 1.1, 1.2]}, "d", 0.01) is None
    assert winner({"d": [1.0] * 4, "a": [0.9] * 4, "b": [0.7] * 4}, "d", 0.01) == "b"
    assert winner({"d": [1.0] * 4, "a": [0.9] * 4, "b": [0.5, 0.5, 1.5, 1.6]}, "d", 0.01) == "a"
    assert winner({"a": [0.9] * 4}, "d", 0.01) is None


def test_of_equally_fast_ones_the_one_with_fewest_changes_wins():
    # What makes no difference here may make one for a problem of another size.
    times = {"d": [1.0] * 4, "a": [0.7] * 4, "b": [0.705] * 4, "c": [0.72] * 4}
    assert winner(times, "d", 0.01, {"a": 3, "b": 1, "c": 0}) == "b"
    assert winner(times, "d", 0.001, {"a": 3, "b": 1, "c": 0}) == "a"


def test_a_second_tuning_goes_on_where_the_first_one_was(database):
    tune(database, strategy="exhaustive")
    again = Scripted()
    outcome = tune(database, again, session="s2", strategy="exhaustive")
    assert outcome.counts["known"] == 17, "all but the defaults, which are timed each time"
    assert set(again.asked_to("attempt")) == {canonical(DEFAULT)}
    assert outcome.parameters == BEST
    assert canonical(BEST) in again.asked_to("verify"), "what was right once is verified again before it wins"
    fresh = Scripted()
    tune(database, fresh, session="s3", strategy="exhaustive", resume=False)
    assert len(set(fresh.asked_to("attempt"))) == 18


def test_times_of_a_slower_day_are_taken_relative_to_its_defaults(database):
    tune(database, Scripted(seconds=lambda c: 10 * seconds_of(c)), strategy="exhaustive")
    outcome = tune(database, session="s2", strategy="exhaustive")
    assert outcome.parameters == BEST
    assert outcome.seconds == pytest.approx(seconds_of(BEST))


class Stops(Scripted):
    """Ctrl-C at the n-th figure."""

    def __init__(self, at):
        super().__init__()
        self.left = at

    def sample(self, case, parameters, *, together=False):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().sample(case, parameters, together=together)


def test_ctrl_c_keeps_what_has_ended_and_forgets_what_was_under_way(database):
    with pytest.raises(KeyboardInterrupt):
        tune(database, Stops(25), strategy="exhaustive")
    statuses = [t.status for t in database.trials(KEY)]
    assert statuses
    assert "started" not in statuses
    assert not database.barred(KEY)
    outcome = tune(database, session="s2", strategy="exhaustive")
    assert outcome.counts["known"] > 0
    assert outcome.parameters == BEST


def test_the_budget_ends_a_search(database, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Slow(Scripted):
        def attempt(self, case, parameters):
            now[0] += 0.05
            return super().attempt(case, parameters)

    outcome = tune(database, Slow(), until=0.2, strategy="exhaustive")
    assert now[0] == pytest.approx(0.2)
    assert outcome.tried < 18
    assert outcome.key == KEY
    assert best_of(database, KEY) is not None


@pytest.mark.usefixtures("data_dir")
def test_a_tuning_without_time_replaces_nothing_that_is_known():
    database = Database()
    best = tune(database).parameters
    hurried = tune(database, session="s2", until=0.0, resume=False)
    assert hurried.key is None and not hurried.kept and "time was up" in hurried.note
    (newest,) = {t.canonical for t in database.trials() if t.final}
    assert newest == canonical(best) != canonical(DEFAULT)
    database.remove([t.id for t in database.trials()])
    assert tune(database, session="s3", until=0.0).key is not None, "defaults, where nothing else is known"


@pytest.mark.parametrize("stopped", [False, True])
def test_what_is_shipped_stays_in_use_until_a_tuning_has_tried_it(monkeypatch, stopped):
    """The trial of the defaults, made on the device itself, must not go before it."""

    class Interrupted(Scripted):
        def prepare(self, case, configurations):
            if configurations != [None]:
                raise KeyboardInterrupt
            return super().prepare(case, configurations)

    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (Entry(KEY, BEST),))
    with pytest.raises(KeyboardInterrupt) if stopped else contextlib.nullcontext():
        tune(Database(), *[Interrupted()] * stopped, until=math.inf if stopped else 0.0)

    def known():
        source.knowledge.refresh()
        return [(grade, dict(entry.parameters)) for grade, entry in source.knowledge.suitable(KEY)]

    assert known() == [("shipped", BEST)]
    assert [trial.status for trial in Database().trials(KEY)] == ["slow"], "of the defaults, whose times are kept"
    assert tune(Database(), session="s2").parameters == BEST
    assert known()[0] == ("exact", BEST)


def test_the_outcome_does_not_depend_on_the_run(tmp_path):
    orders = []
    for run in range(2):
        backend = Scripted(noise=0.1, seed=3)
        tune(Database(tmp_path / f"{run}.sqlite3"), backend, seed=11)
        orders.append(backend.calls)
    assert orders[0] == orders[1]


class Asks(Scripted):
    """An engine that asks for two more problems in the same case."""

    def describe(self, case, parameters):
        reply = super().describe(case, parameters)
        more = [replace(reply.asked[0], sizes={"rows": rows}) for rows in (64, 4096)]
        return replace(reply, asked=(*reply.asked, *more))


def test_what_comes_along_is_kept_too_but_replaces_no_tuning_of_its_own(database):
    own = tuning_key(PAPER, {"dtype": "float32"}, INTEL, {"rows": 4096})
    trial = database.start(own, DEFAULT, session="s0", final=True)
    database.finish(trial, status="ok", seconds=[1.0])
    tune(database, Asks())
    other = tuning_key(PAPER, {"dtype": "float32"}, INTEL, {"rows": 64})
    assert best_of(database, other).parameters == BEST
    assert best_of(database, own).parameters == DEFAULT
