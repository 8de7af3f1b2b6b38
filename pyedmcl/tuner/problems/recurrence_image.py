"""Workload of recurrence plots as images: one series against itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...recurrence.image.render import render_image
from ...recurrence.problem import RqaProblem
from ...reference.image import mean_distances, recurrence_counts
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import OTHER_METRICS, Floats, maps, units

_RADIUS = 0.25
_PIXELS = 200


class RecurrenceImageWorkload(Workload):
    """Counts are equal for every configuration; sums of distances are taken in other parts, and rounded."""

    kernel = "recurrence_image"
    tolerance = (1e-5, 1e-7)

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        n = units(info, 8_000, 1_000, most=120_000)
        cases = [_case(n, 5)]
        if mode != "rapid":
            cases += [_case(n, 1), _case(n, 20), _case(n, 5, mode="mean"), _case(max(n // 8, 500), 5)]
        if mode == "exhaustive":
            cases += [_case(n, 5, metric=metric) for metric in OTHER_METRICS]
            cases.append(_case(n, 5, exact=False))
            if info.fp64:
                cases.append(_case(n, 5, dtype="float64", exact=False))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        if s.get("embedded") or s.get("corridor") or s.get("per_column"):
            return None
        points = int(sizes.get("rows", 10_000))
        given = {name: s[name] for name in ("tau", "metric", "dtype", "mode", "exact") if name in s}
        return _case(points, int(s["m"]), **given)

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        problem, mean = _problem(n["points"], n["given"]), n["given"]["mode"] == "mean"
        values = maps(n["points"] + (problem.m - 1) * problem.tau, 1, "float32")[:, 0].astype(problem.dtype)
        pixels = min(_PIXELS, n["points"])

        def go() -> Answer:
            return {"image": render_image(executor, problem, values, pixels=(pixels, pixels), mean=mean).values}

        yield go

    def verify(self, executor: Executor, case: Case) -> None:
        given = dict(case.numbers["given"])
        mean = given["mode"] == "mean"
        problem = _problem(case.numbers["points"], given)
        front = (problem.m - 1) * problem.tau
        for n, pixels in ((2, 1), (67, 67), (391, 40)):
            x = _ragged(front + n, problem.dtype)
            small = _problem(n, given)
            got = render_image(executor, small, x, pixels=(pixels, pixels), mean=mean).values
            want = _oracle(front + n, pixels, tuple(sorted(given.items())))
            what = f"image of {n} points"
            if mean:
                require_close(what, got, want, *self.tolerance)
            else:
                require_equal(what, got, want)


def _case(
    points: int, m: int, *, tau: int = 3, metric: str = "euclidean", dtype: str = "float32", mode: str = "count",
    exact: bool = True,
) -> Case:  # fmt: skip
    exact = exact and mode == "count" and dtype == "float32"
    given = {"m": m, "tau": tau, "metric": metric, "dtype": dtype, "mode": mode, "exact": exact}
    words = [mode, f"m={m}", metric, f"{points:,} points", *([dtype] if dtype != "float32" else [])]
    return Case("recurrence_image", ", ".join(words + (["exact"] if exact else [])), {"points": points, "given": given})


def _problem(n: int, given: Mapping[str, Any]) -> RqaProblem:
    return RqaProblem(
        m=given["m"], tau=given["tau"], metric=given["metric"], dtype=given["dtype"], exact=given["exact"],
        radii=(_RADIUS,), inner=None, strict=True, theiler=0, theiler_everywhere=False, n_rows=n, n_columns=n,
        symmetric=True,
    )  # fmt: skip


def _ragged(n: int, dtype: str) -> Floats:
    """Values with one or two decimals, so that many distances equal the radius but for their last bit, and gaps."""
    x: Floats = np.round(np.random.default_rng(13).random(n) * 20) / 20
    if n > 300:
        x[[n // 3, n // 2]] = np.nan
    return x.astype(dtype)


@functools.lru_cache(maxsize=64)
def _oracle(n: int, pixels: int, numbers: tuple[tuple[str, Any], ...]) -> NDArray[Any]:
    given = dict(numbers)
    x = _ragged(n, given["dtype"])
    points = {name: given[name] for name in ("m", "tau", "metric")}
    if given["mode"] == "mean":
        return mean_distances(x, x, (pixels, pixels), **points)
    problem = _problem(n, given)
    limit = problem.outer_limits()[0]
    return recurrence_counts(x, x, (pixels, pixels), limit=limit, dtype=problem.arithmetic, **points)


WORKLOAD = RecurrenceImageWorkload()
