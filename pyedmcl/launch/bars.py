"""Progress of a long job as people see it: a bar on a terminal or in a notebook, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..device.programs import watcher

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
