"""Tuning problems of images, thresholds, networks and windows of recurrence matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.counts import Counts
from ...recurrence.image.render import render_image
from ...recurrence.metrics import metric_named
from ...recurrence.network import count_links
from ...recurrence.problem import RqaProblem
from ...recurrence.ranks import Ranks
from ...recurrence.windows import WindowSweep, part_size
from ...reference import image, rqa
from ..problem import Answer, TuningCase, up_to
from ..verify import Close
from .common import Floats, scalar, units
from .recurrence import OTHER_METRICS, RecurrenceProblem, counts_of, lines_of

_Parts = Callable[[], Iterator[list[Counts]]]


class ImageProblem(RecurrenceProblem):
    """Counts are equal; sums of distances are taken in other parts, and rounded."""

    kernel = "recurrence_image"
    tolerance = (1e-5, 1e-7)
    theiler = 0
    pixels = 200

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n = units(info, 8_000, 1_000, most=120_000)
        normal = [self.case(n, 1), self.case(n, 20), self.case(n, 5, mode="mean"), self.case(max(n // 8, 500), 5)]
        rare = [*(self.case(n, 5, metric=metric) for metric in OTHER_METRICS), self.case(n, 5, exact=False)]
        rare += [self.case(n, 5, dtype="float64", exact=False)] if info.fp64 else []
        return up_to(mode, [self.case(n, 5)], normal, rare)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        if s.get("embedded") or s.get("corridor") or s.get("per_column"):
            return None
        given = {name: s[name] for name in ("tau", "metric", "dtype", "mode", "exact") if name in s}
        return self.case(int(sizes.get("rows", 10_000)), int(s["m"]), **given)

    def case(
        self, points: int, m: int, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float32",
        mode: str = "count", exact: bool = True,
    ) -> TuningCase:  # fmt: skip
        """A case of so many points."""
        exact = exact and mode == "count" and dtype == "float32"
        given = {"m": m, "tau": tau, "metric": metric, "dtype": dtype, "mode": mode, "exact": exact}
        words = [mode, f"m={m}", metric, f"{points:,} points"] + [dtype] * (dtype != "float32") + ["exact"] * exact
        return TuningCase(self.kernel, ", ".join(words), {"points": points, "given": given})

    def _image(self, executor: Executor, case: TuningCase, x: Floats, points: int, pixels: int) -> Answer:
        problem, mean = self.rqa_problem(case, points), case.given["mode"] == "mean"
        return {"image": render_image(executor, problem, x, pixels=(pixels, pixels), mean=mean).values}

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        n = case.numbers["points"]
        x = self.usual(self.rqa_problem(case, n), n).astype(case.given["dtype"])
        yield lambda: self._image(executor, case, x, n, min(self.pixels, n))

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for n, pixels in ((2, 1), (67, 67), (391, 40)):
            x = self.series(self.rqa_problem(case, n), n).astype(case.given["dtype"])
            yield f"{n} points", (x, n, pixels)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        return self._image(executor, case, *small)

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        x, n, pixels = small
        points = {name: case.given[name] for name in ("m", "tau", "metric")}
        if case.given["mode"] == "mean":
            return {"image": Close(image.mean_distances(x, x, (pixels, pixels), **points), *self.tolerance)}
        problem = self.rqa_problem(case, n)
        points |= {"limit": problem.outer_limits()[0], "dtype": problem.arithmetic}
        return {"image": image.recurrence_counts(x, x, (pixels, pixels), **points)}


class MatrixProblem(RecurrenceProblem):
    """Kernels that compare distances in the widest numbers of the device.

    Attributes
    ----------
    size : (int, int)
        Of a common problem, on devices without and with scalar work-items; ``unit`` says of what.
    shapes : sequence
        What is verified.
    """

    unit: ClassVar[str] = "points"
    size: ClassVar[tuple[int, int]]
    shapes: ClassVar[Sequence[Any]]
    strict: ClassVar[bool] = True

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        n, dtype = self.size[scalar(info)], "float64" if info.fp64 else "float32"
        return up_to(mode, [self.case(n, 5, dtype=dtype)], [self.case(n, m, dtype=dtype) for m in (1, 20)],
                     [self.case(n, 5, metric=metric, dtype=dtype) for metric in OTHER_METRICS])  # fmt: skip

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s = specialisation
        if int(s.get("stride", 1)) > 1:
            return None
        given = {name: s[name] for name in ("step", "metric", "dtype", "strict") if name in s}
        return self.case(self.size[scalar(info)], int(s["m"]), **given)

    def case(self, n: int, m: int, *, step: int = 3, metric: str = "euclidean", dtype: str, **more: Any) -> TuningCase:
        """A case of so many points or windows."""
        given = {"m": m, "step": step, "stride": 1, "metric": metric, "dtype": dtype, **more}
        return TuningCase(self.kernel, f"m={m}, {metric}, {self.words(n)}", {self.unit: n, "given": given})

    def words(self, n: int) -> str:
        """The size, in words."""
        return f"{n:,} points"

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for shape in self.shapes:
            yield f"{shape} points", shape


class NetworkProblem(MatrixProblem):
    """Links as bits, and the triangles of each node."""

    kernel = "recurrence_network"
    entries = ("recurrence_network", "recurrence_triangles")
    theiler, size, shapes = 2, (2_000, 12_000), (2, 67, 301)

    def case(self, n: int, m: int, *, strict: bool = True, **more: Any) -> TuningCase:
        return super().case(n, m, **more, strict=strict)

    def _links(self, executor: Executor, problem: RqaProblem, x: Floats) -> Answer:
        return dict(zip(("degree", "closed"), count_links(executor, problem, x), strict=True))

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        problem = self.rqa_problem(case, case.numbers["points"])
        x = self.usual(problem, problem.n_rows)
        yield lambda: self._links(executor, problem, x)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        problem = self.rqa_problem(case, small)
        return self._links(executor, problem, self.series(problem, small))

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem = self.rqa_problem(case, small)
        distances = self.distances(problem, self.series(problem, small))
        matrix = rqa.recurrence_matrix(distances, problem.outer_limits()[0], strict=problem.strict)
        links = rqa.network(matrix, problem.theiler)
        return {name: np.asarray(links[name]) for name in ("degree", "closed")}


class RanksProblem(MatrixProblem):
    """The distance that a share of all cells reaches, and that of some nearest points of each column."""

    kernel = "recurrence_ranks"
    entries = ("recurrence_ranks", "recurrence_gather", "recurrence_next")
    gaps, size, shapes = False, (1_500, 30_000), (40, 203)
    window, share, neighbours = 2, 0.05, 20

    def _cells(self, n: int) -> NDArray[np.int64]:
        """Cells of each column outside the window."""
        at = np.arange(n)
        return n - (np.minimum(at + self.window - 1, n - 1) - np.maximum(at - self.window + 1, 0) + 1)

    @contextmanager
    def _ranks(self, executor: Executor, problem: RqaProblem, x: Floats) -> Iterator[Callable[[], Answer]]:
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

        try:
            yield go
        finally:
            ranks.release()

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        problem = self.rqa_problem(case, case.numbers["points"])
        with self._ranks(executor, problem, self.usual(problem, problem.n_rows)) as go:
            yield go

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        problem = self.rqa_problem(case, small)
        with self._ranks(executor, problem, self.series(problem, small)) as go:
            return go()

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, at, cells = self.rqa_problem(case, small), np.arange(small), self._cells(small)
        distances = self.distances(problem, self.series(problem, small)).astype(np.float64)
        distances[np.abs(at[:, None] - at[None, :]) < self.window] = np.inf
        threshold = np.sort(distances, axis=None)[int(self.share * cells.sum()) - 1]
        columns = np.sort(distances, axis=0)[np.minimum(self.neighbours, cells) - 1, at]
        return {"threshold": np.array([threshold]), "thresholds": columns}


class WindowsProblem(MatrixProblem):
    """Quantification of short windows, close together."""

    kernel = "recurrence_windows"
    entries = ("column_bits", "diagonal_bits", "recurrence_windows")
    unit, size = "windows", (100, 2_000)
    shapes = ((2, 1, 3), (67, 13, 9), (130, 200, 2))  # points of a window, step, windows
    points, step = 500, 50

    def case(self, n: int, m: int, *, strict: bool = True, **more: Any) -> TuningCase:
        return super().case(n, m, **more, strict=strict)

    def words(self, n: int) -> str:
        return f"{n:,} windows of {self.points}, {self.step} apart"

    def _sweep(self, executor: Executor, problem: RqaProblem, x: Floats, step: int, windows: int) -> _Parts:
        """Counts of all windows, as many at a time as fit."""
        together = max(part_size(executor, problem.n_rows, step, windows, x.nbytes), 1)
        sweep = WindowSweep(executor, problem, x, step)
        return lambda: (sweep.counts(at, min(together, windows - at)) for at in range(0, windows, together))

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        problem, windows = self.rqa_problem(case, self.points), case.numbers["windows"]
        x = self.usual(problem, self.points + (windows - 1) * self.step)
        parts = self._sweep(executor, problem, x, self.step, windows)

        def go() -> Answer:
            answer: dict[str, Any] = {}
            for part in parts():
                for place, counts in enumerate(part[:2] if not answer else ()):
                    answer |= counts_of(counts, f"window {place}")
            return answer

        yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        for points, step, windows in self.shapes:
            problem = self.rqa_problem(case, points)
            x = self.series(problem, points + (windows - 1) * step)
            yield f"{windows} windows of {points} points", (problem, x, step, windows)

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        every = [counts for part in self._sweep(executor, *small)() for counts in part]
        answer: dict[str, Any] = {}
        for place, counts in enumerate(every):
            answer |= counts_of(counts, f"window {place}")
        return answer

    def expected(self, case: TuningCase, small: Any) -> Answer:
        problem, x, step, windows = small
        distances, n = self.distances(problem, x), problem.n_rows
        answer: dict[str, Any] = {}
        for place, begin in enumerate(range(0, windows * step, step)):
            window = distances[begin : begin + n, begin : begin + n]
            answer |= lines_of(window, problem.outer_limits()[0], problem, f"window {place}")
        return answer


PROBLEMS = (ImageProblem(), RanksProblem(), NetworkProblem(), WindowsProblem())
