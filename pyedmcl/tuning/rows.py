"""Rows of a tuning database as trials and limits. A row that was never written so means that the file is damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..device.fingerprint import DeviceKey
from .connection import UnusableError
from .journal import ENDS, Trial, seconds_of
from .key import TuningKey, canonical, device_from

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
