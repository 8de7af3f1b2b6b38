"""Results of convergent cross mapping: of two series and of all pairs, over all rows or within windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arguments import boolean, place_of, real, several
from ..errors import InputError, need, pandas_for
from ..results.edges import Graph, graph_of
from ..results.result import Answer, Label, Result, common, labelled
from ..results.tables import ROLES, role_columns, roles
from ..series.fields import Grid
from ..states.arguments import ERRORS, PAIRS_SHOWN, spans
from ..statistics import STEADY, Convergence, convergence, kendall, means

# What convergent cross mapping returns.


@dataclass(frozen=True, repr=False)
class CcmResult(Result):
    """Cross-map skill of two series in both directions against library size.

    Attributes
    ----------
    lib_sizes : ndarray of int (n_sizes,)
    rho : ndarray of float64 (2, n_sizes, samples)
        Skill of each random sub-library; the first axis is the direction, see ``links``.
    links : ((str, str), (str, str))
        (library, target) of each direction: the library's states predict the target, so that a skill that converges
        says that the *target* drives the library.
    n_rows : (int, int)
        Predicted rows of each direction.
    E : (int, int)
        Coordinates of the states of each direction's library.
    tau, Tp : int
    seed : int
        Chooses the random sub-libraries; the same seed gives the same ones on every device.
    method : str
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    predictions : ndarray (2, n_sizes, samples, n) or None
        Where they were asked for: those of each sub-library, at the rows that are predicted.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 100, 390], sample=20, seed=1)
    >>> result.links[1]  # states of y predict x: does x drive y?
    ('y', 'x')
    >>> result.mean[1].round(2).tolist()  # it does: skill grows with the library
    [0.39, 0.55, 0.65]
    >>> result.convergence[1].gain > 0.2
    True
    """

    column_labels: ClassVar = {"E": Label("1", "embedding dimension of the library")}

    lib_sizes: NDArray[np.int_]
    rho: NDArray[np.float64]
    links: tuple[tuple[str, str], tuple[str, str]]
    n_rows: tuple[int, int]
    E: tuple[int, int]
    tau: int
    Tp: int
    seed: int
    method: str = "simplex"
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    skill: str = "pearson"
    predictions: NDArray[np.float64] | None = field(default=None, repr=False)

    def answer(self) -> Answer:
        """Skill of both directions at the largest library: the median of samples, and the middle nine tenths."""
        at, bands = int(np.argmax(self.lib_sizes)), self.quantiles((0.5, 0.05, 0.95))
        rows = [
            (target, library, int(self.lib_sizes[at]), *band, E)
            for (library, target), band, E in zip(self.links, bands[:, at], self.E, strict=True)
        ]
        return Answer(("cause", "effect", "lib_size", "median", "q05", "q95", "E"), rows, len(rows))

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean skill (2, n_sizes) over the samples that have one."""
        return means(self.rho)

    @property
    def median(self) -> NDArray[np.float64]:
        """Median skill (2, n_sizes)."""
        return self.quantiles((0.5,))[..., 0]

    def quantiles(self, q: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> NDArray[np.float64]:
        """Quantiles (2, n_sizes, len(q)) of the skill; NaN where no sample has one."""
        wanted = "a number from 0 to 1, or several,"
        shares = np.array([real("q", share, wanted, lambda value: 0 <= value <= 1) for share in several("q", q)])
        out = np.full((*self.rho.shape[:2], len(shares)), np.nan)
        for place in np.ndindex(*self.rho.shape[:2]):
            finite = self.rho[place][np.isfinite(self.rho[place])]
            if finite.size:
                out[place] = np.quantile(finite, shares)
        return out

    @property
    def convergence(self) -> tuple[Convergence, Convergence]:
        """How skill grows with the library, in both directions. Raises InputError for a skill that is an error."""
        if self.skill in ERRORS:
            raise InputError(f"skill={self.skill!r}: convergence is that of correlations")
        first, second = (convergence(self.rho[d], self.lib_sizes) for d in (0, 1))
        return first, second

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (direction, lib_size, sample), and of library, target and E (direction)."""
        named = _directions(self.links)
        axes = [*named.axis, ("lib_size", self.lib_sizes), ("sample", np.arange(self.rho.shape[2]))]
        parts = {"rho": labelled(self.rho, axes, "rho"), "E": labelled(np.array(self.E), named.axis, "E")}
        return need("xarray", "to_xarray()").Dataset({**named.roles, **parts})

    def to_frame(self, samples: bool = False) -> Any:
        """A pandas DataFrame: cause, effect, library, target, lib_size, mean, median and quantiles.

        With ``samples`` a row for each sample.
        """
        pandas, samples = pandas_for("to_frame()"), boolean("samples", samples)
        frames = []
        spread = self.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
        for d, (library, target) in enumerate(self.links):
            head = role_columns(library, target)
            if samples:
                n = self.rho.shape[2]
                numbers = np.tile(np.arange(n), len(self.lib_sizes))
                frames.append(pandas.DataFrame({**head, "lib_size": np.repeat(self.lib_sizes, n), "sample": numbers,
                                                "rho": self.rho[d].reshape(-1)}))  # fmt: skip
                continue
            names = ("q05", "q25", "median", "q75", "q95")
            frames.append(pandas.DataFrame({
                **head, "lib_size": self.lib_sizes, "mean": self.mean[d],
                **{name: spread[d, :, q] for q, name in enumerate(names)}}))  # fmt: skip
        return pandas.concat(frames, ignore_index=True)

    def plot(self, path: str | None = None) -> Any:
        """Skill against library size with bands; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_against_library

        return skill_against_library(self, path)


@dataclass(frozen=True, repr=False)
class LaggedCcmResult(Result):
    """Cross-map skill of two series in both directions against the interval Tp between state and target.

    A driver is best seen at Tp < 0: the state of what it drives remembers it.

    Attributes
    ----------
    Tp : ndarray of int (n_lags,)
    rho : ndarray of float64 (2, n_lags)
        Mean skill over the samples.
    links : ((str, str), (str, str))
        (library, target) of each direction, as in :class:`CcmResult`.
    lib_size : int or None
        Rows of a random sub-library; None for all.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_lagged(x, y, E=3, Tp=[-2, -1, 0, 1])
    >>> result.links[1], result.best[1]  # states of y tell most of x one row earlier, hence x drives y
    (('y', 'x'), -1)
    >>> result.to_frame().columns.tolist()
    ['Tp', 'y -> x', 'x -> y']
    """

    series_label: ClassVar = Label("1", "skill: evidence that the first series drives the second")
    column_labels: ClassVar = common("Tp")

    Tp: NDArray[np.int_]
    rho: NDArray[np.float64]
    links: tuple[tuple[str, str], tuple[str, str]]
    lib_size: int | None
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def answer(self) -> Answer:
        """Of both directions the lag of the highest skill."""
        rows = [
            (target, library, int(best), float(skill[self.Tp == best][0]))
            for (library, target), best, skill in zip(self.links, self.best, self.rho, strict=True)
        ]
        return Answer(("cause", "effect", "best Tp", "rho"), rows, len(rows))

    @property
    def best(self) -> tuple[int, int]:
        """Tp of the highest skill in each direction, nearest to 0 of a tie."""
        order = np.argsort(np.abs(self.Tp), kind="stable")
        best = [int(self.Tp[order[np.where(np.isnan(r), -np.inf, r)[order].argmax()]]) for r in self.rho]
        return best[0], best[1]

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (direction, Tp), and of library and target (direction)."""
        named = _directions(self.links)
        rho = labelled(self.rho, [*named.axis, ("Tp", self.Tp)], "rho")
        return need("xarray", "to_xarray()").Dataset({**named.roles, "rho": rho})

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per Tp and a column per direction, named "cause -> effect"."""
        columns = {f"{target} -> {library}": self.rho[d] for d, (library, target) in enumerate(self.links)}
        return pandas_for("to_frame()").DataFrame({"Tp": self.Tp, **columns})

    def plot(self, path: str | None = None) -> Any:
        """Skill against Tp; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_against_Tp

        return skill_against_Tp(self, path)


class _Directions(NamedTuple):
    """Both directions as a dimension, and who is library and target in each."""

    axis: list[tuple[str, Any]]
    roles: dict[str, Any]


def _directions(links: Sequence[tuple[str, str]]) -> _Directions:
    axis: list[tuple[str, Any]] = [("direction", [f"{target} -> {library}" for library, target in links])]
    sides = zip(("library", "target"), zip(*links, strict=True), strict=True)
    return _Directions(axis, {name: labelled(np.array(side), axis, name) for name, side in sides})


# What cross mapping of two series within windows returns: skill over time.


@dataclass(frozen=True, repr=False)
class WindowedCcm(Result):
    """Convergent cross mapping of two series within each window.

    Attributes
    ----------
    rho : ndarray of float64 (n_windows, 2, n_sizes, samples)
        As of :class:`CcmResult`.
    lib_sizes : ndarray of int (n_sizes,)
    links : ((str, str), (str, str))
        (library, target) of each direction.
    E : (int, int)
    seed : int
        Each window draws the rows that its number chooses.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 150], sample=5, seed=1, windows=(200, 100))
    >>> result.mean.shape  # window, direction, library size
    (3, 2, 2)
    >>> result.curves()["x drives y?"].round(1).tolist()  # at the largest library
    [0.4, 0.5, 0.7]
    """

    answer_columns = ("time", "cause", "effect", "lib_size", "mean")

    rho: NDArray[np.float64]
    lib_sizes: NDArray[np.int_]
    links: tuple[tuple[str, str], tuple[str, str]]
    E: tuple[int, int]
    seed: int
    skill: str
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean skill (n_windows, 2, n_sizes) over the samples that have one."""
        return means(self.rho)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n, sizes = len(self.starts), len(self.lib_sizes)
        pairs = roles(*(np.tile(np.repeat(names, sizes), n) for names in zip(*self.links, strict=True)))
        return spans(self, 2 * sizes) | dict(zip(ROLES, pairs, strict=True)) | {
            "lib_size": np.tile(self.lib_sizes, 2 * n), "mean": self.mean.reshape(-1),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window, direction and size.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, lib_size, mean.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def curves(self) -> dict[str, NDArray[Any]]:
        """Mean skill of both directions over time, at the largest library."""
        largest = int(self.lib_sizes.argmax())
        mean = self.mean[:, :, largest]
        return {f"{target} drives {library}?": mean[:, d] for d, (library, target) in enumerate(self.links)}

    def plot(self, path: str | None = None) -> Any:
        """Skill of both directions over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_over_time

        return skill_over_time(self, path)


# What convergent cross mapping of all pairs returns.


Doubles = NDArray[np.float64]
#: Of tables of pairs.
PAIR_COLUMNS = (*ROLES, "rho", "gain", "trend", "E", "E_of")


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

    answer_columns = ("cause", "effect", "-rho", "gain", "trend", "E")

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
        return self.matrices[place_of("size", size, self.lib_sizes.tolist())]

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

    @property
    def trend(self) -> Doubles:
        """Kendall's tau of mean skill against library size (n_series, n_series); NaN for one size."""
        rho = self.rho[np.argsort(self.lib_sizes)]
        trend = np.full(rho.shape[1:], np.nan)
        finite = np.isfinite(rho).all(axis=0)
        trend[finite] = kendall(rho[:, finite])
        return trend

    def pairs(self) -> list[tuple[Any, ...]]:
        """Pairs off the diagonal, the highest final skill first, as (library, target, rho, gain, trend, E).

        rho is that of the largest library.
        """
        final = np.asarray(self.matrices[int(np.argmax(self.lib_sizes))], np.float64)
        library, target = np.nonzero(~np.eye(len(self.names), dtype=bool))
        strength = np.where(np.isnan(final), -np.inf, final)[library, target]
        order = np.lexsort((target, library, -strength))
        library, target = library[order], target[order]
        columns = [table[library, target].tolist() for table in (final, self.gain, self.trend)]
        names = [self.names[i] for i in library], [self.names[j] for j in target]
        return list(zip(*names, *columns, self.E[library].tolist(), strict=True))

    def to_frame(self) -> Any:
        """A pandas DataFrame of :meth:`pairs`: cause (target) and effect (library) first, whose E it is last."""
        return pandas_for("to_frame()").DataFrame(self.table(), columns=list(PAIR_COLUMNS))

    def table(self) -> list[tuple[Any, ...]]:
        """:meth:`pairs` as rows of :data:`PAIR_COLUMNS`."""
        return [(*roles(*row[:2]), *row[2:], "effect") for row in self.pairs()]

    def converging(self) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) whose skill grows steadily: with a gain, and a trend above 0.5.

        This describes and is no test: libraries share one series, and 14 to 45 % of pairs without any link are among
        these (docs/causality.md). ``p_gain`` of :func:`pyedmcl.ccm_significance` is a test, and
        :func:`pyedmcl.causal_network` asks more.
        """
        with np.errstate(invalid="ignore"):
            return np.asarray((self.gain > 0) & (self.trend > STEADY))

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (lib_size, library, target) and of E (library); the coordinates of a field take the
        place of its cells."""
        pairs = [("library", self.grid or self.names), ("target", self.grid or self.names)]
        rho = labelled(self.rho, [("lib_size", self.lib_sizes), *pairs], "rho")
        return need("xarray", "to_xarray()").Dataset({"rho": rho, "E": labelled(self.E, pairs[:1], "E")})

    def to_networkx(self) -> Any:
        """A networkx.DiGraph of all series, with an edge from cause to effect for each pair of :meth:`converging`.

        Needs networkx.
        """
        chosen = self.converging()
        place = {name: number for number, name in enumerate(self.names)}
        edges = (
            (row[0], row[1], dict(zip(PAIR_COLUMNS[4:8], row[4:8], strict=True))) for row in self.table()
            if chosen[place[row[1]], place[row[0]]]
        )  # fmt: skip
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def plot(self, path: str | None = None, *, cluster: bool = False) -> Any:
        """Map of what skill gains from the smallest to the largest library; saved to ``path`` if given.

        A star marks pairs of :meth:`converging`. Of one size it is the map of the skill. ``cluster`` puts series that
        are alike side by side. Needs matplotlib, and SciPy for ``cluster``.
        """
        from ..plot import heat_map

        low, high = int(self.lib_sizes.min()), int(self.lib_sizes.max())
        if low == high:
            title = f"libraries of {high:,} rows"
            return heat_map(np.asarray(self.at(high)), self.names, path, title=title, cluster=cluster)
        title = f"gain of skill from {low:,} to {high:,} library rows, {self.sample} samples"
        return heat_map(
            self.gain, self.names, path, title=title + "\n* skill rises steadily with the library (no test of a link)",
            marks=self.converging(), label="gain of cross-map skill rho", cluster=cluster,
        )  # fmt: skip

    def plot_network(
        self, path: str | None = None, *, top: int = 40, layout: str = "circle", clusters: Any = None
    ) -> Any:
        """Pairs of :meth:`converging` as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ..plot.pairs import causal_network

        title = "skill grows with the library steadily (no test of a link)"
        return causal_network(
            self.at(int(self.lib_sizes.max())), self.names, path, keep=self.converging(), top=top, title=title,
            layout=layout, clusters=clusters,
        )  # fmt: skip


# What convergent cross mapping of all pairs within windows returns: skill over time.


@dataclass(frozen=True, repr=False)
class WindowedCcmMatrix(Result):
    """Convergent cross mapping of all pairs within each window.

    Attributes
    ----------
    rho : ndarray (n_windows, n_sizes, n_series, n_series)
        Mean skill; row = library, column = target, as in :class:`CcmMatrixResult`. The diagonal is NaN.
    lib_sizes : ndarray of int (n_sizes,)
    E : ndarray of int (n_windows, n_series)
        Embedding dimension of each library in each window.
    names : tuple of str
    sample : int
        Random sub-libraries of each pair and size.
    seed : int
    starts, width, time
        As of :class:`WindowedMap`.
    skill : str
        What rho holds: "pearson" or "spearman".
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.ccm_matrix(
    ...     network.values, E=3, lib_sizes=[20, 150], sample=5, seed=1, windows=(200, 100)
    ... )
    >>> result.rho.shape  # window, library size, library, target
    (3, 2, 4, 4)
    >>> list(result.curves())[0]  # the strongest pair
    'x2 drives x0?'
    """

    answer_columns = ("time", "cause", "effect", "lib_size", "-rho")

    rho: NDArray[Any]
    lib_sizes: NDArray[np.int_]
    E: NDArray[np.int_]
    names: tuple[str, ...]
    sample: int
    seed: int
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    skill: str = "pearson"
    grid: Grid | None = field(default=None, repr=False)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Skill at the largest library less that at the smallest (n_windows, n_series, n_series)."""
        rho = self.rho.astype(np.float64)
        return np.asarray(rho[:, self.lib_sizes.argmax()] - rho[:, self.lib_sizes.argmin()])

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, lib_size, library, target), or with the coordinates of a field for its cells."""
        cells = self.grid or self.names
        axes = [("time", self.time), ("lib_size", self.lib_sizes), ("library", cells), ("target", cells)]
        return labelled(self.rho, axes, "rho")

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n, sizes, names = len(self.starts), len(self.lib_sizes), np.array(self.names)
        library, target = np.nonzero(~np.eye(len(names), dtype=bool))
        pairs = roles(*(np.tile(names[place], n * sizes) for place in (library, target)))
        return spans(self, sizes * len(library)) | dict(zip(ROLES, pairs, strict=True)) | {
            "lib_size": np.tile(np.repeat(self.lib_sizes, len(library)), n),
            "rho": self.rho[..., library, target].reshape(-1),
            "E": np.repeat(self.E[:, None, library], sizes, axis=1).reshape(-1),
            "E_of": np.full(n * sizes * len(library), "effect"),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window, size and pair of different series.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, lib_size, rho, E,
        E_of.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time at the largest library, of the pairs that are strongest in the mean."""
        from ..results.edges import strongest_edges

        rho = self.rho[:, self.lib_sizes.argmax()]
        mean = np.nan_to_num(rho).mean(axis=0)
        best = strongest_edges(mean, self.names, np.median(self.E, axis=0).astype(int), PAIRS_SHOWN)
        place = {name: i for i, name in enumerate(self.names)}
        return {f"{e.target} drives {e.library}?": rho[:, place[e.library], place[e.target]] for e in best}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_over_time

        return skill_over_time(self, path)
