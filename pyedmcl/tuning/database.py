"""The database of trials: appended to as they end; what is best is a query."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from .. import config
from ..errors import InputError
from . import known
from .connection import File, file_at
from .journal import ENDS, Trial, process_token, seconds_of
from .key import MODELS, TuningKey, canonical, device_digest, digest_of
from .known import LIMITS, TRIALS, KnownKernel
from .rows import limit_of, trial_of


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
        key : TuningKey
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
        trial_id : int
        status : str
            "ok", "wrong", "failed", "hung" or "slow".
        seconds : sequence of float, optional
            Time on the device of each round; needed for "ok".
        note : str
            Why, for a trial that is not "ok".

        Raises
        ------
        InputError
            Another status, times that are none, or no such trial.
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
        return self._file.read(lambda connection: known.read(connection, kernel, digest), KnownKernel())

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
