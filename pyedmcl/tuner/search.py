"""The tuning of one kernel for one problem: which configurations, in what order, and which is best."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from statistics import median
from typing import Any

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels.kernel_spec import Constraint, KernelSpec, Tunable
from ..tuning import defaults
from ..tuning.database import Database, new_session
from ..tuning.parameters import source
from ..tuning.records import TuningKey, canonical, tuning_key
from .measure import Backend, Parameters, Reply, Settings, Standing, TrialQuestion, by_speed, compare, winner
from .problem import TuningCase

# The configurations of a kernel that are worth considering: the product of its tunables, less what is not valid.


Configuration = Mapping[str, Any]

_TRIES = 50


class _Partial(dict[str, Any]):
    """Values of some tunables and of all that is given; asking for the other tunables raises KeyError, also ``get``."""

    def __init__(self, values: Mapping[str, Any], undecided: frozenset[str]) -> None:
        super().__init__(values)
        self.undecided = undecided

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in self.undecided else default


def _holds(constraint: Constraint, values: _Partial) -> bool | str:
    """Whether a constraint holds; the name of a tunable without a value while it depends on that.

    What asks for a value that only the engine knows is left to the engine, which refuses to build it.
    """
    try:
        return bool(constraint.holds(values))
    except KeyError as unknown:
        name = unknown.args[0] if unknown.args else None
        return name if isinstance(name, str) and name in values.undecided else True


class Space:
    """All valid configurations of a kernel for a problem on a device.

    Parameters
    ----------
    given : mapping, optional
        Specialisation, as far as it is known. Constraints on values that are not known are left to the build.
    sizes : mapping, optional
        Sizes of the problem, which say how much local memory staged targets take.
    """

    def __init__(
        self, spec: KernelSpec, info: DeviceInfo, given: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.spec, self.info = spec, info
        quirks = quirks_for(info)
        self._most = quirks.max_work_group
        self.given = {**(given or {}), **quirks.values}
        self.tunables: dict[str, Tunable] = {tunable.name: tunable for tunable in spec.tunables}
        self.constraints = (*spec.constraints, *defaults.limits(spec, self.given, info, self._most, sizes))

    def defaults(self) -> dict[str, Any]:
        """What is used without any tuning."""
        return defaults.defaults(self.spec, self.given, self.info, self._most)

    def raw_count(self) -> int:
        """Combinations of values, valid or not."""
        return prod(len(tunable.values) for tunable in self.tunables.values())

    def count(self) -> int:
        """Valid configurations, exactly: branches in which nothing is left to decide are not walked through."""
        return self._count({}, tuple(self.tunables), self.constraints)

    def enumerate(self) -> Iterator[dict[str, Any]]:
        """Valid configurations in the order of the spec's values, the last tunable changing first."""
        return self._walk({}, tuple(self.tunables), self.constraints, None)

    def sample(self, rng: Random) -> dict[str, Any] | None:
        """A valid configuration drawn at random; None where there is none.

        All are equally likely where at least some of the combinations are valid.
        """
        for _ in range(_TRIES):
            drawn = {name: rng.choice(tunable.values) for name, tunable in self.tunables.items()}
            if not self.broken(drawn):
                return drawn
        return next(self._walk({}, tuple(self.tunables), self.constraints, rng), None)

    def broken(self, configuration: Configuration) -> list[str]:
        """All that speaks against a configuration; empty for a valid one."""
        return list(defaults.objections(self.spec, configuration, self.given, self.constraints))

    def neighbours(self, configuration: Configuration) -> list[dict[str, Any]]:
        """Valid configurations one step away: one tunable goes to the value before or after its own.

        Where that breaks a constraint, one other tunable takes the first value that mends it.
        """
        configurations: dict[str, dict[str, Any]] = {}
        for name, tunable in self.tunables.items():
            for value in _beside(tunable.values, configuration[name]):
                changed = {**configuration, name: value}
                if self.broken(changed):
                    mended = self._mended(changed, name)
                    if mended is None:
                        continue
                    changed = mended
                configurations.setdefault(canonical(changed), changed)
        configurations.pop(canonical(configuration), None)
        return list(configurations.values())

    def perturbed(self, configuration: Configuration, rng: Random, changes: int) -> dict[str, Any] | None:
        """A valid configuration that differs in ``changes`` tunables at random places; None where none was met."""
        names = [name for name, tunable in self.tunables.items() if len(tunable.values) > 1]
        for _ in range(_TRIES if names else 0):
            changed = dict(configuration)
            for name in rng.sample(names, min(changes, len(names))):
                changed[name] = rng.choice([v for v in self.tunables[name].values if v != configuration[name]])
            if not self.broken(changed):
                return changed
        return None

    def _mended(self, configuration: Configuration, kept: str) -> dict[str, Any] | None:
        for name, tunable in self.tunables.items():
            if name == kept:
                continue
            for value in tunable.values:
                changed = {**configuration, name: value}
                if not self.broken(changed):
                    return changed
        return None

    def _open(
        self, values: Mapping[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...]
    ) -> dict[Constraint, str] | None:
        """The constraints that are not decided yet, each with what it asks for next; None if one is broken."""
        partial = _Partial({**self.given, **values}, frozenset(rest))
        left = {}
        for constraint in constraints:
            holds = _holds(constraint, partial)
            if holds is False:
                return None
            if isinstance(holds, str):
                left[constraint] = holds
        return left

    def _count(self, values: dict[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...]) -> int:
        left = self._open(values, rest, constraints)
        if left is None:
            return 0
        if not left:
            return prod(len(self.tunables[name].values) for name in rest)
        name = next(iter(left.values()))
        others = tuple(other for other in rest if other != name)
        return sum(self._count({**values, name: v}, others, tuple(left)) for v in self.tunables[name].values)

    def _walk(
        self, values: dict[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...], rng: Random | None
    ) -> Iterator[dict[str, Any]]:
        left = self._open(values, rest, constraints)
        if left is None:
            return
        if not rest:
            yield values
            return
        first, *others = rest
        choices = list(self.tunables[first].values)
        if rng is not None:
            rng.shuffle(choices)
        for value in choices:
            yield from self._walk({**values, first: value}, tuple(others), tuple(left), rng)


def _beside(values: tuple[Any, ...], value: Any) -> list[Any]:
    """The values before and after ``value``; for one that is not listed, those on both sides of it."""
    if value in values:
        at = values.index(value)
        return [values[place] for place in (at - 1, at + 1) if 0 <= place < len(values)]
    below = [v for v in values if v < value][-1:]
    above = [v for v in values if v > value][:1]
    return below + above


# In what order configurations are tried: pure generators that are asked for some and told how those did.
#
# A strategy is given configurations to begin with, such as the defaults, and how many it may ask for at once. It yields
# lists of configurations and is sent a mapping of their canonical text to a cost (seconds, or anything that grows with
# them), or None for one that cannot be used. It touches no device; with the same seed and the same costs it asks for
# the same configurations.


Costs = Mapping[str, float | None]
Asking = Generator[list[dict[str, Any]], Costs, None]

# A move must gain as much: less is noise, and a walk along a plateau.
_GAIN = 0.99
# After this many draws in a row that were known already, little is left to find.
_STALE = 200


def exhaustive(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Every valid configuration: the given ones first, then the others in the order of the spec."""
    first = {canonical(start): dict(start) for start in starts}
    others = (c for c in space.enumerate() if canonical(c) not in first)
    everything = itertools.chain(first.values(), others)
    while configurations := list(itertools.islice(everything, batch)):
        yield configurations


def greedy(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Local search with restarts.

    From the best of the given configurations to the best neighbour of each batch that gains, until none does; then
    anew from a configuration that differs from the best one in a few places, or every third time from anywhere.
    """
    costs: dict[str, float] = {}  # infinite where a configuration cannot be used
    best: dict[str, Any] | None = None

    def cost(configuration: Mapping[str, Any] | None) -> float:
        return math.inf if configuration is None else costs[canonical(configuration)]

    def tried(configurations: Sequence[Mapping[str, Any]]) -> Asking:
        nonlocal best
        fresh = list({canonical(c): dict(c) for c in configurations if canonical(c) not in costs}.values())
        for at in range(0, len(fresh), batch):
            chosen = fresh[at : at + batch]
            answers = yield chosen
            for configuration in chosen:
                seconds = answers.get(canonical(configuration))
                costs[canonical(configuration)] = math.inf if seconds is None else seconds
                best = configuration if cost(configuration) < cost(best) else best

    def descend(configuration: dict[str, Any] | None) -> Asking:
        while configuration is not None:
            around = space.neighbours(configuration)
            rng.shuffle(around)
            start, configuration = configuration, None
            for at in range(0, len(around), batch):
                yield from tried(around[at : at + batch])
                lowest = min(around[at : at + batch], key=cost)
                if cost(lowest) < _GAIN * cost(start):
                    configuration = lowest
                    break

    yield from tried(starts)
    yield from descend(best)
    stale = 0
    for number in itertools.count(1):
        drawn = space.sample(rng) if best is None or number % 3 == 0 else space.perturbed(best, rng, 2 + number % 2)
        if drawn is not None and canonical(drawn) not in costs:
            stale = 0
            yield from tried([drawn])
            if cost(drawn) < math.inf:
                yield from descend(drawn)
        else:
            stale += 1
        if stale == _STALE:
            return


STRATEGIES = {"greedy": greedy, "exhaustive": exhaustive}


def ask(asking: Asking, costs: Costs | None = None) -> list[dict[str, Any]]:
    """What to try next, told how what was asked for last did (None at first); an empty list at the end."""
    try:
        return next(asking) if costs is None else asking.send(costs)
    except StopIteration:
        return []


# Configurations of one tuning: noted in the database before they are tried and when that ends.


_WITH = "along with "


@dataclass
class Candidate:
    """A configuration in this tuning; the backend is ``given`` its parameters, or None for the defaults."""

    parameters: Mapping[str, Any]
    given: Parameters
    trial: int = 0  # its number in the database
    times: list[float] = field(default_factory=list)  # seconds of each round
    cost: float = math.inf  # infinite where it cannot be used
    may_win: bool = False  # timed in all rounds, here or in an earlier tuning, and not merely slow
    verified: bool = False  # in this tuning

    @property
    def name(self) -> str:
        return canonical(self.parameters)


class Trials:
    """What a tuning has tried, what it writes to the database, and what it finds there of earlier ones.

    Parameters
    ----------
    standing : Standing
        Whose case is tuned; counts and troubles are added to it.
    changed : callable
        Called when they are.
    """

    def __init__(self, database: Database, session: str, standing: Standing, changed: Callable[[], None]) -> None:
        self.database, self._session, self._standing, self._changed = database, session, standing, changed
        self._case = standing.case.text()
        self._running: dict[int, Candidate] = {}
        self.judged: dict[str, Candidate] = {}

    def begin(self, key: TuningKey, candidate: Candidate) -> None:
        """Note that a configuration is about to be tried."""
        parameters = candidate.parameters
        candidate.trial = self.database.start(key, parameters, session=self._session, case=self._case)
        self._running[candidate.trial] = candidate

    def judge(self, candidate: Candidate, status: str, note: str = "") -> None:
        """Note how a trial ended; one that was stopped is forgotten."""
        self.judged[candidate.name] = candidate
        if status == "stopped":
            self.forget(candidate)
        else:
            del self._running[candidate.trial]
            seconds = [s for s in candidate.times if s > 0]  # some drivers report no time of a first run
            self.database.finish(candidate.trial, status=status, seconds=seconds, note=note)
            self._standing.counts[status] += 1
            if status in ("failed", "wrong", "hung"):
                self._standing.trouble.append((candidate.parameters, status, note))
        self._changed()

    def passed(self, candidate: Candidate, reply: Reply) -> bool:
        """Whether a step went well; else it is noted that the candidate cannot be used."""
        if reply.status != "ok":
            candidate.times, candidate.cost = [], math.inf
            self.judge(candidate, reply.status, reply.note)
        return reply.status == "ok"

    def remember(self, candidate: Candidate) -> None:
        """Take an earlier tuning's word, or that of whoever barred it, for a candidate."""
        self.judged[candidate.name] = candidate
        if candidate.cost < math.inf:
            self._standing.counts["known"] += 1
            self._changed()

    def told(self, name: str) -> float | None:
        """What a strategy is told of a configuration: None where it cannot be used, or was not tried."""
        cost = self.judged[name].cost if name in self.judged else math.inf
        return cost if cost < math.inf else None

    def forget(self, *candidates: Candidate) -> None:
        """As if they had not been tried; all that have not ended where none is named."""
        for candidate in candidates or list(self._running.values()):
            self.database.forget(candidate.trial)
            self._running.pop(candidate.trial, None)

    def step_back(self, default: Candidate) -> None:
        """Have the trial of the defaults not count as the best that is known here, beside what was not tried."""
        self.database.finish(default.trial, status="slow", seconds=[s for s in default.times if s > 0])

    def record(
        self, key: TuningKey, parameters: Mapping[str, Any], seconds: Sequence[float], *, final: bool, note: str = ""
    ) -> None:  # fmt: skip
        """Note what is no trial of its own: the ``final`` outcome, and the defaults of the last comparison."""
        trial = self.database.start(key, parameters, session=self._session, case=self._case, final=final)
        self.database.finish(trial, status="ok", seconds=seconds, note=note)

    def outcome(
        self, key: TuningKey, parameters: Mapping[str, Any], seconds: Sequence[float], gain: float, note: str = ""
    ) -> None:
        """Note what is used from now on, and how many times faster than the defaults it is."""
        self.record(key, parameters, seconds, final=True, note=note)
        self.database.note_gains([(key, canonical(parameters), gain)])

    def along(
        self, key: TuningKey, parameters: Mapping[str, Any], seconds: Sequence[float], gain: float, tuned: TuningKey
    ) -> None:  # fmt: skip
        """Note the outcome of ``tuned`` for another key that it was asked with, unless that has one of its own."""
        final = (trial for trial in self.database.trials(key, status="ok") if trial.final)
        if all(trial.note.startswith(_WITH) for trial in final):
            self.outcome(key, parameters, seconds, gain, note=f"{_WITH}{tuned.specialisation}")

    def known(self, key: TuningKey, default: Candidate) -> dict[str, Candidate]:
        """Configurations that earlier tunings timed on this problem, by name; their costs are seconds as of now.

        Without a figure of the defaults of that day nothing can be compared.
        """
        earlier = [t for t in self.database.trials(key) if t.case == self._case and t.session != self._session]
        timed = [t for t in earlier if t.median is not None]
        defaults: dict[str, float] = {}
        for trial in timed:
            if trial.status in ("ok", "slow") and trial.canonical == default.name:
                defaults.setdefault(trial.session, trial.median or 0.0)
        candidates: dict[str, Candidate] = {}
        for trial in timed:
            then = defaults.get(trial.session)
            if trial.status in ("ok", "slow") and not trial.final and then:
                cost = (trial.median or 0.0) / then * default.cost
                candidates[trial.canonical] = Candidate(
                    trial.parameters, trial.parameters, cost=cost, may_win=trial.status == "ok"
                )
        return candidates


# Costs are seconds relative to the best configuration so far, run in the same rounds: a machine that gets slower for a
# while slows both.


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
    """What the cases of one tuning share."""

    info: DeviceInfo
    database: Database
    settings: Settings
    # Called with the standing whenever it changes.
    report: Callable[[Standing], None] | None = None
    # Of the session, in the database.
    name: str = field(default_factory=new_session)
    # Keys of its cases, whose outcome is not replaced by what comes along with another one.
    claimed: set[TuningKey] = field(default_factory=set)


class Tuning:
    """One kernel, one problem, one device.

    Parameters
    ----------
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
