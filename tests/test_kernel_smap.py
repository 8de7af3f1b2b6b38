"""S-map's kernels against their oracles: scales, moments and fits, for every layout."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.codegen.build import source
from pyedmcl.device.session import open_device
from pyedmcl.errors import BuildError
from pyedmcl.kernels import spec
from pyedmcl.neighbors import smap as room
from pyedmcl.neighbors.smap import LocalFits
from pyedmcl.neighbors.smap_basis import basis_of
from pyedmcl.reference import smap as oracle
from pyedmcl.tuning.policy import using

TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


@pytest.fixture
def executor(device):
    return open_device(device)


def problem(m, dims, seed=0):
    """A library of m rows among 2 m, and query rows between them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2 * m, dims)) + 3.0
    rows = np.sort(rng.choice(2 * m, m, replace=False))
    y = np.sin(x).sum(axis=1) + 0.1 * rng.standard_normal(2 * m)
    return x[rows], y[rows], rows, x, np.arange(2 * m)


def fitted(executor, case, thetas, **options):
    library, y, rows, points, at = case
    engine = LocalFits(executor, library, y, rows, **{"exclusion_radius": 0, **options})
    try:
        return engine, engine.fit(points, at, np.asarray(thetas, float), singular_values=True)
    finally:
        engine.release()


def held(engine, name, shape, dtype):
    return engine.executor.download(engine._pool.get(name, 0), np.empty(shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("knn", [None, 1, 7, 60])
@pytest.mark.parametrize("radius", [-1, 0, 9])
def test_scales(executor, dtype, knn, radius):
    library, y, rows, points, at = problem(61, 3)
    engine = LocalFits(executor, library, y, rows, exclusion_radius=radius, knn=knn, dtype=dtype)
    try:
        engine.fit(points, at, np.zeros(1))
        n = len(at)
        nearest, rate, count = (held(engine, name, n, dt) for name, dt in
                                (("nearest", dtype), ("rate", dtype), ("count", np.int32)))  # fmt: skip
    finally:
        engine.release()
    expected = oracle.scales(library, rows, points, at, exclusion_radius=radius, knn=knn)
    unit = 2.0**engine.basis.exponent
    np.testing.assert_array_equal(count, expected[2])
    np.testing.assert_allclose(nearest * unit, expected[0], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    there = expected[1] > 0
    np.testing.assert_allclose(rate[there] / unit, 1 / expected[1][there], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("knn", [1, 3, 5, 8, 30])
def test_the_nearest_are_taken_by_distance_then_row(executor, knn):
    # Coordinates of four values: nearly all distances tie.
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (90, 2)).astype(float), rng.standard_normal(90)
    rows = np.arange(90)
    _, fits = fitted(executor, (x, y, rows, x, rows), [0.0], knn=knn)
    for t in range(90):
        order = np.lexsort((rows, ((x - x[t]) ** 2).sum(axis=1)))
        near = order[order != t][:knn]
        a = np.column_stack([np.ones(len(near)), x[near]])
        c = np.linalg.lstsq(a, y[near], rcond=None)[0]
        assert fits.predicted[0, t] == pytest.approx(c[0] + c[1:] @ x[t], abs=1e-9), t


CPU_LAYOUTS = [
    {"lanes": 16, "tile": 64, "wide": 8, "chunk": 16}, {"lanes": 16, "tile": 32, "wide": 4, "chunk": 8},
    {"lanes": 8, "tile": 64, "wide": 8, "chunk": 24}, {"lanes": 4, "tile": 32, "wide": 4, "chunk": 12},
    {"lanes": 1, "tile": 64, "wide": 1, "chunk": 20, "parts": 4}, {"lanes": 16, "tile": 64, "wide": 8, "parts": 3},
]  # fmt: skip
GPU_LAYOUTS = [{"lanes": 1, "tile": 0, "wide": 1, "wg": wg, "parts": parts} for wg, parts in ((1, 1), (64, 4), (32, 2))]


@pytest.mark.parametrize("dims", [1, 3, 7])
@pytest.mark.parametrize("layout", [*CPU_LAYOUTS, *GPU_LAYOUTS], ids=str)
def test_every_layout_gives_the_moments(executor, layout, dims):
    case = problem(45, dims, seed=2)
    library, y, rows, points, at = case
    thetas = [0.0, 1.5, 6.0]
    with using(smap=layout):
        engine = LocalFits(executor, library, y, rows, exclusion_radius=2, dtype="float64")
        try:
            engine.fit(points, at, np.array(thetas))
            shape = (int(engine.parameters["parts"]), -1, 3, engine._entries, engine._rows)
            size = engine._pool.get("moments", 0).nbytes // 8
            found = held(engine, "moments", size, np.float64).reshape(shape).sum(axis=0)
        finally:
            engine.release()
    basis = basis_of(library, y)
    aim = (y - basis.aim_shift) / basis.aim_scale
    for t in range(0, len(at), 7):
        legal = np.abs(rows - at[t]) > 2
        d = np.sqrt(((library[legal] - points[t]) ** 2).sum(axis=1))
        z = basis.regressors(library[legal]) - basis.regressors(points[t : t + 1])
        for s, theta in enumerate(thetas):
            w = np.exp(-theta * (d - d.min()) / d.mean())
            tile, lane = divmod(t, engine._rows)
            expected = oracle.moments(z, aim[legal], w)
            largest = np.abs(expected).max()
            np.testing.assert_allclose(found[tile, s, :, lane], expected, rtol=1e-11, atol=1e-11 * largest)


@pytest.mark.parametrize("dims", [2, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"knn": 40}, {"alpha": 0.7}, {"exclusion_radius": 11}], ids=str)
def test_fits_are_those_of_singular_values(executor, dims, dtype, options):
    case = problem(80, dims, seed=3)
    thetas = [0.0, 0.3, 4.0]
    _, fits = fitted(executor, case, thetas, dtype=dtype, **options)
    for s, theta in enumerate(thetas):
        expected = oracle.smap_rows(*case, theta, **{"exclusion_radius": 0, **options})
        for name in ("predicted", "variance", "coefficients", "singular_values"):
            found, right = getattr(fits, name)[s], getattr(expected, name)
            scale = np.abs(right).max()
            np.testing.assert_allclose(found, right, rtol=0, atol=30 * TOLERANCE[dtype] * scale, err_msg=name)


def test_solve_is_that_of_the_oracle(executor):
    """The kernel's own solution, before any repair: from well to ill conditioned."""
    rng = np.random.default_rng(4)
    library, points = rng.standard_normal((60, 4)), rng.standard_normal((24, 4))
    y = rng.standard_normal(60)
    engine = LocalFits(executor, library, y, np.arange(60), exclusion_radius=-1, dtype="float64")
    try:
        engine.fit(points, np.arange(24), np.zeros(1))
        padded = -(-24 // engine._align) * engine._align
        fits = held(engine, "fits", (engine.regressors + 4, padded), np.float64)[:, :24]
        packed = held(engine, "moments", (padded // engine._rows, engine._entries, engine._rows), np.float64)
    finally:
        engine.release()
    packed = np.moveaxis(packed, 1, 2).reshape(padded, engine._entries)[:24]
    gram = np.zeros((24, 5, 5))
    for b in range(5):
        for a in range(b + 1):
            gram[:, a, b] = gram[:, b, a] = packed[:, b * (b + 1) // 2 + a]
    np.testing.assert_allclose(fits[:5].T, oracle.solve(gram, packed[:, 15:20]), rtol=1e-9)
    # The least pivot bounds the reciprocal condition of the scaled matrix from above.
    scale = 1 / np.sqrt(np.einsum("nii->ni", gram))
    values = np.linalg.eigvalsh(gram * scale[:, None] * scale[:, :, None])
    assert (fits[5] > 0).all() and (fits[5] <= 1).all()
    assert (fits[5] >= values[:, 0] / values[:, -1] * (1 - 1e-9)).all()


def test_blocks_of_rows_change_nothing(executor, monkeypatch):
    case = problem(40, 2, seed=5)
    _, whole = fitted(executor, case, [0.0, 2.0])
    monkeypatch.setattr(room, "_MOST_MOMENTS", 16 * 12 * 2 * 8)
    engine, parts = fitted(executor, case, [0.0, 2.0])
    assert engine._block(2) < len(case[3])
    for name in ("predicted", "variance", "coefficients", "singular_values"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_contradictory_layouts_are_refused():
    values = {"coordinates": 2, "regressors": 3, "limited": False, "dtype": "float32"}
    values |= {"fma": "builtin", "minimum": "fmin"}
    sound = {"lanes": 16, "wg": 1, "tile": 64, "wide": 8, "chunk": 16, "parts": 1}
    assert "kernel" in source(spec("smap"), {**values, **sound})
    source(spec("smap"), {**values, **sound, "lanes": 4})
    for change, words in (({"tile": 0}, "one query row"), ({"wg": 64}, "single work-item"),
                          ({"wide": 3}, "parts of the lanes")):  # fmt: skip
        with pytest.raises(BuildError, match=words):
            source(spec("smap"), {**values, **sound, **change})
