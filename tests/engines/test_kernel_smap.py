"""S-map's kernels against their oracles: scales, moments and fits, for every layout."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from smap_helpers import between_rows

from pyedmcl.device.select import open_device
from pyedmcl.engines import smap_device
from pyedmcl.engines.smap import LocalFits
from pyedmcl.engines.smap_device import basis_of
from pyedmcl.errors import BuildError
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import source
from pyedmcl.reference import edm as oracle
from pyedmcl.tuning.parameters import using

TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


@pytest.fixture
def executor(device):
    return open_device(device)


def fitted(executor, case, thetas, **options):
    library, y, rows, points, at = case
    engine = LocalFits(executor, library, y, rows, **{"exclusion_radius": 0, **options})
    try:
        return engine, engine.fit(points, at, np.asarray(thetas, float), singular_values=True)
    finally:
        engine.release()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("knn", [None, 1, 7, 60])
@pytest.mark.parametrize("radius", [-1, 0, 9])
def test_scales(executor, dtype, knn, radius):
    library, y, rows, points, at = between_rows(61, 3)
    engine = LocalFits(executor, library, y, rows, exclusion_radius=radius, knn=knn, dtype=dtype)
    try:
        engine.fit(points, at, np.zeros(1))
        n = len(at)
        nearest, rate, count = (engine.device.get(name, (n,), dt) for name, dt in
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
    # Coordinates of eight points: nearly all distances tie.
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (90, 3)).astype(float), rng.standard_normal(90)
    rows = np.arange(90)
    _, fits = fitted(executor, (x, y, rows, x, rows), [0.0], knn=knn)
    for t in range(90):
        order = np.lexsort((rows, ((x - x[t]) ** 2).sum(axis=1)))
        near = order[order != t][:knn]
        a = np.column_stack([np.ones(len(near)), x[near]])
        c = np.linalg.lstsq(a, y[near], rcond=None)[0]
        assert fits.predicted[0, t] == pytest.approx(c[0] + c[1:] @ x[t], abs=1e-9), t


CPU_LAYOUTS = [{**layout, "wg": 1} for layout in (
    {"lanes": 16, "tile": 64, "wide": 8, "chunk": 16}, {"lanes": 16, "tile": 32, "wide": 4, "chunk": 8},
    {"lanes": 8, "tile": 64, "wide": 8, "chunk": 24}, {"lanes": 4, "tile": 32, "wide": 4, "chunk": 12},
    {"lanes": 1, "tile": 64, "wide": 1, "chunk": 20, "parts": 4}, {"lanes": 16, "tile": 64, "wide": 8, "parts": 3},
)]  # fmt: skip
GPU_LAYOUTS = [{"lanes": 1, "tile": 0, "wide": 1, "wg": wg, "parts": parts} for wg, parts in ((1, 1), (64, 4), (32, 2))]


SHARED_LAYOUTS = [
    {"wg": 256, "lanes_p": 32, "sub_p": 8, "rq": 8, "rp": 8, "tile": 16, "parts": 16},
    {"wg": 64, "lanes_p": 32, "sub_p": 32, "rq": 4, "rp": 8, "tile": 8, "parts": 1},
    {"wg": 128, "lanes_p": 16, "sub_p": 16, "rq": 2, "rp": 4, "tile": 32, "parts": 2},
    {"wg": 64, "lanes_p": 8, "sub_p": 4, "rq": 8, "rp": 6, "tile": 16, "parts": 16},
]


LAYOUTS = [*product(CPU_LAYOUTS + GPU_LAYOUTS, (1, 9)), *product(SHARED_LAYOUTS, (3, 9))]


class MomentsFoundError(Exception):
    """They are all that a test needs: each layout would compile a text of its own to solve the systems."""


@pytest.mark.parametrize(("layout", "dims"), LAYOUTS, ids=str)
def test_every_layout_gives_the_moments(executor, monkeypatch, layout, dims):
    library, y, rows, points, at = between_rows(45, dims, seed=2)
    thetas = [0.0, 1.5, 6.0]
    shared = "rq" in layout

    def stop(*given):
        raise MomentsFoundError

    monkeypatch.setattr(smap_device.Sweeps, "_solved", stop)
    # Matrix units, which prescribe a layout: test_smap_units.py.
    real = smap_device.quirks_for
    monkeypatch.setattr(smap_device, "quirks_for", lambda info: replace(real(info), matrix_units=False))
    with using(
        smap={"share_from": 2} if shared else {"share_from": 48, **layout}, smap_shared=layout if shared else {}
    ):
        engine = LocalFits(executor, library, y, rows, exclusion_radius=2, dtype="float64")
        try:
            engine.device.units = 13  # of these tiles some are cut into parts
            with pytest.raises(MomentsFoundError):
                engine.fit(points, at, np.array(thetas))
            assert engine.device.layout == ("shared" if shared else "lanes")
            found = engine.device.moments(len(at), 3, engine.device.layout)
        finally:
            engine.release()
    basis = basis_of(library, y)
    aim = (y - basis.target_shift) / basis.target_scale
    for t in range(0, len(at), 7):
        legal = np.abs(rows - at[t]) > 2
        d = np.sqrt(((library[legal] - points[t]) ** 2).sum(axis=1))
        z = basis.regressors(library[legal]) - (0 if shared else basis.regressors(points[t : t + 1]))
        for s, theta in enumerate(thetas):
            w = np.exp(-theta * (d - d.min()) / d.mean())
            expected = oracle.moments(z, aim[legal], w)
            largest = np.abs(expected).max()
            np.testing.assert_allclose(found[s, t], expected, rtol=1e-11, atol=1e-11 * largest)


@pytest.mark.parametrize(("dims", "layout"), [(3, "lanes"), (9, "lanes"), (9, "shared")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"knn": 40}, {"alpha": 0.7}, {"exclusion_radius": 11}], ids=str)
def test_fits_are_those_of_singular_values(executor, dims, layout, dtype, options):
    case = between_rows(80, dims, seed=3)
    thetas = [0.0, 0.3, 4.0]
    with using(smap={"share_from": 4 if layout == "shared" else 48}):
        engine, fits = fitted(executor, case, thetas, dtype=dtype, **options)
    assert engine.device.layout == layout
    for s, theta in enumerate(thetas):
        expected = oracle.smap_rows(*case, theta, **{"exclusion_radius": 0, **options})
        for name in ("predicted", "variance", "coefficients", "singular_values"):
            found, right = getattr(fits, name)[s], getattr(expected, name)
            scale = np.abs(right).max()
            np.testing.assert_allclose(found, right, rtol=0, atol=30 * TOLERANCE[dtype] * scale, err_msg=name)


@pytest.mark.parametrize("layout", ["lanes", "shared"])
def test_solve_is_that_of_the_oracle(executor, layout):
    """The kernel's own solution, before any repair, and how far it may be off."""
    rng = np.random.default_rng(4)
    library, points = rng.standard_normal((60, 3)), rng.standard_normal((24, 3))
    y = rng.standard_normal(60)
    with using(smap={"share_from": 4}):
        engine = LocalFits(executor, library, y, np.arange(60), exclusion_radius=-1, dtype="float64")
    try:
        engine.device.pool.put("thetas", np.zeros(1))
        solved = engine.device.run(points, np.arange(24), 1, layout)
        packed = engine.device.moments(24, 1, layout)[0]
    finally:
        engine.release()
    gram = np.zeros((24, 4, 4))
    for b in range(4):
        for a in range(b + 1):
            gram[:, a, b] = gram[:, b, a] = packed[:, b * (b + 1) // 2 + a]
    fits, basis = oracle.solve(gram, packed[:, 10:14]), engine.basis
    z = basis.regressors(points) if layout == "shared" else np.zeros((24, 3))
    inner = fits[:, 0] + (fits[:, 1:] * z).sum(axis=1)
    slopes = basis.target_scale * fits[:, 1:] @ basis.map.T
    predicted = basis.target_shift + basis.target_scale * inner
    np.testing.assert_allclose(solved.predicted[0], predicted, rtol=1e-9)
    np.testing.assert_allclose(solved.coefficients[0, :, 1:], slopes, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solved.coefficients[0, :, 0], predicted - (slopes * points).sum(axis=1), rtol=1e-9)
    # How far the prediction moves at most when the scaled system does by one unit.
    scale = 1 / np.sqrt(np.einsum("nii->ni", gram))
    inverse = np.linalg.inv(gram * scale[:, None] * scale[:, :, None])
    right = packed[:, 10:14] * scale
    size = np.abs(fits / scale).sum(axis=1) + np.abs(right).max(axis=1)
    row = np.einsum("nij,nj->ni", inverse, np.column_stack([np.ones(24), z]) * scale)
    np.testing.assert_allclose(solved.doubt[0], np.abs(row).sum(axis=1) * size, rtol=1e-8)


def test_blocks_of_rows_change_nothing(executor, monkeypatch):
    case = between_rows(40, 3, seed=5)
    engine, whole = fitted(executor, case, [0.0, 2.0])
    device = engine.device
    least = device.tiling(device.align("lanes"), 2, "lanes")  # the fewest rows that are computed together
    monkeypatch.setattr(smap_device, "_MOST_MOMENTS", least.slots * least.rows * device.entries * 2 * 8)
    engine, parts = fitted(executor, case, [0.0, 2.0])
    assert engine.device.block("lanes", 2) < len(case[3])
    for name in ("predicted", "variance", "coefficients", "singular_values"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_many_coordinates(executor):
    """Beyond what a program can spell out, and with less local memory than a tile would like."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((150, 60)) + 1.0
    case = x, x @ rng.standard_normal(60) + rng.standard_normal(150), np.arange(150), x[:20], np.arange(20)
    engine, fits = fitted(executor, case, [0.0, 1.0], dtype="float64")
    assert engine.device.layout == "shared"
    for s, theta in enumerate((0.0, 1.0)):
        expected = oracle.smap_rows(*case, theta)
        np.testing.assert_allclose(fits.predicted[s], expected.predicted, atol=1e-6)
        np.testing.assert_allclose(fits.coefficients[s], expected.coefficients, atol=1e-5)


def test_contradictory_layouts_are_refused():
    values = {"coordinates": 2, "regressors": 3, "limited": False, "dtype": "float32"}
    values |= {"fma": "builtin", "minimum": "fmin"}
    sound = {"lanes": 16, "wg": 1, "tile": 64, "wide": 8, "chunk": 16, "parts": 1, "share_from": 48}
    assert "kernel" in source(spec("smap"), {**values, **sound})
    source(spec("smap"), {**values, **sound, "lanes": 4})
    for change, words in (({"tile": 0}, "one query row"), ({"wg": 64}, "single work-item"),
                          ({"wide": 3}, "parts of the lanes")):  # fmt: skip
        with pytest.raises(BuildError, match=words):
            source(spec("smap"), {**values, **sound, **change})


@pytest.mark.parametrize("share_from", [4, 48])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float64", 2e-7)])
def test_near_singular_neighbourhoods_are_noticed(executor, dtype, tolerance, share_from):
    """Rows nearly on a line, few neighbours: what is not repaired must be right all the same."""
    rng = np.random.default_rng(6)
    along = rng.standard_normal(120)
    for flatness in (1e-3, 1e-6, 1e-9):
        x = np.column_stack([along, along**2 + 1e-2 * along, np.sin(along)]) + flatness * rng.standard_normal((120, 3))
        y = np.cos(along)
        case = x, y, np.arange(120), x, np.arange(120)
        for knn in (None, 6):
            for theta in (0.0, 20.0):
                with using(smap={"share_from": share_from}):
                    _, fits = fitted(executor, case, [theta], knn=knn, dtype=dtype)
                expected = oracle.smap_rows(*case, theta, exclusion_radius=0, knn=knn)
                np.testing.assert_allclose(fits.predicted[0], expected.predicted, rtol=0, atol=tolerance * np.ptp(y))
