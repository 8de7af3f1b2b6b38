"""How a tuning is watched: a live table on a terminal, a line for each problem in a log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..tuner.outcome import Outcome, Standing

_NOTE_WIDTH = 60
_COLUMNS = ("kernel", "problem", "tried", "bad", "default", "best", "gain", "")


class Board(Protocol):
    """Where standings are shown."""

    def show(self, standing: Standing) -> None:
        """The case at hand has changed."""

    def done(self, outcome: Outcome) -> None:
        """A case has ended."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


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


class Lines:
    """A line when a problem is done.

    Parameters
    ----------
    say : Callable
        Takes a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def show(self, standing: Standing) -> None:
        """Nothing: a log need not grow with every trial."""

    def done(self, outcome: Outcome) -> None:
        """One line."""
        standing = outcome.standing
        parts = [f"{outcome.case.kernel}, {outcome.case.name}: {standing.tried} tried"]
        if standing.trouble:
            parts.append(f"{len(standing.trouble)} cannot be used")
        if outcome.seconds:
            parts.append(f"{seconds_text(outcome.default_seconds)} -> {seconds_text(outcome.seconds)}")
            parts.append(f"{outcome.gain:.2f}x")
        if outcome.note:
            parts.append(first_line(outcome.note))
        self._say(", ".join(parts))


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
        self._outcomes: dict[str, Outcome] = {}
        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True,
                          get_renderable=self._render)  # fmt: skip

    def __enter__(self) -> Table:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, standing: Standing) -> None:
        """Take note; what is shown is drawn a few times in a second."""
        self._standings[standing.case.text()] = standing

    def done(self, outcome: Outcome) -> None:
        """Take note."""
        self._outcomes[outcome.case.text()] = outcome

    def _render(self) -> Any:
        from rich import box
        from rich.table import Table as Grid

        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, caption=self._caption(), caption_justify="left")
        for name in _COLUMNS:
            grid.add_column(name, justify="right" if name in ("tried", "bad", "default", "best", "gain") else "left")
        for text, standing in list(self._standings.items()):
            outcome = self._outcomes.get(text)
            gain = outcome.gain if outcome else standing.default / standing.best if standing.best else 1.0
            grid.add_row(
                standing.case.kernel, standing.case.name, str(standing.tried), str(len(standing.trouble)),
                seconds_text(standing.default), seconds_text(standing.best), f"{gain:.2f}x",
                first_line(outcome.note) if outcome else standing.phase,
            )  # fmt: skip
        return grid

    def _caption(self) -> str:
        told = f"{len(self._outcomes)} of {self._total} problems"
        for standing in reversed(list(self._standings.values())):
            if standing.trouble:
                parameters, status, why = standing.trouble[-1]
                words = ", ".join(f"{name}={value}" for name, value in parameters.items())
                return f"{told}; last bad one: {status}: {words}: {first_line(why)}"
        return told
