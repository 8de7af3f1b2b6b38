"""What this process has read of the database and the shipped wisdom, and what it has learnt itself.

Where there is no database, none is opened: a process that never tuned pays for one look at the file system.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import config
from . import grades, wisdom
from .bars import Bar
from .connection import file_at
from .database import Database, default_path
from .grades import Entry
from .journal import BARRING
from .key import TuningKey, device_digest
from .known import KnownKernel

_RECENTLY = 1.0  # seconds


class Knowledge:
    """Answers from memory; :meth:`refresh` looks whether the database has changed.

    Attributes
    ----------
    version : int
        Another one whenever what was read has been forgotten, since the database has changed.
    distrusted : set
        Kernel, device, specialisation and parameters that failed in this process.
    limits : dict
        Device and kernel to the largest work-group that was not refused in this process.
    """

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, str], KnownKernel] = {}
        self._seen: object = None
        self._looked = -math.inf
        self.version = 0
        self.distrusted: set[tuple[str, str, str, str]] = set()
        self.limits: dict[tuple[str, str], int] = {}

    def refresh(self, *, recently: bool = False) -> None:
        """Forget what was read if the database is another one than then.

        Parameters
        ----------
        recently : bool
            Within a public function, which looks when it begins, to have looked in the last second is enough.
        """
        if recently and config.is_read_once() and time.monotonic() - self._looked < _RECENTLY:
            return
        self._looked = time.monotonic()
        seen = _signature(default_path())
        if seen != self._seen:
            self._seen = seen
            self.version += 1
            self._kernels.clear()

    def suitable(self, key: TuningKey) -> list[tuple[str, Entry]]:
        """Parameters for a key, best knowledge first, each with its grade; barred ones are left out."""
        read = self._kernel(key)
        return [
            (grade, entry)
            for grade, entry in grades.ranked(read.entries, key, wisdom.shipped(key.device.runtime, key.kernel))
            if key.configuration(entry.parameters) not in read.barred
            and not self.distrusts(key, entry.parameters)
            and self.kept_away(key, entry.parameters) is None
        ]

    def limit(self, key: TuningKey) -> int:
        """Largest work-group that the device was seen to accept for the kernel, where it promised more."""
        device = device_digest(key.device)
        limits = (self._kernel(key).limits.get(device), self.limits.get((device, key.kernel)))
        return min((limit for limit in limits if limit is not None), default=sys.maxsize)

    def is_checked(self, key: TuningKey, parameters: Mapping[str, Any]) -> bool:
        """Whether parameters that were found elsewhere have been verified on the key's device."""
        return key.configuration(parameters) in self._kernel(key).checked

    def check(self, key: TuningKey, parameters: Mapping[str, Any], verify: Callable[[], tuple[str, str]]) -> bool:
        """Verify parameters that were found elsewhere, and remember what came of it; whether they are right.

        Parameters
        ----------
        key : TuningKey
        parameters : mapping
        verify : callable
            Gives how it ended ("ok", "wrong", "failed", or "stopped" where nothing can be said) and why.
        """
        database, read = Database(), self._kernel(key)
        number = database.start(key, parameters, session="check")  # bars them, should they take this process with them
        status, note = "stopped", ""
        try:
            status, note = verify()
        finally:
            if status in BARRING:
                database.finish(number, status=status, note=note[:2000])
            else:
                database.forget(number)
        if status == "ok":
            read.checked.add(key.configuration(parameters))
            database.note_check(key, parameters)
        else:
            self.distrust(key, parameters)
        return status == "ok"

    def kept_away(self, key: TuningKey, parameters: Mapping[str, Any]) -> Bar | None:
        """What keeps parameters away by hand, if anything does."""
        bars = self._kernel(key).bars
        return next((bar for bar in bars if bar.holds_for(key.kernel, key.device, parameters)), None)

    def distrusts(self, key: TuningKey, parameters: Mapping[str, Any]) -> bool:
        """Whether parameters failed in this process."""
        return (key.kernel, *key.configuration(parameters)) in self.distrusted

    def distrust(self, key: TuningKey, parameters: Mapping[str, Any]) -> None:
        """Do not use parameters in this process any more."""
        self.distrusted.add((key.kernel, *key.configuration(parameters)))

    def trust(self, key: TuningKey, parameters: Mapping[str, Any]) -> None:
        """Take :meth:`distrust` back."""
        self.distrusted.discard((key.kernel, *key.configuration(parameters)))

    def set_limit(self, key: TuningKey, work_group: int | None) -> None:
        """Give a kernel at most ``work_group`` work-items in this process; None: as many as the device promises."""
        place = (device_digest(key.device), key.kernel)
        if work_group is None:
            self.limits.pop(place, None)
        else:
            self.limits[place] = work_group

    def record_failure(self, key: TuningKey, parameters: Mapping[str, Any], note: str) -> None:
        """Bar parameters that could not be built or launched beyond this process."""
        database = Database()
        number = database.start(key, parameters, session="use")
        database.finish(number, status="failed", note=note[:2000])

    def record_limit(self, key: TuningKey, work_group: int, note: str) -> None:
        """Remember a work-group limit beyond this process."""
        Database().set_limit(device_digest(key.device), key.kernel, work_group, note[:2000])

    def _kernel(self, key: TuningKey) -> KnownKernel:
        if self._seen is None:
            self.refresh()
        place = (key.kernel, key.digest)
        if place not in self._kernels:
            self._kernels[place] = Database().known(*place) if _exists(default_path()) else KnownKernel()
        return self._kernels[place]


def _exists(path: Path) -> bool:
    return path.exists() or file_at(path).in_memory


def _signature(path: Path) -> object:
    """Another one whenever the database has changed."""
    try:
        status = path.stat()
        on_disk: object = (status.st_ino, status.st_mtime_ns, status.st_size)
    except OSError:
        on_disk = None
    file = file_at(path)
    return (path, on_disk, file.path, file.changes)
