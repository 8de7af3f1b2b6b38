"""Wisdom: tuned parameters and measured rates as JSON lines, shipped with the package or exchanged between people."""

from __future__ import annotations

import functools
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.texts import read_text
from ..errors import BuildError, InputError
from ..kernels import NAMES
from .grades import Entry
from .journal import IMPORTED, Trial
from .key import MODELS, canonical, digest_of, finite, key_as_dict, key_from

if TYPE_CHECKING:
    from .database import Database

log = logging.getLogger(__name__)
_MOST_BYTES = 256 << 20  # of a file that is read: millions of entries


@dataclass(frozen=True)
class Reading:
    """What a text of wisdom holds.

    Attributes
    ----------
    entries : tuple of Entry
        Those that can be used.
    bad : tuple of str
        Lines that are no entry, each with its number and why.
    stale : mapping
        Kernel to the number of its entries that belong to another text or search space than this version's.
    """

    entries: tuple[Entry, ...]
    bad: tuple[str, ...]
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
    database : Database
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
