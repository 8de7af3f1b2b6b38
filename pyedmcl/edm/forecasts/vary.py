"""Simplex projections that differ in one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...device.select import DeviceNames
from ...errors import InputError
from ...jobs.sinks import ListSink
from ...neighbors.choose import SearchRequest
from ..shared import arguments
from ..shared.options import PredictionOptions
from .simplex_fit import prepare
from .simplex_problem import SimplexProblem
from .skill_result import SkillResult


def integers(name: str, given: Any, least: int | None = None) -> list[int]:
    """One integer or several different ones of at least ``least``."""
    values = [arguments.integer(name, value, least) for value in arguments.several(name, given)]
    if not values or len(set(values)) != len(values):
        raise InputError(f"{name}={arguments.shown(given)}: at least one integer is needed, and none twice")
    return values


def skill_over(
    parameter: str, values: Sequence[int], data: tuple[Any, Any, Any], options: PredictionOptions, dtype: str,
    device: DeviceNames,
) -> SkillResult:  # fmt: skip
    """Skill of simplex for each value of a parameter.

    Parameters
    ----------
    parameter : str
        Which of the options varies.
    values : sequence of int
    data : tuple
        lib, pred and target of :func:`pyedmcl.simplex`.
    options : PredictionOptions
    dtype, device
        As for :func:`pyedmcl.simplex`.

    Raises
    ------
    InputError
        As for :func:`pyedmcl.simplex`.
    """
    dtype = arguments.precision(dtype)
    changes: list[dict[str, Any]] = [{parameter: value} for value in values]
    projections = tuple(
        prepare(*data, replace(options, **change), quiet=place > 0) for place, change in enumerate(changes)
    )
    problem = SimplexProblem(projections, dtype, SearchRequest())
    runner, sink = arguments.runner_on(device, dtype), ListSink(problem.blocks())
    record = runner.run(problem, sink)
    forecasts = [forecast for block in sink.results() for _, forecast in block]
    rho, mae, rmse = np.array([(forecast.rho, forecast.mae, forecast.rmse) for forecast in forecasts]).T
    used = runner.provenance(problem.kernels, record)
    return SkillResult(parameter, np.array(values), rho.copy(), mae.copy(), rmse.copy(), projections[0].E, used)
