"""Configurations that a user keeps away by hand, such as one that crashes this driver or that gave a wrong answer."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..codegen.spec import KernelSpec
from ..device.fingerprint import DeviceKey
from ..errors import InputError
from .connection import UnusableError
from .key import canonical

if TYPE_CHECKING:
    from .database import Database


@dataclass(frozen=True)
class Bar:
    """What is kept away.

    Attributes
    ----------
    kernel : str
    parameters : mapping
        Every configuration with these values; at least one.
    device : str
        Only on devices whose name or runtime contains this; on all where empty.
    why : str
    when : float
        In seconds since 1970.
    id : int
        Row of the database.
    """

    kernel: str
    parameters: Mapping[str, Any]
    device: str = ""
    why: str = ""
    when: float = 0.0
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
