"""Simplex projections that differ in one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device.session import open_device
from ..errors import InputError
from . import arguments
from .effort import announce
from .provenance import provenance
from .simplex import KERNELS
from .simplex_fit import Projection, prepare, project
from .skill_result import SkillResult


def integers(name: str, given: Any, least: int | None = None) -> list[int]:
    """One integer or several different ones of at least ``least``."""
    values = [arguments.integer(name, value, least) for value in ([given] if np.ndim(given) == 0 else list(given))]
    if not values or len(set(values)) != len(values):
        raise InputError(f"{name}={given!r}: at least one integer is needed, and none twice")
    return values


def skill_over(
    parameter: str, values: Sequence[int], lib: Any, pred: Any, target: Any, options: dict[str, Any], dtype: str,
    device: str | None,
) -> SkillResult:  # fmt: skip
    """Skill of simplex for each value of a parameter.

    Raises
    ------
    InputError
        As for :func:`pyedmcl.simplex`.
    """
    arguments.precision(dtype)
    settings: list[dict[str, Any]] = [{**options, parameter: value} for value in values]
    problems: list[Projection] = [prepare(lib, pred, target, **setting) for setting in settings]
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    first = problems[0]
    announce(executor.info, [first.E] * len(values), n_library=len(first.library), n_query=len(first.query),
             n_series=len(values))  # fmt: skip
    skill = np.empty((3, len(values)))
    used: dict[str, Any] = {}
    grade = ""
    for place, problem in enumerate(problems):
        found, used, grade = project(executor, problem, dtype)
        skill[:, place] = found.rho, found.mae, found.rmse
    record = provenance(executor, KERNELS, used, grade=grade)
    return SkillResult(parameter, np.array(values), skill[0], skill[1], skill[2], first.E, record)
