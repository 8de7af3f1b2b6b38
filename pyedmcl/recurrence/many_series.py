"""Many series from what users hold them in, with labels that tell them apart; dyads, and pseudo-dyads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, ReadingWarning, shown, warn
from ..series.arrays import to_array
from ..series.groups import Groups, groups_of, take_groups
from ..series.number_forms import NotNumericError, numeric_column
from ..series.reading import tell_of_numbers
from ..series.series import Series, as_series
from .batch_problem import is_plain


@dataclass(frozen=True, eq=False)
class Labelled:
    """Series, and a value of each label for each of them."""

    # Of arrays (n,) or (n, d); or a single array (series, n).
    series: Any
    labels: dict[str, tuple[Any, ...]]
    # The argument that held them.
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
    what : str
        The argument's name.
    groups : str, sequence of str, or labels (n_steps,), optional
        Of a frame: columns whose combinations tell series apart. Of a frame or an array (n_steps, n_series) also one
        label per row.
    columns : sequence of str, optional
        Of a frame: columns that hold values; all that ``groups`` does not name by default.
    axis : int
        Of an array: the axis of time.
    """
    if hasattr(data, "columns"):
        return _of_table(data, what, groups, columns)
    if columns is not None:
        raise InputError(f"columns={shown(columns)} chooses columns of a DataFrame, and {what} is none")
    data = apart(data)
    if isinstance(data, Mapping):
        _no_groups(groups, what)
        return _told(Labelled(list(data.values()), {"series": tuple(data)}, what))
    if isinstance(data, (list, tuple)):
        _no_groups(groups, what)
        return _told(Labelled(list(data), {"series": tuple(range(len(data)))}, what))
    return _of_array(data, what, groups, axis)


def apart(data: Any) -> Any:
    """Series that an object holds apart (cells of MATLAB, arrays of pandas); another object as it is."""
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


def _coordinates(data: Any, axis: int, others: list[int], shape: tuple[int, ...]) -> dict[str, tuple[Any, ...]]:
    """Labels of the places along the other axes than time: coordinates of an array that has some, else numbers."""
    names = ["series"] if len(others) < 2 else [f"axis_{at}" for at in others]
    marks: list[Any] = list(map(range, shape or (1,)))
    coords = getattr(data, "coords", None)
    if coords is not None and others:
        dims = [str(dim) for dim in data.dims]
        if "time" in dims and dims[axis] != "time":
            raise InputError(f"axis={axis}: that is {dims[axis]!r}; give axis={dims.index('time')}, which is 'time'")
        names = [dims[at] for at in others]
        marks = [list(coords[dim].values) if dim in coords else mark for dim, mark in zip(names, marks, strict=True)]
    return dict(zip(names, zip(*itertools.product(*marks), strict=True), strict=True))


def _of_array(data: Any, what: str, groups: Any, axis: Any) -> Labelled:
    values = data.values if isinstance(data, Series) else to_array(data, what)
    if not 1 <= values.ndim <= 3:
        raise InputError(
            f"{what}: a list of series, a DataFrame, or an array of one to three dimensions is needed, not "
            f"{shown(data) if values.ndim == 0 else f'shape {values.shape}'}"
        )
    if not -values.ndim <= axis < values.ndim:
        raise InputError(f"axis={axis}: {what} has {values.ndim} axes")
    given: Any = np.moveaxis(values, axis, -1)
    try:
        values = numeric_column(given.reshape(-1)).reshape(given.shape)
    except NotNumericError as reason:
        raise InputError(
            f"{what} {reason}. Only numbers can be used; words are given as a list of series, each a list of texts"
        ) from None
    shape = values.shape[:-1]
    if values.ndim == 2 and shape[0] > values.shape[-1] and not isinstance(data, Series):
        warn(
            f"{what}: there are more series ({shape[0]:,}) than values of each ({values.shape[-1]:,}). Time runs along "
            f"axis {axis % values.ndim}: if it runs along the other one, say axis={1 - axis % 2}",
            ReadingWarning,
        )
    others = [at for at in range(values.ndim) if at != axis % values.ndim]
    columns = _coordinates(data, axis, others, shape)
    table = np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
    if not isinstance(data, Series):
        tell_of_numbers(table, given.reshape(table.shape), Names(what, columns))
    if groups is None:
        return _checked(Labelled(table, columns, what))
    grouping = groups_of(groups, table.shape[1], what)
    return _split(list(table), columns, grouping.codes, _by_key(grouping), what)


def _told(found: Labelled) -> Labelled:
    """Series of a list, and what there is to tell of them; those that are no plain arrays are read one by one later."""
    if all(map(is_plain, _checked(found).series)):
        tell_of_numbers(found.series, found.series, found.names())
    return found


def _of_table(data: Any, what: str, groups: Any, columns: Any) -> Labelled:
    rest, grouping = take_groups(data, groups, what)
    table = as_series(rest, columns=columns, what=what, bounded=False)
    values = [np.ascontiguousarray(column, np.float64) for column in table.values.T]
    labels = {"series": table.names}
    if grouping is None:
        return _checked(Labelled(values, labels, what))
    return _split(values, labels, grouping.codes, _by_key(grouping), what)


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


# Dyads: the two series of each, and those that are paired with another's.


def partnered(found: Labelled, partners: str, groups: Any) -> tuple[Labelled, Labelled]:
    """The first and the second series of each dyad, whose other labels are the same, in the order of their rows."""
    keys = [key for key in found.labels if key not in (partners, "series")]
    if not isinstance(partners, str) or partners not in found.labels or not keys:
        raise InputError(
            f"partners={shown(partners)}: name one of groups, which tells the two of a dyad apart; others tell the "
            f"dyads apart. There is groups={shown(groups)}"
        )
    dyads: dict[tuple[Any, ...], list[int]] = {}
    labels = [values for name, values in found.labels.items() if name != partners]
    for number, dyad in enumerate(zip(*labels, strict=True)):
        dyads.setdefault(dyad, []).append(number)
    for dyad, held in dyads.items():
        if len(held) != 2:
            said = ", ".join(f"{key}={value!r}" for key, value in zip(keys, dyad, strict=False))
            who = [found.labels[partners][number] for number in held]
            raise InputError(f"partners={shown(partners)}: two are needed, and the dyad {said} has {shown(who)}")
    sides = [[numbers[side] for numbers in dyads.values()] for side in (0, 1)]
    first, second = (_chosen(found, numbers) for numbers in sides)
    return first, second


def _chosen(found: Labelled, numbers: Sequence[int]) -> Labelled:
    """Some of the series, by their numbers."""
    labels = {name: tuple(values[number] for number in numbers) for name, values in found.labels.items()}
    return Labelled([found.series[number] for number in numbers], labels, found.what)


def with_pseudo(first: Labelled, second: Labelled, pseudo: int) -> tuple[Labelled, Labelled, tuple[bool, ...]]:
    """Behind the dyads, each first series with the second ones of the next dyads, of the same column; and which are."""
    columns = first.labels.get("series") if len(first.labels) > 1 else None
    columns = (0,) * len(first) if columns is None else columns
    alike: dict[Any, list[int]] = {}
    places = []  # of each dyad among those of its column
    for number, column in enumerate(columns):
        places.append(len(alike.setdefault(column, [])))
        alike[column].append(number)
    others = min(map(len, alike.values())) - 1
    if pseudo > others:
        raise InputError(f"pseudo={pseudo}: each dyad is paired with others, and there are {others:,}")
    x, y = (list(range(len(first))) for _ in range(2))
    for number, (column, place) in enumerate(zip(columns, places, strict=True)):
        held = alike[column]
        x += [number] * pseudo
        y += [held[(place + step) % len(held)] for step in range(1, pseudo + 1)]
    made = (False,) * len(first) + (True,) * (len(x) - len(first))
    return _chosen(first, x), _chosen(second, y), made
