"""Multiview embedding: many views of one system, of which the best are averaged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import as_series, check_embedding, require_rows, select
from ..device.memory import budget
from ..device.session import open_device
from ..engines.projected import Projector
from ..errors import InputError
from ..io.optional import pandas_for
from ..neighbors.coordinates import coordinate_problem, lay_out_states
from ..tuning.retry import tunable
from . import arguments, ranges, scores
from .effort import announce
from .provenance import provenance
from .simplex import KERNELS
from .simplex_fit import check_library
from .simplex_result import SimplexResult
from .states import condition_together, embed, future

if TYPE_CHECKING:
    from ..device.executor import Executor

Doubles = NDArray[np.float64]
_MOST_VIEWS = 1_000_000


@dataclass(frozen=True)
class MultiviewResult(SimplexResult):
    """Average of the best views' predictions, and the views.

    Attributes
    ----------
    views : tuple of tuple of str
        Coordinates of each view that was averaged, the best first.
    view_rho : ndarray of float64 (n_views,)
        Skill by which they were ranked: of predicting the library's rows from each other.
    view_predictions : ndarray of float64 (n_views, n)
        What each of them predicts.
    n_tried : int
        How many views there were.
    """

    views: tuple[tuple[str, ...], ...] = ()
    view_rho: Doubles = field(default_factory=lambda: np.empty(0))
    view_predictions: Doubles = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    n_tried: int = 0

    def views_frame(self) -> Any:
        """A pandas DataFrame with a row for each view: its coordinates, and its rank's rho."""
        columns: dict[str, Any] = {f"coordinate {d + 1}": [view[d] for view in self.views] for d in range(self.E)}
        return pandas_for("views_frame()").DataFrame({**columns, "rho": self.view_rho})

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted, and the skill of the best views; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.forecast import views

        return views(self, path)


@dataclass(frozen=True)
class _Rows:
    """Library rows that may be used, and rows that are predicted."""

    allowed: NDArray[np.bool_] | None
    asked: NDArray[np.int64]


@tunable
def multiview(
    data: Any,
    target: str | int,
    *,
    D: int | None = None,
    E: int = 1,
    tau: int = 1,
    Tp: int = 1,
    knn: int | None = None,
    n_views: int | None = None,
    exclusion_radius: int = 0,
    exclude_target: bool = False,
    columns: Sequence[str | int] | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> MultiviewResult:
    """Predict a series from many different embeddings of a system, averaging those that predict best.

    Every choice of D among the lagged series is a view. Views are ranked by how well they predict the library's rows
    from each other; the predictions of the best ones are averaged (Ye and Sugihara, Science 353, 922, 2016).

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    target : str or int
        The series that is predicted, by name or position.
    D : int, optional
        Coordinates of a view; the number of series by default.
    E, tau : int
        Lags of each series to choose from, and steps between them.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    knn : int, optional
        Neighbours; D + 1 by default.
    n_views : int, optional
        How many are averaged; by default the square root of the number of views, rounded down.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    exclude_target : bool
        No view holds the target itself.
    columns : sequence of str or int, optional
        Series that views are made of, by name or position; all by default.
    lib_range, pred_range, valid_lib
        Rows of the library and rows that are predicted, as for :func:`pyedmcl.simplex`.
    dtype, device, tune
        As for :func:`pyedmcl.knn`.

    Returns
    -------
    MultiviewResult
        ``E`` is D; ``variance`` is that between the views.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the neighbours of one view do not fit on it.

    See Also
    --------
    embed : the coordinates that views are made of.

    Notes
    -----
    Cost: a neighbour search for each choice of D coordinates, of which there may be many: C(n_series * E, D).

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.multiview(network.values, 0, D=2, E=2)
    >>> result.rho > 0.5
    True
    """
    E, tau = check_embedding(E, tau)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    arguments.precision(dtype)
    series = as_series(data)
    if isinstance(target, bool) or not isinstance(target, (str, int, np.integer)):
        raise InputError(f"target={ranges.shown(target)}: the name or the position of a series of data is needed")
    aimed = select(series.names, [target], "data")[0]
    used = [c for c in select(series.names, columns, "data") if not (exclude_target and c == aimed)]
    if not used:
        raise InputError("exclude_target=True leaves no series to make views of; name others with columns=")
    names = [f"{series.names[c]}(t-{e * tau})" for c in used for e in range(E)]
    dims = len(used) if D is None else arguments.integer("D", D, 1)
    if dims > len(names):
        raise InputError(f"D={dims}: {len(used)} series with E={E} give {len(names)} coordinates to choose from")
    tried = math.comb(len(names), dims)
    if tried > _MOST_VIEWS:
        raise InputError(f"D={dims}, E={E}: {tried:,} views of {len(names)} coordinates; at most {_MOST_VIEWS:,} are")
    chosen = max(math.isqrt(tried), 1) if n_views is None else arguments.integer("n_views", n_views, 1)
    if chosen > tried:
        raise InputError(f"n_views={n_views!r}: there are {tried} views")
    require_rows(series, E=E, tau=tau, Tp=Tp, k=1)
    n, first = series.n_steps, (E - 1) * tau
    goal = series.values[:, aimed].astype(np.float64)
    k = arguments.count("knn", knn) or dims + 1
    allowed = ranges.library_mask(n, E=E, tau=tau, Tp=Tp, lib_range=lib_range, valid_lib=valid_lib)
    known = np.ones(n, bool) if allowed is None else allowed
    training = _Rows(allowed, np.flatnonzero(known & (np.arange(n) >= first)))
    check_library(series.values[:, used], goal, E, tau, Tp, allowed, None if knn is None else k, "data")
    asked = _Rows(allowed, ranges.prediction_rows(n, first, pred_range))
    states = embed(condition_together(series.values[:, used], dtype), E, tau)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    announce(executor.info, (dims,), n_library=n, n_query=n, n_series=tried)
    views = list(itertools.combinations(range(len(names)), dims))
    engine = _Views(executor, states, future(goal, Tp), k, Tp, radius, allowed, dtype)
    try:
        trained = engine.skill(views, training.asked)
        order = np.lexsort((np.arange(tried), -np.where(np.isnan(trained), -np.inf, trained)))[:chosen]
        predicted = engine.predict([views[i] for i in order])[:, asked.asked]
        record = provenance(executor, KERNELS, engine.parameters, grade=engine.grade)
    finally:
        engine.release()
    return _averaged(predicted, asked, goal, Tp, dims, [tuple(names[c] for c in views[i]) for i in order],
                     trained[order], tried, record)  # fmt: skip


def _averaged(
    predicted: Doubles, asked: _Rows, goal: Doubles, Tp: int, dims: int, views: Sequence[tuple[str, ...]],
    view_rho: Doubles, tried: int, record: Mapping[str, Any],
) -> MultiviewResult:  # fmt: skip
    """The mean of the views' predictions, where all have one."""
    observed = ranges.observed_at(goal, asked.asked, Tp)
    mean, variance = predicted.mean(axis=0), predicted.var(axis=0)
    mae, rmse = scores.errors(mean, observed)
    return MultiviewResult(
        time=asked.asked + Tp, observed=observed, predicted=mean, variance=variance,
        rho=float(scores.pearson(mean, observed)), mae=mae, rmse=rmse, E=dims, provenance=record,
        views=tuple(views), view_rho=view_rho, view_predictions=predicted, n_tried=tried,
    )  # fmt: skip


class _Views:
    """Simplex projections from different choices of coordinates, many in a launch."""

    def __init__(
        self, executor: Executor, states: NDArray[Any], aim: Doubles, k: int, Tp: int, radius: int,
        allowed: NDArray[np.bool_] | None, dtype: str,
    ) -> None:  # fmt: skip
        self._executor, self._states, self._aim, self._dtype = executor, states, aim, dtype
        self._shape = (k, Tp, radius)
        self._library_mask = allowed
        self._projector: Projector | None = None
        self.parameters: dict[str, Any] = {}
        self.grade = ""

    def predict(self, views: Sequence[tuple[int, ...]]) -> Doubles:
        """Predictions (n_views, n_steps)."""
        return np.concatenate([predicted for predicted, _ in self._parts(views)])

    def _parts(self, views: Sequence[tuple[int, ...]]) -> Iterator[tuple[Doubles, float]]:
        """Predictions of some views at a time, and their rounding noise."""
        n, (k, Tp, radius) = len(self._states), self._shape
        search = coordinate_problem(len(views[0]), k, Tp, radius, n, n, self._dtype)
        if self._projector is None:
            self._projector = Projector(self._executor, search, self._aim, self._library_mask)
            self.parameters, self.grade = self._projector.searcher.parameters, self._projector.searcher.grade
        step = max(int(budget(self._executor.info).total // 16 // (search.stride(n) * search.itemsize)), 1)
        for a in range(0, len(views), step):
            some = [self._states[:, view] for view in views[a : a + step]]
            library = np.concatenate([lay_out_states(view, search, n, search.library_end) for view in some])
            query = library
            if search.library_end != n:
                query = np.concatenate([lay_out_states(view, search, n, n) for view in some])
            predicted, _, noise = self._projector.predict(library, query)
            yield predicted, noise

    def skill(self, views: Sequence[tuple[int, ...]], rows: NDArray[np.int64]) -> Doubles:
        """rho (n_views,) over some rows."""
        found = []
        for predicted, noise in self._parts(views):
            assert self._projector is not None
            moved = predicted[:, rows] - self._projector.shift
            found.append(scores.pearson(moved, np.broadcast_to(self._aim[rows], moved.shape), noise))
        return np.concatenate(found)

    def release(self) -> None:
        """Give the device memory back."""
        if self._projector is not None:
            self._projector.release()


