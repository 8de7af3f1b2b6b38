"""What all searches of many libraries have in common, and the one that a request gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .choose import SearchRequest, decided_beforehand
from .exhaustive import ExhaustiveSearcher
from .plan import KnnPass, SearchProblem
from .records import Record, add, record
from .selecting import SelectingSearcher

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo
    from ..launch.staging import Staging
    from .costs import SearchDecision
    from .series import SearchSeries
    from .tables import Tables


class Searcher(Protocol):
    """Finds the neighbours of many libraries in several dimensions, and leaves them in tables on the device.

    Attributes
    ----------
    problem : SearchProblem
    parameters : dict
        Tuned parameters.
    grade : str
        How well these are known to suit.
    decisions : list of dict
        What ran, why, and how good it was; see :mod:`pyedmcl.neighbors.records`.
    """

    @property
    def problem(self) -> SearchProblem: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def grade(self) -> str: ...

    @property
    def decisions(self) -> list[dict[str, Any]]: ...

    def sure_passes(self, n_libraries: int) -> list[tuple[KnnPass, int]]:
        """Passes that will compare all pairs, whatever the data, each with how many libraries share its tables."""

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""

    def tables(self, series: SearchSeries, library_mask: NDArray[np.bool_] | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn, each valid until the next. Raises DeviceMemoryError where they do not fit."""

    def spare(self) -> None:
        """Give back the memory that nothing but a running search needs; tables stay."""

    def release(self) -> None:
        """Give all device memory of the search back."""


def open_searcher(
    executor: Executor, problem: SearchProblem, emit: str, request: SearchRequest | None = None, **options: Any
) -> Searcher:
    """The searcher that ``request`` asks for.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
    emit : str
        "neighbours" or "weights".
    request : SearchRequest, optional
        All pairs are compared by default.
    **options
        Of :class:`~pyedmcl.neighbors.tables.TableSpace`.
    """
    request = request or SearchRequest("exhaustive")
    decisions = sure_of(request, executor.info, problem)
    if decisions is None:
        return SelectingSearcher(executor, problem, emit, request, **options)
    searcher = ExhaustiveSearcher(executor, problem, emit, **options)
    searcher.decisions += [record(E, request, one) for E, one in zip(problem.dims, decisions, strict=False)]
    return searcher


def sure_of(
    request: SearchRequest | None, info: DeviceInfo, problem: SearchProblem
) -> tuple[SearchDecision, ...] | None:
    """Decisions where all pairs are compared whatever the data; else None. See :func:`~.choose.decided_beforehand`."""
    decided = decided_beforehand(request or SearchRequest("exhaustive"), info, problem)
    return None if decided is None else tuple(decided)


def searches_of(*searchers: Searcher) -> list[Record]:
    """What ran for each dimension, why, and how good it was; for a result's provenance."""
    records: list[Record] = []
    for searcher in searchers:
        add(records, searcher.decisions)
    return records
