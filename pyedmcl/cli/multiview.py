"""``pyedmcl multiview``: predict a series from many embeddings of a system, averaging the best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import load, parse_columns, parse_ranges
from .simplex import times_of_rows
from .smap import Ahead
from .talk import Talk

_HEADER = ("time", "observed", "predicted", "variance")


def multiview(
    input: options.Input,
    target: Annotated[
        str,
        typer.Option("--target", metavar="Y", help="The series that is predicted: a name, or digits for a position.",
                     show_default=False),
    ],
    D: Annotated[
        int | None,
        typer.Option("--D", help="Coordinates of a view (default: the number of series).", show_default=False,
                     rich_help_panel="Embedding"),
    ] = None,
    E: Annotated[
        int, typer.Option("--E", help="Lags of each series to choose from.", rich_help_panel="Embedding")
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PREDICTIONS.csv", show_default=False,
                     help="Write time, observed, predicted and variance between views (.csv, .tsv, .json), or the "
                     "whole result (.edm)."),
    ] = None,
    views: Annotated[
        int | None,
        typer.Option("--views", help="How many are averaged (default: the square root of their number).",
                     show_default=False),
    ] = None,
    exclude_target: Annotated[bool, typer.Option("--exclude-target", help="No view holds the target itself.")] = False,
    picture: options.Picture = None,
    tau: options.Tau = 1,
    Tp: Ahead = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    lib: options.Library = None,
    pred: options.Predicted = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict a series from every choice of D lagged series, averaging the views that predict best."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture)
    names = parse_columns(columns)
    # Digits count the columns of the file, so that one series may be asked for in two ways.
    target_name = load(input, [target], time_column, dataset).names[0]
    series = load(input, names, time_column, dataset)
    used = None if names is None else list(series.names)
    if names is not None and target_name not in series.names:
        series = load(input, [*names, target], time_column, dataset)
    import numpy as np

    import pyedmcl

    with talk.progress("predicting") as report:
        result = pyedmcl.multiview(
            series, target_name, D=D, E=E, tau=tau, Tp=Tp, knn=knn, n_views=views, exclusion_radius=exclusion_radius,
            exclude_target=exclude_target, columns=used, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), progress=report, dtype=dtype,
            regular=regular, device=device,
        )  # fmt: skip
    if output is not None:
        values = [np.asarray(getattr(result, name)).tolist() for name in _HEADER[1:]]
        write_result(output, result, _HEADER, zip(times_of_rows(series, np.asarray(result.time)), *values, strict=True))
    if picture is not None:
        result.plot(str(picture))
    skill = {name: float(getattr(result, name)) for name in ("rho", "mae", "rmse")}
    words = ", ".join(f"{name} = {value:.5g}" for name, value in skill.items())
    where = f"; predictions in {output}" if output is not None else ""
    talk.summary(f"{target_name}: {words} from the best {len(result.views)} of {result.n_tried:,} views{where}")
    talk.table(["view", "rho of the library"], [[" ".join(view), f"{rho:.4f}"] for view, rho in
                                                zip(result.views, result.view_rho, strict=True)])  # fmt: skip
    talk.document({"target": target_name, "D": result.E, "E": E, **skill, "n_tried": result.n_tried,
                   "views": [{"coordinates": list(view), "rho": rho} for view, rho in
                             zip(result.views, result.view_rho.tolist(), strict=True)],
                   "output": None if output is None else str(output)})  # fmt: skip
