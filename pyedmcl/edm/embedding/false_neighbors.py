"""False nearest neighbours: the embedding dimension that unfolds an attractor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import real
from ...data.columns import some
from ...data.condition import Prepared
from ...data.group_labels import take_groups
from ...data.series import as_series, build_series, check_embedding, require_rows
from ...device.select import DeviceNames
from ...errors import ConstantSeriesWarning, warn
from ...io.fields import labelled
from ...io.labels import Label, common
from ...io.optional import pandas_for
from ...io.result import Result
from ...jobs.function import public_function
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ..shared import arguments
from .false_neighbors_problem import FalseNeighborsProblem


@dataclass(frozen=True, eq=False, repr=False)
class FalseNeighbors(Result):
    """Shares of false nearest neighbours.

    Attributes
    ----------
    share : ndarray of float64 (E_max,) or (n_series, E_max)
        For E = 1, ..., E_max.
    names : tuple of str
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.false_neighbors(network.values, E_max=5)
    >>> result.share[0].round(1).tolist()  # of the first series, for E = 1, ..., 5
    [0.7, 0.2, 0.2, 0.1, 0.1]
    >>> result.dimension(tolerance=0.3).tolist()  # of each series; noise leaves some neighbours false in any E
    [2, 2, 2, 2]
    """

    series_label: ClassVar = Label("1", "share of false nearest neighbours of this series in E dimensions")
    column_labels: ClassVar = common("E")

    share: NDArray[np.float64]
    names: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def dimension(self, tolerance: float = 0.01) -> Any:
        """The smallest E whose share is at most ``tolerance``, of each series; 0 where there is none."""
        most = real("tolerance", tolerance, "a share from 0 to 1", lambda value: 0 <= value <= 1)
        few = np.atleast_2d(self.share) <= most
        smallest = np.where(few.any(axis=1), few.argmax(axis=1) + 1, 0)
        return int(smallest[0]) if self.share.ndim == 1 else smallest

    def to_xarray(self) -> Any:
        """An xarray DataArray (series, E)."""
        share = np.atleast_2d(self.share)
        return labelled(share, [("series", self.names), ("E", np.arange(1, share.shape[1] + 1))], "share")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per E, a column per series."""
        table = np.atleast_2d(self.share).T
        frame = pandas_for("to_frame()").DataFrame(table, columns=list(self.names))
        frame.index = range(1, len(table) + 1)
        frame.index.name = "E"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """Shares against E; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.embedding import curves

        at = range(1, self.share.shape[-1] + 1)
        return curves(at, self.share, self.names, "E", "share of false nearest neighbours", path)


@public_function
def false_neighbors(
    x: Any,
    *,
    E_max: int = 10,
    tau: int = 1,
    ratio: float = 15.0,
    size: float = 2.0,
    exclusion_radius: int = 0,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> FalseNeighbors:
    """Find the share of states whose nearest neighbour is false (Kennel et al., Physical Review A 45, 3403, 1992).

    A nearest neighbour in E coordinates is false where one more coordinate shows that the states only seemed near: the
    attractor needs more than E dimensions to unfold.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E_max : int
        Largest dimension tried, at least 1.
    tau : int
        Lag, at least 1.
    ratio : float
        False where the further coordinate, x[t - E tau], differs by more than ``ratio`` times the distance in E
        coordinates.
    size : float
        Also false where the distance in E + 1 coordinates exceeds ``size`` standard deviations of the series: noise
        seems to need ever more dimensions without this.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    neighbors, recall
        How neighbours are searched; as for :func:`pyedmcl.knn`.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")``.
    dtype, device, client, tune
        As for :func:`pyedmcl.embed_dimension`.

    Returns
    -------
    FalseNeighbors
        ``share`` (E_max,) for 1-D input, else (n_series, E_max); ``dimension()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embed_dimension : the dimension that predicts best.
    mutual_information : choose the lag.

    Notes
    -----
    Cost: about n_steps^2 * E_max multiply-adds for each series: the distances of E come from those of E - 1.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> pyedmcl.false_neighbors(network.values, E_max=5).share.shape
    (4, 5)
    """
    _, tau = check_embedding(1, tau)
    E_max = arguments.integer("E_max", E_max, 1)
    positive = "a positive number"
    ratio, size = (
        real(name, value, positive, lambda number: number > 0) for name, value in (("ratio", ratio), ("size", size))
    )
    radius = arguments.exclusion(exclusion_radius)
    search = arguments.neighbor_search(neighbors, recall)
    dtype = arguments.precision(dtype)
    arguments.reporter(progress)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    require_rows(series, E=E_max + 1, tau=tau, Tp=0, k=1, what="x")
    if series.constant:
        warn(f"constant series, whose states all are neighbours: {some(series.constant)}", ConstantSeriesWarning)
    if of is not None:
        layout = of.layout(E=E_max + 1, tau=tau, Tp=[0], exclusion_radius=radius)
        series, radius = layout.series(series, "x"), layout.exclusion_radius
    behind = build_series(series.values[tau:], series.names)
    problem = FalseNeighborsProblem(Prepared(behind, dtype), series.values, E_max, tau, radius, ratio, size, search)
    runner = arguments.runner_on(device, dtype, client)
    share = np.empty((series.n_series, E_max))
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [share]))
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    return FalseNeighbors(share[0] if single else share, series.names, runner.provenance(problem.kernels, record))
