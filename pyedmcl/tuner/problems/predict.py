"""Workload of simplex projection: predictions of series by their own neighbours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.project import Projection
from ...launch.staging import Staging
from ...neighbors.exhaustive import ExhaustiveSearcher
from ...neighbors.plan import SearchProblem
from ...reference import knn_float32_exact, knn_float64_exact, simplex_predict
from ..verify import require_close
from ..workload import Answer, Case, Workload
from .common import Floats, maps, on_gpu, ragged, units

_SHOWN = 1 << 16


class PredictWorkload(Workload):
    """All E = 1..20 of a block of series, as the search for an embedding dimension asks for it."""

    kernel = "predict"
    tolerance = (1e-5, 2e-6)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        rows = 2000 if on_gpu(info) else 1000
        cases = [_case("float32", rows, units(info, 3, 4))]
        if mode == "exhaustive" and info.fp64:
            cases.append(_case("float64", rows, units(info, 3, 4)))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        return _case(specialisation["dtype"], 1000, units(info, 3, 4))

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        values = maps(n["rows"], n["libraries"], n["given"]["dtype"])
        data = Staging(executor, values)
        dims = tuple(n["dims"])
        search = SearchProblem(dims, tuple(E + 1 for E in dims), 1, 1, 0, n["rows"], n["rows"], n["given"]["dtype"])
        searcher = ExhaustiveSearcher(executor, search, "weights", data_bytes=values.nbytes)
        projection = Projection(executor, data, 0, n["libraries"])

        def go() -> Answer:
            answer = {}
            for tables in searcher.tables(searcher.load(data, 0, n["libraries"])):
                predicted, variance = projection.predict(tables)
                count = min(len(tables.problem.dims) * tables.n_libraries * n["rows"], _SHOWN)
                name = f"E={tables.problem.dims[0]}"
                for what, buffer in (("predicted", predicted), ("variance", variance)):
                    answer[f"{what}, {name}"] = executor.download(buffer, np.empty(count, values.dtype))
            return answer

        try:
            yield go
        finally:
            for held in (projection, searcher, data):
                held.release()

    def verify(self, executor: Executor, case: Case) -> None:
        dtype = case.numbers["given"]["dtype"]
        for E in (1, 3):
            for number, problem in enumerate(ragged(E - 1, dtype)):
                if problem.query is None and not np.isnan(problem.library).any():
                    _verify(executor, E, number, problem.library, problem.Tp, dtype, self.tolerance)


def _case(dtype: str, rows: int, libraries: int) -> Case:
    name = f"E=1..20, {libraries} x {rows}" + ("" if dtype == "float32" else f", {dtype}")
    return Case("predict", name, {
        "rows": rows, "libraries": libraries, "dims": list(range(1, 21)), "given": {"dtype": dtype},
    })  # fmt: skip


def _verify(
    executor: Executor, E: int, number: int, library: Floats, Tp: int, dtype: str, tolerance: tuple[float, float]
) -> None:
    length = len(library)
    data = Staging(executor, library)
    searcher = ExhaustiveSearcher(executor, SearchProblem((E,), (E + 1,), 1, Tp, 0, length, length, dtype), "weights")
    projection = Projection(executor, data, 0, 2)
    try:
        tables = next(searcher.tables(searcher.load(data, 0, 2)))
        got = [executor.download(buffer, np.empty((2, length), dtype)) for buffer in projection.predict(tables)]
        shift, exponent = data.scaling()
    finally:
        for held in (projection, searcher, data):
            held.release()
    for which in range(2):
        wanted = _oracle(number, E, dtype, which)
        # The device centres targets, which takes the same from every prediction and nothing from a variance.
        power = 2.0 ** int(exponent[which])
        predicted = got[0][which].astype(np.float64) * power + float(shift[which])
        what = f"E={E}, series {which} of {length} rows"
        scale = float(np.abs(library[:, which]).max())
        require_close(f"predictions for {what}", predicted, wanted[0], tolerance[0], tolerance[1] * scale)
        variance = got[1][which].astype(np.float64) * power**2
        require_close(f"variances for {what}", variance, wanted[1], 1e-4, 1e-5 * scale**2)


@functools.lru_cache(maxsize=64)
def _oracle(number: int, E: int, dtype: str, which: int) -> tuple[Any, Any]:
    problem = list(ragged(E - 1, dtype))[number]
    x = problem.library[:, which]
    exact: Any = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squared, rows = exact(x, E=E, k=E + 1, Tp=problem.Tp)
    return simplex_predict(rows, np.sqrt(squared.astype(np.float64)), x, problem.Tp)


WORKLOAD = PredictWorkload()
