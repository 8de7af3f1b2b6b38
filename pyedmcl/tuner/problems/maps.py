"""Tuning problems of cross maps, predictions, skill and convergent cross mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...engines.ccm import CcmPair, SampledSkill
from ...engines.crossmap import CrossMap, MapData
from ...engines.predict import SelfProjection, scores, skill_sums
from ...kernels.texts import GAP
from ...launch.staging import Staging
from ...reference import edm, pearson, simplex_predict, skill
from ...reference.edm import library_mask_of
from ...search.plan import SearchProblem
from ...search.searches import ExhaustiveSearcher
from ...states.states import delay_states, future
from ..problem import (
    Answer,
    Close,
    Floats,
    OneWayProblem,
    TuningCase,
    exact_knn,
    maps,
    ragged,
    releasing,
    scalar,
    units,
    up_to,
)

# Tuning problem of the cross-map lookup: skill of all targets from the tables of some libraries.


_SHOWN = 4
_AT_ONCE = 32
# Libraries that are compared; the second has rows without neighbours.
_GAPPY = 7
_COMPARED = [0, _GAPPY]
# k, steps, targets, and libraries of a launch, as E = 3 for all and E = 1..20 evenly ask for them. On GPUs jobs of
# 2,000 series x 3,780 steps, 1,000 x 8,528, 154 x 1,600, 8,000 x 96 and 82 x 10,608; on processors 1,000 x 1,000,
# 154 x 1,600 and 82 x 4,000. Most of a mixed job's lookups have 12 to 21 neighbours. A large map of one
# E looks up many neighbours of all targets, for which parameters of 100 targets take up to twice as long
# (docs/design/lookup.md).
_JOBS_OF_GPUS = (
    (4, 3780, 2000, 2000), (16, 3780, 100, 127), (4, 8528, 1000, 1000), (16, 8528, 50, 64), (16, 96, 400, 578),
    (4, 96, 8000, 2048), (4, 1600, 154, 154), (16, 1600, 8, 35), (16, 10608, 4, 5), (4, 10608, 82, 82),
    (8, 3780, 100, 127), (8, 96, 400, 578), (4, 600, 1000, 1000), (16, 3780, 1000, 500), (16, 1600, 1000, 500),
    (8, 1600, 1000, 500),
)  # fmt: skip
_JOBS_OF_PROCESSORS = (
    (4, 1000, 1000, 1000), (16, 1000, 50, 127), (4, 1600, 154, 154), (16, 1600, 8, 35), (4, 4000, 82, 82),
    (16, 4000, 4, 16), (8, 1000, 50, 127), (8, 1600, 8, 35), (4, 96, 4000, 1000), (16, 96, 400, 578),
)  # fmt: skip


class LookupProblem(OneWayProblem):
    """rho of every target from one library's neighbours, for targets of one dimension."""

    kernel = "lookup"
    tolerance = (0.0, 2e-5)

    def wanted(self, mode: str, info: DeviceInfo) -> list[Mapping[str, Any]]:
        jobs = [dict(zip(("k", "rows", "targets", "libraries"), job, strict=True))
                for job in (_JOBS_OF_GPUS if scalar(info) else _JOBS_OF_PROCESSORS)]  # fmt: skip
        return up_to(mode, jobs[:2], jobs[2:], [{**job, "dtype": "float64"} for job in jobs[:2]])

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        k, rows = int(specialisation.get("k", 0)), min(int(sizes.get("rows", 0)), 4096)
        targets = min(int(sizes.get("targets", specialisation.get("columns", 0))), 4096)
        if k < 2 or targets < 1 or rows < k + 10:
            return None
        return self.case(info, k=k, rows=rows, targets=targets, libraries=512, dtype=specialisation["dtype"])

    def case(
        self, info: DeviceInfo, *, k: int, rows: int, targets: int, libraries: int, dtype: str = "float32"
    ) -> TuningCase:
        # Some tens of milliseconds on a processor, some milliseconds on a GPU, the search before it included.
        lookups, search = k * rows * targets, 40.0 * rows * rows
        most = max(int(units(info, 30, 24, 1 << 20) * 4e6 / lookups),
                   int(units(info, 500, 1200, 1 << 30) * 1e6 / search))  # fmt: skip
        # Whole rounds of the most that a group looks up at once: what is left over counts for little in a job.
        libraries = max(min(most // _AT_ONCE * _AT_ONCE or most, libraries), 1)
        specialisation = {"k": k, "dtype": dtype, "gaps": False, "columns": targets}
        return self.named(f"k={k}", f"{libraries} x {targets} targets", f"{rows} rows", rows=rows, targets=targets,
                          libraries=libraries, E=max(min(k - 1, 20), 1), given=specialisation)  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        values = maps(n["rows"], max(n["targets"], n["libraries"]), case.given["dtype"])
        return values, n["targets"], n["libraries"], 0, False, slice(_SHOWN)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for rows, targets, Tp, gaps in ((83, 150, 0, False), (131, 19, -2, True)):
            values = np.array(maps(rows + case.numbers["E"], targets, case.given["dtype"], seed=3))
            middle = len(values) // 2
            if gaps:
                values[[middle, middle + 1], _GAPPY] = np.nan
            words = f"{targets} targets of {len(values)} rows with k={case.given['k']}"
            yield words, (values, targets, targets, Tp, gaps, _COMPARED)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        values, targets, libraries, Tp, gaps, shown = small
        E = np.full(targets, case.numbers["E"])
        mapping = CrossMap(executor, MapData(
            values[:, :targets], E, Tp=Tp, k=case.given["k"], gaps=gaps, n_libraries=case.numbers["libraries"]
        ))  # fmt: skip
        if libraries > targets:  # few targets of this k among many series
            mapping.data.release()
            mapping.data = Staging(executor, values)
        with releasing(mapping):
            yield lambda: {"rho": _without_gappy(mapping.skill(0, libraries)[shown], gaps)}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        values, _, _, Tp, gaps, _ = small
        exact, rho = exact_knn(case.given["dtype"]), []
        for library in _COMPARED:
            x = values[:, library]
            # Gaps of the target play no part, so a target without any stands for all.
            squared, rows = exact(x, E=case.numbers["E"], k=case.given["k"], Tp=Tp, target=np.zeros_like(x))
            distances = np.sqrt(squared.astype(np.float64))
            rho.append([skill(rows, distances, target, Tp) for target in values.T])
        return {"rho": Close(_without_gappy(np.array(rho), gaps), *self.tolerance)}


def _without_gappy(rho: Any, gaps: bool) -> Any:
    """rho less that of the target with gaps: it would need a mask of its own, which is the search's affair."""
    return np.delete(rho, _GAPPY, axis=1) if gaps else rho


LOOKUP_PROBLEMS = (LookupProblem(),)


# Tuning problem of simplex projection: predictions of series by their own neighbours.


_PREDICT_SHOWN = 1 << 16  # values of an answer


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
                count = min(len(tables.problem.dims) * tables.n_libraries * n, _PREDICT_SHOWN)
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


PREDICT_PROBLEMS = (PredictProblem(),)


# Tuning problem of skill sums: rho, MAE and RMSE of many predictions.


class SkillProblem(OneWayProblem):
    """Pairs of a prediction and an observed series."""

    kernel = "skill"
    # Sums over many values of both signs: what is added in another order differs by rounding of the terms, not the sum.
    tolerance = (1e-5, 1e-2)

    exhaustive = ({"dtype": "float64"},)

    def case(self, info: DeviceInfo, *, rows: int = 0, dtype: str = "float32") -> TuningCase:
        rows, pairs = rows or (2000 if scalar(info) else 1000), units(info, 500, 60, 1 << 14)
        return self.named(f"{pairs:,} x {rows}", rows=rows, pairs=pairs, given={"dtype": dtype})

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        return self.case(info, rows=1000, dtype=specialisation["dtype"])

    def usual(self, case: TuningCase) -> Any:
        return case.numbers["pairs"], case.numbers["rows"]

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for rows in (3, 257, 700):
            yield f"pairs with {rows} rows", (9, rows)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        predicted, observed, series = _pairs(small, case.given["dtype"])
        held = [executor.upload(array) for array in (predicted, observed)]

        def go() -> Answer:
            sums = skill_sums(executor, *held, observed_of=series, n_rows=predicted.shape[1],
                              observed_stride=observed.shape[1], dtype=case.given["dtype"])  # fmt: skip
            return {"sums": sums}

        with releasing(*held):
            yield go

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        sums = super().computed(executor, case, small)["sums"]
        return dict(zip(("rho", "MAE", "RMSE"), scores(sums, case.given["dtype"]), strict=True))

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Close]:
        predicted, observed, series = _pairs(small, case.given["dtype"])
        of_pairs = [_scores(p, observed[s, : len(p)]) for p, s in zip(predicted, series, strict=True)]
        return {name: Close(np.array(values), 0.0, 2e-6)
                for name, values in zip(("rho", "MAE", "RMSE"), zip(*of_pairs, strict=True), strict=True)}  # fmt: skip


def _pairs(size: tuple[int, int], dtype: str) -> tuple[Floats, Floats, Any]:
    """Predictions with gaps, padded observations with gaps, and which belongs to which."""
    (n_pairs, n_rows), rng = size, np.random.default_rng(5)
    n_series = min(max(n_pairs // 2, 1), 200)
    observed = rng.standard_normal((n_series, n_rows + 13)).astype(dtype)
    series = rng.integers(0, n_series, n_pairs)
    noise = rng.standard_normal((n_series, n_rows)).astype(dtype)
    predicted = np.asarray(0.6, dtype) * observed[series, :n_rows] + np.asarray(0.5, dtype) * noise[series[::-1]]
    if n_rows > 10:
        predicted[:, 5::97] = np.nan
        observed[:, 7::89] = GAP
    return predicted, observed, series


def _scores(predicted: Floats, observed: Floats) -> tuple[float, float, float]:
    present = np.isfinite(predicted) & (np.abs(observed) < GAP / 10)
    p, o = predicted[present].astype(np.float64), observed[present].astype(np.float64)
    return pearson(p, o), float(np.abs(p - o).mean()), float(np.sqrt(((p - o) ** 2).mean()))


SKILL_PROBLEMS = (SkillProblem(),)


# Tuning problems of convergent cross mapping: drawing, scanning and comparing are kernels of one engine.


_LINKS = CcmPair(0, 1, (0, 1)), CcmPair(1, 0, (1, 0))
_SEED = 3
_SAMPLES = 19  # that are verified: no whole number of words
_CCM_SHOWN = (0, 1, 16)


class CcmProblem(OneWayProblem):
    """Two series from each other, from random parts of the library."""

    # Weights are exponentials, which vectors may round otherwise than scalars.
    tolerance = (0.0, 2e-5)
    rapid = ({"E": 3},)
    exhaustive: Sequence[Mapping[str, Any]] = ({"E": 3, "dtype": "float64"},)
    # (float, float). Smallest and largest sub-library, as shares of all rows.
    shares: ClassVar[tuple[float, float]]

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s, n = specialisation, min(int(sizes.get("rows", _steps(info))), _steps(info))
        k = int(s.get("k", 4))
        E = int(s.get("E", max(min(k - 1, 20), 1)))
        return self.case(info, n, E=E, k=k, dtype=s.get("dtype", "float32")) if n >= 2 * E + 2 * k + 40 else None

    def case(
        self, info: DeviceInfo, n: int = 0, *, E: int, k: int = 0, part: int = 1, dtype: str = "float32"
    ) -> TuningCase:
        """A case of ``n`` steps, or of a part of those of a common problem."""
        n, k = n or _steps(info) // part, k or E + 1
        sizes = sorted({max(int(share * n), 2 * k) for share in np.linspace(*self.shares, 8)})
        return self.named(f"E={E}", f"{n:,} steps", f"{len(sizes)} sizes of {sizes[0]}..{sizes[-1]}", steps=n,
                          sizes=sizes, samples=100, given={"E": E, "k": k, "dtype": dtype})  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        return maps(n["steps"], 2, "float64"), n["sizes"], n["samples"], 0, 0, {}

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        E, k = case.given["E"], case.given["k"]
        for number, (steps, Tp, radius, gaps) in enumerate(((130, 0, 0, ()), (171, 1, 4, (7, 85)))):
            x = np.array(maps(steps + 4 * E, 2, "float64", seed=5 + number))
            x[list(gaps)] = np.nan
            masks = {link: library_mask_of(x[:, link.library], E, 1, Tp, x[:, link.target]) for link in _LINKS}
            # Small samples, whose members are all looked at, and larger ones, which are scanned; the last: all rows.
            most = min(int(rows.sum()) for rows in masks.values())
            sizes = sorted({k + 3, most // 3, 2 * most // 3, most})
            yield f"{steps} steps, E={E}", (x, sizes, _SAMPLES, Tp, radius, masks)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        """Skill, and for small problems, whose masks are known, also the members of each sample."""
        (x, sizes, samples, Tp, radius, masks), g = small, case.given
        states = delay_states(x, g["E"], 1, k=g["k"], Tp=Tp, exclusion_radius=radius, dtype=g["dtype"])
        engine = SampledSkill(executor, states, future(x.T, Tp))

        def go() -> Answer:
            rho = engine.skill(_LINKS, sizes, samples, _SEED)
            answer: dict[str, Any] = {"rho": rho[:, :, list(_CCM_SHOWN)] if masks else rho}
            for link in masks:
                for size, members in zip(sizes, engine.members(link, sizes, samples, _SEED), strict=True):
                    answer[f"members of samples of {size} rows of {link.library}"] = members
            return answer

        with releasing(engine):
            yield go

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Any]:
        x, sizes, _, Tp, radius, masks = small
        E, k = case.given["E"], case.given["k"]
        right: dict[str, Any] = {}
        for link in _LINKS:
            rows = np.flatnonzero(masks[link])
            for size in sizes:
                members = np.zeros((_SAMPLES, len(masks[link])), bool)
                for sample in range(_SAMPLES):
                    members[sample, rows[edm.sub_library(len(rows), size, sample=sample, **_stream(link))]] = True
                right[f"members of samples of {size} rows of {link.library}"] = members
        rho = [[[edm.ccm_skill(x[:, link.library], x[:, link.target], size, E=E, Tp=Tp, k=k, exclusion_radius=radius,
                                  sample=sample, **_stream(link))
                 for sample in _CCM_SHOWN] for size in sizes] for link in _LINKS]  # fmt: skip
        return {**right, "rho": Close(np.array(rho), *self.tolerance)}


def _steps(info: DeviceInfo) -> int:
    """Of a common problem."""
    return 4000 if scalar(info) else 1000


def _stream(link: CcmPair) -> dict[str, Any]:
    return {"seed": _SEED, "library": link.stream[0], "target": link.stream[1]}


_OTHER_E = ({"E": 1}, {"E": 8}, {"E": 20})
_SHORTER = {"E": 3, "part": 4}


class DrawProblem(CcmProblem):
    """Members of sub-libraries, whatever the numbers are."""

    kernel, entries, shares = "ccm_draw", ("ccm_draw", "ccm_list"), (0.02, 0.95)
    normal, exhaustive = (_SHORTER,), ()


class ScanProblem(CcmProblem):
    """Members among sorted neighbours: of large sub-libraries."""

    kernel, entries, shares = "ccm", ("ccm", "ccm_prepare", "ccm_rho"), (0.2, 0.95)
    normal = (*_OTHER_E, _SHORTER)


class DirectProblem(CcmProblem):
    """All members of small sub-libraries."""

    kernel, shares, normal = "ccm_direct", (0.01, 0.05), _OTHER_E


CCM_PROBLEMS = (DrawProblem(), ScanProblem(), DirectProblem())
