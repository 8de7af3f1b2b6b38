"""Which search finds the neighbours: what the caller asks for, and what "auto" makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .costs import SearchDecision, cheapest, surely_exact
from .plan import SearchProblem
from .shared_sums import shared_sums_pay

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

SEARCHES = ("auto", "exact", "kdtree", "ivf", "hnsw", "pruned")
_LEAST = {"kdtree": 64, "pruned": 64, "ivf": 1024, "hnsw": 1024}  # states below which an index has nothing to leave out


@dataclass(frozen=True)
class SearchRequest:
    """What the caller asks for.

    Attributes
    ----------
    search : str
        One of :data:`SEARCHES`.
    recall : float
        Share of true neighbours that an approximate search must find.
    """

    search: str = "exact"
    recall: float = 0.99


def decided_beforehand(request: SearchRequest, info: DeviceInfo, problem: SearchProblem) -> list[SearchDecision] | None:
    """Decisions for all dimensions where every one is to compare all pairs, whatever the data; else None."""
    if request.search == "exact":
        return None if shares_sums(info, problem, problem.n_library, problem.n_query) else []
    if request.search != "auto" or problem.coordinates:
        return None
    decisions = [surely_exact(info, problem.restrict((E,))) for E in problem.dims]
    return None if any(decision is None for decision in decisions) else [d for d in decisions if d is not None]


def shares_sums(info: DeviceInfo, problem: SearchProblem, n_states: int, n_queries: int) -> bool:
    """Whether all pairs are compared with sums shared along diagonals; several dimensions share their sums better."""
    return not problem.coordinates and len(problem.dims) == 1 and shared_sums_pay(info, problem, n_states, n_queries)


def decide(
    request: SearchRequest, info: DeviceInfo, problem: SearchProblem, n_states: int, n_queries: int,
    sample: Callable[[int], NDArray[Any]] | None = None, probe: Callable[[float], float] | None = None,
) -> SearchDecision:  # fmt: skip
    """The search for one library and dimension.

    Parameters
    ----------
    request : SearchRequest
    info : DeviceInfo
    problem : SearchProblem
        Of one dimension.
    n_states, n_queries : int
        Library rows and query rows that have a state.
    sample : callable, optional
        Gives about so many of the states.
    probe : callable, optional
        Gives the share of pairs that the pruned search would compute, as far as that is below its argument.
    """
    name, k = request.search, problem.ks[0]
    if name == "auto":
        return cheapest(info, problem, n_states, n_queries, sample, None if problem.coordinates else probe)
    if name == "exact":
        return SearchDecision("exact", "asked for")
    if n_states < max(_LEAST[name], 2 * k):
        return SearchDecision("exact", f"{n_states:,} states are too few for {name} with k = {k}")
    if name == "pruned" and problem.coordinates:
        return SearchDecision("exact", "the pruned search takes delays of one series only")
    return SearchDecision(name, "asked for")
