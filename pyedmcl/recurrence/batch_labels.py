"""From what users hold many series in to a list of them, and labels that tell them apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arguments import column_names, integer, several
from ..data.group_labels import groups_of, names_columns
from ..data.groups import Groups
from ..data.intake import to_array
from ..data.numeric import NotNumericError, numeric_column
from ..data.series import Series
from ..errors import InputError, ReadingWarning, shown, warn


@dataclass(frozen=True, eq=False)
class Labelled:
    """Series, and a value of each label for each of them.

    Attributes
    ----------
    series : sequence
        Of arrays (n,) or (n, d); or a single array (series, n).
    labels : dict of str to tuple
    what : str
        The argument that held them.
    """

    series: Any
    labels: dict[str, tuple[Any, ...]]
    what: str

    def __len__(self) -> int:
        return len(self.series)

    def names(self) -> Sequence[str]:
        """How messages call each series."""
        return Names(self.what, self.labels)


class Names(Sequence[str]):
    """Made when a message needs one."""

    def __init__(self, what: str, labels: Mapping[str, tuple[Any, ...]]) -> None:
        self._what, self._labels = what, labels

    def __len__(self) -> int:
        return len(next(iter(self._labels.values())))

    def __getitem__(self, index: Any) -> Any:
        if index >= len(self):
            raise IndexError(index)
        said = ", ".join(f"{name}={values[index]!r}" for name, values in self._labels.items())
        return f"{self._what} ({said})"


def labelled(data: Any, what: str, *, groups: Any = None, columns: Any = None, axis: Any = 0) -> Labelled:
    """The series that ``data`` holds.

    Parameters
    ----------
    data : list or mapping of series, array of two or three dimensions, or pandas DataFrame
    what : str
        The argument's name.
    groups : str, sequence of str, or labels (n_steps,), optional
        Of a frame: columns whose combinations tell series apart. Of a frame or an array (n_steps, n_series) also one
        label per row.
    columns : sequence of str, optional
        Of a frame: columns that hold values; all that ``groups`` does not name by default.
    axis : int
        Of an array: the axis of time.

    Raises
    ------
    InputError
        For anything else.
    """
    if hasattr(data, "groupby") and hasattr(data, "columns") and hasattr(data, "iloc"):
        return _of_frame(data, what, groups, columns)
    if columns is not None:
        raise InputError(f"columns={shown(columns)} chooses columns of a DataFrame, and {what} is none")
    data = apart(data)
    if isinstance(data, Mapping):
        _no_groups(groups, what)
        return _checked(Labelled(list(data.values()), {"series": tuple(data)}, what))
    if isinstance(data, (list, tuple)):
        _no_groups(groups, what)
        return _checked(Labelled(list(data), {"series": tuple(range(len(data)))}, what))
    return _of_array(data, what, groups, axis)


def apart(data: Any) -> Any:
    """Series that an object holds apart (cells of MATLAB, arrays or groups of pandas); another object as it is."""
    if hasattr(data, "groups") and hasattr(data, "obj"):
        return dict(iter(data))
    if isinstance(data, np.ndarray) and data.dtype.kind == "O" and data.size and isinstance(data.flat[0], np.ndarray):
        return [np.squeeze(cell) for cell in data.flat]
    if hasattr(data, "iloc") and getattr(data, "ndim", 0) == 1 and len(data) and isinstance(data.iloc[0], np.ndarray):
        return dict(zip(data.index.tolist(), data.tolist(), strict=True))
    return data


def _no_groups(groups: Any, what: str) -> None:
    if groups is not None:
        raise InputError(
            f"groups={shown(groups)}: the series of {what} are apart already; give a DataFrame, or an array and a "
            "label for each of its rows"
        )


def _checked(found: Labelled) -> Labelled:
    if not len(found):
        raise InputError(f"{found.what}: there is no series in it")
    return found


def _of_array(data: Any, what: str, groups: Any, axis: Any) -> Labelled:
    values = data.values if isinstance(data, Series) else to_array(data, what)
    if not 1 <= values.ndim <= 3:
        raise InputError(
            f"{what}: a list of series, a DataFrame, or an array of one to three dimensions is needed, not "
            f"{shown(data) if values.ndim == 0 else f'shape {values.shape}'}"
        )
    time = integer("axis", axis)
    if not -values.ndim <= time < values.ndim:
        raise InputError(f"axis={time}: {what} has {values.ndim} axes")
    try:
        values = np.moveaxis(numeric_column(values.reshape(-1)).reshape(values.shape), time, -1)
    except NotNumericError as reason:
        raise InputError(f"{what} {reason}. Only numbers can be used") from None
    shape = values.shape[:-1]
    if values.ndim == 2 and shape[0] > values.shape[-1] and not isinstance(data, Series):
        warn(
            f"{what}: there are more series ({shape[0]:,}) than values of each ({values.shape[-1]:,}). Time runs along "
            f"axis {time % values.ndim}: if it runs along the other one, say axis={1 - time % 2}",
            ReadingWarning,
        )
    places = list(itertools.product(*map(range, shape)))
    others = [at for at in range(values.ndim) if at != time % values.ndim]
    names = ["series"] if len(others) < 2 else [f"axis_{at}" for at in others]
    columns = {name: tuple(place[at] if place else 0 for place in places) for at, name in enumerate(names)}
    table = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    if groups is None:
        return _checked(Labelled(table, columns, what))
    grouping = groups_of(groups, table.shape[1], what)
    return _split(list(table), columns, grouping.codes, _by_key(grouping), what)


def _of_frame(data: Any, what: str, groups: Any, columns: Any) -> Labelled:
    keys = several("groups", groups) if groups is not None and not isinstance(groups, Groups) else []
    held = list(data.columns)
    levels = [name for name in data.index.names if name is not None]
    by_name = names_columns(keys, [*held, *levels])
    chosen = [name for name in held if not (by_name and name in keys)] if columns is None else list(
        column_names("columns", columns) or []
    )  # fmt: skip
    for name in chosen:
        if name not in held:
            raise InputError(f"columns={shown(columns)}: {what} has no column {shown(name)}; it has {shown(held)}")
    values = []
    for name in chosen:
        try:
            values.append(np.asarray(numeric_column(data[name].to_numpy()), np.float64))
        except NotNumericError as reason:
            raise InputError(
                f"{what}: column {name!r} {reason}. Only numbers can be used; choose columns=, or name it in groups="
            ) from None
    labels = {"series": tuple(chosen)}
    if groups is None:
        return _checked(Labelled(values, labels, what))
    if by_name:
        rows = [(data[key] if key in held else data.index.get_level_values(key)).tolist() for key in keys]
        grouping = groups_of(list(zip(*rows, strict=True)), len(data), what)
        by = {str(key): tuple(one[at] for one in grouping.labels) for at, key in enumerate(keys)}
    else:
        grouping = groups_of(groups, len(data), what)
        by = _by_key(grouping)
    return _split(values, labels, grouping.codes, by, what)


def _by_key(groups: Groups) -> dict[str, tuple[Any, ...]]:
    """Labels of groups by the columns that they are from."""
    if len(groups.keys) < 2:
        return {(*groups.keys, "group")[0]: groups.labels}
    return {key: tuple(label[at] for label in groups.labels) for at, key in enumerate(groups.keys)}


def _split(
    series: list[Any], labels: dict[str, tuple[Any, ...]], codes: Any, by: dict[str, tuple[Any, ...]], what: str
) -> Labelled:
    """The rows of each group as series of their own, group by group."""
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []
    times = len(series)
    out = [one[mine] for mine in rows for one in series]
    names = {name: tuple(value for value in values for _ in range(times)) for name, values in by.items()}
    for name, values in labels.items():
        names[name if name not in names else f"{name}_of_column"] = values * len(rows)
    return _checked(Labelled(out, names, what))
