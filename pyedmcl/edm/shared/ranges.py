"""Which rows are library and which are predicted: ranges and masks of the caller as plain arrays.

A range is a segment of its own: the lags of its library rows and their targets must lie inside it, so that a library
made of several pieces (replicates, years) never joins the end of one to the start of the next. A mask has no ends: its
rows are taken as they are.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import shown
from ...data.groups import Layout
from ...data.intake import to_array
from ...errors import InputError
from . import arguments

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


def segments(name: str, given: Any, n: int) -> list[tuple[int, int]]:
    """A (begin, end) pair or a sequence of them, 0-based and half-open, as ascending segments within [0, n).

    Raises
    ------
    InputError
        A range is empty, lies outside the data, or overlaps another.
    """
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
    """``given`` as a mask (n,) if it is one of booleans; None if it is something else.

    Raises
    ------
    InputError
        A mask of another length.
    """
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


def library_mask(
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

    Raises
    ------
    InputError
        A range or a mask does not fit, or no row is left.
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

    Raises
    ------
    InputError
        A range or a mask does not fit, or holds no embedded row.
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
