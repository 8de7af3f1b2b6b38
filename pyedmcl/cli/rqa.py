"""``pyedmcl rqa``: quantify the recurrence of a series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from . import recurrence as shared
from .cluster import client_at
from .files import check_result, write_result
from .talk import Talk

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
    theiler: shared.Theiler = 1,
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
    wanted = shared.parse_radius(radius, threshold)
    several = isinstance(wanted, list)
    if several and (plot is not None or lines is not None):
        raise typer.BadParameter(f"--radius {radius}: a picture shows one radius")
    check_result(output)
    shared.check_pictures(plot, lines)
    x, y = shared.states(input, column, columns, against, time_column, dataset)
    from ..plot.figure import as_label
    from ..recurrence.image.recurrence_plot import recurrence_plot
    from ..recurrence.measures import SHORT_NAMES
    from ..recurrence.rqa import rqa as quantify

    common: dict[str, Any] = {
        "m": m, "tau": tau, "metric": metric, "theiler": theiler, "convention": convention, "threshold": threshold,
        "regular": regular,
        "normalize": normalize, "radius_unit": radius_unit, "dtype": dtype, "exact": exact, "device": device,
    }  # fmt: skip
    with client_at(client) as workers, talk.progress("counting lines") as report:
        found: Any = quantify(
            x, y, radius=wanted, lmin=lmin, vmin=vmin, wmin=wmin, progress=report, checkpoint=checkpoint, join=join,
            part=part, client=workers, **common,
        )  # fmt: skip
    results = list(found) if several else [found]
    rows = [{"radius": result.radius, **result.to_dict()} for result in results]
    if output is not None:
        write_result(output, found, tuple(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
    name = shared.title(x, y)
    if plot is not None:
        with talk.progress("drawing") as report:
            drawn = recurrence_plot(x, y, radius=wanted, pixels=pixels, progress=report, **common)
        drawn.plot(plot, title=f"{as_label(name)}, m = {m}, tau = {tau}, RR = {results[0].recurrence_rate:.4g}")
    if lines is not None:
        results[0].plot(lines)
    counts = results[0].counts
    if any(result["DET"] == 0 or result["L"] != result["L"] for result in results):
        talk.remark(
            "no diagonal line of two points or more: the radius is too small for the data, so that DET is 0 and L is "
            "nothing. Try --threshold recurrence_rate --radius 0.05, or --radius-unit std --radius 0.2"
        )
    if several:
        header = ("radius", *_SHOWN)
        talk.table(header, [_row(result) for result in results], right=header)
    else:
        table = [(short, long.replace("_", " "), _number(results[0][short])) for short, long in SHORT_NAMES.items()]
        talk.table(("", "measure", "value"), table, right=("value",))
    files = "".join(f"; {path}" for path in (output, plot, lines) if path is not None)
    talk.summary(f"{name}: {counts.n_rows:,} x {counts.n_columns:,} points, convention {convention}{files}")
    talk.document(
        {
            "series": list(x.names),
            "against": None if y is None else y.names[0],
            "n_rows": counts.n_rows,
            "n_columns": counts.n_columns,
            "results": rows,
            "output": None if output is None else str(output),
            "plot": None if plot is None else str(plot),
            "lines": None if lines is None else str(lines),
            "provenance": dict(results[0].provenance),
        }
    )


def _row(result: Any) -> list[str]:
    radius = result.radius
    shown = ":".join(f"{part:.6g}" for part in radius) if isinstance(radius, tuple) else f"{radius:.6g}"
    return [shown, *(_number(result[name]) for name in _SHOWN)]


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _cell(value: Any) -> Any:
    return ":".join(map(repr, value)) if isinstance(value, tuple) else value
