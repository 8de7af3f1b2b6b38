"""What a database says of one kernel's text: all that an answer needs, read in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import bars
from .bars import Bar
from .grades import Entry
from .journal import BARRING, IMPORTED, Trial
from .key import device_digest
from .rows import limit_of, trial_of

COLUMNS = (
    "t.id, d.fields, t.kernel, t.digest, t.specialisation, t.size, t.parameters, t.status, t.median, t.rounds, "
    "t.note, t.at, t.session, t.problem, t.final, t.process"
)
TRIALS = f"SELECT {COLUMNS} FROM trials t JOIN devices d ON d.digest = t.device"
_MAYBE_BARRED = f"t.status IN ({', '.join(repr(status) for status in (*BARRING, 'started'))})"
LIMITS = "SELECT device, kernel, work_group, note FROM limits"
# SQLite takes the id from the row with the smallest median; the index holds all that the inner question needs.
_FASTEST = (
    f"SELECT {COLUMNS} FROM (SELECT id, min(median) FROM trials "
    "WHERE kernel=? AND digest=? AND status='ok' AND final=0 GROUP BY device, specialisation, size, problem) f "
    "JOIN trials t ON t.id = f.id JOIN devices d ON d.digest = t.device"
)


@dataclass
class KnownKernel:
    """What is known of a kernel's text.

    Attributes
    ----------
    winners : sequence of Trial
        The best of every key; none that is barred.
    gains : mapping
        Device's digest, specialisation, size and canonical parameters to how many times faster than the defaults they
        were.
    barred : set
        Device's digest, specialisation and canonical parameters that must not be used together.
    checked : set
        The same, of what was found with another driver or device and verified here before its first use.
    limits : dict
        Device's digest to the largest work-group that it was seen to accept.
    bars : sequence of Bar
        What is kept away by hand.
    """

    winners: Sequence[Trial] = ()
    gains: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    barred: set[tuple[str, str, str]] = field(default_factory=set)
    checked: set[tuple[str, str, str]] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=dict)
    bars: Sequence[Bar] = ()

    @cached_property
    def entries(self) -> list[Entry]:
        """The winners as configurations worth using, with what they gained."""
        return [
            Entry(trial.key, trial.parameters, trial.median, self.gains.get((*_place(trial), trial.canonical)),
                  imported=trial.session == IMPORTED)
            for trial in self.winners
        ]  # fmt: skip


def read(connection: sqlite3.Connection, kernel: str, digest: str) -> KnownKernel:
    """All that an open database says of a kernel's text. Raises UnusableError for a row that was never written so."""
    of = (kernel, digest)
    bad = connection.execute(f"{TRIALS} WHERE t.kernel=? AND t.digest=? AND {_MAYBE_BARRED}", of)
    barred = {trial.key.configuration(trial.parameters) for trial in map(trial_of, bad) if trial.barring}
    by_hand = [bar for bar in bars.select(connection) if bar.kernel == kernel]

    def out(trial: Trial) -> bool:
        return trial.key.configuration(trial.parameters) in barred or any(
            bar.holds_for(kernel, trial.key.device, trial.parameters) for bar in by_hand
        )

    final = connection.execute(f"{TRIALS} WHERE t.kernel=? AND t.digest=? AND t.status='ok' AND t.final=1", of)
    tried = [trial_of(row) for row in final]
    others = [trial_of(row) for row in connection.execute(_FASTEST, of)]
    if any(map(out, others)):
        rows = connection.execute(f"{TRIALS} WHERE t.kernel=? AND t.digest=? AND t.status='ok' AND t.final=0", of)
        others = list(_first((t for t in map(trial_of, rows) if not out(t)), _case, _seconds))
    winners = _first((trial for trial in tried + others if not out(trial)), _place, _rank)
    limits = map(limit_of, connection.execute(f"{LIMITS} WHERE kernel=?", (kernel,)).fetchall())
    checks = connection.execute("SELECT device, specialisation, parameters FROM checks WHERE kernel=? AND digest=?", of)
    gains = connection.execute(
        "SELECT device, specialisation, size, parameters, gain FROM gains WHERE kernel=? AND digest=?", of
    )
    return KnownKernel(
        list(winners), {tuple(at): gain for *at, gain in gains if isinstance(gain, float) and 0 < gain < float("inf")},
        barred, set(checks), {device: most for device, _, most, _ in limits}, by_hand,
    )  # fmt: skip


def _first(trials: Iterable[Trial], group: Callable[[Trial], Any], rank: Callable[[Trial], Any]) -> Iterable[Trial]:
    """The trial of lowest rank in each group."""
    best: dict[Any, Trial] = {}
    for trial in trials:
        place = group(trial)
        if place not in best or rank(trial) < rank(best[place]):
            best[place] = trial
    return best.values()


def _place(trial: Trial) -> tuple[str, str, str]:
    return device_digest(trial.key.device), trial.key.specialisation, trial.key.size


def _case(trial: Trial) -> tuple[str, ...]:
    return (*_place(trial), trial.case)


def _seconds(trial: Trial) -> float:
    assert trial.median is not None  # "ok" has times
    return trial.median


def _rank(trial: Trial) -> tuple[bool, bool, int]:
    """Own before imported, outcomes of tunings before mere trials, then the newest."""
    return trial.session == IMPORTED, not trial.final, -trial.id
