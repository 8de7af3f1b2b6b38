"""The database of trials: its file, rows and transactions; what is best is a query."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from .. import config
from ..device.info import DeviceKey
from ..errors import InputError
from ..kernels.kernel_spec import KernelSpec
from .records import (
    BARRING,
    ENDS,
    IMPORTED,
    MODELS,
    Entry,
    Trial,
    TuningKey,
    canonical,
    device_digest,
    device_from,
    digest_of,
    process_token,
    seconds_of,
)

# The file of a tuning database: opened for each transaction, set aside where it cannot be used, replaced by memory.
#
# No connection outlives a transaction, so threads, forks and several processes need no care; a rollback journal and
# plain locks, since write-ahead logging does not work on network file systems.


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


# Rows of a tuning database as trials and limits. A row that was never written so means that the file is damaged.


LATEST = 1e11  # seconds since 1970 that a calendar can show


def trial_of(row: Sequence[Any]) -> Trial:
    """A trial from its row. Raises UnusableError for a row that was never written so: the file is damaged."""
    try:
        return _read_trial(row)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise UnusableError(f"the row of trial {row[0]!r} is damaged ({error})") from error


def _read_trial(row: Sequence[Any]) -> Trial:
    (number, device, kernel, digest, specialisation, size, parameters, status, middle, rounds, note, at, session, case,
     final, process) = row  # fmt: skip
    for text in (kernel, digest, status, note, session, case, process):
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no text")
    if status not in (*ENDS, "started"):
        raise ValueError(f"it ended {status!r}")
    if not isinstance(at, float) or not 0 <= at < LATEST:
        raise ValueError(f"it ended at {at!r}")
    times = seconds_of(list(_plain(rounds, list)))
    timed = middle is not None or status != "ok" or final  # an imported outcome may come without a time
    if not timed or not isinstance(middle, float | None):
        raise ValueError(f"its time is {middle!r}")
    for text in (specialisation, size):
        _plain(text, dict)
    key = TuningKey(_device(device), kernel, digest, specialisation, size)
    return Trial(key, dict(_plain(parameters, dict)), status, middle, times, note, at, session, case,
                 bool(final), process, number)  # fmt: skip


@lru_cache(maxsize=4096)
def _plain(text: str, kind: type) -> Any:
    """JSON of a kind, without numbers that JSON does not know; to be left as it is."""
    parsed = json.loads(text)
    if not isinstance(parsed, kind):
        raise ValueError(f"{text[:60]!r} is no {kind.__name__}")
    canonical({"": parsed})
    return parsed


@lru_cache(maxsize=256)
def _device(fields: str) -> DeviceKey:
    return device_from(json.loads(fields))


def limit_of(row: Sequence[Any]) -> tuple[str, str, int, str]:
    device, kernel, most, note = row
    if not isinstance(most, int) or most < 1 or not all(isinstance(text, str) for text in (device, kernel, note)):
        raise UnusableError(f"the limit {row!r} is damaged")
    return device, kernel, most, note


# Configurations that a user keeps away by hand, such as one that crashes this driver or that gave a wrong answer.


@dataclass(frozen=True)
class Bar:
    """What is kept away."""

    kernel: str
    # Every configuration with these values; at least one.
    parameters: Mapping[str, Any]
    # Only on devices whose name or runtime contains this; on all where empty.
    device: str = ""
    why: str = ""
    # In seconds since 1970.
    when: float = 0.0
    # Row of the database.
    id: int = field(default=0, compare=False)

    def holds_for(self, kernel: str, device: DeviceKey, parameters: Mapping[str, Any]) -> bool:
        """Whether it keeps a configuration of a kernel away from a device."""
        return (
            kernel == self.kernel
            and device.is_called(self.device)
            and all(parameters.get(name) == value for name, value in self.parameters.items())
        )

    def __str__(self) -> str:
        shown = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.kernel} {shown}{f' on {self.device}' if self.device else ''}"


def parse(spec: KernelSpec, words: Sequence[str]) -> dict[str, Any]:
    """Parameters from words such as ``wg=64``. Raises InputError naming what the kernel does not have."""
    legal = {tunable.name: tunable.values for tunable in spec.tunables}
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in legal:
            raise InputError(
                f"NAME=VALUE: {word!r}; {spec.name} is tuned by {', '.join(legal) or 'nothing'}, to be given as wg=64"
            )
        value = next((value for value in legal[name] if str(value).lower() == text.lower()), None)
        if value is None:
            raise InputError(f"{name}={text}: {spec.name} takes one of {', '.join(map(str, legal[name]))}")
        values[name] = value
    if not values:
        raise InputError(f"NAME=VALUE: at least one parameter of {spec.name} is needed")
    return values


def add(database: Database, bar: Bar) -> int:
    """Keep a configuration away from now on; returns the number of the bar, the old one where it is there already."""
    row = (bar.kernel, canonical(bar.parameters), bar.device, bar.why, time.time())

    def change(connection: sqlite3.Connection) -> int:
        same = "SELECT id FROM bars WHERE kernel=? AND parameters=? AND device=?"
        same_bar = connection.execute(same, row[:3]).fetchone()
        if same_bar:
            return int(same_bar[0])
        return int(connection.execute("INSERT INTO bars VALUES (NULL, ?, ?, ?, ?, ?)", row).lastrowid or 0)

    return database.file.write(change)


def stored(database: Database) -> list[Bar]:
    """All bars, in the order in which they came."""
    nothing: list[Bar] = []
    return database.file.read(select, nothing)


def remove(database: Database, ids: Iterable[int]) -> int:
    """Take bars back by their number; returns how many there were."""
    return database.file.remove("bars", ids)


def select(connection: sqlite3.Connection) -> list[Bar]:
    """All bars of an open database. Raises UnusableError for one that was never written so."""
    rows = connection.execute("SELECT id, kernel, parameters, device, why, at FROM bars ORDER BY id")
    return [_bar(*row) for row in rows]


def _bar(number: Any, kernel: Any, parameters: Any, device: Any, why: Any, at: Any) -> Bar:
    try:
        values = json.loads(parameters)
        if isinstance(values, dict) and values and all(isinstance(text, str) for text in (kernel, device, why)):
            return Bar(kernel, values, device, why, float(at), number)
    except (ValueError, TypeError, RecursionError):
        pass
    raise UnusableError(f"the row of bar {number!r} is damaged")


# What a database says of one kernel's text: all that an answer needs, read in one transaction.


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
    """What is known of a kernel's text."""

    # The best of every key; none that is barred.
    winners: Sequence[Trial] = ()
    # Device's digest, specialisation, size and canonical parameters to how many times faster than the defaults they
    # were.
    gains: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    # Device's digest, specialisation and canonical parameters that must not be used together.
    barred: set[tuple[str, str, str]] = field(default_factory=set)
    # The same, of what was found with another driver or device and verified here before its first use.
    checked: set[tuple[str, str, str]] = field(default_factory=set)
    # Device's digest to the largest work-group that it was seen to accept.
    limits: dict[str, int] = field(default_factory=dict)
    # What is kept away by hand.
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
    by_hand = [bar for bar in select(connection) if bar.kernel == kernel]

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


def default_path() -> Path:
    """Where the database lies: ``tuning.sqlite3`` in the user's data folder (``PYEDMCL_DATA_DIR``)."""
    return _database_in(config.data_dir())


@lru_cache(maxsize=64)
def _database_in(folder: Path) -> Path:
    return folder / "tuning.sqlite3"


def new_session() -> str:
    """A name for one tuning."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"


class Database:
    """Trials of all tunings on all devices of a user.

    Several processes may use one at the same time. Trouble with the file is logged, is no error, and is listed by
    :attr:`problems`: a broken file is renamed, a newer pyedmcl's is left alone, and where nothing can be written the
    trials of this process are kept in memory.

    Parameters
    ----------
    path : pathlib.Path, optional
        :func:`default_path` where left out. Nothing is opened yet, and nothing made before the first trial.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = file_at(Path(path) if path is not None else default_path())

    @property
    def path(self) -> Path:
        """The file used: another than asked for, where that one belongs to a newer pyedmcl."""
        return self._file.path

    @property
    def file(self) -> File:
        """The file itself, for those who keep other tables in it."""
        return self._file

    @property
    def problems(self) -> list[str]:
        """What went wrong with the file so far, in words."""
        return list(self._file.problems)

    @property
    def in_memory(self) -> bool:
        """Whether trials are kept in memory only."""
        return self._file.in_memory

    def start(
        self, key: TuningKey, parameters: Mapping[str, Any], *, session: str, case: str = "", final: bool = False
    ) -> int:
        """Note that a configuration is about to be tried; returns the trial's number for :meth:`finish`.

        Parameters
        ----------
        parameters : mapping
            All tuned parameters of the kernel.
        session : str
            Of :func:`new_session`; a tuning that is resumed keeps its own.
        case : str
            The exact problem that is run: only times of one case are compared.
        final : bool
            Whether this run decides a tuning: the newest final trial that ends "ok" is its outcome, be it slower than
            others. For the defaults too, where nothing else was faster beyond noise.
        """
        trial = Trial(key, parameters, "started", when=time.time(), session=session, case=case, final=final,
                      process=process_token())  # fmt: skip
        return self._file.write(lambda connection: _insert(connection, trial))

    def finish(self, trial_id: int, *, status: str, seconds: Sequence[float] | None = None, note: str = "") -> None:
        """Note how a trial ended.

        Parameters
        ----------
        status : str
            "ok", "wrong", "failed", "hung" or "slow".
        seconds : sequence of float, optional
            Time on the device of each round; needed for "ok".
        note : str
            Why, for a trial that is not "ok".
        """
        if status not in ENDS:
            raise InputError(f"status={status!r}: one of {', '.join(ENDS)} is needed")
        try:
            rounds = seconds_of(list(seconds or []))
        except ValueError as error:
            raise InputError(f"seconds: {error}") from error
        if status == "ok" and not rounds:
            raise InputError("seconds=None: a trial that is 'ok' has times")
        middle = median(rounds) if rounds else None
        new = (status, middle, json.dumps(rounds), note, time.time(), trial_id)
        statement = "UPDATE trials SET status=?, median=?, rounds=?, note=?, at=? WHERE id=?"
        missed = self._file.write(lambda connection: connection.execute(statement, new).rowcount) != 1
        if missed and not self._file.problems:  # else it may be in a file that has been set aside since
            raise InputError(f"trial_id={trial_id!r}: there is no such trial in {self.path}")

    def forget(self, trial_id: int) -> None:
        """Remove a trial that was stopped for reasons of its own, such as Ctrl-C, so that it is not held against it."""
        self.remove([trial_id])

    def add(self, trials: Iterable[Trial]) -> int:
        """Append trials that have ended, as they are; those already there (same key, parameters, session and end) are
        left out. Returns how many were new."""
        return self._file.write(lambda connection: sum(_insert(connection, t, once=True) > 0 for t in trials))

    def trials(self, key: TuningKey | None = None, *, status: str | None = None) -> list[Trial]:
        """Trials in the order they were started, of one key or status, or all."""
        where: list[str] = []
        values: list[Any] = []
        if key is not None:
            where += ["t.device=?", "t.kernel=?", "t.digest=?", "t.specialisation=?", "t.size=?"]
            values += [device_digest(key.device), key.kernel, key.digest, key.specialisation, key.size]
        if status is not None:
            where.append("t.status=?")
            values.append(status)
        return self._select(" AND ".join(where), values)

    def known(self, kernel: str, digest: str) -> KnownKernel:
        """All that an answer needs of a kernel's text, in one question."""
        return self._file.read(lambda connection: read(connection, kernel, digest), KnownKernel())

    def idle(self, trials: Iterable[Trial]) -> set[int]:
        """Numbers of trials that nobody looks up again: of kernels that have changed, and of rates measured anew."""
        rates_in_use = {trial.id for name in MODELS for trial in self.known(name, MODELS[name]).winners}
        return {
            trial.id
            for trial in trials
            if digest_of(trial.key.kernel) != trial.key.digest
            or (trial.key.kernel in MODELS and trial.id not in rates_in_use)
        }

    def barred(self, key: TuningKey) -> set[str]:
        """Canonical parameters never to be tried again for the key's device, kernel and specialisation, whatever size:
        wrong, failed or hung, or begun by a process that is gone."""
        place = device_digest(key.device), key.specialisation
        return {parameters for *where, parameters in self.known(key.kernel, key.digest).barred if tuple(where) == place}

    def set_limit(self, device: str, kernel: str, work_group: int, note: str) -> None:
        """Remember that a device (digest of its key) refused work-groups it had promised; a smaller limit stays."""
        statement = (
            "INSERT INTO limits VALUES (?, ?, ?, ?, ?) ON CONFLICT (device, kernel) DO UPDATE SET note=excluded.note, "
            "work_group=excluded.work_group, at=excluded.at WHERE excluded.work_group < work_group"
        )
        values = (device, kernel, int(work_group), note, time.time())
        self._file.write(lambda connection: connection.execute(statement, values))

    def note_gains(self, gains: Iterable[tuple[TuningKey, str, float]]) -> None:
        """Remember how many times faster than the defaults canonical parameters were; the newest counts."""
        rows = [
            (device_digest(key.device), key.kernel, key.digest, key.specialisation, key.size, parameters, gain)
            for key, parameters, gain in gains
        ]
        statement = "INSERT OR REPLACE INTO gains VALUES (?, ?, ?, ?, ?, ?, ?)"
        if rows:
            self._file.write(lambda connection: connection.executemany(statement, rows))

    def note_check(self, key: TuningKey, parameters: Mapping[str, Any]) -> None:
        """Remember that parameters which were found elsewhere give right answers on the key's device, whatever size."""
        device, *rest = key.configuration(parameters)
        row = (device, key.kernel, key.digest, *rest, time.time())
        statement = "INSERT OR IGNORE INTO checks VALUES (?, ?, ?, ?, ?, ?)"
        self._file.write(lambda connection: connection.execute(statement, row))

    def limits(self) -> list[tuple[str, str, int, str]]:
        """Digest of the device, kernel, largest work-group and reason, of each limit that was found."""
        statement = f"{LIMITS} ORDER BY device, kernel"
        return self._file.read(lambda connection: list(map(limit_of, connection.execute(statement))), [])

    def remove(self, ids: Iterable[int]) -> int:
        """Remove trials by their number; returns how many there were."""
        return self._file.remove("trials", ids)

    def check(self) -> str:
        """What SQLite finds wrong with the file, or "ok"."""
        statement = "PRAGMA integrity_check(1)"
        return str(self._file.read(lambda connection: connection.execute(statement).fetchone()[0], "there is none"))

    def _select(self, where: str, values: Sequence[Any]) -> list[Trial]:
        statement = f"{TRIALS} {'WHERE ' + where if where else ''} ORDER BY t.id"
        return self._file.read(lambda connection: [trial_of(row) for row in connection.execute(statement, values)], [])


def _insert(connection: sqlite3.Connection, trial: Trial, *, once: bool = False) -> int:
    key = trial.key
    device = device_digest(key.device)
    row = (device, key.kernel, key.digest, key.specialisation, key.size, trial.case, trial.canonical, trial.status,
           int(trial.final), trial.median, json.dumps(trial.rounds), trial.note, trial.when, trial.session,
           trial.process)  # fmt: skip
    if once:
        same = (
            "SELECT 1 FROM trials WHERE device=? AND kernel=? AND digest=? AND specialisation=? AND size=? "
            "AND problem=? AND parameters=? AND status=? AND final=? AND rounds=? AND session=?"
        )
        if connection.execute(same, (*row[:9], row[10], row[13])).fetchone():
            return 0
    connection.execute(
        "INSERT OR IGNORE INTO devices VALUES (?, ?)", (device, canonical(key.device.as_dict()))
    )  # fmt: skip
    cursor = connection.execute(f"INSERT INTO trials VALUES (NULL{', ?' * len(row)})", row)
    return int(cursor.lastrowid or 0)
