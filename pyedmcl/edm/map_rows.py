"""Which rows of a map are library and which are predicted: ranges of the caller, or blocked folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import shown
from ..errors import InputError
from . import arguments
from .ranges import library_mask, mask, prediction_rows, segments

Mask = NDArray[np.bool_]
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class MapRows:
    """Rows of the library, and rows that are predicted; None for all.

    Attributes
    ----------
    lib_range : tuple of (int, int), ndarray of bool (n_steps,), or None
        Ranges, or a mask whose rows are taken as they are.
    pred_range : (int, int) or None
        First row, and one past the last.
    """

    lib_range: Ranges | Mask | None = None
    pred_range: tuple[int, int] | None = None

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
        return self.pred_range or (0, n)

    def arguments(self) -> dict[str, Any]:
        """What identifies the rows; plain numbers and text, nothing where all are taken."""
        lib_range = {} if self.lib_range is None else {"lib_range": _plain(self.lib_range)}
        return lib_range | ({} if self.pred_range is None else {"pred_range": list(self.pred_range)})

    def require(self, n: int, dims: Sequence[int], tau: int, Tp: int) -> None:
        """Refuse rows that leave some dimension without library or predictions.

        Raises
        ------
        InputError
            Naming what is too short.
        """
        for E in sorted(set(dims)):
            self.library_mask(n, E, tau, Tp)
            if self.pred_range is not None:
                prediction_rows(n, (E - 1) * tau, [self.pred_range], "pred_range")


@dataclass(frozen=True, eq=False)
class Fold(MapRows):
    """One of several equal stretches of rows that is predicted from the others.

    Library rows keep a distance of the embedding's width, (E - 1) tau + abs(Tp), so that their states and targets share
    no value with those of the fold.

    Attributes
    ----------
    number, folds : int
        Which one of how many.
    """

    number: int = 0
    folds: int = 2

    def _ends(self, n: int) -> tuple[int, int]:
        return self.number * n // self.folds, (self.number + 1) * n // self.folds

    def library_mask(self, n: int, E: int, tau: int, Tp: int) -> Mask | None:
        begin, end = self._ends(n)
        width = (E - 1) * tau + abs(Tp)
        parts = [(a, b) for a, b in ((0, begin - width), (end + width, n)) if a < b]
        if parts:
            try:
                return library_mask(n, E=E, tau=tau, Tp=Tp, lib_range=parts, name="lib_range")
            except InputError:
                pass
        raise InputError(
            f"folds={self.folds}: of {n} rows none is left to predict rows {begin} to {end} from with E={E}, "
            f"tau={tau}, Tp={Tp}; take other folds, a smaller E, or longer series"
        )

    def predicted(self, n: int) -> tuple[int, int]:
        return self._ends(n)

    def arguments(self) -> dict[str, Any]:
        return {"fold": self.number, "folds": self.folds}

    def require(self, n: int, dims: Sequence[int], tau: int, Tp: int) -> None:
        for E in sorted(set(dims)):
            self.library_mask(n, E, tau, Tp)
            if self._ends(n)[1] <= (E - 1) * tau:
                raise InputError(f"folds={self.folds}: no row of fold {self.number} has a state with E={E}, tau={tau}")


def rows_of(lib_range: Any, pred_range: Any, folds: Any, n: int, method: str) -> tuple[MapRows, ...]:
    """What a caller asked for: no rows for all of them, one choice of rows, or one for each fold.

    Raises
    ------
    InputError
        They cannot be used, or not together.
    """
    if lib_range is None and pred_range is None and folds is None:
        return ()
    if method != "simplex":
        name = "folds" if folds is not None else "pred_range" if lib_range is None else "lib_range"
        raise InputError(f"{name}= with method={method!r}: maps of linear fits use all rows; see pyedmcl.smap")
    if folds is None:
        return (MapRows(_library(lib_range, n), _predicted(pred_range, n)),)
    if lib_range is not None or pred_range is not None:
        raise InputError("folds= chooses library and predicted rows itself: leave lib_range and pred_range out")
    count = arguments.integer("folds", folds, 2, most=n)
    return tuple(Fold(number=number, folds=count) for number in range(count))


def _library(given: Any, n: int) -> Ranges | Mask | None:
    if given is None:
        return None
    as_mask = mask("lib_range", given, n)
    return tuple(segments("lib_range", given, n)) if as_mask is None else as_mask.copy()


def _predicted(given: Any, n: int) -> tuple[int, int] | None:
    if given is None:
        return None
    rows = prediction_rows(n, 0, given, "pred_range")
    begin, end = int(rows[0]), int(rows[-1]) + 1
    if end - begin != len(rows):
        raise InputError(
            f"pred_range={shown(given)}: a map predicts one range of rows without holes, (begin, end); call "
            "it once for each"
        )
    return begin, end


def _plain(rows: Ranges | Mask) -> Any:
    if isinstance(rows, tuple):
        return [list(pair) for pair in rows]
    return "sha256:" + hashlib.sha256(np.packbits(rows).tobytes()).hexdigest()
