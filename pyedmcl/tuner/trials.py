"""Configurations of one tuning: noted in the database before they are tried and when that ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..tuning.database import Database
from ..tuning.key import TuningKey, canonical
from .measure import Parameters, Reply
from .outcome import Standing

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
    database : Database
    session : str
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
