"""Which rows of a map are library and which are predicted: ranges of the caller, or blocked folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import shown
from ...data.groups import Layout
from ...errors import InputError, warn
from . import arguments
from .ranges import library_mask, mask, prediction_rows, segments

Mask = NDArray[np.bool_]
Rows = NDArray[np.integer[Any]]
Ranges = tuple[tuple[int, int], ...]
_LISTED = 100  # ranges that a manifest lists
_LEAST = 3  # rows of a correlation


@dataclass(frozen=True, eq=False)
class MapRows:
    """Rows of the library, and rows that are predicted; None for all.

    Attributes
    ----------
    lib_range : tuple of (int, int), ndarray of bool (n_steps,), or None
        Ranges, or a mask whose rows are taken as they are.
    pred_range : tuple of (int, int), or None
        Ranges, ascending and apart from each other.
    within : tuple of (int, int), or None
        Where recordings begin and end that stand one below the other; None for a single one.
    """

    lib_range: Ranges | Mask | None = None
    pred_range: Ranges | None = None
    within: Ranges | None = None

    def library_mask(self, n: int, E: int, tau: int, Tp: int) -> Mask | None:
        """Rows of ``n`` that may be neighbours in dimension ``E``; None for all that have a state and a target.

        Raises
        ------
        InputError
            There is none.
        """
        return library_mask(n, E=E, tau=tau, Tp=Tp, lib_range=self.lib_range, name="lib_range")

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
        """Refuse rows that leave some dimension without library or predictions.

        Raises
        ------
        InputError
            Naming what is too short.
        """
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

    Attributes
    ----------
    number, folds : int
        Which one of how many.
    """

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
                return library_mask(n, E=E, tau=tau, Tp=Tp, lib_range=free, name="lib_range")
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

    Raises
    ------
    InputError
        They cannot be used, or not together.
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


def _ranges(rows: Rows, layout: Layout | None) -> Ranges:
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
