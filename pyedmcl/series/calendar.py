"""Steps of times: the calendar's, the rule that calls them regular, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import many

# The times of rows as the data have them, continued beyond both ends by their own step.


Array = NDArray[Any]
_MOSTLY = 0.5  # of the steps must be equal, if the times are to go on with that step


def times_at(time: Array | None, rows: NDArray[np.int_]) -> Array | None:
    """Times of rows, which may lie before the first or behind the last.

    Months, quarters and years go on by the calendar, everything else by the difference that most rows have.

    Parameters
    ----------
    time : ndarray (n_steps,) or None
        Dates, durations, numbers or text.
    rows : ndarray of int (n,)

    Returns
    -------
    ndarray (n,) or None
        Where a time is not known (text, or no step that most rows have) it is NaT, NaN or an empty text. None for no
        times.
    """
    if time is None:
        return None
    n = len(time)
    inside = (rows >= 0) & (rows < n)
    times = time[np.clip(rows, 0, n - 1)]
    if inside.all():
        return times
    before, behind = rows < 0, rows >= n
    kind = time.dtype.kind
    if kind not in "iufMm":
        times[~inside] = ""
        return times
    step = _step(time)
    if step is None:
        times = times if kind in "fMm" else times.astype(np.float64)
        times[~inside] = np.nan if kind in "iuf" else np.array("NaT", time.dtype)
        return times
    if isinstance(step, (_Months, _WorkingDays)):
        times[before] = step.after(time[0], rows[before])
        times[behind] = step.after(time[-1], rows[behind] - (n - 1))
        return times
    times[before] = (time[0] + rows[before] * step).astype(time.dtype)
    times[behind] = (time[-1] + (rows[behind] - (n - 1)) * step).astype(time.dtype)
    return times


def usual_step(time: Array) -> str:
    """The step that most rows have, in words; empty where there is none.

    Examples
    --------
    >>> usual_step(np.array(["2001-01", "2001-02", "2001-04"], "datetime64[D]")), usual_step(np.array([3, 5, 7]))
    ('month', '2')
    """
    step = _step(time)
    if step is None:
        return ""
    if isinstance(step, _WorkingDays):
        return "working day"
    if isinstance(step, _Months):
        count, unit = (step.months // 12, "year") if step.months % 12 == 0 else (step.months, "month")
    elif time.dtype.kind in "Mm":
        return _length(step).removeprefix("1 ")
    else:
        return f"{step:g}"
    return unit if count == 1 else f"{count:g} {unit}s"


def _length(span: Any) -> str:
    """A duration in the largest unit of which it is a whole number, such as "42 days"."""
    length = int(span.astype("timedelta64[us]").astype(np.int64))
    sizes = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
    unit = next((unit for unit, size in sizes.items() if length % size == 0), "second")
    count = length / sizes[unit]
    return f"{count:.10g} {unit}" + ("" if count == 1 else "s")


class _Months:
    """Steps of some months.

    Parameters
    ----------
    at_end : bool
        Times are ends of months, however long these are.
    """

    def __init__(self, months: int, at_end: bool) -> None:
        self.months, self._at_end = months, at_end

    def after(self, moment: Any, steps: NDArray[np.int_]) -> Array:
        """The times ``steps`` steps after a moment."""
        return months_after(moment, steps * self.months, self._at_end)


def months_after(moment: Any, months: NDArray[np.int_], at_end: bool) -> Array:
    """The times ``months`` months after a moment; ``at_end``: it is the end of its month, and so are they."""
    day = np.timedelta64(1, "D")
    moment = moment + day if at_end else moment
    month = moment.astype("datetime64[M]")
    later: Array = (month + months).astype(moment.dtype) + (moment - month.astype(moment.dtype))
    return later - day if at_end else later


@dataclass(frozen=True, eq=False)
class Months:
    """Times that are each the same moment of a month."""

    # Of each time its month, counted from 1970.
    numbers: NDArray[np.int64]
    # The moment is one of the last day, however long months are.
    at_end: bool


def months_of(time: Array) -> Months | None:
    """Times as months; None where they are no such moments: dates without NaT are needed."""
    if np.datetime_data(time.dtype)[0] in ("Y", "W"):
        return None
    for at_end in (False, True):
        moments = time + np.timedelta64(1, "D") if at_end and np.datetime_data(time.dtype)[0] != "M" else time
        months = moments.astype("datetime64[M]")
        within = moments - months.astype(moments.dtype)
        if (within == within[:1]).all():  # the same day and hour of each month
            return Months(months.astype(np.int64), at_end)
    return None


_WEEKS = 2  # of working days alone, before no weekend is missed


def working_days_of(time: Array) -> NDArray[np.int64] | None:
    """Dates as numbers of working days (Monday to Friday); None where some are on a weekend, or are no daily ones."""
    if len(time) < 5 * _WEEKS or np.datetime_data(time.dtype)[0] in ("Y", "M", "W") or np.isnat(time).any():
        return None
    days = time.astype("datetime64[D]")
    if ((time - days) != (time[0] - days[0])).any() or not np.is_busday(days).all():
        return None
    steps = np.diff(days).astype(np.int64)
    if np.median(steps) != 1 or (steps <= 0).any() or (days[-1] - days[0]).astype(np.int64) < 7 * _WEEKS:
        return None
    return np.asarray(np.busday_count(np.datetime64("1970-01-01"), days), np.int64)


class _WorkingDays:
    """Steps of some working days."""

    def __init__(self, days: int) -> None:
        self.days = days

    def after(self, moment: Any, steps: NDArray[np.int_]) -> Array:
        """The times ``steps`` steps after a moment."""
        day = moment.astype("datetime64[D]")
        later: Array = (np.busday_offset(day, steps * self.days) + (moment - day)).astype(moment.dtype)
        return later


def _step(time: Array) -> Any:
    """What is added for each row; None where most rows do not have the same step."""
    if len(time) < 2:
        return None
    months = months_of(time) if time.dtype.kind == "M" and not np.isnat(time).any() else None
    if months is not None:
        most = _usual(np.diff(months.numbers))
        if most:
            return _Months(int(most), months.at_end)
    working = working_days_of(time) if time.dtype.kind == "M" else None
    if working is not None:
        return _WorkingDays(1)
    if time.dtype.kind == "f":  # 1958.04, 1958.12, ... differ by a little
        step = (time[-1] - time[0]) / (len(time) - 1)
        even = np.isfinite(time).all() and np.allclose(np.diff(time), step, rtol=1e-3, atol=0)
        return step if even else None
    return _usual(time[1:] - time[:-1])


def _usual(steps: Array) -> Any:
    """The step that most of these are; None where there is none."""
    different, counts = np.unique(steps, return_counts=True)
    return different[np.argmax(counts)] if counts.max() > _MOSTLY * len(steps) else None


# How times follow each other: by equal steps, or with rows that are missing, doubled, unsorted or between others.


Rows = NDArray[np.int64]

# A step is as many rows as it is nearest to: one, from half of the usual one to one and a half.
_SHORTER, _LONGER = 0.5, 1.5
_COARSE = 4  # of the differences of neighbouring numbers: steps that are shorter differ by how they were rounded


@dataclass(frozen=True, eq=False)
class Steps:
    """What is wrong with times: of each kind the rows that it is found at, in increasing order."""

    # Rows without a time (NaT, NaN); where there are any, nothing else is looked for.
    timeless: Rows
    # Rows that are earlier than the one before; where there are any, no rows are said to be missing.
    back: Rows
    # Rows with the time of the one before.
    doubled: Rows
    # Rows that follow sooner than after half of the usual step.
    short: Rows
    # Rows before which rows are missing.
    long: Rows
    # How many are missing before each of ``long``.
    missing: Rows
    # Steps that were looked at.
    total: int
    # Steps are counted in working days, so that no weekend is missing.
    working: bool = False

    @property
    def even(self) -> bool:
        """Whether nothing is wrong."""
        return not any(len(rows) for rows in (self.timeless, self.back, self.doubled, self.short, self.long))

    def among(self, rows: Rows) -> Steps:
        """The same, where the times were those of some rows of a table: with the rows of that."""
        return Steps(
            rows[self.timeless], rows[self.back], rows[self.doubled], rows[self.short], rows[self.long], self.missing,
            self.total, self.working,
        )  # fmt: skip

    def missing_times(self, time: Array) -> list[Array]:
        """Times of the rows that are missing before each of ``long``: by the calendar where all times are of months,
        else in equal steps from the row before to the row after."""
        months = months_of(time) if time.dtype.kind == "M" else None
        times = []
        for row, missing in zip(self.long.tolist(), self.missing.tolist(), strict=True):
            before, steps = time[row - 1], np.arange(1, missing + 1)
            if self.working:
                days = np.busday_offset(before.astype("datetime64[D]"), steps)
                times.append((days + (before - before.astype("datetime64[D]"))).astype(time.dtype))
                continue
            if months is not None:
                months_each = round(int(months.numbers[row] - months.numbers[row - 1]) / (missing + 1))
                times.append(months_after(before, steps * months_each, months.at_end))
                continue
            length = time[row] - before
            if time.dtype.kind == "f":
                times.append((before + steps * (length / (missing + 1))).astype(time.dtype))
            else:
                times.append((before + steps * length // (missing + 1)).astype(time.dtype))
        return times


def steps_of(time: Array | None) -> Steps | None:
    """What is wrong with times; None for names, fewer than three rows, and numbers too coarse to tell.

    Months and years are counted by the calendar where each time is the same moment of its month, or its end.
    """
    numbers = _numbers(time)
    if time is None or numbers is None:
        return None
    none = np.zeros(0, np.int64)
    timeless = np.flatnonzero(np.isnat(time) if time.dtype.kind in "Mm" else ~np.isfinite(numbers))
    if len(timeless):
        return Steps(timeless, none, none, none, none, none, len(time) - 1)
    steps = np.diff(numbers).astype(np.float64)
    if time.dtype.kind == "f" and 0 < np.abs(steps).mean() < _COARSE * float(np.spacing(np.abs(time).max())):
        return None
    back, doubled = np.flatnonzero(steps < 0) + 1, np.flatnonzero(steps == 0) + 1
    forward = steps[steps > 0]
    if len(back) or not len(forward):
        return Steps(none, back, doubled, none, none, none, len(steps))
    median = float(np.median(forward))
    # Times that are rounded, as decimal years are, have steps around the true one.
    usual = float(forward[(forward > _SHORTER * median) & (forward < _LONGER * median)].mean())
    count = np.rint(steps / usual)
    count[(steps >= _SHORTER * usual) & (steps <= _LONGER * usual)] = 1  # NumPy rounds halves to even
    short, long = np.flatnonzero((count == 0) & (steps > 0)) + 1, np.flatnonzero(count > 1) + 1
    missing = np.minimum(count[long - 1] - 1, 2.0**62).astype(np.int64)
    working = time.dtype.kind == "M" and working_days_of(time) is not None
    return Steps(none, back, doubled, short, long, missing, len(steps), working)


def _numbers(time: Array | None) -> Array | None:
    """Times as numbers whose differences count; None where there is nothing to compare."""
    if time is None or len(time) < 3 or time.dtype.kind not in "iufMm":
        return None
    if time.dtype.kind == "f":
        return time.astype(np.float64)
    if time.dtype.kind == "M" and not np.isnat(time).any():
        months = months_of(time)
        if months is not None:
            return months.numbers
        working = working_days_of(time)
        if working is not None:
            return working
    return time.astype(np.int64)


# What is wrong with times, in words: which rows, what it means for states, and what can be done.


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
    if kind == "m":
        return _length(value)
    text = f"{value:.10g}" if kind == "f" else str(value)
    if kind != "M" or "T" not in text:
        return text
    seconds = text.split(".")[0] if not text.partition(".")[2].strip("0") else text
    return seconds.removesuffix("T00:00:00")
