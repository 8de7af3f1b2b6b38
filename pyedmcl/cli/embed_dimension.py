"""``pyedmcl embed-dimension``: the best E of each series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .cluster import client_at
from .files import check_pictures, check_result, write_result
from .inputs import beside_groups, load, load_groups, parse_columns, parse_ranges, parse_rule
from .talk import Talk


def embed_dimension(
    input: options.Input,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="Y", help="Series that each of them predicts. (default: itself)",
                     show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE.csv",
            help="Write series, E and the skill at each E (.csv, .tsv, .json), or the whole result (.edm).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="SKILL.png", help="Draw skill against E.", show_default=False),
    ] = None,
    E_max: options.EMax = 20,
    E_rule: options.ERule = "best",
    tau: options.Tau = 1,
    Tp: Annotated[int, typer.Option("--Tp", help="Steps ahead to predict.", rich_help_panel="Embedding")] = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    lib: options.Library = None,
    pred: options.Predicted = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    client: options.Client = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find the embedding dimension at which each series predicts itself best."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    check_result(output)
    check_pictures(plot)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if target is None else load(input, [target], time_column, dataset)
    import numpy as np

    import pyedmcl

    with client_at(client) as workers, talk.progress("finding E") as report:
        result = pyedmcl.embed_dimension(
            series, target=target_series, E_max=E_max,
            E_rule=parse_rule(E_rule), tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn,
            groups=labels, regular=regular, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), progress=report, neighbors=neighbors, recall=recall, dtype=dtype,
            device=device, client=workers,
        )  # fmt: skip
    best = np.atleast_1d(np.asarray(result.E))
    skill = np.atleast_2d(np.asarray(result.rho))
    names = list(series.names)
    at_best = [float(row[E - 1]) for row, E in zip(skill, best.tolist(), strict=True)]
    if output is not None:
        header = ["series", "E", "rho", *(f"rho_E{E}" for E in range(1, skill.shape[1] + 1))]
        write_result(output, result, header, _rows(names, best, at_best, skill))
        talk.summary(f"{output}: E of {len(names):,} series")
    else:
        rows = [(name, int(E), f"{rho:.4f}") for name, E, rho in zip(names, best, at_best, strict=True)]
        talk.table(("series", "E", "rho"), rows, right=("E", "rho"))
    if plot is not None:
        from ..plot import skill_against_E
        from ..plot.figure import as_label

        skill_against_E(result, plot, title=as_label(input.name))
        talk.summary(f"{plot}: skill against E")
    talk.document(
        {
            "output": None if output is None else str(output),
            "names": names,
            "E": best,
            "rho": skill,
            "neighbors": result.provenance["neighbors"],
        }
    )


def _rows(names: list[str], best: Any, at_best: list[float], skill: Any) -> list[list[object]]:
    return [
        [name, int(E), rho, *(float(value) for value in row)]
        for name, E, rho, row in zip(names, best, at_best, skill, strict=True)
    ]
