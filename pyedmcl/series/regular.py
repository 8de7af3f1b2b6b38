"""Rows in time: series made regular, the same rows of two series, and windows that move along them."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import integer, several
from ..errors import InputError, PyedmclWarning, ReadingWarning, shown, warn
from .arrays import Array
from .calendar import faults, moment, remedy, steps_of, usual_step
from .groups import Groups, take_groups
from .series import Series, time_of, time_of_table
from .tables import evaluated, time_dimension, unpack

# Windows that move along series: where they begin, what they hold, and when they are.


@dataclass(frozen=True)
class Windows:
    """Rows ``start`` to ``start + width - 1`` for each start."""

    width: int
    step: int
    # Rows of the series.
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
    """``windows=(width, step)``, checked against the rows there are."""
    pair = several("windows", windows)
    if len(pair) != 2:
        raise InputError(f"windows={shown(windows)}: a pair (width, step) of numbers of rows is needed")
    width, step = (integer("windows", value, 1) for value in pair)
    if width > n_steps:
        raise InputError(
            f"windows={shown(windows)}: a window of {width:,} rows is longer than the {n_steps:,} there are"
        )
    return Windows(width, min(step, n_steps), n_steps)


def windows_along(window: int | None, step: int | None, n_steps: int) -> Windows:
    """Windows of ``window`` rows, a whole one apart by default; without ``window`` a single one, of all rows."""
    if window is None:
        if step is not None:
            raise InputError(f"step={shown(step)}: windows need window=, too")
        return Windows(n_steps, n_steps, n_steps)
    width = integer("window", window, 2, "the rows of a window", most=n_steps)
    return Windows(width, width if step is None else integer("step", step, 1, "the rows between windows"), n_steps)


# The times of the rows of whatever holds series, and rows of gaps put between them.
#
# The container stays of its kind, so that whatever reads it afterwards meets what the caller could have given.


Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Times:
    """Times of rows, whose differences count."""

    # ndarray (L,)
    values: Array
    # Names of the columns that hold them; empty for an index.
    columns: tuple[Any, ...] = ()


def may_have_times(data: Any) -> bool:
    """Whether :func:`times_in` may find times; False for whatever is read without them."""
    named = isinstance(data, (Series, Mapping)) or getattr(getattr(data, "dtype", None), "names", None) is not None
    return named or _root(data) in ("pandas", "polars", "xarray", "pyarrow")


def times_in(data: Any, what: str, kept: Any = ()) -> Times | None:
    """The times of the rows of a container; None where it has none, or where its index says that they are regular.

    ``kept`` names columns that are series whatever their names say.
    """
    if isinstance(data, Series):
        return None if data.time is None else Times(data.time)
    index = getattr(data, "index", None)
    if getattr(index, "freq", None) is not None and type(index).__name__ != "PeriodIndex":
        return None  # the frequency of dates, such as that of working days, is what the user calls regular
    table = unpack(data, what)
    labels = table.labels
    wanted = several("columns", kept)
    named = [i for i, label in enumerate(labels) if label in wanted or i in wanted]
    choice = time_of_table(table, named, what)
    if choice.moments is None:
        return None
    values = choice.moments.values if choice.moments.clock is None else choice.moments.clock
    return Times(values, tuple(labels[i] for i in choice.columns))


def with_rows(data: Any, rows: Rows, time: Array, columns: Sequence[Any] = ()) -> Any:
    """The container with other rows.

    Parameters
    ----------
    rows : ndarray of int64 (n,)
        Row of ``data`` at each place; -1 for a row of gaps.
    time : ndarray (n,)
        Time of each place.
    columns : sequence
        Columns that held the times, which the new ones replace.
    """
    root = _root(data)
    if isinstance(data, Series):
        values = data.values[np.maximum(rows, 0)]
        values[rows < 0] = np.nan
        return replace(data, values=values, time=time)
    if root == "pandas":
        index = sys.modules["pandas"].Index(time, name=columns[0] if columns else data.index.name)
        rest = data.drop(columns=list(columns)) if columns else data
        return rest.reset_index(drop=True).reindex(rows).set_axis(index, axis=0)
    if root == "xarray":
        along = time_dimension(data)
        there = sys.modules["xarray"].DataArray(rows >= 0, dims=[along])
        taken = data.isel({along: np.maximum(rows, 0)}).drop_vars(along)
        return taken.where(there).assign_coords({along: _as_before(data[along].values, time)})
    if root == "polars":
        polars = sys.modules["polars"]
        places = polars.Series([None if row < 0 else row for row in rows.tolist()], dtype=polars.Int64)
        moments = polars.Series(columns[0], time)
        return data.select(polars.all().gather(places)).drop(list(columns[1:])).with_columns(moments)
    table = unpack(data, "data")
    filled = {label: _with_gaps(table.column(i), rows) for i, label in enumerate(table.labels) if label not in columns}
    return {(columns[0] if columns else "time"): time, **filled}


def _as_before(labels: Array, time: Array) -> Array:
    """Durations as dates of the calendar of a climate model, where the labels are such."""
    if time.dtype.kind != "m" or labels.dtype.kind != "O":
        return time
    first = labels[0]
    return np.array([first + step for step in time.astype("timedelta64[us]").tolist()], object)


def _with_gaps(column: Any, rows: Rows) -> Array:
    taken = np.asarray(column)[np.maximum(rows, 0)]
    if taken.dtype.kind in "iub":
        taken = taken.astype(np.float64)
    if taken.dtype.kind in "USV":
        taken = taken.astype(object)
    taken[rows < 0] = None if taken.dtype.kind == "O" else np.array("NaT" if taken.dtype.kind in "mM" else np.nan,
                                                                    taken.dtype)  # fmt: skip
    return taken


def _root(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


# States are made of rows. Where data tell of times, and these say that rows are missing, doubled, unsorted or at uneven
# steps, a state would be of moments that do not follow each other in equal steps, and no result would show it. So that
# is refused unless the caller has said what is to be done. This is settled here for all functions, before one begins:
# what it then reads is regular, or is meant to be taken as it is. Data without times are never refused.


P = ParamSpec("P")
R = TypeVar("R")

#: Arguments that hold series; the first one in a signature says which groups there are.
_DATA = ("data", "x", "lib", "series", "y", "pred", "query", "target", "targets", "given")
_OTHER_ROWS = ("pred", "query")
#: Arguments that name rows of the first of these, but for the last one where there are other rows to predict.
_ROWS = ("lib_range", "valid_lib", "pred_range")
#: Of a table, at most this many rows may be put in for each there is: more of them mean times of another unit.
_MOST = 100
_TOLD = 4  # warnings of one call

_settled: ContextVar[bool] = ContextVar("settled", default=False)


def regular_times(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keyword ``regular`` of a public function its meaning, where it has it; see the module's description.

    Functions that it calls in turn take what they are given: it has been settled.
    """
    parameters = inspect.signature(function).parameters
    if "regular" not in parameters or function.__name__ == "check":  # which tells what is wrong with times itself
        return function
    names = tuple(parameters)
    held = [name for name in names if name in _DATA]
    apart = "series" in names or function.__name__ == "lag_profile"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = kwargs
        wish = given.get("regular")
        if _settled.get():
            return function(*args, **kwargs)
        bound = dict(zip(names, args, strict=False)) | given
        data = {name: bound[name] for name in held if bound.get(name) is not None}
        keys = bound.get("groups")
        plain = keys is None and all(type(value) is np.ndarray and value.dtype.names is None for value in data.values())
        changed = {} if plain else _Settling(wish, bound, keys, "groups" in names, apart).settle(data)
        token = _settled.set(True)
        try:
            places: Any = tuple(changed.pop(name, value) for name, value in zip(names, args, strict=False))
            return function(*places, **{**given, **changed})
        finally:
            _settled.reset(token)

    return call


@dataclass(frozen=True, eq=False)
class _Filled:
    """Rows of a table, with others between them."""

    rows: Rows  # the row of the table at each place; -1 for one that was put in
    time: Array
    owner: Rows  # the row before which it was put in, or the row itself
    columns: tuple[Any, ...] = ()  # columns that held the times

    @property
    def place(self) -> Rows:
        """Where each row of the table is now."""
        return np.flatnonzero(self.rows >= 0)


@dataclass(eq=False)
class _Settling:
    """One call, whose data are looked at."""

    wish: str | None
    # Arguments of the call.
    bound: Mapping[str, Any]
    # What was given for ``groups``.
    keys: Any
    # Whether the function has that argument.
    grouped: bool
    # Whether the function takes lists and mappings of series, each with times of its own.
    apart: bool
    # What was said already.
    told: list[str] = field(default_factory=list)

    def settle(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What arguments hold instead, where rows are put in; nothing where there is nothing to be done."""
        changed: dict[str, Any] = {}
        groups: Groups | None = None
        for number, (name, argument) in enumerate(data.items()):
            value = evaluated(argument)
            if value is not argument:
                changed[name] = value
            several = isinstance(value, Mapping) and self.apart
            if several or not may_have_times(value):
                changed |= self._of_several(value, name)
                continue
            rest, own_groups = value, None
            if self.keys is not None:
                rest, own_groups = take_groups(value, self.keys, name, required=not number)
                groups = groups if number else own_groups
            filled = self._filled(rest, name, own_groups if name in _OTHER_ROWS else own_groups or groups)
            if filled is None:
                continue
            changed[name] = with_rows(rest, filled.rows, filled.time, filled.columns)
            if not number:
                changed |= _moved(filled, self.bound, "pred" in data)
                if own_groups is not None:
                    changed["groups"] = replace(own_groups, codes=own_groups.codes[filled.owner])
        if "groups" in changed:  # the labels of rows are known: other data are without them from here on
            for name in list(data)[1:]:
                if name not in changed:
                    changed[name] = take_groups(data[name], self.keys, name, required=False)[0]
        return changed

    def _of_several(self, value: Any, name: str) -> dict[str, Any]:
        """A mapping of series, and where a function takes them a list of series: each by itself."""
        if not self.apart:  # series of one table, which have their rows in common
            return {}
        if isinstance(value, Mapping) and self.keys is None:
            items = dict(value)
        elif isinstance(value, (list, tuple)):
            items = dict(enumerate(value))
        else:
            return {}
        regular = {
            key: self._filled(one, f"{name}[{key!r}]") for key, one in items.items() if may_have_times(one)
        }
        made = {
            key: with_rows(items[key], own.rows, own.time, own.columns)
            for key, own in regular.items() if own is not None
        }  # fmt: skip
        if not made:
            return {}
        return {name: items | made if isinstance(value, Mapping) else list((items | made).values())}

    def _filled(self, data: Any, what: str, groups: Groups | None = None) -> _Filled | None:
        """The rows of regular times, where some are put in; None where data are taken as they are."""
        kept = next((self.bound[name] for name in ("columns", "state") if self.bound.get(name) is not None), ())
        found = times_in(data, what, kept)
        if found is None or (groups is not None and len(groups.codes) != len(found.values)):
            return None  # the function says what is wrong
        time = found.values
        parts = [np.arange(len(time))] if groups is None else [
            np.flatnonzero(groups.codes == number) for number in range(len(groups.labels))
        ]  # fmt: skip
        before: dict[int, Array] = {}
        for number, rows in enumerate(parts):
            steps = steps_of(time[rows])
            if steps is None or steps.even:
                continue
            said = faults(time, steps.among(rows))
            code = next(iter(said))
            start = f"{what}: " if groups is None else f"{what}: group {groups.names[number]}: "
            if self.wish == "ignore":
                self._tell(start, f"{'; '.join(said.values())}. regular='ignore' takes the rows as they come")
                return None
            if self.wish is None or code != "time-gaps":
                raise InputError(f"{start}{said[code]}. {remedy(code, self.grouped, time[rows], steps)}")
            if steps.missing.sum() > _MOST * len(time):
                raise InputError(
                    f"{start}{said[code]}: too many to put them in. The times may be of another unit; or take "
                    "regular='ignore', which takes the rows as they come"
                )
            before |= dict(zip(rows[steps.long].tolist(), steps.missing_times(time[rows]), strict=True))
        if not before:
            return None
        filled, first = replace(_put_in(time, before), columns=found.columns), min(before)
        self._tell(
            f"{what}: ",
            f"regular='insert' put in {len(filled.rows) - len(time):,} rows of NaN in {len(before):,} places, first "
            f"before row {first} ({moment(time[first])}); rows of the result are counted with them",
        )
        return filled

    def _tell(self, start: str, text: str) -> None:
        """Warn of each thing once, and of a few things only: a call may have thousands of series."""
        if text not in self.told and len(self.told) < _TOLD:
            warn(f"{start}{text}")
            self.told.append(text)


def with_missing_rows(series: Series, groups: Groups | None) -> tuple[Series, Groups | None]:
    """Series with rows of gaps where their times say that rows are missing; as they are where times say otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PyedmclWarning)
        try:
            filled = _Settling("insert", {}, None, True, False)._filled(series, "data", groups)
        except InputError:
            return series, groups
    if filled is None:
        return series, groups
    made = with_rows(series, filled.rows, filled.time)
    return made, None if groups is None else replace(groups, codes=groups.codes[filled.owner])


SETTLE = _Settling.settle.__code__  #: At which the traceback of a refusal begins.


def _put_in(time: Array, before: Mapping[int, Array]) -> _Filled:
    """The rows of a table, and those that are missing before some of them."""
    n = len(time)
    count = np.zeros(n, np.int64)
    for row, times in before.items():
        count[row] = len(times)
    owner = np.repeat(np.arange(n), count + 1)
    place = np.arange(n) + np.cumsum(count)
    rows, filled = np.full(len(owner), -1, np.int64), np.empty(len(owner), time.dtype)
    rows[place], filled[place] = np.arange(n), time
    filled[rows < 0] = np.concatenate([before[row] for row in sorted(before)])
    return _Filled(rows, filled, owner)


def _moved(found: _Filled, bound: Mapping[str, Any], another: bool) -> dict[str, Any]:
    """Ranges and masks of rows as those of the table with the rows that were put in."""
    names = [name for name in _ROWS if bound.get(name) is not None and not (another and name == "pred_range")]
    return {name: _of_more_rows(bound[name], found) for name in names}


def _of_more_rows(chosen: Any, found: _Filled) -> Any:
    """A range, several, or a mask; what is none of these, or reaches beyond the table, is left to be refused."""
    place = found.place
    try:
        values = np.asarray(chosen)
    except ValueError:
        return chosen
    if values.dtype == bool and values.shape == place.shape:
        mask = np.zeros(len(found.rows), bool)
        mask[place] = values
        return mask
    pairs = values.reshape(-1, 2) if values.dtype.kind in "iu" and values.shape[-1:] == (2,) else None
    if pairs is None or not ((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] <= len(place))).all():
        return chosen
    moved = [(int(place[begin]), int(place[end - 1]) + 1) for begin, end in pairs.tolist()]
    return moved[0] if values.ndim == 1 else moved


# Series that are paired row by row must be of the same rows.


def require_same_rows(**given: Series) -> None:
    """Refuse series that are not over the same rows as the first.

    Parameters
    ----------
    **given : Series
        By the names of their arguments.
    """
    (name, first), *others = given.items()
    for other, series in others:
        if series.n_steps != first.n_steps:
            raise InputError(
                f"{other} has {series.n_steps} steps and {name} {first.n_steps}: they must be equally long"
            )
        _require_same_times(name, first.time, other, series.time)


def require_same_times(**given: Any) -> None:
    """As :func:`require_same_rows`, of what users hold, whose lengths are looked at elsewhere."""
    (name, first), *others = given.items()
    time = time_of(first, name)
    for other, data in others:
        _require_same_times(name, time, other, time_of(data, other))


def _require_same_times(name: str, first: Array | None, other: str, time: Array | None) -> None:
    if time is None or first is None or time.dtype.kind != first.dtype.kind or len(time) != len(first):
        return
    nowhere = (time != time) & (first != first)  # NaN and NaT, which equal nothing
    unequal = (time != first) & ~nowhere
    if unequal.any():
        row = int(np.argmax(unequal))
        raise InputError(
            f"{other} has other times than {name} (row {row}: {time[row]} and {first[row]}): bring both to the same "
            "rows, or pass the values alone (.to_numpy()) where the rows are meant to differ"
        )


def tell_other_steps(x: Any, y: Any) -> None:
    """Warn where rows of two recordings are other lengths of time apart, so that no diagonal means one lag."""
    steps = [None if time is None else usual_step(time) for time in (time_of(x, "x"), time_of(y, "y"))]
    if all(steps) and steps[0] != steps[1]:
        warn(
            f"x has a row every {steps[0]}, and y every {steps[1]}: a diagonal of their recurrence plot is no lag in "
            "time. Bring both to one step first",
            ReadingWarning,
        )
