"""Progress of a long job: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

Report = Callable[[int, int, str], None]
_SECONDS_PER_LINE = 10.0


def rate_text(rate: float | None, unit: str) -> str:
    """``12.3 rows/s``, or per minute where it is slow; empty where nothing is known yet."""
    if not rate or rate <= 0:
        return ""
    if rate < 0.1:
        return f"{rate * 60:.2g} {unit}/min"
    return f"{rate:,.0f} {unit}/s" if rate >= 100 else f"{rate:.3g} {unit}/s"


def duration_text(seconds: float) -> str:
    """``1:02:03``."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """A bar with count, rate and time left; one for each unit that is reported."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(rate_text(task.finished_speed or task.speed, str(task.fields["unit"])))

    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[unit]}", markup=False),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    tasks: dict[str, Any] = {}

    def report(done: int, total: int, unit: str) -> None:
        if unit not in tasks:
            # What an earlier run had done is where the bar starts, and does not enter the rate.
            tasks[unit] = shown.add_task(label, total=total, completed=done, unit=unit)
        else:
            shown.update(tasks[unit], completed=done, total=total)

    with shown:
        yield report


@contextmanager
def lines(label: str) -> Iterator[Report]:
    """A line at the start, at most one in ten seconds, and one at the end of each unit."""
    begun: dict[str, tuple[float, int]] = {}
    last: dict[str, float] = {}

    def report(done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        first = unit not in begun
        start, already = begun.setdefault(unit, (now, done))
        if not first and done < total and now - last[unit] < _SECONDS_PER_LINE:
            return
        last[unit] = now
        text = f"{label}: {done:,} of {total:,} {unit}"
        if done > already and now > start:
            rate = (done - already) / (now - start)
            text += f", {rate_text(rate, unit)}, {duration_text((total - done) / rate)} left"
        typer.echo(text, err=True)
        sys.stderr.flush()

    yield report
