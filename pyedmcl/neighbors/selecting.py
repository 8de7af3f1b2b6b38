"""The searcher that decides for each library and dimension which search finds its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..launch.pool import Pool
from .choose import SearchRequest, decide, shares_sums
from .costs import SearchDecision
from .exhaustive import ExhaustiveSearcher
from .indexed import IndexedSearcher
from .library_searcher import LibrarySearcher, NotSearchedError
from .plan import SearchProblem
from .pruned import PrunedSearcher
from .recall import Measured
from .records import add, record
from .series import LibraryStates, SearchSeries
from .shared_sums import SharedSumsSearcher
from .tables import Tables

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..launch.staging import Staging

Mask = NDArray[np.bool_]


class SelectingSearcher:
    """All nearest neighbours by whichever search suits, library by library.

    Where one library of some tables is to be searched exhaustively, all of them are: that takes a few launches.

    Parameters
    ----------
    executor : Executor
    problem : SearchProblem
    emit : str
        "neighbours" or "weights".
    request : SearchRequest
    **options
        Of :class:`~pyedmcl.neighbors.tables.TableSpace`.

    Attributes
    ----------
    decisions : list of dict
        What ran for each library and dimension, why, and its recall; equal ones once.
    """

    def __init__(
        self, executor: Executor, problem: SearchProblem, emit: str, request: SearchRequest, **options: Any
    ) -> None:
        self.executor, self.problem, self.request = executor, problem, request
        self.decisions: list[dict[str, Any]] = []
        self._exhaustive = ExhaustiveSearcher(executor, problem, emit, **options)
        self._pool = Pool(executor)  # for candidates of an index

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the exhaustive search."""
        return self._exhaustive.parameters

    @property
    def grade(self) -> str:
        return self._exhaustive.grade

    def load(self, data: Staging, a: int, b: int, query: Staging | None = None) -> SearchSeries:
        """Put series a to b of ``data`` on the device, with their queries where these are other series."""
        return self._exhaustive.load(data, a, b, query)

    def load_layouts(self, library: NDArray[Any], query: NDArray[Any]) -> SearchSeries:
        """Upload series that are in the layout of the search already; the same object where both are alike."""
        return self._exhaustive.load_layouts(library, query)

    def tables(self, series: SearchSeries, library_mask: Mask | None = None) -> Iterator[Tables]:
        """Tables of each pass in turn; see :class:`ExhaustiveSearcher`."""

        def fill(tables: Tables) -> None:
            each = ((place, E) for place in range(tables.n_libraries) for E in tables.problem.dims)
            if not all(self._fill(tables, series, place, E, library_mask) for place, E in each):
                self._exhaustive.fill(tables, series, library_mask)

        return self._exhaustive.space.tables(series.n, fill)

    def _fill(self, tables: Tables, series: SearchSeries, place: int, E: int, library_mask: Mask | None) -> bool:
        """Write the table of one library and dimension; False where the exhaustive search is to be taken."""
        states = series.states(tables.first + place, E, library_mask)
        pruned = PrunedSearcher(self.executor, states)
        try:
            decision = decide(
                self.request, self.executor.info, states.problem, len(states.library.rows), len(states.query.rows),
                states.library.sample, pruned.probe,
            )  # fmt: skip
            if decision.search == "pruned":
                return self._run(pruned, tables, place, decision)  # in the order that the probe made
        finally:
            pruned.release()
        searcher = self._searcher(decision, states)
        if searcher is None:
            self._note(E, decision)
            return False
        try:
            return self._run(searcher, tables, place, decision)
        finally:
            searcher.release()

    def _searcher(self, decision: SearchDecision, states: LibraryStates) -> LibrarySearcher | None:
        """What searches one library where the pruned search is not to; None for the exhaustive search."""
        if decision.search != "exact":
            return IndexedSearcher(self.executor, states, decision.search, self.request.recall, self._pool)
        if shares_sums(self.executor.info, self.problem, len(states.library.rows), len(states.query.rows)):
            return SharedSumsSearcher(self.executor, states)
        return None

    def _run(self, searcher: LibrarySearcher, tables: Tables, place: int, decision: SearchDecision) -> bool:
        """Write the table of one library, if the search can, and keep how that went."""
        E = searcher.states.E
        try:
            outcome = searcher.fill(tables, place)
        except NotSearchedError as reason:
            self._note(E, SearchDecision("exact", str(reason) or decision.why), reason.measured)
            return False
        why = f"{decision.why}; {outcome.remark}" if outcome.remark else decision.why
        self._note(E, SearchDecision(decision.search, why), outcome.measured)
        return True

    def _note(self, E: int, decision: SearchDecision, measured: Measured | None = None) -> None:
        """Keep what searches a library, for the result to tell."""
        add(self.decisions, [record(E, self.request, decision, measured)])

    def spare(self) -> None:
        """Give back the memory that nothing but a running search needs; tables stay."""
        self._pool.release()

    def release(self) -> None:
        """Give all device memory of the search back."""
        self.spare()
        self._exhaustive.release()
