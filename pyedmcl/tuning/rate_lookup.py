"""Which rates suit a device best: of the database, else of the shipped wisdom; read once per process."""

from __future__ import annotations

from collections.abc import Iterable

from .. import config
from ..device.fingerprint import DeviceKey
from . import wisdom
from .knowledge import _signature, _there
from .lookup import relation
from .rates import IMPORTED, RateRecord, newest, stored

# From the best to the least knowledge.
_GRADES = ("measured", "imported", "measured with another driver", "shipped", "measured on a similar device",
           "shipped for a similar device")  # fmt: skip


def known(device: DeviceKey, name: str) -> tuple[str, RateRecord] | None:
    """The rates that suit a device best, and how well they are known; None where nothing is.

    "measured" (this device and driver, here), "imported", "measured with another driver", "shipped" (this device, any
    driver), "measured on a similar device", "shipped for a similar device". Read once per process, and again when the
    database has changed.
    """
    seen = _signature(config.current().data_dir / "tuning.sqlite3")
    if seen != _read.seen:
        _read.seen, _read.records = seen, _stored()
        _read.answers.clear()
    place = (device, name)
    if place not in _read.answers:
        _read.answers[place] = _best(_read.records, device, name)
    return _read.answers[place]


def forget() -> None:
    """Read everything again when next asked."""
    _read.clear()


class _Read:
    """What this process has read."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.seen: object = None
        self.records: list[RateRecord] = []
        self.answers: dict[tuple[DeviceKey, str], tuple[str, RateRecord] | None] = {}


_read = _Read()


def _stored() -> list[RateRecord]:
    if not _there(config.current().data_dir / "tuning.sqlite3"):
        return []  # no database is opened, nor made, for a look
    from .database import Database

    return stored(Database())


def _best(records: Iterable[RateRecord], device: DeviceKey, name: str) -> tuple[str, RateRecord] | None:
    found: list[tuple[int, int, RateRecord]] = []
    for shipped, some in ((False, newest(records)), (True, wisdom.shipped_rates(device.runtime))):
        for order, record in enumerate(some):
            kind = relation(record.device, device)
            if kind is None or record.name != name or not record.current:
                continue
            if kind == "relative":
                grade = _GRADES[5 if shipped else 4]
            elif shipped:
                grade = "shipped"
            elif kind == "driver":
                grade = "measured with another driver"
            else:
                grade = "imported" if record.session == IMPORTED else "measured"
            found.append((_GRADES.index(grade), order, record))
    if not found:
        return None
    place, _, best = min(found, key=lambda item: item[:2])
    return _GRADES[place], best
