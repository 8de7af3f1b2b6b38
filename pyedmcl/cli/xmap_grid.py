"""``pyedmcl xmap-grid``: cross maps for all combinations of E, tau, Tp, theta and folds."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .cluster import client_at
from .files import check_pictures, check_table, write_table
from .inputs import load, load_groups, parse_columns, parse_integers, parse_ranges
from .talk import Talk
from .xmap import targets_of

_EMBEDDING = "Embedding"


def xmap_grid(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the result: a Zarr v3 store for each map.",
                     show_default=False),
    ],
    E: Annotated[
        str, typer.Option("--E", metavar="E[,E,...]", help="Dimensions, or a range such as 1:20.",
                          rich_help_panel=_EMBEDDING)
    ] = "1:10",
    tau: Annotated[
        str, typer.Option("--tau", metavar="TAU[,TAU,...]", help="Lags, or a range.", rich_help_panel=_EMBEDDING)
    ] = "1",
    Tp: Annotated[
        str, typer.Option("--Tp", metavar="TP[,TP,...]", help="Steps from library state to target value, or a range.",
                          rich_help_panel=_EMBEDDING)
    ] = "0",
    theta: Annotated[
        str | None,
        typer.Option("--theta", metavar="THETA[,THETA,...]", help="Predict by linear fits of such localisation.",
                     show_default=False, rich_help_panel=_EMBEDDING),
    ] = None,
    saturation: Annotated[
        float,
        typer.Option("--saturation", metavar="TOLERANCE", help="For --table and --plot: the smallest E whose skill is "
                     "within this of the best, of each pair.", rich_help_panel=_EMBEDDING),
    ] = 0.02,
    table: Annotated[
        Path | None,
        typer.Option("--table", metavar="TABLE.csv", help="Write skill and E of each pair (.csv, .tsv, .json).",
                     show_default=False),
    ] = None,
    plot: options.Picture = None,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    targets: options.Targets = None,
    groups: options.Groups = None,
    lib: options.Library = None,
    pred: options.Predicted = None,
    folds: options.Folds = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--no-resume", help="Continue a result that is there, or remove it and start anew.",
                     rich_help_panel="Running"),
    ] = True,
    join: options.Join = False,
    part: options.Part = None,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    precision: options.Precision = "full",
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    client: options.Client = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Map all pairs of series for many embeddings at once, and find the E at which the skill of each pair saturates.

    After an interruption the same command continues where it ended.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    dims, lags, steps = (parse_integers(text, option) for text, option in ((E, "--E"), (tau, "--tau"), (Tp, "--Tp")))
    thetas = None if theta is None else _numbers(theta)
    chosen_columns = parse_columns(columns)
    if table is not None:
        check_table(table)
    check_pictures(plot)
    if (table is not None or plot is not None) and len(dims) < 2:
        raise typer.BadParameter("--table and --plot show the E at which skill saturates: --E needs several values")
    from ..edm.maps.xmap_grid_result import as_tolerance

    as_tolerance(saturation, "saturation")
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if targets is None else targets_of(input, targets, time_column, dataset)
    import pyedmcl

    with warnings.catch_warnings(), client_at(client) as workers, talk.progress("cross mapping") as report:
        grid = pyedmcl.xmap_grid(
            series, E=dims, tau=lags if len(lags) > 1 else lags[0], Tp=steps if len(steps) > 1 else steps[0],
            theta=thetas, targets=target_series, groups=labels, regular=regular,
            exclusion_radius=exclusion_radius, knn=knn, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), folds=folds,
            out=output, resume=resume, join=join, part=part,
            neighbors=neighbors, recall=recall, progress=report, precision=precision, dtype=dtype,
            device=device, client=workers,
        )  # fmt: skip
    lengths = " x ".join(f"{len(values)} {name}" for name, values in grid.axes.items())
    talk.summary(f"{output}: maps of {grid.rho.shape[-2]:,} x {grid.rho.shape[-1]:,} pairs for {lengths}")
    if table is not None or plot is not None:
        _saturation(grid, saturation, table, plot, talk)
    talk.document({
        "output": str(output), "axes": {name: list(values) for name, values in grid.axes.items()},
        "fixed": dict(grid.fixed), "names": list(grid.names),
        **({} if grid.targets is None else {"targets": list(grid.targets)}), "provenance": dict(grid.provenance),
    })  # fmt: skip


def _saturation(grid: Any, tolerance: float, table: Path | None, plot: Path | None, talk: Talk) -> None:
    folded = grid.mean("fold") if "fold" in grid.axes else grid
    saturated = folded.saturation(tolerance)
    if table is not None:
        frame = saturated.to_frame()
        write_table(table, tuple(frame.columns), frame.itertuples(index=False, name=None))
        talk.summary(f"{table}: skill and E of {len(frame):,} pairs")
    if plot is not None:
        folded.plot(str(plot))
        talk.summary(f"{plot}: skill over E")


def _numbers(text: str) -> float | list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--theta {text!r}: numbers such as 0,1,2 are needed") from None
    return values if len(values) > 1 else values[0]
