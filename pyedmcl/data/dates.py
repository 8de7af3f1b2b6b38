"""The times of rows as the data have them, continued beyond both ends by their own step."""

from __future__ import annotations

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
    found = time[np.clip(rows, 0, n - 1)]
    if inside.all():
        return found
    before, behind = rows < 0, rows >= n
    kind = time.dtype.kind
    if kind not in "iufMm":
        found[~inside] = ""
        return found
    step = _step(time)
    if step is None:
        found = found if kind in "fMm" else found.astype(np.float64)
        found[~inside] = np.nan if kind in "iuf" else np.array("NaT", time.dtype)
        return found
    if isinstance(step, _Months):
        found[before] = step.after(time[0], rows[before])
        found[behind] = step.after(time[-1], rows[behind] - (n - 1))
        return found
    found[before] = (time[0] + rows[before] * step).astype(time.dtype)
    found[behind] = (time[-1] + (rows[behind] - (n - 1)) * step).astype(time.dtype)
    return found


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
        """The times so many steps after a moment."""
        day = np.timedelta64(1, "D")
        moment = moment + day if self._at_end else moment
        month = moment.astype("datetime64[M]")
        later: Array = (month + steps * self._months).astype(moment.dtype) + (moment - month.astype(moment.dtype))
        return later - day if self._at_end else later


def _step(time: Array) -> Any:
    """What is added for each row; None where most rows do not have the same step."""
    if len(time) < 2:
        return None
    if time.dtype.kind == "M":
        for at_end in (False, True):
            months = _months(time, at_end)
            if months is not None:
                return _Months(months, at_end)
    steps, counts = np.unique(time[1:] - time[:-1], return_counts=True)
    if time.dtype.kind == "f":  # 1958.04, 1958.12, ... differ by a little
        step = (time[-1] - time[0]) / (len(time) - 1)
        even = np.isfinite(time).all() and np.allclose(np.diff(time), step, rtol=1e-3, atol=0)
        return step if even else None
    return steps[np.argmax(counts)] if counts.max() > _MOSTLY * (len(time) - 1) else None


def _months(time: Array, at_end: bool) -> int | None:
    """Months from row to row; None where these are no steps of whole months."""
    if np.isnat(time).any() or np.datetime_data(time.dtype)[0] in ("Y", "W"):
        return None
    moments = time + np.timedelta64(1, "D") if at_end and np.datetime_data(time.dtype)[0] != "M" else time
    months = moments.astype("datetime64[M]")
    if len(np.unique(moments - months.astype(moments.dtype))) > 1:  # not the same day and hour of each month
        return None
    steps, counts = np.unique(np.diff(months.astype(np.int64)), return_counts=True)
    most = int(steps[np.argmax(counts)])
    return most if most != 0 and counts.max() > _MOSTLY * (len(time) - 1) else None
