"""Which search finds the neighbours: what the caller asks for, and what each would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceMemoryError
from .plan import SearchProblem
from .rates import DEFAULT, KnownRates, has_tree, least_share, rates_of
from .searches import shared_sums_pay

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from .index import Measured


# How often libraries are looked at, to see whether they can be searched faster than by comparing all pairs.


_INFORMED, _SKIPPED_MOST = 8, 255


class Patience:
    """Libraries of one data set are mostly alike: after a look that was in vain, some are left out, then ever more.

    So what is lost by looking stays a small share of the search, however many libraries there are, and a map whose
    libraries differ is still looked at here and there.

    Parameters
    ----------
    libraries : int
        All those of the job.

    Attributes
    ----------
    informed : int
        Libraries that share what a look may cost.
    """

    def __init__(self, libraries: int) -> None:
        self.informed = max(min(libraries, _INFORMED), 1)
        self._left_out, self._next = 0, self.informed - 1

    def due(self) -> bool:
        """Whether the next library is to be looked at; to be asked once for each."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def heard(self, faster: bool) -> None:
        """Say whether the library that was due is searched faster than by comparing all pairs."""
        if faster:
            self._next = self.informed - 1
        else:
            self._left_out, self._next = self._next, min(2 * self._next + 1, _SKIPPED_MOST)


# What searches with the same bits cost, roughly, and which is the cheapest: the rule behind neighbors="exact".


_SAMPLED, _SAMPLED_QUERIES = 4096, 256  # states of an estimate of their dimension, and those whose neighbours it takes
_MARGIN = 0.8  # of the exhaustive search's estimate: others have to be below that, since estimates are no better
_MARGIN_UNMEASURED = 0.6  # the same, where nobody measured the device or one like it
_PROBE_MOST = 0.12  # of the exhaustive search: what may be lost by a probe that finds that nothing can be pruned
_K_MOST = 32  # neighbours that the rates of lists were measured with, and some more
_TIED_MOST = 0.1  # of a sample: states with equally near neighbours, beyond which a tree has to propose too many rows


@dataclass(frozen=True)
class SearchDecision:
    """Which search runs, and why."""

    search: str
    why: str


def intrinsic_dimension(points: NDArray[Any]) -> float:
    """Dimension of a cloud of states (n, E) by the ratio of the two nearest distances.

    Facco, d'Errico, Rodriguez & Laio, Sci. Rep. 7, 12140 (2017). The estimate
    is the inverse mean of log(second / first), over states whose nearest is not equal to them.
    """
    if len(points) < 3:
        return float(points.shape[1])
    return _dimension(_three_nearest(points), points.shape[1])


def _three_nearest(points: NDArray[Any]) -> NDArray[np.float64]:
    """Distances (some of the states, 3) to the three nearest states, of which the first is the state itself."""
    queries = points[:: max(len(points) // _SAMPLED_QUERIES, 1)].astype(np.float64)
    cloud = points.astype(np.float64)
    squared = np.zeros((len(queries), len(cloud)))
    for e in range(points.shape[1]):
        difference = queries[:, e, None] - cloud[:, e]
        squared += difference * difference
    three = np.sqrt(np.partition(squared, 2, axis=1)[:, :3])
    three.sort(axis=1)
    return three


def _dimension(three: NDArray[np.float64], E: int) -> float:
    apart = three[:, 1] > 0
    if apart.sum() < 8:
        return 0.0
    mean = float(np.log(three[apart, 2] / three[apart, 1]).mean())
    return min(1.0 / mean if mean > 0 else np.inf, float(E))


@dataclass(frozen=True)
class _Costs:
    """Estimates for the searches of one library in the dimensions that are searched together."""

    known: KnownRates
    problem: SearchProblem
    # n, queries: States and queries.
    n: int
    queries: int
    # Whether the exhaustive search shares sums along diagonals.
    shared: bool = False
    # Libraries that the exhaustive search would compare in the same launches.
    together: int = 1

    @property
    def margin(self) -> float:
        return _MARGIN_UNMEASURED if self.known.source == DEFAULT else _MARGIN

    @property
    def exhaustive(self) -> float:
        """Seconds of the exhaustive search; several dimensions share their sweeps."""
        rates, p = self.known.rates, self.problem
        if len(p.dims) == 1:
            seconds = rates.exact(self.n, self.queries, p.dims[0], p.ks[0], self.shared)
        else:
            seconds = rates.sweep(self.n, self.queries, p.dims, p.ks)
        return seconds if self.together == 1 else seconds - rates.exact_call

    @property
    def order(self) -> float:
        """Seconds of putting the states of the largest dimension in order, as a probe does."""
        return self.known.rates.order(self.n, max(self.problem.dims))

    def probe(self, share: float) -> float:
        """Seconds of a probe in the largest dimension that gives up beyond a share of the pairs."""
        p = self.problem
        return self.known.rates.probe(self.n, self.queries, p.dims[-1], p.ks[-1], share, self.known.at_once)

    def pruned(self, share: float) -> float:
        """Seconds of the pruned search in all dimensions, once the largest is in order.

        ``share``: of the pairs, that it computes in the largest dimension, and so at most in the others.
        """
        rates, p = self.known.rates, self.problem
        walks = sum(rates.walk(self.n, self.queries, E, k, share) for E, k in zip(p.dims, p.ks, strict=True))
        return walks + sum(rates.order(self.n, E) for E in p.dims[:-1])

    def share_of(self, seconds: Callable[[float], float], most: float) -> float:
        """The share of pairs at which ``seconds`` of it come to ``most``, by bisection."""
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if seconds(middle) > most else (middle, high)
        return high

    def told(self, **seconds: float) -> str:
        """What is estimated, and from which rates."""
        words = ", ".join(f"{name} {_seconds(value)}" for name, value in seconds.items())
        return f"estimated {words} (rates: {self.known.source})"

    @property
    def size(self) -> str:
        return f"{self.n:,} states and {self.queries:,} queries"


def cheapest(
    info: DeviceInfo, problem: SearchProblem, n: int, queries: int,
    sample: Callable[[int], NDArray[Any]] | None = None, probe: Callable[[float], float] | None = None, *,
    together: int = 1, informed: int = 1,
) -> SearchDecision:  # fmt: skip
    """The search with the lowest estimate for one library; the exhaustive one wins ties.

    Parameters
    ----------
    problem : SearchProblem
        Of the dimensions that the exhaustive search would look at together.
    n, queries : int
        States and queries.
    sample : callable, optional
        Called with a number, it gives about as many states, from which their dimension is estimated. It runs only where
        a tree may pay.
    probe : callable, optional
        Gives the share of pairs that the pruned search would compute in the largest dimension, or a larger one; None
        where it cannot be used. Its argument is the share at which it gives up. It runs only where pruning may pay, and
        may raise DeviceMemoryError.
    together : int
        Libraries that the exhaustive search would compare in the same launches.
    informed : int
        Libraries that follow the outcome of this probe, where it finds that pruning does not pay.
    """
    shared = shared_sums_pay(info, problem, n, queries)
    costs = _Costs(rates_of(info), problem, n, queries, shared, together)
    if probe is not None:
        try:
            return _pruned_or_exhaustive(costs, probe, informed)
        except DeviceMemoryError as error:
            other = _tree_or_exhaustive(costs, sample)
            return SearchDecision(
                other.search, f"the pruned search does not fit the device ({error}); {other.why}"
            )  # fmt: skip
    return _tree_or_exhaustive(costs, sample)


def surely_exhaustive(info: DeviceInfo, problem: SearchProblem) -> tuple[SearchDecision | None, ...]:
    """The decision for each dimension alone where no look at the data is needed: exhaustive, or None."""
    return _surely_exhaustive(rates_of(info), problem)


@lru_cache(maxsize=1024)  # small calls are repeated
def _surely_exhaustive(known: KnownRates, problem: SearchProblem) -> tuple[SearchDecision | None, ...]:
    return tuple(_decided_alone(known, problem.restrict((E,))) for E in problem.dims)


def _decided_alone(known: KnownRates, problem: SearchProblem) -> SearchDecision | None:
    costs = _Costs(known, problem, problem.n_library, problem.n_query)
    return _no_tree(costs) if problem.coordinates else _not_worth_it(costs)


def _not_worth_it(costs: _Costs) -> SearchDecision | None:
    """Exhaustive search where pruning costs as much at best; None where that depends on the data."""
    k = costs.problem.ks[-1]
    if k > _K_MOST:
        return SearchDecision("exhaustive", f"what lists of {k} neighbours cost the pruned search is not known")
    least = least_share(costs.n, k)
    best = costs.order + costs.probe(least) + costs.pruned(least)
    if best < costs.margin * costs.exhaustive:
        return None
    why = f"{costs.size}: {costs.told(exhaustive=costs.exhaustive)}, pruned {_seconds(best)} at best"
    return SearchDecision("exhaustive", why)


def _pruned_or_exhaustive(costs: _Costs, probe: Callable[[float], float], informed: int) -> SearchDecision:
    """Pruned or exhaustive search: by what the probe finds, unless finding out costs too much."""
    decision = _not_worth_it(costs)
    if decision is not None:
        return decision
    exhaustive = costs.exhaustive
    hopeless = costs.share_of(costs.pruned, costs.margin * exhaustive)
    # A probe gives up where pruning is hopeless, or sooner where it must not take that long.
    left = _PROBE_MOST * exhaustive * informed - costs.order
    limit = min(2 * hopeless, costs.share_of(costs.probe, left), 1.0)
    needed = 2 * least_share(costs.n, costs.problem.ks[-1])
    if left < costs.probe(needed):
        cost = f"up to {_seconds(costs.order + costs.probe(min(2 * hopeless, 1.0)))} to find out whether pruning pays"
        return SearchDecision("exhaustive", f"{costs.size}: {costs.told(exhaustive=exhaustive)}, and {cost}")
    share = probe(limit)
    # The states are in order now, whichever search uses that.
    pruned = costs.pruned(share)
    name = "pruned" if pruned < costs.margin * exhaustive else "exhaustive"
    estimates = costs.told(exhaustive=exhaustive, pruned=pruned)
    return SearchDecision(name, f"pruning would compute up to {share:.1%} of all pairs: {estimates}")


def _no_tree(costs: _Costs) -> SearchDecision | None:
    """Exhaustive search where a k-d tree cannot pay; None where that depends on the data."""
    if not has_tree():
        return SearchDecision("exhaustive", "scipy, which the k-d tree needs, is not installed")
    best = costs.known.rates.tree(costs.n, costs.queries, costs.problem.dims[0], costs.problem.ks[0], 1.0)
    if best < costs.margin * costs.exhaustive:
        return None
    why = f"{costs.n:,} states: {costs.told(exhaustive=costs.exhaustive)}, a tree {_seconds(best)} at best"
    return SearchDecision("exhaustive", why)


def _tree_or_exhaustive(costs: _Costs, sample: Callable[[int], NDArray[Any]] | None) -> SearchDecision:
    """K-d tree or exhaustive search, by the dimension of the cloud of states."""
    if len(costs.problem.dims) > 1:
        return SearchDecision("exhaustive", "several dimensions are searched together")
    decision = _no_tree(costs)
    if decision is not None:
        return decision
    E, k = costs.problem.dims[0], costs.problem.ks[0]
    dimension = float(E)
    points = None if sample is None else sample(_SAMPLED)
    if points is not None and len(points) > 2:
        three = _three_nearest(points)
        dimension = _dimension(three, E)
        tied = float((three[:, 1] >= three[:, 2]).mean())
        if tied > _TIED_MOST:
            return SearchDecision("exhaustive", f"{tied:.0%} of a sample of states have neighbours that tie")
    tree = costs.known.rates.tree(costs.n, costs.queries, E, k, dimension)
    name = "kdtree" if tree < costs.margin * costs.exhaustive else "exhaustive"
    estimates = costs.told(exhaustive=costs.exhaustive, kdtree=tree)
    return SearchDecision(name, f"intrinsic dimension {dimension:.1f}: {estimates}")


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


#: Those that stand for the fastest of several. An approximate search would be a candidate of "auto" alone; so far none
#: was faster than the best exact one by the time that its recall had been shown.
CHOOSING = ("auto", "exact")
_LEAST = {"kdtree": 64, "pruned": 64, "ivf": 1024, "hnsw": 1024}  # states below which an index has nothing to leave out


@dataclass(frozen=True)
class SearchRequest:
    """What the caller asks for."""

    # One of :data:`pyedmcl.parameters.SEARCHES`.
    search: str = "exact"
    # Share of true neighbours that an approximate search must find.
    recall: float = 0.99

    @property
    def chooses(self) -> bool:
        """Whether the fastest of the searches with the same bits is to be found out."""
        return self.search in CHOOSING


def decided_beforehand(request: SearchRequest, info: DeviceInfo, problem: SearchProblem) -> list[SearchDecision] | None:
    """Decisions for all dimensions where every one is to compare all pairs, whatever the data; else None.

    They are an empty list where there is nothing to tell.
    """
    if request.search != "exhaustive" and not request.chooses:
        return None
    if shared_sums_pay(info, problem, problem.n_library, problem.n_query):
        return None
    if request.search == "exhaustive":
        return []
    decisions = surely_exhaustive(info, problem)
    if any(decision is None for decision in decisions):
        return None
    return [] if request.search == "exact" else [d for d in decisions if d is not None]


def decide(
    request: SearchRequest, info: DeviceInfo, problem: SearchProblem, n_states: int, n_queries: int,
    sample: Callable[[int], NDArray[Any]] | None = None, probe: Callable[[float], float] | None = None, *,
    together: int = 1, informed: int = 1,
) -> SearchDecision:  # fmt: skip
    """The search for one library.

    Parameters
    ----------
    problem : SearchProblem
        Of one dimension, or, where the request leaves the choice, of all that are searched together.
    n_states, n_queries : int
        Library rows and query rows that have a state.
    sample, probe, together, informed
        See :func:`~pyedmcl.search.choose.cheapest`.
    """
    name, k = request.search, problem.ks[0]
    if request.chooses:
        probe = None if problem.coordinates else probe
        return cheapest(info, problem, n_states, n_queries, sample, probe, together=together, informed=informed)
    if name == "exhaustive":
        return SearchDecision("exhaustive", "asked for")
    if n_states < max(_LEAST[name], 2 * k):
        return SearchDecision("exhaustive", f"{n_states:,} states are too few for {name} with k = {k}")
    if name == "pruned" and problem.coordinates:
        return SearchDecision("exhaustive", "the pruned search takes delays of one series only")
    return SearchDecision(name, "asked for")


# What a result says about the search for neighbours: which one ran, why, and how good it was.


_APPROXIMATE = ("ivf", "hnsw")
Record = dict[str, Any]


def record(E: int, request: SearchRequest, decision: SearchDecision, measured: Measured | None = None) -> Record:
    """The record of one library and dimension.

    Parameters
    ----------
    request : SearchRequest
        What the caller asked for.
    decision : SearchDecision
        What ran, and why.
    measured : Measured, optional
        Recall of an approximate search; of no account where another one ran in the end.
    """
    of_sample = measured if decision.search in _APPROXIMATE else None
    return {
        "E": E, "asked": request.search, "used": decision.search, "why": decision.why, "target": request.recall,
        "recall": 1.0 if of_sample is None else of_sample.recall,
        "interval": (1.0, 1.0) if of_sample is None else of_sample.interval,
        "measured": "not needed: exact" if of_sample is None else of_sample.how,
    }  # fmt: skip


def without_search(E: int, request: SearchRequest, why: str) -> list[Record]:
    """The record where a search was asked for by its name and none was needed."""
    return [] if request.search in ("exact", "exhaustive") else [record(E, request, SearchDecision("exhaustive", why))]


def add(records: list[Record], more: Iterable[Record]) -> None:
    """Append the records that are not in the list yet."""
    for candidate in more:
        if candidate not in records:
            records.append(candidate)
