"""The database of trials: appended to as they end; what is best is a query."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import config
from ..errors import InputError
from . import bars
from .connection import File, file_at
from .journal import BARRING, ENDS, Trial, centre, process_token, seconds_of
from .key import TuningKey, canonical, device_digest
from .rows import limit_of, trial_of

#: Session of trials that came from a file: any trial of this machine is preferred to them.
IMPORTED = "import"
Known = tuple[list[Trial], set[tuple[str, str, str]], dict[str, int]]

_COLUMNS = (
    "t.id, d.fields, t.kernel, t.digest, t.specialisation, t.size, t.parameters, t.status, t.median, t.rounds, "
    "t.note, t.at, t.session, t.problem, t.final, t.process"
)
_TRIALS = f"SELECT {_COLUMNS} FROM trials t JOIN devices d ON d.digest = t.device"


def default_path() -> Path:
    """Where the database lies: ``tuning.sqlite3`` in the user's data folder (``PYEDMCL_DATA_DIR``)."""
    return config.current().data_dir / "tuning.sqlite3"


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
            Whether this run decides a tuning: the newest final trial that ends "ok" is what :meth:`best` gives, be it
            slower than others. For the defaults too, where nothing else was faster beyond noise.
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
        middle = centre(rounds)[0] if rounds else None
        new = (status, middle, json.dumps(rounds), note, time.time(), trial_id)
        statement = "UPDATE trials SET status=?, median=?, rounds=?, note=?, at=? WHERE id=?"
        missed = self._file.write(lambda connection: connection.execute(statement, new).rowcount) != 1
        if missed and not self._file.problems:  # else it may be in a file that has been set aside since
            raise InputError(f"trial_id={trial_id!r}: there is no such trial in {self.path}")

    def forget(self, trial_id: int) -> None:
        """Remove a trial that was stopped for reasons of its own, such as Ctrl-C, so that it is not held against it."""
        self._file.remove("trials", [trial_id])

    def add(self, trials: Iterable[Trial]) -> int:
        """Append trials that have ended, as they are; those already there (same key, parameters, session and end) are
        left out. Returns how many were new."""
        return self._file.write(lambda connection: sum(_insert(connection, t, once=True) > 0 for t in trials))

    def trials(
        self, key: TuningKey | None = None, *, kernel: str | None = None, session: str | None = None,
        status: str | None = None,
    ) -> list[Trial]:  # fmt: skip
        """Trials in the order they were started, of one key, kernel, session or status, or all."""
        where: list[str] = []
        values: list[Any] = []
        if key is not None:
            where += ["t.device=?", "t.kernel=?", "t.digest=?", "t.specialisation=?", "t.size=?"]
            values += [device_digest(key.device), key.kernel, key.digest, key.specialisation, key.size]
        for name, wanted in (("kernel", kernel), ("session", session), ("status", status)):
            if wanted is not None:
                where.append(f"t.{name}=?")
                values.append(wanted)
        return self._select(" AND ".join(where), values)

    def best(self, key: TuningKey) -> Trial | None:
        """The outcome of the newest tuning of a key, or the fastest trial where none came to its end.

        A configuration that is barred is never best.
        """
        return next((trial for trial in self.winners(key.kernel, key.digest) if trial.key == key), None)

    def winners(self, kernel: str, digest: str) -> list[Trial]:
        """The best trial of every key of a kernel's text."""
        return self.known(kernel, digest)[0]

    def known(self, kernel: str, digest: str) -> Known:
        """All that a lookup needs of a kernel's text, in one question.

        Returns
        -------
        winners : list of Trial
            The best of every key.
        barred : set
            Digest of a device, specialisation and parameters that must not be used together.
        limits : dict
            Digest of a device to the largest work-group that it was seen to accept.
        """
        nothing: Known = ([], set(), {})
        return self._file.read(lambda connection: _known(connection, kernel, digest), nothing)

    def barred(self, key: TuningKey) -> set[str]:
        """Canonical parameters never to be tried again for the key's device, kernel and specialisation, whatever size:
        wrong, failed or hung, or begun by a process that is gone."""
        same = (device_digest(key.device), key.kernel, key.digest, key.specialisation)
        where = f"t.device=? AND t.kernel=? AND t.digest=? AND t.specialisation=? AND {_MAYBE_BARRED}"
        return {trial.canonical for trial in self._select(where, same) if trial.barring}

    def set_limit(self, device: str, kernel: str, work_group: int, note: str) -> None:
        """Remember that a device (digest of its key) refused work-groups it had promised; a smaller limit stays."""
        statement = (
            "INSERT INTO limits VALUES (?, ?, ?, ?, ?) ON CONFLICT (device, kernel) DO UPDATE SET note=excluded.note, "
            "work_group=excluded.work_group, at=excluded.at WHERE excluded.work_group < work_group"
        )
        values = (device, kernel, int(work_group), note, time.time())
        self._file.write(lambda connection: connection.execute(statement, values))

    def limits(self) -> list[tuple[str, str, int, str]]:
        """Digest of the device, kernel, largest work-group and reason, of each limit that was found."""
        statement = f"{_LIMITS} ORDER BY device, kernel"
        return self._file.read(lambda connection: list(map(limit_of, connection.execute(statement))), [])

    def remove(self, ids: Iterable[int]) -> int:
        """Remove trials by their number; returns how many there were. The file is made smaller."""
        removed = self._file.remove("trials", ids)
        self._file.shrink()
        return removed

    def check(self) -> str:
        """What SQLite finds wrong with the file, or "ok"."""
        statement = "PRAGMA quick_check(1)"
        return str(self._file.read(lambda connection: connection.execute(statement).fetchone()[0], "there is none"))

    def _select(self, where: str, values: Sequence[Any]) -> list[Trial]:
        statement = f"{_TRIALS} {'WHERE ' + where if where else ''} ORDER BY t.id"
        return self._file.read(lambda connection: [trial_of(row) for row in connection.execute(statement, values)], [])


_MAYBE_BARRED = f"t.status IN ({', '.join(repr(status) for status in (*BARRING, 'started'))})"


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


def _known(connection: sqlite3.Connection, kernel: str, digest: str) -> Known:
    of = (kernel, digest)
    bad = connection.execute(f"{_TRIALS} WHERE t.kernel=? AND t.digest=? AND {_MAYBE_BARRED}", of)
    barred = {_barred_as(trial) for trial in map(trial_of, bad) if trial.barring}
    by_hand = [bar for bar in bars.select(connection) if bar.kernel == kernel]

    def out(trial: Trial) -> bool:
        return _barred_as(trial) in barred or any(
            bar.holds_for(kernel, trial.key.device, trial.parameters) for bar in by_hand
        )

    final = connection.execute(f"{_TRIALS} WHERE t.kernel=? AND t.digest=? AND t.status='ok' AND t.final=1", of)
    found = [trial_of(row) for row in final]
    others = [trial_of(row) for row in connection.execute(_FASTEST, of)]
    if any(map(out, others)):
        rows = connection.execute(f"{_TRIALS} WHERE t.kernel=? AND t.digest=? AND t.status='ok' AND t.final=0", of)
        others = list(_first((t for t in map(trial_of, rows) if not out(t)), _case, _seconds))
    found += others
    best = _first((trial for trial in found if not out(trial)), _place, _rank)
    limits = connection.execute(f"{_LIMITS} WHERE kernel=?", (kernel,)).fetchall()
    return list(best), barred, {device: most for device, _, most, _ in map(limit_of, limits)}


_LIMITS = "SELECT device, kernel, work_group, note FROM limits"
# SQLite takes the id from the row with the smallest median; the index holds all that the inner question needs.
_FASTEST = (
    f"SELECT {_COLUMNS} FROM (SELECT id, min(median) FROM trials "
    "WHERE kernel=? AND digest=? AND status='ok' AND final=0 GROUP BY device, specialisation, size, problem) f "
    "JOIN trials t ON t.id = f.id JOIN devices d ON d.digest = t.device"
)


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


def _barred_as(trial: Trial) -> tuple[str, str, str]:
    return device_digest(trial.key.device), trial.key.specialisation, trial.canonical


def _seconds(trial: Trial) -> float:
    assert trial.median is not None  # "ok" has times
    return trial.median


def _rank(trial: Trial) -> tuple[bool, bool, int]:
    """Own before imported, outcomes of tunings before mere trials, then the newest."""
    return trial.session == IMPORTED, not trial.final, -trial.id
