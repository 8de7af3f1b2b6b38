"""Measured rates of searches: a record of them, and searches on a clock of their own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

from pyedmcl.device.info import device_key
from pyedmcl.search.rates import DEFAULTS, NAME, Timing
from pyedmcl.tuner.neighbor_rates import SEARCHES
from pyedmcl.tuning.records import Entry, Trial, model_key

CPU, GPU = DEFAULTS["cpu"][1], DEFAULTS["gpu"][1]


def entry(info, factor=1.0, **values):
    """Rates as they are shipped: those of a processor, times a factor, or some of their own."""
    return Entry(model_key(NAME, device_key(info)), values or {name: v * factor for name, v in CPU.as_dict().items()})


def trial(info, factor=1.0, model=None, **values):
    """The same as 'pyedmcl tune neighbors' keeps it."""
    key, parameters = entry(info, factor, **values).key, entry(info, factor, **values).parameters
    key = key if model is None else replace(key, digest=model)
    return Trial(key, parameters, "ok", note='{"problems":[{"n":1}]}', when=5.0, session=f"s{factor}", final=True)


def sets_of(database):
    """Rates of a database, in the order in which they came."""
    return [trial for trial in database.trials() if trial.key.kernel == NAME]


class Pretended:
    """Searches that take what rates predict, on a clock that only they move."""

    def __init__(self, rates=CPU, searches=SEARCHES, compile_seconds=0.5, fails=lambda problem, search: None):
        self.rates, self.searches, self.now = rates, searches, 100.0
        self.compile_seconds, self.fails, self.runs = compile_seconds, fails, []
        self._compiled = set()

    def clock(self):
        return self.now

    def facts(self, problem):
        share = 1.0 if problem.series == "noise" else min(100 / problem.n, 1.0)
        n = problem.n - problem.E + 1
        return Timing(problem.series, n, problem.E, problem.E + 1, share, 2.0 if share < 1 else 9.0)

    @contextmanager
    def prepared(self, problem, search):
        facts = self.facts(problem)
        n, E, k = facts.n, facts.E, facts.k
        every = replace(facts, exact=0.0, order=0.0, pruned=0.0, build=0.0, tree=0.0).predicted(self.rates)
        every["again"] = self.rates.probe(n, n, E, k, facts.share)
        every["probe"] = every["order"] + every["again"]

        def go():
            self.fails(problem, search)
            self.runs.append((problem, search))
            place = (E, search)
            self.now += every[search] + (0 if place in self._compiled else self.compile_seconds)
            self._compiled.add(place)

        yield go
