"""The recurrence network: points as nodes, recurrences as links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from ..io.graphs import Graph
from ..io.labels import Label
from ..io.optional import need
from ..io.result import Result, brief
from ..jobs.function import public_function
from . import arguments, common, remarks
from .categories import coded
from .common import Device, Progress
from .conventions import CONVENTIONS
from .network_problem import NetworkProblem, links_of, list_links
from .points import embedding_of, near_one, points_of
from .thresholds import passes_for


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceNetwork(Result, Graph):
    """Measures of a recurrence network (Donner et al., New Journal of Physics 12, 033025, 2010).

    Attributes
    ----------
    degree : ndarray of int64 (n_points,)
        Links of each node; 0 for points that touch a gap.
    closed : ndarray of int64 (n_points,)
        Ordered pairs of linked neighbours: twice the triangles through each node.
    complete : ndarray of bool (n_points,)
        Points without a gap; the others are no nodes.
    radius : float
    links : ndarray of int32 (n_links, 2), optional
        Pairs of linked points, the earlier one first, where they were asked for.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.recurrence_network(x, m=2, tau=8, radius=0.2)
    >>> round(result.transitivity, 1), result.mean_degree > 20
    (0.7, True)
    >>> result.clustering.shape  # of each point
    (492,)
    """

    degree: NDArray[np.int64]
    closed: NDArray[np.int64]
    complete: NDArray[np.bool_] = field(repr=False)
    radius: float
    links: NDArray[np.int32] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    column_labels: ClassVar = {
        "point": Label("rows", "number of the point, counted from 0"),
        "degree": Label("1", "links of the point"),
        "clustering": Label("1", "share of pairs of the point's neighbours that are linked"),
    }

    def _facts(self) -> dict[str, str]:
        numbers = {name: brief(value) for name, value in self.to_dict().items()}
        links = f"{int(self.degree.sum()) // 2:,}"
        return numbers | {"points": f"{len(self.degree):,}", "links": links, "radius": brief(self.radius)}

    @property
    def clustering(self) -> NDArray[np.float64]:
        """Local clustering: the share of pairs of a node's neighbours that are linked; 0 below two neighbours, NaN
        for points that touch a gap."""
        pairs = self.degree * (self.degree - 1)
        local = np.divide(self.closed, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
        return np.where(self.complete, local, np.nan)

    @property
    def mean_clustering(self) -> float:
        """Mean of the local clustering over all nodes (the global clustering coefficient of Watts and Strogatz)."""
        return float(self.clustering[self.complete].mean()) if self.complete.any() else float("nan")

    @property
    def transitivity(self) -> float:
        """Closed pairs of neighbours / all pairs of neighbours, over all nodes; NaN without such pairs."""
        pairs = int((self.degree * (self.degree - 1)).sum())
        return int(self.closed.sum()) / pairs if pairs else float("nan")

    @property
    def mean_degree(self) -> float:
        """Mean number of links of a node."""
        return float(self.degree[self.complete].mean()) if self.complete.any() else float("nan")

    @property
    def density(self) -> float:
        """Links / pairs of nodes."""
        n = int(np.count_nonzero(self.complete))
        return int(self.degree.sum()) / (n * (n - 1)) if n > 1 else float("nan")

    def to_dict(self) -> dict[str, float]:
        """The measures that are single numbers."""
        names = ("transitivity", "mean_clustering", "mean_degree", "density")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per point, which is the index, with its degree and local clustering."""
        frame = need("pandas", "to_frame()").DataFrame({"degree": self.degree, "clustering": self.clustering})
        frame.index.name = "point"
        return frame

    def edges(self) -> Any:
        """A pandas DataFrame: a row per link, the two points that recur, the earlier one first.

        Raises
        ------
        InputError
            The network was made without ``links=True``.
        """
        return need("pandas", "edges()").DataFrame(self._links(), columns=["source", "target"])

    def to_networkx(self) -> Any:
        """An undirected networkx.Graph of the points without a gap; InputError as for :meth:`edges`."""
        links = self._links()
        graph = need("networkx", "to_networkx()", "graph").Graph()
        graph.add_nodes_from(str(point) for point in np.flatnonzero(self.complete))
        graph.add_edges_from((str(i), str(j)) for i, j in links.tolist())
        return graph

    def _links(self) -> NDArray[np.int32]:
        if self.links is None:
            raise InputError("links=True is needed for the links themselves; this network holds their numbers only")
        return self.links


@public_function
def recurrence_network(
    x: Any,
    *,
    m: int = 1,
    tau: int = 1,
    radius: float,
    metric: str = "euclidean",
    theiler: int | str | None = None,
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    regular: str | None = None,
    dtype: str = "float32",
    exact: bool = True,
    strict: bool = True,
    links: bool = False,
    progress: Progress | None = None,
    device: Device = None,
    tune: str | None = None,
) -> RecurrenceNetwork:
    """Degree, clustering and transitivity of the network whose links are recurrences.

    The adjacency matrix lies in the device's memory with a bit per pair of points: n (n + 31) / 8 bytes. Of several
    devices each makes all links, and finds the triangles of some points.

    Parameters
    ----------
    x, m, tau, metric, normalize, radius_unit, state, embedded, regular, dtype, device, tune
        As for :func:`pyedmcl.rqa`.
    radius : float
        A radius, or with ``threshold="recurrence_rate"`` the share of linked pairs (the density).
    theiler : int or "auto", optional
        Points less than max(theiler, 1) apart in time are not linked; "auto" as for :func:`pyedmcl.rqa`.
    threshold : {"fixed", "recurrence_rate"}
    exact : bool
        Links are those of float64 arithmetic; else series and radius are rounded to ``dtype``.
    strict : bool
        Linked where d < radius; else where d <= radius.
    links : bool
        Keep the links themselves, 8 bytes each, for ``edges()``, networkx and files of graphs.
    progress : callable or True, optional
        Called as ``progress(done, total, "points")``.

    Returns
    -------
    RecurrenceNetwork

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    DeviceMemoryError
        The matrix does not fit; the message says how many bytes it needs.

    See Also
    --------
    rqa : lines of the same matrix.

    Notes
    -----
    Cost: about n^2 * m multiply-adds, and n / 32 word operations for each link, to find the triangles.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.recurrence_network(x, m=2, tau=8, radius=0.2)
    >>> result.degree.shape
    (492,)
    """
    (x,) = coded(radius if threshold == "fixed" else 0.5, x)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention="pyrqa" if strict else "crqa", lmin=2, vmin=2, wmin=2, dtype=dtype, exact=exact, tile=None,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    if threshold not in ("fixed", "recurrence_rate"):
        raise InputError(f"threshold={threshold!r}: links go both ways; choose 'fixed' or 'recurrence_rate'")
    arguments.reporter(progress, "points")
    radii, several = arguments.radii_of(radius, threshold, strict=strict, unit=options.radius_unit)
    if several:
        raise InputError(f"radius={shown(radius)}: a network has one radius; call once for each")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    (points,) = near_one(options.arithmetic, points_of(x, "x", embedding))
    # The rate is that of linked pairs, whatever the rules of a convention: outside the window on both sides.
    rules = CONVENTIONS["recurrenceanalysis"]
    window = max(arguments.window(theiler, rules, points.n, points.n, series=(points.given,)), 1)
    problem = common.problem_of(points, None, options, theiler=window)
    runner = common.runner_of(device, options)
    rated = replace(problem, theiler_everywhere=True)
    sweep = passes_for(runner, rated, rules, points, points, threshold, radii, unit=options.radius_unit)[0]
    found = NetworkProblem(sweep.problem, points.values)
    degree, closed = links_of(runner, found)
    listed = list_links(runner.executor, found) if links else None
    record = common.provenance(runner, points, options, threshold=threshold, wanted=radii[0], theiler=window)
    network = RecurrenceNetwork(degree, closed, points.complete, sweep.radii[0], listed, record)
    density = network.density
    remarks.tell_of_links(density, density, network.radius, threshold, radii[0], points.given)
    return network
