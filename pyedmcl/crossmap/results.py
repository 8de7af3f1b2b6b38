"""Results of cross mapping: maps of all pairs, lists of the strongest pairs, and maps within windows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import choice
from ..atomic_files import path_of
from ..errors import InputError, need, pandas_for
from ..results.edges import (
    E_OF,
    Graph,
    Strongest,
    are_two,
    edges_of,
    graph_of_edges,
    own_targets,
    strongest_answer,
    write_edge_parts,
)
from ..results.result import Answer, Label, Result, labelled
from ..results.saved import SUFFIX
from ..results.tables import ROLES, role_columns, roles
from ..series.fields import Grid
from ..states.arguments import ERRORS, PAIRS_SHOWN, spans
from .keep import Edges, Keep, TargetTop, joined

# What all-pairs cross mapping returns.


def best_edges(
    rho: Any, skill: str, names: Sequence[str], E: NDArray[np.int_], top: int, targets: Sequence[str] | None
) -> Sequence[Any]:
    """The strongest pairs of a series with another, as :func:`pyedmcl.results.edges.strongest_edges` takes them.

    Of a measure that is an error these are the smallest ones.
    """
    from ..results.edges import strongest_edges

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

    def _at_Tp(self, before: str) -> str:
        """The lag of all skills in words, where it is known: maps of other lags have other skills."""
        asked = dict(self.provenance).get("arguments")
        Tp = asked.get("Tp") if isinstance(asked, Mapping) else None
        return f"{before}Tp = {Tp}" if isinstance(Tp, int) else ""

    def _headline(self, alone: bool) -> str:
        return super()._headline(alone) + self._at_Tp(" at ")

    def answer(self) -> Answer | None:
        """The strongest pairs; see :attr:`edges`."""
        return strongest_answer(self) if self.rho.ndim == 2 and self._is_small() else None

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
        from ..results.edges import write_edges

        return write_edges(path, self.edges(top))

    def to_networkx(self, top: int = 100) -> Any:
        """A networkx.DiGraph of :meth:`edges`, from cause (target) to effect (library). Needs networkx.

        Nodes of targets hold E, edges rho.
        """
        return graph_of_edges(self.edges(top))

    def plot(self, path: str | None = None, *, cluster: bool = False) -> Any:
        """Heat map; saved to ``path`` if given. Needs matplotlib.

        ``cluster`` puts series that are alike side by side, for which SciPy is needed. Skill of a field of two
        dimensions with up to six other series is drawn as a map of the field for each.
        """
        from ..plot.pairs import FEW_FIELDS, field_maps, heat_map

        label = f"cross-map skill rho{self._at_Tp(' at ')}"
        for side, grid in enumerate(self.grids):
            others = (self.targets or self.names, self.names)[side]
            if grid is not None and len(grid.dims) == 2 and len(others) <= FEW_FIELDS and not cluster:
                values = np.moveaxis(np.asarray(self._single, np.float64), side, -1)
                words = ("{} drives each cell?", "each cell drives {}?")[side]
                return field_maps(values, grid, [words.format(name) for name in others], path, label=label)
        return heat_map(self._single, self.names, path, targets=self.targets, cluster=cluster, label=label)

    def plot_network(
        self, path: str | None = None, *, top: int = 40, layout: str = "circle", clusters: Any = None
    ) -> Any:
        """The ``top`` strongest pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ..plot.pairs import causal_network

        return causal_network(
            self._single, self.names, path, targets=self.targets, top=top, layout=layout, clusters=clusters
        )


# What all-pairs cross mapping returns where it keeps the strongest pairs only.


@dataclass(frozen=True, repr=False)
class XmapEdges(Graph, Result):
    """The pairs of a cross map that were kept.

    Edges come by library, falling rho and target; of "top:K:target" by target, falling rho and library; of "rho>X" by
    library and target.

    Attributes
    ----------
    keep : str
        The rule by which they were kept.
    E : ndarray of int (n_targets,)
        Embedding dimension of each target.
    names : tuple of str
        Of the libraries.
    dtype : str
        Of rho.
    parts : callable
        Gives the edges part by part, as arrays with the fields library, target (positions) and rho: for what is larger
        than memory.
    store : object or None
        The result store, where there is one.
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3, keep="top:1")  # the strongest cause of each series
    >>> result.library.tolist(), result.target.tolist()  # series 2 is that of series 0, 1 and 3
    ([0, 1, 2, 3], [2, 2, 1, 2])
    >>> result.edges(top=1)[0].target
    'x2'
    """

    keep: str
    E: NDArray[np.int_]
    names: tuple[str, ...]
    dtype: str
    parts: Callable[[], Iterator[Edges]] = field(repr=False)
    store: Any = field(default=None, repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    targets: tuple[str, ...] | None = None

    def answer(self) -> Answer | None:
        """The strongest pairs that were kept."""
        return strongest_answer(self) if self._is_small() else None

    @cached_property
    def _all(self) -> Edges:
        return joined(self.parts(), self.dtype)

    def __len__(self) -> int:
        return sum(map(len, self.parts()))

    @property
    def library(self) -> NDArray[np.int32]:
        """Position of the library (the effect) of each edge."""
        return self._all["library"]

    @property
    def target(self) -> NDArray[np.int32]:
        """Position of the target (the cause) of each edge."""
        return self._all["target"]

    @property
    def rho(self) -> NDArray[Any]:
        """Skill of each edge."""
        return self._all["rho"]

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` strongest of them, as (library, target, rho, E)."""
        strongest, n = Strongest(top), len(self.E)
        for part in self.parts():
            strongest.add(part["rho"].astype(np.float64), part["library"].astype(np.int64) * n + part["target"])
        return edges_of(strongest, self.names, self.E, self.targets)

    def to_frame(self) -> Any:
        """A pandas DataFrame of all of them: cause, effect, library, target, rho, E, and whose E it is."""
        libraries, targets = (np.array(names, object) for names in (self.names, self.targets or self.names))
        return pandas_for("to_frame()").DataFrame(
            {
                **role_columns(libraries[self.library], targets[self.target]), "rho": self.rho,
                "E": self.E[self.target], "E_of": E_OF,
            }
        )  # fmt: skip

    def to_scipy(self) -> Any:
        """A sparse array of SciPy (CSR) of the map's shape: row = library, column = target."""
        sparse = need("scipy.sparse", "to_scipy()", "approximate")
        return sparse.csr_array((self.rho, (self.library, self.target)), shape=(len(self.names), len(self.E)))

    def to_networkx(self) -> Any:
        """A networkx.DiGraph of all series, with an edge from cause (target) to effect (library) for each kept pair.

        Nodes of targets hold E, edges rho. Needs networkx.
        """
        graph = need("networkx", "to_networkx()", "graph").DiGraph()
        graph.add_nodes_from((name, {}) for name in self.names)  # a name of two letters alone would be taken for a pair
        targets = self.targets or self.names
        graph.add_nodes_from((name, {"E": int(E)}) for name, E in zip(targets, self.E, strict=True))
        for part in self.parts():
            ends = (part["target"].tolist(), part["library"].tolist(), part["rho"].tolist())
            graph.add_weighted_edges_from(
                ((targets[cause], self.names[effect], rho) for cause, effect, rho in zip(*ends, strict=True)), "rho"
            )
        return graph

    def held(self) -> XmapEdges:
        """The same edges in memory, without their store."""
        return replace(self, parts=HeldParts((self._all,)), store=None)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all of them to a file, part by part.

        Parameters
        ----------
        path : path
            ``.edm``: the result, for :func:`pyedmcl.open_result`.
            ``.csv``, ``.tsv``, ``.json`` or ``.parquet``: cause, effect, library, target, rho, E, E_of. ``.npz``:
            arrays of library and target (positions), rho, E (of each edge's target) and names, those of targets too
            where these differ.

        Raises
        ------
        InputError
            For another suffix or a folder that is not there.
        StoreWriteError
            If the file cannot be written; a file that was there is kept then.
        """
        place = path_of(path)
        if place.suffix.lower() == SUFFIX:
            return super().save(place)
        return write_edge_parts(place, self.parts, self.names, self.E, {"keep": self.keep}, self.targets)

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150) -> Any:
        """Heat map of the edges; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.pairs import edge_map

        return edge_map(
            self.parts, self.names, path, keep=self.keep, targets=self.targets, title=title, dpi=dpi
        )

    def plot_network(
        self, path: str | os.PathLike[str] | None = None, *, top: int = 40, title: str | None = None, dpi: int = 150,
        layout: str = "circle", clusters: Any = None,
    ) -> Any:  # fmt: skip
        """The ``top`` strongest as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ..plot.pairs import network_of_edges

        return network_of_edges(
            self.parts, self.names, path, targets=self.targets, top=top, title=title, dpi=dpi, layout=layout,
            clusters=clusters,
        )  # fmt: skip


def edges_of_store(store: Any, E: Any, provenance: Mapping[str, Any]) -> XmapEdges:
    """The edges that a store kept, which are read when they are used."""
    parts = StoredParts(store)
    return XmapEdges(store.keep, E, store.names, store.manifest.dtype, parts, store, provenance, store.targets)


@dataclass(frozen=True)
class HeldParts:
    """Edges in memory.

    Attributes
    ----------
    arrays : tuple of ndarray
    """

    arrays: tuple[Edges, ...]

    def __call__(self) -> Iterator[Edges]:
        return iter(self.arrays)


@dataclass(frozen=True)
class StoredParts:
    """Edges of a store, read when they are asked for; blocks that are not there are left out."""

    store: Any

    def __call__(self) -> Iterator[Edges]:
        keep = Keep.parse(self.store.keep)
        return iter((self._merged,)) if keep is not None and keep.merges else self._blocks()

    @cached_property
    def _merged(self) -> Edges:
        keep = Keep.parse(self.store.keep) or Keep()
        store = self.store
        itself = own_targets(store.names, store.targets)
        top = TargetTop(keep.most or 1, itself, store.shape[1], store.manifest.dtype)
        for edges in self._blocks():
            top.add(edges)
        return top.edges()

    def _blocks(self) -> Iterator[Edges]:
        for block in range(self.store.n_blocks):
            edges = self.store.edges(block)
            if edges is not None:
                yield edges


# What all-pairs cross mapping within windows returns: skill over time.


@dataclass(frozen=True, repr=False)
class WindowedMap(Result):
    """All-pairs cross-map skill within each window.

    Attributes
    ----------
    rho : ndarray (n_windows, n_libraries, n_targets)
        Row = library, column = target, as in :class:`XmapResult`.
    E : ndarray of int (n_windows, n_targets)
        Embedding dimension of each target in each window.
    names : tuple of str
        Of the libraries.
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.
    starts : ndarray of int (n_windows,)
        First row of each window.
    width : int
        Rows of a window.
    time : ndarray (n_windows,)
        Middle of each window: a date or a number as the data have them, else a row.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3, windows=(200, 100))  # 200 rows each, 100 from one to the next
    >>> result.starts.tolist(), result.rho.shape
    ([0, 100, 200], (3, 4, 4))
    >>> result.edges(top=1)[0].target  # of the pair that is strongest in the mean over windows
    'x2'
    >>> result.curves()["x2 drives x0?"].shape
    (3,)
    """

    answer_columns: ClassVar[tuple[str, ...]] = ("time", "cause", "effect", "-rho", "E")

    rho: NDArray[Any]
    E: NDArray[np.int_]
    names: tuple[str, ...]
    targets: tuple[str, ...] | None
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grids: tuple[Grid | None, Grid | None] = field(default=(None, None), repr=False)
    skill: str = "pearson"

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, library, target); the coordinates of a field take the place of its cells."""
        axes = [("library", self.grids[0] or self.names), ("target", self.grids[1] or self.targets or self.names)]
        return labelled(self.rho, [("time", self.time), *axes], "rho")

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n = len(self.starts)
        library, target = np.nonzero(are_two(self.names, self.targets))
        pairs = roles(np.array(self.names)[library], np.array(self.targets or self.names)[target])
        return spans(self, len(library)) | {
            **{role: np.tile(held, n) for role, held in zip(ROLES, pairs, strict=True)},
            "rho": self.rho[:, library, target].reshape(-1), "E": self.E[:, target].reshape(-1),
            "E_of": np.full(n * len(library), "cause"),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window and pair of different series.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, rho, E, E_of.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def mean(self) -> NDArray[np.float64]:
        """Mean (n_libraries, n_targets) over the windows in which a pair has a skill; NaN where it has none."""
        present = np.isfinite(self.rho)
        with np.errstate(invalid="ignore"):
            total = np.where(present, self.rho, 0).sum(axis=0, dtype=np.float64)
            return np.asarray(total / present.sum(axis=0))

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` pairs that are strongest in the mean over windows (of errors the smallest), and median E."""
        return best_edges(self.mean(), self.skill, self.names, np.median(self.E, axis=0).astype(int), top, self.targets)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time of the pairs of two series that are strongest in the mean."""
        targets = self.targets or self.names
        place = [{name: i for i, name in enumerate(names)} for names in (self.names, targets)]
        pairs = [(edge.library, edge.target) for edge in self.edges(PAIRS_SHOWN)]
        return {f"{cause} drives {effect}?": self.rho[:, place[0][effect], place[1][cause]] for effect, cause in pairs}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_over_time

        return skill_over_time(self, path)
