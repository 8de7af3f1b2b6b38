"""``pyedmcl predict-interval``: forecast skill against the steps ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import parse_integers, parse_ranges
from .smap import Columns, Dimension, Embedded, Target, chosen
from .talk import Talk

_HEADER = ("Tp", "rho", "mae", "rmse")


def predict_interval(
    input: options.Input,
    E: Dimension = None,
    column: Columns = None,
    target: Target = None,
    Tp: Annotated[
        str, typer.Option("--Tp", metavar="T,T,...|A:B", help="Steps ahead: a list, or from A to B.")
    ] = "1:10",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SKILL.csv",
                     help="Write the skill per Tp (.csv, .tsv, .json), or the whole result (.edm).",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
    tau: options.Tau = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
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
    """Predict a series several steps ahead: how fast does the skill of its nearest neighbours fade?"""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture)
    steps = parse_integers(Tp, "--Tp")
    _, states, target_series = chosen(input, column, target, time_column, dataset)
    import pyedmcl

    with talk.progress("predicting") as report:
        result = pyedmcl.predict_interval(
            states, target=target_series, Tp=steps, E=E, tau=tau, knn=knn, exclusion_radius=exclusion_radius,
            embedded=embedded,
            lib_range=parse_ranges(lib, "--lib"), pred_range=parse_ranges(pred, "--pred"), progress=report, dtype=dtype,
            regular=regular, device=device,
        )  # fmt: skip
    rows = list(zip(*(getattr(result, name).tolist() for name in ("values", "rho", "mae", "rmse")), strict=True))
    if output is not None:
        write_result(output, result, _HEADER, rows)
    if picture is not None:
        result.plot(str(picture))
    what = (target_series or states).names[0]
    best = "no skill is defined" if result.best is None else f"best at Tp = {result.best}"
    talk.summary(f"{'+'.join(states.names)} -> {what}, E = {result.E}: {best}")
    if not quiet:
        talk.table(_HEADER, [[str(t), *(f"{v:.5g}" for v in skill)] for t, *skill in rows], right=_HEADER)
    talk.document({"columns": list(states.names), "target": what, "E": result.E, "best": result.best,
                   "skill": [dict(zip(_HEADER, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip
