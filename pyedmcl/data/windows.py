"""Windows that move along series: where they begin, what they hold, and when they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from .arguments import integer, several


@dataclass(frozen=True)
class Windows:
    """Rows ``start`` to ``start + width - 1`` for each start.

    Attributes
    ----------
    width, step : int
    n_steps : int
        Rows of the series.
    """

    width: int
    step: int
    n_steps: int

    @property
    def starts(self) -> range:
        """First row of each window; the last window is the last one that lies inside the series."""
        return range(0, self.n_steps - self.width + 1, self.step)

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, values: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
        """Windows ``begin`` to ``end - 1`` of series (n_steps, n): (width, windows * n), window by window."""
        starts = self.starts[begin:end]
        parts = [values[start : start + self.width] for start in starts]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def times(self, time: NDArray[Any] | None) -> NDArray[Any]:
        """The middle of each window: in dates or numbers as the series have them, else in rows."""
        first = np.array(self.starts)
        if time is not None and time.dtype.kind in "iufM":
            begin, end = time[first], time[first + self.width - 1]
            return np.asarray(begin + (end - begin) / 2)
        return first + (self.width - 1) / 2


def windows_of(windows: Any, n_steps: int) -> Windows:
    """``windows=(width, step)``, checked against the rows there are.

    Raises
    ------
    InputError
        It is no such pair, or a window is longer than the series.
    """
    pair = several("windows", windows)
    if len(pair) != 2:
        raise InputError(f"windows={shown(windows)}: a pair (width, step) of numbers of rows is needed")
    width, step = (integer("windows", value, 1) for value in pair)
    if width > n_steps:
        raise InputError(
            f"windows={shown(windows)}: a window of {width:,} rows is longer than the {n_steps:,} there are"
        )
    return Windows(width, min(step, n_steps), n_steps)
