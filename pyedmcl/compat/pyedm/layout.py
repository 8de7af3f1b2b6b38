"""Predictions as pyEDM's frames: a prediction made at row t stands at t + Tp, each segment |Tp| rows longer."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...data.date_forms import dates_of_texts
from ...errors import InputError, warn
from .frames import pandas

if TYPE_CHECKING:
    from .task import Task


def numeric_time(time: Any) -> Any:
    """Times that can be computed with: numbers and dates as they are, texts as the dates or times of day they are.

    Raises
    ------
    InputError
        They are something else.
    """
    first = time[0]
    if isinstance(first, (int, float, np.integer, np.floating, datetime.datetime, np.datetime64, np.timedelta64)):
        return time
    if isinstance(first, str):
        dates = dates_of_texts(list(time))
        if dates is None or dates.bad or dates.also:
            raise InputError(f"the time {first!r} is no number, and no date that can be read; pass noTime=True")
        return dates.values.astype(object)
    try:
        time[1] - time[0]
    except TypeError:
        raise InputError(f"the time {first!r} cannot be computed with; pass noTime=True") from None
    return time


def output_rows(task: Task) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Rows of the output, in order; which of them show an observation; and where each prediction goes.

    An extension of a segment shows observations only if all of it lies inside the data.
    """
    n, before = len(task.targetVec), 0
    rows, seen, at = [], [], []
    present: NDArray[np.bool_] = np.asarray(np.isfinite(task.states).all(axis=1))
    for segment in task.segments:
        if not len(segment):
            continue
        begin, end = segment[0] + min(task.Tp, 0), segment[-1] + max(task.Tp, 0) + 1
        covered = np.arange(begin, end)
        inside = begin >= 0 and end <= n
        shows = np.ones(len(covered), bool) if inside else np.isin(covered, segment)
        at.append(before + segment[present[segment]] + task.Tp - begin)
        before += len(covered)
        rows.append(covered)
        seen.append(shows)
    if not rows:
        nothing = np.empty(0, np.int64)
        return nothing, nothing.astype(bool), nothing
    out, shown, places = np.concatenate(rows), np.concatenate(seen), np.concatenate(at)
    # Rows behind the last that holds anything are left out.
    last = max([*np.flatnonzero(shown)[-1:], *places[-1:]], default=-1)
    return out[: last + 1], shown[: last + 1], places


def times(task: Task, rows: NDArray[np.int64], shown: NDArray[np.bool_]) -> Any:
    """Times of output rows; beyond those that show an observation they go on in the first step's length."""
    time = numeric_time(task.time)
    if shown.all():
        return time[rows]
    step = time[1] - time[0]
    first = time[0]
    if isinstance(first, (np.datetime64, np.timedelta64)):
        out = np.full(len(rows), np.array("NaT", time.dtype))
    else:
        out = np.full(len(rows), np.nan, dtype=float if isinstance(first, (int, np.integer)) else type(first))
    out[shown] = time[rows[shown]]
    shown_rows = np.flatnonzero(shown)
    for i in range(shown_rows[-1] + 1, len(rows)):
        out[i] = time[rows[shown_rows[-1]]] + step * (i - shown_rows[-1])
    for i in range(shown_rows[0]):
        out[i] = time[rows[shown_rows[0]]] - step * (shown_rows[0] - i)
    return out


def put_frames(task: Task) -> tuple[Any, Any]:
    """Set the task's Projection; returns its times and where predictions stand in it.

    With no prediction the frame is empty.
    """
    DataFrame = pandas().DataFrame
    rows, shown, at = output_rows(task)
    if not len(task.pred_i) or not len(rows):
        warn(f"{task.name}: there is nothing to predict", UserWarning)
        task.Projection = DataFrame({"Time": [], "Observations": [], "Predictions": [], "Pred_Variance": []})
        return None, at
    columns = {"Time": times(task, rows, shown)}
    observed, predicted, variance = np.full((3, len(rows)), np.nan)
    observed[shown] = task.targetVec[rows[shown]]
    predicted[at], variance[at] = task.projection, task.variance
    columns |= {"Observations": observed, "Predictions": predicted, "Pred_Variance": variance}
    task.Projection = DataFrame(columns)
    return columns["Time"], at
