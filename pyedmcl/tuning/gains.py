"""How many times faster than the defaults a configuration was on the problem that it was tuned on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .grades import Entry
from .key import TuningKey, device_digest

if TYPE_CHECKING:
    from .database import Database
    from .journal import Trial

#: Digest of a device, specialisation, size and canonical parameters.
Place = tuple[str, str, str, str]


def place(key: TuningKey, parameters: str) -> Place:
    """Where the gain of canonical parameters stands among those of its kernel's text."""
    return device_digest(key.device), key.specialisation, key.size, parameters


def add(database: Database, gains: Iterable[tuple[TuningKey, str, float]]) -> None:
    """Note gains of canonical parameters; the newest replaces what is there."""
    rows = []
    for key, parameters, gain in gains:
        device, specialisation, size, _ = place(key, parameters)
        rows.append((device, key.kernel, key.digest, specialisation, size, parameters, gain))
    if not rows:
        return

    def change(connection: sqlite3.Connection) -> None:
        connection.executemany("INSERT OR REPLACE INTO gains VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    database.file.write(change)


def entries(database: Database, kernel: str, digest: str, trials: Iterable[Trial]) -> list[Entry]:
    """Trials of a kernel's text as configurations worth using, with what they gained."""
    gained = stored(database, kernel, digest)
    return [
        Entry(trial.key, trial.parameters, trial.median, gained.get(place(trial.key, trial.canonical)))
        for trial in trials
    ]


def stored(database: Database, kernel: str, digest: str) -> dict[Place, float]:
    """All of a kernel's text; what is no number above 0 is left out."""

    def query(connection: sqlite3.Connection) -> dict[Place, float]:
        statement = "SELECT device, specialisation, size, parameters, gain FROM gains WHERE kernel=? AND digest=?"
        found = connection.execute(statement, (kernel, digest))
        return {tuple(at): gain for *at, gain in found if isinstance(gain, float) and 0 < gain < float("inf")}

    nothing: dict[Place, float] = {}
    return database.file.read(query, nothing)
