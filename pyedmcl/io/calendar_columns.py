"""Columns of years, months and days that are a date together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.times import as_numbers
from ..data.unpack import Array

_PARTS = ("year", "month", "day")


def calendar_columns(
    labels: Sequence[str], chosen: Sequence[int], kept: Sequence[int] | None, time_column: str | int | None
) -> list[int]:
    """Where the columns "year" and "month", and "day" if there is one, stand; nothing where they are no date.

    Parameters
    ----------
    labels : sequence of str
        Names of all columns.
    chosen : sequence of int
        Columns that are read.
    kept : sequence of int or None
        Columns that were named: what is named is a series.
    time_column : optional
        The column that was named as the time.
    """
    names = [label.strip().lower() for label in labels]
    places = [names.index(part) for part in _PARTS if names.count(part) == 1]
    parts = [names[i] for i in places]
    if time_column is not None or parts[:2] != ["year", "month"]:
        return []
    taken = set(places) & set(kept) if kept is not None else set(places) - set(chosen)  # the latter were left out
    return [] if taken else places


def calendar_dates(columns: Sequence[Sequence[str]]) -> Array | None:
    """Dates of the cells of years, months and days; None where some are none."""
    parts = [as_numbers(cells) for cells in columns]
    if not parts or any(part is None or part.dtype.kind not in "iu" for part in parts):
        return None
    numbers = [np.asarray(part) for part in parts]
    year, month = numbers[0], numbers[1]
    if (month < 1).any() or (month > 12).any() or (np.abs(year) > 100_000).any():
        return None
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]")
    if len(numbers) > 2:
        day = numbers[2]
        last = ((months + 1).astype("datetime64[D]") - days).astype(np.int64)
        if (day < 1).any() or (day > last).any():
            return None
        days = days + (day - 1)
    return np.asarray(days.astype("datetime64[us]"))
