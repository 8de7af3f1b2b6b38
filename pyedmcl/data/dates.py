"""The times of rows as the data have them, continued beyond both ends by their own step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        length = step.astype("timedelta64[us]").astype(np.int64)
        sizes = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
        unit = next((unit for unit, size in sizes.items() if length % size == 0), "")
        count = length // sizes[unit] if unit else length / 1_000_000
        unit = unit or "seconds"
    else:
        return f"{step:g}"
    return unit if count == 1 else f"{count:g} {unit.removesuffix('s')}s"


class _Months:
    """Steps of some months.

    Parameters
    ----------
    months : int
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
    """Times that are each the same moment of a month.

    Attributes
    ----------
    numbers : ndarray of int64
        Of each time its month, counted from 1970.
    at_end : bool
        The moment is one of the last day, however long months are.
    """

    numbers: NDArray[np.int64]
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
