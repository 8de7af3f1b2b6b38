"""One projection as pyEDM understands its arguments: states, library rows, prediction rows, observations and times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import room
from ...errors import InputError, warn
from . import frames
from .embed import Embed

Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]


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
    data = frames.frame(dataFrame, name)
    n = len(data)
    chosen, targets = frames.names(columns, "columns", name, data), frames.names(target, "target", name, data)
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
        exclusionRadius=exclusionRadius, embedded=embedded, noTime=noTime, validLib=frames.mask(validLib, n, name),
        lib=frames.pairs(lib, "lib", name, n), pred=frames.pairs(pred, "pred", name, n),
    )  # fmt: skip
    task.targetVec = frames.doubles(data[targets[0]], name)
    task.time = np.arange(1, n + 1) if noTime else data.iloc[:, 0].to_numpy()
    task.Embedding = data[chosen] if embedded else Embed(data, E=E, tau=tau, columns=chosen)
    task.states = frames.doubles(task.Embedding, name)
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
