"""What all-pairs cross mapping returns where it keeps the strongest pairs only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files import path_of
from ...io.edges import E_OF, Strongest, edges_of, own_targets, write_edge_parts
from ...io.graphs import Graph
from ...io.optional import need, pandas_for
from ...io.result import Result
from ...io.roles import role_columns
from ...io.saved import SUFFIX
from .keep import Edges, Keep, TargetTop, joined


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
        from ...plot.maps import edge_map

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
        from ...plot.network import network_of_edges

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
    """Edges of a store, read when they are asked for; blocks that are not there are left out.

    Attributes
    ----------
    store : XmapStore
    """

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
