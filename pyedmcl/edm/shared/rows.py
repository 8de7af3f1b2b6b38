"""Library and predicted rows as simplex and S-map are given them: ranges, masks, groups, another series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.group_labels import take_groups
from ...data.groups import Groups, Layout
from ...data.series import Series, as_series, require_rows, tell_scales, tell_state
from ...errors import InputError
from . import arguments, ranges
from .options import PredictionOptions

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sides:
    """The library, what is predicted of it, and the rows that are predicted.

    Attributes
    ----------
    library, asked : Series
        ``asked`` holds the predicted rows; it is ``library`` where a series predicts itself.
    target_values : ndarray (n,)
        Values of the target at the library's rows.
    library_mask : ndarray of bool (n,) or None
        Library rows that ranges and masks leave.
    rows : ndarray of int
        Rows of ``asked`` that are predicted.
    observed : ndarray
        Value at each row + Tp, NaN where there is none.
    exclusion_radius : int
        -1 where library and asked are different series.
    layout : Layout or None
        How groups lie among the rows of ``asked``. Then some of ``rows`` lie in gaps: skill is that of all of them,
        which has the bits of data with these gaps, and results show the others.
    """

    library: Series
    asked: Series
    target_values: Doubles
    library_mask: ranges.Mask | None
    rows: ranges.Rows
    observed: Doubles
    exclusion_radius: int
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
    """Both sides of a prediction, from the library's series and what else was given.

    Raises
    ------
    InputError
        An argument cannot be used; the message names it, its value, and what is needed.
    """
    radius = arguments.exclusion(options.exclusion_radius)
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
    library_mask = ranges.library_mask(
        n, E=lags, tau=tau, Tp=Tp, lib_range=ranges.in_layout("lib_range", options.lib_range, layout),
        valid_lib=ranges.in_layout("valid_lib", options.valid_lib, layout),
    )  # fmt: skip
    query, seen = series, target_values
    if pred is not None:
        query, layout = _another(pred, series, options, lags, tau, Tp)
        # Nobody has observed another target beside the new series.
        seen = query.values[:, 0].astype(np.float64) if target is None else np.full(query.n_steps, np.nan)
    chosen = ranges.in_layout("pred_range", options.pred_range, layout)
    rows = ranges.prediction_rows(query.n_steps, first, chosen)
    if layout is not None and not layout.embedded(rows, first).any():
        raise InputError(f"pred_range={arguments.shown(options.pred_range)}: none of its rows is embedded")
    return Sides(
        series, query, target_values, library_mask, rows, ranges.observed_at(seen, rows, Tp),
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
