"""Tuning problem of simplex projection: predictions of series by their own neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.self_projection import SelfProjection
from ...launch.staging import Staging
from ...neighbors.exhaustive import ExhaustiveSearcher
from ...neighbors.plan import SearchProblem
from ...reference import simplex_predict
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import Floats, exact_knn, maps, ragged, releasing, scalar, units

_SHOWN = 1 << 16  # values of an answer


class PredictProblem(OneWayProblem):
    """All E = 1..20 of a block of series, as the search for an embedding dimension asks for it."""

    kernel = "predict"
    tolerance = (1e-5, 2e-6)

    exhaustive = ({"dtype": "float64"},)

    def case(self, info: DeviceInfo, *, rows: int = 0, dtype: str = "float32") -> TuningCase:
        rows, libraries = rows or (2000 if scalar(info) else 1000), units(info, 3, 4)
        return self.named(f"E=1..20, {libraries} x {rows}", rows=rows, libraries=libraries, dims=list(range(1, 21)),
                          given={"dtype": dtype})  # fmt: skip

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        return self.case(info, rows=1000, dtype=specialisation["dtype"])

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        return tuple(n["dims"]), maps(n["rows"], n["libraries"], case.given["dtype"]), 1

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for E in (1, 3):
            for small in ragged(E - 1, case.given["dtype"]):
                if small.query is None and not np.isnan(small.library).any():
                    yield f"E={E}, {len(small.library)} rows", ((E,), small.library, small.Tp)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        dims, values, Tp = small
        n, libraries = values.shape
        data = Staging(executor, values)
        search = SearchProblem(dims, tuple(E + 1 for E in dims), 1, Tp, 0, n, n, case.given["dtype"])
        searcher = ExhaustiveSearcher(executor, search, "weights", data_bytes=values.nbytes)
        projection = SelfProjection(executor, data, 0, libraries, len(dims))

        def go() -> Answer:
            answer = {}
            for tables in searcher.tables(searcher.load(data, 0, libraries)):
                parts = zip(("predicted", "variance"), projection.predict(tables), strict=True)
                count = min(len(tables.problem.dims) * tables.n_libraries * n, _SHOWN)
                for what, buffer in parts:
                    name = f"{what}, E={tables.problem.dims[0]}"
                    answer[name] = executor.download(buffer, np.empty(count, values.dtype))
            return answer

        with releasing(data, searcher, projection):
            yield go

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        (E,), library, _ = small
        answer = super().computed(executor, case, small)
        data = Staging(executor, library)
        with releasing(data):
            shift, exponent = data.scaling()
        predicted, variance = (answer[f"{what}, E={E}"].reshape(library.T.shape).astype(np.float64)
                               for what in ("predicted", "variance"))  # fmt: skip
        # The device centres targets, which takes the same from every prediction and nothing from a variance.
        power = 2.0 ** exponent[:, None].astype(np.float64)
        return {"predictions": predicted * power + shift[:, None], "variances": variance * power**2}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        (E,), library, Tp = small
        predicted, variance = np.array([_predicted(x, E, Tp, case.given["dtype"]) for x in library.T]).swapaxes(0, 1)
        scale = np.abs(library).max(axis=0)[:, None].astype(np.float64)
        rtol, atol = self.tolerance
        return {
            "predictions": Close(predicted, rtol, atol * scale), "variances": Close(variance, 1e-4, 1e-5 * scale**2),
        }  # fmt: skip


def _predicted(x: Floats, E: int, Tp: int, dtype: str) -> tuple[Any, Any]:
    squared, rows = exact_knn(dtype)(x, E=E, k=E + 1, Tp=Tp)
    predicted: tuple[Any, Any] = simplex_predict(rows, np.sqrt(squared.astype(np.float64)), x, Tp)
    return predicted


PROBLEMS = (PredictProblem(),)
