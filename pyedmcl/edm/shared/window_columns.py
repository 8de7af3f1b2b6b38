"""What tables and pictures of results within windows have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PAIRS_SHOWN = 8  # in a picture


def spans(windows: Any, each: int) -> dict[str, NDArray[Any]]:
    """First row of each window, one past the last, and its middle, in ``each`` rows of a table."""
    columns = {"start": windows.starts, "end": windows.starts + windows.width, "time": windows.time}
    return {name: np.repeat(values, each) for name, values in columns.items()}
