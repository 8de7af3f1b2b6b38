"""Skill against E where rows are chosen or another series is predicted: a projection for each series and dimension.

The one pass of :mod:`embed_dimension` shares its neighbours' rows among all dimensions. Here each dimension has a
library of its own: the first rows of a segment have no state of E lags, and that depends on E.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import Series, build_series
from ..neighbors.choose import Choice
from .provenance import provenance
from .simplex import KERNELS
from .simplex_fit import Projection, prepare, project

if TYPE_CHECKING:
    from ..device.executor import Executor


def check_rows(series: Series, dims: range, target: Any, options: dict[str, Any]) -> None:
    """Refuse, before a device is opened, rows that some dimension cannot use. Raises InputError."""
    problems(series, 0, dims, target, options)


def problems(series: Series, place: int, dims: range, target: Any, options: dict[str, Any]) -> list[Projection]:
    """The projection of a series for each dimension."""
    column = np.ascontiguousarray(series.values[:, place])
    one = build_series(column, [series.names[place]], series.time)
    return [prepare(one, None, target, E=E, embedded=False, gaps_only=True, **options) for E in dims]


def chosen_skill(
    executor: Executor, series: Series, dims: range, target: Any, options: dict[str, Any], dtype: str,
    progress: Callable[[int, int, str], None] | None = None, choice: Choice | None = None,
) -> tuple[NDArray[np.float64], dict[str, Any]]:  # fmt: skip
    """rho (n_series, len(dims)) over the rows that are predicted, and where it comes from.

    Parameters
    ----------
    options : dict
        tau, Tp, knn, exclusion_radius, lib_range, pred_range and valid_lib of :func:`pyedmcl.simplex`.
    """
    rho = np.full((series.n_series, len(dims)), np.nan)
    used: dict[str, Any] = {}
    grade = ""
    searched: list[dict[str, Any]] = []
    for place in range(series.n_series):
        for e, problem in enumerate(problems(series, place, dims, target, options)):
            found, used, grade = project(executor, problem, dtype, choice, searched)
            rho[place, e] = found.rho
        if progress is not None:
            progress(place + 1, series.n_series, "series")
    return rho, provenance(executor, KERNELS, used, grade=grade, neighbors=searched)
