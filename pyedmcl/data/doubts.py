"""What makes series doubtful at a glance: codes of gaps among values, and names that are times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from .call import takes
from .columns import many
from .date_forms import months_of_words
from .intake import Array
from .times import is_time_name

_FAR = 3  # spans of all other values between them and a code
_NINES = {9.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.9, 999.9, 9999.9, 99.99, 999.99, 32767.0, 32768.0,
          2147483647.0, 2147483648.0}  # fmt: skip
_FILLED = 1e19  # values of this size and more are what formats fill gaps with
_LEAST_WIDE = 6
_NUMBERED = re.compile(r"(.*?)[ _.]?(\d+(?:\.\d+)?)$")
_TIME_POINTS = frozenset("ct zt h hr hour d day w wk week m month yr year time".split())  # noqa: SIM905


def gap_codes(
    values: Array, names: Sequence[str], ends: tuple[Array, Array] | None = None
) -> Iterator[tuple[str, str]]:
    """Names of series that hold a number such as -9999 for gaps, far from all other values, and what it is.

    Parameters
    ----------
    values : ndarray (n_steps, n_series)
    names : sequence of str
    ends : (ndarray, ndarray), optional
        Least and largest value of each series, NaN where it has gaps, if they are known.
    """
    low, high = ends if ends is not None else (np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
    unknown = np.flatnonzero(np.isnan(low))
    if len(unknown) and ends is not None:
        low, high = low.copy(), high.copy()
        for i in unknown.tolist():
            low[i], high[i] = np.fmin.reduce(values[:, i]), np.fmax.reduce(values[:, i])
    for end in (low, high):
        likely: list[int] = np.flatnonzero(is_code(end)).tolist()
        for i in likely:
            column = values[:, i]
            different, counts = np.unique(column[np.isfinite(column)], return_counts=True)
            if len(different) < 3:
                continue
            code, others = float(end[i]), different[1:] if end is low else different[:-1]
            if abs(code) >= _FILLED and float(np.abs(others).max()) >= _FILLED:
                continue  # all are so large
            far = float(np.abs(others - code).min()) > _FAR * float(np.ptp(others))
            if far or (code <= -99 and float(others.min()) >= 0):
                cure = f"say missing={code:g}" if takes("missing") else "make them NaN"
                yield names[i], (
                    f"{code:g} occurs {many(int(counts[0 if end is low else -1]), 'time')} beside values of "
                    f"{others[0]:g} to {others[-1]:g}, and stands for a gap in many files. If it does, {cure}"
                )


def is_code(values: Array) -> Array:
    """Which numbers are codes of gaps in many files, such as 999.9 or 1e20."""
    size = np.abs(values.astype(np.float64))
    return np.isin(np.round(size, 4), list(_NINES)) | (size >= _FILLED)


def wide_names(names: Sequence[str]) -> str:
    """What names of series are, where they are points in time: a table whose rows may be the series; else empty."""
    if len(names) < _LEAST_WIDE:
        return ""
    shown = f"the columns {names[0]!r}, {names[1]!r}, ... {names[-1]!r} are named like points in time"
    if months_of_words(names) is not None:
        return shown
    matches = [_NUMBERED.match(name.strip()) for name in names]
    if any(match is None for match in matches):
        return ""
    parts = [(match[1].strip().lower(), float(match[2])) for match in matches if match is not None]
    prefixes = {prefix for prefix, _ in parts}
    numbers = np.array([number for _, number in parts])
    if len(prefixes) != 1 or not (np.diff(numbers) > 0).all():
        return ""
    prefix = prefixes.pop()
    years = prefix in ("", "x", "y", "yr", "year") and numbers.min() >= 1500 and numbers.max() <= 2200
    return shown if years or prefix in _TIME_POINTS or (prefix and is_time_name(prefix) and len(prefix) > 1) else ""
