"""Library rows and predicted rows: ranges, masks, groups and folds as plain arrays."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown, warn
from ..series.arrays import to_array
from ..series.groups import Groups, Layout, take_groups
from ..series.series import Series, as_series, require_rows, tell_scales, tell_state
from . import arguments
from .arguments import PredictionOptions

# Which library rows a target's gaps rule out, and how many are left where these are fewest.


def library_mask_of(target: NDArray[Any], Tp: int) -> NDArray[np.bool_] | None:
    """Library rows j (n,) whose ``target[j + Tp]`` is no gap; None if no target is a gap.

    Rows whose target lies outside the series are in the mask: the search leaves them out by itself.

    Parameters
    ----------
    target : ndarray (n,)
    """
    n, missing = len(target), np.isnan(target)
    if not missing.any():
        return None
    mask = np.ones(n, bool)
    if Tp >= 0:
        mask[: max(n - Tp, 0)] = ~missing[Tp:]
    else:
        mask[-Tp:] = ~missing[: max(n + Tp, 0)]
    return mask


def fewest(library_mask: NDArray[np.bool_], asked: NDArray[np.bool_], radius: int) -> int:
    """Library rows farther than ``radius`` from an asked one, where these are fewest; 0 where none is asked."""
    if not asked.any():
        return 0
    n = len(library_mask)
    upto = np.concatenate([[0], np.cumsum(library_mask)])
    rows = np.flatnonzero(asked)
    near = upto[np.minimum(rows + radius + 1, n)] - upto[np.maximum(rows - radius, 0)]
    return int(upto[-1] - near.max())


@functools.lru_cache(maxsize=64)
def fewest_of_all(n: int, radius: int) -> int:
    """:func:`fewest` where all of n rows are in the library, and are asked."""
    rows = np.ones(n, bool)
    return fewest(rows, rows, radius)


# Which rows are library and which are predicted: ranges and masks of the caller as plain arrays.
#
# A range is a segment of its own: the lags of its library rows and their targets must lie inside it, so that a library
# made of several pieces (replicates, years) never joins the end of one to the start of the next. A mask has no ends:
# its rows are taken as they are.


Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


def segments(name: str, given: Any, n: int) -> list[tuple[int, int]]:
    """A (begin, end) pair or a sequence of them, 0-based and half-open, as ascending segments within [0, n)."""
    forms = f"a pair (begin, end) with 0 <= begin < end <= {n}, a list of such pairs, or a mask of {n} booleans"
    try:
        array = np.asarray(given)
    except Exception:  # pairs of different lengths, or whatever the object itself raises
        raise InputError(f"{name}={shown(given)}: {forms} is needed") from None
    if array.ndim == 1 and array.shape == (2,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0 or array.dtype == bool:
        raise InputError(f"{name}={shown(given)}: {forms} is needed")
    ranges = sorted(tuple(arguments.integer(name, end) for end in pair) for pair in array.tolist())
    for begin, end in ranges:
        if not 0 <= begin < end <= n:
            raise InputError(f"{name}: the range ({begin}, {end}) cannot be used; {forms} is needed")
    for before, after in itertools.pairwise(ranges):
        if after[0] < before[1]:
            raise InputError(f"{name}: the ranges {before} and {after} overlap; make them one or part them")
    return [(begin, end) for begin, end in ranges]


def mask(name: str, given: Any, n: int) -> Mask | None:
    """``given`` as a mask (n,) if it is one of booleans; None if it is something else."""
    try:
        array = to_array(given, name)
    except InputError:  # as in segments, which refuses it
        return None
    if array.dtype != bool:
        return None
    if array.shape != (n,):
        raise InputError(f"{name} is a mask of shape {array.shape}; one boolean for each of the {n} rows is needed")
    mask: Mask = array
    return mask


def in_layout(name: str, given: Any, layout: Layout | None) -> Any:
    """Ranges or a mask of rows of the data as ranges or a mask of the places of a layout."""
    if given is None or layout is None:
        return given
    n = len(layout.groups.codes)
    as_mask = mask(name, given, n)
    return layout.segments(segments(name, given, n)) if as_mask is None else layout.mask(as_mask)


def mask_of_library(
    n: int, *, E: int, tau: int, Tp: int, lib_range: Any = None, valid_lib: Any = None, name: str = "lib_range"
) -> Mask | None:
    """Rows that may be neighbours as far as ranges and masks say; None if all those inside the series may.

    Gaps and the ends of the series itself are the search's affair.

    Parameters
    ----------
    n : int
        Rows of the library series.
    E, tau, Tp : int
        Delay embedding (E = 1 for coordinates that are given as they are) and prediction interval: row j is in a
        segment if j - (E-1) tau, j and j + Tp are.
    lib_range : (int, int), sequence of (int, int), or mask (n,), optional
        Segments, 0-based and half-open; or a mask, whose rows are taken as they are.
    valid_lib : mask (n,), optional
        Rows that may be used, in addition (conditional embedding).
    name : str
        How messages call ``lib_range``.

    Returns
    -------
    ndarray of bool (n,) or None
    """
    if lib_range is None and valid_lib is None:
        return None
    library_mask = np.ones(n, bool)
    if lib_range is not None:
        as_mask = mask(name, lib_range, n)
        if as_mask is not None:
            library_mask = as_mask.copy()
            if not library_mask.any():
                raise InputError(f"{name} is a mask of {n} rows, none of which is True; at least one row is needed")
        else:
            library_mask[:] = False
            for begin, end in segments(name, lib_range, n):
                first = max(begin + (E - 1) * tau, begin - Tp)
                library_mask[first : max(min(end, end - Tp), first)] = True
            if not library_mask.any():
                raise InputError(
                    f"{name}={shown(lib_range)} holds no library row for E={E}, tau={tau}, Tp={Tp}: a segment needs "
                    f"more than {max((E - 1) * tau + max(Tp, 0), -Tp)} rows"
                )
    if valid_lib is not None:
        as_mask = mask("valid_lib", valid_lib, n)
        if as_mask is None:
            raise InputError(
                f"valid_lib holds no booleans: {shown(valid_lib)}; a mask with one for each of the {n} rows is needed"
            )
        library_mask &= as_mask
        if not library_mask.any():
            raise InputError("valid_lib leaves no library row; at least one of the rows in the library must be True")
    return library_mask


def prediction_rows(n: int, first: int, pred_range: Any = None, name: str = "pred_range") -> Rows:
    """Rows t that are predicted, ascending: those of ``pred_range`` from ``first`` = (E-1) tau on.

    Lags of a predicted row may lie before its range: they are observed.

    Parameters
    ----------
    n : int
        Rows of the predicted series.
    first : int
        First row that has an embedding.
    pred_range : (int, int), sequence of (int, int), or mask (n,), optional
        All rows by default.
    name : str
        How messages call ``pred_range``.
    """
    if pred_range is None and first < n:
        return np.arange(first, n)
    chosen = np.ones(n, bool)
    if pred_range is not None:
        as_mask = mask(name, pred_range, n)
        if as_mask is not None:
            chosen = as_mask.copy()
        else:
            chosen[:] = False
            for begin, end in segments(name, pred_range, n):
                chosen[begin:end] = True
    chosen[:first] = False
    rows: Rows = np.flatnonzero(chosen)
    if not len(rows):
        raise InputError(
            f"{name}={shown(pred_range)}: none of its rows is embedded; the first that is is row {first}"
        )
    return rows


def finite_target(target: NDArray[Any], Tp: int) -> Mask:
    """Rows j whose ``target[j + Tp]`` exists and is no gap: (n,)."""
    n = len(target)
    ok = np.zeros(n, bool)
    present = np.isfinite(target)
    if Tp >= 0:
        ok[: max(n - Tp, 0)] = present[Tp:]
    else:
        ok[-Tp:] = present[: max(n + Tp, 0)]
    return ok


def observed_at(values: NDArray[Any], rows: Rows, Tp: int) -> NDArray[np.float64]:
    """``values[t + Tp]`` for each row t, NaN outside the series."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # they follow each other
        n, begin, end = len(values), int(rows[0]) + Tp, int(rows[-1]) + Tp + 1
        out = np.full(len(rows), np.nan)
        first, last = max(begin, 0), min(end, n)
        if first < last:
            out[first - begin : last - begin] = values[first:last]
        return out
    at = rows + Tp
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.where(inside, at, 0)], np.nan).astype(np.float64)


Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sides:
    """The library, what is predicted of it, and the rows that are predicted."""

    # library, asked: ``asked`` holds the predicted rows; it is ``library`` where a series predicts itself.
    library: Series
    asked: Series
    # ndarray (n,). Values of the target at the library's rows.
    target_values: Doubles
    # ndarray of bool (n,) or None. Library rows that ranges and masks leave.
    library_mask: Mask | None
    # Rows of ``asked`` that are predicted.
    rows: Rows
    # Value at each row + Tp, NaN where there is none.
    observed: Doubles
    # -1 where library and asked are different series.
    exclusion_radius: int
    # How groups lie among the rows of ``asked``. Then some of ``rows`` lie in gaps: skill is that of all of them, which
    # has the bits of data with these gaps, and results show the others.
    layout: Layout | None


def library_of(lib: Any, options: PredictionOptions) -> tuple[Series, Groups | None]:
    """The library's series, and its groups."""
    rest, groups = take_groups(lib, options.groups, "lib")
    series = as_series(rest, what="lib", columns=options.state, argument="state")
    if not options.embedded and options.state is None:
        tell_state(rest, series, "lib")
    tell_scales(series, "lib")
    return series, groups


def sides_of(
    series: Series, groups: Groups | None, pred: Any, target: Any, options: PredictionOptions, *, lags: int, tau: int,
    Tp: int, quiet: bool = False,
) -> Sides:  # fmt: skip
    """Both sides of a prediction, from the library's series and what else was given."""
    radius = options.exclusion_radius
    require_rows(series, E=lags, tau=tau, Tp=Tp, k=1, what="lib")
    if groups is not None and target is not None:
        target = take_groups(target, options.groups, "target", required=False)[0]
    target_values = arguments.target_values_of(series, target, quiet=quiet)
    first, layout = (lags - 1) * tau, None
    if groups is not None:
        layout = groups.layout(E=lags, tau=tau, Tp=[Tp], exclusion_radius=radius)
        series, target_values = layout.series(series, "lib"), layout.column(target_values)
        radius = layout.exclusion_radius
    n = series.n_steps
    library_mask = mask_of_library(
        n, E=lags, tau=tau, Tp=Tp, lib_range=in_layout("lib_range", options.lib_range, layout),
        valid_lib=in_layout("valid_lib", options.valid_lib, layout),
    )  # fmt: skip
    query, seen = series, target_values
    if pred is not None:
        query, layout = _another(pred, series, options, lags, tau, Tp)
        # Nobody has observed another target beside the new series.
        seen = query.values[:, 0].astype(np.float64) if target is None else np.full(query.n_steps, np.nan)
    chosen = in_layout("pred_range", options.pred_range, layout)
    rows = prediction_rows(query.n_steps, first, chosen)
    if layout is not None and not layout.embedded(rows, first).any():
        raise InputError(f"pred_range={arguments.shown(options.pred_range)}: none of its rows is embedded")
    return Sides(
        series, query, target_values, library_mask, rows, observed_at(seen, rows, Tp),
        radius if pred is None else -1, layout,
    )  # fmt: skip


def _another(
    pred: Any, series: Series, options: PredictionOptions, lags: int, tau: int, Tp: int
) -> tuple[Series, Layout | None]:
    """Another series whose rows are predicted; in groups where it has the columns that tell those of the library."""
    rest, groups = pred, None
    if options.groups is not None:
        rest, groups = take_groups(pred, options.groups, "pred", required=False)
    table = isinstance(rest, Mapping) or hasattr(rest, "columns")
    query = as_series(rest, what="pred", columns=options.state if table else None, argument="state")
    if query.n_series != series.n_series:
        raise InputError(f"pred has {query.n_series} columns and lib {series.n_series}: they must be the same")
    if query.n_steps <= (lags - 1) * tau:
        raise InputError(
            f"pred: E={lags}, tau={tau} needs at least {(lags - 1) * tau + 1} rows, there are {query.n_steps}"
        )
    if groups is None:
        return query, None
    layout = groups.layout(E=lags, tau=tau, Tp=[Tp])
    return layout.series(query, "pred"), layout


# Which rows of a map are library and which are predicted: ranges of the caller, or blocked folds.


RowIndices = NDArray[np.integer[Any]]
Ranges = tuple[tuple[int, int], ...]
_LISTED = 100  # ranges that a manifest lists
_LEAST = 3  # rows of a correlation


@dataclass(frozen=True, eq=False)
class MapRows:
    """Rows of the library, and rows that are predicted; None for all."""

    # tuple of (int, int), ndarray of bool (n_steps,), or None. Ranges, or a mask whose rows are taken as they are.
    lib_range: Ranges | Mask | None = None
    # tuple of (int, int), or None. Ranges, ascending and apart from each other.
    pred_range: Ranges | None = None
    # tuple of (int, int), or None. Where recordings begin and end that stand one below the other; None for a single
    # one.
    within: Ranges | None = None

    def library_mask(self, n: int, E: int, tau: int, Tp: int) -> Mask | None:
        """Rows of ``n`` that may be neighbours in dimension ``E``; None for all that have a state and a target."""
        return mask_of_library(n, E=E, tau=tau, Tp=Tp, lib_range=self.lib_range, name="lib_range")

    def predicted(self, n: int) -> tuple[int, int]:
        """First of ``n`` rows that is predicted, and one past the last."""
        return (0, n) if self.pred_range is None else (self.pred_range[0][0], self.pred_range[-1][1])

    def predicted_mask(self, n: int) -> Mask:
        """Which of ``n`` rows are predicted."""
        chosen = np.zeros(n, bool)
        for begin, end in self.pred_range or ((0, n),):
            chosen[begin:end] = True
        return chosen

    def holes(self, n: int) -> NDArray[np.int32] | None:
        """Rows between the first and the last predicted one that are not predicted; None where there is none."""
        if self.pred_range is None or len(self.pred_range) == 1:
            return None
        chosen, (begin, end) = self.predicted_mask(n), self.predicted(n)
        return (np.flatnonzero(~chosen[begin:end]) + begin).astype(np.int32)

    def arguments(self) -> dict[str, Any]:
        """What identifies the rows; plain numbers and text, nothing where all are taken."""
        named = {} if self.lib_range is None else {"lib_range": _plain(self.lib_range)}
        if self.pred_range is None:
            return named
        ranges = self.pred_range
        return named | {"pred_range": list(ranges[0]) if len(ranges) == 1 else _plain(ranges) if len(ranges) < _LISTED
                        else digest_of(ranges)}  # fmt: skip

    def require(self, n: int, dims: Sequence[int], tau: int, Tp: int) -> None:
        """Refuse rows that leave some dimension without library or predictions."""
        for E in sorted(set(dims)):
            self.library_mask(n, E, tau, Tp)
            if self.pred_range is not None and not self._any_state((E - 1) * tau, n):
                raise InputError(
                    f"pred_range={shown(list(self.pred_range))}: none of its rows has a state with E={E}, tau={tau}"
                )

    def _any_state(self, lost: int, n: int) -> bool:
        """Whether some predicted row has at least ``lost`` rows of its recording before it."""
        return self.states(lost, n) > 0

    def states(self, lost: int, n: int) -> int:
        """How many predicted rows have at least ``lost`` rows of their recording before them."""
        starts = [(begin + lost, end) for begin, end in self.within or ((0, n),)]
        return sum(max(min(b, q) - max(a, p), 0) for a, b in starts for p, q in self.pred_range or ((0, n),))


@dataclass(frozen=True, eq=False)
class Fold(MapRows):
    """Some of the rows, ``pred_range``, that are predicted from the others.

    Library rows keep a distance of the embedding's width, (E - 1) tau + abs(Tp), so that their states and targets share
    no value with those of the fold. Rows of other recordings are far enough.
    """

    # number, folds: Which one of how many.
    number: int = 0
    folds: int = 2

    def library_mask(self, n: int, E: int, tau: int, Tp: int) -> Mask | None:
        width = (E - 1) * tau + abs(Tp)
        free: list[tuple[int, int]] = []
        for begin, end in self.within or ((0, n),):
            at = begin
            for p, q in self.pred_range or ():
                p, q = max(p, begin), min(q, end)
                if p < q:
                    free.append((at, p - width))
                    at = q + width
            free.append((at, end))
        free = [(a, b) for a, b in free if a < b]
        if free:
            try:
                return mask_of_library(n, E=E, tau=tau, Tp=Tp, lib_range=free, name="lib_range")
            except InputError:
                pass
        raise InputError(
            f"folds={self.folds}: of {n} rows none is left to predict fold {self.number} from with E={E}, "
            f"tau={tau}, Tp={Tp}; take other folds, a smaller E, or longer series"
        )

    def arguments(self) -> dict[str, Any]:
        named: dict[str, Any] = {"fold": self.number, "folds": self.folds}
        return named if self.within is None else named | {"fold_rows": digest_of(self.pred_range or ())}

    def require(self, n: int, dims: Sequence[int], tau: int, Tp: int) -> None:
        for E in sorted(set(dims)):
            self.library_mask(n, E, tau, Tp)
            if not self._any_state((E - 1) * tau, n):
                raise InputError(f"folds={self.folds}: no row of fold {self.number} has a state with E={E}, tau={tau}")


def tell_few(chosen: Sequence[MapRows], n: int, E: int, tau: int) -> None:
    """Warn where fewer rows are predicted than a correlation needs."""
    few = [rows for rows in chosen if rows.states((E - 1) * tau, n) < _LEAST]
    if few:
        by = f"folds={len(chosen)}" if isinstance(few[0], Fold) else "pred_range"
        warn(
            f"{by} leaves fewer than {_LEAST} rows to predict with E={E}, tau={tau}: their rho is NaN, and so is a "
            "mean over folds. Take fewer folds or more rows, or an error as skill="
        )


def rows_of(lib_range: Any, pred_range: Any, folds: Any, n: int, layout: Layout | None = None) -> tuple[MapRows, ...]:
    """What a caller asked for: no rows for all of them, one choice of rows, or one for each fold.

    Parameters
    ----------
    lib_range, pred_range, folds
        Of rows as the caller gave them.
    n : int
        Rows as they lie now.
    layout : Layout, optional
        How recordings lie among them. Folds are stretches of the rows as given: as many recordings of equal length as
        there are folds are left out one by one.
    """
    if lib_range is None and pred_range is None and folds is None:
        return ()
    n_rows = n if layout is None else len(layout.groups.codes)
    within = None if layout is None else tuple(layout.segments([(0, n_rows)]))
    if folds is None:
        library = None if lib_range is None else _library(lib_range, n_rows)
        if layout is not None and library is not None:
            library = layout.mask(library) if isinstance(library, np.ndarray) else tuple(layout.segments(library))
        predicted = None if pred_range is None else prediction_rows(n_rows, 0, pred_range, "pred_range")
        return (MapRows(library, None if predicted is None else _ranges(predicted, layout), within),)
    if lib_range is not None or pred_range is not None:
        raise InputError("folds= chooses library and predicted rows itself: leave lib_range and pred_range out")
    count = arguments.integer("folds", folds, 2, most=n_rows)
    ends = [number * n_rows // count for number in range(count + 1)]
    return tuple(
        Fold(None, _ranges(np.arange(*ends[number : number + 2]), layout), within, number, count)
        for number in range(count)
    )


def _library(given: Any, n: int) -> Ranges | Mask:
    as_mask = mask("lib_range", given, n)
    return tuple(segments("lib_range", given, n)) if as_mask is None else as_mask.copy()


def _ranges(rows: RowIndices, layout: Layout | None) -> Ranges:
    """Rows of the data, ascending, as ranges of where they lie now; gaps between recordings part no range."""
    chosen = rows
    if layout is not None:
        chosen = np.sort(layout.order[rows])
        before = np.cumsum(layout.there)  # rows of the data up to each place
        apart = np.diff(before[chosen]) > 1
    else:
        apart = np.diff(chosen) > 1
    ends = np.flatnonzero(apart)
    begins = chosen[np.concatenate([[0], ends + 1])]
    return tuple(zip(begins.tolist(), (chosen[np.concatenate([ends, [-1]])] + 1).tolist(), strict=True))


def arguments_of_folds(folds: Sequence[MapRows]) -> dict[str, Any]:
    """What identifies all folds together; nothing where there are none."""
    if not folds:
        return {}
    named: dict[str, Any] = {"folds": len(folds)}
    if folds[0].within is None:
        return named
    return named | {"fold_rows": digest_of([pair for fold in folds for pair in fold.pred_range or ()])}


def digest_of(ranges: Sequence[tuple[int, int]]) -> str:
    """What identifies many ranges."""
    return "sha256:" + hashlib.sha256(np.array(ranges, "<i8").tobytes()).hexdigest()


def _plain(rows: Ranges | Mask) -> Any:
    if isinstance(rows, tuple):
        return [list(pair) for pair in rows]
    return "sha256:" + hashlib.sha256(np.packbits(rows).tobytes()).hexdigest()
