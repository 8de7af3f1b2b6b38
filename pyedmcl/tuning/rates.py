"""Rates of a device: measured numbers from which run times are estimated, kept beside the trials and shipped as wisdom.

What the numbers mean is the business of whoever estimates with them (:mod:`pyedmcl.neighbors.rates`); here they have a
name, a version of their formulas, and the device that they were measured on.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import DeviceKey
from .journal import IMPORTED
from .key import canonical, device_digest, device_from, finite
from .rows import LATEST

if TYPE_CHECKING:
    from .database import Database

#: Version of the formulas behind each name; rates of another version are ignored. To be raised when they change.
MODELS = {"neighbors": "2"}


@dataclass(frozen=True)
class RateRecord:
    """Rates of one device.

    Attributes
    ----------
    device : DeviceKey
    name : str
        What they are for; one of :data:`MODELS`.
    model : str
        Version of the formulas that they belong to.
    values : mapping
        Name to a number that is not negative.
    problems : tuple of mapping
        What was timed, with measured and predicted seconds; of an imported one nothing.
    when : float
        In seconds since 1970.
    session : str
        ``journal.IMPORTED`` for one that came from a file.
    id : int
        Row of the database; 0 for one from a file.
    """

    device: DeviceKey
    name: str
    model: str
    values: Mapping[str, float]
    problems: tuple[Mapping[str, Any], ...] = ()
    when: float = 0.0
    session: str = ""
    id: int = field(default=0, compare=False)

    @property
    def current(self) -> bool:
        """Whether this version's formulas can use them."""
        return MODELS.get(self.name) == self.model


def line(record: RateRecord) -> str:
    """A record as one line of JSON, for a file of wisdom; what was timed stays behind."""
    return canonical({
        "device": record.device.as_dict(), "rates": record.name, "model": record.model, "values": dict(record.values),
    })  # fmt: skip


def record_from(fields: Mapping[str, Any]) -> RateRecord:
    """The reverse of :func:`line`, from its object. Raises ValueError naming what is wrong."""
    for name, kind in (("device", dict), ("rates", str), ("model", str), ("values", dict)):
        if not isinstance(fields.get(name), kind):
            raise ValueError(f"{name!r} is {fields.get(name)!r}; {'an object' if kind is dict else 'text'} is needed")
    values = checked(fields["values"])
    return RateRecord(device_from(fields["device"]), fields["rates"], fields["model"], values)


def checked(values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers as floats. Raises ValueError naming the first that is none, negative or not finite."""
    needed = "a number of at least 0 is"
    return {name: finite(value, f"the rate {name!r}", needed, zero=True) for name, value in values.items()}


def save(database: Database, records: Iterable[RateRecord], *, imported: bool = False) -> int:
    """Append records to a database; imported ones that are there already are left out. Returns how many were new."""
    new_records = list(records)

    def change(connection: sqlite3.Connection) -> int:
        return sum(_insert(connection, record, imported) for record in new_records)

    return database.file.write(change)


def stored(database: Database) -> list[RateRecord]:
    """All records of a database in the order in which they came; unreadable rows are left out."""
    nothing: list[RateRecord | None] = []
    return [record for record in database.file.read(_select, nothing) if record is not None]


def remove(database: Database, ids: Iterable[int]) -> int:
    """Remove records by their number; returns how many there were."""
    return database.file.remove("rates", ids)


def newest(records: Iterable[RateRecord], *, device: str | None = None) -> list[RateRecord]:
    """Of each device and name the record to use: the newest that was measured here, else the newest imported one.

    Parameters
    ----------
    records : iterable of RateRecord
        Of :func:`stored`; those of other formulas are left out.
    device : str, optional
        Only devices whose name or runtime contains this.
    """
    best: dict[tuple[str, str], RateRecord] = {}
    for record in records:
        place = (device_digest(record.device), record.name)
        if record.current and (place not in best or _rank(record) < _rank(best[place])):
            best[place] = record
    return sorted((r for r in best.values() if device is None or r.device.is_called(device)), key=line)


def superseded(records: Iterable[RateRecord]) -> list[RateRecord]:
    """Records that are never looked up: of other formulas, or followed by newer ones of the same device."""
    everything = list(records)
    used = {record.id for record in newest(everything)}
    return [record for record in everything if record.id not in used]


def _rank(record: RateRecord) -> tuple[bool, int]:
    return record.session == IMPORTED, -record.id


def _insert(connection: sqlite3.Connection, record: RateRecord, imported: bool) -> int:
    device, values = device_digest(record.device), canonical(record.values)
    session = IMPORTED if imported else record.session
    if imported:
        same = 'SELECT 1 FROM rates WHERE device=? AND name=? AND model=? AND "values"=?'
        if connection.execute(same, (device, record.name, record.model, values)).fetchone():
            return 0
    fields = canonical(record.device.as_dict())
    connection.execute("INSERT OR IGNORE INTO devices VALUES (?, ?)", (device, fields))
    row = (device, record.name, record.model, values, canonical({"problems": list(record.problems)}),
           record.when or time.time(), session)  # fmt: skip
    connection.execute("INSERT INTO rates VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    return 1


def _select(connection: sqlite3.Connection) -> list[RateRecord | None]:
    statement = (
        'SELECT r.id, d.fields, r.name, r.model, r."values", r.problems, r.at, r.session '
        "FROM rates r JOIN devices d ON d.digest = r.device ORDER BY r.id"
    )
    return [_record(row) for row in connection.execute(statement)]


def _record(row: tuple[Any, ...]) -> RateRecord | None:
    number, fields, name, model, values, problems, at, session = row
    try:
        device = _device(fields)
        sizes = tuple(json.loads(problems)["problems"])
        if not all(isinstance(text, str) for text in (name, model, session)) or not 0 <= at < LATEST:
            return None
        return RateRecord(device, name, model, checked(json.loads(values)), sizes, at, session, number)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


@lru_cache(maxsize=64)
def _device(fields: str) -> DeviceKey:
    return device_from(json.loads(fields))
