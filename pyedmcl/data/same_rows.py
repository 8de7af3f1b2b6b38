"""Series that are paired row by row must be of the same rows."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from .series import Series


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
        if series.time is None or first.time is None or series.time.dtype.kind != first.time.dtype.kind:
            continue
        nowhere = (series.time != series.time) & (first.time != first.time)  # NaN and NaT, which equal nothing
        unequal = (series.time != first.time) & ~nowhere
        if unequal.any():
            row = int(np.argmax(unequal))
            raise InputError(
                f"{other} has other times than {name} (row {row}: {series.time[row]} and {first.time[row]}): bring "
                "both to the same rows, or pass the values alone (.to_numpy()) where the rows are meant to differ"
            )
