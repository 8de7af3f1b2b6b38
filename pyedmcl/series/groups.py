"""Rows that belong together: groups, their labels, and gaps between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import MOST_STEPS, many, several, some
from ..errors import InputError, shown, warn
from .number_forms import is_missing
from .series import Series

# Rows of different groups never share a state, a target or an exclusion radius. There is one mechanism for that: a
# :class:`Layout` puts the rows of each group one behind the other, with gaps (NaN) between groups that are longer than
# any lag, horizon or radius. All that follows knows gaps, and nothing of groups.


Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row."""

    # ndarray of int64 (n_steps,). Number of the group that a row belongs to, by first appearance.
    codes: Rows
    # Label of each group.
    labels: tuple[Any, ...]
    # Columns or levels that the labels are from; empty where they were given.
    keys: tuple[str, ...] = ()

    @cached_property
    def sizes(self) -> Rows:
        """Rows of each group."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64)

    @cached_property
    def names(self) -> NDArray[Any]:
        """Labels as numbers or text; those of several columns have colons between them."""
        numbers = all(isinstance(label, (int, float)) for label in self.labels)
        return np.array(self.labels if numbers else [_text(label) for label in self.labels])

    def require(self, n_steps: int, what: str) -> None:
        """Refuse data that have another number of rows."""
        if n_steps != len(self.codes):
            raise InputError(
                f"groups has {len(self.codes):,} labels and {what} {n_steps:,} rows: one for each row is needed"
            )

    def layout(self, *, E: int, tau: int, Tp: Collection[int], exclusion_radius: int = 0) -> Layout:
        """Rows group by group with gaps between them.

        Parameters
        ----------
        E : int
            The largest embedding dimension.
        Tp : collection of int
            All prediction intervals.

        Warns
        -----
        RuntimeWarning
            Some groups have too few rows, and take no part.
        """
        lost = max((E - 1) * tau + max(0, *Tp), -min(0, *Tp))
        self._tell_short(lost + 1, f"E={E}, tau={tau}, Tp={', '.join(map(str, sorted(set(Tp))))}")
        longest = int(self.sizes.max())
        radius = min(exclusion_radius, longest - 1)  # a longer one bars no more rows of a group
        # A state whose lags are tau apart cannot step over tau rows.
        gap = max(tau if E > 1 else min(tau, longest), *(abs(lag) for lag in Tp), radius, 1)
        total = len(self.codes) + gap * (len(self.labels) - 1)
        if total > MOST_STEPS:
            raise InputError(
                f"groups: {len(self.labels):,} groups with gaps of {gap:,} rows between them are {total:,} rows; at "
                f"most {MOST_STEPS:,} are supported"
            )
        order = np.argsort(self.codes, kind="stable")
        place = np.arange(len(order)) + gap * self.codes[order]
        rows = np.full(total, -1, np.int64)
        rows[place] = order
        return Layout(self, rows, gap, radius)

    def _tell_short(self, needed: int, wanted: str) -> None:
        short = np.flatnonzero(self.sizes < needed)
        if not len(short):
            return
        named = some([f"{self.names[i]} ({many(int(self.sizes[i]), 'row')})" for i in short])
        said = f"{wanted} needs {needed:,} rows of a group, and there are fewer in {named}"
        if len(short) == len(self.labels):
            raise InputError(f"groups: {said}, so that no group is left; use a smaller E or tau, or longer groups")
        warn(f"groups: {said}: they hold no state with a target")


@dataclass(frozen=True, eq=False)
class Layout:
    """Rows of groups, one group behind the other, with gaps between them."""

    groups: Groups
    # ndarray of int64 (n,). Row of the data at each place; -1 for a gap.
    rows: Rows
    # Rows between two groups.
    gap: int
    # The radius that was asked for, as short as it may be without letting another row be a neighbour.
    exclusion_radius: int

    @cached_property
    def there(self) -> Mask:
        """Places (n,) that hold a row of the data."""
        return self.rows >= 0

    @cached_property
    def order(self) -> Rows:
        """Place (n_steps,) of each row of the data."""
        return np.flatnonzero(self.there)[np.argsort(self.rows[self.there], kind="stable")]

    @cached_property
    def code(self) -> Rows:
        """Group of each place (n,); -1 for a gap."""
        return np.where(self.there, self.groups.codes[np.maximum(self.rows, 0)], -1)

    @cached_property
    def step(self) -> Rows:
        """How many rows of its group come before each place (n,)."""
        sizes = self.groups.sizes
        begins = np.concatenate([[0], np.cumsum(sizes[:-1] + self.gap)])
        return np.where(self.there, np.arange(len(self.rows)) - begins[np.maximum(self.code, 0)], -1)

    def series(self, series: Series, what: str = "data") -> Series:
        """The series with gaps between groups; InputError where they have another number of rows."""
        self.groups.require(series.n_steps, what)
        values = np.full((len(self.rows), series.n_series), np.nan, series.values.dtype)
        values[self.there] = series.values[self.rows[self.there]]
        return Series(values, series.names, grid=series.grid)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (n_steps,) of the rows at their places; NaN in gaps."""
        out = np.full(len(self.rows), np.nan, values.dtype)
        out[self.there] = values[self.rows[self.there]]
        return out

    def mask(self, mask: Mask) -> Mask:
        """A mask of rows as one of places; False in gaps."""
        out = np.zeros(len(self.rows), bool)
        out[self.there] = mask[self.rows[self.there]]
        return out

    def segments(self, segments: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges of rows as ranges of places: a part for each group that a range reaches."""
        parts = []
        for begin, end in segments:
            inside = np.flatnonzero((self.rows >= begin) & (self.rows < end))
            ends = np.flatnonzero(np.diff(self.code[inside])) + 1
            parts += [(int(part[0]), int(part[-1]) + 1) for part in np.split(inside, ends)]
        return sorted(parts)

    def embedded(self, places: Rows, first: int) -> Mask:
        """Which of some places hold a row with at least ``first`` rows of its group before it."""
        return np.asarray(self.step[places] >= first)


@dataclass(frozen=True, eq=False)
class Entries:
    """Which predictions a result shows, and of what."""

    # Those of the predicted rows that are shown: of groups, none in the gaps between them.
    kept: Any
    # The row that is predicted; of groups, counted within the group.
    time: Rows
    # Label of the group.
    group: NDArray[Any] | None

    @classmethod
    def of(cls, rows: Rows, Tp: int, first: int, layout: Layout | None) -> Entries:
        """Entries of predictions made at ``rows``, the first of which has ``first`` rows before it."""
        if layout is None:
            return cls(slice(None), rows + Tp, None)
        kept = layout.embedded(rows, first)
        places = rows[kept]
        return cls(kept, layout.step[places] + Tp, layout.groups.names[layout.code[places]])


def _text(label: Any) -> str:
    return ":".join(map(_text, label)) if isinstance(label, tuple) else str(label)


# Where the groups of rows are told: in columns or levels of the data, or by a label for each row.


def take_groups(data: Any, groups: Any, what: str, *, required: bool = True) -> tuple[Any, Groups | None]:
    """The data without the columns or levels that tell its groups apart, and the groups.

    Parameters
    ----------
    groups : str, sequence of str, or labels (n_steps,), optional
        Columns of the data, or levels of a pandas index, whose combinations are the groups; or a label for each row.
    what : str
        How messages call the data.
    required : bool
        False for further data of the same rows (a target): columns and levels of these names are left out where there
        are any, and labels are not looked at.
    """
    if groups is None:
        return data, None
    if isinstance(groups, Groups):
        return data, groups
    names = _names_of(data)
    keys = several("groups", groups)
    if names_columns(keys, names):
        rest, columns = _without(data, keys)
        return rest, replace(groups_of(columns, len(columns), what), keys=tuple(map(str, keys)))
    if isinstance(groups, str) and required:
        raise InputError(
            f"groups={shown(groups)}: {what} has no column or level of this name"
            + (f"; there are {some(list(names))}" if names else "; give a label for each row")
        )
    if not required:
        return _flat(data), None
    labels, n_steps = groups_of(groups, None, what), _rows_of(data)
    if n_steps is not None and n_steps != len(labels.codes):
        named = all(isinstance(key, str) for key in keys)
        unknown = [key for key in keys if key not in names] if named else keys
        if len(unknown) < len(keys) == len(set(keys)):
            raise InputError(
                f"groups={shown(groups)}: {what} has no column or level {some(unknown)}; there are {some(list(names))}"
            )
        labels.require(n_steps, what)
    return _flat(data), labels


def _rows_of(data: Any) -> int | None:
    """Rows of an array or a table; None where the first axis may be another one than time."""
    shape = getattr(data, "shape", None)
    if hasattr(data, "dims") or not isinstance(shape, tuple) or len(shape) not in (1, 2):
        return None
    return shape[0] if isinstance(shape[0], int) else None


def names_columns(keys: Sequence[Any], there: Collection[Any]) -> bool:
    """Whether these are names of columns, each once; labels of rows may be equal to some names, but repeat."""
    if not keys or not all(map(hashable, keys)) or len(set(keys)) < len(keys):
        return False
    return set(keys) <= set(filter(hashable, there))  # a missing value is equal to nothing, and says no truth of it


def groups_of(groups: Any, n_steps: int | None, what: str) -> Groups:
    """The group of each row from its label; labels that are missing are one label."""
    if isinstance(groups, Groups):
        if n_steps is not None:
            groups.require(n_steps, what)
        return groups
    labels = list(groups) if isinstance(groups, Sequence) and not isinstance(groups, (str, bytes)) else None
    if hasattr(groups, "tolist"):
        listed = groups.tolist()
        labels = listed if isinstance(listed, list) else None
    elif hasattr(groups, "to_list"):
        labels = list(groups.to_list())
    wrong = labels is None or not labels or (n_steps is not None and len(labels) != n_steps)
    if labels is None or wrong or not all(map(hashable, labels)):
        rows = "the" if n_steps is None else f"the {n_steps:,}"
        raise InputError(
            f"groups={shown(groups)}: names of columns of a DataFrame, or a label for each of {rows} rows of {what}, "
            "are needed"
        )
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault(_key(label), len(seen)) for label in labels], np.int64)
    first: dict[int, Any] = {}
    for code, label in zip(codes.tolist(), labels, strict=True):
        first.setdefault(code, label)
    return Groups(codes, tuple(first[code] for code in range(len(seen))))


def _key(label: Any) -> Any:
    """Labels that are NaN are one label."""
    if isinstance(label, tuple):
        return tuple(map(_key, label))
    missing = is_missing(label) or (isinstance(label, float) and label != label)
    return ("missing",) if missing else label


def hashable(value: Any) -> bool:
    """Whether a label can be compared with others quickly."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _names_of(data: Any) -> Collection[Any]:
    """Names of what may hold labels: columns of a table, levels of an index, coordinates along the first axis."""
    if isinstance(data, Mapping):
        return list(data)
    if hasattr(data, "iloc"):
        columns = list(data.columns) if hasattr(data, "columns") else []
        return columns + [name for name in data.index.names if name is not None]
    if hasattr(data, "column_names"):
        return list(data.column_names)
    if hasattr(data, "coords") and hasattr(data, "dims"):
        along = [name for name, values in data.coords.items() if values.dims == tuple(data.dims)[:1]]
        return along + list(getattr(data, "data_vars", ()))
    if hasattr(data, "columns"):
        return list(data.columns)
    return list(getattr(getattr(data, "dtype", None), "names", None) or ())


def _without(data: Any, keys: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The data without some columns, levels or coordinates, and the labels that these hold together."""
    if hasattr(data, "iloc"):
        inner = [key for key in keys if hasattr(data, "columns") and key in data.columns]
        held = [(data[key] if key in inner else data.index.get_level_values(key)).tolist() for key in keys]
        levels = [key for key in keys if key not in inner]
        rest = data.drop(columns=inner) if inner else data
        rest = rest.reset_index(level=levels, drop=True) if levels else rest
    elif hasattr(data, "coords"):
        held = [np.asarray(data[key].values).tolist() for key in keys]
        rest = data.drop_vars(keys)
    elif hasattr(data, "drop_columns"):
        held, rest = [data[key].to_pylist() for key in keys], data.drop_columns(list(keys))
    elif isinstance(data, Mapping) or hasattr(data, "dtype"):
        held = [np.asarray(data[key]).tolist() for key in keys]
        rest = {name: data[name] for name in _names_of(data) if name not in keys}
    else:
        held, rest = [data[key].to_list() for key in keys], data.drop(list(keys))
    return rest, held[0] if len(held) == 1 else list(zip(*held, strict=True))


def _flat(data: Any) -> Any:
    """A pandas object whose index has several levels with none: the labels of its rows are known."""
    index = getattr(data, "index", None)
    return data.reset_index(drop=True) if getattr(index, "nlevels", 1) > 1 else data
