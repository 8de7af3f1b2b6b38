"""Progress of long functions: reported by the loops, shown as bars or lines."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from ..device.programs import watcher

# Progress of a long job as people see it: a bar on a terminal or in a notebook, a line now and then in a log.


Report = Callable[[int, int, str], None]
_SECONDS_PER_LINE = 10.0
_SECONDS_PER_CHANGE = 0.25
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


class _Course:
    """What is at work now: one bar or line tells of it, whatever the loops within report."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._now: tuple[str, str] | None = None  # step and unit
        self._start, self._already = 0.0, 0  # what an earlier run had done does not enter the rate
        self._done, self._total = 0, 0
        self.words, self.counted = label, ""

    def take(self, done: int, total: int, unit: str) -> bool | None:
        """Whether something new begins; None for what begins anew many times within something longer."""
        now = step_of(), unit
        longer = self._now is not None and self._now[1] not in _WITHIN and self._done < self._total
        if unit in _WITHIN and longer and self._now is not None and now[0] == self._now[0]:
            return None
        new = now != self._now or done < self._done
        if new:
            self._now, self._start, self._already = now, time.monotonic(), done
            phase, self.counted = _PHASES.get(unit, (now[0] or self._label, unit))
            self.words = f"{now[0]}, {phase}" if now[0] and unit in _PHASES else phase
        self._done, self._total = done, total
        return new

    def said(self) -> str:
        """``surrogates 3 of 5: 40 of 100 series, 12 series/s, 0:00:05 left``."""
        text = f"{self.words}: {self._done:,} of {self._total:,} {self.counted}"
        seconds = time.monotonic() - self._start
        if self._done > self._already and seconds > 0:
            rate = (self._done - self._already) / seconds
            text += f", {rate_text(rate, self.counted)}, {duration_text((self._total - self._done) / rate)} left"
        return text


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """One bar with step, count, rate and time left; a moving one before the first report."""
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
    course = _Course(label)

    def report(done: int, total: int, unit: str) -> None:
        new = course.take(done, total, unit)
        if new:
            shown.reset(only, total=total, completed=done, description=course.words, unit=course.counted)
        elif new is not None:
            shown.update(only, completed=done, total=total)

    with shown, _watched(report):
        only = shown.add_task(label, total=None, unit="")
        yield report


@contextmanager
def notebook(label: str) -> Iterator[Report]:
    """One line below a cell, which changes; of IPython alone, since bars need ipywidgets there."""
    from IPython.display import display

    def of(text: str) -> dict[str, str]:
        return {"text/plain": text}

    line = display(of(f"{label}: starting"), raw=True, display_id=True)  # type: ignore[no-untyped-call]
    course, last = _Course(label), 0.0

    def report(done: int, total: int, unit: str) -> None:
        nonlocal last
        new, now = course.take(done, total, unit), time.monotonic()
        if new or (new is not None and (done == total or now - last >= _SECONDS_PER_CHANGE)):
            line.update(of(course.said()), raw=True)
            last = now

    with _watched(report):
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
    """A line when a step begins, one for each tenth of it, at most one in ten seconds, and one at its first end.

    What begins anew many times has a line after each ten seconds only.
    """
    course, last, tenth = _Course(label), -_SECONDS_PER_LINE, -1
    ended: set[str] = set()  # steps, which may have several rounds
    begun: set[str] = set()

    def report(done: int, total: int, unit: str) -> None:
        nonlocal last, tenth
        new, now = course.take(done, total, unit), time.monotonic()
        if new is None:
            return
        first, end = course.words not in begun and unit not in _WITHIN, done >= total and course.words not in ended
        if new:
            tenth = -1
        if course.words not in begun:
            begun.add(course.words)
            last = last if first else now
        later = now - last >= _SECONDS_PER_LINE and (unit in _WITHIN or done * 10 // max(total, 1) > tenth)
        if not (first or later or (end and unit not in _WITHIN)):
            return
        last, tenth = now, done * 10 // max(total, 1)
        ended.update([course.words] if done >= total else [])
        print(course.said(), file=sys.stderr, flush=True)

    with _watched(report):
        yield report


def shown(label: str) -> AbstractContextManager[Report]:
    """A bar where stderr is a terminal, a line that changes in a notebook, else lines."""
    if "ipykernel" in sys.modules:
        return notebook(label)
    return bar(label) if sys.stderr.isatty() else lines(label)


# The function that receives the reports is not passed on as an argument, since the loops lie deep below the public
# functions that have a ``progress`` argument, and what lies between does not use it. A context variable holds it.


Progress = Report | bool  # True is a bar
P = ParamSpec("P")
R = TypeVar("R")

_report: ContextVar[Report | None] = ContextVar("report", default=None)
# The step of a function of several, in a list that threads of the call share.
_step: ContextVar[list[str] | None] = ContextVar("step", default=None)


def begin_step(name: str, steps: Sequence[str]) -> None:
    """Name the step that what is reported from now on belongs to, by its place among all ``steps``."""
    held = _step.get()
    if held is not None:
        held[0] = f"{name} {steps.index(name) + 1} of {len(steps)}"


def step_of() -> str:
    """The step that is at work; empty for a function of one."""
    held = _step.get()
    return "" if held is None else held[0]


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
    token, of_step = _report.set(report), _step.set([""])
    try:
        yield
    finally:
        _report.reset(token)
        _step.reset(of_step)


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
