"""What the times of a table say about its rows: whether these are equally spaced, complete and in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.groups import Groups
from ..data.times import like_date

Key = TypeVar("Key", bound=Hashable)

# Months have 28 to 31 days: a step is a gap only where it is much longer than the usual one.
_LONGER, _SHORTER = 1.5, 0.5


def remarks_on_times(time: NDArray[Any] | None) -> list[tuple[str, str]]:
    """(code, sentence) of whatever is wrong with times; nothing for names and where there are none."""
    if time is not None and len(time) and time.dtype.kind == "U" and like_date(str(time[0])):
        return [("time-text", f"the times are text ({time[0]}, ...) of which not all read as dates, so that they were "
                 "not checked; make them dates, as with pandas.to_datetime")]  # fmt: skip
    steps = _steps(time)
    if time is None or steps is None:
        return []
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    back, double = int((steps < 0).sum()), int((steps == 0).sum())
    found = []
    if back:
        row = int(np.argmax(steps < 0)) + 1
        restart = f"the time goes back {back:,} times, first in row {row} ({time[row]})"
        found.append((
            "time-back",
            f"{restart}: several recordings one below the other, or rows that are not sorted. Rows on both sides of "
            "such a place become one state; sort the table first, or say in groups= which rows belong together",
        ))  # fmt: skip
    if double:
        row = int(np.argmax(steps == 0)) + 1
        found.append((
            "time-double",
            f"{double:,} rows have the time of the row before, first row {row} ({time[row]}): each is taken for a step",
        ))  # fmt: skip
    long = steps > _LONGER * usual
    if usual and long.any() and not back:
        missing = int(np.rint(steps[long] / usual).sum()) - int(long.sum())
        row = int(np.argmax(long)) + 1
        found.append((
            "time-gaps",
            f"some {missing:,} rows are missing in {int(long.sum()):,} places, first before row {row} ({time[row]}): "
            "states are made of rows, so that these places are passed over as if nothing were missing. Insert rows of "
            "NaN",
        ))  # fmt: skip
    uneven = float(((steps > 0) & (steps < _SHORTER * usual)).mean()) if usual else 0.0
    if uneven > 0.01:
        found.append((
            "time-uneven",
            f"{uneven:.0%} of the steps are less than half as long as the usual one: states need equally spaced rows",
        ))  # fmt: skip
    return found


def remarks_on_times_of(time: NDArray[Any] | None, groups: Groups | None) -> list[tuple[str, str]]:
    """As :func:`remarks_on_times`, of each recording; of groups each kind once, for the first that has it."""
    if groups is None or time is None:
        return remarks_on_times(time)
    found = (
        (code, name, text) for number, name in enumerate(groups.names.tolist())
        for code, text in remarks_on_times(time[groups.codes == number])
    )  # fmt: skip
    return list(said_once(found).items())


def said_once(found: Iterable[tuple[Key, Any, str]]) -> dict[Key, str]:
    """Of what (key, name of a group, sentence) say, each key once: for the first group, with the number of others."""
    held: dict[Key, list[str]] = {}
    for key, name, text in found:
        held.setdefault(key, []).append(f"group {name}: {text}")
    return {
        key: own[0] + (f" (and so in {len(own) - 1:,} more groups)" if len(own) > 1 else "")
        for key, own in held.items()
    }


def _steps(time: NDArray[Any] | None) -> NDArray[np.float64] | None:
    """Differences of times as numbers; None where there is nothing to compare."""
    if time is None or len(time) < 3:
        return None
    if time.dtype.kind == "M":
        if np.isnat(time).any():
            return None
        return np.diff(time.astype("datetime64[us]").astype(np.int64)).astype(np.float64)
    if time.dtype.kind in "iuf":
        values = time.astype(np.float64)
        return np.diff(values) if np.isfinite(values).all() else None
    return None
