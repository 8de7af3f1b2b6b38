"""Measures of lines from their numbers by length (index 0: length 1), in PyRQA's definitions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


def ratio(a: float, b: float) -> float:
    """a / b; NaN for 0 / 0, infinity for other divisions by zero."""
    if b == 0:
        return float("nan") if a == 0 or a != a else float("inf")
    return float(a) / float(b)


def _long(frequencies: Any, least: int) -> Any:
    return np.asarray(frequencies)[least - 1 :].astype(np.int64)


def count(frequencies: Any, least: int) -> int:
    """Lines of at least a length; 0 where that is below 1."""
    return int(_long(frequencies, least).sum()) if least > 0 else 0


def points(frequencies: Any, least: int) -> int:
    """Cells on lines of at least a length; 0 where that is below 1."""
    if least < 1:
        return 0
    numbers = _long(frequencies, least)
    return int((numbers * np.arange(least, least + len(numbers))).sum())


def share(frequencies: Any, least: int) -> float:
    """Cells on long enough lines over cells on all lines."""
    return ratio(points(frequencies, least), points(frequencies, 1))


def average(frequencies: Any, least: int) -> float:
    """Mean length of long enough lines."""
    return ratio(points(frequencies, least), count(frequencies, least))


def longest(frequencies: Any) -> int:
    """Length of the longest line; 0 where there is none."""
    filled = np.flatnonzero(frequencies)
    return int(filled[-1]) + 1 if len(filled) else 0


def entropy(frequencies: Any, least: int) -> float:
    """Shannon entropy of the lengths of long enough lines, in nats; 0 where there are none."""
    numbers = _long(frequencies, least) if least > 0 else np.zeros(0, np.int64)
    shares = numbers[numbers > 0] / max(numbers.sum(), 1)
    return float(-(shares * np.log(shares)).sum()) + 0.0  # no negative zero


def persist(frequencies: Any, path: str | os.PathLike[str]) -> None:
    """Write a line ``length: number`` for each length."""
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{length}: {number:d}\n" for length, number in enumerate(np.asarray(frequencies), 1))
