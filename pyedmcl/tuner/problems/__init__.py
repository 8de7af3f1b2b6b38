"""What to run to tune and verify each kernel that has something to tune.

A module holds tuples ``..._PROBLEMS`` of instances of :class:`pyedmcl.tuner.problem.TuningProblem`, and is named in
:data:`MODULES`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import ModuleType

from ...errors import InputError
from ...kernels import NAMES, spec
from ...kernels.kernel_spec import KernelSpec
from ..problem import TuningProblem

MODULES = ("maps", "recurrence", "search", "smap")


def _of(module: ModuleType) -> Iterator[TuningProblem]:
    for name, problems in vars(module).items():
        if name.endswith("PROBLEMS"):
            yield from problems


@functools.cache
def _problems() -> Mapping[str, TuningProblem]:
    modules = (importlib.import_module(f"{__name__}.{name}") for name in MODULES)
    return {problem.kernel: problem for module in modules for problem in _of(module)}


def names() -> tuple[str, ...]:
    """Kernels that have a tuning problem, in the order of :data:`pyedmcl.kernels.NAMES`."""
    return tuple(name for name in NAMES if name in _problems())


def problem(name: str) -> TuningProblem:
    """The tuning problem of a kernel."""
    if name not in names():
        raise InputError(f"kernel={name!r}: one of {', '.join(names())} is needed")
    return _problems()[name]


def tuned_spec(name: str) -> KernelSpec:
    """The spec of a kernel as a tuner may search it: also less what its problem rules out. Its digest is the same."""
    plain = spec(name)
    return replace(plain, constraints=plain.constraints + problem(name).constraints)
