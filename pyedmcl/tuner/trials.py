"""Trials of one tuning in the database: noted before they start and when they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tuning.database import Database
from ..tuning.key import TuningKey, canonical
from .outcome import Standing

_WITH = "along with "


class Trials:
    """What a tuning writes to the database and what it finds there of earlier ones.

    Parameters
    ----------
    database : Database
    session : str
    standing : Standing
        Whose case is tuned; counts and troubles are added to it.
    """

    def __init__(self, database: Database, session: str, standing: Standing) -> None:
        self.database, self._session, self._standing = database, session, standing
        self._case = standing.case.text()
        self._running: dict[int, Mapping[str, Any]] = {}

    def begin(self, key: TuningKey, parameters: Mapping[str, Any]) -> int:
        """Note that a configuration is about to be tried; returns the trial's number."""
        trial = self.database.start(key, parameters, session=self._session, case=self._case)
        self._running[trial] = parameters
        return trial

    def finish(self, trial: int, status: str, seconds: Sequence[float] = (), note: str = "") -> None:
        """Note how a trial ended; one that was stopped is forgotten."""
        if status == "stopped":
            self.forget(trial)
            return
        parameters = self._running.pop(trial)
        self.database.finish(trial, status=status, seconds=seconds, note=note)
        self._standing.counts[status] += 1
        if status in ("failed", "wrong", "hung"):
            self._standing.trouble.append((parameters, status, note))

    def forget(self, *trials: int) -> None:
        """As if they had not been tried; all that have not ended where none is named."""
        for trial in trials or list(self._running):
            self.database.forget(trial)
            self._running.pop(trial, None)

    def record(
        self, key: TuningKey, parameters: Mapping[str, Any], seconds: Sequence[float], *, final: bool, note: str = ""
    ) -> None:  # fmt: skip
        """Note what is no trial of its own: the ``final`` outcome, and the defaults of the last comparison."""
        trial = self.database.start(key, parameters, session=self._session, case=self._case, final=final)
        self.database.finish(trial, status="ok", seconds=seconds, note=note)

    def along(
        self, key: TuningKey, parameters: Mapping[str, Any], seconds: Sequence[float], tuned: TuningKey
    ) -> None:  # fmt: skip
        """Note the outcome of ``tuned`` for another key that it was asked with, unless that has one of its own."""
        final = (trial for trial in self.database.trials(key, status="ok") if trial.final)
        if all(trial.note.startswith(_WITH) for trial in final):
            self.record(key, parameters, seconds, final=True, note=f"{_WITH}{tuned.specialisation}")

    def known(self, key: TuningKey, default: Mapping[str, Any], default_seconds: float) -> dict[str, tuple[str, float]]:
        """Configurations that earlier tunings timed on this problem: their text to (status, seconds as of now).

        Without a figure of the defaults of that day nothing can be compared.
        """
        earlier = [t for t in self.database.trials(key) if t.case == self._case and t.session != self._session]
        timed = [t for t in earlier if t.median is not None]
        defaults: dict[str, float] = {}
        for trial in timed:
            if trial.status == "ok" and trial.canonical == canonical(default):
                defaults.setdefault(trial.session, trial.median or 0.0)
        known: dict[str, tuple[str, float]] = {}
        for trial in timed:
            then = defaults.get(trial.session)
            if trial.status in ("ok", "slow") and not trial.final and then:
                known[trial.canonical] = trial.status, (trial.median or 0.0) / then * default_seconds
        return known
