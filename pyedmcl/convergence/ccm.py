"""Convergent cross mapping of two series: does skill grow with the library?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..crossmap.linear_fits import require_double
from ..device.select import DeviceNames
from ..embedding.dimension import dimensions_of
from ..engines.ccm import CcmPair, SampledSkill, States
from ..engines.predict import Projector
from ..engines.smap import LocalFits
from ..engines.smap_maps import SmapMap, SmapMapData, left_around
from ..errors import InputError, shown
from ..forecast.smap import skill
from ..jobs.blocks import Arrays, Block, BlockResult, Record, Report
from ..jobs.runner import ArraySink, Runner, public_function
from ..launch.progress import Progress
from ..search.choose import SearchRequest, without_search
from ..series.groups import Layout
from ..series.regular import windows_of
from ..series.scaling import condition
from ..series.series import Series
from ..states import arguments
from ..states.arguments import check_room, measure, operations
from ..states.states import (
    MOST_COORDINATES,
    Direction,
    Side,
    Variables,
    check_thetas,
    delay_states,
    embed,
    future,
    library_sizes,
    stated,
    states_of,
    variables,
)
from ..statistics import means
from .results import CcmResult, LaggedCcmResult, WindowedCcm

if TYPE_CHECKING:
    from ..device.executor import Executor


# Random sub-libraries of whole groups, for replicates that are short (Clark et al., Ecology 96, 1174, 2015).


Mask = NDArray[np.bool_]
_MEMBER_BYTES = 1 << 28  # of sub-libraries that the host draws together


def drawn_from(layout: Layout | None, draw: Any) -> NDArray[np.int64] | None:
    """Group of each row where sub-libraries are drawn from whole groups, as ``draw`` says; else None."""
    if draw == "rows":
        return None
    if layout is None:
        raise InputError("draw='groups': groups= is needed, which says where each row belongs")
    return layout.code


def skill_of_groups(
    engine: SampledSkill, pairs: Sequence[CcmPair], sizes: Sequence[int], samples: int, seed: int,
    code: NDArray[np.int64],
) -> NDArray[np.float64]:  # fmt: skip
    """rho (n_pairs, n_sizes, samples) of sub-libraries of whole groups; ``code`` as for :func:`drawn_groups`."""
    out = np.empty((len(pairs), len(sizes), samples))
    at_once = max(_MEMBER_BYTES // (samples * len(code)), 1)  # sub-libraries of a pair and a size
    together = max(at_once // len(sizes), 1)
    for begin in range(0, len(pairs), together):
        some_pairs = pairs[begin : begin + together]
        step = max(at_once // len(some_pairs), 1)
        for first in range(0, len(sizes), step):
            some_sizes = sizes[first : first + step]
            members = np.array([
                [drawn_groups(code, engine.library_mask(pair), pair, size, samples, seed) for size in some_sizes]
                for pair in some_pairs
            ])  # fmt: skip
            skill = engine.skill(some_pairs, some_sizes, samples, seed, members)
            out[begin : begin + together, first : first + step] = skill
    return out


def drawn_groups(
    code: NDArray[np.int64], library_mask: Mask, pair: CcmPair, size: int, samples: int, seed: int
) -> Mask:
    """Members (samples, n) of sub-libraries of ``size`` rows.

    Groups are taken in random order, each with all rows that may be drawn, until there are ``size`` rows. Of the last
    group only as many rows as are lacking enter, which follow each other from a random one on.

    Parameters
    ----------
    code : ndarray of int (n,)
        Group of each row.
    library_mask : ndarray of bool (n,)
        Rows that may be drawn, at least ``size`` of them.
    pair : CcmPair
        Its stream, ``size``, ``seed`` and the number of the sample choose the random numbers.
    """
    rows = np.flatnonzero(library_mask)
    rows = rows[np.argsort(code[rows], kind="stable")]
    _, begins, counts = np.unique(code[rows], return_index=True, return_counts=True)
    out = np.zeros((samples, len(library_mask)), bool)
    for sample in range(samples):
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=(size, sample, *pair.stream))
        rng = np.random.Generator(np.random.Philox(sequence))
        order = rng.permutation(len(counts))
        before = np.cumsum(counts[order]) - counts[order]
        for group, lacking in zip(order[before < size], size - before[before < size], strict=True):
            begin, count = begins[group], counts[group]
            if lacking < count:
                begin += rng.integers(count - lacking + 1)
                count = lacking
            out[sample, rows[begin : begin + count]] = True
    return out


# Cross mapping by locally weighted linear fits: one set of fits for each random sub-library, many sets at a time.


def smap_skill(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> NDArray[np.float64]:
    """rho (n_sizes, samples) of a direction, for the same sub-libraries that the nearest neighbours would have."""
    require_double(engine.executor)
    if direction.library.series.n_series == 1 and direction.library.E <= MOST_COORDINATES:  # what maps take
        return _mapped(engine, pair, problem, direction)
    target = future(direction.target.series.values[:, 0], problem.Tp)
    rho = np.full((len(problem.lib_sizes), problem.sample), np.nan)
    for place, number, predicted in fitted(engine, pair, problem, direction):
        rows = np.isfinite(predicted) & np.isfinite(target)
        rho[place, number] = skill(predicted[None, rows], target[rows], direction.library.series.values)[0][0]
    return rho


def _mapped(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> NDArray[np.float64]:
    """The same where all samples of a size can be fitted together."""
    p, E = problem, direction.library.E
    assert p.theta is not None
    library = condition(direction.library.series.values, "float64", quiet=True)
    observed = direction.target.series.values[:, :1]
    fits = SmapMap(engine.executor, SmapMapData(
        condition(observed, p.dtype, quiet=True).values, library.values, library.exponent, np.array([E]),
        direction.tau, p.Tp, p.exclusion_radius, np.zeros(1, int), {}, True, (p.theta,),
        in_double=condition(observed, "float64", quiet=True).values,
    ))  # fmt: skip
    try:
        every = np.zeros(p.sample, int)
        return np.array([fits.sampled(every, members, 0) for members in p.sub_libraries(engine, pair)], np.float64)
    finally:
        fits.release()


def fitted(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """(number of the size, of the sample, predictions (n,) at the rows of states) of each sub-library, one by one.

    NaN where a sub-library leaves fewer rows than a fit has coefficients.
    """
    executor, p = engine.executor, problem
    require_double(executor)
    library = direction.library
    coordinates = embed(library.series.values, library.lags, direction.tau).astype(np.float64)
    target = future(direction.target.series.values[:, 0], p.Tp)
    queries = np.flatnonzero(np.isfinite(coordinates).all(axis=1) & np.isfinite(target))
    for place, members in enumerate(p.sub_libraries(engine, pair)):
        for number, drawn in enumerate(members):
            rows = np.flatnonzero(drawn)
            fits = LocalFits(
                executor, coordinates[rows], target[rows], rows, exclusion_radius=p.exclusion_radius, dtype=p.dtype
            )
            try:
                of_queries = fits.fit(coordinates[queries], queries, np.array([p.theta])).predicted
            finally:
                fits.release()
            predicted = np.full(len(target), np.nan)
            enough = left_around(drawn[None], p.exclusion_radius)[0, queries] > library.E
            predicted[queries[enough]] = of_queries[0][enough]
            yield place, number, predicted


# Predictions of each random sub-library by its own search, where their values are wanted and not only their rho.


Doubles = NDArray[np.float64]


def measured(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction, rho: Doubles, made: Doubles | None
) -> None:
    """Write skill (n_sizes, samples), unless it is Pearson's rho, and predictions (n_sizes, samples, n) of a direction.

    Predictions stand at the rows that are predicted.
    """
    p = problem
    target = future(direction.target.series.values[:, 0], p.Tp)
    n, predict = len(target), fitted if p.theta is not None else _projected
    begin, end = max(p.Tp, 0), max(min(n, n + p.Tp), 0)
    for place, number, predicted in predict(engine, pair, p, direction):
        if p.measure != "pearson":
            rho[place, number] = measure(p.measure, predicted[None], target)[0]
        if made is not None:
            made[place, number] = np.nan
            made[place, number, begin:end] = predicted[begin - p.Tp : end - p.Tp]


def _projected(
    engine: SampledSkill, pair: CcmPair, problem: CcmProblem, direction: Direction
) -> Iterator[tuple[int, int, Doubles]]:
    """As :func:`~pyedmcl.convergence.ccm.fitted`, by nearest neighbours."""
    states, p = engine.states, problem
    target = future(direction.target.series.values[:, 0], p.Tp)
    library = states.library[pair.library][None]
    query = library if states.query is states.library else states.query[pair.library][None]
    for place, members in enumerate(p.sub_libraries(engine, pair)):
        for number, drawn in enumerate(members):
            projector = Projector(engine.executor, states.problem, target, drawn)
            try:
                yield place, number, projector.predict(library, query)[0][0]
            finally:
                projector.release()


# Convergent cross mapping of two variables as a job: the problem, and the engine that computes its directions.


KERNELS = ("knn", "ccm_draw", "ccm", "ccm_direct")
_TOGETHER = 64  # directions of a block
SMAP_KERNELS = (
    "ccm_draw", "stage", "smap_white", "smap_gram", "smap_map",  # where samples are fitted together
    "smap_scale", "smap", "smap_solve",  # and one by one
)


@dataclass(frozen=True)
class CcmProblem:
    """Skill of random sub-libraries; rows of the result are directions."""

    directions: tuple[Direction, ...]
    # Rows of a sub-library.
    lib_sizes: tuple[int, ...]
    # Sub-libraries of each size.
    sample: int
    seed: int
    Tp: int
    exclusion_radius: int
    # How neighbours are searched.
    search: SearchRequest
    # What kernels compute in.
    dtype: str
    # Localisation of local linear fits; None where rows are predicted by their neighbours.
    theta: float | None = None
    # ndarray of int (n,) or None. Group of each row, where whole groups are drawn.
    group_of: NDArray[np.int64] | None = None
    # How predictions are measured.
    measure: str = "pearson"
    # They are a second layer of the result, (directions, sizes, samples, n).
    predictions: bool = False

    unit: ClassVar[str] = ""  # the engine itself reports

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return KERNELS if self.theta is None else SMAP_KERNELS

    @property
    def total(self) -> int:
        """Directions."""
        return len(self.directions)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Directions whose states one search serves together, others one by one."""
        blocks: list[Block] = []
        layers, begin = tuple(range(1 + self.predictions)), 0
        for end in range(1, self.total + 1):
            first, left = self.directions[begin], self.directions[end:]
            alike = left and first.library.series.n_series == left[0].library.series.n_series == 1
            alike = alike and (first.library.E, first.k) == (left[0].library.E, left[0].k)
            if not alike or end - begin == _TOGETHER:
                blocks.append(Block(len(blocks), begin, end, layers))
                begin = end
        return blocks

    @property
    def operations(self) -> float:
        n = self.directions[0].library.series.n_steps
        dims = [direction.library.E for direction in self.directions]
        targets = len(self.lib_sizes) * self.sample
        return operations(dims, n_library=n, n_query=n, n_series=self.total, n_targets=targets)

    def result(self) -> NDArray[np.float64]:
        """Room for rho (directions, sizes, samples)."""
        return np.empty((self.total, len(self.lib_sizes), self.sample))

    def sub_libraries(self, engine: SampledSkill, pair: CcmPair) -> Iterable[NDArray[np.bool_]]:
        """Members (samples, n) of the sub-libraries of each size."""
        if self.group_of is None:
            return engine.members(pair, self.lib_sizes, self.sample, self.seed)
        return (self.members(engine.library_mask(pair), pair, size) for size in self.lib_sizes)

    def members(self, library_mask: NDArray[np.bool_], pair: CcmPair, size: int) -> NDArray[np.bool_]:
        """Sub-libraries (samples, n) of whole groups."""
        assert self.group_of is not None
        return drawn_groups(self.group_of, library_mask, pair, size, self.sample, self.seed)

    def open(self, executor: Executor) -> CcmEngine:
        return CcmEngine(self, executor)


class CcmEngine:
    """The engine of :class:`CcmProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: CcmProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (directions of the block, sizes, samples)."""
        p, directions = self._problem, self._problem.directions[block.begin : block.end]
        targets = np.array([future(direction.target.series.values[:, 0], p.Tp) for direction in directions])
        mask = directions[0].range_mask
        engine = SampledSkill(self._executor, _states(p, directions), targets, mask, request=p.search)
        pairs = [CcmPair(place, place, direction.stream) for place, direction in enumerate(directions)]
        try:
            if p.measure != "pearson":
                rho = np.empty((len(pairs), len(p.lib_sizes), p.sample))
                searched = without_search(directions[0].library.E, p.search, "each sub-library is searched by itself")
            elif p.theta is None:
                rho = _skill(engine, pairs, p)
                searched = engine.searched
            else:
                rho = np.array([smap_skill(engine, pair, p, d) for pair, d in zip(pairs, directions, strict=True)])
                searched = without_search(directions[0].library.E, p.search, "local linear fits take all members")
            made = None
            if p.predictions:
                n = len(targets[0])
                made = np.empty((*rho.shape, n)) if into is None else into[1]
            if p.measure != "pearson" or p.predictions:
                for place, (pair, direction) in enumerate(zip(pairs, directions, strict=True)):
                    measured(engine, pair, p, direction, rho[place], None if made is None else made[place])
        finally:
            engine.release()
        layers = [rho] if made is None else [rho, made]
        return BlockResult(layers, Record(engine.parameters, engine.grade, tuple(searched)))

    def release(self) -> None:
        """Nothing is held."""


def _skill(engine: SampledSkill, pairs: list[CcmPair], p: CcmProblem) -> NDArray[np.float64]:
    """rho (pairs, sizes, samples)."""
    if p.group_of is None:
        return engine.skill(pairs, p.lib_sizes, p.sample, p.seed)
    return skill_of_groups(engine, pairs, p.lib_sizes, p.sample, p.seed, p.group_of)


def _states(problem: CcmProblem, directions: tuple[Direction, ...]) -> States:
    """States of the libraries of directions that one search serves."""
    p, first = problem, directions[0]
    if len(directions) == 1:
        return states_of(first, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype)
    columns = [direction.library.series.values for direction in directions]
    values = np.concatenate([column.astype(np.result_type(*columns)) for column in columns], axis=1)
    return delay_states(
        values, first.library.lags, first.tau, k=first.k, Tp=p.Tp, exclusion_radius=p.exclusion_radius, dtype=p.dtype
    )


# Convergent cross mapping within windows along two series: the directions of all windows are one job.


def windowed_ccm(
    both: Variables, windows: Any, knn: int | None, lib_sizes: Any, problem: CcmProblem, runner: Runner
) -> WindowedCcm:
    """Skill of each window's random sub-libraries.

    Parameters
    ----------
    both : Variables
        In their whole length.
    windows : (int, int)
    lib_sizes
        As of :func:`pyedmcl.ccm`; where none are given, they suit the window that has the fewest rows.
    problem : CcmProblem
        Without directions and library sizes.
    """
    cut, Tp = windows_of(windows, both.x.series.n_steps), problem.Tp
    try:
        pairs = [
            replace(both, x=_part(both.x, start, cut.width), y=_part(both.y, start, cut.width)).directions(Tp, knn)
            for start in cut.starts
        ]
        # Those of one library side by side: they share searches.
        directions = tuple(pair[number] for number in (0, 1) for pair in pairs)
        sizes = library_sizes(lib_sizes, directions)
    except InputError as error:
        raise InputError(f"windows={shown(windows)}: {error}") from None
    job = replace(problem, directions=directions, lib_sizes=sizes)
    rho = arguments.room("windows", (job.total, len(sizes), job.sample))
    record = runner.run(job, ArraySink(job.blocks(), [rho]))
    return WindowedCcm(
        rho=np.ascontiguousarray(rho.reshape(2, len(cut), len(sizes), job.sample).swapaxes(0, 1)),
        lib_sizes=np.array(sizes), links=both.links, E=(both.x.E, both.y.E), seed=job.seed, skill=job.measure,
        starts=np.array(cut.starts), width=cut.width, time=cut.times(both.x.series.time),
        provenance=runner.provenance(job.kernels, record),
    )  # fmt: skip


def _part(side: Side, start: int, width: int) -> Side:
    values = np.ascontiguousarray(side.series.values[start : start + width])
    return replace(side, series=Series(values, side.series.names))


@public_function
def ccm(
    x: Any,
    y: Any,
    *,
    E: str | int | Sequence[int] | None = None,
    tau: int = 1,
    Tp: int = 0,
    lib_sizes: Any = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    method: str = "simplex",
    theta: float = 1.0,
    state: Any = None,
    embedded: bool = False,
    lib_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    draw: str = "rows",
    windows: tuple[int, int] | None = None,
    skill: str = "pearson",
    predictions: bool = False,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> CcmResult | WindowedCcm:
    """Convergent cross mapping of two variables, in both directions.

    For each library size, random sub-libraries are drawn without replacement from the states of one variable, and the
    other is predicted from them at every row. If y drives x, x's states know about y: the skill of "x predicts y" is
    high and grows with the library (Sugihara et al., Science 338, 496, 2012).

    Parameters
    ----------
    x : array_like (n,) or (n, columns)
        The first variable, time along the first axis, NaN for gaps. Of several columns each is embedded, and the first
        is what is predicted.
    y : array_like (n,) or (n, columns)
        The second variable, as long as the first.
    E : int, (int, int) or "auto"
        Lags of the embedding of x and of y; "auto" finds those at which each predicts itself best. The default, unless
        ``embedded``.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps from library row to target; 0 or negative are allowed.
    lib_sizes : int or sequence of int, optional
        Rows of a sub-library: more than the neighbours, at most the rows there are; several up to all by default.
    sample : int
        Random sub-libraries of each size.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names. Each direction, size and sample has a random stream of its own, which depends on nothing else.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default. Of method "simplex".
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
    method : {"simplex", "smap"}
        How rows are predicted: by their nearest neighbours, or by linear fits to all rows of the library that are
        weighted by nearness, as :func:`pyedmcl.smap` makes them. A fit is made for each row and sample, which is
        slower.
    theta : float
        Localisation of method "smap", at least 0.
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    embedded : bool
        The columns of x and y are the coordinates of states themselves.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are. Sub-libraries are drawn from these.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    draw : {"rows", "groups"}
        What sub-libraries are drawn from: single rows of all groups, or whole groups in random order until there are
        enough rows, the last of them in part (Clark et al., Ecology 96, 1174, 2015). Rows of a group resemble each
        other: whole groups tell what the same number of plots or subjects would have told.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: the result of each window's rows by
        themselves. All have the same seed.
    skill : {"pearson", "spearman", "rmse", "mae", "nrmse"}
        What ``rho`` holds, as for :func:`pyedmcl.xmap`. All but the first make a search for each sub-library.
    predictions : bool
        The result also has the predictions.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall. It is the nearest rows of the whole library that are searched, among which each sub-library's are
        then found.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    CcmResult or, with ``windows``, WindowedCcm
        Skill of each sample, with summaries and tests of convergence.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.

    See Also
    --------
    xmap : all pairs at full library size.
    ccm_matrix : this for all pairs.
    ccm_significance : against surrogates.
    ccm_lagged : against Tp.

    Notes
    -----
    Cost: one search for many neighbours, of about n^2 * E multiply-adds in each direction, serves all samples; each
    sample then costs n * (E + 1).

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 100, 390], sample=20, seed=1)
    >>> result.rho.shape  # direction, library size, sample
    (2, 3, 20)
    >>> result.mean.shape
    (2, 3)
    """
    number = arguments.stream(seed)
    search = SearchRequest(neighbors, recall)
    thetas = check_thetas(theta)
    if len(thetas) != 1:
        raise InputError(f"theta={arguments.shown(theta)}: one number of at least 0 is needed")
    x, y, groups = stated(x, y, state, groups)
    if not embedded:
        E = dimensions_of(
            x, y, "auto" if E is None else E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=exclusion_radius,
            knn=knn, groups=groups, dtype=dtype, device=device,
        )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range,
        valid_lib=valid_lib, groups=groups,
    )  # fmt: skip
    problem = CcmProblem(
        (), (), sample, number, Tp, both.exclusion_radius, search, dtype,
        None if method == "simplex" else float(thetas[0]), drawn_from(both.layout, draw), skill,
        predictions,
    )  # fmt: skip
    if windows is not None:
        refused = {"lib_range": lib_range, "valid_lib": valid_lib, "groups": groups, "predictions": predictions or None}
        for name in (name for name, value in refused.items() if value is not None):
            raise InputError(f"windows={arguments.shown(windows)} cannot be used with {name}=: leave one of them out")
        return windowed_ccm(both, windows, knn, lib_sizes, problem, arguments.runner_on(device, dtype))
    directions = both.directions(Tp, knn)
    sizes = library_sizes(lib_sizes, directions)
    problem = replace(problem, directions=directions, lib_sizes=sizes)
    layers = [problem.result()]
    if predictions:
        shape = (*layers[0].shape, both.x.series.n_steps)
        layers.append(check_room(shape, np.float64, "take fewer samples or sizes"))
    runner = arguments.runner_on(device, dtype)
    record = runner.run(problem, ArraySink(problem.blocks(), layers))
    shown = slice(None) if both.layout is None else both.layout.order
    return CcmResult(
        lib_sizes=np.array(sizes),
        rho=layers[0],
        links=both.links,
        n_rows=(directions[0].n_predicted(Tp), directions[1].n_predicted(Tp)),
        E=(both.x.E, both.y.E),
        tau=both.tau,
        Tp=Tp,
        seed=number,
        method=method,
        skill=problem.measure,
        predictions=layers[1][..., shown] if predictions else None,
        provenance=runner.provenance(problem.kernels, record),
    )


def _ccm_skill(problem: CcmProblem, runner: Runner) -> tuple[NDArray[np.float64], Record]:
    """rho (directions, sizes, samples)."""
    rho = problem.result()
    return rho, runner.run(problem, ArraySink(problem.blocks(), [rho]))


@public_function
def ccm_lagged(
    x: Any,
    y: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    Tp: Sequence[int] = tuple(range(-8, 9)),
    tau: int = 1,
    lib_size: int | None = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    state: Any = None,
    lib_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> LaggedCcmResult:
    """Cross-map skill of two variables against the interval between state and target.

    A cause is best recovered at Tp <= 0, the effect's state being later than what caused it; the best Tp of the other
    direction being positive speaks for synchrony rather than for causation (Ye et al., Sci. Rep. 5, 14750, 2015).

    Parameters
    ----------
    x : array_like (n,) or (n, columns)
        The first variable, time along the first axis, NaN for gaps. Of several columns each is embedded, and the first
        is what is predicted.
    y : array_like (n,) or (n, columns)
        The second variable, as long as the first.
    E : int, (int, int) or "auto"
        Lags of the embedding of x and of y; "auto" finds those at which each predicts itself best.
    Tp : sequence of int
        Intervals, different ones.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
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
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position; of ``y`` too, where it is a table.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are. Sub-libraries are drawn from these.
    valid_lib : mask of bool (n_steps,), optional
        Rows that may be used, in addition to ``lib_range`` (conditional embedding).
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
        its recall. It is the nearest rows of the whole library that are searched, among which each sub-library's are
        then found.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    LaggedCcmResult

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.

    See Also
    --------
    ccm : skill against library size.

    Notes
    -----
    Cost: that of :func:`ccm` with one library size, for each Tp.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_lagged(x, y, E=3, Tp=[-2, -1, 0, 1])
    >>> [int(Tp) for Tp in result.Tp]
    [-2, -1, 0, 1]
    """
    lags = [arguments.integer("Tp", lag) for lag in arguments.several("Tp", Tp)]
    if not lags or len(set(lags)) != len(lags):
        raise InputError(f"Tp={arguments.shown(Tp)}: at least one integer is needed, and none twice")
    number = arguments.stream(seed)
    search = SearchRequest(neighbors, recall)
    x, y, groups = stated(x, y, state, groups)
    E = dimensions_of(
        x, y, E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=exclusion_radius, knn=knn, groups=groups,
        dtype=dtype, device=device,
    )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=lags, exclusion_radius=exclusion_radius, lib_range=lib_range, valid_lib=valid_lib,
        groups=groups,
    )  # fmt: skip
    runner = arguments.runner_on(device, dtype)
    rho, record = np.empty((2, len(lags))), Record()
    for place, lag in enumerate(lags):
        directions = both.directions(lag, knn)
        parts: list[tuple[Sequence[Direction], tuple[int, ...], int]]
        if lib_size is not None:
            parts = [(directions, library_sizes(lib_size, directions, "lib_size"), sample)]
        else:  # all rows: gaps may leave different numbers of them
            parts = [([d], library_sizes([int(d.library_mask.sum())], [d]), 1) for d in directions]
        for part, sizes, count in parts:
            problem = CcmProblem(tuple(part), sizes, count, number, lag, both.exclusion_radius, search, dtype)
            skill, new_record = _ccm_skill(problem, runner)
            rho[[d.number for d in part], place] = means(skill[:, 0])
            record = record.joined(new_record)
    return LaggedCcmResult(np.array(lags), rho, both.links, lib_size, number, runner.provenance(KERNELS, record))
