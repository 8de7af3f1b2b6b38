"""Which library sizes a matrix of convergent cross mapping can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ..shared import arguments
from ..shared.states import embed, future

if TYPE_CHECKING:
    from .ccm_matrix_problem import CcmMatrixProblem

_SIZES = 8  # library sizes where the caller names none


def _least_size(problem: CcmMatrixProblem) -> tuple[int, str]:
    """Rows that a sub-library needs, and what for."""
    k = problem.knn or problem.highest + 1  # a fit has as many coefficients
    slopes = f"fits with {problem.highest} slopes and an intercept, each without its own row"
    return k + 1, f"{k} neighbours of each row" if problem.fits is None else slopes


def most_rows(problem: CcmMatrixProblem) -> int:
    """Rows of the pair that has the fewest, and so the largest library that all pairs can have.

    Raises
    ------
    InputError
        They are too few.
    """
    # Before E is known: the largest E that may be found has the fewest rows.
    series, E, tau, Tp = problem.data.series, problem.highest, problem.tau, problem.Tp
    present = np.isfinite(series.values)
    has_future = np.array([np.isfinite(future(series.values[:, j], Tp)) for j in range(series.n_series)])
    embedded = np.array([
        np.isfinite(embed(series.values[:, [i]], E, tau)).all(axis=1) for i in range(series.n_series)
    ]) if not present.all() else (np.arange(series.n_steps) >= (E - 1) * tau)[None]  # fmt: skip
    most, (least, what) = series.n_steps, _least_size(problem)
    for choice in problem.folds or (problem.rows,):
        library_mask = None if choice is None else choice.library_mask(series.n_steps, E, tau, Tp)
        drawn = embedded if library_mask is None else embedded & library_mask
        most = min(most, int((drawn.astype(np.float32) @ has_future.astype(np.float32).T).min()))
    if most < least:
        raise InputError(
            f"data: some pair has {most:,} rows with all coordinates (E={E}) and a target, which is too few for "
            f"{what}; leave out series with many gaps, or use a smaller E"
            f"{', E_max or knn' if problem.fits is None else ' or E_max'}"
        )
    return most


def library_sizes(lib_sizes: Any, problem: CcmMatrixProblem, most: int) -> tuple[int, ...]:
    """Library sizes, checked: of at most ``most`` rows.

    Raises
    ------
    InputError
        A size cannot be drawn, or there twice.
    """
    E, (least, what) = problem.highest, _least_size(problem)
    if lib_sizes is None:
        sizes = np.unique(np.linspace(max(least, most // 50), most, _SIZES).astype(int)).tolist()
        return tuple(sizes)
    requested = arguments.several("lib_sizes", lib_sizes)
    sizes = [arguments.integer("lib_sizes", size) for size in requested]
    for size in sizes:
        if not least <= size <= most:
            raise InputError(
                f"lib_sizes: {size:,}; from {least} (enough for {what}) to {most:,} rows can be drawn of each series "
                f"with E up to {E}"
            )
    if not sizes or len(set(sizes)) != len(sizes):
        raise InputError(f"lib_sizes={arguments.shown(lib_sizes)}: at least one size is needed, and none twice")
    return tuple(sizes)
