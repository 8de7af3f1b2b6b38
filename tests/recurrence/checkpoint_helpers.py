"""Series and calls of recurrence analysis that tests stop and continue."""

from __future__ import annotations

import numpy as np


def series(n, seed=0):
    x = np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3
    x[n // 3] = np.nan
    return x


CASES = {
    "one": ({"m": 2, "radius": [0.7, 1.5], "theiler": 3}, False),
    "cross": ({"radius": 0.9, "theiler": 2, "convention": "recurrenceanalysis"}, True),
    "neighbours": ({"radius": 7, "threshold": "neighbours"}, False),
}


def counts_of(found):
    return [result.counts for result in found] if len(getattr(found, "labels", ())) else [found.counts]
