"""The user's array as validated series: named columns of floats with time along the first axis."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ConstantSeriesWarning, InputError, warn
from .arguments import MOST_STEPS, integer
from .call import noticed
from .columns import SHOWN, counts, select, some
from .digested import digested
from .extent import bounds, extent
from .grid import Grid
from .numeric import NotNumericError, float_type, numeric_column
from .text_columns import without_words
from .times import as_dates, tell_times
from .unpack import Array, Table, of_array, unpack

_BLOCK_VALUES = 1 << 20  # values looked at together, so that a check needs a few MB whatever the input
_LARGEST = 2.0**1020  # distances and sums of some values are numbers still


@dataclass(frozen=True, eq=False)
class Series:
    """N series of L steps on the host.

    Attributes
    ----------
    values : ndarray
        Shape (L, N), C-contiguous, float32 or float64. NaN marks a gap; there are no infinite values.
    names : tuple of str
        N different names.
    time : ndarray or None
        Shape (L,): dates, numbers or text, kept for the results and never computed with.
    source : str or None
        The file they were read from.
    grid : Grid or None
        Where the series lie, if they are a field.
    units : dict or None
        Name of a series to its unit, of those whose container tells of one.

    Raises
    ------
    InputError
        If shape, dtype or the number of names does not fit. :func:`as_series` makes them fit.
    """

    values: Array
    names: tuple[str, ...]
    time: Array | None = None
    source: str | None = None
    grid: Grid | None = None
    units: dict[str, str] | None = None

    def __post_init__(self) -> None:
        fits = self.values.ndim == 2 and self.values.dtype in (np.float32, np.float64)
        if not fits or not self.values.flags.c_contiguous:
            raise InputError("values must be a C-contiguous (L, N) array of float32 or float64; use as_series(data)")
        if len(self.names) != self.n_series:
            raise InputError(f"{len(self.names)} names for {self.n_series} series; one name each is needed")
        if self.time is not None and self.time.shape != (self.n_steps,):
            raise InputError(f"time has shape {self.time.shape}, but there are {self.n_steps} rows")

    @property
    def n_steps(self) -> int:
        """Number of time steps L."""
        return int(self.values.shape[0])

    @property
    def n_series(self) -> int:
        """Number of series N."""
        return int(self.values.shape[1])

    @cached_property
    def extent(self) -> tuple[Array, Array]:
        """Least and largest value of each series; NaN where it has gaps."""
        return extent(self.values)

    @cached_property
    def constant(self) -> tuple[str, ...]:
        """Names of the series that hold one value only, or none: no correlation with them is defined."""
        low, high, _ = bounds(self.values, self.extent)
        return tuple(self.names[i] for i in np.flatnonzero(low == high))

    def digest(self) -> str:
        """SHA-256 (hex) over dtype, shape, names and the bytes of the values; time does not enter.

        Of values of more than 16 MiB, the SHA-256 of each 16 MiB stand for their bytes.
        """
        return self._digest

    def described(self) -> dict[str, Any]:
        """For the provenance of what is made of them."""
        entry = {"file": self.source, "rows": self.n_steps, "series": self.n_series, "digest": self.digest()}
        return entry | ({"units": self.units} if self.units else {})

    @cached_property
    def _digest(self) -> str:
        head = json.dumps([self.values.dtype.name, list(self.values.shape), list(self.names)])
        state = hashlib.sha256(head.encode())
        little = self.values.astype(self.values.dtype.newbyteorder("<"), copy=False)  # the same on every machine
        for part in digested(little.reshape(-1).view(np.uint8)):
            state.update(part)
        return state.hexdigest()

    def renamed(self, names: tuple[str, ...]) -> Series:
        """The same series under other names."""
        out = replace(self, names=names)
        if "extent" in self.__dict__:  # a pass over all values that need not be made again
            out.__dict__["extent"] = self.extent
        return out


def as_series(
    data: Any, *, columns: Sequence[str | int] | str | int | None = None, what: str = "data", argument: str = "columns"
) -> Series:
    """Validate ``data`` as series with time along the first axis.

    Parameters
    ----------
    data : array_like, DataFrame, DataArray or mapping
        NumPy (L,) or (L, N); pandas Series or DataFrame; polars Series or DataFrame (its one date column becomes the
        time); xarray DataArray or Dataset; an Arrow or Dask table; a mapping of names to (L,) arrays; nested lists; any
        array of any library, on the host or a device, see :mod:`pyedmcl.data.intake`. NaN, None and masked values are
        gaps. Each cell of a DataArray (time, lat, lon), a field, is a series, but for cells with nothing but gaps.
    columns : sequence of str or int, str or int, optional
        Which series to keep, in this order: names, or positions from 0 (negative ones count from the end). Where the
        container itself labels columns with integers, an integer is a label. Names with a minus before them, such as
        ``"-notes"``, are left out, and all others are kept. Columns of words that are not named are left out with a
        warning.
    what, argument : str
        How error messages call the data, and ``columns``.

    Returns
    -------
    Series
        float32 stays float32 (not copied where it is C-contiguous), float16 becomes float32, all else float64.

    Raises
    ------
    InputError
        For columns that are missing, repeated or not numeric, infinite values, and shapes that hold no series.
    """
    if isinstance(data, Series):
        series = data
        if columns is not None:
            chosen = build_series(data.values, data.names, data.time, columns=columns, what=what, argument=argument)
            kept = {name: unit for name, unit in (data.units or {}).items() if name in chosen.names}
            series = replace(chosen, source=data.source, units=kept or None)
    else:
        series = _assemble(unpack(data, what), columns, what, argument)
        if columns is None:
            tell_times(series.names, series.values, what)
    # What a thread finds is kept by a copy: the series itself may be pickled at the same time.
    noticed(what, replace(series).described, series.values.nbytes)
    return series


def time_of(data: Any, what: str = "data") -> Array | None:
    """The time of what :func:`as_series` takes, without looking at its values; None where it has none."""
    return data.time if isinstance(data, Series) else unpack(data, what).time


def name_of(data: Any, what: str = "data") -> str:
    """The name of the first series of what :func:`as_series` takes; empty where it has none of its own."""
    if isinstance(data, Series):
        return data.names[0]
    table = unpack(data, what)
    name = str(table.labels[0]) if table.labels else ""
    return "" if name == "x0" else name


def build_series(values: Array, names: Sequence[object] | None = None, time: Array | None = None, *,
                 columns: Sequence[str | int] | str | int | None = None, what: str = "data",
                 argument: str = "columns") -> Series:  # fmt: skip
    """Validate an array (L,) or (L, N) whose names and time are known; otherwise as :func:`as_series`."""
    table = of_array(np.asarray(values), what)
    if names is None:
        names = table.labels
    if len(names) != len(table.labels):
        raise InputError(f"{what}: {len(names)} names for {len(table.labels)} series; one name each is needed")
    return _assemble(Table(tuple(names), table.n_steps, table.column, table.array, time), columns, what, argument)


def _assemble(
    table: Table, columns: Sequence[str | int] | str | int | None, what: str, argument: str = "columns"
) -> Series:
    chosen = select(table.labels, columns, what, argument)
    everything = columns is None
    names = tuple(map(str, table.labels if everything else [table.labels[i] for i in chosen]))
    if len(set(names)) < len(names):
        twice = [name for name, count in counts(names).items() if count > 1]
        raise InputError(f"{what}: names must differ, but there is more than one {some(twice)}; rename these series")
    if table.n_steps == 0 or not names:
        raise InputError(f"{what}: there are no values ({table.n_steps} rows, {len(names)} series)")
    if table.array is not None and table.array.dtype.kind in "fiub":
        picked = table.array if everything else table.array.take(chosen, axis=1)
        values = np.ascontiguousarray(picked, dtype=float_type(picked.dtype))
    else:
        try:
            values = _gather(table, chosen, names, what)
        except InputError:
            numeric = without_words(table, chosen, columns, what)
            if numeric == chosen:
                raise
            chosen, names = numeric, tuple(str(table.labels[i]) for i in numeric)
            values = _gather(table, chosen, names, what)
    values = values.view()
    values.flags.writeable = False  # a view: the caller's own array stays writable
    units = {name: table.units[name] for name in names if name in table.units} if table.units else None
    series = Series(values, names, table.time, grid=table.grid if everything else None, units=units or None)
    if not (np.abs(series.extent) <= _most(values)).all():  # gaps, or worse
        _refuse_large(values, names, what)
    return series


def _gather(table: Table, chosen: list[int], names: tuple[str, ...], what: str) -> Array:
    """Columns of different kinds as one array, in groups so that the row-major writes stay near each other."""
    values: Array = np.empty((table.n_steps, len(chosen)), np.float32)
    problems: list[str] = []
    unfit: list[str] = []
    for start in range(0, len(chosen), 64):
        group: list[Array] = []
        for i, name in zip(chosen[start:start + 64], names[start:start + 64], strict=True):
            try:
                group.append(numeric_column(table.column(i)))
            except NotNumericError as reason:
                dated = as_dates([str(value) for value in table.column(i)]) is not None
                remedy = f"; if it is the time, make it the index, as with data.set_index({name!r})" if dated else ""
                problems.append(f"column {name!r} {reason}{remedy}")
                unfit.append(name)
        if problems:
            continue
        if values.dtype == np.float32 and any(column.dtype == np.float64 for column in group):
            wider = np.empty(values.shape, np.float64)  # what is not filled yet is not converted: it may be anything
            wider[:, :start] = values[:, :start]
            values = wider
        values[:, start:start + 64] = np.array(group).T
    if problems:
        more = f" (and {len(problems) - SHOWN} more columns)" if len(problems) > SHOWN else ""
        raise InputError(f"{what}: {'; '.join(problems[:SHOWN])}{more}. Only numbers can be used; "
                         f"choose series with columns=, or leave some out, as with columns={'-' + unfit[0]!r}")
    return values


def _row_blocks(values: Array) -> Iterator[tuple[int, Array]]:
    rows = max(1, _BLOCK_VALUES // values.shape[1])
    for start in range(0, values.shape[0], rows):
        yield start, values[start:start + rows]


def _most(values: Array) -> Array:
    """The largest magnitude that is taken, in the type of the values."""
    return np.array(min(_LARGEST, float(np.finfo(values.dtype).max)), values.dtype)


def _refuse_large(values: Array, names: tuple[str, ...], what: str) -> None:
    """Refuse infinite values, and finite ones whose differences may be infinite."""
    first: tuple[int, int] | None = None
    count, most = 0, _most(values)
    for start, block in _row_blocks(values):
        large = np.abs(block) > most
        n_large = int(np.count_nonzero(large))
        if n_large and first is None:
            row, series = divmod(int(np.argmax(large)), values.shape[1])
            first = (start + row, series)
        count += n_large
    if first is not None:
        more = f", and {count - 1} more values are" if count > 1 else ""
        value = values[first]
        wrong, remedy = "infinite", "mark gaps with NaN"
        if np.isfinite(value):
            wrong, remedy = f"{value:g}, beyond {_LARGEST:.3g},", "scale it down, or mark gaps with NaN"
        raise InputError(f"{what}: series {names[first[1]]!r} is {wrong} in row {first[0]} (counted from 0){more}; "
                         f"{remedy}")


def tell_constant(**given: Series) -> None:
    """Warn of series without a skill, since they never change. One without a name is called like its argument."""
    names = dict.fromkeys(
        what if series.names == ("x0",) else name for what, series in given.items() for name in series.constant
    )
    if names:
        warn(f"constant series, whose rho is NaN: {some(tuple(names))}", ConstantSeriesWarning)


def tell_state(data: Any, series: Series, what: str) -> None:
    """Warn where columns of a frame become one state, which elsewhere are series of their own."""
    if series.n_series > 1 and not isinstance(data, Series) and hasattr(data, "columns"):
        warn(
            f"{what}: its {series.n_series} columns ({some(series.names)}) are taken together as one state; for one "
            "series pass a column. state=[...] names the columns of a state, and embedded=True says that they are its "
            "coordinates, without lags"
        )


def require_rows(
    series: Series, *, E: int, tau: int, Tp: int, k: int, what: str = "data", name: str = "E"
) -> None:
    """Refuse series too short to give each embedded row k neighbours.

    Rows t with (E-1)*tau <= t whose target t+Tp lies inside the series can serve as neighbours; k+1 of them are needed,
    since a row is not its own neighbour. ``name`` is the argument that gave E, for messages.

    Raises
    ------
    InputError
        Saying how many rows are needed and how many there are.
    """
    lost = max((E - 1) * tau + max(Tp, 0), -Tp)
    needed = lost + k + 1
    if series.n_steps >= needed:
        return
    hint = "; time runs along the first axis: pass the transpose if your rows are series" if (
        series.n_series >= needed) else ""
    raise InputError(f"{what}: {name}={E}, tau={tau}, Tp={Tp} with {k} neighbours needs at least {needed} rows, "
                     f"there are {series.n_steps}; use a smaller {name} or tau, or longer series{hint}")


def check_embedding(E: object, tau: object) -> tuple[int, int]:
    """E and tau as integers of at least 1.

    Raises
    ------
    InputError
        For anything else; booleans and fractions are refused, 3.0 counts as 3.
    """
    hint = ""
    if isinstance(tau, (int, np.integer)) and tau < 0:
        hint = f" (pyEDM's tau={tau} is tau={-tau} here)"
    return (integer("E", E, 1, "the number of lagged values in an embedded point", most=MOST_STEPS),
            integer("tau", tau, 1, "the lag into the past, in steps", hint, MOST_STEPS))
