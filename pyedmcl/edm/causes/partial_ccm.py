"""Partial convergent cross mapping of two variables: what is left of a link without what passes through others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.same_rows import require_same_rows
from ...data.series import Series, as_series, build_series
from ...device.select import DeviceNames
from ...errors import InputError, warn
from ...jobs.blocks import Record
from ...jobs.function import public_function
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ...registry import BUDGET
from ..maps.pair_predictions_problem import PairOptions, PairPredictionsProblem
from ..maps.pairs import pairs_arguments, with_dimensions
from ..maps.xmap_problem import XmapProblem
from ..shared import arguments
from ..shared.exceedance import counts, p_values
from ..shared.sequential import FIRST, SequentialTests, tell_reach
from ..surrogates.method_choices import AnyChoice, choices_of, tell_lost
from ..surrogates.surrogate import check_method, maker
from ..surrogates.surrogate_draws import draw
from ..surrogates.surrogate_makers import Maker
from .partial_ccm_result import PartialCcm
from .partial_links import LinkedSeries, PartialLink, PartialSkill, partial_skill

Doubles = NDArray[np.float64]


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
    Tp : int
        Steps from states to what is estimated. Where effects follow after some steps, -1 or less suits better than 0.
    surrogate, period, recurrence
        As for :func:`pyedmcl.ccm_significance`; a warning says what "seasonal" finds without a period, and
        what is made of gaps.
    n : int, "auto" or None
        Surrogates of each cause; None for no test. "auto" draws as many as it takes to decide both directions at the
        false discovery rate ``rate``; see :func:`pyedmcl.xmap_significance`.
    rate, budget
        Of n="auto", as for :func:`pyedmcl.xmap_significance`.
    seed : int, optional
        Chooses the surrogates; by default a fresh one, which the result names.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")`` and, while E is searched, with unit "dimensions".
    tau, exclusion_radius, knn, E_max, E_rule, dtype, device, client, tune
        As for :func:`pyedmcl.xmap`.

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
    limit, most = arguments.share("rate", rate), arguments.draws("budget", budget)
    number = arguments.stream(seed)
    check_method(surrogate, "surrogate")
    arguments.reporter(progress)
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
    skills, tests, record = _tested(problem, dims, draws, runner, count, limit, most)
    p_value = p_values(tests.reached, tests.n)
    if draws:
        tell_reach(p_value, tests.drawn, limit)
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
