"""What a command says and where: results on stdout, remarks and progress on stderr, JSON for scripts."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from .streams import printable, shown

if TYPE_CHECKING:
    from ..launch.bars import Report

_NAMED = 8  # series of a sentence


class Talk:
    """How one command talks.

    Parameters
    ----------
    quiet : bool
        No progress, no remarks, no summary.
    as_json : bool
        The result goes to stdout as one JSON document, which is then all of stdout.
    progress : bool or None
        Force or forbid progress; None shows it where stderr is a terminal.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, progress: bool | None = None) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._progress = progress

    def remark(self, text: str) -> None:
        """Something worth knowing, on stderr."""
        if not self.quiet:
            typer.echo(printable(text), err=True)

    def remark_on_arrows(self, n_series: int, arrows: int) -> None:
        """What arrows between pairs do not say, where one may pass through other series."""
        if arrows and n_series > 2:
            self.remark(
                "an arrow says that the cause is upstream of the effect, perhaps through other series: 'pyedmcl "
                "network' tells direct links from those"
            )

    def remark_on_surrogates(self, names: Sequence[str], reasons: Sequence[str]) -> None:
        """What the surrogates of each series keep; what is the same of several is said once. None have no reasons."""
        alike: dict[str, list[str]] = {}
        for name, reason in zip(names, reasons, strict=bool(reasons)):
            alike.setdefault(reason, []).append(name)
        for reason, own in alike.items():
            more = f" and {len(own) - _NAMED:,} more" if len(own) > _NAMED else ""
            self.remark(f"surrogates of {', '.join(own[:_NAMED])}{more}: {reason}")

    def summary(self, text: str) -> None:
        """The outcome in words, on stdout; left out for --quiet and --json."""
        if not (self.quiet or self.as_json):
            typer.echo(printable(text))

    def document(self, value: Any) -> None:
        """The result for a script: one JSON document on stdout, if it was asked for."""
        if self.as_json:
            typer.echo(json.dumps(plain(value), indent=1, allow_nan=False))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()) -> None:
        """A table that was asked for, on stdout; left out for --json. Columns named in ``right`` hold numbers."""
        if self.as_json:
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table

        # A pipe gets whole lines, whatever their length, and no frame.
        terminal = sys.stdout.isatty()
        console = Console(markup=False, highlight=False, emoji=False, width=None if terminal else 10_000)
        table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False)
        for name in header:
            table.add_column(shown(name), justify="right" if name in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(shown(str(cell)).replace("\n", "\\n") for cell in row))
        console.print(table)

    def cut(self, there: int, shown: int) -> None:
        """Say how many rows of a table were not shown, where there are more of them."""
        if there > shown and not self.as_json:
            self.remark(f"and {there - shown:,} more; -o writes all of them")

    def progress(self, label: str) -> AbstractContextManager[Report | None]:
        """A context that gives what to pass as ``progress=``: a report, or None where nothing is to be shown."""
        terminal = sys.stderr.isatty()
        if self.quiet or self._progress is False or (self._progress is None and not terminal):
            return nullcontext(None)
        from ..launch.bars import bar, lines

        return bar(label) if terminal else lines(label)


def plain(value: Any) -> Any:
    """``value`` in the types of JSON: NumPy's numbers as Python's, NaN and infinity as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
