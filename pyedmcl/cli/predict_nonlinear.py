"""``pyedmcl predict-nonlinear``: forecast skill against the localisation of S-map."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import parse_ranges
from .smap import (
    Ahead,
    Columns,
    Dimension,
    Embedded,
    Neighbours,
    Target,
    chosen,
    parse_thetas,
)
from .talk import Talk

_HEADER = ("theta", "rho", "mae", "rmse")


def predict_nonlinear(
    input: options.Input,
    E: Dimension = None,
    column: Columns = None,
    target: Target = None,
    theta: Annotated[
        str | None,
        typer.Option("--theta", metavar="T,T,...", help="Localisations to try (default: 15 of them, 0.01 to 9).",
                     show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SKILL.csv",
                     help="Write theta, rho, mae and rmse (.csv, .tsv, .json), or the whole result (.edm).",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
    tau: options.Tau = 1,
    Tp: Ahead = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: Neighbours = None,
    embedded: Embedded = False,
    lib: options.Library = None,
    pred: options.Predicted = None,
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
    """Find out whether local linear fits predict better than a global one: skill of S-map over theta."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture)
    _, embedded_series, target_series = chosen(input, column, target, time_column, dataset)
    import pyedmcl

    from ..edm.forecasts.predict_nonlinear import THETAS

    with talk.progress("fitting") as report:
        result = pyedmcl.predict_nonlinear(
            embedded_series, target=target_series, E=E, tau=tau, Tp=Tp, knn=knn, exclusion_radius=exclusion_radius,
            embedded=embedded, lib_range=parse_ranges(lib, "--lib"), pred_range=parse_ranges(pred, "--pred"),
            theta=THETAS if theta is None else parse_thetas(theta), progress=report, dtype=dtype,
            regular=regular, device=device,
        )  # fmt: skip
    rows = list(zip(*(getattr(result, name).tolist() for name in _HEADER), strict=True))
    if output is not None:
        write_result(output, result, _HEADER, rows)
    if picture is not None:
        result.plot(str(picture))
    if not quiet:
        talk.table(_HEADER, [[f"{value:.6g}" for value in row] for row in rows], right=_HEADER)
    where = f"; table in {output}" if output is not None else ""
    gain = float(result.rho.max() - result.rho[result.theta.argmin()])
    talk.summary(f"best theta = {result.best:g}; rho gains {gain:.4g} over the most global fit{where}")
    talk.document(
        {"columns": list(embedded_series.names), "E": result.E, "best": result.best,
         "skill": [dict(zip(_HEADER, row, strict=True)) for row in rows],
         "output": None if output is None else str(output)}
    )  # fmt: skip
