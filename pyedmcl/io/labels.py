"""Units and meanings of what tables and labelled arrays hold: a row for each name that results share.

A class of results whose names mean something else, or are those of series, says so in ``column_labels`` and
``series_label`` (:class:`pyedmcl.io.result.Result`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .style import told_units


class Label(NamedTuple):
    """What a column holds; the unit is "1" for plain numbers, "data" for that of the series, "" for text."""

    unit: str
    meaning: str


_OF_DATA = {"data": "{}", "data^2": "({})^2"}
COMMON = {
    "cause": Label("", "series that drives the effect, if the skill means a link: the target of the cross map"),
    "effect": Label("", "series that is driven: the library of the cross map"),
    "library": Label("", "series whose states predict"),
    "target": Label("", "series that is predicted"),
    "series": Label("", "name or number of the series"),
    "group": Label("", "label of the recording"),
    "rho": Label("1", "skill: correlation of predicted and observed values, or the measure that was asked for"),
    "mean": Label("1", "mean skill of the random libraries"),
    "median": Label("1", "median skill of the random libraries"),
    **{f"q{q:02d}": Label("1", f"{q} % quantile of the skill of the random libraries") for q in (5, 25, 75, 95)},
    "mae": Label("data", "mean absolute error"),
    "rmse": Label("data", "root mean square error"),
    "E": Label("1", "embedding dimension"),
    "E_of": Label("", "whose embedding dimension E is: that of the cause or of the effect"),
    "dimension": Label("1", "embedding dimension that was tried"),
    "tau": Label("rows", "lag between coordinates of a state"),
    "Tp": Label("rows", "interval from a state to what it predicts"),
    "theta": Label("1", "localisation of S-map"),
    "exclusion_radius": Label("rows", "neighbours in time up to this far apart are left out"),
    "lib_size": Label("rows", "size of the library"),
    "sample": Label("", "number of the random library"),
    "p_value": Label("1", "p-value against surrogates"),
    "q_value": Label("1", "p-value adjusted for the false discovery rate"),
    "draws": Label("1", "surrogates that the p-value counts"),
    "surrogates": Label("1", "surrogates that were drawn"),
    "surrogates_q95": Label("1", "95 % quantile of the skill of surrogates"),
    "gain": Label("1", "skill at the largest library less that at the smallest"),
    "p_gain": Label("1", "p-value of that gain against those of surrogates"),
    "p_convergence": Label("1", "p-value of the growth of skill with the library"),
    "verdict": Label("", "direct, link, indirect, unordered or none"),
    "reasons": Label("", "reasons of the verdict, as codes"),
    "best_lag": Label("rows", "interval Tp of the highest skill"),
    "rho_at_best_lag": Label("1", "the highest skill of all intervals"),
    "lag_allows": Label("", "whether a cause may have that interval"),
    "p_lag": Label("1", "p-value of the best interval of a cause against all later ones"),
    "other": Label("", "series through which the link may pass"),
    "rho_through_other": Label("1", "skill of the estimate through that series"),
    "partial": Label("1", "partial correlation that is left without the estimate through other series"),
    "p_partial": Label("1", "p-value of the partial correlation against surrogates of the cause"),
    "p_forecast": Label("1", "p-value of the cause improving forecasts of the effect"),
    "given": Label("", "series through which the link may pass"),
    "direction": Label("", "cause -> effect"),
    "time": Label("rows, or as in the data", "time as the data have it, else the row number, counted from 0"),
    "start": Label("rows", "first row of the window"),
    "end": Label("rows", "row behind the last one of the window"),
    "row": Label("1", "number of the row, counted from 0"),
    "observed": Label("data", "value that was observed"),
    "predicted": Label("data", "value that was predicted"),
    "variance": Label("data^2", "weighted variance of what the prediction is made from"),
    "C0": Label("data", "intercept of the local fit"),
    "lag": Label("rows", "interval between the values of a pair"),
    "radius": Label("as asked for", "states nearer than this are recurrent"),
    "radius_used": Label("data", "radius in the unit of the data"),
    "degree": Label("1", "recurrences of the point: links of the node"),
    "clustering": Label("1", "share of pairs of neighbours that are linked"),
    "code": Label("", "kind of the remark"),
    "text": Label("", "the remark"),
}


def labels_of(result: Any, names: Any) -> dict[str, Label]:
    """Labels of some names, as far as there are any, by the rules of the result's class."""
    kind = type(result)
    label_by_name: Mapping[str, Label] = {**({} if kind.series_label else COMMON), **kind.column_labels}
    label_of = {str(name): label_by_name.get(str(name), kind.series_label) for name in names}
    unit = _unit_of_data(result)
    return {
        name: label._replace(unit=_OF_DATA[label.unit].format(unit)) if unit and label.unit in _OF_DATA else label
        for name, label in label_of.items() if label is not None
    }  # fmt: skip


def _unit_of_data(result: Any) -> str:
    """The unit of what a result is of, where the data told of one; empty where that is not known, or not one."""
    units = told_units(result) or {}
    name = getattr(result, "name", "")
    return units.get(name, "") if name else ""


def common(*names: str) -> dict[str, Label]:
    """Some rows of :data:`COMMON`, for a class of results whose other columns are named by data."""
    return {name: COMMON[name] for name in names}


def told_frame(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``to_frame`` say in ``attrs`` of its frame what made it, and units and meanings of its columns."""

    @functools.wraps(method)
    def to_frame(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = method(self, *args, **kwargs)
        index = [] if frame.index.name is None else [frame.index.name]
        labels = labels_of(self, [*index, *frame.columns])
        frame.attrs = {
            **_origin(self), "units": {name: label.unit for name, label in labels.items()},
            "meanings": {name: label.meaning for name, label in labels.items()},
        }  # fmt: skip
        return frame

    return to_frame


def told_xarray(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``to_xarray`` say in ``attrs`` what made the array, its provenance, and units and meanings of variables."""

    @functools.wraps(method)
    def to_xarray(self: Any, *args: Any, **kwargs: Any) -> Any:
        array = method(self, *args, **kwargs)
        provenance = json.dumps(dict(getattr(self, "provenance", {})), default=str)
        labels = {**COMMON, **type(self).column_labels}
        values = array.data_vars if hasattr(array, "data_vars") else {array.name: array}
        for name, variable in {**array.coords, **values}.items():
            if name in labels:
                label = labels[name]
                units = {"units": label.unit} if label.unit and variable.dtype.kind not in "mM" else {}
                variable.attrs.update({"long_name": label.meaning, **units})  # xarray writes units of dates itself
        array.attrs.update(_origin(self), provenance=provenance)
        return array

    return to_xarray


def _origin(result: Any) -> dict[str, str]:
    from .. import __version__

    return {"result": type(result).__name__, "source": f"pyedmcl {__version__}"}
