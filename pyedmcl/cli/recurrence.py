"""What the recurrence commands share: options, and from a file's series to the points of a plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .inputs import load, parse_columns, parse_or_auto, part_of, shown_names

if TYPE_CHECKING:
    from ..data.series import Series

_STATES = "Recurrence"

Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="X", help="The series: a name, or digits for a position from 0. (default: the only one)",
        show_default=False,
    ),
]  # fmt: skip
Against = Annotated[
    str | None,
    typer.Option("--against", metavar="Y", help="Cross recurrence of X with this series.", show_default=False),
]
Together = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B,...", help="In place of --column: several series whose values at one time are one "
        "state ('all' takes every series).", show_default=False,
    ),
]  # fmt: skip
M = Annotated[int, typer.Option("--m", help="Embedding dimension: values of a state.", rich_help_panel=_STATES)]
Tau = Annotated[int, typer.Option("--tau", help="Lag between them, in steps.", rich_help_panel=_STATES)]
Metric = Annotated[
    str,
    typer.Option(
        "--metric", metavar="NAME", help="Distance of states, such as euclidean, maximum or manhattan "
        "(all of them: docs/recurrence.md).", rich_help_panel=_STATES,
    ),
]
Theiler = Annotated[
    str | None,
    typer.Option(
        "--theiler", metavar="W|auto", help="Cells |i - j| < W are left out of lines; auto: where the autocorrelation "
        "falls below 1/e. (default: 1; of --against 0, but 1 with pyrqa)", show_default=False,
        rich_help_panel=_STATES,
    ),
]
Convention = Annotated[
    str,
    typer.Option(
        "--convention", metavar="pyrqa|accrqa|recurrenceanalysis|crqa|crqa-2.1", rich_help_panel=_STATES,
        help="Whose rules (docs/recurrence.md).",
    ),
]  # fmt: skip
Threshold = Annotated[
    str,
    typer.Option(
        "--threshold", metavar="fixed|corridor|recurrence_rate|neighbours", help="What --radius holds.",
        rich_help_panel=_STATES,
    ),
]  # fmt: skip
Normalize = Annotated[
    str | None,
    typer.Option(
        "--normalize", metavar="zscore|range", help="Bring each series to mean 0 and deviation 1, or to 0, ..., 1.",
        show_default=False, rich_help_panel=_STATES,
    ),
]  # fmt: skip
RadiusUnit = Annotated[
    str,
    typer.Option(
        "--radius-unit", metavar="data|std|range|max_distance|mean_distance", help="What --radius is a multiple of.",
        rich_help_panel=_STATES,
    ),
]  # fmt: skip
Lmin = Annotated[int, typer.Option("--lmin", help="Least diagonal line.", rich_help_panel=_STATES)]
Vmin = Annotated[int, typer.Option("--vmin", help="Least vertical line.", rich_help_panel=_STATES)]
Wmin = Annotated[int, typer.Option("--wmin", help="Least white vertical line.", rich_help_panel=_STATES)]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact/--no-exact", help="Decide cells near the radius in float64, whatever --dtype says.",
        rich_help_panel="Running",
    ),
]  # fmt: skip
Pixels = Annotated[
    int | None,
    typer.Option(
        "--pixels", min=1, help="Pixels of the longer side. (default: a cell each up to 2000)", show_default=False
    ),
]
RADIUS_HELP = "In the unit of the data; by --threshold, a corridor 0.2:0.5, a rate, or a number of neighbours."


def parse_theiler(text: str | None) -> int | str | None:
    """The Theiler window as :func:`pyedmcl.rqa` takes it."""
    return None if text is None else parse_or_auto(text, "--theiler", 0)


def parse_radius(text: str, threshold: str) -> Any:
    """The radius as :func:`pyedmcl.rqa` takes it: one value, or a list for ``0.5,0.7``."""
    parse, form = _FORMS.get(threshold, (float, "a number"))
    try:
        values = [parse(item) for item in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--radius {text}: {form} is needed, or several with commas") from None
    return values if len(values) > 1 else values[0]


def _corridor(text: str) -> tuple[float, float]:
    inner, outer = (float(part) for part in text.split(":"))
    return inner, outer


_FORMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "corridor": (_corridor, "a pair such as 0.2:0.5"),
    "neighbours": (int, "a number of neighbours"),
}


def states(
    path: Path, column: str | None, together: str | None, against: str | None, time_column: str | None,
    dataset: str | None,
) -> tuple[Series, Series | None]:  # fmt: skip
    """The series that are embedded and, for cross recurrence, the other ones.

    Raises
    ------
    InputError
        For what cannot be read.
    typer.BadParameter
        Options that contradict each other, or do not say which series is meant.
    """
    if together is not None and column is not None:
        raise typer.BadParameter("--columns stands in place of --column: give one of them")
    if together is not None and against is not None:
        raise typer.BadParameter("--against compares single series: use it with --column")
    if against is not None and column is None:
        raise typer.BadParameter("--against needs --column")
    chosen_columns = None if together in (None, "all") else parse_columns(together)
    if column is not None:
        chosen_columns = [column, *([against] if against not in (None, column) else [])]
    series = load(path, chosen_columns, time_column, dataset)
    if column is None and together is None and series.n_series > 1:
        raise typer.BadParameter(
            f"--column is needed to say which of these series is meant: {shown_names(series)} (or --columns, for "
            "several as a state)"
        )
    if against is None:
        return series, None
    return part_of(series, 0), part_of(series, series.n_series - 1)


def title(x: Series, y: Series | None) -> str:
    """What was analysed, in few words."""
    shown = ", ".join(x.names[:3]) + (f" and {x.n_series - 3} more" if x.n_series > 3 else "")
    return shown if y is None else f"{shown} (x) and {y.names[0]} (y)"
