"""Progress of long functions, as the loops report it that launch kernels, run blocks or ask an index.

The function that receives the reports is not passed on as an argument, since the loops lie deep below the public
functions that have a ``progress`` argument, and what lies between does not use it. A context variable holds it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from . import bars

Report = Callable[[int, int, str], None]
Progress = Report | bool  # True is a bar
P = ParamSpec("P")
R = TypeVar("R")

_report: ContextVar[Report | None] = ContextVar("report", default=None)


def reporting(function: Callable[P, R]) -> Callable[P, R]:
    """Let the loops within a public function report to its argument ``progress``; True stands for a bar.

    They call it as ``progress(done, total, unit)``: "queries" are rows whose neighbours are found, "states" are rows
    of the library that an index holds, "predictions" are rows and samples of convergent cross mapping, "cells" pairs of
    points of a recurrence matrix, "rows" those of a recurrence plot, "points" those
    of a recurrence network, "windows" those along a series. Each loop begins
    anew at 0. A search that needs a single launch reports nothing.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        wish: Any = kwargs.get("progress")
        if isinstance(wish, bool):
            with bars.shown(function.__name__) if wish else nullcontext() as report:
                kwargs["progress"] = report
                return call(*args, **kwargs)
        # The function itself refuses an argument that cannot be called, as it does with its other arguments.
        with reporting_to(wish if callable(wish) else None):
            return function(*args, **kwargs)

    return call


@contextmanager
def reporting_to(report: Report | None) -> Iterator[None]:
    """Within the block, send reports to ``report``, or nowhere if it is None."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report_of() -> Report | None:
    """Where reports go."""
    return _report.get()


def report_progress(done: int, total: int, unit: str = "queries") -> None:
    """Report that ``done`` of ``total`` units are done, if the caller of the public function wants to know."""
    report = _report.get()
    if report is not None:
        report(int(done), int(total), unit)


def report_part(end: int, parts: int, total: int, begin: int, unit: str = "queries") -> None:
    """Report that parts ``begin`` to ``end`` of a search are done, unless these are all of its parts.

    Parameters
    ----------
    end, parts, begin : int
        Numbers in the unit of the launches, such as tiles.
    total : int
        Size of the whole search in ``unit``.
    """
    if begin or end < parts:
        report_progress(end * total // parts, total, unit)
