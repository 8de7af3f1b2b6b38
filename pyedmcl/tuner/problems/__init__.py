"""What to run to tune and verify each kernel that has something to tune.

A module holds ``PROBLEMS``, instances of :class:`pyedmcl.tuner.problem.TuningProblem`, and is named in :data:`MODULES`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import replace

from ...codegen.spec import KernelSpec
from ...errors import InputError
from ...kernels import NAMES, spec
from ..problem import TuningProblem

MODULES = (
    "knn", "lookup", "predict", "skill", "smap", "smap_map", "recurrence", "recurrence_matrices", "ccm",
    "pruned_order", "searches",
)  # fmt: skip


@functools.cache
def _problems() -> Mapping[str, TuningProblem]:
    modules = (importlib.import_module(f"{__name__}.{name}") for name in MODULES)
    return {problem.kernel: problem for module in modules for problem in module.PROBLEMS}


def names() -> tuple[str, ...]:
    """Kernels that have a tuning problem, in the order of :data:`pyedmcl.kernels.NAMES`."""
    return tuple(name for name in NAMES if name in _problems())


def problem(name: str) -> TuningProblem:
    """The tuning problem of a kernel.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in names():
        raise InputError(f"kernel={name!r}: one of {', '.join(names())} is needed")
    return _problems()[name]


def tuned_spec(name: str) -> KernelSpec:
    """The spec of a kernel as a tuner may search it: also less what its problem rules out. Its digest is the same."""
    plain = spec(name)
    return replace(plain, constraints=plain.constraints + problem(name).constraints)
