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
    if isinstance(step, _Months):
        times[before] = step.after(time[0], rows[before])
        times[behind] = step.after(time[-1], rows[behind] - (n - 1))
        return times
    times[before] = (time[0] + rows[before] * step).astype(time.dtype)
    times[behind] = (time[-1] + (rows[behind] - (n - 1)) * step).astype(time.dtype)
    return times


class _Months:
    """Steps of some months.

    Parameters
    ----------
    months : int
    at_end : bool
        Times are ends of months, however long these are.
    """

    def __init__(self, months: int, at_end: bool) -> None:
        self._months, self._at_end = months, at_end

    def after(self, moment: Any, steps: NDArray[np.int_]) -> Array:
        """The times ``steps`` steps after a moment."""
        return months_after(moment, steps * self._months, self._at_end)


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


def _step(time: Array) -> Any:
    """What is added for each row; None where most rows do not have the same step."""
    if len(time) < 2:
        return None
    months = months_of(time) if time.dtype.kind == "M" and not np.isnat(time).any() else None
    if months is not None:
        most = _usual(np.diff(months.numbers))
        if most:
            return _Months(int(most), months.at_end)
    if time.dtype.kind == "f":  # 1958.04, 1958.12, ... differ by a little
        step = (time[-1] - time[0]) / (len(time) - 1)
        even = np.isfinite(time).all() and np.allclose(np.diff(time), step, rtol=1e-3, atol=0)
        return step if even else None
    return _usual(time[1:] - time[:-1])


def _usual(steps: Array) -> Any:
    """The step that most of these are; None where there is none."""
    different, counts = np.unique(steps, return_counts=True)
    return different[np.argmax(counts)] if counts.max() > _MOSTLY * len(steps) else None
