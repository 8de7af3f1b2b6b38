"""``pyedmcl simplex``, ``smap``, ``multiview``, ``predict-interval`` and ``predict-nonlinear``: one series at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .methods import Asked, derived
from .options import parse_columns, part_of, shown_names

if TYPE_CHECKING:
    from ..forecast.simplex import WindowedForecast
    from ..series.series import Series


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


# ``pyedmcl simplex``: predict one series from the embedding of one.


_VALUES, _INTERVAL = ("observed", "predicted", "variance"), ("lower", "upper")


@derived("simplex", file=("PREDICTIONS.csv", "time, observed, predicted and variance"))
def simplex(
    asked: Asked, column: Columns = None, target: Target = None, picture: options.Picture = None
) -> None:  # fmt: skip
    """Predict a series from its nearest neighbours in state space, and say how well that works."""
    series, states, target_series = chosen(asked, column, target)
    import numpy as np

    from ..forecast.simplex import WindowedForecast

    result = asked.call(states, target=target_series, doing="predicting")
    asked.draw(result.plot)
    if isinstance(result, WindowedForecast):
        _windows(asked, result)
        return
    generated = asked.words["generate_steps"]
    rows = _rows_of(result, series)
    values = [np.asarray(getattr(result, name)).tolist() for name in _VALUES]
    values += [end.tolist() for end in result.interval()] if generated else []
    asked.write(result, (*rows, *_VALUES, *_INTERVAL[: len(values) - 3]), zip(*rows.values(), *values, strict=True))
    if generated:
        _steps(asked, result, rows["time"])
        return
    both = np.isfinite(np.asarray(result.predicted)) & np.isfinite(np.asarray(result.observed))
    n = int(both.sum())
    skill = _skill(result)
    what = (target_series or states).names[0]
    asked.talk.summary(f"{'+'.join(states.names)} -> {what}, E = {result.E}: {_in_words(skill)} over {n:,} predictions"
                       f"{asked.where('predictions')}")  # fmt: skip
    asked.document({"columns": list(states.names), "target": what, "E": result.E, **skill, "n": n,
                    "neighbors": result.provenance["neighbors"]})  # fmt: skip


def _rows_of(result: Any, series: Series) -> dict[str, list[Any]]:
    """Which row each prediction is of, as columns: its time, or its group and its row in there."""
    import numpy as np

    if result.group is None:
        return {"time": times_of_rows(series, np.asarray(result.time))}
    return {"group": result.group.tolist(), "time": result.time.tolist()}


def _skill(result: Any) -> dict[str, float]:
    return {name: float(getattr(result, name)) for name in ("rho", "mae", "rmse")}


def _in_words(skill: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.5g}" for name, value in skill.items())


def _steps(asked: Asked, result: Any, when: list[Any]) -> None:
    """Generated steps with the interval that holds 95 % of them, as a table."""
    header = ("time", "predicted", *_INTERVAL)
    rows = list(zip(when, result.predicted.tolist(), *(end.tolist() for end in result.interval()), strict=True))
    shown = [[str(row[0]), *(f"{value:.5g}" for value in row[1:])] for row in rows]
    asked.talk.table(header, shown, right=header[1:])
    asked.document({"E": result.E, "steps": [dict(zip(header, row, strict=True)) for row in rows]})


def _windows(asked: Asked, result: WindowedForecast) -> None:
    """Skill of each window, as a table and in a file."""
    time = result.time.astype(str) if result.time.dtype.kind == "M" else result.time
    header = ("start", "time", "rho", "mae", "rmse")
    rows = list(zip(result.starts.tolist(), time.tolist(), *(getattr(result, name).tolist() for name in header[2:]),
                    strict=True))  # fmt: skip
    asked.write(result, header, rows)
    shown = [[*map(str, row[:2]), *(f"{value:.5g}" for value in row[2:])] for row in rows]
    asked.talk.table(header, shown, right=header)
    windows = [dict(zip(header, row, strict=True)) for row in rows]
    asked.document({"E": result.E, "width": result.width, "windows": windows})


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


def chosen(asked: Asked, column: str | None, target: str | None) -> tuple[Series, Series, Series | None]:
    """(all series read, those embedded, the target or None)."""
    names = parse_columns(column)
    asked.label(names, needed="--column")
    added = [] if target is None or names is None or target in names else [target]
    series = asked.load(None if names is None else names + added)
    if names is None:
        if series.n_series > 1 or target is not None:
            raise typer.BadParameter(f"--column is needed to say which of these series to embed: {shown_names(series)}")
        return series, series, None
    lib = part_of(series, *range(len(names)))
    if target is None or [target] == names:
        return series, lib, None
    return series, lib, part_of(series, names.index(target) if target in names else series.n_series - 1)


@derived("smap", file=("PREDICTIONS.csv", "(theta,) time, observed, predicted, variance, intercept and slopes"))
def smap(
    asked: Asked, column: Columns = None, target: Target = None, picture: options.Picture = None,
    coefficients: Annotated[
        Path | None,
        typer.Option("--plot-coefficients", metavar="FILE", help="Draw intercept and slopes over time.",
                     show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Predict each row by a linear fit weighted by nearness (S-map); the slopes are the local Jacobian."""
    series, states, target_series = chosen(asked, column, target)
    import numpy as np

    result = asked.call(states, target=target_series, doing="fitting")
    _write(asked, series, result)
    generated = asked.words["generate_steps"]
    asked.draw(result.plot_skill if np.ndim(result.theta) and not generated else result.plot)
    if coefficients is not None:
        result.plot_coefficients(str(coefficients))
    where, what = asked.where("predictions"), (target_series or states).names[0]
    skills = []
    for one in (result.at(float(value)) for value in np.atleast_1d(result.theta)):
        n = int((np.isfinite(one.predicted) & np.isfinite(one.observed)).sum())
        skills.append({"theta": one.theta, **_skill(one), "n": n})
        if not generated:
            asked.talk.summary(f"{'+'.join(states.names)} -> {what}, E = {result.E}, theta = {one.theta:g}: "
                               f"{_in_words(_skill(one))} over {n:,} predictions{where}")  # fmt: skip
    if generated:
        asked.talk.summary(f"{what}: {generated:,} steps generated after row {int(result.time[0]) - 1:,}{where}")
    asked.document({"columns": list(states.names), "target": what, "E": result.E, "skill": skills,
                    "redone": result.redone})  # fmt: skip


def _write(asked: Asked, series: Series, result: Any) -> None:
    import numpy as np

    several, of = np.ndim(result.theta) > 0, _rows_of(result, series)
    header = [*(["theta"] if several else []), *of, *_VALUES, "C0", *(f"d/d{name}" for name in result.names)]
    rows: list[tuple[Any, ...]] = []
    for one in (result.at(float(value)) for value in np.atleast_1d(result.theta)):
        columns = [*(getattr(one, name).tolist() for name in _VALUES), *one.coefficients.T.tolist()]
        head = [[one.theta] * len(of["time"])] if several else []
        rows += zip(*head, *of.values(), *columns, strict=True)
    asked.write(result, header, rows)


# ``pyedmcl multiview``: predict a series from many embeddings of a system, averaging the best.


_MULTIVIEW_VALUES, _INTERVAL = ("observed", "predicted", "variance"), ("lower", "upper")


@derived("multiview", file=("PREDICTIONS.csv", "time, observed, predicted and variance between views"), table=True)
def multiview(
    asked: Asked,
    target: Annotated[
        str,
        typer.Option("--target", metavar="Y", help="The series that is predicted: a name, or digits for a position.",
                     show_default=False),
    ],
    picture: options.Picture = None,
) -> None:  # fmt: skip
    """Predict a series from every choice of D lagged series, averaging the views that predict best."""
    # Digits count the columns of the file, so that one series may be asked for in two ways.
    name = asked.load([target]).names[0]
    series = asked.table()
    used = None if asked.columns is None else list(series.names)
    if asked.columns is not None and name not in series.names:
        series = asked.load([*asked.columns, target])
    import numpy as np

    result = asked.call(series, name, columns=used, doing="predicting")
    rows, values = _rows_of(result, series), [np.asarray(getattr(result, one)).tolist() for one in _VALUES]
    asked.write(result, (*rows, *_VALUES), zip(*rows.values(), *values, strict=True))
    asked.draw(result.plot)
    skill, views = _skill(result), list(zip(result.views, result.view_rho.tolist(), strict=True))
    asked.talk.summary(f"{name}: {_in_words(skill)} from the best {len(views)} of {result.n_tried:,} views"
                       f"{asked.where('predictions')}")  # fmt: skip
    asked.talk.table(["view", "rho of the library"], [[" ".join(view), f"{rho:.4f}"] for view, rho in views])
    asked.document({"target": name, "D": result.E, "E": asked.words["E"], **skill, "n_tried": result.n_tried,
                    "views": [{"coordinates": list(view), "rho": rho} for view, rho in views]})  # fmt: skip


# ``pyedmcl predict-interval`` and ``predict-nonlinear``: forecast skill against the steps ahead, or against theta.


@derived("predict_interval", file=("SKILL.csv", "the skill per Tp"))
def predict_interval(
    asked: Asked, column: Columns = None, target: Target = None, picture: options.Picture = None
) -> None:  # fmt: skip
    """Predict a series several steps ahead: how fast does the skill of its nearest neighbours fade?"""
    _, states, target_series = chosen(asked, column, target)
    result = asked.call(states, target=target_series, doing="predicting")
    asked.draw(result.plot)
    what = (target_series or states).names[0]
    best = "no skill is defined" if result.best is None else f"best at Tp = {result.best}"
    said = f"{'+'.join(states.names)} -> {what}, E = {result.E}: {best}{asked.where('table')}"
    found = {"columns": list(states.names), "target": what, "E": result.E, "best": result.best}
    _tell_skill(asked, result, "Tp", result.values, said, found)


@derived("predict_nonlinear", file=("SKILL.csv", "theta, rho, mae and rmse"))
def predict_nonlinear(
    asked: Asked, column: Columns = None, target: Target = None, picture: options.Picture = None
) -> None:  # fmt: skip
    """Find out whether local linear fits predict better than a global one: skill of S-map over theta."""
    _, states, target_series = chosen(asked, column, target)
    result = asked.call(states, target=target_series, doing="fitting")
    asked.draw(result.plot)
    gain = float(result.rho.max() - result.rho[result.theta.argmin()])
    said = f"best theta = {result.best:g}; rho gains {gain:.4g} over the most global fit{asked.where('table')}"
    found = {"columns": list(states.names), "E": result.E, "best": result.best}
    _tell_skill(asked, result, "theta", result.theta, said, found)


def _tell_skill(asked: Asked, result: Any, name: str, values: Any, said: str, found: dict[str, Any]) -> None:
    """Skill against the values of an argument, as a table and in a file."""
    header = (name, "rho", "mae", "rmse")
    rows = list(zip(values.tolist(), *(getattr(result, measure).tolist() for measure in header[1:]), strict=True))
    asked.write(result, header, rows)
    if not asked.talk.quiet:
        asked.talk.table(header, [[f"{value:.6g}" for value in row] for row in rows], right=header)
    asked.talk.summary(said)
    asked.document({**found, "skill": [dict(zip(header, row, strict=True)) for row in rows]})
