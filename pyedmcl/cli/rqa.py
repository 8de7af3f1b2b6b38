"""``pyedmcl rqa``: quantify the recurrence of a series."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from . import recurrence as shared
from .cluster import client_at
from .files import check_pictures, check_result, write_result
from .talk import Talk

if TYPE_CHECKING:
    from ..data.series import Series
    from ..recurrence.result import RecurrenceResult

_SHOWN = ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT", "Vmax", "TREND")


def rqa(
    input: options.Input,
    radius: Annotated[
        str,
        typer.Option(
            "--radius", metavar="R[,R,...]", help=shared.RADIUS_HELP + " Several share one pass.", show_default=False,
            rich_help_panel="Recurrence",
        ),
    ],
    column: shared.Column = None,
    against: shared.Against = None,
    columns: shared.Together = None,
    m: shared.M = 1,
    tau: shared.Tau = 1,
    metric: shared.Metric = "euclidean",
    theiler: shared.Theiler = None,
    convention: shared.Convention = "pyrqa",
    threshold: shared.Threshold = "fixed",
    normalize: shared.Normalize = None,
    radius_unit: shared.RadiusUnit = "data",
    lmin: shared.Lmin = 2,
    vmin: shared.Vmin = 2,
    wmin: shared.Wmin = 2,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE.csv",
            help="Write the measures, a row per radius (.csv, .tsv, .json), or the whole result (.edm).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="RP.png", help="Draw the recurrence plot.", show_default=False),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="LINES.png", help="Draw the histograms of lines.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", show_default=False, rich_help_panel="Running",
            help="Keep finished rows there; the same command continues behind them. With --join, a folder.",
        ),
    ] = None,
    join: options.Join = False,
    part: options.Part = None,
    pixels: shared.Pixels = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    exact: shared.Exact = True,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    client: options.Client = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Quantify recurrence: how often, how long and how regularly the states of a series come back."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    radii = shared.parse_radius(radius, threshold)
    if isinstance(radii, list) and (plot is not None or lines is not None):
        raise typer.BadParameter(f"--radius {radius}: a picture shows one radius")
    check_result(output)
    check_pictures(plot, lines)
    x, y = shared.states(input, column, columns, against, time_column, dataset)
    from ..recurrence.rqa import rqa as quantify

    common: dict[str, Any] = {
        "m": m, "tau": tau, "metric": metric, "theiler": shared.parse_theiler(theiler), "convention": convention,
        "threshold": threshold,
        "regular": regular, "normalize": normalize, "radius_unit": radius_unit, "dtype": dtype, "exact": exact,
        "device": device,
    }  # fmt: skip
    with client_at(client) as workers, talk.progress("counting lines") as report:
        result: Any = quantify(
            x, y, radius=radii, lmin=lmin, vmin=vmin, wmin=wmin, progress=report, checkpoint=checkpoint, join=join,
            part=part, client=workers, **common,
        )  # fmt: skip
    results = list(result) if isinstance(radii, list) else [result]
    rows = [{"radius": one.radius, **one.to_dict()} for one in results]
    if output is not None:
        write_result(output, result, tuple(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
    if plot is not None:
        _draw(talk, plot, results[0], x, y, radius=radii, pixels=pixels, **common)
    if lines is not None:
        results[0].plot(lines)
    files = {name: None if path is None else str(path)
             for name, path in (("output", output), ("plot", plot), ("lines", lines))}  # fmt: skip
    _tell(talk, results, shared.title(x, y), convention, files)
    counts = results[0].counts
    talk.document({"series": list(x.names), "against": None if y is None else y.names[0], "n_rows": counts.n_rows,
                   "n_columns": counts.n_columns, "results": rows, **files,
                   "provenance": dict(results[0].provenance)})  # fmt: skip


def _draw(talk: Talk, path: Path, result: RecurrenceResult, x: Series, y: Series | None, **options: Any) -> None:
    """Draw the recurrence plot of the radius that was quantified."""
    from ..plot.figure import as_label
    from ..recurrence.image.recurrence_plot import recurrence_plot

    with talk.progress("drawing") as report:
        drawn = recurrence_plot(x, y, progress=report, **options)
    embedding = f"m = {options['m']}, tau = {options['tau']}"
    drawn.plot(path, title=f"{as_label(shared.title(x, y))}, {embedding}, RR = {result.recurrence_rate:.4g}")


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
