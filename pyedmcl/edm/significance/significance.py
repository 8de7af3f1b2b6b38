"""Significance of cross-map skill against surrogates of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.groups import Layout
from ...data.series import Series, build_series
from ...device.select import DeviceNames
from ...io.optional import pandas_for
from ...io.result import Result
from ...io.roles import role_columns
from ...jobs.blocks import Record
from ...jobs.function import public_function
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ...registry import BUDGET
from ..embedding.auto_dimension import dimensions_of
from ..shared import arguments
from ..shared.ccm_directions import Direction, library_sizes, stated, variables
from ..shared.exceedance import counts, p_values, smallest_p
from ..shared.false_discovery import false_discovery
from ..shared.sequential import FIRST, SequentialTests, tell_reach
from ..surrogates.group_surrogates import parts_of
from ..surrogates.method_choices import AnyChoice, choices_of, tell_lost
from ..surrogates.surrogate import SeriesMakers, check_method
from ..surrogates.surrogate_draws import draw
from .significance_problem import CcmSignificanceProblem

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
        from ...plot.libraries import skill_against_surrogates

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
    surrogate : str
        Method of :func:`pyedmcl.surrogate`. "auto" keeps what each series suggests, such as seasons that both share and
        slow change; where "phase" and others lose that, a warning says so.
    n : int or "auto"
        Surrogates of each target. The smallest p-value that can be found is 1 / (n + 1). "auto" draws as many as it
        takes to decide at the false discovery rate ``rate``; see :func:`pyedmcl.xmap_significance`.
    rate, budget
        Of n="auto", as for :func:`pyedmcl.xmap_significance`.
    lib_size : int, optional
        Rows of random sub-libraries, over which skill is averaged; by default all rows are used at once.
    sample : int
        Sub-libraries, where ``lib_size`` is given.
    seed : int, optional
        Chooses surrogates and sub-libraries; by default a fresh one, which the result names.
    period, recurrence
        As for :func:`pyedmcl.surrogate`; "twin" takes E and tau of the target.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")``; True shows a bar.
    groups : str, sequence of str, or labels (n,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.ccm`; each has surrogates of its own rows.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    x, y, E, E_max, E_rule, tau, Tp, exclusion_radius, knn, state, lib_range, valid_lib, dtype, device, tune
        As for :func:`pyedmcl.ccm`.
    client : optional
        As for :func:`pyedmcl.xmap`.

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
    arguments.reporter(progress)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.exclusion(exclusion_radius)
    count = arguments.surrogates(n)
    limit, most = arguments.share("rate", rate), arguments.draws("budget", budget)
    samples = arguments.draws("sample", sample)
    k, number = arguments.count("knn", knn), arguments.stream(seed)
    check_method(surrogate, "surrogate")
    dtype = arguments.precision(dtype)
    x, y, groups = stated(x, y, state, groups)
    E = dimensions_of(
        x, y, E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=radius, knn=k, groups=groups, dtype=dtype,
        device=device,
    )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=[Tp], exclusion_radius=radius, lib_range=lib_range, valid_lib=valid_lib, groups=groups
    )
    directions = both.directions(Tp, k)
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
            1 if lib_size is None else samples, number, Tp, both.exclusion_radius, dtype,
            tuple(smallest[d] for d in which) if grows else (), samples,
        )  # fmt: skip

    runner = arguments.runner_on(device, dtype, client)
    first_round = problem_of((0, 1), 0, count or min(FIRST, most))
    skill, gained, record = _skill(first_round, runner)
    rho, surrogates = skill[:, 0].copy(), skill[:, 1:].copy()
    tests = SequentialTests(limit, 0 if count else most, surrogates.shape[1], *counts(rho, surrogates))
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
    tell_reach(p_value, surrogates.shape[1], limit)
    return CcmSignificance(
        links=both.links, rho=rho, surrogates=surrogates, p_value=p_value,
        q_value=false_discovery(p_value), lib_size=lib_size, method=surrogate, seed=number, rate=limit,
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
