"""The tuning of one kernel for one problem: ask a strategy, try, verify, note, and compare the best with the defaults.

Costs are seconds relative to the best configuration so far, run in the same rounds: a machine that gets slower for a
while slows both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..tuning.database import Database, new_session
from ..tuning.key import TuningKey, canonical, tuning_key
from ..tuning.parameters import source
from .duel import by_speed, compare, winner
from .measure import Reply, TrialQuestion
from .outcome import Backend, Settings, Standing
from .problem import TuningCase
from .space import Space
from .strategies import STRATEGIES, ask
from .trials import Candidate, Trials

# Given up after the first run, after the first round, after the second: at this many times the best's time or more.
_HOPELESS = (2.0, 1.4, 1.15)
# A configuration that comes this near to the best one is verified, since it may turn out to be the best.
_NEAR = 1.03
# Configurations of similar problems that a search begins with.
_SIMILAR_MOST = 4
# Configurations that are compared with the defaults at the end.
_FINALISTS = 3
# Part of the time that is kept for the last comparison, which has fewer rounds where that is too little.
_RESERVE_MOST = 0.4


@dataclass(frozen=True)
class TuningSession:
    """What the cases of one tuning share.

    Attributes
    ----------
    info : DeviceInfo
    database : Database
    settings : Settings
    report : callable, optional
        Called with the standing whenever it changes.
    name : str
        Of the session, in the database.
    claimed : set of TuningKey
        Keys of its cases, whose outcome is not replaced by what comes along with another one.
    """

    info: DeviceInfo
    database: Database
    settings: Settings
    report: Callable[[Standing], None] | None = None
    name: str = field(default_factory=new_session)
    claimed: set[TuningKey] = field(default_factory=set)


class Tuning:
    """One kernel, one problem, one device.

    Parameters
    ----------
    backend : Backend
    spec : KernelSpec
    case : TuningCase
    session : TuningSession
    until : float
        Moment (of ``time.monotonic``) at which it should have ended.
    """

    def __init__(
        self, backend: Backend, spec: KernelSpec, case: TuningCase, session: TuningSession, until: float
    ) -> None:
        self.backend, self.spec, self.case, self.info = backend, spec, case, session.info
        self.settings, self.until = session.settings, until
        self.standing = Standing(case)
        self._begun = time.monotonic()
        self._report = session.report or (lambda standing: None)
        self._claimed = session.claimed
        self._trials = Trials(session.database, session.name, self.standing, self._say)
        self._starts: list[Mapping[str, Any]] = []
        self._sample_wall = self._compile_wall = self._cold = 0.0

    def run(self) -> Standing:
        """Tune.

        Returns
        -------
        Standing
            Its parameters are never slower than the defaults as far as that can be told.

        Raises
        ------
        KeyboardInterrupt
            Finished trials are kept, those under way are forgotten.
        """
        try:
            return self._run()
        finally:
            self._trials.forget()
            if self.standing.key is None and self._untried():
                self._trials.step_back(self._default)

    def _run(self) -> Standing:
        self._say("reading")
        described = self.backend.describe(self.case, None)
        if described.status != "ok" or not described.asked:
            return self._end(described.note or f"the engine asks for no parameters of {self.spec.name}")
        first = described.asked[0]
        self._key = self._key_of(first)
        self._default = self._best = Candidate(dict(first.parameters), None)
        self.standing.parameters = self._default.parameters
        if self._key in self._claimed:
            return self._end("another case has the same key")
        self._claimed.add(self._key)
        for reply in self._measure_default():
            if reply.status != "ok":
                self._trials.passed(self._default, reply)
                return self._end(f"the defaults cannot be used ({reply.status}): {reply.note}")
        default = self._default
        default.cost = self.standing.default_seconds = self.standing.seconds = median(default.times)
        default.verified = True
        self._trials.judge(default, "ok")
        self._say("searching")
        space = Space(self.spec, self.info, {**first.specialisation, **self.case.given}, first.sizes)
        if space.raw_count() > 1:
            self._search(space)
        return self._decide()

    def _key_of(self, question: TrialQuestion) -> TuningKey:
        return tuning_key(self.spec, question.specialisation, self.info, question.sizes)

    def _measure_default(self) -> Iterator[Reply]:
        """Verify and time the defaults, step by step."""
        self._say("defaults")
        self._trials.begin(self._key, self._default)
        (reply,) = self.backend.prepare(self.case, [None])
        self._compile_wall = reply.wall
        yield reply
        reply = self.backend.attempt(self.case, None)
        self._cold = max(reply.seconds, default=0.0)
        yield reply
        yield self.backend.verify(self.case, None)
        for _ in range(max(self.settings.rounds, 2)):
            reply = self.backend.sample(self.case, None)
            self._default.times += reply.seconds
            self._sample_wall = reply.wall
            yield reply

    def _search(self, space: Space) -> None:
        settings, default, trials = self.settings, self._default, self._trials
        tried = trials.known(self._key, default) if settings.resume else {}
        barred = trials.database.barred(self._key)
        self._starts = [default.parameters, *self._similar(space)]
        asking = STRATEGIES[settings.strategy](space, self._starts, Random(settings.seed), settings.batch)
        batch = ask(asking)
        while batch and not self._out_of_time():
            new = []
            for parameters in batch:
                candidate = Candidate(parameters, parameters)
                if candidate.name in trials.judged:
                    continue
                if candidate.name in barred or source.knowledge.kept_away(self._key, parameters) is not None:
                    trials.remember(candidate)
                elif candidate.name in tried:
                    trials.remember(tried[candidate.name])
                else:
                    new.append(candidate)
            if new:
                self._try(new)
            batch = ask(asking, {name: trials.told(name) for name in map(canonical, batch)})

    def _similar(self, space: Space) -> list[Mapping[str, Any]]:
        """What is known of similar problems, the most similar first."""
        source.knowledge.refresh()
        similar: dict[str, Mapping[str, Any]] = {}
        for _, entry in source.knowledge.suitable(self._key):
            if len(similar) == _SIMILAR_MOST:
                break
            if not space.broken(entry.parameters):
                similar.setdefault(canonical(entry.parameters), dict(entry.parameters))
        similar.pop(self._default.name, None)
        return list(similar.values())

    def _try(self, candidates: Sequence[Candidate]) -> None:
        """Compile a batch, run each once, then all in turn; verify those that may be the best, the fastest first."""
        self._say(f"compiling {len(candidates)}")
        for candidate in candidates:
            self._trials.begin(self._key, candidate)
        replies = self.backend.prepare(self.case, [candidate.given for candidate in candidates])
        compiled = [c for c, reply in zip(candidates, replies, strict=True) if self._trials.passed(c, reply)]
        self._say("timing")
        alive = [candidate for candidate in compiled if self._worth_rounds(candidate)]
        best: list[float] = []
        for number in range(self.settings.rounds):
            if not alive or self._out_of_time():
                break
            reply = self.backend.sample(self.case, self._best.given)
            best += reply.seconds or (self.standing.seconds,)
            alive = [candidate for candidate in alive if self._survives(candidate, number, median(best))]
        for candidate in alive:
            if candidate.times:
                candidate.cost = median(candidate.times) / median(best) * self.standing.seconds
            else:
                self._trials.forget(candidate)
        for candidate in sorted((c for c in alive if c.times), key=lambda c: c.cost):
            self._compare_with_best(candidate)
        self._say("searching")

    def _worth_rounds(self, candidate: Candidate) -> bool:
        """The first run, which many configurations do not survive."""
        if self._out_of_time():
            self._trials.forget(candidate)
            return False
        reply = self.backend.attempt(self.case, candidate.given)
        if not self._trials.passed(candidate, reply):
            return False
        if reply.seconds[0] > _HOPELESS[0] * max(self.standing.seconds, self._cold):
            candidate.times, candidate.cost = list(reply.seconds), reply.seconds[0]
            self._trials.judge(candidate, "slow")
            return False
        return True

    def _survives(self, candidate: Candidate, number: int, best: float) -> bool:
        """A round; false where it fails or is too slow to go on."""
        reply = self.backend.sample(self.case, candidate.given)
        if not self._trials.passed(candidate, reply):
            return False
        candidate.times += reply.seconds
        ratio = median(candidate.times) / best
        if number < 2 and ratio > _HOPELESS[number + 1]:
            candidate.cost = ratio * self.standing.seconds
            self._trials.judge(candidate, "slow")
            return False
        return True

    def _compare_with_best(self, candidate: Candidate) -> None:
        """Verify what may be the best; the others are merely slow."""
        if min(candidate.cost, median(candidate.times)) > _NEAR * self.standing.seconds:
            self._trials.judge(candidate, "slow")
            return
        self._say("verifying")
        if not self._trials.passed(candidate, self.backend.verify(self.case, candidate.given)):
            return
        candidate.may_win = candidate.verified = True
        self._trials.judge(candidate, "ok")
        if candidate.cost < self.standing.seconds:
            self.standing.seconds, self._best = candidate.cost, candidate

    def _decide(self) -> Standing:
        """The best few against the defaults."""
        self._say("comparing")
        finalists = self._finalists()
        names = [candidate.name for candidate in (*finalists, self._default)] if finalists else []
        times = compare(self._figure, names, self.settings.duel, lambda: time.monotonic() > self.until)
        default_times = times.get(self._default.name, [])
        best = winner(times, self._default.name, changes={one.name: self._changes(one) for one in finalists})
        if best is not None:
            self.standing.default_seconds = median(default_times)
            self._store(self._trials.judged[best], times[best])
            self._trials.record(self._key, self._default.parameters, default_times, final=False)
            return self._end()
        if self._untried():
            # Perhaps better than the defaults, and in use: it must not give way to them.
            return self._end("the time was up before all that is known had been tried: give more")
        times_of_defaults = default_times or self._default.times
        self.standing.default_seconds = median(times_of_defaults)
        self._store(self._default, times_of_defaults)
        better = any(candidate.may_win for candidate in self._trials.judged.values())
        return self._end("nothing was faster than the defaults" if better else "")

    def _untried(self) -> bool:
        """Whether something is known of similar problems that this tuning has not tried."""
        return any(canonical(start) not in self._trials.judged for start in self._starts)

    def _finalists(self) -> list[Candidate]:
        """The best few that may win. What an earlier tuning found must be right today, too."""
        finalists: list[Candidate] = []
        may_win = {name: candidate for name, candidate in self._trials.judged.items() if candidate.may_win}
        seconds = {name: candidate.cost for name, candidate in may_win.items()}
        changes = {name: self._changes(candidate) for name, candidate in may_win.items()}
        for candidate in map(may_win.__getitem__, by_speed(seconds, changes)):
            if len(finalists) == _FINALISTS or candidate.cost > self.standing.default_seconds:
                break
            if candidate.verified or self.backend.verify(self.case, candidate.given).status == "ok":
                finalists.append(candidate)
        return finalists

    def _changes(self, candidate: Candidate) -> int:
        """Parameters that are not the defaults."""
        default = self._default.parameters
        return sum(value != default[name] for name, value in candidate.parameters.items())

    def _figure(self, name: str) -> Reply:
        return self.backend.sample(self.case, self._trials.judged[name].given, together=True)

    def _store(self, kept: Candidate, times: Sequence[float]) -> None:
        """Note the outcome under every key that the engine asks with."""
        standing, beaten = self.standing, kept is not self._default
        gain = standing.default_seconds / median(times)
        for question in self.backend.describe(self.case, kept.given).asked:
            key = self._key_of(question)
            if key == self._key:
                self._trials.outcome(key, kept.parameters, times, gain)
            elif key not in self._claimed:
                self._trials.along(key, kept.parameters if beaten else question.parameters, times, gain, self._key)
        standing.key, standing.kept = self._key, beaten
        standing.parameters, standing.seconds = dict(kept.parameters), median(times)

    def _end(self, note: str = "") -> Standing:
        self.standing.note = note
        self._say("done")
        return self.standing

    def _reserve(self) -> float:
        """Seconds that the last comparison will take."""
        figures = (_FINALISTS + 1) * (self.settings.duel + 1)
        needed_seconds = 1.3 * figures * self._sample_wall + (_FINALISTS + 1) * self._compile_wall
        return min(needed_seconds, _RESERVE_MOST * (self.until - self._begun))

    def _out_of_time(self) -> bool:
        return time.monotonic() >= self.until - self._reserve()

    def _say(self, phase: str = "") -> None:
        if phase:
            self.standing.phase = phase
        self._report(self.standing)
