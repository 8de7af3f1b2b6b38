"""Partial cross mapping: a link without what passes through other series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..crossmap.pairs import PairOptions, PairPredictionsProblem, pairs_arguments, predict_pairs, with_dimensions
from ..crossmap.problem import XmapProblem
from ..device.select import DeviceNames
from ..errors import InputError, need, pandas_for, warn
from ..functions import BUDGET
from ..jobs.blocks import Record, cut
from ..jobs.runner import ArraySink, Runner, public_function
from ..launch.progress import Progress
from ..parallel import bounds
from ..results.result import Label, Result, common, labelled
from ..series.regular import require_same_rows
from ..series.series import Series, as_series, build_series
from ..states import arguments
from ..states.arguments import pearson
from ..states.states import standardised
from ..statistics import FIRST, SequentialTests, counts, p_values, tell_reach
from ..surrogates.makers import Maker, draw
from ..surrogates.surrogate import AnyChoice, SeriesMakers, choices_of, maker, tell_lost

# Partial cross mapping: what is left of a cross-map skill without what passes through other series.
#
# Leng et al., Nat. Commun. 11, 2632 (2020). If x drives y through z alone, then what the states of y know of x they
# know of z, too: x is estimated from the states of y, z likewise, and x again from the states of that estimate of z.
# The partial correlation of x and its first estimate, given the second, is what does not pass through z.


Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PartialLink:
    """A possible cause of an effect, and what it may pass through; series by their numbers."""

    cause: int
    effect: int
    given: tuple[int, ...]
    # Steps from the states of the effect to the cause.
    Tp: int = 0
    # Steps from the states of the effect to each of ``given``.
    Tp_given: tuple[int, ...] = ()
    # Steps from the states of each of ``given`` to the cause.
    Tp_through: tuple[int, ...] = ()

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """(given, Tp_given, Tp_through) of each series that is given."""
        none = (0,) * len(self.given)
        return list(zip(self.given, self.Tp_given or none, self.Tp_through or none, strict=True))


@dataclass(frozen=True)
class PartialSkill:
    """Skills of links and their targets, each (n_links, n_targets); the first target is the cause itself."""

    # Correlation of the cause and its estimate from the effect.
    rho: Doubles
    # The same, given the estimates through all of ``given``.
    partial: Doubles
    # list of ndarray (n_targets, n_given). Of each link: correlation of the cause and its estimate through each of
    # ``given``.
    through: list[Doubles]


@dataclass(frozen=True)
class LinkedSeries:
    """Series between which links are, and how their states are made."""

    # ndarray (n_steps, n_series). NaN for gaps.
    values: NDArray[Any]
    # ndarray of int (n_series,). Dimension of the states of each series.
    E: NDArray[np.int_]
    options: PairOptions
    # ndarray of bool (n_steps,), optional. Rows of the data, where groups have gaps between them: no estimate stands
    # elsewhere, so that no state of an estimate reaches over a gap.
    there: NDArray[np.bool_] | None = None


def partial_skill(
    runner: Runner, series: LinkedSeries, links: Sequence[PartialLink], surrogates: dict[int, Doubles]
) -> tuple[PartialSkill, Record]:
    """Partial cross mapping of some links.

    Parameters
    ----------
    surrogates : dict
        Of causes: surrogates (n, n_steps), as many of each, which take the place of the cause; may be empty.
    """
    values, E = series.values, series.E
    targets, columns_of = _with_surrogates(values, surrogates)
    first = _Pairs()
    direct, between = [], []
    for link in links:
        dim = int(E[link.effect])
        direct.append([first.add(link.effect, column, dim, link.Tp) for column in columns_of(link.cause)])
        between.append([first.add(link.effect, z, dim, Tp) for z, Tp, _ in link.steps])
    low, high, _ = bounds(values)
    states = np.where(low == high, np.nan, values)  # a constant series tells of none
    estimates, record = predict_pairs(runner, states, targets, first.array(), series.options)
    if series.there is not None:
        estimates[:, ~series.there] = np.nan
    used = sorted({place for places in between for place in places})
    through = _Pairs()
    via = [
        [
            [through.add(used.index(place), column, int(E[z]), Tp) for column in columns_of(link.cause)]
            for place, (z, _, Tp) in zip(places, link.steps, strict=True)
        ]
        for link, places in zip(links, between, strict=True)
    ]
    indirect, new_record = (
        predict_pairs(runner, np.ascontiguousarray(estimates[used].T), targets, through.array(), series.options)
        if used else (np.empty((0, len(values))), Record())
    )  # fmt: skip
    rho, partial = np.full((2, len(links), 1 + len(next(iter(surrogates.values()), ()))), np.nan)
    skills: list[Doubles] = []
    for number, link in enumerate(links):
        skills.append(np.full((rho.shape[1], len(link.given)), np.nan))
        for t, column in enumerate(columns_of(link.cause)):
            target_values, estimate = targets[:, column], estimates[direct[number][t]]
            indirect_estimates = [indirect[places[t]] for places in via[number]]
            rho[number, t] = pearson(estimate, target_values)
            partial[number, t] = partial_correlation(target_values, estimate, indirect_estimates)
            skills[number][t] = [pearson(other, target_values) for other in indirect_estimates]
    return PartialSkill(rho, partial, skills), record.joined(new_record)


class _Pairs:
    """Pairs to be predicted, each once."""

    def __init__(self) -> None:
        self._place: dict[tuple[int, int, int, int], int] = {}

    def add(self, library: int, target: int, E: int, Tp: int) -> int:
        """The row of a pair."""
        return self._place.setdefault((library, target, E, Tp), len(self._place))

    def array(self) -> NDArray[np.int_]:
        return np.array(list(self._place), int).reshape(-1, 4)


def _with_surrogates(values: NDArray[Any], surrogates: dict[int, Doubles]) -> tuple[NDArray[Any], Any]:
    """Series and surrogates as columns, and a function from a cause to its columns, its own first."""
    begin, place = values.shape[1], {}
    for cause, drawn in surrogates.items():
        place[cause] = range(begin, begin + len(drawn))
        begin += len(drawn)
    together = np.concatenate([values.astype(np.float64), *(drawn.T for drawn in surrogates.values())], axis=1)
    return together, lambda cause: [cause, *place.get(cause, ())]


def partial_correlation(a: Doubles, b: Doubles, given: Sequence[Doubles]) -> float:
    """Pearson's correlation of what linear fits of ``given`` leave of a and of b, over rows where all have a value.

    NaN with fewer than 3 rows more than there are ``given``, or where nothing is left.
    """
    present = np.isfinite(a) & np.isfinite(b)
    for one in given:
        present &= np.isfinite(one)
    if present.sum() < 3 + len(given):
        return float("nan")
    regressors = np.column_stack([np.ones(int(present.sum())), *(standardised(one[present]) for one in given)])
    pair = np.column_stack([standardised(a[present]), standardised(b[present])])
    fit, *_ = np.linalg.lstsq(regressors, pair, rcond=None)
    left = pair - regressors @ fit
    if (left.std(axis=0) < 1e-6).any():
        return float("nan")
    return float(pearson(left[:, 0], left[:, 1]))


# Is anything left of links without what passes through another series? Tests of partial cross mapping of many links.
#
# Surrogates of the cause take its place in both estimates. They are drawn in rounds, and only for links that more of
# them may still decide at the false discovery rate over all these links.


_NUMBERS = 1 << 25  # predictions that are held together


def partial_tests(
    runner: Runner, series: LinkedSeries, links: Sequence[PartialLink], makers: SeriesMakers, *, budget: int,
    rate: float, seed: int,
) -> tuple[Doubles, Record]:  # fmt: skip
    """P-values of links whose partial correlation is compared with those of surrogates of their causes.

    Parameters
    ----------
    runner, series, links
        As for :func:`partial_skill`.
    makers : SeriesMakers
        What makes the surrogates.
    budget : int
        Surrogates of a link, as a mean over all of them.
    rate : float
        False discovery rate at which links are decided.
    """
    n_steps, record = len(series.values), Record()

    def of(which: Sequence[int], first: int, n: int) -> tuple[Doubles, Doubles]:
        """Of some links the partial correlation, and those of n surrogates from ``first`` on."""
        nonlocal record
        partials = []
        for part in cut(len(which), max(_NUMBERS // (2 * (n + 1) * n_steps), 1)):
            part_links = [links[number] for number in which[part.begin : part.end]]
            drawn = {cause: arguments.room("n", (n, n_steps)) for cause in sorted({link.cause for link in part_links})}
            draws = [(out, makers.of(cause, int(series.E[cause])), cause) for cause, out in drawn.items()]
            makers.drawer.draw(draws, seed, first)
            skill, new_record = partial_skill(runner, series, part_links, drawn)
            record = record.joined(new_record)
            partials.append(skill.partial)
        together = np.concatenate(partials)
        return together[:, 0], together[:, 1:]

    n = min(FIRST, budget)
    try:
        observed, surrogates = of(range(len(links)), 0, n)
        tests = SequentialTests(rate, budget, n, *counts(observed, surrogates))
        while step := tests.step(n_steps):
            which = np.flatnonzero(tests.open)
            reached, made = np.zeros((2, len(links)), np.int64)
            reached[which], made[which] = counts(observed[which], of(which.tolist(), tests.drawn, step)[1])
            tests.add(step, reached, made)
    finally:
        makers.drawer.release()
    return p_values(tests.reached, tests.n), record


# What :func:`pyedmcl.partial_ccm` returns.


@dataclass(frozen=True, repr=False)
class PartialCcm(Result):
    """Cross-map skill of two variables in both directions, with and without what passes through others.

    Attributes
    ----------
    cause, effect : (str, str)
        Of each direction: the states of the effect estimate the cause.
    given : tuple of str
        What the link may pass through.
    rho : ndarray of float64 (2,)
        Correlation of the cause and its estimate.
    partial : ndarray of float64 (2,)
        The same, given the estimates of the cause through each of ``given``: near 0 where all passes through these,
        near rho where nothing does.
    through : ndarray of float64 (2, n_given)
        Correlation of the cause and its estimate through each of ``given``.
    p_value : ndarray of float64 (2,)
        (1 + surrogates of the cause whose ``partial`` is as high) / (1 + those that were drawn for it): one-sided; NaN
        without surrogates.
    E : ndarray of int (2 + n_given,)
        Embedding dimension of x, y and each of ``given``.
    Tp : int
    n, method, seed
        Surrogates: how many at most, of which kind, and what chose them.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y, z = network.values[:, 2], network.values[:, 3], network.values[:, 0]
    >>> found = pyedmcl.partial_ccm(x, y, given=z, E=3, Tp=-1, seed=1)
    >>> found.cause[0], found.effect[0], found.given
    ('x', 'y', ('z',))
    >>> bool(0 < found.partial[0] < found.rho[0])  # some of what y tells of x passes through z
    True
    """

    answer_columns = ("cause", "effect", "rho", "partial", "p_value")

    series_label: ClassVar = Label("1", "skill of the estimate of the cause through this series")
    column_labels: ClassVar = {
        **common("cause", "effect", "rho", "partial", "p_value", "given"),
        "through": Label("1", "skill of the estimate of the cause through another series"),
    }  # fmt: skip

    cause: tuple[str, str]
    effect: tuple[str, str]
    given: tuple[str, ...]
    rho: Doubles
    partial: Doubles
    through: Doubles
    p_value: Doubles
    E: NDArray[np.int_]
    Tp: int
    n: int
    method: str
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray.Dataset over both directions, and of the skill through each other series (direction, given)."""
        ends = zip(self.cause, self.effect, strict=True)
        axis: list[tuple[str, Any]] = [("direction", [f"{cause} -> {effect}" for cause, effect in ends])]
        names = ("cause", "effect", "rho", "partial", "p_value")
        parts = {name: labelled(np.array(getattr(self, name)), axis, name) for name in names}
        parts["through"] = labelled(self.through, [*axis, ("given", self.given)], "through")
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: cause, effect, rho, partial, p_value, and the skill through each of ``given``."""
        return pandas_for("to_frame()").DataFrame({
            "cause": list(self.cause), "effect": list(self.effect), "rho": self.rho, "partial": self.partial,
            "p_value": self.p_value,
            **{f"through {name}": self.through[:, place] for place, name in enumerate(self.given)},
        })  # fmt: skip


# Partial convergent cross mapping of two variables: what is left of a link without what passes through others.


@public_function
def partial_ccm(
    x: Any,
    y: Any,
    *,
    given: Any,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "auto",
    n: int | str | None = "auto",
    rate: float = 0.05,
    budget: int = BUDGET,
    seed: int | None = None,
    period: float | None = None,
    recurrence: float = 0.1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> PartialCcm:
    """Is a link between two variables direct, or does it pass through others? Partial cross mapping, both directions.

    If x drives y, the states of y estimate x. They also estimate each variable z of ``given``, and from the states of
    that estimate x is estimated a second time: this is what y knows of x through z. The partial correlation of x and
    the first estimate, given the second ones, is what does not pass through ``given`` (Leng et al., Nat. Commun. 11,
    2632, 2020).

    Parameters
    ----------
    x, y : array_like (n,)
        The two variables, time along the first axis, NaN for gaps.
    given : array_like (n,) or (n, n_given)
        What the link may pass through.
    E : "auto", int or sequence of int
        Lags of the embedding: for all, or one each for x, y and each of ``given``. "auto" finds each variable's own.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps from library row to target; 0 or negative are allowed. Where effects follow after some steps, -1 or less
        suits better than 0.
    surrogate : str
        Method of :func:`pyedmcl.surrogate`. "auto" keeps what each series suggests, such as seasons that several share
        and slow change; where "phase" and others lose that, a warning says so.
    n : int, "auto" or None
        Surrogates of each cause; None for no test. "auto" draws as many as it takes to decide both directions at the
        false discovery rate ``rate``; see :func:`pyedmcl.xmap_significance`.
    rate : float
        False discovery rate at which n="auto" decides; in (0, 1).
    budget : int
        For n="auto": surrogates of a pair, as a mean over all pairs. What pairs that are soon decided leave goes to the
        others, up to 5 times as many for each, and 50 times where no surrogate has reached the skill.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for the surrogates "seasonal" and "auto"; looked for by default, and for
        "seasonal" a warning says what was found.
    recurrence : float
        Share of pairs of states that count as recurrent in the surrogates "twin"; in (0, 1).
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
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
    PartialCcm

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; a table does not fit.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    ccm : the skill itself, against the size of the library.

    Notes
    -----
    Cost: one search for x, y and each estimate of ``given`` in each direction; n + 1 lookups of each. With n="auto" the
    searches are made again in each round of surrogates, of which there are some ten at most.

    The test says whether anything is left beyond chance, not whether most is left. To tell direct from indirect compare
    ``partial`` and ``through`` with ``rho``, too.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.full((400, 3), 0.4)
    >>> for t in range(399):  # a drives b, and b drives c
    ...     a, b, c = x[t]
    ...     x[t + 1] = a * (3.8 - 3.8 * a), b * (3.7 - 3.4 * b - 0.3 * a), c * (3.7 - 3.4 * c - 0.3 * b)
    >>> found = pyedmcl.partial_ccm(x[:, 0], x[:, 2], given=x[:, 1], E=3, Tp=-2, n=19, seed=1)
    >>> found.cause[0], found.effect[0], bool(found.partial[0] < 0.7 * found.rho[0])
    ('x', 'y', True)
    """
    series = _together(x, y, given)
    count = None if n is None else arguments.surrogates(n)
    number = arguments.stream(seed)
    fields = pairs_arguments(
        series, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=None, dtype=dtype
    )
    problem = XmapProblem(**fields, block_rows=1)
    runner = arguments.runner_on(device, fields["data"].dtype, client)
    sink = ArraySink([], [])
    problem = with_dimensions(problem, runner, sink)
    dims = np.array(problem.E, int)
    makers = {} if count is None else _makers(series, dims, surrogate, period, problem.tau, recurrence)
    draws = {cause: _Draws(make, number, cause, series.n_steps) for cause, make in makers.items()}
    skills, tests, record = _tested(problem, dims, draws, runner, count, rate, budget)
    p_value = p_values(tests.reached, tests.n)
    if draws:
        tell_reach(p_value, tests.drawn, rate)
    names = series.names
    return PartialCcm(
        cause=(names[0], names[1]), effect=(names[1], names[0]), given=names[2:], rho=skills.rho[:, 0],
        partial=skills.partial[:, 0], through=np.array([skill[0] for skill in skills.through]),
        p_value=p_value, E=dims, Tp=problem.Tp, n=tests.drawn, method=surrogate, seed=number,
        provenance=runner.provenance(
            PairPredictionsProblem.kernels, replace(record, searched=sink.record.searched + record.searched)
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class _Draws:
    """Surrogates of a cause, one after the other."""

    make: Maker
    seed: int
    cause: int
    n_steps: int

    def __call__(self, n: int, first: int) -> Doubles:
        return draw(self.make, n, self.seed, self.cause, self.n_steps, first)


def _makers(
    series: Series, dims: NDArray[np.int_], surrogate: str, period: float | None, tau: int, recurrence: float
) -> dict[int, Maker]:
    """What makes surrogates of both variables."""
    tell_lost([series], surrogate)
    chosen = _told(series, surrogate, period) if surrogate != "auto" else choices_of([series], "auto", period)[0][:2]
    return {
        cause: maker(
            build_series(np.ascontiguousarray(series.values[:, cause]), [series.names[cause]]), surrogate,
            period=period, E=int(dims[cause]), tau=tau, recurrence=recurrence, what="xy"[cause], name="surrogate",
            choice=chosen[cause],
        )
        for cause in (0, 1)
    }  # fmt: skip


def _tested(
    problem: XmapProblem, dims: NDArray[np.int_], draws: Mapping[int, _Draws], runner: Runner, count: int | None,
    rate: float, budget: int,
) -> tuple[PartialSkill, SequentialTests, Record]:  # fmt: skip
    """Both directions with their surrogates: of the first round, and for ``count`` 0 of more while one is open."""
    values, Tp = problem.data.series.values, problem.Tp
    others = tuple(range(2, values.shape[1]))
    steps = (Tp,) * len(others)
    options = PairOptions(problem.tau, problem.exclusion_radius, problem.knn, problem.data.dtype)
    series = LinkedSeries(values, dims, options)

    def of(causes: Sequence[int], first: int, n: int) -> tuple[PartialSkill, Record]:
        links = [PartialLink(cause, 1 - cause, others, Tp, steps, steps) for cause in causes]
        surrogates = {cause: make(n, first) for cause, make in draws.items() if cause in causes}
        return partial_skill(runner, series, links, surrogates)

    n = 0 if count is None else count or min(FIRST, budget)
    measured, record = of((0, 1), 0, n)
    partial = measured.partial[:, 0]
    tests = SequentialTests(rate, budget if count == 0 else 0, n, *counts(partial, measured.partial[:, 1:]))
    while step := tests.step(len(values)):
        which = np.flatnonzero(tests.open).tolist()
        drawn, more = of(which, tests.drawn, step)
        reached, counted = np.zeros((2, 2), np.int64)
        reached[which], counted[which] = counts(partial[which], drawn.partial[:, 1:])
        tests.add(step, reached, counted)
        record = record.joined(more)
    return measured, tests, record


def _told(series: Series, surrogate: str, period: float | None) -> tuple[AnyChoice | None, ...]:
    """What is taken for surrogates of both variables, of which a warning tells; None where the method says it all."""
    (choices,) = choices_of([Series(series.values[:, :2].copy(), series.names[:2])], surrogate, period)
    if not choices:
        return None, None
    sentences = (f"a surrogate of {name} {one.reason}" for name, one in zip(series.names[:2], choices, strict=True))
    season = surrogate == "seasonal"
    warn(f"{'period=None: ' if season else ''}{'; '.join(sentences)}{'. period= names another' if season else ''}")
    return choices


def _together(x: Any, y: Any, given: Any) -> Series:
    """All variables as one table: x, y, and then those that are given."""
    parts = [_named(x, "x", "x"), _named(y, "y", "y"), _named(given, "given", "z")]
    require_same_rows(x=parts[0], y=parts[1], given=parts[2])
    for part, what in zip(parts, ("x", "y", "given"), strict=True):
        if what != "given" and part.n_series != 1:
            raise InputError(f"{what}: one series is needed (1-D), got {part.n_series}; pass a column")
    kind = np.result_type(*(part.values for part in parts))
    values = np.concatenate([part.values.astype(kind) for part in parts], axis=1)
    names = [name for part in parts for name in part.names]
    if len(set(names)) < len(names):
        names = ["x", "y", *(f"z{number}" for number in range(len(names) - 2))]
    return Series(np.ascontiguousarray(values), tuple(names), parts[0].time)


def _named(data: Any, what: str, name: str) -> Series:
    """A table as series; columns that have no names of their own are called by what they are."""
    series = as_series(data, what=what)
    named = isinstance(data, (Series, dict)) or getattr(data, "name", None) is not None
    if named or getattr(data, "columns", None) is not None:
        return series
    names = (name,) if series.n_series == 1 else tuple(f"{name}{number}" for number in range(series.n_series))
    return Series(series.values, names, series.time)
