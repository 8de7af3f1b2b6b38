"""How times follow each other: by equal steps, or with rows that are missing, doubled, unsorted or between others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dates import months_after, months_of, working_days_of

Array = NDArray[Any]
Rows = NDArray[np.int64]

# A step is as many rows as it is nearest to: one, from half of the usual one to one and a half.
_SHORTER, _LONGER = 0.5, 1.5
_COARSE = 4  # of the differences of neighbouring numbers: steps that are shorter differ by how they were rounded


@dataclass(frozen=True, eq=False)
class Steps:
    """What is wrong with times: of each kind the rows that it is found at, in increasing order.

    Attributes
    ----------
    timeless : ndarray of int64
        Rows without a time (NaT, NaN); where there are any, nothing else is looked for.
    back : ndarray of int64
        Rows that are earlier than the one before; where there are any, no rows are said to be missing.
    doubled : ndarray of int64
        Rows with the time of the one before.
    short : ndarray of int64
        Rows that follow sooner than after half of the usual step.
    long : ndarray of int64
        Rows before which rows are missing.
    missing : ndarray of int64
        How many are missing before each of ``long``.
    total : int
        Steps that were looked at.
    working : bool
        Steps are counted in working days, so that no weekend is missing.
    """

    timeless: Rows
    back: Rows
    doubled: Rows
    short: Rows
    long: Rows
    missing: Rows
    total: int
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
