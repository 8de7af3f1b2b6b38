"""Skill of self-prediction over embedding dimension, lag and steps ahead."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import MOST_STEPS, place_of, real, room, several
from ..device.select import DeviceNames
from ..errors import InputError, pandas_for, shown
from ..jobs.blocks import Arrays, Block, BlockResult, Report, cut, series_of_a_block
from ..jobs.runner import ArraySink, public_function
from ..launch.progress import Progress
from ..results.result import Result, labelled
from ..search.choose import SearchRequest
from ..series.groups import take_groups
from ..series.scaling import Prepared
from ..series.series import as_series, require_rows, tell_constant
from ..states import arguments
from .dimension import EmbedDimensionProblem, SelfSkill

if TYPE_CHECKING:
    from ..device.executor import Executor


# Skill of simplex projection over E, tau and Tp: the problem, and its engine.


@dataclass(frozen=True)
class EmbeddingScanProblem:
    """Skill of each series by itself for E = 1 to E_max and all pairs of tau and Tp.

    Rows of the result are all series of the first pair, of the second one, and so on.
    """

    data: Prepared
    E_max: int
    tau: tuple[int, ...]
    Tp: tuple[int, ...]
    exclusion_radius: int
    # Neighbours; E + 1 if None.
    knn: int | None
    search: SearchRequest

    kernels: ClassVar[tuple[str, ...]] = EmbedDimensionProblem.kernels
    unit: ClassVar[str] = "series"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(tau, Tp) in their order."""
        return list(itertools.product(self.tau, self.Tp))

    @property
    def total(self) -> int:
        return self.data.series.n_series * len(self.pairs)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self, devices: int = 1) -> list[Block]:
        """Ranges of series of one pair each."""
        n = self.data.series.n_series
        rows = series_of_a_block(n, self.data.series.n_steps, devices if len(self.pairs) < 4 * devices else 1)
        parts = [
            (place * n + part.begin, place * n + part.end) for place in range(len(self.pairs)) for part in cut(n, rows)
        ]
        return [Block(number, *part) for number, part in enumerate(parts)]

    @property
    def operations(self) -> float:
        return sum(self.of(pair).operations for pair in range(len(self.pairs)))

    def of(self, pair: int) -> EmbedDimensionProblem:
        """The problem of one pair."""
        tau, Tp = self.pairs[pair]
        return EmbedDimensionProblem(
            self.data, self.E_max, tau, Tp, self.exclusion_radius, self.knn, self.search
        )

    def open(self, executor: Executor) -> ScanEngine:
        return ScanEngine(self, executor)


class ScanEngine:
    """The engine of :class:`EmbeddingScanProblem`: that of one pair after the other."""

    def __init__(self, problem: EmbeddingScanProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._pair, self._engine = 0, SelfSkill(problem.of(0), executor)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (series of the block, E_max)."""
        n = self._problem.data.series.n_series
        pair, begin = divmod(block.begin, n)
        if pair != self._pair:
            self._engine.release()
            self._engine = SelfSkill(self._problem.of(pair), self._executor)
            self._pair = pair
        return self._engine.block(Block(block.number, begin, begin + len(block)), into, report)

    def release(self) -> None:
        """Give the device memory back."""
        self._engine.release()


# What a scan over embeddings returns: skill with named axes.


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingScan(Result):
    """Skill of predicting series by themselves over embedding dimension, lag and steps ahead.

    Attributes
    ----------
    rho : ndarray of float64 (n_series, E, tau, Tp)
        Without the first axis for 1-D input. NaN where a skill is not defined.
    E, tau, Tp : tuple of int
        The values along these axes.
    names : tuple of str
        Of the series.
    single : bool
        The input was one series, 1-D.
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> scan = pyedmcl.embedding_scan(network.values[:, 0], E=range(1, 5), tau=[1, 2], Tp=[1, 3])
    >>> scan.axes, scan.rho.shape
    (('E', 'tau', 'Tp'), (4, 2, 2))
    >>> best = scan.sel(Tp=1).best()
    >>> best["E"], best["tau"], round(best["rho"], 2)
    (2, 1, 0.99)
    """

    answer_columns = ("series", "E", "tau", "Tp", "-rho")

    rho: NDArray[np.float64]
    E: tuple[int, ...]
    tau: tuple[int, ...]
    Tp: tuple[int, ...]
    names: tuple[str, ...]
    single: bool
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of ``rho``."""
        return ("E", "tau", "Tp") if self.single else ("series", "E", "tau", "Tp")

    def sel(self, *, E: int | None = None, tau: int | None = None, Tp: int | None = None) -> EmbeddingScan:
        """The part at some values: axes that are named keep that value alone."""
        chosen: dict[str, tuple[int, ...]] = {}
        rho = self.rho
        for axis, (name, value) in enumerate((("E", E), ("tau", tau), ("Tp", Tp)), len(self.axes) - 3):
            values = getattr(self, name)
            if value is not None:
                place = place_of(name, value, values, "was not scanned")
                rho, values = np.take(rho, [place], axis=axis), (values[place],)
            chosen[name] = values
        return replace(self, rho=rho, E=chosen["E"], tau=chosen["tau"], Tp=chosen["Tp"])

    def best(self, tolerance: float = 0.0) -> Any:
        """The embedding of the highest skill, for each Tp.

        Of all (E, tau) whose skill is within ``tolerance`` of the highest, the one of the smallest E, and of these of
        the smallest tau.

        Returns
        -------
        dict, or list of dict
            Of one series, a list with one for each series else: "E", "tau" and "rho", each a list over Tp where several
            were scanned. E and tau are the first ones, and rho NaN, where no skill is defined.
        """
        within = real("tolerance", tolerance, "a number of at least 0", lambda value: 0 <= value < np.inf)
        rho = self.rho[None] if self.single else self.rho
        best = [self._best_of(one, within) for one in rho]
        return best[0] if self.single else best

    def _best_of(self, rho: NDArray[np.float64], tolerance: float) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {"E": [], "tau": [], "rho": []}
        for at in range(len(self.Tp)):
            skill = np.where(np.isnan(rho[..., at]), -np.inf, rho[..., at])
            place = int(np.argmax(skill >= skill.max() - tolerance))  # E first, then tau
            dimension, lag = divmod(place, len(self.tau))
            columns["E"].append(self.E[dimension])
            columns["tau"].append(self.tau[lag])
            columns["rho"].append(float(rho[dimension, lag, at]))
        return {name: values[0] if len(self.Tp) == 1 else values for name, values in columns.items()}

    def to_xarray(self) -> Any:
        """An xarray.DataArray with the names and values of :attr:`axes`."""
        values = {"series": self.names, "E": list(self.E), "tau": list(self.tau), "Tp": list(self.Tp)}
        return labelled(self.rho, [(name, values[name]) for name in self.axes], "rho")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each combination, with columns series, E, tau, Tp and rho."""
        rows = itertools.product(self.names, self.E, self.tau, self.Tp)
        frame = pandas_for("to_frame()").DataFrame(list(rows), columns=["series", "E", "tau", "Tp"])
        frame["rho"] = self.rho.ravel()
        return frame.drop(columns="series") if self.single else frame

    def plot(self, path: str | None = None) -> Any:
        """Skill over E and tau, a panel for each Tp, the median of several series; saved to ``path`` if given. Needs
        matplotlib."""
        from ..plot.curves import skill_surface

        return skill_surface(self, path)


# Skill of self-prediction over embedding dimension, lag and steps ahead.


@public_function
def embedding_scan(
    x: Any,
    *,
    E: int | Sequence[int] = range(1, 11),
    tau: int | Sequence[int] = range(1, 6),
    Tp: int | Sequence[int] = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> EmbeddingScan:
    """Find how well series predict themselves over embedding dimension, lag and steps ahead (simplex projection).

    Each value is the one that :func:`pyedmcl.embed_dimension` gives with that lag and those steps ahead. All dimensions
    come from one pass over the pairs of rows, and all series share launches.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E, tau : int or sequence of int
        Embedding dimensions and lags, at least 1. The largest of both must leave rows.
    Tp : int or sequence of int
        Steps ahead; may be negative.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). With tau > 1, rows that are near in time are
        near in state: take some (E - 1) tau to compare lags.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
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
    EmbeddingScan
        ``rho`` (n_series, E, tau, Tp), without the first axis for 1-D input; ``best()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embed_dimension : one lag, with chosen rows.
    mutual_information : which lag makes coordinates independent.
    false_neighbors : which dimension unfolds the attractor.

    Notes
    -----
    Cost: that of :func:`embed_dimension` for each lag and step ahead.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> scan = pyedmcl.embedding_scan(network.values, E=range(1, 5), tau=[1, 2], Tp=[1, 3])
    >>> scan.rho.shape
    (4, 4, 2, 2)
    >>> sorted(scan.best()[0])
    ['E', 'rho', 'tau']
    """
    dims, lags, steps = (_values(*each) for each in (("E", E, 1), ("tau", tau, 1), ("Tp", Tp, None)))
    search = SearchRequest(neighbors, recall)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    for ahead in steps:
        require_rows(series, E=max(dims), tau=max(lags), Tp=ahead, k=1, what="x")
    tell_constant(x=series)
    if of is not None:
        layout = of.layout(E=max(dims), tau=max(lags), Tp=steps, exclusion_radius=exclusion_radius)
        series, exclusion_radius = layout.series(series, "x"), layout.exclusion_radius
    problem = EmbeddingScanProblem(Prepared(series, dtype), max(dims), lags, steps, exclusion_radius, knn, search)
    runner = arguments.runner_on(device, dtype, client)
    rho = room("tau", (problem.total, max(dims)))
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [rho]))
    surface = rho.reshape(len(lags), len(steps), series.n_series, max(dims)).transpose(2, 3, 0, 1)
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    kept = np.ascontiguousarray(surface[:, np.array(dims) - 1])
    used = runner.provenance(problem.kernels, record)
    return EmbeddingScan(kept[0] if single else kept, dims, lags, steps, series.names, single, used)


def _values(name: str, value: Any, least: int | None) -> tuple[int, ...]:
    """One value or several along an axis, each once."""
    numbers = tuple(arguments.integer(name, one, least, most=MOST_STEPS) for one in several(name, value))
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"{name}={shown(value)}: one value or several different ones are needed")
    return numbers
