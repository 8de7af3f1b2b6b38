"""Measures what the searches for neighbours cost on this machine and device, for the choice of neighbors="exact".

Series that prune well (Lorenz' system) and not at all (noise), few lags and many, from short to as long as the time
allows; each through the engine that a call uses, with the parameters that it would be given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..device.executor import Executor
from ..errors import DeviceMemoryError
from ..launch.staging import Pool, Staging
from ..search.choose import SearchRequest, intrinsic_dimension
from ..search.index import KDTree
from ..search.plan import SearchProblem
from ..search.pruned import PrunedSearcher
from ..search.rates import Timing, has_tree
from ..search.searcher import open_searcher
from ..search.searches import shared_sums_pay
from ..search.tables import load_states
from .problem import Floats, flow, releasing, scalar

#: Seconds for everything, where no budget is given.
SECONDS = {"rapid": 20.0, "normal": 60.0, "exhaustive": 180.0}
#: What is timed of each problem, in this order.
SEARCHES = ("exact", "probe", "again", "pruned", "build", "tree")
_LOGS = {False: (10, 12, 13, 14, 16, 17, 18, 19, 20), True: (10, 13, 15, 16, 17, 18, 19, 20, 21)}
_CASES = (("lorenz", 1), ("lorenz", 20), ("noise", 20), ("noise", 5), ("lorenz", 5))
_SAMPLE = 4096  # states for the intrinsic dimension
_REPEATED = 0.05  # seconds after which a timing is not repeated, but once
_RUNS_LEAST, _RUNS_MOST = 2, 9
_ALONE = 1.0  # seconds above which a first run that took what was expected is the only one
_SHARE = 1 / 12  # of the budget, that a single run may take
_ORDER_LEAST = 0.2  # of a first probe's time
_COMPILE = 1.0  # seconds: the first guess of a first run
# Growth with each doubling of the length, where nothing else is known: all pairs, or not many.
_GROWTH = {"exact": 4.0, "probe": 3.0, "again": 3.0, "pruned": 4.0, "build": 2.5, "tree": 4.0}
_GENTLE = 2.6  # of searches that leave pairs out, where states lie well


@dataclass(frozen=True)
class RateCase:
    """All states of ``E`` lags, among themselves, of a series ("lorenz" or "noise") of ``n`` steps."""

    series: str
    n: int
    E: int

    @property
    def name(self) -> str:
        return f"{self.series}, {self.n:,} steps, E={self.E}"


def cases(scalar_work_items: bool) -> list[RateCase]:
    """All cases, short ones first, so that whatever was done when the time is up makes sense."""
    logs = _LOGS[scalar_work_items]
    return [RateCase(series, 1 << log, E) for log in logs for series, E in _CASES]


def measure(
    runner: DeviceRunner, wanted: Sequence[RateCase], budget: float, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Timing]:
    """Time problems until the budget is spent; what would not fit into it is left out.

    Parameters
    ----------
    wanted : sequence of RateCase
        Longer ones of the same series and E after shorter ones.
    budget : float
        Seconds.
    """
    end = clock() + budget
    last: dict[tuple[str, int, str], tuple[int, float]] = {}
    for problem in wanted:
        seconds_of: dict[str, float] = {}
        for search in runner.searches:
            place = (problem.series, problem.E, search)
            expected = _expected(problem, search, last.get(place))
            if expected > max(budget * _SHARE, _COMPILE) or clock() + 2 * expected > end:
                continue
            try:
                with runner.prepared(problem, search) as go:
                    seconds_of[search] = _timed(go, expected if place in last else 0.0, end, clock)
            except DeviceMemoryError:
                continue
            last[place] = (problem.n, seconds_of[search])
        timing = _timing(problem, seconds_of, runner)
        if timing is not None:
            yield timing


def _expected(problem: RateCase, search: str, before: tuple[int, float] | None) -> float:
    """Seconds of one run, rather too many."""
    if before is None:
        # Nothing shorter was timed: it did not fit, or this is the first one.
        return _COMPILE * max(problem.n / (1 << 13), 1.0) ** 2
    n, seconds = before
    growth = _GROWTH[search] if search == "exact" or problem.series == "noise" else min(_GENTLE, _GROWTH[search])
    return float(seconds * growth ** np.log2(problem.n / n))


def _timed(go: Callable[[], Any], expected: float, end: float, clock: Callable[[], float]) -> float:
    """The shortest of a few runs."""
    best, runs, begun = float("inf"), 0, clock()
    while runs < _RUNS_MOST:
        start = clock()
        go()
        seconds = clock() - start
        best, runs = min(best, seconds), runs + 1
        if runs >= _RUNS_LEAST and clock() - begun > _REPEATED:
            break
        if runs == 1 and _ALONE < seconds < 1.5 * expected:
            break  # compiled before, and long
        if clock() + best > end:
            break
    return best


def _timing(problem: RateCase, found: dict[str, float], runner: DeviceRunner) -> Timing | None:
    if not found.keys() & {"exact", "pruned", "tree"}:
        return None
    order = None
    if "probe" in found and "again" in found:
        # A first probe puts the states in order; where most of its time is another's, the difference is mere noise.
        difference = found["probe"] - found["again"]
        order = difference if difference > _ORDER_LEAST * found["probe"] else None
    return replace(runner.facts(problem), exact=found.get("exact"), order=order, pruned=found.get("pruned"),
                   build=found.get("build"), tree=found.get("tree"))  # fmt: skip


class DeviceRunner:
    """Runs the searches on a device; the k-d tree, on the host, only where SciPy is installed.

    Attributes
    ----------
    searches : tuple of str
        What can be timed, of :data:`SEARCHES`.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._shares: dict[RateCase, float] = {}
        self.searches = SEARCHES if has_tree() else tuple(s for s in SEARCHES if s not in ("build", "tree"))

    @property
    def problems(self) -> list[RateCase]:
        """What is worth timing on this device."""
        return cases(scalar(self._executor.info))

    def facts(self, problem: RateCase) -> Timing:
        """What is known of a problem beside seconds."""
        states = _states(_series(problem), problem.E)
        sample = np.ascontiguousarray(states[:: max(len(states) // _SAMPLE, 1)])
        search, info = _search(problem), self._executor.info
        return Timing(
            problem.series, len(states), problem.E, search.ks[0], self._shares.get(problem, 0.0),
            intrinsic_dimension(sample), shared_sums_pay(info, search, len(states), len(states)),
        )  # fmt: skip

    @contextmanager
    def prepared(self, problem: RateCase, search: str) -> Iterator[Callable[[], Any]]:
        """What runs a search once, to its end."""
        if search == "build":
            states = _states(_series(problem), problem.E)
            yield lambda: KDTree(states)
        elif search == "probe":
            yield lambda: self._probe_first(problem)
        elif search == "again":
            with self._pruned(problem) as pruned:
                pruned.probe()
                yield pruned.probe
        else:
            if search == "pruned":
                with self._pruned(problem) as pruned:
                    self._shares[problem] = pruned.find().visited
            with self._whole(problem, {"tree": "kdtree", "exact": "exhaustive"}.get(search, search)) as go:
                yield go

    @contextmanager
    def _whole(self, problem: RateCase, name: str) -> Iterator[Callable[[], None]]:
        executor = self._executor
        data = Staging(executor, _series(problem)[:, None].copy())
        searcher = open_searcher(executor, _search(problem), "neighbours", SearchRequest(name))

        def go() -> None:
            for _ in searcher.tables(series):
                pass
            executor.finish()

        with releasing(data, searcher):
            series = searcher.load(data, 0, 1)
            yield go

    def _probe_first(self, problem: RateCase) -> None:
        """A probe with memory of its own, as in a call."""
        with self._pruned(problem) as pruned:
            pruned.probe()

    @contextmanager
    def _pruned(self, problem: RateCase) -> Iterator[PrunedSearcher]:
        pool = Pool(self._executor)
        with releasing(pool):
            states = load_states(self._executor, _search(problem), pool, _series(problem))
            yield PrunedSearcher(self._executor, states, pool=pool)


def _search(problem: RateCase) -> SearchProblem:
    return SearchProblem((problem.E,), (problem.E + 1,), 1, 0, 0, problem.n, problem.n)


def _series(problem: RateCase) -> Floats:
    if problem.series == "lorenz":
        return flow(problem.n, noise=0.0)
    return np.random.default_rng(0).standard_normal(problem.n, np.float32)


def _states(x: Floats, E: int) -> Floats:
    return np.lib.stride_tricks.sliding_window_view(x, E)
