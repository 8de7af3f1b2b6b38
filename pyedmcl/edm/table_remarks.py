"""Remarks on a table whose columns or rows are not what they seem: copies, codes of gaps, labels, rows that recur.

Each of these gives high skill, or none, whatever drives what, and no later step could tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..data.columns import some
from ..data.condition import near_one
from ..data.doubts import gap_codes, is_code
from ..data.series import Series
from ..data.text_columns import in_stretches
from .shared.scores import pearson
from .surrogates.surrogate_choice import bridged, line, wanders

Doubles = NDArray[np.float64]

_FEW_ROWS, _ROWS_PER_E = 50, 30
_LEAST = 20  # rows without which nothing is looked for
_SAME = 0.9999  # correlation of a series and its copy in another unit, rounded
_LIKELY = 0.99  # the same with gaps filled, which is looked at first
_SHIFT = 6  # rows by which copies may be apart; the lags of causal_network
_TOGETHER = 256  # series that are compared with all others at a time
_STRETCH = 5  # rows one after the other that occur again
_PASSES = 8  # of the mean: four times there and back
_BLINKS = (0.0, -1.0)  # what eye trackers write where there is no eye
_STRAY, _STRAYS = 20, 3  # spans of all other values between them and a stray one; how many are looked for at an end


@dataclass(frozen=True)
class Remark:
    """Something worth knowing of a table.

    Attributes
    ----------
    code : str
    series : str
        Name of the series; empty for what concerns all.
    text : str

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(2 * np.pi * np.arange(480) / 12) + np.random.default_rng(1).random(480)
    >>> remark = pyedmcl.check({"a": x}).remarks[0]
    >>> remark.code, remark.series
    ('season', 'a')
    >>> remark.text
    'a cycle of 12 rows explains 86% of its variance'
    """

    code: str
    series: str
    text: str

    def __str__(self) -> str:
        return f"{self.series}: {self.text}" if self.series else self.text


def remarks_on_table(series: Series) -> list[Remark]:
    """What makes columns or rows of a table doubtful as such.

    Parameters
    ----------
    series : Series
        NaN for gaps.
    """
    if series.n_steps < _LEAST:
        return []
    columns = [near_one(column.astype(np.float64))[0] for column in series.values.T]
    remarks = [*remarks_on_values(series), *_copies(series.names, columns), *_repeats(series.values)]
    remarked = {remark.series for remark in remarks}
    return remarks + list(_few_returns({
        name: column for name, column in zip(series.names, columns, strict=True) if name not in remarked
    }))  # fmt: skip


def remarks_on_values(series: Series) -> list[Remark]:
    """Values that are none: codes of gaps, headers of devices, labels of recordings."""
    return [*_codes(series), *_strays(series), *_labels(series)] if series.n_steps >= _LEAST else []


def remarks_on_size(series: Series, E_max: int) -> list[Remark]:
    """Whether there are rows enough for states of ``E_max`` dimensions, and not more series than rows."""
    n, remarks = series.n_steps, []
    if n < _FEW_ROWS or n < _ROWS_PER_E * E_max:
        remarks.append(Remark(
            "few-rows", "",
            f"there are {n:,} rows: states must come near each other many times, for which {_ROWS_PER_E} rows for each "
            f"dimension are few; take E_max={max(n // _ROWS_PER_E, 1)} or less",
        ))  # fmt: skip
    if series.n_series > n:
        remarks.append(Remark(
            "on-its-side", "",
            f"there are more series ({series.n_series:,}) than rows ({n:,}): if each row is a series, transpose it",
        ))  # fmt: skip
    return remarks


def _codes(series: Series) -> Iterator[Remark]:
    """Numbers such as -9999 that stand for gaps, far from all values; and -1 or 0 where an eye was shut."""
    for name, text in gap_codes(series.values, series.names, series.extent):
        yield Remark("gap-code", name, text)
    for name, column in zip(series.names, series.values.T, strict=True):
        different, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        if len(different) < 3:
            continue
        for end, others in ((0, different[1:]), (-1, different[:-1])):
            code = float(different[end])
            away = float(np.abs(others - code).min())
            span = float(np.ptp(others))
            if code in _BLINKS and counts[end] > 1 and span > 0 and away > span:
                yield Remark(
                    "gap-code", name,
                    f"{code:g} occurs {counts[end]:,} times, far from all other values ({others[0]:g} to "
                    f"{others[-1]:g}), and stands for a blink or a gap in files of eye trackers and counters: leave "
                    "such cells empty, or make them NaN",
                )  # fmt: skip


def _strays(series: Series) -> Iterator[Remark]:
    """Values so far from all others that they are none, as the time and the rate above the data of some devices."""
    for name, column in zip(series.names, series.values.T, strict=True):
        different, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        strays: list[float] = []
        while len(different) > 3 and len(strays) < 2 * _STRAYS:
            away, ends = np.diff(different), ((0, different[1:]), (-1, different[:-1]))
            far = [end for end, others in ends if counts[end] == 1 and away[end] > _STRAY * np.ptp(others)]
            if not far:
                break
            strays.append(float(different[far[0]]))
            different, counts = np.delete(different, far[0]), np.delete(counts, far[0])
        strays = [value for value in strays if not is_code(np.array(value))]
        if strays:
            rows = [int(np.flatnonzero(column == np.asarray(value, column.dtype))[0]) for value in strays]
            held = ", ".join(f"row {row} holds {value:g}" for row, value in sorted(zip(rows, strays, strict=True)))
            yield Remark(
                "stray", name,
                f"{held}, far from all other values ({different[0]:g} to {different[-1]:g}): a time or a rate that a "
                "device writes above its data, or a fault. Leave such rows out, or make them NaN",
            )  # fmt: skip


def _labels(series: Series) -> Iterator[Remark]:
    """Whole numbers each of which stands in one stretch of rows."""
    for name, column in zip(series.names, series.values.T, strict=True):
        if in_stretches(column):
            yield Remark(
                "labels", name,
                f"each of its {len(np.unique(column)):,} values stands in one stretch of rows, as labels of recordings "
                f"and parts of a date do: tell recordings apart by groups={name!r}, or leave it out",
            )  # fmt: skip


def _copies(names: tuple[str, ...], columns: list[Doubles]) -> Iterator[Remark]:
    """Series that are the same but for their unit, their level, and a shift of some rows."""
    scaled = np.stack([_unit(bridged(column)) for column in columns])
    n = scaled.shape[1]
    group, shifted = np.arange(len(names)), np.zeros(len(names), bool)
    for lag in range(_SHIFT + 1):
        early, late = (np.stack([_unit(row) for row in part]) for part in (scaled[:, : n - lag], scaled[:, lag:]))
        for begin in range(0, len(scaled), _TOGETHER):
            near = np.argwhere(np.abs(early[begin : begin + _TOGETHER] @ late.T) > _LIKELY)
            for place, other in near.tolist():
                one = begin + place
                if group[one] == group[other] or not _same(columns[one][: n - lag], columns[other][lag:]):
                    continue
                together = (group == group[one]) | (group == group[other])
                shifted[together] = lag > 0 or shifted[together].any()
                group[together] = group[together].min()
    for of, count in zip(*np.unique(group, return_counts=True), strict=True):
        if count > 1:
            yield Remark(
                "copies", "",
                f"{some([names[i] for i in np.flatnonzero(group == of)])} are one and the same series, "
                f"{'some rows apart' if shifted[of] else 'perhaps in other units'}: each seems to drive the others, "
                "and none shows what drives it. Keep one of them",
            )  # fmt: skip


def _same(one: Doubles, other: Doubles) -> bool:
    return abs(float(pearson(one, other))) > _SAME


def _unit(values: Doubles) -> Doubles:
    """Values of mean 0 and length 1; 0 where all are equal."""
    rest = np.nan_to_num(values) - np.nan_to_num(values).mean()
    length = float(np.sqrt(rest @ rest))
    return rest / length if length > 1e-12 else np.zeros_like(rest)


def _repeats(values: NDArray[np.floating]) -> Iterator[Remark]:
    """Stretches of rows that are equal to earlier ones in all columns."""
    first: dict[bytes, int] = {}
    rows = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values) + 0.0)
    back = np.array([place - first.setdefault(row.tobytes(), place) for place, row in enumerate(rows)])
    back[np.isnan(values).all(axis=1)] = 0
    edges = [0, *(np.flatnonzero(np.diff(back)) + 1).tolist(), len(back)]
    stretches = [(begin, end) for begin, end in pairwise(edges) if back[begin] > 0 and end - begin >= _STRETCH]
    if stretches:
        (begin, end), total = stretches[0], sum(end - begin for begin, end in stretches)
        more = f", and so do {total - (end - begin):,} others" if len(stretches) > 1 else ""
        yield Remark(
            "repeats", "",
            f"rows {begin:,} to {end - 1:,} are equal to rows {begin - back[begin]:,} to {end - 1 - back[begin]:,} in "
            f"all columns{more}: their states have neighbours at distance 0, so that skill is too high. Leave them out "
            "unless they were measured twice",
        )  # fmt: skip


def _few_returns(columns: dict[str, Doubles]) -> Iterator[Remark]:
    """Series that hardly ever come back to where they were."""
    few = []
    for name, values in columns.items():
        present = np.isfinite(values)
        if not present.any() or float(np.ptp(values[present])) == 0:
            continue
        filled = bridged(values)
        rest = filled - line(filled, present)
        passes = int(np.count_nonzero(np.diff(rest > rest.mean())))
        if passes < _PASSES and not wanders(filled):
            few.append(name)
    if few:
        yield Remark(
            "few-returns", "",
            f"{some(few)} {'passes its' if len(few) == 1 else 'pass their'} mean fewer than {_PASSES} times: states "
            "come back so seldom that whatever is as slow seems linked to them. Longer series are needed",
        )  # fmt: skip
