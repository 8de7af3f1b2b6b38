"""``pyedmcl smap``: predict a series by locally weighted linear fits, with their slopes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import load, load_groups, parse_columns, parse_ranges, part_of, shown_names
from .simplex import times_of_rows
from .talk import Talk

if TYPE_CHECKING:
    from ..data.series import Series

Columns = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="X[,Y,...]", show_default=False,
        help="The series that are embedded: names, or digits for positions from 0.",
    ),
]  # fmt: skip
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="Y", help="The series that is predicted. (default: the embedded one)",
                 show_default=False),
]  # fmt: skip
Dimension = Annotated[
    int | None,
    typer.Option("--E", help="Embedding dimension; left out with --embedded.", show_default=False,
                 rich_help_panel="Embedding"),
]  # fmt: skip
Ahead = Annotated[int, typer.Option("--Tp", help="Steps ahead to predict.", rich_help_panel="Embedding")]
Embedded = Annotated[
    bool,
    typer.Option("--embedded", help="The columns are the coordinates themselves.", rich_help_panel="Embedding"),
]
Neighbours = Annotated[
    int | None,
    typer.Option("--knn", help="Library rows in a fit, the nearest ones (default: all).", show_default=False,
                 rich_help_panel="Embedding"),
]  # fmt: skip


def parse_thetas(text: str) -> float | list[float]:
    """One theta, or several with commas between them."""
    try:
        values = [float(item) for item in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--theta {text!r}: a number of at least 0, or several such as 0,1,2") from None
    return values if len(values) > 1 else values[0]


def chosen(
    input: Path, column: str | None, target: str | None, time_column: str | None, dataset: str | None
) -> tuple[Series, Any, Any]:
    """(all series read, those embedded, the target or None)."""
    names = parse_columns(column)
    columns = None if names is None else [*names, *([target] if target is not None and target not in names else [])]
    series = load(input, columns, time_column, dataset)
    if names is None:
        if series.n_series > 1 or target is not None:
            raise typer.BadParameter(f"--column is needed to say which of these series to embed: {shown_names(series)}")
        return series, series, None
    lib = part_of(series, *range(len(names)))
    if target is None or [target] == names:
        return series, lib, None
    place = names.index(target) if target in names else series.n_series - 1
    return series, lib, part_of(series, place)


def smap(
    input: options.Input,
    E: Dimension = None,
    column: Columns = None,
    target: Target = None,
    theta: Annotated[
        str, typer.Option("--theta", metavar="T[,T,...]", help="Localisation; 0 is one linear fit for all rows.")
    ] = "0",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PREDICTIONS.csv", show_default=False,
            help="Write (theta,) time, observed, predicted, variance, intercept and slopes (.csv, .tsv, .json), or the "
            "whole result (.edm).",
        ),
    ] = None,
    picture: options.Picture = None,
    coefficients: Annotated[
        Path | None,
        typer.Option("--plot-coefficients", metavar="FILE", help="Draw intercept and slopes over time.",
                     show_default=False),
    ] = None,
    tau: options.Tau = 1,
    Tp: Ahead = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: Neighbours = None,
    embedded: Embedded = False,
    lib: options.Library = None,
    pred: options.Predicted = None,
    solver: Annotated[
        str, typer.Option("--solver", metavar="svd|ridge|lasso|elasticnet", help="How fits are solved.")
    ] = "svd",
    alpha: Annotated[float, typer.Option("--alpha", help="Penalty of the solvers other than svd.")] = 1.0,
    generate: Annotated[
        int, typer.Option("--generate", metavar="STEPS", help="Continue the series by this many steps instead.")
    ] = 0,
    groups: options.Groups = None,
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
    """Predict each row by a linear fit weighted by nearness (S-map); the slopes are the local Jacobian."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture, coefficients)
    thetas = parse_thetas(theta)
    labels = load_groups(input, parse_columns(column), groups, dataset, needed="--column")
    series, embedded_series, target_series = chosen(input, column, target, time_column, dataset)
    import numpy as np

    import pyedmcl

    with talk.progress("fitting") as report:
        result = pyedmcl.smap(
            embedded_series, target=target_series, E=E, tau=tau, Tp=Tp, theta=thetas, knn=knn,
            exclusion_radius=exclusion_radius,
            solver=solver, alpha=alpha, embedded=embedded, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), groups=labels, generate_steps=generate, progress=report,
            regular=regular, dtype=dtype, device=device,
        )  # fmt: skip
    if output is not None:
        _write(output, series, result)
    if picture is not None:
        (result.plot_skill if np.ndim(result.theta) and not generate else result.plot)(str(picture))
    if coefficients is not None:
        result.plot_coefficients(str(coefficients))
    where = f"; predictions in {output}" if output is not None else ""
    what = (target_series or embedded_series).names[0]
    skills = []
    for one in (result.at(float(value)) for value in np.atleast_1d(result.theta)):
        n = int((np.isfinite(one.predicted) & np.isfinite(one.observed)).sum())
        skill = {name: float(getattr(one, name)) for name in ("rho", "mae", "rmse")}
        skills.append({"theta": one.theta, **skill, "n": n})
        if generate:
            continue
        words = ", ".join(f"{name} = {value:.5g}" for name, value in skill.items())
        names = "+".join(embedded_series.names)
        talk.summary(f"{names} -> {what}, E = {result.E}, theta = {one.theta:g}: {words} over {n:,} predictions{where}")
    if generate:
        talk.summary(f"{what}: {generate:,} steps generated after row {int(result.time[0]) - 1:,}{where}")
    talk.document({"columns": list(embedded_series.names), "target": what, "E": result.E, "skill": skills,
                   "redone": result.redone, "output": None if output is None else str(output)})  # fmt: skip


def _write(output: Path, series: Series, result: Any) -> None:
    import numpy as np

    several, grouped = np.ndim(result.theta) > 0, result.group is not None
    header = [*(["theta"] if several else []), *(["group"] if grouped else []), "time", "observed", "predicted",
              "variance", "C0", *(f"d/d{name}" for name in result.names)]  # fmt: skip
    rows = []
    when = result.time.tolist() if grouped else times_of_rows(series, np.asarray(result.time))
    labels = [result.group.tolist()] if grouped else []
    for one in (result.at(float(value)) for value in np.atleast_1d(result.theta)):
        columns = [one.observed.tolist(), one.predicted.tolist(), one.variance.tolist(), *one.coefficients.T.tolist()]
        head = [[one.theta] * len(when)] if several else []
        rows += list(zip(*head, *labels, when, *columns, strict=True))
    write_result(output, result, header, rows)
