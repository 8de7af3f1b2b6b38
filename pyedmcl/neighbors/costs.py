"""What searches cost, roughly, and which is the cheapest: the rule behind neighbors="auto"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DeviceMemoryError
from .plan import SearchProblem
from .rates import KnownRates, Rates, has_tree, least_share, rates_of
from .shared_sums import shared_sums_pay

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

_SAMPLED, _SAMPLED_QUERIES = 4096, 256  # states of an estimate of their dimension, and those whose neighbours it takes
_MARGIN = 0.9  # the exhaustive search wins ties, and estimates are no better than this
_PROBE_MOST = 0.25  # of the exhaustive search: what may be lost by a probe that finds that nothing can be pruned


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
    queries = points[:: max(len(points) // _SAMPLED_QUERIES, 1)].astype(np.float64)
    cloud = points.astype(np.float64)
    squared = np.zeros((len(queries), len(cloud)))
    for e in range(points.shape[1]):
        difference = queries[:, e, None] - cloud[:, e]
        squared += difference * difference
    three = np.sqrt(np.partition(squared, 2, axis=1)[:, :3])
    three.sort(axis=1)  # the first is the state itself
    apart = three[:, 1] > 0
    if apart.sum() < 8:
        return 0.0
    mean = float(np.log(three[apart, 2] / three[apart, 1]).mean())
    return min(1.0 / mean if mean > 0 else np.inf, float(points.shape[1]))


def cheapest(
    info: DeviceInfo, problem: SearchProblem, n: int, queries: int,
    sample: Callable[[int], NDArray[Any]] | None = None, probe: Callable[[float], float] | None = None,
) -> SearchDecision:  # fmt: skip
    """The search with the lowest estimate; the exhaustive one wins ties.

    Parameters
    ----------
    info : DeviceInfo
    problem : SearchProblem
        Of one dimension.
    n, queries : int
        States and queries.
    sample : callable, optional
        Gives about so many states, from which their dimension is estimated; it runs only where a tree may pay.
    probe : callable, optional
        Gives the share of pairs that the pruned search would compute; None where it cannot be used. Its argument is the
        share from which on pruning does not pay, beyond which it need not look. It runs only where pruning may pay,
        and may raise DeviceMemoryError.
    """
    known = rates_of(info)
    if probe is not None:
        try:
            return _pruned_or_exact(known, problem, n, queries, probe, shared_sums_pay(info, problem, n, queries))
        except DeviceMemoryError as error:
            other = _tree_or_exact(known, problem, n, queries, sample)
            return SearchDecision(
                other.search, f"the pruned search does not fit the device ({error}); {other.why}"
            )  # fmt: skip
    return _tree_or_exact(known, problem, n, queries, sample)


def surely_exact(info: DeviceInfo, problem: SearchProblem) -> SearchDecision | None:
    """The decision for a search of one dimension among lags, where no look at the data is needed: exact, or None."""
    n, queries = problem.n_library, problem.n_query
    if shared_sums_pay(info, problem, n, queries):
        return None
    known = rates_of(info)
    exact = known.rates.exact(n, queries, problem.dims[0], problem.ks[0])
    return _not_worth_it(known, problem, n, queries, exact)


def _not_worth_it(
    known: KnownRates, problem: SearchProblem, n: int, queries: int, exact: float
) -> SearchDecision | None:
    """Exact search where pruning costs as much at best; None where that depends on the data."""
    rates, E, k = known.rates, problem.dims[0], problem.ks[0]
    least = least_share(n, k)
    best = rates.order(n, E) + rates.probe(n, queries, E, k, least) + rates.walk(n, queries, E, k, least)
    if best < _MARGIN * exact:
        return None
    why = f"{_size(n, queries)}: {_estimates(known, exact=exact)}, pruned {_seconds(best)} at best"
    return SearchDecision("exact", why)


def _pruned_or_exact(
    known: KnownRates, problem: SearchProblem, n: int, queries: int, probe: Callable[[float], float], shared: bool
) -> SearchDecision:
    """Pruned or exact search: by what the probe finds, unless finding out costs too much."""
    rates, E, k = known.rates, problem.dims[0], problem.ks[0]
    exact, order = rates.exact(n, queries, E, k, shared), rates.order(n, E)
    decision = _not_worth_it(known, problem, n, queries, exact)
    if decision is not None:
        return decision
    hopeless = _break_even(rates, n, queries, E, k, _MARGIN * exact)
    # Numbers can always be put in order; of states of several lags it may be that none can be left out.
    most = order + rates.probe(n, queries, E, k, min(2 * hopeless, 1.0) if E > 1 else least_share(n, k))
    if most > _PROBE_MOST * exact:
        cost = f"up to {_seconds(most)} to find out whether pruning pays"
        return SearchDecision("exact", f"{_size(n, queries)}: {_estimates(known, exact=exact)}, and {cost}")
    share = probe(hopeless)
    # The states are in order now, whichever search uses that.
    walk = rates.walk(n, queries, E, k, share)
    name = "pruned" if walk < _MARGIN * exact else "exact"
    more = " or more" if share > hopeless else ""
    return SearchDecision(
        name, f"pruning would compute {share:.1%}{more} of all pairs: {_estimates(known, exact=exact, pruned=walk)}"
    )  # fmt: skip


def _break_even(rates: Rates, n: int, queries: int, E: int, k: int, seconds: float) -> float:
    """The share of pairs at which the pruned search takes so many seconds, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if rates.walk(n, queries, E, k, middle) > seconds else (middle, high)
    return high


def _tree_or_exact(
    known: KnownRates, problem: SearchProblem, n: int, queries: int, sample: Callable[[int], NDArray[Any]] | None
) -> SearchDecision:
    """K-d tree or exact search, by the dimension of the cloud of states."""
    if not has_tree():
        return SearchDecision("exact", "scipy, which the k-d tree needs, is not installed")
    rates, E, k = known.rates, problem.dims[0], problem.ks[0]
    exact, best = rates.exact(n, queries, E, k), rates.tree(n, queries, E, k, 1.0)
    if best >= _MARGIN * exact:
        why = f"{n:,} states: {_estimates(known, exact=exact)}, a tree {_seconds(best)} at best"
        return SearchDecision("exact", why)
    dimension = float(E) if sample is None else intrinsic_dimension(sample(_SAMPLED))
    tree = rates.tree(n, queries, E, k, dimension)
    name = "kdtree" if tree < _MARGIN * exact else "exact"
    why = f"intrinsic dimension {dimension:.1f}: {_estimates(known, exact=exact, kdtree=tree)}"
    return SearchDecision(name, why)


def _estimates(known: KnownRates, **seconds: float) -> str:
    """What is estimated, and from which rates."""
    words = ", ".join(f"{name} {_seconds(value)}" for name, value in seconds.items())
    return f"estimated {words} (rates: {known.source})"


def _size(n: int, queries: int) -> str:
    return f"{n:,} states and {queries:,} queries"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"
