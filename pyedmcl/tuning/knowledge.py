"""What this process knows of tuned parameters: shipped wisdom, trials, and what may be wrong with them."""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import config
from ..device.doctor import Finding
from ..device.info import RUNTIMES
from ..errors import BuildError, InputError
from ..kernels import NAMES
from ..kernels.texts import read_text
from . import records
from .database import Bar, Database, KnownKernel, default_path, file_at
from .database import stored as stored_bars
from .records import (
    BARRING,
    IMPORTED,
    MODELS,
    Entry,
    Trial,
    TuningKey,
    canonical,
    device_digest,
    digest_of,
    finite,
    key_as_dict,
    key_from,
)

# Wisdom: tuned parameters and measured rates as JSON lines, shipped with the package or exchanged between people.


log = logging.getLogger(__name__)
_MOST_BYTES = 256 << 20  # of a file that is read: millions of entries


@dataclass(frozen=True)
class Reading:
    """What a text of wisdom holds."""

    # Those that can be used.
    entries: tuple[Entry, ...]
    # Lines that are no entry, each with its number and why.
    bad: tuple[str, ...]
    # Kernel to the number of its entries that belong to another text or search space than this version's.
    stale: dict[str, int]

    def problems(self, name: str) -> list[str]:
        """Everything that was left out, in words; ``name`` is the file's."""
        said = [f"{name}, {bad}: skipped" for bad in self.bad]
        for kernel, count in sorted(self.stale.items()):
            what = f"rates of {kernel}" if kernel in MODELS else f"the kernel {kernel}"
            said.append(
                f"{name}: {count} {'entry' if count == 1 else 'entries'} of {what} "
                f"{'belongs' if count == 1 else 'belong'} to another version of it and "
                f"{'is' if count == 1 else 'are'} ignored; 'pyedmcl tune {kernel}' finds new ones"
            )
        return said


def line(entry: Entry) -> str:
    """An entry as one line of JSON."""
    record = {**key_as_dict(entry.key), "parameters": dict(entry.parameters)}
    if entry.seconds is not None:
        record["seconds"] = entry.seconds
    if entry.gain is not None:
        record["gain"] = entry.gain
    return canonical(record)


def parse(text: str) -> Reading:
    """Entries of a text, one JSON object a line; lines that are none are named and skipped."""
    entries: list[Entry] = []
    bad, stale = [], Counter[str]()
    for number, content in enumerate(text.splitlines(), start=1):
        if not content.strip():
            continue
        try:
            entry = _entry(content)
        except (ValueError, TypeError, OverflowError) as error:
            bad.append(f"line {number}: {error}")
            continue
        if entry.key.digest == digest_of(entry.key.kernel):
            entries.append(entry)
        else:
            stale[entry.key.kernel] += 1
    return Reading(tuple(entries), tuple(bad), dict(stale))


def _entry(content: str) -> Entry:
    try:
        record = json.loads(content)
        # Infinite numbers and halves of characters are read, and could not be written again.
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON ({error})") from error
    if not isinstance(record, dict):
        raise ValueError("a JSON object is needed")
    key = key_from(record)
    parameters = record.get("parameters")
    if not isinstance(parameters, dict) or not all(isinstance(v, (int, str, float)) for v in parameters.values()):
        raise ValueError(f"'parameters' is {parameters!r}; an object of numbers or text is needed")
    return Entry(key, parameters, _positive(record, "seconds"), _positive(record, "gain"))


def _positive(record: Mapping[str, Any], name: str) -> float | None:
    """A number above 0 of a record, or None where it has none."""
    value = record.get(name)
    return None if value is None else finite(value, repr(name), "a number above 0 is")


@functools.cache
def shipped(runtime: str, kernel: str) -> tuple[Entry, ...]:
    """Entries of a kernel that come with the package for a runtime's devices: ``tuning/wisdom/<runtime>.jsonl``.

    Only its own lines are read, since to tell whether one is stale takes the kernel's text.
    """
    reading = read_shipped(runtime, f'"kernel":"{kernel}"')
    for problem in reading.problems(f"tuning/wisdom/{runtime}.jsonl"):
        # No user can mend what was shipped; 'pyedmcl db doctor' tells it.
        log.info("%s", problem)
    return reading.entries


def read_shipped(runtime: str, words: str = "") -> Reading:
    """The lines with ``words`` of a runtime's shipped file; of no file nothing."""
    try:
        text = read_text("tuning/wisdom", f"{runtime}.jsonl")
    except BuildError:
        return Reading((), (), {})
    return parse("\n".join(content for content in text.splitlines() if words in content))


def export(database: Database, kernels: Iterable[str] = (), *, device: str | None = None) -> list[Entry]:
    """The best configuration of every key of a database, for this version's kernels and models.

    Parameters
    ----------
    kernels : iterable of str
        All where empty.
    device : str, optional
        Only of devices whose name or runtime contains this, in any case.
    """
    entries = []
    for kernel in tuple(kernels) or (*NAMES, *MODELS):
        for entry in database.known(kernel, digest_of(kernel) or "").entries:
            if device is None or entry.key.device.is_called(device):
                entries.append(entry)
    return sorted(entries, key=line)


def read(path: Path) -> Reading:
    """Entries of a file. Raises InputError where it cannot be read at all."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is longer than {_MOST_BYTES >> 20} MiB: no file of 'pyedmcl db export' is")
    return parse(data.decode("utf-8", errors="surrogateescape"))  # a line that is no text must not cost the others


def take_in(database: Database, entries: Iterable[Entry]) -> int:
    """Add entries to a database, where this machine's own trials go before them; returns how many were new."""
    entries = list(entries)
    database.note_gains((e.key, canonical(e.parameters), e.gain) for e in entries if e.gain is not None)
    return database.add(
        Trial(
            entry.key, entry.parameters, "ok", entry.seconds, () if entry.seconds is None else (entry.seconds,),
            session=IMPORTED, final=True,
        )
        for entry in entries
    )  # fmt: skip


# Where there is no database, none is opened: a process that never tuned pays for one look at the file system.


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
            for grade, entry in records.ranked(read.entries, key, shipped(key.device.runtime, key.kernel))
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


# What is wrong with tuned parameters, and how to mend it.


def diagnose() -> list[Finding]:
    """Findings on the database, its folder and the shipped wisdom; a database that cannot be used is set aside."""
    asked = default_path()
    exists = asked.exists()
    database = Database()
    trials = database.trials()
    findings = [Finding("ok", f"{database.path}, trials: {len(trials):,}" if exists else f"{asked}: not there yet", "")]
    findings += [Finding("error", problem, "") for problem in database.problems]
    state = database.check() if database.path.exists() else "ok"
    if state != "ok":
        findings.append(Finding("error", f"{database.path} is damaged: {state}", "rename or remove it"))
    for path in sorted(asked.parent.glob("*.unusable-*")):
        findings.append(Finding("warning", f"{path} was set aside and is not read", "remove it if nobody needs it"))
    findings += _folder(asked.parent)
    idle = len(database.idle(trials))
    if idle:
        findings.append(Finding("warning", f"trials of kernels that have changed, or of rates measured anew: {idle:,}",
                                "pyedmcl db prune"))  # fmt: skip
    lost = sum(trial.status == "started" and trial.barring for trial in trials)
    if lost:
        findings.append(Finding("warning", f"trials that ended with their process, to be skipped: {lost:,}", ""))
    for bar in stored_bars(database):
        findings.append(Finding("warning", f"kept away by hand: {bar} ({bar.why or 'no reason was given'})",
                                f"pyedmcl db unbar {bar.id}"))  # fmt: skip
    for device, kernel, most, note in database.limits():
        findings.append(
            Finding("warning", f"{kernel} gets at most {most} work-items on the device {device}, which refused more "
                    f"({note.partition('. ')[0]})", "a newer driver may do better")
        )  # fmt: skip
    for runtime in RUNTIMES:
        findings += _shipped(runtime)
    findings.append(Finding("ok", f"mode {config.current().tune!r}", ""))
    return findings


def _folder(folder: Path) -> list[Finding]:
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    if folder.is_dir() and os.access(folder, os.W_OK):
        return []
    return [Finding("error", f"{folder} cannot be written", "set PYEDMCL_DATA_DIR to a folder that can")]


def _shipped(runtime: str) -> list[Finding]:
    reading = read_shipped(runtime)
    name = f"tuning/wisdom/{runtime}.jsonl"
    findings = [Finding("warning", problem, "") for problem in reading.problems(name)]
    if reading.entries:
        findings.append(Finding("ok", f"{name}: {len(reading.entries):,} entries", ""))
    return findings
