"""Multiview embedding: many views of one system, of which the best are averaged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.columns import select
from ...data.condition import near_one, squares
from ...data.dates import times_at
from ...data.group_labels import take_groups
from ...data.groups import Entries
from ...data.series import as_series, check_embedding, require_rows, tell_constant, tell_scales
from ...device.select import DeviceNames
from ...errors import InputError
from ...io.optional import pandas_for
from ...jobs.function import public_function
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ..shared import arguments, ranges, scores
from ..shared.states import condition_together, embed
from .multiview_problem import ViewsProblem
from .simplex_fit import check_library
from .simplex_result import SimplexResult

Doubles = NDArray[np.float64]
_MOST_VIEWS = 1_000_000


@dataclass(frozen=True, repr=False)
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

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.multiview(network.values, 0, D=2, E=2)
    >>> result.rho > 0.9, result.n_tried, len(result.views)
    (True, 28, 5)
    >>> result.views_frame().columns.tolist()
    ['coordinate 1', 'coordinate 2', 'rho']
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
        from ...plot.forecast import views

        return views(self, path)


@public_function
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
    groups: Any = None,
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
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
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "queries")``; True shows a bar.
    dtype, device, tune
        As for :func:`pyedmcl.knn`.
    client : optional
        As for :func:`pyedmcl.xmap`.

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
    ClientError
        Workers of ``client`` cannot be used, or were lost.

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
    arguments.reporter(progress)
    E, tau = check_embedding(E, tau)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.exclusion(exclusion_radius)
    dtype = arguments.precision(dtype)
    data, of = take_groups(data, groups, "data")
    series = as_series(data)
    if isinstance(target, bool) or not isinstance(target, (str, int, np.integer)):
        raise InputError(f"target={arguments.shown(target)}: the name or the position of a series of data is needed")
    target_column = select(series.names, [target], "data")[0]
    used = [c for c in select(series.names, columns, "data") if not (exclude_target and c == target_column)]
    if not used:
        raise InputError("exclude_target=True leaves no series to make views of; name others with columns=")
    require_rows(series, E=E, tau=tau, Tp=Tp, k=1)
    tell_scales(series.part(*used), "data")
    names = [f"{series.names[c]}(t-{e * tau})" for c in used for e in range(E)]
    dims = len(used) if D is None else arguments.integer("D", D, 1)
    n_best = _check_views(dims, E, len(used), n_views)
    tell_constant(data=series.part(target_column))
    times, layout = series.time, None
    if of is not None:
        layout = of.layout(E=E, tau=tau, Tp=[Tp], exclusion_radius=radius)
        series, radius = layout.series(series), layout.exclusion_radius
        lib_range, valid_lib, pred_range = (
            ranges.in_layout(name, given, layout)
            for name, given in (("lib_range", lib_range), ("valid_lib", valid_lib), ("pred_range", pred_range))
        )
    n, first = series.n_steps, (E - 1) * tau
    target_values = series.values[:, target_column].astype(np.float64)
    k = arguments.count("knn", knn) or dims + 1
    library_mask = ranges.library_mask(n, E=E, tau=tau, Tp=Tp, lib_range=lib_range, valid_lib=valid_lib)
    drawn = np.ones(n, bool) if library_mask is None else library_mask
    training = np.flatnonzero(drawn & (np.arange(n) >= first))
    check_library(series.values[:, used], target_values, E, tau, Tp, library_mask, None if knn is None else k, "data")
    rows = ranges.prediction_rows(n, first, pred_range)
    states = embed(condition_together(series.values[:, used], dtype), E, tau)
    views = tuple(itertools.combinations(range(len(names)), dims))
    runner = arguments.runner_on(device, dtype, client)
    ranking = ViewsProblem(states, target_values, views, k, Tp, radius, library_mask, dtype, training)
    best, view_rho = _best_views(ranking, n_best, runner)
    predicted = best.result()
    record = runner.run(best, ArraySink(best.blocks(runner.devices), [predicted]))
    predicted = predicted[:, rows]
    observed = ranges.observed_at(target_values, rows, Tp)
    scaled, exponent = near_one(predicted)
    mean, variance = np.ldexp(scaled.mean(axis=0), exponent), squares(scaled.var(axis=0), exponent)
    mae, rmse = scores.errors(mean, observed)
    shown = Entries.of(rows, Tp, first, layout)
    return MultiviewResult(
        time=shown.time, observed=observed[shown.kept], predicted=mean[shown.kept], variance=variance[shown.kept],
        rho=float(scores.pearson(mean, observed)), mae=mae, rmse=rmse, E=dims,
        provenance=runner.provenance(best.kernels, record),
        views=tuple(tuple(names[c] for c in view) for view in best.views), view_rho=view_rho,
        view_predictions=predicted[:, shown.kept], n_tried=len(views), group=shown.group,
        dates=None if layout is not None else times_at(times, rows + Tp), name=series.names[target_column],
    )  # fmt: skip


def _check_views(dims: int, E: int, n_series: int, n_views: Any) -> int:
    """How many views are averaged, of those with ``dims`` of the lagged series."""
    coordinates = n_series * E
    if dims > coordinates:
        raise InputError(f"D={dims}: {n_series} series with E={E} give {coordinates} coordinates to choose from")
    n_tried = math.comb(coordinates, dims)
    if n_tried > _MOST_VIEWS:
        raise InputError(
            f"D={dims}, E={E}: {coordinates} coordinates give more than {_MOST_VIEWS:,} views; take a smaller D or E, "
            "or fewer columns"
        )
    n_best = max(math.isqrt(n_tried), 1) if n_views is None else arguments.integer("n_views", n_views, 1)
    if n_best > n_tried:
        raise InputError(f"n_views={n_best}: there are {n_tried} views")
    return n_best


def _best_views(ranking: ViewsProblem, n_best: int, runner: Runner) -> tuple[ViewsProblem, NDArray[Any]]:
    """The problem of the views that predict the library's rows best, and their rho, the best first."""
    rho = ranking.result()
    runner.run(ranking, ArraySink(ranking.blocks(runner.devices), [rho]))
    order = np.lexsort((np.arange(len(rho)), -np.where(np.isnan(rho), -np.inf, rho)))[:n_best]
    return replace(ranking, views=tuple(ranking.views[i] for i in order), scored=None), rho[order]
