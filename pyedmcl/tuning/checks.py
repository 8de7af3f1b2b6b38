"""Configurations that were found with another driver or device, and verified here before their first use."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .key import TuningKey, canonical, device_digest

if TYPE_CHECKING:
    from .database import Database

#: Digest of a device, kernel, specialisation and parameters: a check holds for all sizes of a problem.
Checked = set[tuple[str, str, str, str]]


def add(database: Database, key: TuningKey, parameters: Mapping[str, Any]) -> None:
    """Note that a configuration gives right answers on the key's device."""
    row = (device_digest(key.device), key.kernel, key.digest, key.specialisation, canonical(parameters), time.time())

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR IGNORE INTO checks VALUES (?, ?, ?, ?, ?, ?)", row)

    database.file.write(change)


def stored(database: Database, kernel: str, digest: str) -> Checked:
    """All of a kernel's text."""

    def query(connection: sqlite3.Connection) -> Checked:
        statement = "SELECT device, kernel, specialisation, parameters FROM checks WHERE kernel=? AND digest=?"
        return set(connection.execute(statement, (kernel, digest)))

    nothing: Checked = set()
    return database.file.read(query, nothing)
