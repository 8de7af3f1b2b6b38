"""What this process knows about tuned parameters: read from the database and the shipped wisdom once, then kept.

Where there is no database, none is opened: a process that never tuned pays for one look at the file system.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import config
from ..errors import InputError
from . import wisdom
from .key import TuningKey, canonical, device_digest
from .lookup import Entry, ranked

if TYPE_CHECKING:
    from .database import Database

log = logging.getLogger(__name__)

_CONNECTION = "pyedmcl.tuning.connection"


class _Kernel:
    """What the database says of one kernel's text."""

    def __init__(self, database: Database | None, kernel: str, digest: str) -> None:
        self.entries: list[Entry] = []
        self.barred: set[tuple[str, str, str]] = set()
        self.limits: dict[str, int] = {}
        if database is not None:
            winners, self.barred, self.limits = database.known(kernel, digest)
            self.entries = [Entry(trial.key, trial.parameters, trial.median) for trial in winners]


class Knowledge:
    """Answers from memory; :meth:`refresh` looks whether the database has changed."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, str], _Kernel] = {}
        self._seen: object = None
        # Learnt in this process: device, kernel and specialisation with parameters that failed, and group limits.
        self.distrusted: set[tuple[str, str, str, str]] = set()
        self.limits: dict[tuple[str, str], int] = {}

    def clear(self) -> None:
        """Forget everything, also what was learnt in this process."""
        self._kernels.clear()
        self._seen = None
        self.distrusted.clear()
        self.limits.clear()

    def refresh(self) -> bool:
        """Forget what was read if the database is another one than then; returns whether it is."""
        seen = _signature(config.current().data_dir / "tuning.sqlite3")
        if seen == self._seen:
            return False
        self._seen = seen
        self._kernels.clear()
        return True

    def suitable(self, key: TuningKey) -> list[tuple[str, Entry]]:
        """Configurations for a key, best knowledge first, each with its grade; barred ones are left out."""
        device, known = device_digest(key.device), self._kernel(key)
        found = ranked(known.entries, key)
        found += ranked(wisdom.shipped(key.device.runtime), key, shipped=True)
        return [
            (grade, entry)
            for grade, entry in found
            if (device, key.specialisation, canonical(entry.parameters)) not in known.barred
            and (device, key.kernel, key.specialisation, canonical(entry.parameters)) not in self.distrusted
        ]

    def limit(self, key: TuningKey) -> int:
        """Largest work-group that the device was seen to accept for the kernel, where it promised more."""
        device = device_digest(key.device)
        limits = (self._kernel(key).limits.get(device), self.limits.get((device, key.kernel)))
        return min((limit for limit in limits if limit is not None), default=sys.maxsize)

    def record_failure(self, key: TuningKey, parameters: Mapping[str, Any], note: str) -> None:
        """Bar a configuration that could not be built or launched."""
        database = _open()
        number = database.start(key, parameters, session="use")
        database.finish(number, status="failed", note=note[:2000])

    def record_limit(self, key: TuningKey, work_group: int, note: str) -> None:
        """Remember a work-group limit beyond this process."""
        _open().set_limit(device_digest(key.device), key.kernel, work_group, note[:2000])

    def _kernel(self, key: TuningKey) -> _Kernel:
        if self._seen is None:
            self.refresh()
        place = (key.kernel, key.digest)
        if place not in self._kernels:
            database = None
            if _there(config.current().data_dir / "tuning.sqlite3"):
                database = _open()
            self._kernels[place] = _Kernel(database, key.kernel, key.digest)
        return self._kernels[place]


def _open() -> Database:
    from .database import Database

    return Database()


def _memory(path: Path) -> Any:
    """The open file of a path, if this process has used it; nothing is imported for that."""
    connection = sys.modules.get(_CONNECTION)
    return None if connection is None else connection.file_at(path)


def _there(path: Path) -> bool:
    file = _memory(path)
    return path.exists() or (file is not None and file.in_memory)


def _signature(path: Path) -> object:
    try:
        status = path.stat()
        on_disk: object = (status.st_ino, status.st_mtime_ns, status.st_size)
    except OSError:
        on_disk = None
    file = _memory(path)
    return (path, on_disk, None if file is None else (file.path, file.changes))


def check_mode(tune: object) -> str:
    """A value of ``tune=``. Raises InputError for another than the modes."""
    if not isinstance(tune, str) or tune not in config.TUNE_MODES:
        raise InputError(f"tune={tune!r}: {', '.join(map(repr, config.TUNE_MODES))} or None (PYEDMCL_TUNE) is needed")
    return tune
