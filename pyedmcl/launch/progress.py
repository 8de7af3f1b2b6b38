"""Progress of long functions: reported by the loops, shown as bars or lines."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from ..device.programs import watcher

# Progress of a long job as people see it: a bar on a terminal or in a notebook, a line now and then in a log.


Report = Callable[[int, int, str], None]
_SECONDS_PER_LINE = 10.0
# xmap reports its search for E under a unit of its own, though what it counts are series.
_PHASES = {
    "dimensions": ("finding E", "series"), "states": ("building an index", "states"),
    "queries": ("searching", "queries"), "predictions": ("predicting", "predictions"),
    "programs": ("preparing kernels", "programs"),
}  # fmt: skip
_WITHIN = ("states", "queries", "predictions", "programs")  # units of what begins anew many times


def rate_text(rate: float | None, unit: str) -> str:
    """``12.3 rows/s``, or per minute where it is slow; empty where nothing is known yet."""
    if not rate or rate <= 0:
        return ""
    if rate < 0.1:
        return f"{rate * 60:.2g} {unit}/min"
    return f"{rate:,.0f} {unit}/s" if rate >= 100 else f"{rate:.3g} {unit}/s"


def duration_text(seconds: float) -> str:
    """``1:02:03``."""
    whole_seconds = round(seconds)
    return f"{whole_seconds // 3600}:{whole_seconds // 60 % 60:02d}:{whole_seconds % 60:02d}"


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """A bar with count, rate and time left; one for each unit that is reported, and a moving one before the first."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Count(ProgressColumn):
        def render(self, task: Any) -> Text:
            if task.total is None:
                return Text("starting")
            return Text(f"{task.completed:,.0f} of {task.total:,.0f} {task.fields['unit']}")

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(rate_text(task.finished_speed or task.speed, task.fields["unit"]))

    class Left(ProgressColumn):
        def render(self, task: Any) -> Text:
            predicted = task.time_remaining is not None and not task.finished
            return Text(f"{duration_text(task.time_remaining)} left" if predicted else "")

    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        Count(),
        Rate(),
        TimeElapsedColumn(),
        Left(),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    tasks: dict[str, Any] = {}
    last: dict[str, int] = {}

    def report(done: int, total: int, unit: str) -> None:
        if unit in tasks:
            if done < last[unit]:
                shown.reset(tasks[unit], total=total)
            shown.update(tasks[unit], completed=done, total=total, visible=unit != "programs" or done < total)
            last[unit] = done
            return
        last[unit] = done
        if unit != "programs":  # which are prepared before a step, and between steps
            shown.update(start, visible=False)
        phase, counted = _PHASES.get(unit, (label, unit))
        # What an earlier run had done is where the bar starts, and does not enter the rate.
        tasks[unit] = shown.add_task(phase, total=total, completed=done, unit=counted)

    with shown, _watched(report):
        start = shown.add_task(label, total=None, unit="")
        yield report


@contextmanager
def _watched(report: Report) -> Iterator[None]:
    """Report programs that are compiled within: on some devices the first call waits for them most of its time."""
    token = watcher.set(lambda done, total: report(done, total, "programs"))
    try:
        yield
    finally:
        watcher.reset(token)


@contextmanager
def lines(label: str) -> Iterator[Report]:
    """A line at the start, at most one in ten seconds, and one at the end of each unit.

    What begins anew many times has a line after each ten seconds only.
    """
    begun: dict[str, tuple[float, int]] = {}
    last: dict[str, float] = {}
    reached: dict[str, int] = {}

    def report(done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        within = unit in _WITHIN
        if within and (unit not in begun or done < reached[unit]):
            begun[unit] = now, done
            last.setdefault(unit, now)
        reached[unit] = done
        first = unit not in begun
        start, already = begun.setdefault(unit, (now, done))
        if not first and (done < total or within) and now - last[unit] < _SECONDS_PER_LINE:
            return
        last[unit] = now
        phase, counted = _PHASES.get(unit, (label, unit))
        text = f"{phase}: {done:,} of {total:,} {counted}"
        if done > already and now > start:
            rate = (done - already) / (now - start)
            text += f", {rate_text(rate, counted)}, {duration_text((total - done) / rate)} left"
        print(text, file=sys.stderr, flush=True)

    with _watched(report):
        yield report


def shown(label: str) -> AbstractContextManager[Report]:
    """A bar where stderr is a terminal or a notebook, else lines."""
    return bar(label) if sys.stderr.isatty() or "ipykernel" in sys.modules else lines(label)


# The function that receives the reports is not passed on as an argument, since the loops lie deep below the public
# functions that have a ``progress`` argument, and what lies between does not use it. A context variable holds it.


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
            with shown(function.__name__) if wish else nullcontext() as report:
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
