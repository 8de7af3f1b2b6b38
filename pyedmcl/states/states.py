"""From the arguments of a call to states: coordinates, targets, both directions of cross mapping, rows of regressions.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import some
from ..engines.ccm import States
from ..errors import InputError, shown, warn
from ..search.tables import coordinate_problem, delay_problem, lay_out_in_itself, lay_out_states
from ..series.groups import Entries, Layout, take_groups
from ..series.regular import require_same_rows
from ..series.scaling import complete_rows, condition
from ..series.series import Series, as_series, check_embedding, require_rows, tell_constant, tell_state
from . import arguments
from . import rows as ranges
from .arguments import PredictionOptions
from .rows import library_of, sides_of


def embed(values: NDArray[Any], E: int, tau: int) -> NDArray[Any]:
    """Delay coordinates (n, E * columns) of each column in turn, newest first; NaN before row (E-1) tau."""
    n, columns = values.shape
    out = np.full((n, E * columns), np.nan, values.dtype)
    for c in range(columns):
        for e in range(E):
            out[e * tau :, c * E + e] = values[: max(n - e * tau, 0), c]
    return out


def tell_stateless(series: Series, E: int, tau: int) -> None:
    """Warn of series whose gaps leave no row with all its lags: as libraries they predict nothing."""
    gappy = np.flatnonzero(np.isnan(series.extent[0]))
    if not gappy.size:
        return
    present = np.isfinite(series.values[:, gappy])
    rows = series.n_steps - (E - 1) * tau
    lost = E * (series.n_steps - present.sum(axis=0)) >= rows  # a gap takes E rows at most
    empty = [
        series.names[gappy[i]] for i in np.flatnonzero(lost)
        if present[:, i].any() and not np.all([present[e * tau : e * tau + rows, i] for e in range(E)], axis=0).any()
    ]  # fmt: skip
    if empty:
        warn(f"series whose gaps leave no row with all {E} lags at tau={tau}, so that rho of their states is NaN: "
             f"{some(empty)}")  # fmt: skip


def delay_states(
    values: NDArray[Any], E: int, tau: int, *, k: int, Tp: int, exclusion_radius: int, dtype: str
) -> States:
    """States of each column (n_steps, n_series) by itself."""
    n = len(values)
    ready = condition(values, dtype).values
    search = delay_problem(E, tau, k, Tp, exclusion_radius, n, n, dtype)
    library, query = lay_out_in_itself(ready, search)
    present = np.isfinite(values)
    embedded = np.zeros((values.shape[1], n), bool)
    if n > (E - 1) * tau:
        embedded[:, (E - 1) * tau :] = True
        for e in range(E):
            embedded[:, (E - 1) * tau :] &= present[(E - 1) * tau - e * tau : n - e * tau].T
    return States(search, library, query, embedded)


def given_states(
    coordinates: NDArray[Any], *, k: int, Tp: int, exclusion_radius: int, dtype: str
) -> States:
    """One series of states with these coordinates (n_steps, n_coordinates)."""
    n = len(coordinates)
    ready = condition_together(coordinates, dtype)
    search = coordinate_problem(coordinates.shape[1], k, Tp, exclusion_radius, n, n, dtype)
    library = lay_out_states(ready, search, n, search.library_end)
    query = library if search.library_end == n else lay_out_states(ready, search, n, n)
    return States(search, library, query, np.isfinite(coordinates).all(axis=1)[None])


def condition_together(coordinates: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Coordinates as the kernels may have them: each may be shifted, all are scaled by one power of two.

    Distances between states then are those of the data, up to that power.
    """
    wide = coordinates.astype(np.float64)
    if np.dtype(dtype).itemsize < coordinates.dtype.itemsize:
        present = np.isfinite(wide)
        middle = [np.median(column[ok]) if ok.any() else 0.0 for column, ok in zip(wide.T, present.T, strict=True)]
        with np.errstate(over="ignore", under="ignore"):
            exact = np.array_equal(wide.astype(dtype), wide, equal_nan=True)
        wide = wide if exact else wide - middle
    out: NDArray[Any] = condition(wide.reshape(-1, 1), dtype).values.reshape(coordinates.shape)
    return out


def standardised(values: NDArray[Any]) -> NDArray[np.float64]:
    """Series (n_steps,) or (n_steps, n_series) less their means, by their standard deviations; gaps stay, and what does
    not vary is 0."""
    wide = values.astype(np.float64)
    centred = wide - np.nanmean(wide, axis=0)
    spread = np.nanstd(centred, axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def future(target: NDArray[Any], Tp: int) -> NDArray[np.float64]:
    """``target[..., t + Tp]`` for each row t (..., n_steps), NaN where there is none."""
    n = target.shape[-1]
    out = np.full(target.shape, np.nan)
    first, end = max(-Tp, 0), min(n - Tp, n)
    if first < end:
        out[..., first:end] = target[..., first + Tp : end + Tp]
    return out


# Targets of a map that are other series than its libraries.


def targets_of(data: Any, libraries: Series, targets: Any) -> Series:
    """The targets that a user gave: columns of ``data``, or series of their own over the same rows.

    Series without names are called y0, y1, and so on, so that they are told from libraries. A target that has the name
    of a library is that series.

    Parameters
    ----------
    data : array_like
        As the user gave it, with columns that are no library.
    """
    if _names_columns(targets):
        return as_series(data, columns=targets)
    series = as_series(targets, what="targets")
    require_same_rows(data=libraries, targets=series)
    if series.names == tuple(f"x{i}" for i in range(series.n_series)):
        series = series.renamed(tuple(f"y{i}" for i in range(series.n_series)))
    place = {name: i for i, name in enumerate(libraries.names)}
    other = [
        name for column, name in enumerate(series.names) if name in place and not np.array_equal(
            series.values[:, column], libraries.values[:, place[name]], equal_nan=True
        )
    ]  # fmt: skip
    if other:
        raise InputError(f"targets: {some(other)} are names of libraries that hold other values; rename them")
    return series


def _names_columns(targets: Any) -> bool:
    """Whether targets are names or positions of columns."""
    items = targets if isinstance(targets, (list, tuple)) else [targets]
    return bool(items) and all(
        isinstance(item, str) or (isinstance(item, numbers.Integral) and not isinstance(item, (bool, np.bool_)))
        for item in items
    )


# From the arguments of cross mapping to its two directions: what predicts what, from which rows.


_SIZES = 12  # library sizes where the caller names none


@dataclass(frozen=True)
class Side:
    """One of the two variables: its columns, and the dimension of its embedding."""

    # The first column is what is predicted of it.
    series: Series
    # Coordinates of a state.
    E: int
    # Lags of each column; 1 where the columns are the coordinates.
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
    """A library side that predicts a target side."""

    library: Side
    target: Side
    # 0 or 1: the library's number in the random streams.
    number: int
    # Neighbours.
    k: int
    # ndarray of bool (n,). Rows that may be drawn.
    library_mask: NDArray[np.bool_]
    # ndarray of bool (n,) or None. Rows that ranges and masks let be drawn; None for all.
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
    """Both variables, and what was said of their rows."""

    # x, y: Groups of rows with gaps between them.
    x: Side
    y: Side
    tau: int
    exclusion_radius: int
    # lib_range, valid_lib: Of the rows as they lie now.
    lib_range: Any
    valid_lib: Any
    # How groups lie among the rows.
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
    """Both variables, checked, for some prediction intervals."""
    x, of = take_groups(x, groups, "x")
    y = take_groups(y, groups, "y", required=False)[0]
    first, second, tau = sides(x, y, E, tau, embedded)
    if of is None:
        return Variables(first, second, tau, exclusion_radius, lib_range, valid_lib, None)
    layout = of.layout(E=max(first.lags, second.lags), tau=tau, Tp=Tp, exclusion_radius=exclusion_radius)
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
        range_mask = ranges.mask_of_library(n, E=library.lags, tau=tau, Tp=Tp, lib_range=lib_range, valid_lib=valid_lib)
        library_mask = np.isfinite(embed(library.series.values, library.lags, tau)).all(axis=1)
        library_mask &= ranges.finite_target(target.series.values[:, 0], Tp)
        if range_mask is not None:
            library_mask &= range_mask
        if len(library.series.constant) == library.series.n_series:  # no state tells of a target, so it has no skill
            target = replace(target, series=replace(target.series, values=target.series.values * 0))
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
    """Library sizes, checked against the rows there are; a dozen up to the largest where none are given."""
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


# From the arguments of S-map to plain arrays: coordinates of library and query rows, targets, what is observed.


Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_COORDINATES = 64


@dataclass(frozen=True)
class Regression:
    """A library, and rows to fit around."""

    # library, target: ndarray (m, D), (m,). Coordinates of the library rows and what each leads to; a NaN target: only
    # counted as a neighbour.
    library: Doubles
    target: Doubles
    # ndarray of int (m,)
    library_rows: Integers
    # ndarray (n, D). Coordinates of the predicted rows; NaN where one touches a gap.
    points: Doubles
    # ndarray of int (n,)
    rows: Integers
    # ndarray (n,). Value at row + Tp, NaN where there is none.
    observed: Doubles
    # -1 where library and predicted rows are those of different series.
    exclusion_radius: int
    # Of the D coordinates.
    names: tuple[str, ...]
    E: int
    tau: int
    Tp: int
    # How groups lie among the predicted rows.
    layout: Layout | None = None
    # Of each column.
    lags: int = 1

    def entries(self) -> Entries:
        """Which predictions a result shows."""
        return Entries.of(self.rows, self.Tp, (self.lags - 1) * self.tau, self.layout)


def embed_columns(values: NDArray[Any], E: int, tau: int) -> Doubles:
    """Delay coordinates (n, E * columns) of each column in turn; NaN before row (E-1) tau.

    Of a single column they are a view of the series with NaN before it.
    """
    n, columns = values.shape
    if columns == 1:
        front = (E - 1) * tau
        padded = np.full(front + n, np.nan)
        padded[front:] = values[:, 0]
        return np.ndarray((n, E), np.float64, padded, 8 * front, (8, -8 * tau))
    out = np.full((n, E * columns), np.nan)
    for c in range(columns):
        for e in range(E):
            out[e * tau :, c * E + e] = values[: max(n - e * tau, 0), c]
    return out


def coordinate_names(names: tuple[str, ...], E: int, tau: int, embedded: bool) -> tuple[str, ...]:
    """``x(t-0)``, ``x(t-tau)``, ...; the columns' own names where they are the coordinates."""
    if embedded:
        return names
    return tuple(f"{name}(t-{e * tau})" for name in names for e in range(E))


def prepare(
    lib: Any, pred: Any, target: Any, options: PredictionOptions, *, count_gaps: bool = False
) -> Regression:
    """Check the arguments of :func:`pyedmcl.smap` that say which rows are which.

    With ``count_gaps`` library rows whose target is a gap count as neighbours, without entering a fit, as in pyEDM.
    """
    series, groups = library_of(lib, options)
    E, tau, embedded = options.E, options.tau, options.embedded
    if embedded:
        if E is not None and arguments.integer("E", E, 1) != series.n_series:
            raise InputError(f"E={E}: with embedded=True, E is the number of columns of lib, {series.n_series}")
        E, tau = series.n_series, 1
    elif E is None:
        raise InputError("E=None: the number of lagged values is needed, an integer of at least 1; only with "
                         "embedded=True it is the number of columns")  # fmt: skip
    else:
        E, tau = check_embedding(E, tau)
    lags = 1 if embedded else E
    Tp = options.Tp
    if series.n_series * lags > MOST_COORDINATES:
        raise InputError(
            f"lib: {series.n_series} columns with E={lags} are {series.n_series * lags} coordinates; at most "
            f"{MOST_COORDINATES} are supported"
        )
    sides = sides_of(series, groups, pred, target, options, lags=lags, tau=tau, Tp=Tp)
    target_values, coordinates = sides.target_values, embed_columns(sides.library.values, lags, tau)
    has_target = ranges.finite_target(target_values, Tp)
    library_mask = np.zeros(len(coordinates), bool)
    library_mask[(lags - 1) * tau :] = complete_rows(coordinates[(lags - 1) * tau :])
    if count_gaps:  # inside the series all the same
        library_mask &= ranges.finite_target(np.zeros(len(target_values)), Tp)
    else:
        library_mask &= has_target
    if sides.library_mask is not None:
        library_mask &= sides.library_mask
    library_rows = np.flatnonzero(library_mask)
    if not has_target[library_rows].any():
        raise InputError(
            f"lib: no row has all its {series.n_series * lags} coordinates and a target {Tp} steps on; too many gaps, "
            "or lib_range and valid_lib leave only rows with gaps"
        )
    points = coordinates if pred is None else embed_columns(sides.asked.values, lags, tau)
    return Regression(
        library=_rows(coordinates, library_rows),
        target=target_values[library_rows + Tp],
        library_rows=library_rows,
        points=_rows(points, sides.rows),
        rows=sides.rows,
        observed=sides.observed,
        exclusion_radius=sides.exclusion_radius,
        names=coordinate_names(series.names, lags, tau, embedded),
        E=E,
        tau=tau,
        Tp=Tp,
        layout=sides.layout,
        lags=lags,
    )


def _rows(table: Doubles, rows: Integers) -> Doubles:
    """Ascending rows of a table, without a copy where they lie together."""
    if rows[-1] - rows[0] + 1 == len(rows):
        return table[rows[0] : rows[-1] + 1]
    return table[rows]


#: Localisations that are tried where the caller names none.
THETAS = (0.01, 0.1, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


def check_thetas(theta: Any) -> Doubles:
    """One theta, or several of them, as an array (n_thetas,)."""
    values = arguments.several("theta", theta)
    return np.array([arguments.theta_of_fit("theta", value) for value in values or [theta]])
