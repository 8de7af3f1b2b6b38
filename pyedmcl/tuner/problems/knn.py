"""Workload of the neighbour search: tables of many libraries, one dimension or many at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.spec import Constraint
from ...data.condition import condition
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...edm.masks import library_mask_of
from ...launch.staging import Staging
from ...neighbors.exhaustive import ExhaustiveSearcher
from ...neighbors.plan import SearchProblem
from ...reference import knn_float32_exact, knn_float64_exact
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import Ragged, maps, on_gpu, ragged, some, units

_ALL = tuple(range(1, 21))
_LISTED = 4000, 24  # steps, and neighbours in those of a simplex: lists that convergent cross mapping draws from
_LONG = 1 << 17  # in the middle of what rounds to one size
_SHOWN = 2  # libraries whose tables are compared


class KnnWorkload(Workload):
    """All-kNN with simplex weights, as the cross map asks for it."""

    kernel = "knn"
    # Rows are compared to the last bit; a weight is an exponential, which vectors may round otherwise than scalars.
    tolerance = (1e-5, 1e-7)
    constraints = (
        Constraint(
            lambda v: v["lanes"] == 1 or v["wg"] == 1,
            "work-items of several lanes store whole vectors of weights, and those past the last row do so, too",
        ),
    )

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        # Series and steps of common jobs, one for each size bucket.
        jobs: tuple[tuple[int, int], ...] = ((2000, 3780), (1000, 8528), (154, 1600), (8000, 96)) if on_gpu(info) else (
            (1000, 1000), (82, 4000), (8000, 96))  # fmt: skip
        alone: list[tuple[int, int, tuple[int, ...]]] = []
        if mode == "rapid":
            jobs = jobs[:1]
        elif on_gpu(info):
            # Long lists, and a single long series, are searched with other parameters.
            alone = [(2000, 3780, (20,)), (1, _LONG, (3,)), (1, _LONG, (20,))]
        cases = [_case(dims, rows, info, job=series) for series, rows in jobs for dims in ((3,), _ALL)]
        cases += [_case(dims, rows, info, job=series) for series, rows, dims in alone]
        if mode != "rapid":
            cases.append(_case((3,), _LISTED[0], info, simplexes=_LISTED[1], job=2))
        if mode == "exhaustive":
            rows = jobs[0][1]
            cases += [_case((10,), rows, info), _case((2, 5, 8), rows, info)]
            if info.fp64:
                cases += [_case(dims, rows, info, dtype="float64") for dims in ((3,), _ALL)]
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        dims = tuple(int(E) for E in specialisation.get("dims", ()))
        most = 16384 if on_gpu(info) else 4096  # a search grows with the square
        rows = min(int(sizes.get("rows", 0)), most)
        library = min(int(sizes.get("library", rows)), most)
        if not dims or min(rows, library) <= (max(dims) - 1) * int(specialisation.get("tau", 1)) + 2:
            return None
        return _case(dims, rows, info, dtype=specialisation["dtype"], tau=int(specialisation["tau"]), library=library,
                     simplexes=int(specialisation.get("simplexes", 1)))  # fmt: skip

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        search = _search(n)
        values = maps(max(n["rows"], n["library"]), n["libraries"], n["given"]["dtype"])
        data = Staging(executor, values[: n["library"]])
        query = None if n["rows"] == n["library"] else Staging(executor, values[: n["rows"]])
        # Working memory as the whole job would have it.
        nbytes = max(n["job"] * n["library"] * values.itemsize, values.nbytes)
        searcher = ExhaustiveSearcher(executor, search, "weights", data_bytes=nbytes)
        shown = min(_SHOWN, n["libraries"])

        def go() -> Answer:
            answer: dict[str, NDArray[Any]] = {}
            for tables in searcher.tables(searcher.load(data, 0, n["libraries"], query)):
                if tables.first:
                    continue
                for E in tables.problem.dims:
                    rows, weights = tables.read(executor, E, shown)
                    rows[weights == 0] = -1  # such a place is empty, whatever row it names
                    answer[f"rows of E={E}"], answer[f"weights of E={E}"] = rows, weights
            executor.finish()
            return answer

        try:
            yield go
        finally:
            searcher.release()
            for staged in (data, query):
                if staged is not None:
                    staged.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        front = (max(given["dims"]) - 1) * given["tau"]
        for number, problem in enumerate(ragged(front, given["dtype"])):
            _verify(executor, given, number, problem)


def _case(
    dims: Sequence[int], rows: int, info: DeviceInfo, *, dtype: str = "float32", tau: int = 1, library: int = 0,
    simplexes: int = 1, job: int = 0,
) -> Case:  # fmt: skip
    library = library or rows
    counts = [min(simplexes * (E + 1), library) for E in dims]
    # Pairs, and neighbours to sort: some tens of milliseconds of them on a processor, some milliseconds on a GPU.
    cost = rows * (library * (max(dims) + len(dims)) + 600.0 * sum(counts))
    libraries = max(min(int(units(info, 500, 1200, 1 << 30) * 1e6 / cost), 4096), 2)
    if job:
        libraries = min(libraries, job)
    name = f"E={dims[0]}" if len(dims) == 1 else f"E={dims[0]}..{dims[-1]}"
    name += "" if simplexes == 1 else f", k={counts[0]}"
    return Case("knn", f"{name}, {libraries} x {rows}" + ("" if dtype == "float32" else f", {dtype}"), {
        "rows": rows, "library": library, "libraries": libraries, "job": job,
        "given": {"dims": list(dims), "counts": counts, "tau": tau, "dtype": dtype},
    })  # fmt: skip


def _search(n: Mapping[str, Any]) -> SearchProblem:
    g = n["given"]
    radius = 0 if n["rows"] == n["library"] else -1
    return SearchProblem(tuple(g["dims"]), tuple(g["counts"]), g["tau"], 0, radius, n["library"], n["rows"], g["dtype"])


def _verify(executor: Executor, given: Mapping[str, Any], number: int, problem: Ragged) -> None:
    dims, counts, dtype = tuple(given["dims"]), tuple(given["counts"]), given["dtype"]
    library, asked = problem.library, problem.query
    search = SearchProblem(
        dims, counts, given["tau"], problem.Tp, problem.exclusion_radius if asked is None else -1, len(library),
        len(library if asked is None else asked), dtype,
    )  # fmt: skip
    # Gaps of the target rule out rows; both series have theirs at the same places.
    library_mask = library_mask_of(library[:, 0], problem.Tp) if problem.Tp else None
    data = Staging(executor, condition(library, dtype).values)
    query = None if asked is None else Staging(executor, condition(asked, dtype).values)
    searcher = ExhaustiveSearcher(executor, search, "neighbours")
    weighted = ExhaustiveSearcher(executor, search, "weights")
    try:
        for tables in searcher.tables(searcher.load(data, 0, 2, query), library_mask):
            for E in tables.problem.dims:
                if not problem.thorough and E not in some(dims):
                    continue
                rows, squared = tables.read(executor, E, 2)
                squared[rows < 0] = np.inf
                for which in range(2):
                    of = number, E, counts[dims.index(E)], given["tau"], dtype, which
                    wanted, indices = _oracle(*of, max(dims))
                    what = f"E={E}, {len(rows[which])} rows of series {which} among {len(library)}"
                    require_equal(f"neighbours for {what}", rows[which], indices)
                    require_equal(f"squared distances for {what}", squared[which], wanted)
        if library_mask is None:
            _verify_weights(executor, weighted, (data, query), given, number, problem)
    finally:
        searcher.release()
        weighted.release()
        data.release()
        if query is not None:
            query.release()


def _verify_weights(
    executor: Executor, searcher: ExhaustiveSearcher, staged: tuple[Staging, Staging | None], given: Mapping[str, Any],
    number: int, problem: Ragged,
) -> None:  # fmt: skip
    """Tables of weights are stored in another way than those of distances."""
    dims, counts, tau, dtype = tuple(given["dims"]), tuple(given["counts"]), given["tau"], given["dtype"]
    for tables in searcher.tables(searcher.load(staged[0], 0, 2, staged[1])):
        for E in tables.problem.dims:
            if not problem.thorough and E not in some(dims):
                continue
            rows, weights = tables.read(executor, E, 2)
            for which in range(2):
                squared, indices = _oracle(number, E, counts[dims.index(E)], tau, dtype, which, max(dims))
                wanted = _weights(np.where(indices < 0, np.inf, squared.astype(np.float64)))
                what = f"E={E}, {len(rows[which])} rows of series {which} among {len(problem.library)}"
                require_close(f"weights for {what}", weights[which].astype(np.float64), wanted, 1e-4, 1e-6)
                there = (weights[which] > 0) & (indices >= 0)
                got, wanted_rows = np.where(there, rows[which], -1), np.where(there, indices, -1)
                require_equal(f"neighbours with weights for {what}", got, wanted_rows)


def _weights(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-d / d_min), normalised (Sugihara & May, Nature 344, 734, 1990); 0 where there is no neighbour."""
    distances = np.sqrt(squared)
    least = distances[:, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(least > 0, np.exp(-distances / np.where(least > 0, least, 1.0)), distances == 0)
    found = np.where(np.isfinite(distances), found, 0.0)
    total = found.sum(axis=1, keepdims=True)
    return np.asarray(found / np.where(total > 0, total, 1.0), np.float64)


@functools.lru_cache(maxsize=512)
def _oracle(number: int, E: int, k: int, tau: int, dtype: str, which: int, most: int) -> tuple[Any, Any]:
    """Squared distances and rows; kept, since every candidate is compared with the same."""
    problem = list(ragged((most - 1) * tau, dtype))[number]
    oracle: Any = knn_float32_exact if dtype == "float32" else knn_float64_exact
    query = None if problem.query is None else problem.query[:, which]
    squared, rows = oracle(problem.library[:, which], E=E, tau=tau, k=k, Tp=problem.Tp,
                           exclusion_radius=problem.exclusion_radius, query=query)  # fmt: skip
    return squared, rows


WORKLOAD = KnnWorkload()
