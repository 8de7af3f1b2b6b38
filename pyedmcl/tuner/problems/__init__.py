"""What to run to tune, verify and time each kernel: one module per kernel, called as the kernel is.

A module holds ``WORKLOAD``, a :class:`pyedmcl.tuner.workload.Workload`. Nothing else has to be told of it.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace

from ...codegen.spec import KernelSpec
from ...errors import InputError
from ...kernels import NAMES, spec
from ..workload import MODES, Answer, Case, Workload, WrongAnswerError

__all__ = ["MODES", "Answer", "Case", "Workload", "WrongAnswerError", "names", "tuned_spec", "workload"]


def names() -> tuple[str, ...]:
    """Kernels that have a workload, in the order of :data:`pyedmcl.kernels.NAMES`."""
    return tuple(name for name in NAMES if importlib.util.find_spec(f"{__name__}.{name}") is not None)


def workload(name: str) -> Workload:
    """The workload of a kernel.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in names():
        raise InputError(f"kernel={name!r}: one of {', '.join(names())} is needed")
    found: Workload = importlib.import_module(f"{__name__}.{name}").WORKLOAD
    return found


def tuned_spec(name: str) -> KernelSpec:
    """The spec of a kernel as a tuner may search it: also less what its workload rules out. Its digest is the same."""
    plain = spec(name)
    return replace(plain, constraints=plain.constraints + workload(name).constraints)
