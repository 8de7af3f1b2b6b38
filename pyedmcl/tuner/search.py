"""The tuning of one kernel for one problem: ask a strategy, try, verify, note, and compare the best with the defaults.

Costs are seconds relative to the best configuration so far, run in the same rounds: a machine that gets slower for a
while slows both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..tuning.database import Database
from ..tuning.key import TuningKey, canonical, tuning_key
from ..tuning.parameters import source
from .measure import Parameters, Reply, TrialQuestion
from .outcome import Backend, Outcome, Settings, Standing
from .problem import TuningCase
from .space import Space
from .strategies import Strategy
from .trials import Trials

# Given up after the first run, after the first round, after the second: so many times the best's time or more.
_HOPELESS = (2.0, 1.4, 1.15)
# A configuration that comes this near to the best one is verified, since it may turn out to be the best.
_NEAR = 1.03
# Configurations of similar problems that a search begins with.
_SIMILAR_MOST = 4
# Configurations that are compared with the defaults at the end, in so many rounds at least.
_FINALISTS = 3
_ROUNDS_LEAST = 3
# Part of the time that is kept for the last comparison, which has fewer rounds where that is too little.
_RESERVE_MOST = 0.4


class Tuning:
    """One kernel, one problem, one device.

    Parameters
    ----------
    backend : Backend
    spec : KernelSpec
    case : TuningCase
    info : DeviceInfo
    database : Database
    session : str
    settings : Settings
    until : float
        Moment (of ``time.monotonic``) at which it should have ended.
    report : callable, optional
        Called with the standing whenever it changes.
    claimed : set of TuningKey, optional
        Keys of other cases of the same session, whose outcome is not replaced by what comes along with this one.
    """

    def __init__(
        self, backend: Backend, spec: KernelSpec, case: TuningCase, info: DeviceInfo, database: Database, session: str,
        settings: Settings, until: float, report: Callable[[Standing], None] | None = None,
        claimed: set[TuningKey] | None = None,
    ) -> None:  # fmt: skip
        self.backend, self.spec, self.case, self.info = backend, spec, case, info
        self.database, self.settings, self.until = database, settings, until
        self.standing = Standing(case)
        self._begun = time.monotonic()
        self._report = report or (lambda standing: None)
        self._claimed = claimed if claimed is not None else set()
        self._trials = Trials(database, session, self.standing)
        self._verified: set[str] = set()
        self._barred: set[str] = set()
        self._costs: dict[str, float | None] = {}
        self._good: dict[str, Mapping[str, Any]] = {}
        self._default_times: list[float] = []
        self._starts: list[dict[str, Any]] = []
        self._sample_wall = self._compile_wall = self._cold = 0.0
        self.key: TuningKey | None = None

    def run(self) -> Outcome:
        """Tune.

        Returns
        -------
        Outcome
            Never slower than the defaults as far as that can be told.

        Raises
        ------
        KeyboardInterrupt
            Finished trials are kept, those under way are forgotten.
        """
        try:
            return self._run()
        finally:
            self._trials.forget_running()

    def _run(self) -> Outcome:
        self._say("reading")
        asked = self.backend.describe(self.case, None)
        if asked.status != "ok" or not asked.asked:
            return self._end({}, note=asked.note or f"the engine asks for no parameters of {self.spec.name}")
        first = asked.asked[0]
        self.key = self._key(first)
        if self.key in self._claimed:
            return self._end(first.parameters, note="another case has the same key")
        self._claimed.add(self.key)
        self._default = dict(first.parameters)
        self._default_name = canonical(self._default)
        self._barred = self.database.barred(self.key)
        note = self._measure_default()
        if note:
            return self._end(self._default, note=note)
        space = Space(self.spec, self.info, {**first.specialisation, **self.case.numbers.get("given", {})})
        if space.raw_count() > 1:
            self._search(space)
        return self._duel()

    def _key(self, asked: TrialQuestion) -> TuningKey:
        return tuning_key(self.spec, asked.specialisation, self.info, asked.sizes)

    def _measure_default(self) -> str:
        """Time and verify the defaults; returns what is wrong with them."""
        assert self.key is not None
        self._say("defaults")
        trial = self._trials.begin(self.key, self._default)
        times: list[float] = []
        for do in (self._prepare_default, self.backend.attempt, self.backend.verify):
            reply = do(self.case, None)
            if reply.status != "ok":
                self._finish(trial, reply.status, note=reply.note)
                return f"the defaults cannot be used ({reply.status}): {reply.note}"
            self._cold = max(self._cold, *reply.seconds, 0.0)
        for _ in range(max(self.settings.rounds, 2)):
            reply = self.backend.sample(self.case, None)
            if reply.status != "ok":
                self._finish(trial, reply.status, note=reply.note)
                return f"the defaults cannot be used ({reply.status}): {reply.note}"
            times += reply.seconds
            self._sample_wall = reply.wall
        self._finish(trial, "ok", times)
        self._default_times = times
        self.standing.default = self.standing.best = median(times)
        self._best: Parameters = None
        self._verified.add(self._default_name)
        self._costs[self._default_name] = self.standing.default
        self._say("searching")
        return ""

    def _prepare_default(self, case: TuningCase, parameters: Parameters) -> Reply:
        reply = self.backend.prepare(case, [parameters])[0]
        self._compile_wall = reply.wall
        return reply

    def _search(self, space: Space) -> None:
        assert self.key is not None
        known = self._trials.known(self.key, self._default, self.standing.default) if self.settings.resume else {}
        starts = self._starts = [self._default, *self._similar(space)]
        settings = self.settings
        strategy = Strategy(settings.strategy, space, starts, seed=settings.seed, batch=settings.batch)
        batch = strategy.ask()
        while batch and not self._out_of_time():
            new = []
            for configuration in batch:
                name = canonical(configuration)
                if name in self._costs:
                    continue
                if name in self._barred or source.knowledge.kept_away(self.key, configuration) is not None:
                    self._costs[name] = None
                elif name in known:
                    self._remember(configuration, known[name])
                else:
                    new.append(configuration)
            if new:
                self._evaluate(new)
            batch = strategy.ask({name: self._costs.get(name) for name in map(canonical, batch)})

    def _similar(self, space: Space) -> list[dict[str, Any]]:
        """What is known of similar problems, the most similar first."""
        assert self.key is not None
        source.knowledge.refresh()
        found: dict[str, dict[str, Any]] = {}
        for _, entry in source.knowledge.suitable(self.key):
            if len(found) == _SIMILAR_MOST:
                break
            if not space.broken(entry.parameters):
                found.setdefault(canonical(entry.parameters), dict(entry.parameters))
        return [found[name] for name in found if name != self._default_name]

    def _remember(self, configuration: Mapping[str, Any], known: tuple[str, float]) -> None:
        status, cost = known
        name = canonical(configuration)
        self._costs[name] = cost
        self.standing.counts["known"] += 1
        if status == "ok":
            self._good[name] = configuration
        self._say()

    def _reserve(self) -> float:
        """Seconds that the last comparison will take."""
        figures = (_FINALISTS + 1) * (self.settings.duel + 1)
        wanted = 1.3 * figures * self._sample_wall + (_FINALISTS + 1) * self._compile_wall
        return min(wanted, _RESERVE_MOST * (self.until - self._begun))

    def _evaluate(self, configurations: list[dict[str, Any]]) -> None:
        self._say(f"compiling {len(configurations)}")
        assert self.key is not None
        trials = {canonical(c): self._trials.begin(self.key, c) for c in configurations}
        alive: dict[str, Mapping[str, Any]] = {}
        replies = self.backend.prepare(self.case, configurations)
        for configuration, reply in zip(configurations, replies, strict=True):
            name = canonical(configuration)
            if reply.status == "ok":
                alive[name] = dict(configuration)
            else:
                self._drop(trials[name], configuration, reply)
        self._say("timing")
        times: dict[str, list[float]] = {}
        for name, candidate in list(alive.items()):
            if self._out_of_time():
                self._trials.forget(trials[name])
                del alive[name]
                continue
            reply = self.backend.attempt(self.case, candidate)
            if reply.status != "ok":
                self._drop(trials[name], candidate, reply)
                del alive[name]
            elif reply.seconds[0] > _HOPELESS[0] * max(self.standing.best, self._cold):
                self._slow(trials[name], name, reply.seconds, reply.seconds[0])
                del alive[name]
            else:
                times[name] = []
        best: list[float] = []
        for number in range(self.settings.rounds):
            if not alive or self._out_of_time():
                break
            reply = self.backend.sample(self.case, self._best)
            best += reply.seconds or (self.standing.best,)
            for name, candidate in list(alive.items()):
                reply = self.backend.sample(self.case, candidate)
                if reply.status != "ok":
                    self._drop(trials[name], candidate, reply)
                    del alive[name]
                    continue
                times[name] += reply.seconds
                ratio = median(times[name]) / median(best)
                if number < 2 and ratio > _HOPELESS[number + 1]:
                    self._slow(trials[name], name, times[name], ratio * self.standing.best)
                    del alive[name]
        self._judge(alive, trials, times, best)

    def _judge(
        self, alive: Mapping[str, Mapping[str, Any]], trials: Mapping[str, int], times: Mapping[str, list[float]],
        best: Sequence[float],
    ) -> None:  # fmt: skip
        """Verify those that may be the best, the fastest first; the others are merely slow."""
        costs = {name: median(times[name]) / median(best) * self.standing.best for name in alive if times[name]}
        for name in alive.keys() - costs.keys():
            self._trials.forget(trials[name])
        for name in sorted(costs, key=lambda n: costs[n]):
            raw = median(times[name])
            if costs[name] > _NEAR * self.standing.best and raw > _NEAR * self.standing.best:
                self._slow(trials[name], name, times[name], costs[name])
                continue
            self._say("verifying")
            reply = self.backend.verify(self.case, alive[name])
            if reply.status != "ok":
                self._drop(trials[name], alive[name], reply)
                continue
            self._finish(trials[name], "ok", times[name])
            self._verified.add(name)
            self._costs[name] = costs[name]
            self._good[name] = alive[name]
            if costs[name] < self.standing.best:
                self.standing.best, self._best = costs[name], alive[name]
                self.standing.parameters = dict(alive[name])
        self._say("searching")

    def _duel(self) -> Outcome:
        """The best few against the defaults, in one process, round by round."""
        self._say("comparing")
        finalists: dict[str, Parameters] = {}
        for name in sorted(self._good, key=lambda n: self._costs[n] or 0.0):
            if len(finalists) == _FINALISTS or (self._costs[name] or 0.0) > self.standing.default:
                break
            if name != self._default_name and self._is_verified(name):
                finalists[name] = self._good[name]
        times: dict[str, list[float]] = {}
        if finalists:
            finalists[self._default_name] = None
            times = self._compare(finalists)
        default = times.get(self._default_name, [])
        best = winner(times, self._default_name, self.settings.margin)
        if best is None and any(canonical(start) not in self._costs for start in self._starts):
            # Perhaps better than the defaults, and in use: it must not give way to them untried.
            self.key = None
            return self._end(self._default, note="the time was up before all that is known had been tried: give more")
        if best is None:
            note = "nothing was faster than the defaults" if self._good else ""
            return self._keep(self._default, default or self._default_times, note=note)
        return self._keep(finalists[best] or {}, times[best], default)

    def _compare(self, finalists: Mapping[str, Parameters]) -> dict[str, list[float]]:
        """Figures of each in one process, round by round, each round beginning with another one; who fails is out."""
        times: dict[str, list[float]] = {name: [] for name in finalists}
        for number in range(max(self.settings.duel, _ROUNDS_LEAST)):
            if number >= _ROUNDS_LEAST and time.monotonic() > self.until:
                break
            names = list(times)
            first = number % max(len(names), 1)
            for name in names[first:] + names[:first]:
                reply = self.backend.sample(self.case, finalists[name], together=True)
                if reply.status == "ok":
                    times[name] += reply.seconds
                else:
                    del times[name]
        return times

    def _is_verified(self, name: str) -> bool:
        """Whether a configuration, perhaps known from an earlier tuning, gives right answers."""
        if name not in self._verified and self.backend.verify(self.case, self._good[name]).status == "ok":
            self._verified.add(name)
        return name in self._verified

    def _keep(
        self, parameters: Mapping[str, Any], times: Sequence[float], default: Sequence[float] = (), note: str = ""
    ) -> Outcome:
        """Note the outcome under every key that the engine asks with."""
        assert self.key is not None
        kept = bool(default)
        if times:
            reply = self.backend.describe(self.case, parameters if kept else None)
            for asked in reply.asked:
                key = self._key(asked)
                if key == self.key:
                    self._trials.outcome(key, parameters, times)
                elif key not in self._claimed:
                    self._trials.along(key, parameters if kept else asked.parameters, times, self.key)
            if default:
                self._trials.ended(self.key, self._default, default)
                self.standing.default = median(default)
            self.standing.best = median(times)
            if not kept:
                self.standing.default = self.standing.best
        self.standing.parameters = dict(parameters) if kept else {}
        return self._end(parameters, kept=kept, note=note)

    def _end(self, parameters: Mapping[str, Any], *, kept: bool = False, note: str = "") -> Outcome:
        standing = self.standing
        self._say("done")
        return Outcome(self.case, self.key, dict(parameters), standing.best, standing.default, kept, note, standing)

    def _finish(self, trial: int, status: str, seconds: Sequence[float] = (), note: str = "") -> None:
        self._trials.finish(trial, status, seconds, note)
        self._say()

    def _drop(self, trial: int, parameters: Mapping[str, Any], reply: Reply) -> None:
        self._costs[canonical(parameters)] = None
        self._finish(trial, reply.status, note=reply.note)

    def _slow(self, trial: int, name: str, seconds: Sequence[float], cost: float) -> None:
        self._costs[name] = cost
        self._finish(trial, "slow", [s for s in seconds if s > 0])

    def _out_of_time(self) -> bool:
        return time.monotonic() >= self.until - self._reserve()

    def _say(self, phase: str = "") -> None:
        if phase:
            self.standing.phase = phase
        self._report(self.standing)


def winner(times: Mapping[str, list[float]], default: str, margin: float) -> str | None:
    """The fastest that beats the defaults by more than noise, or the defaults stay.

    Parameters
    ----------
    times : mapping
        Name to the seconds of each round.
    default : str
        Which are the defaults' times.
    margin : float
        Part of the defaults' time that must be gained, in the median; three rounds of four must be won, too.
    """
    if not times.get(default):
        return None
    for name in sorted(times, key=lambda n: median(times[n]) if times[n] else float("inf")):
        ratios = sorted(mine / other for mine, other in zip(times[name], times[default], strict=False))
        if name != default and ratios and median(ratios) < 1.0 - margin and ratios[3 * len(ratios) // 4] < 1.0:
            return name
    return None
