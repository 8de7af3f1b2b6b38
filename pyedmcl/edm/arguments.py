"""Checks of what the functions of empirical dynamic modelling are given; see also :mod:`pyedmcl.data.arguments`."""

from __future__ import annotations

import numbers
import secrets
from typing import Any

import numpy as np

from ..data.arguments import folder, integer, precision, reporter
from ..data.series import Series, as_series
from ..device.session import open_device
from ..errors import InputError
from ..jobs.runner import LocalRunner
from ..neighbors.choose import SEARCHES, SearchRequest

__all__ = [
    "MOST_NEIGHBOURS", "count", "folder", "integer", "neighbor_search", "one_series", "precision", "reporter",
    "runner_on", "stream",
]  # fmt: skip

# The lists of a work-item lie in its private memory, and a CPU runtime's threads have small stacks.
MOST_NEIGHBOURS = 1024
_INT_LIMIT = 2**31 - 1024
_MOST_SEED = 2**63 - 1


def count(name: str, value: object) -> int | None:
    """A number of neighbours, or None for E + 1."""
    if value is None:
        return None
    k = integer(name, value, 1)
    if k > MOST_NEIGHBOURS:
        raise InputError(f"{name}={value!r}: at most {MOST_NEIGHBOURS:,} neighbours are kept for each row")
    return k


def stream(seed: Any) -> int:
    """``seed`` as an int from 0 to 2^63 - 1; a random one for None."""
    if seed is None:
        return secrets.randbits(63)
    number = integer("seed", seed, 0)
    if number > _MOST_SEED:
        raise InputError(f"seed={seed!r}: an integer from 0 to {_MOST_SEED} is needed")
    return number


def runner_on(device: str | None, dtype: str) -> LocalRunner:
    """What runs jobs on a device, which must compute in ``dtype``."""
    executor = open_device(device)
    precision(dtype, executor.info.fp64, executor.info.name)
    return LocalRunner([executor])


def one_series(data: Any, what: str) -> Series:
    """A single series; a table of several is refused with its shape."""
    series = as_series(data, what=what)
    if series.n_series != 1:
        raise InputError(
            f"{what}: one series is needed (1-D), got {series.n_series} series of {series.n_steps} steps; pass a column"
        )
    if series.n_steps > _INT_LIMIT:
        raise InputError(f"{what}: {series.n_steps:,} steps; at most {_INT_LIMIT:,} are supported")
    return series


def neighbor_search(neighbors: Any, recall: Any) -> SearchRequest:
    """The search that ``neighbors`` and ``recall`` ask for."""
    if not isinstance(neighbors, str) or neighbors not in SEARCHES:
        raise InputError(f"neighbors={neighbors!r}: one of {', '.join(map(repr, SEARCHES))} is needed")
    real = isinstance(recall, numbers.Real) and not isinstance(recall, (bool, np.bool_))
    if not real or not 0 < float(recall) <= 1:
        raise InputError(f"recall={recall!r}: a share above 0 and at most 1 is needed")
    return SearchRequest(neighbors, float(recall))
