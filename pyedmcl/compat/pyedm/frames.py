"""pyEDM's arguments and frames: one projection as pyEDM understands it."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import integer, room
from ...device.select import open_device
from ...errors import InputError, missing_extra, shown, warn
from ...functions import MOST_NEIGHBOURS
from ...launch.staging import require_rows
from ...search.searches import ExhaustiveSearcher
from ...search.tables import coordinate_problem, lay_out_states
from ...series.arrays import to_array
from ...series.date_forms import dates_of_texts
from ...series.reading import tell_of_numbers
from ...states.arguments import errors, pearson
from ...states.states import condition_together
from ..checked import checked


def pandas() -> Any:
    """The package pandas.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    try:
        import pandas as found
    except ImportError as error:
        raise missing_extra("pandas", "io", "pyedmcl.compat.pyedm") from error
    return found


def frame(data: Any, who: str) -> Any:
    """``data`` if it is a DataFrame. Raises InputError for anything else."""
    if data is None or not isinstance(data, pandas().DataFrame):
        raise InputError(f"{who}: dataFrame is {type(data).__name__}; a pandas DataFrame is needed")
    if not data.columns.is_unique:
        raise InputError(f"{who}: the dataFrame has several columns of one name; give each its own")
    return data


def names(value: Any, what: str, who: str, data: Any) -> list[str]:
    """Column names: text that is split at spaces, or a list.

    Raises
    ------
    InputError
        None is named, or one is not there.
    """
    try:
        columns = value.split() if isinstance(value, str) else list(value)
    except TypeError:
        raise InputError(f"{who}: {what}={shown(value)}; names of columns are needed") from None
    if not columns:
        raise InputError(f"{who}: {what} is empty; name at least one column of the dataFrame")
    for name in columns:
        if not isinstance(name, Hashable) or name not in data.columns:
            raise InputError(f"{who}: {what} names {shown(name)}, which is no column of the dataFrame")
    return columns


def numbers(value: Any, what: str, who: str, kind: type = int) -> list[Any]:
    """Numbers: text that is split at spaces, a list, or one number."""
    try:
        items = value.split() if isinstance(value, str) else list(value) if np.ndim(value) else [value]
        return [kind(item) for item in items]
    except Exception:  # whatever an object's own methods raise
        text = f"{who}: {what}={shown(value)} cannot be read as numbers, such as '1 100' or [1, 100]"
        raise InputError(text) from None


def reals(value: Any, what: str, who: str) -> NDArray[np.float64]:
    """A sequence of real numbers as an array (n,)."""
    values = to_array(value, f"{who}: {what}")
    try:
        if values.ndim != 1 or np.iscomplexobj(values):
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{who}: {what}={shown(value)}; a sequence of real numbers is needed") from None


def doubles(table: Any, who: str) -> NDArray[np.float64]:
    """The numbers of some columns. Raises InputError where they hold something else."""
    try:
        values: NDArray[np.float64] = table.astype("Float64").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{who}: columns of the dataFrame hold something else than numbers ({error})") from None
    columns = [table] if table.ndim == 1 else [table.iloc[:, place] for place in range(table.shape[1])]
    tell_of_numbers(np.atleast_2d(values.T), columns, [f"{who}: {column.name}" for column in columns])
    return values


def pairs(value: Any, what: str, who: str, n: int) -> list[tuple[int, int]]:
    """1-based inclusive (start, stop) pairs as 0-based half-open ones.

    Raises
    ------
    InputError
        There are none, an odd number of ends, or ends that are not in the data.
    """
    ends = numbers(value, what, who)
    if not ends or len(ends) % 2:
        raise InputError(f"{who}: {what}={shown(value)}: start and stop rows, counted from 1, are needed in pairs")
    ranges = list(zip(ends[::2], ends[1::2], strict=True))
    for start, stop in ranges:
        if not 1 <= start <= stop <= n:
            raise InputError(f"{who}: {what} has rows {start} to {stop}; 1 <= start <= stop <= {n} is needed")
    return [(start - 1, stop) for start, stop in ranges]


def rows_or(value: Any, default: list[int]) -> Any:
    """Rows that were named, or all of them where none were."""
    return default if value is None or (isinstance(value, (str, list, tuple)) and not value) else value


def checked_range(last: int, what: str, who: str, data: Any) -> None:
    """Refuse a sweep that goes on beyond the rows of the frame."""
    n = len(frame(data, who))
    if last > n:
        raise InputError(f"{who}: {what}={last} is more than the {n} rows of the dataFrame")


def mask(given: Any, n: int, who: str) -> NDArray[np.bool_] | None:
    """``validLib`` as a mask (n,), None where it is empty."""
    values = to_array(given, f"{who}: validLib")
    if values.size == 0:
        return None
    if values.shape != (n,) or values.dtype != bool:
        raise InputError(f"{who}: validLib has {values.shape} values of {values.dtype}; {n} booleans are needed")
    return values


# Skill of predictions.


_LEAST = 5
_MOST_DIGITS = 300


@checked
def ComputeError(obs: Any, pred: Any, digits: int = 6) -> dict[str, float]:
    """rho, MAE, CAE and RMSE of pairs that are both there, rounded; NaN for fewer than 5.

    MAE is the mean absolute error (pyEDM 2.5.7 returns the largest signed one under this name).

    Parameters
    ----------
    obs, pred : array_like (n,)
    digits : int

    Returns
    -------
    dict
    """
    integer("ComputeError: digits", digits, -_MOST_DIGITS, most=_MOST_DIGITS)
    observed, predicted = (
        reals(values, name, "ComputeError") for values, name in ((obs, "obs"), (pred, "pred"))
    )
    if observed.shape != predicted.shape:
        raise InputError(f"ComputeError: obs has {len(observed)} values, pred has {len(predicted)}")
    both = np.isfinite(observed) & np.isfinite(predicted)
    observed, predicted = observed[both], predicted[both]
    if len(observed) < _LEAST:
        few = f"ComputeError: {len(observed)} pairs are too few; {_LEAST} are needed"
        warn(few, UserWarning)
        return {"rho": float("nan"), "MAE": float("nan"), "RMSE": float("nan")}
    mean, root = errors(predicted, observed)
    measures = {"rho": float(pearson(predicted, observed)), "MAE": mean, "CAE": mean * len(observed), "RMSE": root}
    return {name: np.round(value, digits) for name, value in measures.items()}


# Nearest neighbours in pyEDM's order: by distance, then nearness in time, then row.


Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
_CELLS = 1 << 20
# Distances this near each other may be equal for pyEDM: such rows are ordered on the host.
_NEAR = {"float32": 1e-5, "float64": 1e-12}


def nearest(states: Doubles, library: Rows, queries: Rows, k: int, radius: int) -> tuple[Rows, Doubles]:
    """The k nearest library rows of each row asked for, itself and those within the radius excepted.

    Parameters
    ----------
    states : ndarray (n, n_coordinates)
    library, queries : ndarray of int
        Rows; those of the library ascending.
    k, radius : int

    Returns
    -------
    rows, distances : ndarray (len(queries), k)
        Infinite distances, of any row, where there are fewer.
    """
    width = min(k + 1, len(library))
    neighbours = np.full((len(queries), max(width, k)), library[0])
    distance = np.full(neighbours.shape, np.inf)
    if width > MOST_NEIGHBOURS:
        undecided = np.arange(len(queries))
    else:
        rows, dtype = _on_device(states, library, queries, width, radius)
        exists = rows >= 0
        neighbours[:, :width] = np.where(exists, rows, library[0])
        distance[:, :width] = np.where(exists, _distances(states, queries, neighbours[:, :width]), np.inf)
        near, far = neighbours[:, :width], distance[:, :width]  # beyond are pads, which k may have very many of
        order = np.lexsort((near, np.abs(near - queries[:, None]), far), axis=1)
        near[:], far[:] = np.take_along_axis(near, order, 1), np.take_along_axis(far, order, 1)
        undecided = np.empty(0, np.int64)
        if neighbours.shape[1] > k:
            tied = distance[:, k] <= distance[:, k - 1] * (1 + _NEAR[dtype])
            undecided = np.flatnonzero(tied & np.isfinite(distance[:, k]))
    neighbours, distance = neighbours[:, :k].copy(), distance[:, :k].copy()
    _on_host(states, library, queries, k, radius, undecided, neighbours, distance)
    pads = ~np.isfinite(distance)
    neighbours[pads] = np.broadcast_to(neighbours[:, :1], neighbours.shape)[pads]
    return neighbours, distance


def _on_device(states: Doubles, library: Rows, queries: Rows, k: int, radius: int) -> tuple[Rows, str]:
    executor = open_device(None)
    dtype = "float64" if executor.info.fp64 else "float32"
    first = int(min(library[0], queries.min()))
    n = int(max(library[-1], queries.max())) + 1 - first
    problem = coordinate_problem(states.shape[1], k, 0, radius, n, n, dtype)
    layout = lay_out_states(condition_together(states[first : first + n], dtype), problem, n, n)
    library_mask = np.zeros(n, bool)
    library_mask[library - first] = True
    searcher = ExhaustiveSearcher(executor, problem, "neighbours")
    try:
        tables = next(searcher.tables(searcher.load_layouts(layout, layout), library_mask))
        rows = executor.download(tables.rows, np.empty((n, k), np.int32))
        require_rows(executor, rows, n, "knn")
    finally:
        searcher.release()
    chosen = rows[queries - first].astype(np.int64)
    return np.where(chosen >= 0, chosen + first, -1), dtype


def _distances(states: Doubles, asked: Rows, rows: Rows) -> Doubles:
    out: Doubles = np.sqrt(((states[rows] - states[asked][:, None]) ** 2).sum(axis=2))
    return out


def _on_host(
    states: Doubles, library: Rows, queries: Rows, k: int, radius: int, which: Rows, neighbours: Rows, distance: Doubles
) -> None:
    """Order the whole library for some of the rows asked for."""
    step = max(_CELLS // (len(library) * states.shape[1]), 1)
    for a in range(0, len(which), step):
        part = which[a : a + step]
        rows = np.broadcast_to(library, (len(part), len(library)))
        apart = np.abs(rows - queries[part][:, None])
        far = np.where(apart > radius, _distances(states, queries[part], rows), np.inf)
        order = np.lexsort((rows, apart, far), axis=1)[:, :k]
        neighbours[part, : order.shape[1]] = np.take_along_axis(rows, order, 1)
        distance[part, : order.shape[1]] = np.take_along_axis(far, order, 1)


def warn_of_few(task: Task, distance: Doubles) -> None:
    """Say when rows have fewer neighbours than asked for."""
    exists = np.isfinite(distance)
    if distance.size and not exists.all():
        nothing = "" if exists.any(axis=1).all() else "; some have none, and their predictions are NaN"
        warn(
            f"{task.name}: fewer than knn={task.knn} neighbours outside exclusionRadius {task.exclusionRadius} for "
            f"some predictions, which use those there are{nothing}",
            UserWarning,
        )  # fmt: skip


# Predictions as pyEDM's frames: a prediction made at row t stands at t + Tp, each segment |Tp| rows longer.


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


# Delay embedding as a frame.


@checked
def Embed(
    dataFrame: Any = None, E: int = 0, tau: int = -1, columns: Any = "", includeTime: bool = False,
    pathIn: str = "./", dataFile: str | None = None,
) -> Any:  # fmt: skip
    """Lags of columns side by side: ``x(t-0)``, ``x(t-1)``, ...

    Parameters
    ----------
    dataFrame : DataFrame
    E : int
        Lags of each column.
    tau : int
        Steps between them: negative into the past, positive into the future.
    columns : str or list of str
    includeTime : bool
        Put the first column of the frame before them.
    pathIn, dataFile : str
        Read the frame from this CSV file instead.

    Returns
    -------
    DataFrame
        NaN where a lag lies outside the data.
    """
    if E < 1:
        raise InputError(f"Embed: E={E}; an embedding dimension of at least 1 is needed")
    if tau == 0:
        raise InputError("Embed: tau=0; a lag of at least one step is needed, negative for the past")
    data = pandas().read_csv(pathIn + dataFile) if dataFile is not None else frame(dataFrame, "Embed")
    chosen = names(columns, "columns", "Embed", data)
    if (E - 1) * abs(tau) >= max(len(data), 1):
        raise InputError(f"Embed: E={E} and tau={tau} reach over all {len(data)} rows, so that no state is whole")
    sign = "-" if tau < 0 else "+"
    lags = {f"{name}(t{sign}{e * abs(tau)})": data[name].shift(-e * tau) for e in range(E) for name in chosen}
    table = pandas().DataFrame(lags, index=data.index)
    return data.iloc[:, [0]].join(table) if includeTime else table


# One projection as pyEDM understands its arguments: states, library rows, prediction rows, observations and times.


@dataclass
class Task:
    """The attributes that pyEDM's own objects have, as far as they mean something here.

    Attributes
    ----------
    Data, Embedding : DataFrame
    columns, target : list of str
    E, Tp, knn, tau, exclusionRadius, embedded, noTime
        As given, with pyEDM's defaults filled in.
    lib, pred : list of (int, int)
        0-based half-open segments.
    lib_i, pred_i : ndarray of int
        Library rows and predicted rows that have a state.
    segments : list of ndarray of int
        Rows of each prediction segment, without those at the ends of the data that lags leave without a state.
    pred_i_all : ndarray of int
        All rows that were asked for.
    targetVec : ndarray (n,)
    time : ndarray (n,)
    libOverlap : bool
        Whether any row is both library and predicted.
    """

    name: str
    Data: Any
    columns: list[str]
    target: list[str]
    E: int
    Tp: int
    knn: int
    tau: int
    exclusionRadius: int
    embedded: bool
    noTime: bool
    validLib: NDArray[np.bool_] | None
    lib: list[tuple[int, int]]
    pred: list[tuple[int, int]]
    Embedding: Any = field(repr=False, default=None)
    states: Doubles = field(repr=False, default_factory=lambda: np.empty((0, 0)))
    lib_i: Rows = field(repr=False, default_factory=lambda: np.empty(0, np.int64))
    pred_i: Rows = field(repr=False, default_factory=lambda: np.empty(0, np.int64))
    pred_i_all: Rows = field(repr=False, default_factory=lambda: np.empty(0, np.int64))
    segments: list[Rows] = field(repr=False, default_factory=list)
    targetVec: Doubles = field(repr=False, default_factory=lambda: np.empty(0))
    time: Any = field(repr=False, default=None)
    libOverlap: bool = False
    Projection: Any = field(repr=False, default=None)
    projection: Any = field(repr=False, default=None)
    variance: Any = field(repr=False, default=None)


def make_task(
    kind: type[Task], name: str, dataFrame: Any, columns: Any, target: Any, lib: Any, pred: Any, *, E: int, Tp: int,
    knn: int, tau: int, exclusionRadius: int, embedded: bool, validLib: Any, noTime: bool,
) -> Any:  # fmt: skip
    """Check pyEDM's arguments and find the rows they mean.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frame(dataFrame, name)
    n = len(data)
    chosen, targets = names(columns, "columns", name, data), names(target, "target", name, data)
    if embedded:
        E = len(chosen)
    elif tau == 0:
        raise InputError(f"{name}: tau=0; a lag of at least one step is needed, negative for the past")
    elif E < 1:
        raise InputError(f"{name}: E={E}; an embedding dimension of at least 1 is needed")
    if exclusionRadius < 0:
        raise InputError(f"{name}: exclusionRadius={exclusionRadius}; 0 or more is needed")
    if abs(Tp) >= max(n, 1):
        raise InputError(f"{name}: Tp={Tp} leads beyond all {n} rows")
    room(f"{name}: knn", (n, max(knn, 1)))
    task = kind(
        name=name, Data=data, columns=chosen, target=targets, E=E, Tp=Tp, knn=knn, tau=tau,
        exclusionRadius=exclusionRadius, embedded=embedded, noTime=noTime, validLib=mask(validLib, n, name),
        lib=pairs(lib, "lib", name, n), pred=pairs(pred, "pred", name, n),
    )  # fmt: skip
    task.targetVec = doubles(data[targets[0]], name)
    task.time = np.arange(1, n + 1) if noTime else data.iloc[:, 0].to_numpy()
    task.Embedding = data[chosen] if embedded else Embed(data, E=E, tau=tau, columns=chosen)
    task.states = doubles(task.Embedding, name)
    _rows(task, n)
    return task


def _rows(task: Task, n: int) -> None:
    shift = 0 if task.embedded else abs(task.tau) * (task.E - 1)
    present: NDArray[np.bool_] = np.asarray(np.isfinite(task.states).all(axis=1))
    library = []
    for place, (begin, end) in enumerate(task.lib):
        if task.tau < 0:
            begin += shift
        else:
            end -= shift
        if task.Tp < 0 and not task.embedded:
            begin += -task.Tp - 1
        elif task.Tp >= 0 and place == len(task.lib) - 1:
            end -= task.Tp
        library.append(np.arange(begin, max(end, begin)))
    task.lib_i = np.unique(np.concatenate(library))
    # A target outside the data is none (pyEDM reads another row there, or fails).
    task.lib_i = task.lib_i[(task.lib_i + task.Tp >= 0) & (task.lib_i + task.Tp < n) & (task.lib_i < n)]
    if not len(task.lib_i):
        raise InputError(f"{task.name}: no row of lib={task.lib} is left for E={task.E}, tau={task.tau}, Tp={task.Tp}")
    task.pred_i_all = np.concatenate([np.arange(begin, end) for begin, end in task.pred])
    whole = np.ones(n, bool)
    if shift:
        whole[:shift if task.tau < 0 else n] = task.tau > 0
        if task.tau > 0:
            whole[n - shift :] = False
    task.segments = [np.arange(begin, end)[whole[begin:end]] for begin, end in task.pred]
    task.libOverlap = bool(np.isin(task.lib_i, task.pred_i_all).any())
    if task.knn < 1:
        task.knn = task.E + 1 if task.name != "SMap" else 0
    before = len(task.lib_i)
    task.lib_i = task.lib_i[present[task.lib_i]]
    if task.name == "SMap" and task.knn < 1:
        task.knn = (len(task.lib_i) if len(task.lib_i) < before else before) - 1
    task.pred_i = task.pred_i_all[present[task.pred_i_all]]
    if not len(task.pred_i):
        warn(f"{task.name}: no row of pred={task.pred} has a state", UserWarning)
    if task.validLib is not None:
        task.lib_i = task.lib_i[task.validLib[task.lib_i]]
        if len(task.lib_i) < task.knn:
            raise InputError(
                f"{task.name}: validLib leaves {len(task.lib_i)} library rows, fewer than knn={task.knn}; reduce knn "
                "or widen validLib"
            )
    if not len(task.lib_i):
        raise InputError(f"{task.name}: every library row touches a gap; widen lib or fill gaps")
