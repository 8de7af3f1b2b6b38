"""Series, with and without a gap, and windows along them."""

from __future__ import annotations

import numpy as np
from series_helpers import driven

X, Y = driven(200)
TABLE = np.column_stack([X, Y, X * Y])
GAPS = TABLE.copy()
GAPS[90, 1] = np.nan
SLICES = [slice(start, start + 120) for start in (0, 35, 70)]
