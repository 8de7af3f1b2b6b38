"""Significance of cross-map skill, of two series and of the highest of several lags, against surrogates of the target.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..convergence.ccm import KERNELS
from ..crossmap.pairs import PairsProblem, libraries_of, missing_of
from ..device.quirks import quirks_for
from ..device.select import DeviceNames
from ..embedding.dimension import dimensions_of
from ..engines.ccm import CcmPair, SampledSkill
from ..engines.lagged import LaggedMap, Span, WaveDrawer, WaveSeries, centred, laid_out, room_for
from ..errors import pandas_for
from ..functions import BUDGET
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..jobs.runner import ArraySink, Runner, public_function
from ..launch.progress import Progress
from ..results.result import Result
from ..results.tables import role_columns
from ..series.groups import Layout
from ..series.series import Series, build_series
from ..states import arguments
from ..states.arguments import operations
from ..states.states import Direction, future, library_sizes, stated, states_of, variables
from ..statistics import FIRST, SequentialTests, counts, false_discovery, means, p_values, smallest_p, tell_reach
from ..surrogates.makers import TURNS, Amplitudes, Maker, Streams, Waves, draw, keys, parts_of
from ..surrogates.surrogate import AnyChoice, SeriesMakers, choices_of, tell_lost

if TYPE_CHECKING:
    from ..device.executor import Executor


# Targets of a test at several lags, each series before its surrogates: drawn by the host, or by the device itself.


#: Series and surrogates of a block.
MOST_OF_A_BLOCK = 1 << 17
# Those that are on the device together: of the host, which draws some while the device computes with others; and of the
# device itself, which is filled by more.
_MOST, _MOST_DRAWN_THERE = 1 << 14, 1 << 17
_PARTS = 4  # of a block, at least
# Beside drawing processors, what a device does with the last part of a block is waited for: its parts are smaller, but
# not so small that they leave most of a device idle.
_LEAST_TARGETS = 4096
_AGAIN = 32  # surrogates that a thread transforms at a time, of those that the device left to the host
Numbers = NDArray[np.int_]


class Draws(Protocol):
    """Where the targets of a map come from."""

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones: series and surrogates."""

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Put some targets on the device; ``following`` come next."""

    def __enter__(self) -> Draws: ...

    def __exit__(self, *error: Any) -> None: ...


def draws_for(problem: LaggedSignificanceProblem, lagged: LaggedMap, targets: Numbers) -> Draws:
    """Whoever draws the surrogates of these targets sooner; the bits are the same."""
    if quirks_for(lagged.executor.info).draws_waves and problem.data.dtype == "float32":
        makers = {j: problem.makers.of(j, (problem.E or ())[j]) for j in targets.tolist()}
        if all(isinstance(maker, Waves) for maker in makers.values()):
            return DeviceDraws(problem, lagged)
    return HostDraws(problem, lagged)


class HostDraws:
    """Surrogates that the host draws: those of the next part while the device computes with one."""

    def __init__(self, problem: LaggedSignificanceProblem, lagged: LaggedMap) -> None:
        self._problem, self._map = problem, lagged
        self._apart = not quirks_for(lagged.executor.info).on_host  # the device is none of the processors that draw
        self._ahead = ThreadPoolExecutor(1)
        self._drawn: Future[tuple[NDArray[Any], list[Span]]] | None = None

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones."""
        parted = max(total // (2 * _PARTS), _LEAST_TARGETS) if self._apart else _MOST
        return min(parted, _MOST, self._map.most_targets)

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Put some targets on the device, and begin to draw those that come next."""
        drawn = self._drawn or self._ahead.submit(self._draw, targets)
        values, spans = drawn.result()
        self._drawn = None if following is None else self._ahead.submit(self._draw, following)
        self._map.load(values, spans)
        self._problem.makers.drawer.give_back(values)

    def _draw(self, targets: Numbers) -> tuple[NDArray[Any], list[Span]]:
        """Some targets, each before its surrogates, as the device reads them."""
        p, series = self._problem, self._problem.data.series.values
        spans = _spans(p, targets)
        values = room_for(len(series), spans[-1].end, p.data.dtype, p.makers.drawer.room)
        draws = []
        for span, j in zip(spans, targets.tolist(), strict=True):
            scale = centred(series[:, j])
            values[: len(series), span.begin] = laid_out(series[:, j].astype(np.float64), *scale)
            drawn = values[: len(series), span.begin + 1 : span.end].T
            draws.append((drawn, _maker(p, j, scale, gaps=span.missing is not None), j))
        p.makers.drawer.draw(draws, p.seed, p.first)
        return values, spans

    def __enter__(self) -> HostDraws:
        return self

    def __exit__(self, *error: Any) -> None:
        self._ahead.shutdown()


class DeviceDraws:
    """Surrogates with random phases, which the device draws; the host does the few that rounding could decide."""

    def __init__(self, problem: LaggedSignificanceProblem, lagged: LaggedMap) -> None:
        self._problem, self._map = problem, lagged
        self._waves = WaveDrawer(lagged.executor, lagged.n_steps, TURNS)

    def columns(self, total: int) -> int:
        """Columns of a part of ``total`` ones."""
        return min(total, _MOST_DRAWN_THERE, self._map.most_targets)

    def load(self, targets: Numbers, following: Numbers | None) -> None:
        """Draw some targets on the device."""
        p, spans = self._problem, _spans(self._problem, targets)
        numbers = targets.tolist()
        streams = keys(p.seed, numbers, p.first, p.first + p.n)
        several = [self._series(j, own) for j, own in zip(numbers, streams, strict=True)]
        room, layout = self._map.room(spans), self._map.layout_of(spans)

        def back(place: int, turned: Amplitudes) -> NDArray[np.float32]:
            one, waves = several[place], p.makers.of(int(targets[place]), (p.E or ())[targets[place]])
            assert isinstance(waves, Waves)
            out = np.empty((len(turned), self._map.n_steps), np.float32)

            def part(rows: slice) -> None:
                out[rows] = laid_out(waves.summed(turned[rows]), one.shift, one.exponent)

            p.makers.drawer.run([functools.partial(part, slice(i, i + _AGAIN)) for i in range(0, len(out), _AGAIN)])
            return out

        self._waves.draw(several, p.first, p.n, room, layout.rows, layout.stride, back)

    def _series(self, j: int, streams: NDArray[np.uint64]) -> WaveSeries:
        p = self._problem
        column, waves = p.data.series.values[:, j], p.makers.of(j, (p.E or ())[j])
        assert isinstance(waves, Waves)
        scale = centred(column)
        base = waves.base
        if waves.missing is not None:
            base = np.where(waves.missing, np.nan, 0.0 if base is None else base)
        values = laid_out(column.astype(np.float64), *scale).astype(np.float32)
        return WaveSeries(values, waves.spectrum, waves.mean, base, *scale, streams)

    def __enter__(self) -> DeviceDraws:
        return self

    def __exit__(self, *error: Any) -> None:
        self._waves.release()


def _spans(problem: LaggedSignificanceProblem, targets: Numbers) -> list[Span]:
    """Columns of some targets, each before its surrogates."""
    width, series = problem.n + 1, problem.data.series.values
    return [
        Span(place * width, (place + 1) * width, missing_of(series[:, j])) for place, j in enumerate(targets.tolist())
    ]


def _maker(problem: LaggedSignificanceProblem, j: int, scale: tuple[float, int], *, gaps: bool) -> Maker:
    """What makes surrogates of a series as the device reads them."""
    return functools.partial(_laid_out, problem.makers.of(j, (problem.E or ())[j]), *scale, gaps)


def _laid_out(make: Maker, shift: float, exponent: int, gaps: bool, streams: Streams) -> Doubles:
    return laid_out(make(streams), shift, exponent, gaps=gaps)


# The highest skill of several lags against that of surrogates, of all pairs, as a job.


@dataclass(frozen=True)
class LaggedSignificanceProblem(PairsProblem):
    """The highest skill of some lags, E being that of the library, and how many surrogates of the target reach it.

    Blocks are ranges of **targets**. Their layers, each with a cell for each library, are the skill, the number of
    surrogates that reach it, each at its own best lag, and the number of those that have a skill.
    """

    # Of the surrogates.
    makers: SeriesMakers
    # Surrogates of each target.
    n: int
    # Chooses them.
    seed: int
    # The field Tp is not used.
    lags: tuple[int, ...]
    # Number of the first surrogate.
    first: int = 0
    # ndarray of bool (n_series, n_series), optional. Row = library, column = target: which pairs are computed; the
    # others get NaN and 0. All pairs by default.
    pairs: NDArray[np.bool_] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup", "highest")

    def blocks(self) -> list[Block]:
        """Ranges of targets."""
        return cut(self.total, max(MOST_OF_A_BLOCK // (self.n + 1), 1), 3)

    @property
    def operations(self) -> float:
        L, N = self.data.series.n_steps, self.total
        once = operations(self.dims, n_library=L, n_query=L, n_series=N, n_targets=N * (self.n + 1))
        return once * len(self.lags)

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """Pairs that are computed."""
        wanted = np.ones((self.total, self.total), bool) if self.pairs is None else self.pairs.copy()
        np.fill_diagonal(wanted, False)
        return wanted

    def open(self, executor: Executor) -> LaggedSignificanceEngine:
        return LaggedSignificanceEngine(self, executor)


class LaggedSignificanceEngine:
    """The engine of :class:`LaggedSignificanceProblem`: the libraries that are wanted, and their neighbours."""

    def __init__(self, problem: LaggedSignificanceProblem, executor: Executor) -> None:
        self._problem, self._wanted = problem, problem.wanted
        self._libraries = np.flatnonzero(self._wanted.any(axis=1))
        self._map: LaggedMap | None = None
        if len(self._libraries):
            self._map = LaggedMap(executor, libraries_of(problem, self._libraries, problem.lags))

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Skill and both counts, each (targets of the block, n_series)."""
        p, shape, done = self._problem, (len(block), self._problem.total), 0
        rho, reached, counted = [np.empty(shape), *np.empty((2, *shape), int)] if into is None else into
        rho[...], reached[...], counted[...] = np.nan, 0, 0
        targets = block.begin + np.flatnonzero(self._wanted[:, block.begin : block.end].any(axis=0))
        if self._map is None or not len(targets):
            return BlockResult([rho, reached, counted])
        source = draws_for(p, self._map, targets)
        most = max(source.columns(len(targets) * (p.n + 1)) // (p.n + 1), 1)
        parts = [targets[first : first + most] for first in range(0, len(targets), most)]
        with source:
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                source.load(part, following)
                highest = self._map.highest(p.lags, self._wanted[np.ix_(self._libraries, part)])
                for out, of_part in zip((rho, reached, counted), highest, strict=True):
                    out[np.ix_(part - block.begin, self._libraries)] = of_part.T
                done = int(part.max()) + 1 - block.begin
                report(done)
        return BlockResult([rho, reached, counted], Record(self._map.parameters))

    def release(self) -> None:
        """Give the device memory back."""
        if self._map is not None:
            self._map.release()


# Cross-map skill against that of surrogates as a job: the problem, and the engine that computes its directions.


@dataclass(frozen=True)
class CcmSignificanceProblem:
    """Mean skill of a target and of its surrogates for the same states and sub-libraries; rows are directions."""

    directions: tuple[Direction, ...]
    # tuple of ndarray (n, n_steps). Of the target of each direction.
    surrogates: tuple[NDArray[np.float64], ...]
    # Rows of a sub-library, of each direction.
    lib_sizes: tuple[int, ...]
    # Sub-libraries.
    sample: int
    seed: int
    Tp: int
    exclusion_radius: int
    # What kernels compute in.
    dtype: str
    # Rows of the smallest sub-library, of each direction; empty where no gain is asked for.
    smallest: tuple[int, ...] = ()
    samples_of_smallest: int = 0

    kernels: ClassVar[tuple[str, ...]] = KERNELS
    unit: ClassVar[str] = ""  # the engine itself reports

    @property
    def total(self) -> int:
        """Directions."""
        return len(self.directions)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Direction by direction."""
        return cut(self.total, 1, 2)

    @property
    def operations(self) -> float:
        n = self.directions[0].library.series.n_steps
        dims = [direction.library.E for direction in self.directions]
        targets = self.sample * (len(self.surrogates[0]) + 1)
        return operations(dims, n_library=n, n_query=n, n_series=self.total, n_targets=targets)

    def open(self, executor: Executor) -> CcmSignificanceEngine:
        return CcmSignificanceEngine(self, executor)


class CcmSignificanceEngine:
    """The engine of :class:`CcmSignificanceProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmSignificanceProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Mean skill, and what it gains from the smallest sub-library, each (directions of the block, 1 + n)."""
        p, record, rows, gains = self._problem, Record(), [], []
        for number in range(block.begin, block.end):
            direction = p.directions[number]
            series = direction.target.series.values[:, :1].T.astype(np.float64)
            targets = np.array([future(target, p.Tp) for target in np.concatenate([series, p.surrogates[number]])])
            states = states_of(direction, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype)
            engine = SampledSkill(self._executor, states, targets, direction.range_mask)
            pairs = [CcmPair(0, place, direction.stream) for place in range(len(targets))]
            try:
                rows.append(means(engine.skill(pairs, [p.lib_sizes[number]], p.sample, p.seed)[:, 0]))
                gains.append(np.full(len(targets), np.nan))
                if p.smallest:
                    small = engine.skill(pairs, [p.smallest[number]], p.samples_of_smallest, p.seed)[:, 0]
                    gains[-1] = rows[-1] - means(small)
            finally:
                engine.release()
            record = record.joined(Record(engine.parameters, engine.grade))
        return BlockResult([np.array(rows), np.array(gains)], record)

    def release(self) -> None:
        """Nothing is held."""


Doubles = NDArray[np.float64]


def _unknown() -> Doubles:
    return np.full(2, np.nan)


@dataclass(frozen=True, repr=False)
class CcmSignificance(Result):
    """Cross-map skill of two series against that of surrogates of the target.

    Attributes
    ----------
    links : ((str, str), (str, str))
        (library, target) of each direction: a significant skill says that the target drives the library, or that both
        share a driver whose trace the surrogates lost.
    rho : ndarray of float64 (2,)
        Skill; the mean over samples where sub-libraries are drawn.
    surrogates : ndarray of float64 (2, n)
        Skill of the same states for surrogates of the target; NaN behind the last where one direction got fewer.
    p_value : ndarray of float64 (2,)
        (1 + surrogates that do as well) / (1 + n): one-sided, never 0. NaN where the skill is.
    q_value : ndarray of float64 (2,)
        Adjusted for the two directions (Benjamini and Hochberg).
    gain : ndarray of float64 (2,)
        Skill less that of the smallest sub-libraries (as :func:`pyedmcl.ccm` has them by default).
    p_gain : ndarray of float64 (2,)
        P-value of that gain against those of surrogates: the test of convergence that holds its level. NaN where the
        smallest sub-library is as large as the largest.
    lib_size : int or None
        Rows of a random sub-library; None for all.
    method : str
        Of the surrogates.
    seed : int
    rate : float
        The false discovery rate at which n="auto" decided.
    reasons : tuple of str
        For method "auto", "seasonal" without a period, and "phase" and "iaaft" of series with gaps: what was taken for
        the target of each direction, and why.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_significance(x, y, E=3, n=19, seed=1)
    >>> result.links[1], bool(result.p_value[1] == result.smallest_p)  # no surrogate of x did as well: x drives y
    (('y', 'x'), True)
    >>> result.n, result.smallest_p, result.surrogates.shape
    (19, 0.05, (2, 19))
    """

    answer_columns = ("cause", "effect", "rho", "surrogates_q95", "p_value", "q_value", "gain", "p_gain")

    links: tuple[tuple[str, str], tuple[str, str]]
    rho: Doubles
    surrogates: Doubles
    p_value: Doubles
    q_value: Doubles
    lib_size: int | None
    method: str
    seed: int
    rate: float = 0.05
    reasons: tuple[str, ...] = ()
    gain: Doubles = field(default_factory=_unknown)
    p_gain: Doubles = field(default_factory=_unknown)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Surrogates of a direction; of n="auto", the most that one got."""
        return int(self.surrogates.shape[1])

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that n surrogates can give."""
        return smallest_p(self.n)

    @property
    def smallest_q(self) -> float:
        """The smallest q-value that n surrogates can give a direction which alone is significant."""
        return min(2 * self.smallest_p, 1.0)

    def to_frame(self) -> Any:
        """A pandas DataFrame: cause, effect, library, target, rho, the surrogates' 95 % quantile, p_value, q_value,
        gain, p_gain."""
        return pandas_for("to_frame()").DataFrame({
            **role_columns([link[0] for link in self.links], [link[1] for link in self.links]), "rho": self.rho,
            "surrogates_q95": [_quantile(row, 0.95) for row in self.surrogates], "p_value": self.p_value,
            "q_value": self.q_value, "gain": self.gain, "p_gain": self.p_gain,
        })  # fmt: skip

    def plot(self, path: str | None = None) -> Any:
        """Skill beside the surrogates' distribution; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.curves import skill_against_surrogates

        return skill_against_surrogates(self, path)


def _quantile(values: Doubles, q: float) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, q)) if finite.size else float("nan")


@public_function
def ccm_significance(
    x: Any,
    y: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "auto",
    n: int | str = "auto",
    rate: float = 0.05,
    budget: int = BUDGET,
    lib_size: int | None = None,
    sample: int = 30,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    period: float | None = None,
    recurrence: float = 0.1,
    state: Any = None,
    lib_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> CcmSignificance:
    """Does cross mapping of two series do better than chance that shares the target's own properties?

    Both directions. Each target is replaced by surrogates, which keep its spectrum, say, but know nothing of the other
    series; all are predicted from the same states and, with ``lib_size``, the same random sub-libraries.

    Parameters
    ----------
    x : array_like (n,) or (n, columns)
        The first variable, time along the first axis, NaN for gaps. Of several columns each is embedded, and the first
        is what is predicted.
    y : array_like (n,) or (n, columns)
        The second variable, as long as the first.
    E : int, (int, int) or "auto"
        Lags of the embedding of x and of y; "auto" finds those at which each predicts itself best.
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
    lib_size : int, optional
        Rows of sub-libraries; all rows, without drawing, by default.
    sample : int
        Random sub-libraries of each size. Without effect unless ``lib_size`` is given.
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
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are. Sub-libraries are drawn from these.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Each has surrogates of its own rows.
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
    CcmSignificance

    Raises
    ------
    InputError
        An argument cannot be used, or a series has gaps that the method does not allow.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    surrogate : the null hypotheses.
    xmap_significance : all pairs.

    Notes
    -----
    Cost: that of :func:`ccm` with n + 1 targets in each direction and two library sizes; the search is made once.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_significance(x, y, E=3, n=19, seed=1)
    >>> bool(((result.p_value >= 1 / 20) & (result.p_value <= 1)).all())
    True
    """
    count = arguments.surrogates(n)
    number = arguments.stream(seed)
    x, y, groups = stated(x, y, state, groups)
    E = dimensions_of(
        x, y, E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=exclusion_radius, knn=knn, groups=groups,
        dtype=dtype, device=device,
    )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius, lib_range=lib_range, valid_lib=valid_lib,
        groups=groups,
    )  # fmt: skip
    directions = both.directions(Tp, knn)
    of_target = [
        SeriesMakers(_first(d.target.series), surrogate, both.tau, period, recurrence, known, both.layout,
                     "xy"[1 - d.number])
        for d, known in zip(directions, _taken_of_both(directions, both.layout, surrogate, period), strict=True)
    ]  # fmt: skip
    makers = [own.of(0, d.target.lags) for own, d in zip(of_target, directions, strict=True)]
    n_steps = both.x.series.n_steps
    sizes = tuple(  # of all rows there is one sample
        library_sizes(int(d.library_mask.sum()) if lib_size is None else lib_size, [d], "lib_size")[0]
        for d in directions
    )

    smallest = tuple(library_sizes(None, [d])[0] for d in directions)
    grows = all(small < size for small, size in zip(smallest, sizes, strict=True))

    def problem_of(which: Sequence[int], first: int, count: int) -> CcmSignificanceProblem:
        """Some directions, and ``count`` of their surrogates."""
        drawn = [draw(makers[d], count, number, directions[d].number, n_steps, first) for d in which]
        return CcmSignificanceProblem(
            tuple(directions[d] for d in which), tuple(drawn), tuple(sizes[d] for d in which),
            1 if lib_size is None else sample, number, Tp, both.exclusion_radius, dtype,
            tuple(smallest[d] for d in which) if grows else (), sample,
        )  # fmt: skip

    runner = arguments.runner_on(device, dtype, client)
    first_round = problem_of((0, 1), 0, count or min(FIRST, budget))
    skill, gained, record = _skill(first_round, runner)
    rho, surrogates = skill[:, 0].copy(), skill[:, 1:].copy()
    tests = SequentialTests(rate, 0 if count else budget, surrogates.shape[1], *counts(rho, surrogates))
    gains = gained[:, 1:]
    while step := tests.step(n_steps):
        which = np.flatnonzero(tests.open)
        more, more_gains = np.full((2, 2, step), np.nan)
        skill, more_gained, own = _skill(problem_of(which.tolist(), tests.drawn, step), runner)
        more[which], more_gains[which] = skill[:, 1:], more_gained[:, 1:]
        gains = np.concatenate([gains, more_gains], axis=1)
        surrogates, record = np.concatenate([surrogates, more], axis=1), record.joined(own)
        tests.add(step, *counts(rho, more))
    p_value = p_values(tests.reached, tests.n)
    tell_reach(p_value, surrogates.shape[1], rate)
    return CcmSignificance(
        links=both.links, rho=rho, surrogates=surrogates, p_value=p_value,
        q_value=false_discovery(p_value), lib_size=lib_size, method=surrogate, seed=number, rate=rate,
        reasons=tuple(reason for own in of_target for reason in own.reasons),
        gain=gained[:, 0], p_gain=p_values(*counts(gained[:, 0], gains)),
        provenance=runner.provenance(first_round.kernels, record),
    )  # fmt: skip


def _skill(problem: CcmSignificanceProblem, runner: Runner) -> tuple[Doubles, Doubles, Record]:
    """Skill of each direction and of its surrogates, and what it gains with the library, each (directions, 1 + n)."""
    skill, gain = np.empty((2, problem.total, 1 + len(problem.surrogates[0])))
    return skill, gain, runner.run(problem, ArraySink(problem.blocks(), [skill, gain]))


def _taken_of_both(
    directions: Sequence[Direction], layout: Layout | None, surrogate: str, period: Any
) -> list[tuple[tuple[AnyChoice, ...], ...] | None]:
    """What is taken for each direction's target, found in both series together; of what is lost a warning tells."""
    targets = [d.target.series for d in directions]
    both = Series(np.column_stack([one.values[:, 0] for one in targets]), tuple(one.names[0] for one in targets))
    parts = [part for _, part in parts_of(both, layout, "x, y")]
    tell_lost(parts, surrogate)
    choices = choices_of(parts, surrogate, period)
    return [tuple(own[place : place + 1] for own in choices) for place in range(len(directions))]


def _first(series: Series) -> Series:
    return build_series(np.ascontiguousarray(series.values[:, 0]), [series.names[0]], series.time)
