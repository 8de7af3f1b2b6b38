"""``pyedmcl simplex``: predict one series from the embedding of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .files import check_pictures, check_result, write_result
from .inputs import load, load_groups, parse_ranges, parse_windows, part_of, shown_names
from .talk import Talk

if TYPE_CHECKING:
    from ..data.series import Series
    from ..edm.forecasts.simplex_windows_result import WindowedForecast


_HEADER = ("time", "observed", "predicted", "variance")


def simplex(
    input: options.Input,
    E: Annotated[
        int, typer.Option("--E", help="Embedding dimension.", show_default=False, rich_help_panel="Embedding")
    ],
    column: Annotated[
        str | None,
        typer.Option(
            "--column", metavar="X", help="The series that is embedded: a name, or digits for a position from 0.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="Y", help="The series that is predicted. (default: the same)",
                     show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PREDICTIONS.csv",
            help="Write time, observed, predicted and variance (.csv, .tsv, .json), or the whole result (.edm).",
            show_default=False,
        ),
    ] = None,
    picture: options.Picture = None,
    tau: options.Tau = 1,
    Tp: Annotated[int, typer.Option("--Tp", help="Steps ahead to predict.", rich_help_panel="Embedding")] = 1,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    lib: options.Library = None,
    pred: options.Predicted = None,
    groups: options.Groups = None,
    windows: options.Windows = None,
    generate: Annotated[
        int, typer.Option("--generate", metavar="STEPS", help="Continue the series by so many steps instead.")
    ] = 0,
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
    """Predict a series from its nearest neighbours in state space, and say how well that works."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture)
    chosen_columns = None if column is None else [column, *([target] if target not in (None, column) else [])]
    labels = load_groups(input, chosen_columns, groups, dataset, needed="--column")
    series = load(input, chosen_columns, time_column, dataset)
    if column is None and (series.n_series > 1 or target is not None):
        raise typer.BadParameter(f"--column is needed to say which of these series to embed: {shown_names(series)}")
    import numpy as np

    import pyedmcl
    from pyedmcl.edm.forecasts.simplex_windows_result import WindowedForecast

    states, of = part_of(series, 0), part_of(series, series.n_series - 1)
    with talk.progress("predicting") as report:
        result = pyedmcl.simplex(
            states, target=None if of.names == states.names else of, E=E, tau=tau, Tp=Tp, knn=knn,
            exclusion_radius=exclusion_radius, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), groups=labels,
            windows=parse_windows(windows), generate_steps=generate,
            neighbors=neighbors, recall=recall, progress=report,
            regular=regular, dtype=dtype, device=device,
        )  # fmt: skip
    if picture is not None:
        result.plot(str(picture))
    if isinstance(result, WindowedForecast):
        _windows(talk, result, output)
        return
    if output is not None:
        values = [np.asarray(getattr(result, name)).tolist() for name in _HEADER[1:]]
        values += [end.tolist() for end in result.interval()] if generate else []
        when = times_of_rows(series, np.asarray(result.time)) if result.group is None else result.time.tolist()
        header = _HEADER + (("lower", "upper") if generate else ())
        groups_of = [] if result.group is None else [result.group.tolist()]
        header = ("group",) * len(groups_of) + header
        write_result(output, result, header, zip(*groups_of, when, *values, strict=True))
    if generate:
        _steps(talk, result, times_of_rows(series, np.asarray(result.time)), output)
        return
    both = np.isfinite(np.asarray(result.predicted)) & np.isfinite(np.asarray(result.observed))
    n = int(both.sum())
    skill = {name: float(getattr(result, name)) for name in ("rho", "mae", "rmse")}
    where = f"; predictions in {output}" if output is not None else ""
    words = ", ".join(f"{name} = {value:.5g}" for name, value in skill.items())
    talk.summary(f"{states.names[0]} -> {of.names[0]}, E = {E}: {words} over {n:,} predictions{where}")
    talk.document(
        {"column": states.names[0], "target": of.names[0], "E": E, **skill, "n": n,
         "output": None if output is None else str(output), "neighbors": result.provenance["neighbors"]}
    )  # fmt: skip


def _steps(talk: Talk, result: Any, when: list[Any], output: Path | None) -> None:
    """Generated steps with the interval that holds 95 % of them, as a table."""
    header = ("time", "predicted", "lower", "upper")
    rows = list(zip(when, result.predicted.tolist(), *(end.tolist() for end in result.interval()), strict=True))
    talk.table(header, [[str(row[0]), *(f"{value:.5g}" for value in row[1:])] for row in rows], right=header[1:])
    talk.document({"E": result.E, "steps": [dict(zip(header, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


def _windows(talk: Talk, result: WindowedForecast, output: Path | None) -> None:
    """Skill of each window, as a table and in a file."""
    time = result.time.astype(str) if result.time.dtype.kind == "M" else result.time
    header = ("start", "time", "rho", "mae", "rmse")
    rows = list(zip(result.starts.tolist(), time.tolist(), *(getattr(result, name).tolist() for name in header[2:]),
                    strict=True))  # fmt: skip
    if output is not None:
        write_result(output, result, header, rows)
    talk.table(header, [[*map(str, row[:2]), *(f"{value:.5g}" for value in row[2:])] for row in rows], right=header)
    windows = [dict(zip(header, row, strict=True)) for row in rows]
    talk.document({"E": result.E, "width": result.width, "windows": windows,
                   "output": None if output is None else str(output)})  # fmt: skip


def times_of_rows(series: Series, rows: Any) -> list[Any]:
    """The file's own time for each row, continued beyond its ends; the row numbers where the file has no time."""
    import numpy as np

    from ..data.dates import times_at

    times = times_at(series.time, rows)
    if times is not None and times.dtype.kind == "M":
        times = np.datetime_as_string(times, unit="auto")
    shown: list[Any] = (rows if times is None else times).tolist()
    return ["" if when == "NaT" or when != when else when for when in shown]
