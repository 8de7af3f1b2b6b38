"""``pyedmcl simplex``, ``smap``, ``multiview``, ``predict-interval`` and ``predict-nonlinear``: one series at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .options import load, load_groups, parse_columns, part_of, shown_names
from .output import Talk, check_pictures, check_result, write_result

if TYPE_CHECKING:
    from ..forecast.simplex import WindowedForecast
    from ..series.series import Series


# ``pyedmcl simplex``: predict one series from the embedding of one.


_HEADER = ("time", "observed", "predicted", "variance")


def simplex(
    input: options.Input,
    E: Any,
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
    tau: Any = 1,
    Tp: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    lib: Any = None,
    pred: Any = None,
    groups: Any = None,
    windows: Any = None,
    generate: Any = 0,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    dtype: Any = "float32",
    tune: Any = None,
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

    from ..forecast.simplex import WindowedForecast

    states, of = part_of(series, 0), part_of(series, series.n_series - 1)
    with talk.progress("predicting") as report:
        result = pyedmcl.simplex(
            states, target=None if of.names == states.names else of, E=E, tau=tau, Tp=Tp, knn=knn,
            exclusion_radius=exclusion_radius, lib_range=lib,
            pred_range=pred, groups=labels,
            windows=windows, generate_steps=generate,
            neighbors=neighbors, recall=recall, progress=report,
            regular=regular, dtype=dtype, tune=tune, device=device,
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

    from ..series.calendar import times_at

    times = times_at(series.time, rows)
    if times is not None and times.dtype.kind == "M":
        times = np.datetime_as_string(times, unit="auto")
    shown: list[Any] = (rows if times is None else times).tolist()
    return ["" if when == "NaT" or when != when else when for when in shown]


# ``pyedmcl smap``: predict a series by locally weighted linear fits, with their slopes.


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
    E: Any = None,
    column: Columns = None,
    target: Target = None,
    theta: Any = "0",
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
    tau: Any = 1,
    Tp: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    embedded: Any = False,
    lib: Any = None,
    pred: Any = None,
    solver: Any = "svd",
    alpha: Any = 1.0,
    generate: Any = 0,
    groups: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    tune: Any = None,
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
    labels = load_groups(input, parse_columns(column), groups, dataset, needed="--column")
    series, embedded_series, target_series = chosen(input, column, target, time_column, dataset)
    import numpy as np

    import pyedmcl

    with talk.progress("fitting") as report:
        result = pyedmcl.smap(
            embedded_series, target=target_series, E=E, tau=tau, Tp=Tp, theta=theta, knn=knn,
            exclusion_radius=exclusion_radius,
            solver=solver, alpha=alpha, embedded=embedded, lib_range=lib,
            pred_range=pred, groups=labels, generate_steps=generate, progress=report,
            regular=regular, dtype=dtype, tune=tune, device=device,
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


# ``pyedmcl multiview``: predict a series from many embeddings of a system, averaging the best.


_MULTIVIEW_HEADER = ("time", "observed", "predicted", "variance")


def multiview(
    input: options.Input,
    target: Annotated[
        str,
        typer.Option("--target", metavar="Y", help="The series that is predicted: a name, or digits for a position.",
                     show_default=False),
    ],
    D: Any = None,
    E: Any = 1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PREDICTIONS.csv", show_default=False,
                     help="Write time, observed, predicted and variance between views (.csv, .tsv, .json), or the "
                     "whole result (.edm)."),
    ] = None,
    views: Any = None,
    exclude_target: Any = False,
    picture: options.Picture = None,
    tau: Any = 1,
    Tp: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    lib: Any = None,
    pred: Any = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    tune: Any = None,
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
            exclude_target=exclude_target, columns=used, lib_range=lib,
            pred_range=pred, progress=report, dtype=dtype,
            regular=regular, tune=tune, device=device,
        )  # fmt: skip
    if output is not None:
        values = [np.asarray(getattr(result, name)).tolist() for name in _MULTIVIEW_HEADER[1:]]
        write_result(
            output, result, _MULTIVIEW_HEADER, zip(times_of_rows(series, np.asarray(result.time)), *values, strict=True)
        )
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


# ``pyedmcl predict-interval``: forecast skill against the steps ahead.


_PREDICT_INTERVAL_HEADER = ("Tp", "rho", "mae", "rmse")


def predict_interval(
    input: options.Input,
    E: Any = None,
    column: Columns = None,
    target: Target = None,
    Tp: Any = "1:10",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SKILL.csv",
                     help="Write the skill per Tp (.csv, .tsv, .json), or the whole result (.edm).",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
    tau: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    embedded: Any = False,
    lib: Any = None,
    pred: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    tune: Any = None,
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
    _, states, target_series = chosen(input, column, target, time_column, dataset)
    import pyedmcl

    with talk.progress("predicting") as report:
        result = pyedmcl.predict_interval(
            states, target=target_series, Tp=Tp, E=E, tau=tau, knn=knn, exclusion_radius=exclusion_radius,
            embedded=embedded,
            lib_range=lib, pred_range=pred, progress=report, dtype=dtype,
            regular=regular, tune=tune, device=device,
        )  # fmt: skip
    rows = list(zip(*(getattr(result, name).tolist() for name in ("values", "rho", "mae", "rmse")), strict=True))
    if output is not None:
        write_result(output, result, _PREDICT_INTERVAL_HEADER, rows)
    if picture is not None:
        result.plot(str(picture))
    what = (target_series or states).names[0]
    best = "no skill is defined" if result.best is None else f"best at Tp = {result.best}"
    talk.summary(f"{'+'.join(states.names)} -> {what}, E = {result.E}: {best}")
    if not quiet:
        talk.table(
            _PREDICT_INTERVAL_HEADER,
            [[str(t), *(f"{v:.5g}" for v in skill)] for t, *skill in rows],
            right=_PREDICT_INTERVAL_HEADER,
        )
    talk.document({"columns": list(states.names), "target": what, "E": result.E, "best": result.best,
                   "skill": [dict(zip(_PREDICT_INTERVAL_HEADER, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


# ``pyedmcl predict-nonlinear``: forecast skill against the localisation of S-map.


_PREDICT_NONLINEAR_HEADER = ("theta", "rho", "mae", "rmse")


def predict_nonlinear(
    input: options.Input,
    E: Any = None,
    column: Columns = None,
    target: Target = None,
    theta: Any = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SKILL.csv",
                     help="Write theta, rho, mae and rmse (.csv, .tsv, .json), or the whole result (.edm).",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
    tau: Any = 1,
    Tp: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    embedded: Any = False,
    lib: Any = None,
    pred: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    solver: Any = "svd",
    alpha: Any = 1.0,
    tune: Any = None,
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

    from ..states.states import THETAS

    with talk.progress("fitting") as report:
        result = pyedmcl.predict_nonlinear(
            embedded_series, target=target_series, E=E, tau=tau, Tp=Tp, knn=knn, exclusion_radius=exclusion_radius,
            embedded=embedded, lib_range=lib, pred_range=pred,
            theta=THETAS if theta is None else theta, progress=report, dtype=dtype,
            regular=regular, solver=solver, alpha=alpha, tune=tune, device=device,
        )  # fmt: skip
    rows = list(zip(*(getattr(result, name).tolist() for name in _PREDICT_NONLINEAR_HEADER), strict=True))
    if output is not None:
        write_result(output, result, _PREDICT_NONLINEAR_HEADER, rows)
    if picture is not None:
        result.plot(str(picture))
    if not quiet:
        talk.table(
            _PREDICT_NONLINEAR_HEADER,
            [[f"{value:.6g}" for value in row] for row in rows],
            right=_PREDICT_NONLINEAR_HEADER,
        )
    where = f"; table in {output}" if output is not None else ""
    gain = float(result.rho.max() - result.rho[result.theta.argmin()])
    talk.summary(f"best theta = {result.best:g}; rho gains {gain:.4g} over the most global fit{where}")
    talk.document(
        {"columns": list(embedded_series.names), "E": result.E, "best": result.best,
         "skill": [dict(zip(_PREDICT_NONLINEAR_HEADER, row, strict=True)) for row in rows],
         "output": None if output is None else str(output)}
    )  # fmt: skip
