"""Recurrence plots as images: counts bit-equal to the binned matrix, whatever device, shape, tuning and precision."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import numpy as np
import pytest
from recurrence_parts import reports_of

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.recurrence import image_problem
from pyedmcl.recurrence import image_problem as image_problems
from pyedmcl.recurrence.arguments import METRICS
from pyedmcl.recurrence.image_problem import render_image
from pyedmcl.recurrence.problem import RqaProblem
from pyedmcl.reference.recurrence import mean_distances, recurrence_counts
from pyedmcl.tuning.parameters import using

# Problems are made here without points_of, which prepares points for other metrics (see test_metrics.py).
PLAIN = [name for name, metric in METRICS.items() if metric.prepare is None]


def problem(x, y=None, *, m=1, tau=1, metric="euclidean", dtype="float32", exact=True, radius=1.0, inner=None,
            strict=True):  # fmt: skip
    other = x if y is None else y
    embedded = x.ndim == 2
    return RqaProblem(
        m=m, tau=tau, metric=metric, dtype=dtype, exact=exact, radii=(radius,),
        inner=None if inner is None else (inner,), strict=strict, theiler=0, theiler_everywhere=False,
        n_rows=len(x) - (m - 1) * tau, n_columns=len(other) - (m - 1) * tau, symmetric=y is None, embedded=embedded,
        n_features=x.shape[1] if embedded else 1,
    )  # fmt: skip


def wanted(p, x, y, pixels):
    inner = p.inner_limits()
    return recurrence_counts(
        x, x if y is None else y, pixels, limit=p.outer_limits()[0], m=p.m, tau=p.tau, metric=p.metric,
        dtype=p.arithmetic, strict=p.strict, inner=None if inner is None else inner[0],
    )  # fmt: skip


def noise(n, seed, *shape):
    return np.random.default_rng(seed).standard_normal((n, *shape))


def on_a_grid(n, seed):
    """One decimal: many distances equal a radius of one decimal in exact arithmetic, and rounding decides."""
    x = np.round(noise(n, seed), 1)
    x[[n // 3, n // 2]] = np.nan
    return x


def check(executor, p, x, y=None, pixels=(40, 40)):
    got = render_image(executor, p, x, y, pixels=pixels).values
    want = wanted(p, x, y, pixels)
    assert want.sum() > 0
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, want)
    return got


@pytest.fixture
def executor(device):
    return open_device(device)


@pytest.mark.parametrize(("dtype", "exact"), [("float32", True), ("float32", False), ("float64", True)])
@pytest.mark.parametrize("metric", PLAIN)
def test_counts_are_those_of_the_matrix(executor, metric, dtype, exact):
    x, y = on_a_grid(400, 1), on_a_grid(313, 2)
    for other in (None, y):
        p = problem(x, other, m=3, tau=2, metric=metric, dtype=dtype, exact=exact, radius=1.2)
        for pixels in ((40, 40), (37, 64), (p.n_rows, p.n_columns)):
            check(executor, p, x, other, pixels)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ties_go_by_float64(executor, strict, dtype):
    x = np.arange(200) * 7 % 61 * 0.1  # many differences are 0.3 but for their last bit
    p = problem(x, dtype=dtype, radius=0.3, strict=strict)
    got = check(executor, p, x)
    rounded = wanted(problem(x, radius=0.3, strict=strict, exact=False), x, None, (40, 40))
    assert (got != rounded).any(), "float32 alone would not do"


@pytest.mark.parametrize("strict", [True, False])
def test_corridor(executor, strict):
    x, y = on_a_grid(200, 3), on_a_grid(150, 4)
    for dtype, exact in (("float32", True), ("float32", False), ("float64", True)):
        for other in (None, y):
            p = problem(x, other, m=2, radius=1.0, inner=0.5, strict=strict, dtype=dtype, exact=exact)
            check(executor, p, x, other)


@pytest.mark.parametrize("strict", [True, False])
def test_each_column_has_its_own_limit(executor, strict):
    x = on_a_grid(300, 18)
    limits = np.round(np.random.default_rng(19).random(298), 1) ** 2
    limits[[3, 50]] = np.nan, 0.0
    for dtype, exact in (("float32", True), ("float32", False), ("float64", True)):
        p = replace(problem(x, x, m=2, tau=2, dtype=dtype, exact=exact, strict=strict), column_limits=limits)
        got = render_image(executor, p, x, x, pixels=(40, 40)).values
        rounded = limits.astype(p.arithmetic)
        want = recurrence_counts(x, x, (40, 40), limit=rounded, m=2, tau=2, dtype=p.arithmetic, strict=strict)
        assert want.sum() > 0
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9, -3e15])
def test_an_offset_does_not_cost_exactness(executor, offset):
    x = offset + 1e-3 * noise(300, 5) * (2.0 if offset == 0 else max(abs(offset) * 1e-9, 1.0))
    radius = float(np.nanstd(x)) * 0.3
    check(executor, problem(x, m=3, tau=2, radius=radius), x)


@pytest.mark.parametrize("size", [1e-30, 1e-5, 1e15, 1e30])
def test_extreme_magnitudes(executor, size):
    x = noise(200, 6) * size
    check(executor, problem(x, m=3, tau=2, radius=0.7 * size), x)


@pytest.mark.parametrize("metric", PLAIN)
def test_points_of_several_features(executor, metric):
    x, y = noise(150, 7, 4), noise(120, 8, 4) * [1, 10, 0.1, 1e-3]
    x[17, 2] = np.nan
    for other in (None, y):
        check(executor, problem(x, other, metric=metric, radius=2.5), x, other)


@pytest.mark.parametrize(("n", "pixels"), [(1, 1), (2, 1), (2, 2), (65, 64), (129, 3), (130, 129)])
def test_small_and_ragged_shapes(executor, n, pixels):
    x = noise(n, 9)
    check(executor, problem(x, radius=1.0), x, pixels=(pixels, pixels))


TUNED = [
    {"wg": 1, "lanes": 1, "vectors": 1, "tile": 32, "staged": 0, "piece": 256},
    {"wg": 32, "lanes": 1, "vectors": 8, "tile": 64, "staged": 1, "piece": 512},
    {"wg": 64, "lanes": 1, "vectors": 4, "tile": 512, "staged": 1},
    {"wg": 2, "lanes": 4, "vectors": 2, "staged": 1, "tile": 32},
    {"wg": 1, "lanes": 8, "vectors": 16, "staged": 0},
]


@pytest.mark.parametrize("chosen", TUNED, ids=lambda c: "-".join(map(str, c.values())))
def test_tuning_changes_no_count(executor, chosen):
    x, y = on_a_grid(700, 10), noise(90, 11, 3)
    with using(recurrence_image=chosen):
        check(executor, problem(x, m=3, tau=2, radius=1.2), x, pixels=(33, 33))
        check(executor, problem(y, radius=1.2), y, pixels=(33, 40))


def test_both_devices_find_the_same(both_devices):
    x = noise(3000, 12).astype(np.float32)
    for exact in (True, False):
        one, other = (
            render_image(open_device(d), problem(x, m=3, tau=2, radius=1.0, exact=exact), x, pixels=(300, 300)).values
            for d in both_devices
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mean", [False, True])
def test_pixels_do_not_depend_on_blocks(executor, monkeypatch, mean):
    x, y = on_a_grid(301, 26), on_a_grid(200, 27)
    images = []
    for pixels_of_a_block in (1 << 24, 700, 1):
        monkeypatch.setattr(image_problems, "_BLOCK_PIXELS", pixels_of_a_block)
        for other in (None, y):
            p = problem(x, other, m=3, tau=2, radius=1.2)
            images.append(render_image(executor, p, x, other, pixels=(41, 41), mean=mean).values)
    for place, image in enumerate(images):
        np.testing.assert_array_equal(image, images[place % 2])
    assert np.nansum(images[0]) > 0 and (mean or (images[0] == images[0].T).all())


def hear(seen, *report):
    seen.append(report)


def test_several_devices_share_an_image(both_devices):
    x = on_a_grid(700, 28)
    for draw, pixels in ((pyedmcl.recurrence_plot, "counts"), (pyedmcl.distance_plot, "means")):
        options = {"m": 2, "pixels": 64, **({"radius": 0.7} if pixels == "counts" else {})}
        alone = draw(x, device=both_devices[0], **options)
        seen = []
        shared = draw(x, device=list(both_devices), progress=functools.partial(hear, seen), **options)
        np.testing.assert_array_equal(getattr(shared, pixels), getattr(alone, pixels))
        assert list(shared.provenance["device_ids"]) == list(both_devices)
        assert seen[-1] == (699, 699, "rows") and len(seen) > 4, "each block is reported"


class NoDouble:
    """A device as if it had no double precision."""

    def __init__(self, executor):
        self._executor = executor
        self.info = replace(executor.info, fp64=False)

    def __getattr__(self, name):
        return getattr(self._executor, name)


def test_without_double_precision_open_cells_are_decided_on_the_host(executor, monkeypatch):
    single = NoDouble(executor)
    build = executor.build
    monkeypatch.setattr(executor, "build", lambda text, options: build(text, options) if "double" not in code(text)
                        else pytest.fail("this device knows no double"))  # fmt: skip
    x, y = on_a_grid(400, 22), on_a_grid(313, 23)
    limits = np.round(np.random.default_rng(24).random(313 - 4), 1) ** 2
    for runs in (1 << 21, 1):
        monkeypatch.setattr(image_problem, "_RUNS_MOST", runs)
        monkeypatch.setattr(image_problem, "_CELLS", 10_000 if runs == 1 else 1 << 20)
        for other in (None, y):
            check(single, problem(x, other, m=3, tau=2, radius=1.2), x, other, (37, 37))
        check(single, problem(x, m=2, radius=1.0, inner=0.5, strict=False), x)
        with monkeypatch.context() as patch:
            patch.setattr(image_problems, "_BLOCK_PIXELS", 200)
            check(single, problem(x, m=3, tau=2, radius=1.2), x, None, (37, 37))
        own = replace(problem(x, y, m=3, tau=2), column_limits=limits)
        got = render_image(single, own, x, y, pixels=(40, 30)).values
        np.testing.assert_array_equal(got, recurrence_counts(x, y, (40, 30), limit=limits, m=3, tau=2))
    points = np.round(noise(150, 25, 4), 1)
    check(single, problem(points, radius=2.5, metric="manhattan"), points)
    with pytest.raises(InputError, match="no double precision"):
        render_image(single, problem(x, dtype="float64"), x, pixels=(5, 5))


def code(text):
    """The OpenCL C that a float32 program keeps after its preprocessor's choice of the number type."""
    # Declarations of OpenCL C's own functions, with which programs begin on some PoCL, use nothing.
    text = re.sub(r'#line \d+ "opencl_functions.clh".*?(?=#line \d+ "(?!opencl_functions))', "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    return text.replace("typedef double real;", "").replace("#define REAL_NAME double", "")


def test_counts_beyond_32_bits(executor):
    # 70,000 equal points in one pixel: 4.9e9 cells.
    x = np.zeros(70_000, np.float32)
    got = render_image(executor, problem(x), x, pixels=(1, 1)).values
    assert got.tolist() == [[70_000**2]]


def test_launches_are_split(executor, monkeypatch):
    x = on_a_grid(900, 13)
    launches = []
    launch = executor.launch
    monkeypatch.setattr(executor, "launch", lambda *a, **k: launches.append(a) or launch(*a, **k))
    monkeypatch.setattr(image_problem, "_GROUPS_MOST", 2)
    with using(recurrence_image={"piece": 32}):
        check(executor, problem(x, m=3, tau=2, radius=0.5), x, pixels=(90, 90))
    assert len(launches) >= 1 + 90 // 6
    _, seen = reports_of(lambda: render_image(executor, problem(x, radius=0.5), x, pixels=(9, 9)))
    assert seen[-1] == (900, 900, "rows")


@pytest.mark.parametrize("metric", PLAIN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_distances(executor, metric, dtype):
    x, y = on_a_grid(400, 14) + 50, on_a_grid(313, 15) + 50
    for other in (None, y):
        p = problem(x, other, m=3, tau=2, metric=metric, dtype=dtype)
        for pixels in ((40, 40), (37, 64), (p.n_rows, p.n_columns)):
            got = render_image(executor, p, x, other, pixels=pixels, mean=True).values
            want = mean_distances(x, x if other is None else other, pixels, m=3, tau=2, metric=metric)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "float32" else 1e-6, atol=1e-5)


def test_mean_distances_of_points(executor):
    x, y = noise(150, 20, 3), noise(90, 21, 3) * [1, 10, 0.1]
    x[11, 1] = np.nan
    for other in (None, y):
        got = render_image(executor, problem(x, other), x, other, pixels=(20, 20), mean=True).values
        np.testing.assert_allclose(got, mean_distances(x, x if other is None else other, (20, 20)), rtol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_mean_distances_of_extreme_magnitudes(executor, size):
    x = noise(200, 16) * size
    got = render_image(executor, problem(x), x, pixels=(5, 5), mean=True).values
    np.testing.assert_allclose(got, mean_distances(x, x, (5, 5)), rtol=1e-5)


def test_memory_is_refused_with_the_numbers(executor, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "4000")
    x = noise(100, 17)
    with pytest.raises(DeviceMemoryError, match=r"fewer pixels"):
        render_image(executor, problem(x), x, pixels=(100, 100))
