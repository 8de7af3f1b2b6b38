"""Series that are paired row by row must be of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, ReadingWarning, warn
from .dates import usual_step
from .intake import Array
from .series import Series, time_of


def require_same_rows(**given: Series) -> None:
    """Refuse series that are not over the same rows as the first.

    Parameters
    ----------
    **given : Series
        By the names of their arguments.

    Raises
    ------
    InputError
        There are more or fewer rows, or both have a time of one kind (dates, numbers, texts) and it differs.
    """
    (name, first), *others = given.items()
    for other, series in others:
        if series.n_steps != first.n_steps:
            raise InputError(
                f"{other} has {series.n_steps} steps and {name} {first.n_steps}: they must be equally long"
            )
        _require_same_times(name, first.time, other, series.time)


def require_same_times(**given: Any) -> None:
    """As :func:`require_same_rows`, of what users hold, whose lengths are looked at elsewhere."""
    (name, first), *others = given.items()
    time = time_of(first, name)
    for other, data in others:
        _require_same_times(name, time, other, time_of(data, other))


def _require_same_times(name: str, first: Array | None, other: str, time: Array | None) -> None:
    if time is None or first is None or time.dtype.kind != first.dtype.kind or len(time) != len(first):
        return
    nowhere = (time != time) & (first != first)  # NaN and NaT, which equal nothing
    unequal = (time != first) & ~nowhere
    if unequal.any():
        row = int(np.argmax(unequal))
        raise InputError(
            f"{other} has other times than {name} (row {row}: {time[row]} and {first[row]}): bring both to the same "
            "rows, or pass the values alone (.to_numpy()) where the rows are meant to differ"
        )


def tell_other_steps(x: Any, y: Any) -> None:
    """Warn where rows of two recordings are other lengths of time apart, so that no diagonal means one lag."""
    steps = [None if time is None else usual_step(time) for time in (time_of(x, "x"), time_of(y, "y"))]
    if all(steps) and steps[0] != steps[1]:
        warn(
            f"x has a row every {steps[0]}, and y every {steps[1]}: a diagonal of their recurrence plot is no lag in "
            "time. Bring both to one step first",
            ReadingWarning,
        )
