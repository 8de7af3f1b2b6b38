"""The file of a tuning database: opened for each transaction, set aside where it cannot be used, replaced by memory.

No connection outlives a transaction, so threads, forks and several processes need no care; a rollback journal and plain
locks, since write-ahead logging does not work on network file systems.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")

SCHEMA = 1
_APPLICATION = 0x45444D4C  # "EDML": tells our files from other SQLite databases
_WAIT_SECONDS = 30.0
_TABLES = """
CREATE TABLE devices (digest TEXT PRIMARY KEY, fields TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, device TEXT NOT NULL, kernel TEXT NOT NULL, digest TEXT NOT NULL,
    specialisation TEXT NOT NULL, size TEXT NOT NULL, problem TEXT NOT NULL, parameters TEXT NOT NULL,
    status TEXT NOT NULL, final INTEGER NOT NULL, median REAL, rounds TEXT NOT NULL, note TEXT NOT NULL,
    at REAL NOT NULL, session TEXT NOT NULL, process TEXT NOT NULL
);
CREATE INDEX fastest ON trials (kernel, digest, status, final, device, specialisation, size, problem, median);
CREATE TABLE limits (
    device TEXT NOT NULL, kernel TEXT NOT NULL, work_group INTEGER NOT NULL, note TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (device, kernel)
) WITHOUT ROWID;
CREATE TABLE bars (
    id INTEGER PRIMARY KEY, kernel TEXT NOT NULL, parameters TEXT NOT NULL, device TEXT NOT NULL, why TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE checks (
    device TEXT NOT NULL, kernel TEXT NOT NULL, digest TEXT NOT NULL, specialisation TEXT NOT NULL,
    parameters TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (device, kernel, digest, specialisation, parameters)
) WITHOUT ROWID;
CREATE TABLE gains (
    device TEXT NOT NULL, kernel TEXT NOT NULL, digest TEXT NOT NULL, specialisation TEXT NOT NULL,
    size TEXT NOT NULL, parameters TEXT NOT NULL, gain REAL NOT NULL,
    PRIMARY KEY (device, kernel, digest, specialisation, size, parameters)
) WITHOUT ROWID;
"""
# Rates were no trials before, and had a table of their own.
_RATES_AS_TRIALS = (
    """INSERT INTO trials SELECT NULL, device, name, model, '{}', '{}', '', "values", 'ok', 1, NULL, '[]', problems, at,
    session, '' FROM rates""",
    "DROP TABLE rates",
)


class UnusableError(Exception):
    """The file is no tuning database of this version, or is damaged; ``newer`` if it is one of a later version."""

    def __init__(self, reason: str, *, newer: bool = False) -> None:
        super().__init__(reason)
        self.newer = newer


# SQLite names what is damaged in its messages, which are then no UTF-8.
_TROUBLE = (UnusableError, sqlite3.Error, OSError, UnicodeDecodeError)


class File:
    """The SQLite file of a database.

    Parameters
    ----------
    path : pathlib.Path
        Need not exist: reading finds nothing then, and the first writing makes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.changes = 0
        self._memory: sqlite3.Connection | None = None
        self._examined = False
        self._lock = threading.RLock()

    @property
    def in_memory(self) -> bool:
        """Whether trials are kept in memory only, since the file cannot be written."""
        return self._memory is not None

    def read(self, query: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """What ``query`` finds, or ``otherwise`` where there is no database that can be used."""
        with self._lock:
            if self._memory is not None:
                return query(self._memory)
            for _ in range(2):  # after a newer file comes our own beside it
                if not self.path.exists():
                    break
                try:
                    with contextlib.closing(self._attempt(writing=False)) as connection:
                        return query(connection)
                except _TROUBLE as error:
                    if not self._set_aside(error):
                        self._tell(f"{self.path} cannot be read ({error}): the shipped defaults are used")
                        break
            return otherwise

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``change`` as one transaction: in the file, or in memory where that cannot be written."""
        with self._lock:
            self.changes += 1
            for _ in range(3):
                if self._memory is not None:
                    return _transaction(self._memory, change)
                try:
                    with contextlib.closing(self._attempt(writing=True)) as connection:
                        return _transaction(connection, change)
                except _TROUBLE as error:
                    if not self._set_aside(error):
                        self._use_memory(error)
            raise RuntimeError(f"{self.path}: a change failed in memory too")

    def remove(self, table: str, ids: Iterable[int]) -> int:
        """Remove rows of a table by their number; returns how many there were."""
        id_rows = [(number,) for number in ids]
        if not id_rows:
            return 0
        return self.write(lambda c: sum(c.execute(f"DELETE FROM {table} WHERE id=?", row).rowcount for row in id_rows))

    def _use_memory(self, error: Exception) -> None:
        self._tell(
            f"{self.path} cannot be written ({error}): what is tuned now is kept until this process ends. "
            "Set PYEDMCL_DATA_DIR to a folder that can be written."
        )
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            with contextlib.closing(self._attempt(writing=False)) as before:
                before.backup(memory)
            _transaction(memory, lambda connection: None)  # a copy of a damaged file may refuse to be written
        except _TROUBLE:
            memory = _empty()
        self._memory = memory

    def _attempt(self, *, writing: bool) -> sqlite3.Connection:
        if writing:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.path.is_file():  # a pipe would be waited for without end
            raise UnusableError("it is no file")
        # Not "ro": a reader, too, must be able to undo what a killed writer left half done. SQLite itself falls back to
        # reading where the file cannot be written.
        mode = "rwc" if writing else "rw"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
        )
        try:
            if not _known(connection):
                if writing:
                    connection.execute("PRAGMA journal_mode = DELETE")
                    connection.execute("PRAGMA auto_vacuum = FULL")  # space of removed rows goes back to the disk
                    connection.execute("BEGIN IMMEDIATE")
                    if not _known(connection):  # nobody else was faster
                        _create(connection)
                    connection.execute("COMMIT")
                else:  # just being made by somebody else
                    connection.close()
                    return _empty()
            _take_over_rates(connection)
            if writing and not self._examined:  # once: what is added to a damaged file may never be found again
                _examine(connection)
                self._examined = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self, error: Exception) -> bool:
        """Whether the next attempt meets another file: a newer one is left alone, a broken one renamed."""
        if isinstance(error, UnusableError) and error.newer:
            # Whoever wrote it goes on using it: keep our trials beside it.
            beside = self.path.with_name(f"{self.path.stem}-{SCHEMA}{self.path.suffix}")
            self._tell(f"{self.path} {error}: it is left as it is, and {beside.name} beside it is used instead")
            self.path = beside
            return True
        if not isinstance(error, UnusableError) and not _broken(error) and not self._is_of_no_format():
            return False
        self._examined = False
        aside = self._free_name()
        try:
            self.path.rename(aside)
        except FileNotFoundError:
            return True  # another process has set it aside
        except OSError as refused:
            self._tell(f"{self.path} cannot be used ({error}), nor be renamed ({refused})")
            return False
        with contextlib.suppress(OSError):
            self.path.with_name(f"{self.path.name}-journal").rename(aside.with_name(f"{aside.name}-journal"))
        self._tell(
            f"{self.path} cannot be used ({error}): it was kept as {aside.name}. "
            "Work goes on with the shipped defaults; 'pyedmcl tune' fills a new one."
        )
        return True

    def _is_of_no_format(self) -> bool:
        """Whether the header names a format that SQLite has never written, which it then only reads."""
        try:
            with self.path.open("rb") as file:
                header = file.read(20)
        except OSError:
            return False
        return any(version not in (1, 2) for version in header[18:20])

    def _free_name(self) -> Path:
        moment = time.strftime("%Y%m%d-%H%M%S")
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.unusable-{moment}-{number}")).exists():
            number += 1
        return aside

    def _tell(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            log.warning("%s", text)


def _transaction(connection: sqlite3.Connection, change: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = change(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    return result


_files: dict[tuple[int, Path], File] = {}


def file_at(path: Path) -> File:
    """The one object of this process for a path: what it keeps in memory is then seen by all."""
    place = os.getpid(), path.absolute()
    file = _files.get(place)
    return _files.setdefault(place, File(path)) if file is None else file


def _known(connection: sqlite3.Connection) -> bool:
    """Whether the file holds our tables; False for an empty one. Raises UnusableError for anything else."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == _APPLICATION and version > SCHEMA:
        raise UnusableError(f"was written by a newer pyedmcl (layout {version}, this one knows {SCHEMA})", newer=True)
    if application == _APPLICATION:
        return True
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise UnusableError("it is a database, but not one of pyedmcl")
    return False


def _examine(connection: sqlite3.Connection) -> None:
    """Raise UnusableError unless SQLite finds pages and indexes sound, and our tables are as they were made."""
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise UnusableError(f"is damaged: {verdict}")
    with contextlib.closing(_empty()) as made:
        expected = _schema(made)
    schema = _schema(connection)
    for name, statement in expected.items():
        if schema.get(name) != statement:
            raise UnusableError(f"is damaged: {name!r} is not as it was made")


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Table or index to the statement that made it, with single spaces."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): " ".join(str(sql).split()) for name, sql in rows}


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _take_over_rates(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rates'").fetchone() is None:
        return
    # Where the file cannot be written, its rates are not seen; another process may have been faster.
    with contextlib.suppress(sqlite3.OperationalError):
        _transaction(connection, lambda c: [c.execute(statement) for statement in _RATES_AS_TRIALS])


def _empty() -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create(memory)
    return memory


# What SQLite says where the file may be sound: it is in use, out of reach, or the disk is full or failing.
_PASSING = ("locked", "busy", "unable to open", "readonly", "disk i/o", "is full", "interrupted", "out of memory",
            "access permission", "authorization")  # fmt: skip


def _broken(error: Exception) -> bool:
    """Whether the file itself is damaged, rather than locked, out of reach or the disk full."""
    if isinstance(error, UnicodeDecodeError):
        return True
    # By what it is not, since a damaged schema ends in any message of SQLite's parser. sqlite_errorcode exists from
    # Python 3.11 on; the words are the same since SQLite 3.
    said = str(error).lower()
    return isinstance(error, sqlite3.DatabaseError) and not any(word in said for word in _PASSING)
