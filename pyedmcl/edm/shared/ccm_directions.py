"""From the arguments of cross mapping to its two directions: what predicts what, from which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import shown
from ...data.group_labels import take_groups
from ...data.groups import Layout
from ...data.same_rows import require_same_rows
from ...data.series import Series, as_series, check_embedding, require_rows, tell_constant, tell_state
from ...engines.ccm import States
from ...errors import InputError
from . import arguments, ranges
from .states import delay_states, embed, future, given_states

METHODS = ("simplex", "smap")
_SIZES = 12  # library sizes where the caller names none


@dataclass(frozen=True)
class Side:
    """One of the two variables: its columns, and the dimension of its embedding.

    Attributes
    ----------
    series : Series
        The first column is what is predicted of it.
    E : int
        Coordinates of a state.
    lags : int
        Lags of each column; 1 where the columns are the coordinates.
    """

    series: Series
    E: int
    lags: int

    @property
    def name(self) -> str:
        """Of what is predicted."""
        return self.series.names[0]

    @property
    def state_name(self) -> str:
        """Of what predicts: a state of several columns is not taken for its first one."""
        more = self.series.n_series - 1
        return f"{self.name} and {more} more" if more else self.name


@dataclass(frozen=True)
class Direction:
    """A library side that predicts a target side.

    Attributes
    ----------
    library, target : Side
    number : int
        0 or 1: the library's number in the random streams.
    k : int
        Neighbours.
    library_mask : ndarray of bool (n,)
        Rows that may be drawn.
    range_mask : ndarray of bool (n,) or None
        Rows that ranges and masks let be drawn; None for all.
    tau : int
    """

    library: Side
    target: Side
    number: int
    k: int
    library_mask: NDArray[np.bool_]
    range_mask: NDArray[np.bool_] | None
    tau: int

    @property
    def stream(self) -> tuple[int, int]:
        """Numbers that choose the random stream of its sub-libraries."""
        return self.number, 1 - self.number

    def n_predicted(self, Tp: int) -> int:
        """Rows whose prediction can be compared with an observation."""
        values = self.library.series.values
        present = np.isfinite(embed(values, self.library.lags, self.tau)).all(axis=1)
        return int((present & np.isfinite(future(self.target.series.values[:, 0], Tp))).sum())


def stated(x: Any, y: Any, state: Any, groups: Any) -> tuple[Any, Any, Any]:
    """x as the columns that are its state, y, and groups; all as they are where no state is asked for."""
    if state is None:
        return x, y, groups
    rest, of = take_groups(x, groups, "x")
    if of is not None:
        y = take_groups(y, groups, "y", required=False)[0]
    return as_series(rest, columns=state, what="x", argument="state"), y, of


def sides(x: Any, y: Any, E: Any, tau: Any, embedded: bool) -> tuple[Side, Side, int]:
    """Both variables, and tau, checked."""
    both = [_named(data, what) for data, what in ((x, "x"), (y, "y"))]
    if not embedded:
        tell_state(x, both[0], "x")
        tell_state(y, both[1], "y")
    require_same_rows(x=both[0], y=both[1])
    tell_constant(x=_predicted(both[0]), y=_predicted(both[1]))
    if embedded:
        if E is not None:
            raise InputError(
                f"E={shown(E)}: with embedded=True the columns of x and y are the coordinates; leave E out"
            )
        return Side(both[0], both[0].n_series, 1), Side(both[1], both[1].n_series, 1), 1
    dims = _pair(E)
    lags = [check_embedding(one, tau) for one in dims]
    states = [Side(series, lag[0] * series.n_series, lag[0]) for series, lag in zip(both, lags, strict=True)]
    return states[0], states[1], lags[0][1]


@dataclass(frozen=True, eq=False)
class Variables:
    """Both variables, and what was said of their rows.

    Attributes
    ----------
    x, y : Side
        Groups of rows with gaps between them.
    tau, exclusion_radius : int
    lib_range, valid_lib
        Of the rows as they lie now.
    layout : Layout or None
        How groups lie among the rows.
    """

    x: Side
    y: Side
    tau: int
    exclusion_radius: int
    lib_range: Any
    valid_lib: Any
    layout: Layout | None

    @property
    def links(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """(library, target) of each direction."""
        return (self.x.state_name, self.y.name), (self.y.state_name, self.x.name)

    def directions(self, Tp: int, knn: int | None) -> tuple[Direction, Direction]:
        """x predicts y, and y predicts x."""
        return both_directions(
            self.x, self.y, self.tau, Tp=Tp, knn=knn, lib_range=self.lib_range, valid_lib=self.valid_lib
        )


def variables(
    x: Any, y: Any, *, E: Any, tau: Any, Tp: Sequence[int], exclusion_radius: Any, embedded: bool = False,
    lib_range: Any = None, valid_lib: Any = None, groups: Any = None,
) -> Variables:  # fmt: skip
    """Both variables, checked, for some prediction intervals.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    radius = arguments.exclusion(exclusion_radius)
    x, of = take_groups(x, groups, "x")
    y = take_groups(y, groups, "y", required=False)[0]
    first, second, tau = sides(x, y, E, tau, embedded)
    if of is None:
        return Variables(first, second, tau, radius, lib_range, valid_lib, None)
    layout = of.layout(E=max(first.lags, second.lags), tau=tau, Tp=Tp, exclusion_radius=radius)
    laid = [replace(side, series=layout.series(side.series, name)) for side, name in ((first, "x"), (second, "y"))]
    return Variables(
        laid[0], laid[1], tau, layout.exclusion_radius, ranges.in_layout("lib_range", lib_range, layout),
        ranges.in_layout("valid_lib", valid_lib, layout), layout,
    )  # fmt: skip


def _predicted(series: Series) -> Series:
    """What is predicted of several columns."""
    return series if series.n_series == 1 else series.part(0)


def _named(data: Any, what: str) -> Series:
    """A table as series; an array's only column is called as the argument is."""
    series = as_series(data, what=what)
    if series.n_series == 1 and getattr(data, "name", None) is None and not isinstance(data, Series):
        named = getattr(data, "columns", None) is not None or isinstance(data, dict)
        if not named:
            return Series(series.values, (what,), series.time)
    return series


def _pair(E: Any) -> tuple[Any, Any]:
    if E is None:
        raise InputError("E=None: the number of lags is needed, an integer of at least 1, or one each for x and y")
    values = arguments.several("E", E)
    if len(values) == 1:
        values *= 2
    if len(values) != 2:
        raise InputError(f"E={shown(E)}: one integer, or one for x and one for y, is needed")
    return values[0], values[1]


def both_directions(
    x: Side, y: Side, tau: int, *, Tp: int, knn: int | None, lib_range: Any, valid_lib: Any
) -> tuple[Direction, Direction]:
    """x predicts y, and y predicts x: rows that may be drawn, and how many neighbours are looked for."""

    def direction(library: Side, target: Side, number: int) -> Direction:
        n = library.series.n_steps
        require_rows(library.series, E=library.lags, tau=tau, Tp=Tp, k=1, what="x" if number == 0 else "y")
        range_mask = ranges.library_mask(n, E=library.lags, tau=tau, Tp=Tp, lib_range=lib_range, valid_lib=valid_lib)
        library_mask = np.isfinite(embed(library.series.values, library.lags, tau)).all(axis=1)
        library_mask &= ranges.finite_target(target.series.values[:, 0], Tp)
        if range_mask is not None:
            library_mask &= range_mask
        return Direction(library, target, number, knn or library.E + 1, library_mask, range_mask, tau)

    return direction(x, y, 0), direction(y, x, 1)


def states_of(direction: Direction, *, Tp: int, exclusion_radius: int, dtype: str) -> States:
    """States of a direction's library."""
    side, tau = direction.library, direction.tau
    options: dict[str, Any] = {"k": direction.k, "Tp": Tp, "exclusion_radius": exclusion_radius, "dtype": dtype}
    if side.series.n_series == 1:
        return delay_states(side.series.values, side.lags, tau, **options)
    return given_states(embed(side.series.values, side.lags, tau), **options)


def library_sizes(lib_sizes: Any, directions: Sequence[Direction], name: str = "lib_sizes") -> tuple[int, ...]:
    """Library sizes, checked against the rows there are; a dozen up to the largest where none are given.

    Raises
    ------
    InputError
        A size is too small for the neighbours, larger than the library, or there twice.
    """
    least = max(direction.k for direction in directions) + 1
    rows = [int(direction.library_mask.sum()) for direction in directions]
    most = min(rows)
    place = int(np.argmin(rows))
    what = f"the {directions[place].library.name!r} library has {most:,} rows with all coordinates and a target"
    if most < least:
        raise InputError(
            f"{what}, which is too few for {least - 1} neighbours of each row; use a smaller E or knn, or longer series"
        )
    if lib_sizes is None:
        return tuple(np.unique(np.linspace(max(least, most // 50), most, _SIZES).astype(int)).tolist())
    requested = arguments.several(name, lib_sizes)
    if not requested:
        raise InputError(f"{name}={shown(lib_sizes)}: at least one library size is needed")
    sizes = [arguments.integer(name, size) for size in requested]
    for size in sizes:
        if size < least:
            raise InputError(f"{name}: {size} rows are too few for {least - 1} neighbours; at least {least} are needed")
        if size > most:
            raise InputError(f"{name}: {size:,} rows cannot be drawn: {what}")
    if len(set(sizes)) != len(sizes):
        twice = sorted({size for size in sizes if sizes.count(size) > 1})
        raise InputError(f"{name}: {', '.join(map(str, twice))} are there twice; their samples would be the same")
    return tuple(sizes)
