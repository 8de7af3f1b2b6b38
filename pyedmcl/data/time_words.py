"""What is wrong with times, in words: which rows, what it means for states, and what can be done."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import many
from .steps import Steps

Array = NDArray[Any]

_FEW = 4  # rows that a sentence names
_BOTH = "regular='insert' puts rows of NaN there, regular='ignore' takes the rows as they come"
_CLOCKS = "Clocks seem to have been set: give times in UTC, or with their zone"
_ONE = "regular='ignore' takes the rows as they come"
_REMEDY = {
    "time-less": f"Give each row a time, or leave such rows out; {_ONE}",
    "time-back": f"Sort the table, or {{apart}}; {_ONE}",
    "time-double": f"Leave one of them, or their mean; {_ONE}",
    "time-uneven": f"Bring the table to equal steps first, such as means of equal periods; {_ONE}",
    "time-gaps": f"States are made of rows, and would pass over such a place as if nothing were missing. {_BOTH}",
}


def faults(time: Array, steps: Steps) -> dict[str, str]:
    """What is wrong with times by its code, the worst first: which rows, as a phrase."""
    phrases = {}
    if len(steps.timeless):
        rows = many(len(steps.timeless), "row", "has", "have")
        phrases["time-less"] = f"{rows} no time, {_named(time, steps.timeless, 'row')}"
    if len(steps.back):
        if len(steps.back) == steps.total:
            phrases["time-back"] = f"the rows run from newest ({moment(time[0])}) to oldest ({moment(time[-1])})"
        else:
            phrases["time-back"] = (
                f"the time goes back {many(len(steps.back), 'time')}, {_named(time, steps.back, 'first in row', 1)}: "
                "several recordings one below the other, or rows that are not sorted"
            )
    if len(steps.doubled):
        phrases["time-double"] = (
            f"{many(len(steps.doubled), 'row', 'has', 'have')} the time of the row before, "
            f"{_named(time, steps.doubled, 'row')}"
        )
    if len(steps.short):
        phrases["time-uneven"] = (
            f"{len(steps.short):,} of {steps.total:,} steps are less than half as long as the usual one, "
            f"{_named(time, steps.short, 'before row')}"
        )
    if len(steps.long):
        phrases["time-gaps"] = (
            f"{many(int(steps.missing.sum()), 'row', 'is', 'are')} missing in {many(len(steps.long), 'place')}, "
            f"{_named(time, steps.long, 'before row')}"
            + (" (steps are working days: weekends are not counted)" if steps.working else "")
        )
    return phrases


def remedy(code: str, grouped: bool = True, time: Array | None = None, steps: Steps | None = None) -> str:
    """What can be done about a fault, in a sentence without its full stop; ``grouped``: by what takes ``groups``."""
    if steps is not None and time is not None:
        if code == "time-back" and len(steps.back) == steps.total:
            return f"Turn the rows round, as with data[::-1]; {_ONE}"
        if _clocks_were_set(time, steps):
            return f"{_CLOCKS}; {_ONE}"
    apart = "tell recordings apart by groups=" if grouped else "take one recording at a time"
    return _REMEDY[code].format(apart=apart)


def _clocks_were_set(time: Array, steps: Steps) -> bool:
    """Whether all faults are an hour in spring or autumn, as where clocks are set for daylight saving."""
    if time.dtype.kind != "M" or len(steps.timeless) or len(steps.short):
        return False
    rows = np.concatenate([steps.back, steps.doubled, steps.long])
    hours = np.abs(np.diff(time).astype("timedelta64[m]").astype(np.int64))
    months = time[rows].astype("datetime64[M]").astype(np.int64) % 12 + 1
    spring_or_autumn = np.isin(months, (3, 4, 9, 10, 11)).all()
    usual = np.median(hours)
    an_hour = (hours[rows - 1] <= 60 + usual).all()
    return bool(len(rows) and 0 < usual <= 60 and spring_or_autumn and an_hour)


def _named(time: Array, rows: NDArray[np.int64], word: str, most: int = _FEW) -> str:
    """The first few rows with their times."""
    listed = ", ".join(f"{row} ({moment(time[row])})" for row in rows[:most].tolist())
    more = len(rows) - most
    return f"{word} {listed}" + (f" and {more:,} more" if more > 0 and most > 1 else "")


def moment(value: Any) -> str:
    """A time without the zeros behind it."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    text = f"{value:.10g}" if kind == "f" else str(value)
    if kind != "M" or "T" not in text:
        return text
    seconds = text.split(".")[0] if not text.partition(".")[2].strip("0") else text
    return seconds.removesuffix("T00:00:00")
