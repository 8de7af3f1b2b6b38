"""Progress of long functions: the loops that launch kernels, run blocks or ask an index report it to the caller.

The report travels beside the calls, as it concerns no result: these loops lie deep below the functions that have a
``progress`` argument, and most of their callers have nothing to say about it.
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
    """Let long loops within a public function call what it gets as the keyword ``progress``; True is a bar.

    They call it as ``progress(done, total, unit)``: "queries" are rows whose neighbours are found, "states" are rows
    of the library that an index holds, "predictions" are rows and samples of convergent cross mapping, "cells" pairs of
    points of a recurrence matrix, "rows" those of a recurrence plot, "windows" those along a series. Each loop begins
    anew at 0. A search of one launch says nothing.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = kwargs.get("progress")
        if isinstance(given, bool):
            with bars.shown(function.__name__) if given else nullcontext() as report:
                kwargs["progress"] = report
                return call(*args, **kwargs)
        # What cannot be called is refused by the function itself, with its other arguments.
        with told_to(given if callable(given) else None):
            return function(*args, **kwargs)

    return call


@contextmanager
def told_to(report: Report | None) -> Iterator[None]:
    """Let what is said within go to ``report``; None: nowhere."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def told(done: int, total: int, unit: str = "queries") -> None:
    """Say how far a search is, where somebody wants to know."""
    report = _report.get()
    if report is not None:
        report(int(done), int(total), unit)


def told_part(end: int, parts: int, total: int, begin: int, unit: str = "queries") -> None:
    """Say that parts ``begin`` to ``end`` of a search are done; nothing where they are all there are.

    Parameters
    ----------
    end, parts, begin : int
        In launches' own units, such as tiles.
    total : int
        All of it in ``unit``.
    """
    if begin or end < parts:
        told(end * total // parts, total, unit)
