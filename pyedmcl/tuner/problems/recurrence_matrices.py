"""Tuning problems of images, thresholds, networks and windows of recurrence matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.image.render import render_image
from ...recurrence.metrics import metric_named
from ...recurrence.network_problem import count_links
from ...recurrence.ranks import Ranks
from ...recurrence.windows import WindowSweep, part_size
from ...reference import image, rqa
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import releasing, scalar, units
from .recurrence import OTHER_METRICS, RecurrenceProblem, counts_of, lines_of


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
            return {"image": Close(image.mean_distances(x, x, (pixels, pixels), **points), *self.tolerance)}
        problem = self.rqa_problem(case, n)
        points |= {"limit": problem.outer_limits()[0], "dtype": problem.arithmetic}
        return {"image": image.recurrence_counts(x, x, (pixels, pixels), **points)}


class MatrixProblem(RecurrenceProblem, OneWayProblem):
    """Kernels that compare distances in the widest numbers of the device.

    Attributes
    ----------
    common_size : (int, int)
        On devices without and with scalar work-items.
    shapes : sequence of int
        Points of what is verified.
    """

    common: ClassVar[Mapping[str, Any]] = {
        "m": 5, "step": 3, "stride": 1, "metric": "euclidean", "dtype": "float64",
    }  # fmt: skip
    usual_dtypes = ("float32", "float64")
    normal = ({"m": 1}, {"m": 20})
    exhaustive = OTHER_METRICS
    refused = ()
    common_size: ClassVar[tuple[int, int]]
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
        matrix = rqa.recurrence_matrix(self.distances(problem, x), problem.outer_limits()[0], strict=problem.strict)
        links = rqa.network(matrix, problem.theiler)
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
        points = rqa.points_of(x, problem.m, problem.tau, problem.dtype)
        cells = self._cells(problem.n_rows)
        ranks = Ranks(executor, problem, x, None, window=self.window)

        def sample(n: int) -> Any:
            a, b = np.random.default_rng(3).integers(0, len(points), (2, n))
            return metric_named(problem.metric).compared(iter((points[a] - points[b]).T))

        def go() -> Answer:
            threshold = ranks.kth(int(self.share * cells.sum()), int(cells.sum()), sample)
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


PROBLEMS = (ImageProblem(), RanksProblem(), NetworkProblem(), WindowsProblem())
