"""What every public function that computes has in common, in one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..data.arguments import flags_checked
from ..launch.progress import reporting
from ..tuning.retry import tunable

P = ParamSpec("P")
R = TypeVar("R")


def public_function(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keywords ``progress`` and ``tune`` of a public function their meaning, where it has them; check flags.

    What loops within report goes to ``progress``, see :func:`pyedmcl.launch.progress.reporting`. ``tune`` says which
    parameters kernels take, and a device that refuses what it was given gets less, see
    :func:`pyedmcl.tuning.retry.tunable`: so the function must be one that can be called again.
    """
    return flags_checked(tunable(reporting(function)))
