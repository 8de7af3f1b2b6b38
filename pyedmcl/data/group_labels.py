"""Where the groups of rows are told: in columns or levels of the data, or by a label for each row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError, shown
from .arguments import several
from .columns import some
from .groups import Groups
from .numeric import is_missing


def take_groups(data: Any, groups: Any, what: str, *, required: bool = True) -> tuple[Any, Groups | None]:
    """The data without the columns or levels that tell its groups apart, and the groups.

    Parameters
    ----------
    data : any container of series
    groups : str, sequence of str, or labels (n_steps,), optional
        Columns of the data, or levels of a pandas index, whose combinations are the groups; or a label for each row.
    what : str
        How messages call the data.
    required : bool
        False for further data of the same rows (a target): columns and levels of these names are left out where there
        are any, and labels are not looked at.

    Raises
    ------
    InputError
        There are no such columns, and these are no labels.
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
    """The group of each row from its label; labels that are missing are one label.

    Raises
    ------
    InputError
        These are no labels of ``n_steps`` rows.
    """
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
