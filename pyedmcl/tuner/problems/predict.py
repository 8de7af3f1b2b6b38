"""Tuning problem of simplex projection: predictions of series by their own neighbours."""

from __future__ import annotations

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
from ..problem import Answer, TuningCase, TuningProblem, up_to
from ..verify import Close
from .common import Floats, maps, ragged, releasing, scalar, units

_SHOWN = 1 << 16


class PredictProblem(TuningProblem):
    """All E = 1..20 of a block of series, as the search for an embedding dimension asks for it."""

    kernel = "predict"
    tolerance = (1e-5, 2e-6)

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        rows = 2000 if scalar(info) else 1000
        double = [_case("float64", rows, units(info, 3, 4))] if info.fp64 else []
        return up_to(mode, [_case("float32", rows, units(info, 3, 4))], [], double)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        return _case(specialisation["dtype"], 1000, units(info, 3, 4))

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n, dims = case.numbers, tuple(case.numbers["dims"])
        values = maps(n["rows"], n["libraries"], case.given["dtype"])
        data = Staging(executor, values)
        search = SearchProblem(dims, tuple(E + 1 for E in dims), 1, 1, 0, n["rows"], n["rows"], case.given["dtype"])
        searcher = ExhaustiveSearcher(executor, search, "weights", data_bytes=values.nbytes)
        projection = Projection(executor, data, 0, n["libraries"])

        def go() -> Answer:
            answer = {}
            for tables in searcher.tables(searcher.load(data, 0, n["libraries"])):
                parts = zip(("predicted", "variance"), projection.predict(tables), strict=True)
                count = min(len(tables.problem.dims) * tables.n_libraries * n["rows"], _SHOWN)
                for what, buffer in parts:
                    name = f"{what}, E={tables.problem.dims[0]}"
                    answer[name] = executor.download(buffer, np.empty(count, values.dtype))
            return answer

        with releasing(data, searcher, projection):
            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for E in (1, 3):
            for small in ragged(E - 1, case.given["dtype"]):
                if small.query is None and not np.isnan(small.library).any():
                    yield f"E={E}, {len(small.library)} rows", (E, small.library, small.Tp)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        (E, library, Tp), n = small, len(small[1])
        data = Staging(executor, library)
        search = SearchProblem((E,), (E + 1,), 1, Tp, 0, n, n, case.given["dtype"])
        searcher = ExhaustiveSearcher(executor, search, "weights")
        projection = Projection(executor, data, 0, 2)
        with releasing(data, searcher, projection):
            tables = next(searcher.tables(searcher.load(data, 0, 2)))
            predicted, variance = (
                executor.download(buffer, np.empty((2, n), case.given["dtype"])).astype(np.float64)
                for buffer in projection.predict(tables)
            )
            shift, exponent = data.scaling()
        # The device centres targets, which takes the same from every prediction and nothing from a variance.
        power = 2.0 ** exponent[:, None].astype(np.float64)
        return {"predictions": predicted * power + shift[:, None], "variances": variance * power**2}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        E, library, Tp = small
        predicted, variance = np.array([_predicted(x, E, Tp, case.given["dtype"]) for x in library.T]).swapaxes(0, 1)
        scale = np.abs(library).max(axis=0)[:, None].astype(np.float64)
        rtol, atol = self.tolerance
        return {
            "predictions": Close(predicted, rtol, atol * scale), "variances": Close(variance, 1e-4, 1e-5 * scale**2),
        }  # fmt: skip


def _case(dtype: str, rows: int, libraries: int) -> TuningCase:
    name = f"E=1..20, {libraries} x {rows}" + ("" if dtype == "float32" else f", {dtype}")
    return TuningCase("predict", name, {
        "rows": rows, "libraries": libraries, "dims": list(range(1, 21)), "given": {"dtype": dtype},
    })  # fmt: skip


def _predicted(x: Floats, E: int, Tp: int, dtype: str) -> tuple[Any, Any]:
    exact: Any = knn_float32_exact if dtype == "float32" else knn_float64_exact
    squared, rows = exact(x, E=E, k=E + 1, Tp=Tp)
    predicted: tuple[Any, Any] = simplex_predict(rows, np.sqrt(squared.astype(np.float64)), x, Tp)
    return predicted


PROBLEMS = (PredictProblem(),)
