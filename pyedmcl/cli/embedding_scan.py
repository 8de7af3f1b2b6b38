"""``pyedmcl embedding-scan``: what helps to choose E and tau of each series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import load, parse_columns, parse_integers
from .talk import Talk

_ROWS = 40  # of the table that is printed


def embedding_scan(
    input: options.Input,
    E: Annotated[
        str, typer.Option("--E", metavar="E[,E,...]", help="Dimensions, or a range such as 1:10.",
                          rich_help_panel="Embedding")
    ] = "1:10",
    tau: Annotated[
        str, typer.Option("--tau", metavar="TAU[,TAU,...]", help="Lags, or a range.", rich_help_panel="Embedding")
    ] = "1:5",
    Tp: Annotated[
        str, typer.Option("--Tp", metavar="TP[,TP,...]", help="Steps ahead, or a range.", rich_help_panel="Embedding")
    ] = "1",
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="Take the smallest E whose skill is within this of the best.",
                     rich_help_panel="Embedding"),
    ] = 0.0,
    information: Annotated[
        str | None,
        typer.Option("--information", metavar="binned|kraskov", help="Also find the lag at which the mutual "
                     "information has its first minimum.", show_default=False, rich_help_panel="Embedding"),
    ] = None,
    false_neighbors: Annotated[
        bool,
        typer.Option("--false-neighbors", help="Also find the smallest E with 1 % of false nearest neighbours, at the "
                     "best tau.", rich_help_panel="Embedding"),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="TABLE.csv", help="Write the skill of all combinations "
                     "(.csv, .tsv, .json), or the whole result (.edm).", show_default=False),
    ] = None,
    plot: options.Picture = None,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find the E and tau at which each series predicts itself best, and what other criteria say of them."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    dims, lags, steps = (parse_integers(text, option) for text, option in ((E, "--E"), (tau, "--tau"), (Tp, "--Tp")))
    chosen_columns = parse_columns(columns)
    check_result(output)
    check_pictures(plot)
    series = load(input, chosen_columns, time_column, dataset)
    import pyedmcl

    with talk.progress("finding E and tau") as report:
        scan = pyedmcl.embedding_scan(
            series, E=dims, tau=lags, Tp=steps, exclusion_radius=exclusion_radius, knn=knn, neighbors=neighbors,
            recall=recall, regular=regular, progress=report, dtype=dtype, device=device,
        )  # fmt: skip
        best = scan.best(tolerance)
        rows = _best_rows(series.names, [best] if scan.single else best, scan.Tp)
        if information is not None:
            least = pyedmcl.mutual_information(
                series, method=information, regular=regular, device=device
            ).first_minimum()
            _add(rows, "first_minimum", dict(zip(series.names, _each(least), strict=True)))
        if false_neighbors:
            _add(rows, "unfolded", _unfolded(
                series, rows, dims, exclusion_radius=exclusion_radius, regular=regular, dtype=dtype, device=device
            ))
    header = tuple(rows[0])
    shown = [
        tuple(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()) for row in rows
    ]
    talk.table(header, shown[:_ROWS], right=header[1:])
    talk.cut(len(shown), _ROWS)
    if output is not None:
        write_result(output, scan, ("series", "E", "tau", "Tp", "rho"), _rows(scan))
        talk.summary(f"{output}: skill of {scan.rho.size:,} combinations")
    if plot is not None:
        scan.plot(str(plot))
        talk.summary(f"{plot}: skill over E and tau")
    talk.document({
        "output": None if output is None else str(output), "names": list(series.names), "axes": list(scan.axes),
        "E": list(scan.E), "tau": list(scan.tau), "Tp": list(scan.Tp), "rho": scan.rho, "best": rows,
        "provenance": dict(scan.provenance),
    })  # fmt: skip


def _each(value: Any) -> list[int]:
    import numpy as np

    return [int(one) for one in np.atleast_1d(value)]


def _best_rows(names: tuple[str, ...], found: list[dict[str, Any]], steps: tuple[int, ...]) -> list[dict[str, Any]]:
    """A row for each series and step ahead."""
    rows = []
    for name, best in zip(names, found, strict=True):
        for at, Tp in enumerate(steps):
            best_of_step = {key: value[at] if len(steps) > 1 else value for key, value in best.items()}
            rows.append({"series": name, "Tp": Tp, **best_of_step})
    return rows


def _add(rows: list[dict[str, Any]], name: str, values: dict[str, int]) -> None:
    for row in rows:
        row[name] = values[row["series"]]


def _unfolded(series: Any, rows: list[dict[str, Any]], dims: list[int], **options: Any) -> dict[str, int]:
    """The smallest dimension with few false neighbours, of each series at its best lag; 0 where there is none."""
    import pyedmcl


    lag_of = {row["series"]: row["tau"] for row in reversed(rows)}
    out: dict[str, int] = {}
    for tau in sorted(set(lag_of.values())):
        names = [name for name in series.names if lag_of[name] == tau]
        places = [series.names.index(name) for name in names]
        unfolded = pyedmcl.false_neighbors(
            series.part(*places), E_max=max(dims), tau=tau, **options
        )
        out |= dict(zip(names, _each(unfolded.dimension()), strict=True))
    return out


def _rows(scan: Any) -> list[list[Any]]:
    rho = scan.rho[None] if scan.single else scan.rho
    return [
        [name, E, tau, Tp, float(rho[i, j, k, at])]
        for i, name in enumerate(scan.names) for j, E in enumerate(scan.E) for k, tau in enumerate(scan.tau)
        for at, Tp in enumerate(scan.Tp)
    ]  # fmt: skip
