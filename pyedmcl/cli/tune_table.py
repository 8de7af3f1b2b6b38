"""How a tuning is watched: a live table on a terminal, a line for each problem in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tuner.outcome import Standing
    from ..tuning.database import Database
    from .talk import Talk

_NOTE_WIDTH = 60
_COLUMNS = ("kernel", "problem", "tried", "bad", "default", "best", "gain", "")
#: Columns of numbers.
NUMBERS = ("default", "best", "gain", "tried", "bad")


def seconds_text(seconds: float) -> str:
    """``12.3 ms``; empty where nothing is known."""
    if not 0 < seconds < float("inf"):
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def first_line(text: str) -> str:
    """The beginning of a reason."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _NOTE_WIDTH * 2 else f"{line[: _NOTE_WIDTH * 2]}..."


class Table:
    """A live table on stderr.

    Parameters
    ----------
    total : int
        Problems that are planned.
    """

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._total = total
        self._standings: dict[str, Standing] = {}
        self.live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True,
                         get_renderable=self._render)  # fmt: skip

    def show(self, standing: Standing) -> None:
        """Take note; what is shown is drawn a few times in a second."""
        self._standings[standing.case.text()] = standing

    def _render(self) -> Any:
        from rich import box
        from rich.table import Table as Grid

        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, caption=self._caption(), caption_justify="left")
        for name in _COLUMNS:
            grid.add_column(name, justify="right" if name in NUMBERS else "left")
        for standing in list(self._standings.values()):
            grid.add_row(
                standing.case.kernel, standing.case.name, str(standing.tried), str(len(standing.trouble)),
                seconds_text(standing.default_seconds), seconds_text(standing.seconds), f"{standing.gain:.2f}x",
                first_line(standing.note) if standing.done else standing.phase,
            )  # fmt: skip
        return grid

    def _caption(self) -> str:
        progress = f"{sum(standing.done for standing in self._standings.values())} of {self._total} problems"
        for standing in reversed(list(self._standings.values())):
            if standing.trouble:
                return f"{progress}; last bad one: {trouble_text(standing.trouble[-1])}"
        return progress


@contextmanager
def watched(talk: Talk, total: int) -> Iterator[Callable[[Standing], None]]:
    """What to call with each change while ``total`` problems are tuned: a table on a terminal, else a log."""
    if sys.stderr.isatty() and not talk.quiet:
        table = Table(total)
        with table.live:
            yield table.show
    else:  # a log need not grow with every trial
        yield lambda standing: talk.remark(line(standing)) if standing.done else None


def told_place(talk: Talk, database: Database) -> str | None:
    """Say where the outcome is kept, and what is wrong with that; returns the path of a file."""
    for problem in database.problems:
        talk.remark(problem)
    place = None if database.in_memory else str(database.path)
    talk.summary(f"kept in {place or 'memory only'}")
    return place


def line(standing: Standing) -> str:
    """How a problem ended, for a log."""
    parts = [f"{standing.case.kernel}, {standing.case.name}: {standing.tried} tried"]
    if standing.trouble:
        parts.append(f"{len(standing.trouble)} cannot be used")
    if standing.seconds:
        parts.append(f"{seconds_text(standing.default_seconds)} -> {seconds_text(standing.seconds)}")
        parts.append(f"{standing.gain:.2f}x")
    if standing.note:
        parts.append(first_line(standing.note))
    return ", ".join(parts)


def trouble_text(trouble: tuple[Mapping[str, Any], str, str]) -> str:
    """What cannot be used, how it ended, and the beginning of the reason."""
    parameters, status, why = trouble
    words = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{status}: {words}: {first_line(why)}"
