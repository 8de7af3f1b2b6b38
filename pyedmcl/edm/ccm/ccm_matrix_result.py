"""What convergent cross mapping of all pairs returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import real
from ...data.grid import Grid
from ...errors import InputError
from ...io.fields import labelled
from ...io.graphs import Graph, graph_of
from ...io.labels import Label
from ...io.optional import need, pandas_for
from ...io.result import Result
from ...io.roles import ROLES, roles
from ..shared.convergence import kendall_columns
from ..shared.false_discovery import false_discovery

Doubles = NDArray[np.float64]
#: Of tables of pairs; ``tau`` is Kendall's.
PAIR_COLUMNS = (*ROLES, "rho", "gain", "tau", "p_value", "q_value", "E", "E_of")


@dataclass(frozen=True, repr=False)
class CcmMatrixResult(Graph, Result):
    """Cross-map skill of all pairs against library size.

    Attributes
    ----------
    lib_sizes : ndarray of int (n_sizes,)
    matrices : tuple of array_like (n_series, n_series)
        Mean skill for each library size; row = library, column = target: ``at(size)[i, j]`` is the skill with which
        random states of series i predict series j. Arrays, or lazy ones where ``out=`` was given. The diagonal is NaN.
    E : ndarray of int (n_series,)
        Embedding dimension of each library.
    names : tuple of str
    sample : int
        Random sub-libraries of each pair and size.
    seed : int
    method : str
        How rows were predicted: "simplex" or "smap".
    theta : float or None
        Localisation of method "smap".
    skill : str
        What the matrices hold: "pearson" or "spearman".
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.ccm_matrix(network.values, E=3, lib_sizes=[30, 300], sample=10, seed=1)
    >>> bool(result.gain[0, 2] > 0.1)  # row = effect, column = cause: skill grows with the library
    True
    >>> bool(result.converging()[0, 2])
    True
    >>> result.pairs()[0][:2]  # library (effect) and target (cause) of the strongest pair
    ('x0', 'x2')
    """

    column_labels: ClassVar = {
        "tau": Label("1", "Kendall's tau of mean skill against library size"),
        "p_value": Label("1", "one-sided p-value of that trend if sizes were samples of their own; no test of a link"),
    }  # fmt: skip

    lib_sizes: NDArray[np.int_]
    matrices: tuple[Any, ...] = field(repr=False)
    E: NDArray[np.int_]
    names: tuple[str, ...]
    sample: int
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    method: str = "simplex"
    theta: float | None = None
    skill: str = "pearson"
    grid: Grid | None = field(default=None, repr=False)

    def at(self, size: int) -> Any:
        """Matrix of a library size. Raises InputError for one that was not computed."""
        places = np.flatnonzero(self.lib_sizes == size)
        if not len(places):
            raise InputError(f"size={size!r} is none of those computed: {', '.join(map(str, self.lib_sizes))}")
        return self.matrices[int(places[0])]

    @property
    def rho(self) -> Doubles:
        """Mean skill (n_sizes, n_series, n_series), read as a whole."""
        return np.array([np.asarray(matrix, np.float64) for matrix in self.matrices])

    @property
    def gain(self) -> Doubles:
        """Skill at the largest library less that at the smallest (n_series, n_series)."""
        order = np.argsort(self.lib_sizes)
        high, low = (np.asarray(self.matrices[order[place]], np.float64) for place in (-1, 0))
        return high - low

    def trend(self) -> tuple[Doubles, Doubles]:
        """Kendall's tau of mean skill against library size and its one-sided p-value, each (n_series, n_series).

        As for :class:`pyedmcl.edm.shared.convergence.Convergence`; NaN for fewer than 3 sizes.
        """
        rho = self.rho[np.argsort(self.lib_sizes)]
        tau, p_value = np.full((2, *rho.shape[1:]), np.nan)
        finite = np.isfinite(rho).all(axis=0)
        tau[finite], p_value[finite] = kendall_columns(rho[:, finite])
        return tau, p_value

    def pairs(self) -> list[tuple[Any, ...]]:
        """Pairs off the diagonal, the highest final skill first, as
        (library, target, rho, gain, tau, p_value, q_value, E).

        rho is that of the largest library; q_value is the trend's p_value adjusted for all pairs.
        """
        final = np.asarray(self.matrices[int(np.argmax(self.lib_sizes))], np.float64)
        tau, p_value = self.trend()
        gain, q_value = self.gain, false_discovery(p_value)
        library, target = np.nonzero(~np.eye(len(self.names), dtype=bool))
        strength = np.where(np.isnan(final), -np.inf, final)[library, target]
        order = np.lexsort((target, library, -strength))
        library, target = library[order], target[order]
        columns = [table[library, target].tolist() for table in (final, gain, tau, p_value, q_value)]
        names = [self.names[i] for i in library], [self.names[j] for j in target]
        return list(zip(*names, *columns, self.E[library].tolist(), strict=True))

    def to_frame(self) -> Any:
        """A pandas DataFrame of :meth:`pairs`: cause (target) and effect (library) first, whose E it is last."""
        return pandas_for("to_frame()").DataFrame(self.table(), columns=list(PAIR_COLUMNS))

    def table(self) -> list[tuple[Any, ...]]:
        """:meth:`pairs` as rows of :data:`PAIR_COLUMNS`."""
        return [(*roles(*row[:2]), *row[2:], "effect") for row in self.pairs()]

    def converging(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) whose skill grows with the library.

        Those that gain from the smallest to the largest library and, of at least 3 sizes, whose skill rises so steadily
        that its trend (Mann and Kendall) would have a false discovery rate of ``rate`` if sizes were samples of their
        own. They share one series: 15 to 42 % of pairs without any link are among these. It describes what grows and is
        no test; ``p_gain`` of :func:`pyedmcl.ccm_significance` is one, and :func:`pyedmcl.causal_network` asks more.
        """
        rate = real("rate", rate, "a number between 0 and 1", lambda share: 0 < share < 1)
        converged: NDArray[np.bool_] = self.gain > 0
        return converged if len(self.lib_sizes) < 3 else converged & (false_discovery(self.trend()[1]) <= rate)

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (lib_size, library, target) and of E (library); the coordinates of a field take the
        place of its cells."""
        pairs = [("library", self.grid or self.names), ("target", self.grid or self.names)]
        rho = labelled(self.rho, [("lib_size", self.lib_sizes), *pairs], "rho")
        return need("xarray", "to_xarray()").Dataset({"rho": rho, "E": labelled(self.E, pairs[:1], "E")})

    def to_networkx(self, rate: float = 0.05) -> Any:
        """A networkx.DiGraph of all series, with an edge from cause to effect for each pair of :meth:`converging`.

        Needs networkx.
        """
        chosen = self.converging(rate)
        place = {name: number for number, name in enumerate(self.names)}
        edges = (
            (row[0], row[1], dict(zip(PAIR_COLUMNS[4:9], row[4:9], strict=True))) for row in self.table()
            if chosen[place[row[1]], place[row[0]]]
        )  # fmt: skip
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def plot(self, path: str | None = None, *, cluster: bool = False) -> Any:
        """Map of what skill gains from the smallest to the largest library; saved to ``path`` if given.

        A star marks pairs of :meth:`converging` at the rate 0.05, where there are at least 3 sizes. Of
        one size it is the map of the skill. ``cluster`` puts series that are alike side by side. Needs matplotlib, and
        SciPy for ``cluster``.
        """
        from ...plot import heat_map

        low, high = int(self.lib_sizes.min()), int(self.lib_sizes.max())
        if low == high:
            title = f"libraries of {high:,} rows"
            return heat_map(np.asarray(self.at(high)), self.names, path, title=title, cluster=cluster)
        title, marks = f"gain of skill from {low:,} to {high:,} library rows, {self.sample} samples", None
        if len(self.lib_sizes) > 2:
            marks = (false_discovery(self.trend()[1]) <= 0.05) & (self.gain > 0)
            title += "\n* skill rises steadily with the library (no test of a link)"
        return heat_map(
            self.gain, self.names, path, title=title, marks=marks, label="gain of cross-map skill rho", cluster=cluster
        )

    def plot_network(
        self, path: str | None = None, rate: float = 0.05, *, top: int = 40, layout: str = "circle",
        clusters: Any = None,
    ) -> Any:  # fmt: skip
        """Pairs of :meth:`converging` as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ...plot.network import causal_network

        keep, title = self.converging(rate), "skill grows with the library"
        if len(self.lib_sizes) > 2:
            title += " steadily (no test of a link)"
        return causal_network(
            self.at(int(self.lib_sizes.max())), self.names, path, keep=keep, top=top, title=title, layout=layout,
            clusters=clusters,
        )  # fmt: skip
