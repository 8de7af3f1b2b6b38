"""What all-pairs cross mapping returns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import choice
from ...data.grid import Grid
from ...errors import InputError
from ...io.fields import labelled
from ...io.graphs import Graph, graph_of_edges
from ...io.labels import Label
from ...io.optional import pandas_for
from ...io.result import Result
from ..shared.measures import ERRORS


def best_edges(
    rho: Any, skill: str, names: Sequence[str], E: NDArray[np.int_], top: int, targets: Sequence[str] | None
) -> Sequence[Any]:
    """The strongest pairs of a series with another, as :func:`pyedmcl.io.edges.strongest_edges` takes them.

    Of a measure that is an error these are the smallest ones.
    """
    from ...io.edges import strongest_edges

    if skill not in ERRORS:
        return strongest_edges(rho, names, E, top, targets)
    best = strongest_edges(-np.asarray(rho), names, E, top, targets)
    return [edge._replace(rho=-edge.rho) for edge in best]


@dataclass(frozen=True, repr=False)
class XmapResult(Graph, Result):
    """All-pairs cross-map skill.

    Attributes
    ----------
    rho : array_like (n_libraries, n_targets)
        Row = library, column = target: rho[i, j] is the skill with which the embedding of series i predicts series j,
        hence evidence that j drives i. An array; where ``out=`` was a folder, a lazy one read from ``store``; where it
        was an array on the device, what stands for that (``rho.array``) and comes to the host when it is used.
    E : ndarray of int (n_targets,)
        Embedding dimension of each target.
    names : tuple of str
        Of the libraries.
    store : object or None
        The result store, where there is one.
    theta : float, ndarray or None
        Localisation of method "smap": a number, one for each of several maps, or (n_libraries, n_targets) that of the
        largest rho of each pair. None for method "simplex".
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.
    folds : ndarray or None
        rho of each fold (folds, n_libraries, n_targets), of which ``rho`` is the mean, where there are folds in memory.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.
    predictions : ndarray (n_libraries, n_targets, n_steps) or None
        Where they were asked for: prediction of each row of each target from each library, NaN where there is none.
    coefficients : ndarray (n_libraries, n_targets, largest E) or None
        Where they were asked for: the mean over rows of the slope of a target on each lag of a library, in units of the
        target for a unit of the library; NaN behind the target's E.
    lags : tuple of int or None
        How many steps before the state each of these lags lies.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3)
    >>> round(float(result.rho[0, 2]), 1)  # row = effect, column = cause: evidence that x2 drives x0
    0.9
    >>> [(edge.target, edge.library, round(edge.rho, 1)) for edge in result.edges(top=2)]  # cause, effect, skill
    [('x2', 'x0', 0.9), ('x2', 'x3', 0.8)]
    >>> result.to_frame().columns.tolist()
    ['x0', 'x1', 'x2', 'x3']
    """

    series_label: ClassVar = Label("1", "skill of predicting this series (the cause) from the row's (the effect)")

    rho: Any
    E: NDArray[np.int_]
    names: tuple[str, ...]
    store: Any = field(default=None, repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    theta: Any = field(default=None, repr=False)
    targets: tuple[str, ...] | None = None
    folds: NDArray[Any] | None = field(default=None, repr=False)
    skill: str = "pearson"
    predictions: NDArray[Any] | None = field(default=None, repr=False)
    grids: tuple[Grid | None, Grid | None] = field(default=(None, None), repr=False)
    coefficients: NDArray[np.float64] | None = field(default=None, repr=False)
    lags: tuple[int, ...] | None = field(default=None, repr=False)

    def held(self) -> XmapResult:
        """The same result in memory, without its store."""
        if self.store is None:
            result: XmapResult = super().held()
            return result
        return replace(self, rho=np.asarray(self.rho), store=None)

    @property
    def _single(self) -> Any:
        """The map, where it is one. Raises InputError where there is one for each of several theta."""
        if self.rho.ndim > 2:
            raise InputError(
                f"rho holds {len(self.rho)} maps, one for each theta: tables, edges and pictures are of one map. Ask "
                'for a single theta=, or theta="best"; to_xarray() has them all'
            )
        return self.rho

    def to_frame(self) -> Any:
        """A pandas DataFrame, rows = libraries, columns = targets."""
        targets = list(self.targets or self.names)
        return pandas_for("to_frame()").DataFrame(np.asarray(self._single), index=list(self.names), columns=targets)

    def to_xarray(self, what: str = "rho") -> Any:
        """An xarray DataArray (library, target); the coordinates of a field take the place of its cells.

        ``what="coefficients"`` gives the mean slopes (library, target, lag) instead.
        """
        rho = np.asarray(self.rho)
        axes = [("library", self.grids[0] or self.names), ("target", self.grids[1] or self.targets or self.names)]
        if choice("what", what, ("rho", "coefficients")) == "coefficients":
            if self.coefficients is None:
                raise InputError("what='coefficients': the map has none; xmap(..., coefficients='mean') makes them")
            return labelled(self.coefficients, [*axes, ("lag", self.lags)], "coefficients")
        return labelled(rho, [("theta", self.theta), *axes] if rho.ndim > 2 else axes, "rho")

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` strongest pairs of a series with another, as (library, target, rho, E); the smallest errors."""
        return best_edges(self._single, self.skill, self.names, self.E, top, self.targets)

    def write_edges(self, path: str | os.PathLike[str], top: int = 100) -> Path:
        """Write :meth:`edges` as .csv, .tsv, .json, .npz or .parquet.

        Raises
        ------
        OutputError
            Another suffix, or a folder that is not there.
        StoreWriteError
            The file cannot be written.
        MissingExtraError
            Parquet needs pyarrow, which is not installed.
        """
        from ...io.edges import write_edges

        return write_edges(path, self.edges(top))

    def to_networkx(self, top: int = 100) -> Any:
        """A networkx.DiGraph of :meth:`edges`, from cause (target) to effect (library). Needs networkx.

        Nodes of targets hold E, edges rho.
        """
        return graph_of_edges(self.edges(top))

    def plot(self, path: str | None = None, *, cluster: bool = False) -> Any:
        """Heat map; saved to ``path`` if given. Needs matplotlib.

        ``cluster`` puts series that are alike side by side, for which SciPy is needed.
        """
        from ...plot import heat_map

        return heat_map(self._single, self.names, path, targets=self.targets, cluster=cluster)

    def plot_network(
        self, path: str | None = None, *, top: int = 40, layout: str = "circle", clusters: Any = None
    ) -> Any:
        """The ``top`` strongest pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ...plot.network import causal_network

        return causal_network(
            self._single, self.names, path, targets=self.targets, top=top, layout=layout, clusters=clusters
        )
