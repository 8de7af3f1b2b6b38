"""What the workloads of searches in one series share: a smooth series, and problems with all that may go wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...codegen.sentinels import NOWHERE
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.pool import Pool
from ...neighbors.plan import SearchProblem
from ...neighbors.pruned import PrunedSearcher
from ...neighbors.series import load_states
from ...neighbors.shared_sums import SharedSumsSearcher
from ...reference import knn_float32_exact, knn_float64_exact
from ..verify import require_equal
from ..workload import Answer, Case, Workload
from .common import Floats, flow, units

_SHOWN = 4096  # rows of an answer


class SearchWorkload(Workload):
    """Neighbours of all states of one series, or of those of another one among them."""

    searcher: ClassVar[type[PrunedSearcher] | type[SharedSumsSearcher]]

    def case(
        self, rows: int, E: int, *, k: int = 0, tau: int = 1, dtype: str = "float32", own: bool = True,
        library: int = 0, **given: Any,
    ) -> Case:  # fmt: skip
        """Among ``library`` steps for ``rows`` steps; the same series where it is its ``own`` query."""
        library, k = library or rows, k or E + 1
        words = [f"E={E}", f"{rows:,} steps" if own else f"{rows:,} steps in {library:,} others"]
        words += [f"k={k}"] * (k != E + 1) + [f"tau={tau}"] * (tau != 1) + [dtype] * (dtype != "float32")
        return Case(self.kernel, ", ".join(words), {
            "rows": rows, "library": rows if own else library, "own": own,
            "given": {"E": E, "tau": tau, "k": k, "dtype": dtype, **given},
        })  # fmt: skip

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n, g = case.numbers, case.numbers["given"]
        x = flow(n["library"] + n["rows"] * (not n["own"]), g["dtype"])
        library, query = x[: n["library"]], None if n["own"] else x[n["library"] :]
        problem = SearchProblem(
            (g["E"],), (g["k"],), g["tau"], 0, 0 if n["own"] else -1, n["library"], n["rows"], g["dtype"]
        )  # fmt: skip
        pool, shown = Pool(executor), min(n["rows"], _SHOWN)

        def go() -> Answer:
            states = load_states(executor, problem, pool, library, query)
            lists = self.searcher(executor, states, pool=pool).find()
            rows = executor.download(lists.rows, np.empty((shown, g["k"]), np.int32))
            return {"rows": rows, "squared": executor.download(lists.values, np.empty(rows.shape, g["dtype"]))}

        try:
            yield go
        finally:
            pool.release()

    def verify(self, executor: Executor, case: Case) -> None:
        verify_search(self.searcher, executor, case.numbers["given"], own=case.numbers["own"])


def points(info: DeviceInfo) -> int:
    """Steps of a series: tens of milliseconds of the pruned search."""
    return units(info, 30_000, 8_000, most=1 << 20)


@dataclass(frozen=True)
class Problem:
    """A search of sizes that fill no block, node or group.

    Attributes
    ----------
    library : ndarray (n_library,)
    query : ndarray (n_query,) or None
        Another series, for a cross search.
    Tp, radius : int
        Steps ahead that a neighbour must exist, and the exclusion radius.
    library_mask, query_mask : ndarray of bool or None
        Rows that may be neighbours, and those that are asked for.
    """

    library: Floats
    query: Floats | None = None
    Tp: int = 0
    radius: int = 0
    library_mask: NDArray[np.bool_] | None = None
    query_mask: NDArray[np.bool_] | None = None


def problems(front: int, dtype: str, own: bool) -> list[Problem]:
    """Noise, a smooth series with gaps and forbidden rows, ties by the dozen, nothing but ties, a tree of some levels.

    Parameters
    ----------
    front : int
        Steps that the oldest lag reaches back.
    dtype : str
    own : bool
        Whether the series asks among its own rows, less an exclusion radius; else mostly another one asks.
    """
    rng = np.random.default_rng(11)
    noise = rng.standard_normal(front + 47).astype(dtype)
    gappy = flow(front + 1203, dtype).copy()
    gappy[[front + 5, front + 90, front + 91, front + 700]] = np.nan
    ties = rng.integers(0, 4, front + 333).astype(dtype)
    level = np.full(front + 90, 2.0, dtype)
    may = rng.random(len(gappy)) < 0.6
    if own:
        asked = rng.random(len(gappy)) < 0.4
        deep = flow(front + 2301, dtype, 0.0)
        return [Problem(noise), Problem(gappy, None, 2, 3, may, asked), Problem(ties, None, -2),
                Problem(level, None, 0, 5), Problem(deep, None, 0, 10)]  # fmt: skip
    others = flow(front + 5600, dtype, 0.001)
    return [Problem(noise, None, 0, -1), Problem(gappy, others[: front + 203], 2, -1, may),
            Problem(ties, rng.integers(0, 4, front + 77).astype(dtype), -2, -1),
            Problem(level, level[: front + 31], 0, -1),
            Problem(others[: front + 5011], others[-front - 101 :], 0, -1)]  # fmt: skip


def verify_search(
    searcher: type[PrunedSearcher] | type[SharedSumsSearcher], executor: Executor, given: Mapping[str, Any], *,
    own: bool,
) -> None:
    """Demand the oracle's neighbours and squared distances of each of the :func:`problems`, bit for bit.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    E, tau, k, dtype = given["E"], given["tau"], given["k"], given["dtype"]
    for number, p in enumerate(problems((E - 1) * tau, dtype, own)):
        n_query, pool = len(p.library if p.query is None else p.query), Pool(executor)
        problem = SearchProblem((E,), (k,), tau, p.Tp, p.radius, len(p.library), n_query, dtype)
        try:
            states = load_states(
                executor, problem, pool, p.library, p.query, library_mask=p.library_mask, query_mask=p.query_mask
            )
            rows, squared = searcher(executor, states, pool=pool).find().read(executor)
        finally:
            pool.release()
        wanted, indices = oracle(number, E, tau, k, dtype, own)
        what = f"{n_query} rows among {len(p.library)} (problem {number})"
        require_equal(f"neighbours of {what}", rows, indices)
        require_equal(f"squared distances of {what}", squared, wanted)


@functools.lru_cache(maxsize=64)
def oracle(number: int, E: int, tau: int, k: int, dtype: str, own: bool) -> tuple[Floats, NDArray[np.int32]]:
    """Squared distances and rows of one of the :func:`problems`, as the searchers write them."""
    p = problems((E - 1) * tau, dtype, own)[number]
    search: Any = knn_float32_exact if dtype == "float32" else knn_float64_exact
    # The searchers know targets by the library mask alone, so this one has no gaps.
    squared, rows = search(p.library, E=E, tau=tau, k=k, Tp=p.Tp, exclusion_radius=p.radius, query=p.query,
                           target=np.zeros(len(p.library)), library_rows=p.library_mask)  # fmt: skip
    if p.query_mask is not None:
        rows[~p.query_mask] = -1
    return np.where(rows < 0, np.dtype(dtype).type(NOWHERE), squared).astype(dtype), rows
