"""Significance of all pairs of a map, in rounds of surrogates that a folder can keep."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..crossmap.pairs import PairsProblem, map_data, pairs_in_groups, with_dimensions
from ..crossmap.results import WindowedMap
from ..crossmap.xmap import check_windows
from ..device.memory import budget
from ..device.select import DeviceNames
from ..engines.crossmap import CrossMap
from ..errors import InputError, need, pandas_for, shown
from ..functions import BUDGET
from ..jobs import durable
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut, default_block_rows
from ..jobs.claims import Member, begin_of
from ..jobs.records import as_searched, digest_of_identity, mark
from ..jobs.runner import ArraySink, Runner, public_function
from ..jobs.sharing import END, StageSink, end_of, found, packed
from ..jobs.steps import seeded_folder
from ..launch.progress import Progress, report_progress
from ..results.edges import Graph, graph_of
from ..results.result import Result, labelled
from ..results.saved import save_result
from ..results.tables import role_columns
from ..series.fields import Grid
from ..series.regular import windows_of
from ..series.series import Series, as_series, build_series
from ..states import arguments
from ..states.arguments import operations
from ..statistics import FIRST, SequentialTests, counts, decided, false_discovery, p_values, smallest_p, tell_reach
from ..surrogates.makers import parts_of
from ..surrogates.surrogate import SeriesMakers, tell_lost
from .significance import LaggedSignificanceProblem

if TYPE_CHECKING:
    from ..device.executor import Executor


# The folder of surrogate tests, which keeps what is finished, and in which several processes compute them together.
#
# Each round is cut into blocks of targets, which are files of the private folder of those who share it; the next round
# follows from all of the last one, so that everybody makes the same. In the end the counts alone are kept.


# Each block searches the neighbours of all libraries anew: it has at least this many targets, and there are at least
# this many blocks where there are targets enough, so that each process gets some.
_FEWEST_TARGETS, _BLOCKS = 32, 16

Layers = list[NDArray[Any]]


class RoundSink(StageSink):
    """The targets of a round, and of the search for E that comes before the first one."""

    def __init__(self, folder: SurrogateFolder, name: str, n: int, rows: int) -> None:
        place = folder.member.folder / name
        super().__init__(place, name, cut(n, rows, 3), folder.member, folder.begin, folder.of)
        self._tests = folder
        self.E: NDArray[np.int_] | None = None
        durable.inner_folder(place)
        mark(place, len(self._blocks), {}, "out")

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.E = np.asarray(E, int)

    def stage(self, name: str, n: int, blocks: Any) -> RoundSink:
        return RoundSink(self._tests, name, n, default_block_rows(n))

    def kept(self) -> str:
        n, left = len(self._blocks), len(self.pending())
        where = self._tests.member.folder.parent
        return f"{n - left} of {n} blocks of a round of surrogates are kept in {where}; the same call continues there"


class SurrogateFolder:
    """Where the rounds of surrogate tests go, for one process or several.

    Parameters
    ----------
    begin : float
        Where this process begins, from :func:`pyedmcl.jobs.claims.begin_of`.
    seed : int
        Of the surrogates.
    of : str
        Digest of the question.
    """

    def __init__(self, path: Path, member: Member, begin: float, seed: int, of: str) -> None:
        self._path, self.member, self.begin, self.seed, self.of = path, member, begin, seed, of

    def sink(self, problem: XmapSignificanceProblem | LaggedSignificanceProblem) -> RoundSink:
        """Where a round goes, cut into blocks that all who share the folder cut alike."""
        n = problem.total
        rows = min(len(problem.blocks()[0]), max(-(-n // _BLOCKS), _FEWEST_TARGETS))
        return RoundSink(self, f"round-{problem.first}", n, rows)

    def result(self) -> tuple[Record, Layers] | None:
        """E, skill, how many surrogates reach it, and how many there are, once all rounds are done."""
        part = found(self._path / END, end_of(self.of))
        if part is None:
            return None
        head, arrays = part
        searched = tuple(as_searched(one) for one in head["searched"])
        return Record(searched=searched), list(arrays.values())

    def keep(self, record: Record, layers: Layers) -> None:
        """Keep the result."""
        named = {f"array{place}": layer for place, layer in enumerate(layers)}
        head = {"searched": [dict(one) for one in record.searched]}
        advice = ", then run the same command again: it goes on from there"
        with durable.explained(f"{self._path} cannot be written", advice):
            durable.write_file(self._path / END, packed(named, head, end_of(self.of)))

    def settle(self) -> None:
        """Clear up behind all who shared the folder, once nothing more is written there."""
        self.member.settle(lambda: durable.remove_temporaries(self._path))


@contextlib.contextmanager
def folder_for(
    path: Path, begin: float | None, device: str, asked: dict[str, Any], seed: int | None, data: str,
    *, resume: bool = True,
) -> Iterator[SurrogateFolder]:  # fmt: skip
    """The folder of some tests, for this process alone (``begin`` None) or as one of several.

    Parameters
    ----------
    begin : float or None
        From :func:`pyedmcl.jobs.claims.begin_of`.
    device : str
        Its name, to be told to others.
    asked : dict
        What decides the answer, beside seed, data and version.
    seed : int or None
        None: that of the tests that are there, or of who began first.
    data : str
        Digest of the series.
    """
    from .. import __version__

    def identity(seed: int) -> dict[str, str]:
        named = {**asked, "seed": seed, "version of pyedmcl": __version__}
        return {"data": data, **{name: json.dumps(value, default=int) for name, value in named.items()}}

    with seeded_folder(path, begin, device, seed, identity, resume=resume) as (member, stored_seed):
        of = digest_of_identity(identity(stored_seed))
        yield SurrogateFolder(path, member, begin or 0.0, arguments.stream(stored_seed), of)


# All-pairs cross mapping onto surrogates as a job: the problem, and the engine that computes blocks of targets.


_MOST_TARGETS = 16384  # series and surrogates of a block
Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class XmapSignificanceProblem(PairsProblem):
    """Skill of each series as library against each as target, and of how many surrogates it is reached.

    Blocks are ranges of **targets**. Their layers, each with a cell for each library, are the skill, the number of
    surrogates that reach it, and the number of those that have a skill.
    """

    # Of the surrogates.
    makers: SeriesMakers
    # Surrogates of each target.
    n: int
    # Chooses them.
    seed: int
    # Number of the first surrogate.
    first: int = 0
    # ndarray of bool (n_series, n_series), optional. Row = library, column = target: which pairs are computed; the
    # others get NaN and 0. All pairs by default.
    pairs: NDArray[np.bool_] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max((_MOST_TARGETS - self.total) // self.n, 1), 3)

    @property
    def operations(self) -> float:
        L, N = self.data.series.n_steps, self.total
        return operations(self.dims, n_library=L, n_query=L, n_series=N, n_targets=N * (self.n + 1))

    def open(self, executor: Executor) -> XmapSignificanceEngine:
        return XmapSignificanceEngine(self, executor)


class XmapSignificanceEngine:
    """The engine of :class:`XmapSignificanceProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: XmapSignificanceProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        p, series = problem, problem.data.series
        self._makers = [p.makers.of(number, E) for number, E in enumerate(p.E or ())]
        # All series are libraries; of targets, as many surrogates at a time as fit into an eighth of the memory.
        fit = int(budget(executor.info).total // 8 // (series.n_steps * np.dtype(p.data.dtype).itemsize))
        self._batch = max((fit - p.total) // p.n, 1)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and both counts, each (targets of the block, n_series)."""
        shape = len(block), self._problem.total
        rho, reached, compared = [np.empty(shape), *np.empty((2, *shape), int)] if into is None else into
        rho[...], reached[...], compared[...] = np.nan, 0, 0
        record = Record()
        for libraries, targets in self._maps(block):
            skill, surrogates, new_record = self._skill(libraries, targets)
            place = np.ix_(targets - block.begin, libraries)
            rho[place] = skill.T
            counted = counts(skill, surrogates)
            reached[place], compared[place] = counted[0].T, counted[1].T
            record = record.joined(new_record)
            report(int(targets.max()) + 1 - block.begin)
        itself = np.arange(len(block)), np.arange(block.begin, block.end)
        reached[itself], compared[itself] = 0, 0
        return BlockResult([rho, reached, compared], record)

    def _maps(self, block: Block) -> Iterator[tuple[Numbers, Numbers]]:
        """Libraries and targets of each map that a block is computed by."""
        p, N = self._problem, self._problem.total
        pairs = np.ones((N, N), bool) if p.pairs is None else p.pairs
        for targets in self._together(pairs, block):
            yield np.flatnonzero(pairs[:, targets].any(axis=1)), targets

    def _together(self, wanted: NDArray[np.bool_], block: Block) -> Iterator[Numbers]:
        """Targets that share a map: where the search that they share costs more than the pairs that nobody wants."""
        p, L = self._problem, self._problem.data.series.n_steps
        E = p.highest
        search, lookup = (operations([E], n_library=L, n_query=L, n_targets=targets) for targets in (0, p.n))
        targets: list[int] = []
        libraries = np.zeros(p.total, bool)
        for j in range(block.begin, block.end):
            libraries_of_target = wanted[:, j]
            if not libraries_of_target.any():
                continue
            both, lookups = libraries | libraries_of_target, lookup - search
            apart = (int(libraries.sum()) + int(libraries_of_target.sum())) * search
            apart += (int(libraries.sum()) * len(targets) + int(libraries_of_target.sum())) * lookups
            joined = int(both.sum()) * (search + (len(targets) + 1) * lookups)
            if targets and (len(targets) == self._batch or joined > apart):
                yield np.array(targets)
                targets, both = [], libraries_of_target
            targets.append(j)
            libraries = both
        if targets:
            yield np.array(targets)

    def _skill(self, libraries: Numbers, targets: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64], Record]:
        """Skill (n_libraries, n_targets) of some targets, and (n_libraries, n_targets, n) of their surrogates."""
        p, series, M = self._problem, self._problem.data.series, len(libraries)
        # Libraries that are all of the series hold the targets, too.
        also = targets if p.total > M else targets[:0]
        columns = np.concatenate([libraries, also])
        n_series = len(columns)
        values = arguments.room("n", (series.n_steps, n_series + len(targets) * p.n), series.values.dtype)
        values[:, :n_series] = series.values[:, columns]
        begins = n_series + np.arange(len(targets)) * p.n
        draws = [(values[:, a : a + p.n].T, self._makers[j], int(j)) for a, j in zip(begins, targets, strict=True)]
        p.makers.drawer.draw(draws, p.seed, p.first)
        names = (*(series.names[i] for i in columns), *(f"{series.names[j]}~{i}" for j in targets for i in range(p.n)))
        E = np.array(p.E, int)
        dims = np.concatenate([E[columns], np.repeat(E[targets], p.n)])
        together = replace(p, data=replace(p.data, series=Series(values, names), quiet=True), E=tuple(dims.tolist()))
        mapping = CrossMap(self._executor, replace(map_data(together), n_libraries=M))
        try:
            rho, record = mapping.skill(0, M).astype(np.float64), Record(mapping.parameters)
        finally:
            mapping.release()
        skill = rho[:, M : M + len(also)] if len(also) else rho[:, targets]
        return skill, rho[:, n_series:].reshape(M, len(targets), p.n), record

    def release(self) -> None:
        """Nothing is held."""


# Tests of all pairs against surrogates, in rounds: the loop that functions with such tests share.


Tested = TypeVar("Tested", bound="XmapSignificanceProblem | LaggedSignificanceProblem")


@dataclass(frozen=True)
class SurrogateTable:
    """Skill of all pairs, and how many surrogates reach it; each (n_series, n_series), row = library."""

    rho: NDArray[np.float64]
    reached: NDArray[np.int_]
    n: NDArray[np.int_]


def surrogate_tests(
    problem: Tested, runner: Runner, *, rate: float, budget: int, folder: SurrogateFolder | None = None
) -> tuple[Record, NDArray[np.int_], SurrogateTable]:
    """Run the problem, and then rounds of more surrogates for the pairs that are open at ``rate``.

    Parameters
    ----------
    problem : XmapSignificanceProblem or LaggedSignificanceProblem
        Of the first round.
    budget : int
        0 for the first round alone.
    folder : SurrogateFolder, optional
        Where rounds are kept.

    Returns
    -------
    Record, ndarray of int (n_series,), SurrogateTable
        How it came about; E of the series; the counts.
    """
    N = problem.total

    def of(part: Tested) -> tuple[Tested, Record, list[NDArray[Any]]]:
        if folder is not None:
            kept = folder.sink(part)
            part = with_dimensions(part, runner, kept)
            record = runner.run(part, kept)
            joined = [np.concatenate(rows).T for rows in zip(*kept.results(), strict=True)]
            return part, kept.record.joined(record), joined
        layers = [np.empty((N, N)), *np.empty((2, N, N), int)]
        sink = ArraySink(part.blocks(), [layer.T for layer in layers])
        part = with_dimensions(part, runner, sink)
        return part, runner.run(part, sink), layers

    stored = None if folder is None else folder.result()
    if stored is not None:
        record, (E, rho, reached, n) = stored
        return record, E, SurrogateTable(rho, reached, n)
    try:
        problem, record, (rho, reached, n) = of(problem)
        tests = SequentialTests(rate, budget, problem.n, reached, n)
        while step := tests.step(problem.data.series.n_steps):
            _, new_record, (_, reached, n) = of(replace(problem, first=tests.drawn, n=step, pairs=tests.open))
            tests.add(step, reached, n)
            record = record.joined(new_record)
    finally:
        problem.makers.drawer.release()
    E = np.array(problem.E, int)
    if folder is not None:
        folder.keep(record, [E, rho, tests.reached, tests.n])
    return record, E, SurrogateTable(rho, tests.reached, tests.n)


Doubles = NDArray[np.float64]
#: The result, in the folder ``out`` of a call that has ended.
SIGNIFICANCE_FILE = "significance.edm"


@dataclass(frozen=True, repr=False)
class XmapSignificance(Graph, Result):
    """All-pairs cross-map skill and its significance.

    Attributes
    ----------
    rho : ndarray of float64 (n_series, n_series)
        Row = library, column = target, as of :func:`pyedmcl.xmap`.
    p_value : ndarray of float64 (n_series, n_series)
        (1 + surrogates of the target that do as well) / (1 + n): one-sided; NaN on the diagonal and where rho is.
    q_value : ndarray of float64 (n_series, n_series)
        Adjusted for all pairs off the diagonal (Benjamini and Hochberg).
    E : ndarray of int (n_series,)
        Embedding dimension of each target.
    names : tuple of str
    n : int
        Surrogates of each target; of n="auto", the most that any pair got.
    method : str
        Of the surrogates.
    seed : int
    draws : ndarray of int (n_series, n_series)
        Surrogates of each pair that have a skill: those that its p-value counts.
    rate : float
        The false discovery rate at which n="auto" decided.
    reasons : tuple of str
        For method "auto", "seasonal" without a period, and "phase" and "iaaft" of series with gaps: what was taken for
        each target, and why.
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values[:, :2], E=3, n=99, seed=1)
    >>> result.significant(0.05).tolist()  # row = effect, column = cause: x0 drives x1
    [[False, False], [True, False]]
    >>> result.smallest_p, result.smallest_q
    (0.01, 0.02)
    """

    answer_columns = ("cause", "effect", "-rho", "p_value", "+q_value", "E")

    rho: Doubles
    p_value: Doubles
    q_value: Doubles
    E: NDArray[np.int_]
    names: tuple[str, ...]
    n: int
    method: str
    seed: int
    draws: NDArray[np.int_]
    rate: float = 0.05
    reasons: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that n surrogates can give."""
        return smallest_p(self.n)

    @property
    def smallest_q(self) -> float:
        """The smallest q-value that n surrogates can give a pair which alone is significant."""
        return min(int(np.isfinite(self.p_value).sum()) * self.smallest_p, 1.0)

    def decided(self, rate: float | None = None) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) whose significance more surrogates would not change, but for a chance of 0.001.

        ``rate`` is the false discovery rate; by default that at which n="auto" decided.
        """
        limit = self.rate if rate is None else arguments.share("rate", rate)
        return decided(self.p_value, self.draws, limit)

    def significant(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) that are called significant at a false discovery rate."""
        significant: NDArray[np.bool_] = self.q_value <= arguments.share("rate", rate)
        return significant

    def to_frame(self, rate: float | None = None) -> Any:
        """A pandas DataFrame of pairs off the diagonal, the strongest first.

        Columns: cause, effect, library (the effect), target (the cause), rho, p_value, q_value, E, and whose E it is.

        With ``rate``, only those significant at this false discovery rate.
        """
        chosen = ~np.eye(len(self.names), dtype=bool) if rate is None else self.significant(rate)
        library, target = np.nonzero(chosen)
        strength = np.where(np.isnan(self.rho), -np.inf, self.rho)[library, target]
        order = np.lexsort((target, library, -strength))
        library, target = library[order], target[order]
        return pandas_for("to_frame()").DataFrame({
            **role_columns([self.names[i] for i in library], [self.names[j] for j in target]),
            "rho": self.rho[library, target], "p_value": self.p_value[library, target],
            "q_value": self.q_value[library, target], "E": self.E[target],
            "E_of": "cause",
        })  # fmt: skip

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho, p_value, q_value and draws (library, target), and of E (target); the coordinates of
        a field take the place of its cells."""
        pairs = [("library", self.grid or self.names), ("target", self.grid or self.names)]
        names = ("rho", "p_value", "q_value", "draws")
        parts = {name: labelled(getattr(self, name), pairs, name) for name in names}
        return need("xarray", "to_xarray()").Dataset({**parts, "E": labelled(self.E, pairs[1:], "E")})

    def to_networkx(self, rate: float = 0.05) -> Any:
        """A networkx.DiGraph of all series, with an edge from cause to effect for each pair that is significant at a
        false discovery rate. Needs networkx."""
        frame = self.to_frame(rate)
        values = frame[["rho", "p_value", "q_value"]].to_dict("records")
        edges = zip(frame["cause"], frame["effect"], values, strict=True)
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def plot(self, path: str | None = None, rate: float = 0.05, *, cluster: bool = False) -> Any:
        """Map of the skill with a star for what is significant; saved to ``path`` if given. Needs matplotlib.

        ``cluster`` puts series that are alike side by side, for which SciPy is needed.
        """
        from ..plot import heat_map

        marks = self.significant(rate)
        title = f"* significant at a false discovery rate of {rate:g} ({self.method} surrogates, up to {self.n:,})"
        return heat_map(self.rho, self.names, path, title=title, marks=marks, cluster=cluster)

    def plot_network(
        self, path: str | None = None, rate: float = 0.05, *, top: int = 40, layout: str = "circle",
        clusters: Any = None,
    ) -> Any:  # fmt: skip
        """Significant pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ..plot.pairs import causal_network

        keep = self.significant(rate)
        title = f"significant at a false discovery rate of {rate:g}"
        return causal_network(
            self.rho, self.names, path, keep=keep, top=top, title=title, layout=layout,
            clusters=clusters,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class WindowedSignificance(WindowedMap):
    """Skill within each window, and its test: attributes of :class:`WindowedMap`, and those of the tests.

    Attributes
    ----------
    p_value, q_value : ndarray of float64 (n_windows, n_series, n_series)
        Row = effect, column = cause. False discovery rates are over all pairs of all windows.
    draws : ndarray of int (n_windows, n_series, n_series)
        Surrogates that the p-values count.
    seed : int

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values[:, :2], E=3, n=99, seed=1, windows=(200, 100))
    >>> result.q_value.shape, result.starts.tolist()
    ((3, 2, 2), [0, 100, 200])
    """

    answer_columns = ("time", "cause", "effect", "-rho", "p_value", "+q_value", "E")

    p_value: Doubles = field(kw_only=True)
    q_value: Doubles = field(kw_only=True)
    draws: NDArray[np.int_] = field(kw_only=True)
    seed: int = field(kw_only=True)

    def significant(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Pairs (n_windows, n_series, n_series) that are called significant at a false discovery rate."""
        significant: NDArray[np.bool_] = self.q_value <= arguments.share("rate", rate)
        return significant

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        library, target = np.nonzero(~np.eye(len(self.names), dtype=bool))
        tests = {"p_value": self.p_value, "q_value": self.q_value, "draws": self.draws}
        return super().columns() | {name: held[:, library, target].reshape(-1) for name, held in tests.items()}


@public_function
def xmap_significance(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "auto",
    n: int | str = "auto",
    rate: float = 0.05,
    budget: int = BUDGET,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    period: float | None = None,
    recurrence: float = 0.1,
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    regular: str | None = None,
    windows: tuple[int, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    join: bool = False,
    part: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> XmapSignificance | WindowedSignificance:
    """Cross map every series onto every other, and onto surrogates of it: which skills are more than chance?

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps (which all methods but "twin" allow).
    E : "auto", int or sequence of int
        Embedding dimension of the targets: one for all, or one each. "auto" finds each series' own by
        :func:`pyedmcl.embed_dimension` with ``E_max``, ``E_rule`` and Tp = 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps from library row to target; 0 or negative are allowed.
    surrogate : str
        Method of :func:`pyedmcl.surrogate`. "auto" keeps what each series suggests, such as seasons that several share
        and slow change; where "phase" and others lose that, a warning says so.
    n : "auto" or int
        Surrogates of each target. The smallest p-value is 1 / (n + 1): with many pairs, many surrogates are needed.
        "auto" draws them in rounds, and only where it is open whether a pair is significant at the false discovery rate
        ``rate``, until all are decided (but for a chance of 0.001 each) or the ``budget`` is spent.
    rate : float
        False discovery rate at which n="auto" decides; in (0, 1).
    budget : int
        For n="auto": surrogates of a pair, as a mean over all pairs. What pairs that are soon decided leave goes to the
        others, up to 5 times as many for each, and 50 times where no surrogate has reached the skill.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for the surrogates "seasonal" and "auto"; looked for by default, and for
        "seasonal" a warning says what was found.
    recurrence : float
        Share of pairs of states that count as recurrent in the surrogates "twin"; in (0, 1).
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Each has surrogates of its own rows.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: the result of each window's rows by
        themselves. Each has surrogates of its own rows, and false discovery rates are over all.
    out : path, optional
        A folder that keeps what is finished, and at last the result, which :func:`pyedmcl.open_result` opens. The same
        call continues after an interruption, with the seed of the first, and gives the result again once it is
        complete.
    resume : bool
        False starts ``out`` afresh.
    join : bool
        Several processes, on any machines that share the folder ``out``, compute one result: each takes blocks that
        nobody has taken, also those of who was lost, and returns when all is done. See ``docs/scale.md``.
    part : str, optional
        "I/N": this process is the I-th (from 1) of N that join, and begins at its share of the blocks; it goes on with
        what others leave. Implies ``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).
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
    XmapSignificance

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the surrogates of one target or a table do not fit.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or arguments, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    false_discovery : from p-values to false discovery rates.
    surrogate : the null hypotheses.

    Notes
    -----
    Cost: the lookups of :func:`xmap` for n + 1 times as many targets; its search is repeated for each batch of
    targets that fits into memory. With n="auto" most pairs need some forty surrogates; those that are not decided soon
    need more, the closer they are to the limit.

    A remark tells where n is so small that no pair could pass at ``rate``.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values, E=3, n=19, seed=1)
    >>> result.p_value.shape
    (4, 4)
    """
    count = arguments.surrogates(n)
    begin = begin_of(join, part, out, "out", resume=resume)
    if windows is not None:
        check_windows(
            windows, keep=None, out=out, groups=groups, lib_range=None, pred_range=None, predictions=False
        )
        runner, pairs = arguments.runner_on(device, dtype, client), {
            "E": E, "tau": tau, "Tp": Tp, "exclusion_radius": exclusion_radius, "knn": knn, "E_max": E_max,
            "E_rule": E_rule, "dtype": dtype,
        }  # fmt: skip
        series, kind = as_series(data, columns=columns), (surrogate, tau, period, recurrence)
        return _in_windows(series, windows, count, arguments.stream(seed), runner, pairs, kind, rate, budget)
    number = None if seed is None and out is not None else arguments.stream(seed)
    fields, layout = pairs_in_groups(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=columns, groups=groups, dtype=dtype,
    )  # fmt: skip
    series = fields["data"].series
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    makers = SeriesMakers(series, surrogate, fields["tau"], period, recurrence, layout=layout)
    tell_lost([part for _, part in parts_of(series, layout, "data")], surrogate)
    problem = XmapSignificanceProblem(**fields, makers=makers, n=count or min(FIRST, budget), seed=number or 0)
    runner = arguments.runner_on(device, problem.data.dtype, client)
    with contextlib.ExitStack() as stack:
        folder = None
        if out is not None:
            rounds = {"n": count} if count else {"n": "auto", "rate": rate, "budget": budget}
            stored_arguments = {**problem.arguments(), **rounds, "surrogate": surrogate, "period": period,
                     "recurrence": recurrence}  # fmt: skip
            folder = stack.enter_context(folder_for(
                Path(out), begin, runner.infos[0].name, stored_arguments, number, series.digest(),
                resume=resume,
            ))  # fmt: skip
            problem = replace(problem, seed=folder.seed)
        record, dims, table = surrogate_tests(problem, runner, rate=rate, budget=0 if count else budget, folder=folder)
        p_value = p_values(table.reached, table.n)
        tell_reach(p_value, int(table.n.max(initial=0)), rate)
        result = XmapSignificance(
            table.rho, p_value, false_discovery(p_value), dims, series.names, count or int(table.n.max(initial=0)),
            surrogate, problem.seed, table.n, rate, makers.reasons,
            runner.provenance(problem.kernels, record), series.grid,
        )  # fmt: skip
        if folder is not None and out is not None:
            save_result(result, Path(out) / SIGNIFICANCE_FILE, of=folder.of)
            folder.settle()  # not before: who leaves last removes files that look unfinished
    return result


def _in_windows(
    series: Series, windows: Any, n: int | None, seed: int, runner: Runner, pairs: dict[str, Any],
    kind: tuple[Any, ...], rate: float, most: int,
) -> WindowedSignificance:  # fmt: skip
    """Each window tested by itself, with surrogates of its rows; window k draws with ``seed`` + k."""
    cut_at, found = windows_of(windows, series.n_steps), []
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    for done, start in enumerate(cut_at.starts):
        try:
            fields, _ = pairs_in_groups(
                build_series(series.values[start : start + cut_at.width], series.names), columns=None, **pairs
            )
        except InputError as error:
            raise InputError(f"windows={shown(windows)}: rows {start} to {start + cut_at.width - 1}: {error}") from None
        makers = SeriesMakers(fields["data"].series, *kind)
        problem = XmapSignificanceProblem(
            **fields, makers=makers, n=n or min(FIRST, most), seed=arguments.stream((seed + done) % 2**63)
        )
        record, dims, table = surrogate_tests(problem, runner, rate=rate, budget=0 if n else most)
        found.append((table.rho, dims, p_values(table.reached, table.n), table.n))
        report_progress(done + 1, len(cut_at), "windows")
    rho, dimensions, p_value, draws = (np.stack(each) for each in zip(*found, strict=True))
    tell_reach(p_value, int(draws.max(initial=0)), rate)
    arguments.stream(seed)  # what provenance names
    return WindowedSignificance(
        rho, dimensions, series.names, None, np.array(cut_at.starts), cut_at.width, cut_at.times(series.time),
        runner.provenance(problem.kernels, record), (series.grid, series.grid), p_value=p_value,
        q_value=false_discovery(p_value), draws=draws, seed=seed,
    )  # fmt: skip
