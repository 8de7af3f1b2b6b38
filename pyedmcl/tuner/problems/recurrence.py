"""Tuning problems of recurrence analysis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.arguments import METRICS, metric_named
from ...recurrence.counts import Counts
from ...recurrence.engine import combine, quantify
from ...recurrence.image_problem import render_image
from ...recurrence.network import count_links
from ...recurrence.problem import RqaProblem
from ...recurrence.sweep import TileSweep
from ...recurrence.thresholds import Ranks
from ...recurrence.windowed import WindowSweep, part_size
from ...reference import recurrence
from ..problem import Answer, Close, Floats, OneWayProblem, TuningCase, TuningProblem, maps, releasing, scalar, units

_RADIUS = 0.25
#: Beside the one that is tuned first; metrics of prepared points run as Euclidean ones of given points.
OTHER_METRICS = tuple(
    {"metric": name} for name, metric in METRICS.items() if name != "euclidean" and metric.prepare is None
)


class RecurrenceProblem(TuningProblem):
    """What the kernels share."""

    # The specialisation of the most common problem.
    common: ClassVar[Mapping[str, Any]]
    # Parts of a specialisation that no case has.
    refused: ClassVar[tuple[str, ...]] = ("embedded", "corridor", "per_column", "second_partner")
    # What the size of a case counts.
    unit: ClassVar[str] = "points"
    # Smallest size of a case that is a part of the common one.
    least: ClassVar[int] = 1
    theiler: ClassVar[int] = 1
    # Whether the series that are verified have gaps.
    gaps: ClassVar[bool] = True

    @abstractmethod
    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        """Of a common problem, or of one for which an engine asks with these sizes."""

    def case(self, info: DeviceInfo, n: int = 0, *, part: int = 1, **given: Any) -> TuningCase:
        """A case of ``n`` points or windows, or of a part of those of a common problem."""
        n = n or max(self.size(info) // part, self.least)
        g = self.given(info, {**self.common, **given})
        radii = g.get("n_radii", 1)
        case = self.named(
            g.get("mode", ""), f"m={g['m']}", g["metric"], self.words(n), f"{radii} radii" * (radii > 1),
            given=g, **{self.unit: n},
        )  # fmt: skip
        return replace(case, name=f"{case.name}, exact") if g.get("exact") else case

    def given(self, info: DeviceInfo, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The specialisation that a case has where these values are wanted."""
        return given

    def words(self, n: int) -> str:
        """The size, in words."""
        return f"{n:,} points"

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        if any(s.get(name) for name in self.refused) or int(s.get("stride", 1)) > 1:
            return None
        return self.case(info, self.size(info, sizes), **{name: s[name] for name in self.common if name in s})

    def rqa_problem(self, case: TuningCase, rows: int, columns: int | None = None) -> RqaProblem:
        """The case's problem for ``rows`` points; of a series with itself where no number of columns is given."""
        g = case.given
        return RqaProblem(
            m=g["m"], tau=g["tau"] if "tau" in g else g["step"], metric=g["metric"], dtype=g["dtype"],
            exact=g.get("exact", False), radii=tuple(_RADIUS * (1 + i) for i in range(g.get("n_radii", 1))), inner=None,
            strict=g.get("strict", True), theiler=self.theiler, theiler_everywhere=False, n_rows=rows,
            n_columns=columns or rows, symmetric=columns is None,
        )  # fmt: skip

    def series(self, problem: RqaProblem, points: int, seed: int = 13) -> Floats:
        """Values with two decimals, so that many distances equal the radius but for their last bit, and gaps."""
        x: Floats = np.round(np.random.default_rng(seed).random(points + (problem.m - 1) * problem.tau) * 20) / 20
        if self.gaps and points > 100:
            x[[points // 3, points // 2]] = np.nan
        return x.astype(problem.arithmetic)

    def smooth(self, problem: RqaProblem, points: int) -> Floats:
        """The series that is timed."""
        return maps(points + (problem.m - 1) * problem.tau, 1)[:, 0].astype(problem.arithmetic)

    def distances(self, problem: RqaProblem, x: Floats, y: Floats | None = None) -> NDArray[Any]:
        """All distances as they are compared, by the oracle."""
        columns, rows = (
            recurrence.points_of(side, problem.m, problem.tau, problem.arithmetic)
            for side in (x, x if y is None else y)
        )
        return recurrence.compared(columns, rows, problem.metric)


def counts_of(many: Iterable[Counts], what: str) -> Answer:
    """Of each radius or window, whichever ``what`` is."""
    return {f"{field.name}, {what} {place}": np.asarray(getattr(counts, field.name))
            for place, counts in enumerate(many) for field in fields(Counts)}  # fmt: skip


def lines_of(distances: NDArray[Any], limit: float, problem: RqaProblem, where: str) -> Answer:
    matrix = recurrence.recurrence_matrix(distances, limit, strict=problem.strict)
    lines = recurrence.line_counts(matrix, theiler=problem.theiler)
    return {f"{name}, {where}": np.asarray(values) for name, values in lines.items()}


class SweepProblem(RecurrenceProblem):
    """All measures: bits, their transposition, and lines are kernels of one engine."""

    common: ClassVar[Mapping[str, Any]] = {
        "m": 5, "tau": 3, "metric": "euclidean", "dtype": "float32", "exact": True, "strict": True, "n_radii": 1,
        "corridor": False, "per_column": False, "embedded": False, "second_partner": False,
    }  # fmt: skip
    least = 1000

    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        """A tenth of a second on a processor, some tens of milliseconds on a GPU."""
        most = units(info, 8_000, 1_500, most=200_000)
        return min(int((sizes or {}).get("rows", most)), most)

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n = case.numbers["points"]
        problem = self.rqa_problem(case, n)
        x = self.smooth(problem, n)
        sweep = TileSweep(executor, problem, x, None)
        with releasing(sweep):
            yield lambda: counts_of(combine(problem, [sweep.run(0, n)], x), "radius")

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        # Rows and columns that fill no word, block of words or tile; None: a series with itself.
        for rows, columns in ((3, None), (391, None), (70, 203)):
            problem = self.rqa_problem(case, rows, columns)
            other = None if columns is None else self.series(problem, columns, 14)
            yield f"{rows} x {columns or rows} points", (problem, self.series(problem, rows), other)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        return counts_of(quantify(executor, *small), "radius")

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x, y = small
        answer: dict[str, Any] = {}
        for place, limit in enumerate(problem.outer_limits()):
            answer |= lines_of(self.distances(problem, x, y), limit, problem, f"radius {place}")
        return answer


class BitsProblem(SweepProblem):
    """Cells of a tile, and all launches that depend on how the tile was cut and on who transposes words."""

    kernel = "recurrence_bits"
    entries = ("recurrence_bits", "transpose_to_rows", "transpose_to_columns", "recurrence_lines", "recurrence_fold")
    normal = ({"exact": False}, {"m": 1}, {"m": 20}, {"part": 8})
    exhaustive = (*OTHER_METRICS, {"n_radii": 4}, {"dtype": "float64", "exact": False})


class TransposeProblem(SweepProblem):
    """Shuffles of 32 x 32 bits; whatever the points are, they take the same time."""

    kernel = "recurrence_transpose"
    entries = ("transpose_to_rows", "transpose_to_columns")
    rapid = ({"m": 3, "exact": False},)


class LinesProblem(SweepProblem):
    """Lines along diagonals, rows and columns. The engine asks for the same parameters whatever the series is."""

    kernel = "recurrence_lines"
    entries = ("recurrence_lines", "recurrence_fold")
    rapid = ({"exact": False},)


RECURRENCE_PROBLEMS = (BitsProblem(), TransposeProblem(), LinesProblem())


# Tuning problems of images, thresholds, networks and windows of recurrence matrices.


class ImageProblem(RecurrenceProblem, OneWayProblem):
    """Counts are equal; sums of distances are taken in other parts, and rounded."""

    kernel = "recurrence_image"
    tolerance = (1e-5, 1e-7)
    common: ClassVar[Mapping[str, Any]] = {
        "m": 5, "tau": 3, "metric": "euclidean", "dtype": "float32", "mode": "count", "exact": True,
    }  # fmt: skip
    normal = ({"m": 1}, {"m": 20}, {"mode": "mean"}, {"part": 8})
    exhaustive = (*OTHER_METRICS, {"exact": False}, {"dtype": "float64"})
    least, theiler, pixels = 500, 0, 200

    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        return units(info, 8_000, 1_000, most=120_000) if sizes is None else int(sizes.get("rows", 10_000))

    def given(self, info: DeviceInfo, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**given, "exact": given["exact"] and given["mode"] == "count" and given["dtype"] == "float32"}

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers["points"]
        return self.smooth(self.rqa_problem(case, n), n).astype(case.given["dtype"]), n, min(self.pixels, n)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for n, pixels in ((2, 1), (67, 67), (391, 40)):
            x = self.series(self.rqa_problem(case, n), n).astype(case.given["dtype"])
            yield f"{n} points", (x, n, pixels)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        x, n, pixels = small
        problem, mean = self.rqa_problem(case, n), case.given["mode"] == "mean"
        yield lambda: {"image": render_image(executor, problem, x, pixels=(pixels, pixels), mean=mean).values}

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        x, n, pixels = small
        points = {name: case.given[name] for name in ("m", "tau", "metric")}
        if case.given["mode"] == "mean":
            return {"image": Close(recurrence.mean_distances(x, x, (pixels, pixels), **points), *self.tolerance)}
        problem = self.rqa_problem(case, n)
        points |= {"limit": problem.outer_limits()[0], "dtype": problem.arithmetic}
        return {"image": recurrence.recurrence_counts(x, x, (pixels, pixels), **points)}


class MatrixProblem(RecurrenceProblem, OneWayProblem):
    """Kernels that compare distances in the widest numbers of the device."""

    common: ClassVar[Mapping[str, Any]] = {
        "m": 5, "step": 3, "stride": 1, "metric": "euclidean", "dtype": "float64",
    }  # fmt: skip
    usual_dtypes = ("float32", "float64")
    normal = ({"m": 1}, {"m": 20})
    exhaustive = OTHER_METRICS
    refused = ()
    # (int, int). On devices without and with scalar work-items.
    common_size: ClassVar[tuple[int, int]]
    # Points of what is verified.
    shapes: ClassVar[Sequence[int]]

    def size(self, info: DeviceInfo, sizes: Mapping[str, int] | None = None) -> int:
        return self.common_size[scalar(info)]

    def given(self, info: DeviceInfo, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return given if info.fp64 else {**given, "dtype": "float32"}

    def usual(self, case: TuningCase) -> Any:
        problem = self.rqa_problem(case, case.numbers["points"])
        return problem, self.smooth(problem, problem.n_rows)

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for points in self.shapes:
            problem = self.rqa_problem(case, points)
            yield f"{points} points", (problem, self.series(problem, points))


class NetworkProblem(MatrixProblem):
    """Links as bits, and the triangles of each node."""

    kernel = "recurrence_network"
    entries = ("recurrence_network", "recurrence_triangles")
    common: ClassVar[Mapping[str, Any]] = {**MatrixProblem.common, "strict": True}
    theiler, common_size, shapes = 2, (2_000, 12_000), (2, 67, 301)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        yield lambda: dict(zip(("degree", "closed"), count_links(executor, *small), strict=True))

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x = small
        matrix = recurrence.recurrence_matrix(
            self.distances(problem, x), problem.outer_limits()[0], strict=problem.strict
        )
        links = recurrence.network(matrix, problem.theiler)
        return {name: np.asarray(links[name]) for name in ("degree", "closed")}


class RanksProblem(MatrixProblem):
    """The distance that a share of all cells reaches, and that of some nearest points of each column."""

    kernel = "recurrence_ranks"
    entries = ("recurrence_ranks", "recurrence_gather", "recurrence_next")
    gaps, common_size, shapes = False, (1_500, 30_000), (40, 203)
    window, share, neighbours = 2, 0.05, 20

    def _cells(self, n: int) -> NDArray[np.int64]:
        """Cells of each column outside the window."""
        at = np.arange(n)
        return n - (np.minimum(at + self.window - 1, n - 1) - np.maximum(at - self.window + 1, 0) + 1)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        problem, x = small
        points = recurrence.points_of(x, problem.m, problem.tau, problem.dtype)
        cells = self._cells(problem.n_rows)
        ranks = Ranks(executor, problem, x, None, window=self.window)

        def sample(n: int) -> Any:
            a, b = np.random.default_rng(3).integers(0, len(points), (2, n))
            return metric_named(problem.metric).compared(iter((points[a] - points[b]).T))

        def go() -> Answer:
            (threshold,) = ranks.kth([int(self.share * cells.sum())], int(cells.sum()), sample)
            columns = ranks.kth_of_columns(self.neighbours, cells, sample)
            return {"threshold": np.array([threshold]), "thresholds": np.asarray(columns)}

        with releasing(ranks):
            yield go

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x = small
        at, cells = np.arange(problem.n_rows), self._cells(problem.n_rows)
        distances = self.distances(problem, x).astype(np.float64)
        distances[np.abs(at[:, None] - at[None, :]) < self.window] = np.inf
        threshold = np.sort(distances, axis=None)[int(self.share * cells.sum()) - 1]
        columns = np.sort(distances, axis=0)[np.minimum(self.neighbours, cells) - 1, at]
        return {"threshold": np.array([threshold]), "thresholds": columns}


class WindowsProblem(MatrixProblem):
    """Quantification of short windows, close together."""

    kernel = "recurrence_windows"
    entries = ("column_bits", "diagonal_bits", "recurrence_windows")
    common: ClassVar[Mapping[str, Any]] = {**MatrixProblem.common, "strict": True}
    unit, common_size = "windows", (100, 2_000)
    points, step, shown = 500, 50, 2

    def words(self, n: int) -> str:
        return f"{n:,} windows of {self.points}, {self.step} apart"

    def usual(self, case: TuningCase) -> Any:
        problem, windows = self.rqa_problem(case, self.points), case.numbers["windows"]
        return problem, self.smooth(problem, self.points + (windows - 1) * self.step), self.step, windows, self.shown

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for points, step, windows in ((2, 1, 3), (67, 13, 9), (130, 200, 2)):
            problem = self.rqa_problem(case, points)
            x = self.series(problem, points + (windows - 1) * step)
            yield f"{windows} windows of {points} points", (problem, x, step, windows, windows)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        """All windows, as many at a time as fit; the counts of those that are shown."""
        problem, x, step, windows, shown = small
        together = max(part_size(executor, problem.n_rows, step, windows, x.nbytes), 1)
        sweep = WindowSweep(executor, problem, x, step)

        def go() -> Answer:
            parts = [sweep.counts(at, min(together, windows - at)) for at in range(0, windows, together)]
            return counts_of(islice((counts for part in parts for counts in part), shown), "window")

        yield go

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x, step, windows, _ = small
        distances, n = self.distances(problem, x), problem.n_rows
        answer: dict[str, Any] = {}
        for place, begin in enumerate(range(0, windows * step, step)):
            window = distances[begin : begin + n, begin : begin + n]
            answer |= lines_of(window, problem.outer_limits()[0], problem, f"window {place}")
        return answer


RECURRENCE_MATRICES_PROBLEMS = (ImageProblem(), RanksProblem(), NetworkProblem(), WindowsProblem())
