"""Multiview embedding: forecasts from many views of one system, of which the best are averaged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import select
from ..device.memory import budget
from ..device.select import DeviceNames
from ..engines.predict import Projector
from ..errors import InputError, pandas_for
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, rows_of_a_block
from ..jobs.runner import ArraySink, Runner, public_function
from ..launch.progress import Progress
from ..search.tables import coordinate_problem, lay_out_states
from ..series.calendar import times_at
from ..series.groups import Entries, take_groups
from ..series.scaling import near_one, squares
from ..series.series import as_series, check_embedding, require_rows, tell_constant, tell_scales
from ..states import arguments as scores
from ..states import rows as ranges
from ..states.arguments import operations
from ..states.states import condition_together, embed, future
from .simplex import SimplexResult, check_library

if TYPE_CHECKING:
    from ..device.executor import Executor


# Views of one system as a job: the problem, and the engine that projects from some views at a time.


Doubles = NDArray[np.float64]
_BLOCK_CELLS = 1 << 24  # predictions of a block


@dataclass(frozen=True)
class ViewsProblem:
    """Simplex projections of one target from different choices of coordinates; blocks are ranges of views."""

    # ndarray (n_steps, n_coordinates). All coordinates, conditioned together.
    states: NDArray[np.float64]
    # ndarray (n_steps,). The series that is predicted.
    target_values: Doubles
    # The coordinates of each view.
    views: tuple[tuple[int, ...], ...]
    k: int
    Tp: int
    exclusion_radius: int
    # ndarray of bool (n_steps,) or None. Library rows that may be used.
    library_mask: NDArray[np.bool_] | None
    # What kernels compute in.
    dtype: str
    # Rows over which each view's skill is asked for; None for the predictions themselves.
    scored: NDArray[np.int64] | None

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = ""  # the search itself reports

    @property
    def total(self) -> int:
        """Views."""
        return len(self.views)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of views, to be shared by ``devices``."""
        most = max(_BLOCK_CELLS // len(self.states), 1)
        return cut(self.total, rows_of_a_block(self.total, most, devices))

    @property
    def operations(self) -> float:
        n = len(self.states)
        return operations((len(self.views[0]),), n_library=n, n_query=n, n_series=self.total)

    def result(self) -> Doubles:
        """Room for skill (views,), or for predictions (views, n_steps)."""
        return np.empty((self.total,) if self.scored is not None else (self.total, len(self.states)))

    def open(self, executor: Executor) -> ViewsEngine:
        return ViewsEngine(self, executor)


class ViewsEngine:
    """Simplex projections from different choices of coordinates, many in a launch."""

    def __init__(self, problem: ViewsProblem, executor: Executor) -> None:
        p, n = problem, len(problem.states)
        self._problem = problem
        self._future = future(p.target_values, p.Tp)
        self._search = coordinate_problem(len(p.views[0]), p.k, p.Tp, p.exclusion_radius, n, n, p.dtype)
        self._projector = Projector(executor, self._search, self._future, p.library_mask)
        self._batch = max(int(budget(executor.info).total // 16 // (self._search.stride(n) * self._search.itemsize)), 1)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (views,) over the scored rows, or predictions (views, n_steps)."""
        parts, rows = [], self._problem.scored
        for predicted, noise in self._parts(self._problem.views[block.begin : block.end]):
            if rows is not None:
                moved = predicted[:, rows] - self._projector.shift
                observed = np.broadcast_to(self._future[rows], moved.shape)
                parts.append(scores.pearson(moved, observed, noise))
            else:
                parts.append(predicted)
        searcher = self._projector.searcher
        return BlockResult([np.concatenate(parts)], Record(searcher.parameters, searcher.grade))

    def _parts(self, views: Sequence[tuple[int, ...]]) -> Iterator[tuple[Doubles, float]]:
        """Predictions of some views at a time, and their rounding noise."""
        search, n = self._search, len(self._problem.states)
        for a in range(0, len(views), self._batch):
            states = [self._problem.states[:, view] for view in views[a : a + self._batch]]
            library = np.concatenate([lay_out_states(view, search, n, search.library_end) for view in states])
            query = library
            if search.library_end != n:
                query = np.concatenate([lay_out_states(view, search, n, n) for view in states])
            predicted, _, noise = self._projector.predict(library, query)
            yield predicted, noise

    def release(self) -> None:
        """Give the device memory back."""
        self._projector.release()


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
        from ..plot.curves import views

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
    E : int
        Lags of each series, at least 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps ahead; 0 or negative are allowed.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    n_views : int, optional
        How many are averaged; by default the square root of the number of views, rounded down.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    exclude_target : bool
        No view holds the target itself.
    columns : sequence of str or int, optional
        Series that views are made of, by name or position; all by default.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

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
    E, tau = check_embedding(E, tau)
    data, of = take_groups(data, groups, "data")
    series = as_series(data)
    if isinstance(target, bool) or not isinstance(target, (str, int, np.integer)):
        raise InputError(f"target={scores.shown(target)}: the name or the position of a series of data is needed")
    target_column = select(series.names, [target], "data")[0]
    used = [c for c in select(series.names, columns, "data") if not (exclude_target and c == target_column)]
    if not used:
        raise InputError("exclude_target=True leaves no series to make views of; name others with columns=")
    require_rows(series, E=E, tau=tau, Tp=Tp, k=1)
    tell_scales(series.part(*used), "data")
    names = [f"{series.names[c]}(t-{e * tau})" for c in used for e in range(E)]
    dims = len(used) if D is None else D
    n_best = _check_views(dims, E, len(used), n_views)
    tell_constant(data=series.part(target_column))
    times, layout = series.time, None
    if of is not None:
        layout = of.layout(E=E, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius)
        series, exclusion_radius = layout.series(series), layout.exclusion_radius
        lib_range, valid_lib, pred_range = (
            ranges.in_layout(name, given, layout)
            for name, given in (("lib_range", lib_range), ("valid_lib", valid_lib), ("pred_range", pred_range))
        )
    n, first = series.n_steps, (E - 1) * tau
    target_values = series.values[:, target_column].astype(np.float64)
    k = knn or dims + 1
    library_mask = ranges.mask_of_library(n, E=E, tau=tau, Tp=Tp, lib_range=lib_range, valid_lib=valid_lib)
    drawn = np.ones(n, bool) if library_mask is None else library_mask
    training = np.flatnonzero(drawn & (np.arange(n) >= first))
    check_library(series.values[:, used], target_values, E, tau, Tp, library_mask, None if knn is None else k, "data")
    rows = ranges.prediction_rows(n, first, pred_range)
    states = embed(condition_together(series.values[:, used], dtype), E, tau)
    views = tuple(itertools.combinations(range(len(names)), dims))
    runner = scores.runner_on(device, dtype, client)
    ranking = ViewsProblem(states, target_values, views, k, Tp, exclusion_radius, library_mask, dtype, training)
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
    n_best = max(math.isqrt(n_tried), 1) if n_views is None else n_views
    if n_best > n_tried:
        raise InputError(f"n_views={n_best}: there are {n_tried} views")
    return n_best


def _best_views(ranking: ViewsProblem, n_best: int, runner: Runner) -> tuple[ViewsProblem, NDArray[Any]]:
    """The problem of the views that predict the library's rows best, and their rho, the best first."""
    rho = ranking.result()
    runner.run(ranking, ArraySink(ranking.blocks(runner.devices), [rho]))
    order = np.lexsort((np.arange(len(rho)), -np.where(np.isnan(rho), -np.inf, rho)))[:n_best]
    return replace(ranking, views=tuple(ranking.views[i] for i in order), scored=None), rho[order]
