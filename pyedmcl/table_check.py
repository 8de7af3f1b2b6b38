"""Check a table of series before anything is computed from it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import some
from .errors import ReadingWarning, pandas_for
from .jobs.blocks import origin
from .jobs.runner import public_function
from .launch.progress import Progress, report_progress
from .results.result import Result
from .series.groups import Groups, take_groups
from .series.reading import gap_codes, is_code
from .series.regular import with_missing_rows
from .series.scaling import near_one
from .series.series import FEW_ROWS, Series, as_series
from .series.tables import in_stretches
from .states.arguments import pearson, remarks_on_times_of, said_once
from .surrogates.components import Components, Line, common_line
from .surrogates.surrogate import bridged, choose, explained, length, line, steps_words, sure_change, wanders

# Remarks on a table whose columns or rows are not what they seem: copies, codes of gaps, labels, rows that recur.
#
# Each of these gives high skill, or none, whatever drives what, and no later step could tell.


Doubles = NDArray[np.float64]

_ROWS_PER_E = 30
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
    if n < FEW_ROWS or n < _ROWS_PER_E * E_max:
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


# What a table says about itself before anything is computed from it.


#: Words of sentences on reading that have remarks of their own here.
_REMARKED = ("stands for a gap", "there are more series")
_MANY_TIES = 0.5  # of the values occur more than once ...
_LEAST_SHARE = 0.01  # of the variance that a cycle explains; less is the wake of a few large values
_FEW_VALUES = 0.1  # ... and there are so few different ones
_FOR_ALL = ("constant", "gaps", "ties")  # remarks on a series that do not depend on what it is for


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """Remarks on a table, the most serious first.

    Attributes
    ----------
    remarks : tuple of Remark
    n_steps, n_series : int
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> noise = np.random.default_rng(1).random((480, 2))
    >>> season = np.sin(2 * np.pi * np.arange(480) / 12)
    >>> found = pyedmcl.check({"a": season + noise[:, 0], "b": noise[:, 1]})
    >>> print(found)
    a: a cycle of 12 rows explains 86% of its variance
    >>> len(found.remarks), found.n_steps, found.n_series
    (1, 480, 2)
    """

    answer_columns = ("code", "series", "text")

    remarks: tuple[Remark, ...]
    n_steps: int
    n_series: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "\n".join(map(str, self.remarks)) or "nothing to remark"

    def to_frame(self) -> Any:
        """A pandas DataFrame: code, series, text."""
        rows = [(remark.code, remark.series, remark.text) for remark in self.remarks]
        return pandas_for("to_frame()").DataFrame(rows, columns=["code", "series", "text"])


@public_function
def check(
    data: Any,
    *,
    E_max: int = 10,
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    purpose: str = "maps",
    regular: str = "insert",
    progress: Progress | None = None,
) -> CheckResult:
    """Look at a table before anything is computed from it: times, gaps, length, seasons, trends, ties, constants.

    It also tells of copies of a series, of rows that occur again, of numbers that stand for gaps (-9999), of columns
    that are labels, and of series that hardly ever return to where they were.

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps. Times are those of the container: the index of a frame, the coordinate
        of an array, the time column of a file.
    E_max : int
        Dimension for which there should be rows enough.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Each is looked at by itself; what
        several have is said once.
    purpose : {"maps", "recurrence"}
        What the table is for. Recurrence is about rows that come back: seasons, trends, copies and rows that are equal
        to others are not told then.
    regular : {"insert", "ignore"}
        Where times say that rows are missing, seasons and trends are looked for with rows of gaps in their places, or
        in the rows as they come.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.

    Returns
    -------
    CheckResult

    Raises
    ------
    InputError
        Data cannot be used.

    See Also
    --------
    surrogate : what to do about seasons and trends.
    embed_dimension : whether E is at the end of its range.

    Notes
    -----
    Cost: some hundred passes over each series, on the host.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> rng = np.random.default_rng(1)
    >>> season = np.sin(2 * np.pi * np.arange(480) / 12)
    >>> found = pyedmcl.check({"a": season + rng.random(480), "b": 2 * season + rng.random(480)})
    >>> [remark.code for remark in found.remarks]
    ['season', 'season', 'common-season']
    """
    maps = purpose == "maps"
    rest, of = take_groups(data, groups, "data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)  # remarks here
        series = as_series(rest, columns=columns)
    if of is not None:
        of.require(series.n_steps, "data")
    remarks = [Remark(code, "", text) for code, text in remarks_on_times_of(series.time, of)]
    inferred = [] if series.reading is None or isinstance(data, Series) else series.reading.inferred
    remarks += [
        Remark("reading", "", text) for text in inferred if not any(said in text for said in _REMARKED)
    ]
    on_table = remarks_on_table(series) if maps else [*map(_for_recurrence, remarks_on_values(series))]
    remarks += (remarks_on_size(series, E_max) + _on_groups(of, E_max) if maps else []) + on_table
    labels = {remark.series for remark in on_table if remark.code == "labels"}
    as_given = series
    if regular == "insert":  # a season is counted in rows of equal steps
        series, of = with_missing_rows(series, of)
    seasons: dict[str, tuple[Line, ...]] = {}
    for done, (name, column) in enumerate(zip(series.names, series.values.T, strict=True), 1):
        of_series, lines = ([], ()) if name in labels else _on_series_of(name, column.astype(np.float64), of)
        if series is not as_given:  # rows that were put in are no gaps of the table
            gap_free = not np.isnan(as_given.values[:, done - 1]).any()
            of_series = [remark for remark in of_series if remark.code != "gaps" or not gap_free]
        if not maps:
            of_series, lines = [_for_recurrence(one) for one in of_series if one.code in _FOR_ALL], ()
        remarks += of_series
        seasons[name] = lines
        report_progress(done, series.n_series, "series")
    remarks += _common(seasons, series.n_steps)
    return CheckResult(tuple(remarks), series.n_steps, series.n_series, origin())


def _for_recurrence(remark: Remark) -> Remark:
    """A remark in words of recurrence."""
    text = remark.text
    if remark.code == "constant":
        text = "there is nothing but one value or gaps: all its rows recur with each other"
    if remark.code == "ties":
        text = text.partition(", and which")[0] + ", and recur whatever the radius is"
    if remark.code == "labels":
        text = text.partition(": tell")[0] + ": quantify each recording by itself, as 'rqa_batch' does by groups"
    return Remark(remark.code, remark.series, text)


def _common(seasons: dict[str, tuple[Line, ...]], n: int) -> Iterator[Remark]:
    """A remark on each season that several series share."""
    while (line := common_line(list(seasons.values()), n)) is not None:
        names = [name for name, own in seasons.items() if any(line.shares(other, n) for other in own)]
        yield Remark(
            "common-season", "",
            f"{len(names)} series share a cycle of {length(line)} rows ({some(names)}): they "
            "predict each other without any link. Test with surrogates that keep it (surrogate='auto' or "
            "surrogate='seasonal')",
        )  # fmt: skip
        seasons = {
            name: tuple(other for other in own if not line.shares(other, n)) for name, own in seasons.items()
        }


def _on_groups(groups: Groups | None, E_max: int) -> list[Remark]:
    """A remark on groups that are too short for a state and what follows it."""
    short = [] if groups is None else [
        str(name) for name, size in zip(groups.names.tolist(), groups.sizes, strict=True) if size <= E_max
    ]  # fmt: skip
    if groups is None or not short:
        return []
    return [Remark(
        "short-groups", "",
        f"{len(short):,} of {len(groups.labels):,} groups have no more than {E_max} rows ({some(short)}): "
        f"they hold no state of E_max={E_max} and a row after it",
    )]  # fmt: skip


def _on_series_of(
    name: str, values: NDArray[np.float64], groups: Groups | None
) -> tuple[list[Remark], tuple[Line, ...]]:
    """Remarks on one series, in each group by itself, and its seasons."""
    if groups is None:
        return _on_series(name, near_one(values)[0])
    labels = groups.names.tolist()
    parts = [_on_series(name, near_one(values[groups.codes == number])[0]) for number in range(len(labels))]
    texts = said_once(
        (remark.code, label, remark.text) for label, (own, _) in zip(labels, parts, strict=True) for remark in own
    )
    lines = {line.period: line for _, own in parts for line in own}
    return [Remark(code, name, text) for code, text in texts.items()], tuple(lines.values())


def _on_series(name: str, values: NDArray[np.float64]) -> tuple[list[Remark], tuple[Line, ...]]:
    """Remarks on one series, and its seasons."""
    finite = np.isfinite(values)
    present = values[finite]
    if not present.size or float(np.ptp(present)) == 0:
        return [Remark("constant", name, "there is nothing but one value or gaps, which no skill can be had of")], ()
    remarks = []
    if not finite.all():
        gaps = int((~finite).sum())
        words = f"{gaps:,} of {len(values):,} rows {'is a gap' if gaps == 1 else 'are gaps'}"
        remarks.append(Remark("gaps", name, words))
    different, counts = np.unique(present, return_counts=True)
    if float(counts[counts > 1].sum()) > _MANY_TIES * present.size and different.size < _FEW_VALUES * present.size:
        remarks.append(Remark(
            "ties", name,
            f"there are {different.size:,} different values in {present.size:,} rows: many states are equal, and which "
            "of them are nearest is decided by their rows",
        ))  # fmt: skip
    choice = choose(values)
    if choice.steps:
        remarks.append(Remark(
            "wanders", name,
            "it does not return to a mean: two such series seem to be linked by chance. Take differences, or "
            "surrogates that wander too (surrogate='auto')",
        ))  # fmt: skip
    sure = sure_change(values, choice)
    for part, code, words in (
        (Components(slow=sure.slow), "trend", "a straight line" if sure.slow == 1 else "slow change"),
        (Components(jumps=sure.jumps), "step", f"a {steps_words(sure.jumps)}"),
    ):
        if part:
            share = _share(values, choice.level, part, finite)
            remarks.append(Remark(code, name, f"{words} explains {share:.0%} of its variance"))
    lines = [line for line in choice.level.lines if _share(values, choice.level, line, finite) >= _LEAST_SHARE]
    remarks += [
        Remark("season", name, f"a cycle of {length(line)} rows explains {share:.0%} of its variance{drift}")
        for line in lines
        if (share := _share(values, choice.level, line, finite)) is not None
        for drift in (", while its height and phase drift" if line.drift else "",)
    ]  # fmt: skip
    return remarks, tuple(lines)


def _share(values: NDArray[np.float64], level: Components, part: Components | Line, there: NDArray[np.bool_]) -> float:
    """Share of the variance that a part of a level explains, of what the slower parts leave."""
    alone = Components(lines=(part,)) if isinstance(part, Line) else part
    rest = values
    if isinstance(part, Line) and (level.slow or level.jumps):
        rest = values - replace(level, lines=()).fitted(values, there)
    return explained(rest, alone.fitted(rest, there), there)
