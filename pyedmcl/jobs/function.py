"""What every public function that computes has in common, in one decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..data.arguments import flags_checked
from ..data.call import recorded
from ..data.regular import SETTLE, regular_times
from ..launch.progress import reporting
from ..tuning.retry import tunable

P = ParamSpec("P")
R = TypeVar("R")


def public_function(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keywords ``progress``, ``tune`` and ``regular`` of a public function their meaning; check flags.

    What loops within report goes to ``progress``, see :func:`pyedmcl.launch.progress.reporting`. ``tune`` says which
    parameters kernels take, and a device that refuses what it was given gets less, see
    :func:`pyedmcl.tuning.retry.tunable`: so the function must be one that can be called again. What it is called with
    is kept for provenance, see :mod:`pyedmcl.data.call`. What ``regular`` says of times is done before it begins, see
    :mod:`pyedmcl.data.regular`.
    """
    called = flags_checked(tunable(reporting(recorded(regular_times(function)))))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return called(*args, **kwargs)
        except Exception as found:
            error = found
        try:  # in a traceback the function follows the caller's line, not what was wrapped around it
            unfit = isinstance(error, TypeError) and not _fits(function, args, kwargs)
            raise error.with_traceback(None if unfit else _below(error.__traceback__, function))
        finally:
            del error  # which holds this frame

    return call


def _fits(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether a function can be called so; else an argument is misspelt, say, and the caller's line is all there is."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _below(traceback: TracebackType | None, function: Callable[..., object]) -> TracebackType | None:
    """The traceback from ``function``, or the look at its times, on; all of it where neither is in it."""
    place = traceback
    while place is not None:
        if place.tb_frame.f_code in (function.__code__, SETTLE):
            return place
        place = place.tb_next
    return traceback
