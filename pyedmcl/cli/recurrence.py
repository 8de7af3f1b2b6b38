"""``pyedmcl rqa``, ``rqa-batch`` and ``recurrence-plot``, and what these commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .methods import Asked, derived
from .options import parse_columns, part_of, shown_names
from .output import Talk, check_pictures, check_place, write_bytes

if TYPE_CHECKING:
    from ..recurrence.measures import RecurrenceResult
    from ..series.series import Series


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


def parse_radius(asked: Asked) -> Any:
    """The radius as :func:`pyedmcl.rqa` takes it: one value, or a list for ``0.5,0.7``."""
    text = asked.words["radius"]
    parse, form = _FORMS.get(asked.words["threshold"], (float, "a number"))
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
    asked: Asked, column: str | None, together: str | None, against: str | None
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
    series = asked.load(chosen_columns)
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


# ``pyedmcl rqa``: quantify the recurrence of a series.


_SHOWN = ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT", "Vmax", "TREND")


@derived("rqa", "recurrence_plot", file=("TABLE.csv", "the measures, a row per radius"))
def rqa(
    asked: Asked, column: Column = None, against: Against = None, columns: Together = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", metavar="RP.png", help="Draw the recurrence plot.", show_default=False),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="LINES.png", help="Draw the histograms of lines.", show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Quantify recurrence: how often, how long and how regularly the states of a series come back."""
    radii = parse_radius(asked)
    if isinstance(radii, list) and (picture is not None or lines is not None):
        raise typer.BadParameter(f"--radius {asked.words['radius']}: a picture shows one radius")
    x, y = states(asked, column, columns, against)
    result = asked.call(x, y, radius=radii, doing="counting lines")
    results = list(result) if isinstance(radii, list) else [result]
    rows = [{"radius": one.radius, **one.to_dict()} for one in results]
    asked.write(result, tuple(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
    if picture is not None:
        _draw(asked, x, y, radii, results[0])
    if lines is not None:
        results[0].plot(lines)
    files = {name: None if path is None else str(path)
             for name, path in (("output", asked.output), ("plot", picture), ("lines", lines))}  # fmt: skip
    _tell(asked.talk, results, title(x, y), asked.words["convention"], files)
    counts = results[0].counts
    asked.document({"series": list(x.names), "against": None if y is None else y.names[0], "n_rows": counts.n_rows,
                    "n_columns": counts.n_columns, "results": rows, **files,
                    "provenance": dict(results[0].provenance)})  # fmt: skip


def _draw(asked: Asked, x: Series, y: Series | None, radius: Any, result: RecurrenceResult) -> None:
    """Draw the recurrence plot of the radius that was quantified."""
    from ..plot.figure import as_label

    drawn = asked.call(x, y, function="recurrence_plot", radius=radius, doing="drawing")
    embedding = f"m = {asked.words['m']}, tau = {asked.words['tau']}"
    asked.draw(drawn.plot, title=f"{as_label(title(x, y))}, {embedding}, RR = {result.recurrence_rate:.4g}")


def _tell(
    talk: Talk, results: list[RecurrenceResult], name: str, convention: str, files: Mapping[str, str | None]
) -> None:
    """Show the measures: all of them for one radius, the usual ones side by side for several."""
    from ..recurrence.measures import SHORT_NAMES

    if len(results) > 1:
        header = ("radius", *_SHOWN)
        talk.table(header, [_row(result) for result in results], right=header)
    else:
        table = [(short, long.replace("_", " "), _number(results[0][short])) for short, long in SHORT_NAMES.items()]
        talk.table(("", "measure", "value"), table, right=("value",))
    written = "".join(f"; {path}" for path in files.values() if path is not None)
    counts = results[0].counts
    talk.summary(f"{name}: {counts.n_rows:,} x {counts.n_columns:,} points, convention {convention}{written}")


def _row(result: Any) -> list[str]:
    radius = result.radius
    shown = ":".join(f"{part:.6g}" for part in radius) if isinstance(radius, tuple) else f"{radius:.6g}"
    return [shown, *(_number(result[name]) for name in _SHOWN)]


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _cell(value: Any) -> Any:
    return ":".join(map(repr, value)) if isinstance(value, tuple) else value


# ``pyedmcl rqa-batch``: quantify the recurrence of many series.


_BATCH_SHOWN = ("RR", "DET", "L", "ENTR", "LAM", "TT")
_ROWS = 20  # of the table that is printed


@derived("rqa_batch", file=("TABLE.csv", "all measures, a row per series and radius"), table=True)
def rqa_batch(
    asked: Asked,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="A,B,...", help="Cross recurrence of each of --columns with one of these series.",
            show_default=False,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Quantify the recurrence of each series of a file, or of each group of its rows, in one run."""
    radii, talk = parse_radius(asked), asked.talk
    keys, others = parse_columns(asked.words["groups"]) or [], parse_columns(against)
    if others is not None and (asked.columns is None or len(asked.columns) != len(others)):
        raise typer.BadParameter("--against needs --columns, and as many series as these")
    series = asked.table()
    y = None if others is None else asked.load(others)
    result = asked.call(series, y, radius=radii, doing="counting lines")
    table = _table(result, keys, series.names)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    asked.write(result, tuple(table), [[_cell(value) for value in row.values()] for row in rows])
    _show(talk, result, table, [*keys, "series", "radius_used"])
    n, convention = len(result.x), asked.words["convention"]
    written = "" if asked.output is None else f"; {asked.output}"
    talk.summary(f"{n:,} series, {len(rows):,} results, convention {convention}{written}")
    asked.document({"series": list(series.names), "against": None if y is None else list(y.names), "groups": keys,
                    "results": rows, "provenance": dict(result.provenance)})  # fmt: skip


def _table(found: Any, keys: list[str], names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Columns of all results, with the names of groups and series."""
    out = found.to_dict()
    groups = out.pop("group", [])
    named = {keys[0]: groups} if len(keys) == 1 else {
        key: [group[at] for group in groups] for at, key in enumerate(keys)
    }  # fmt: skip
    out["series"] = [names[place] for place in out["series"]]
    return {**named, **out}


def _show(talk: Talk, found: Any, table: dict[str, list[Any]], first: list[str]) -> None:
    measures = {name: found.measure(name).tolist() for name in _BATCH_SHOWN}
    shown = [table[name] for name in first] + list(measures.values())
    rows = [[_text(value) for value in row] for row in zip(*(column[:_ROWS] for column in shown), strict=True)]
    talk.table((*first, *measures), rows, right=("radius_used", *measures))
    talk.cut(len(table["series"]), _ROWS)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ``pyedmcl recurrence-plot``: the plot alone, of series of any length.


@derived("distance_plot", "recurrence_plot")
def recurrence_plot(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="RP.png", show_default=False,
            help="The picture (.png, .pdf, .svg), the pixels as numbers (.npy), or the whole result (.edm).",
        ),
    ],
    column: Column = None,
    against: Against = None,
    columns: Together = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Only the pixels, without axes; .png, and needs no matplotlib.")
    ] = False,
    black: Annotated[
        float | None,
        typer.Option("--black", metavar="SHARE", help="Share of recurrent cells drawn black. (default: chosen)",
                     show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Draw which states come back when, or, without --radius, how far apart they are."""
    words = asked.words
    if words["radius"] is None and black is not None:
        raise typer.BadParameter("--black is a share of recurrent cells: give --radius")
    function = "distance_plot" if words["radius"] is None else "recurrence_plot"
    asked.refuse_unused(function)
    _check(output, plain)
    radii = None if words["radius"] is None else parse_radius(asked)
    x, y = states(asked, column, columns, against)
    drawn = asked.call(x, y, function=function, radius=radii, doing="drawing")
    values = drawn.means if radii is None else drawn.counts
    shade = {} if black is None else {"black": black}
    from ..plot.figure import as_label

    if output.suffix.lower() == ".npy":
        _save_numbers(output, values)
    elif output.suffix.lower() == ".edm":
        drawn.save(output)
    elif plain:
        drawn.save(output, **shade)
    else:
        drawn.plot(output, title=f"{as_label(title(x, y))}, m = {words['m']}, tau = {words['tau']}", **shade)
    down, across = values.shape
    asked.talk.summary(
        f"{output}: {across:,} x {down:,} pixels of {drawn.n_columns:,} x {drawn.n_rows:,} "
        + ("distances" if radii is None else "cells")
    )
    asked.document({
        "series": list(x.names), "against": None if y is None else y.names[0], "pixels": [down, across],
        "n_rows": drawn.n_rows, "n_columns": drawn.n_columns, "radius": None if radii is None else drawn.radius,
        "recurrent": None if radii is None else int(drawn.counts.sum()), "provenance": dict(drawn.provenance),
    })  # fmt: skip


def _check(output: Path, plain: bool) -> None:
    """Refuse, before anything is computed, what cannot be written."""
    if output.suffix.lower() in (".npy", ".edm"):
        check_place(output)
    elif plain:
        from ..plot.figure import check_png

        check_png(output)
    else:
        check_pictures(output)


def _save_numbers(path: Path, values: Any) -> None:
    import io

    import numpy as np

    memory = io.BytesIO()
    np.save(memory, values)
    write_bytes(path, memory.getbuffer())
