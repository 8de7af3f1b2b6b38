"""Simplex projection against the second opinion: predictions, variance, skill, gaps, targets and bad input."""

from __future__ import annotations

from functools import cache

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.reference import knn_float32_exact

# (E, tau, knn) shared by all tests, so that each device compiles few kernels.
COMBOS = [(3, 1, None), (3, 1, 64), (10, 3, None)]


def noise(n, seed):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def with_gaps(x, seed):
    x = x.copy()
    x[np.random.default_rng(seed).choice(len(x), max(1, len(x) // 60), replace=False)] = np.nan
    return x


CASES = {
    "maps": lambda: (naive.noisy_maps(1, 1000, 1)[:, 0], {}),
    "ragged": lambda: (naive.noisy_maps(1, 257, 2)[:, 0], {"Tp": 3, "exclusion_radius": 5}),
    "negative-Tp": lambda: (naive.noisy_maps(1, 257, 3)[:, 0], {"Tp": -2}),
    "Tp-zero": lambda: (naive.noisy_maps(1, 1601, 4)[:, 0], {"Tp": 0}),
    "gaps": lambda: (with_gaps(naive.noisy_maps(1, 600, 5)[:, 0], 5), {"exclusion_radius": 5}),
    "ties": lambda: (np.random.default_rng(6).integers(0, 4, 1000).astype(np.float32), {}),
    "few-legal": lambda: (noise(150, 7), {"exclusion_radius": 60}),
    "offset": lambda: ((noise(600, 8).astype(np.float64) + 1e4).astype(np.float32), {}),
    "target": lambda: (naive.noisy_maps(2, 400, 9)[:, 0],
                       {"target": with_gaps(naive.noisy_maps(2, 400, 9)[:, 1], 9), "Tp": 1}),
    "pred": lambda: (naive.noisy_maps(1, 400, 10)[:, 0], {"pred": with_gaps(noise(257, 11), 11)}),
    "pred-target": lambda: (naive.noisy_maps(2, 400, 12)[:, 0],
                            {"pred": noise(130, 13), "target": naive.noisy_maps(2, 400, 12)[:, 1], "Tp": -2}),
}  # fmt: skip


@cache
def second_opinion(case, E, tau, knn):
    """The whole answer, and predictions and variance from the neighbours that float32 finds."""
    lib, options = CASES[case]()
    target, Tp = options.get("target"), options.get("Tp", 1)
    # Which of two neighbours that tie within rounding is taken is the kernels' to say.
    squared, rows = knn_float32_exact(lib, E=E, tau=tau, k=knn, Tp=Tp, query=options.get("pred"), target=target,
                                      exclusion_radius=options.get("exclusion_radius", 0))  # fmt: skip
    near = naive.predict(rows, np.sqrt(squared.astype(np.float64)), lib if target is None else target, Tp)
    return naive.simplex(lib, E=E, tau=tau, k=knn, **options), *(values[(E - 1) * tau :] for values in near)


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize(("E", "tau", "knn"), COMBOS)
def test_agrees_with_the_second_opinion(device, E, tau, knn, case):
    lib, options = CASES[case]()
    result = pyedmcl.simplex(lib, E=E, tau=tau, knn=knn, device=device, **options)
    expected, predicted, variance = second_opinion(case, E, tau, knn)
    np.testing.assert_array_equal(result.time, expected["time"])
    np.testing.assert_array_equal(np.asarray(result.observed, np.float32), expected["observed"].astype(np.float32))
    source = options.get("target", lib)
    size = np.nanmax(np.abs(source))
    spread = np.nanmax(source) - np.nanmin(source)
    np.testing.assert_allclose(result.predicted, predicted, rtol=0, atol=1e-6 * size + 5e-6 * spread)
    # The mean enters the variance, so that its rounding does too.
    np.testing.assert_allclose(result.variance, variance, rtol=0,
                               atol=1e-5 * spread**2 + 4 * spread * 1e-6 * (size - spread / 2))  # fmt: skip
    assert np.isfinite(result.predicted).sum() > 0
    for name in ("rho", "mae", "rmse"):
        np.testing.assert_allclose(getattr(result, name), expected[name], rtol=0, atol=2e-5 * max(1.0, spread),
                                   equal_nan=True, err_msg=name)  # fmt: skip


@pytest.mark.parametrize(("E", "tau"), [(3, 1), (10, 3)])
@pytest.mark.parametrize("case", list(CASES))
def test_float64(device, E, tau, case):
    lib, options = CASES[case]()
    lib = lib.astype(np.float64) + (0 if case == "ties" else 1e-9 * np.arange(len(lib)))
    result = pyedmcl.simplex(lib, E=E, tau=tau, dtype="float64", device=device, **options)
    expected = naive.simplex(lib, E=E, tau=tau, **options)
    for name, value in expected.items():
        scale = np.nanmax(np.abs(lib)) if name in ("predicted", "observed") else 1.0
        np.testing.assert_allclose(getattr(result, name), value, rtol=1e-10, atol=1e-10 * scale, err_msg=name)


@pytest.mark.parametrize("n", [5, 6, 7, 17, 33, 63, 64, 65, 100])
def test_short_series(one_device, n):
    x = naive.noisy_maps(1, n + 3, n)[:n, 0]
    result, expected = (f(x, E=1) for f in (lambda x, E: pyedmcl.simplex(x, E=E, device=one_device), naive.simplex))
    np.testing.assert_allclose(result.predicted, expected["predicted"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(result.rho, expected["rho"], rtol=0, atol=1e-5)


def test_skill_is_that_of_its_own_columns(one_device):
    result = pyedmcl.simplex(with_gaps(naive.noisy_maps(1, 400, 20)[:, 0], 20), E=3, device=one_device)
    assert result.rho == pytest.approx(naive.pearson(result.observed, result.predicted), abs=1e-6)
    error = (np.asarray(result.predicted, np.float64) - result.observed)
    assert result.mae == pytest.approx(np.nanmean(np.abs(error)), rel=1e-5)
    assert result.rmse == pytest.approx(np.sqrt(np.nanmean(error**2)), rel=1e-5)


def test_zero_distance_takes_all_the_weight(one_device):
    x = np.tile(np.array([0, 1, 2, 3, 4], np.float32), 12)
    result = pyedmcl.simplex(x, E=3, Tp=1, device=one_device)
    np.testing.assert_array_equal(result.predicted[:-1], x[3:])
    np.testing.assert_array_equal(result.variance, 0)
    assert result.rho == pytest.approx(1.0, abs=1e-7)


def test_constant_series_has_no_skill_and_no_crash(one_device):
    x = np.full(130, 0.1, np.float32)
    with pytest.warns(RuntimeWarning, match="constant series, whose rho is NaN: 'lib'"):
        result = pyedmcl.simplex(x, E=3, device=one_device)
    assert np.isnan(result.rho)
    np.testing.assert_allclose(result.predicted, 0.1, rtol=1e-6)
    assert result.mae == pytest.approx(0, abs=1e-7)


def test_no_legal_neighbour_gives_nan(one_device):
    result = pyedmcl.simplex(noise(100, 21), E=3, exclusion_radius=100, device=one_device)
    assert np.isnan(result.predicted).all() and np.isnan(result.variance).all()
    assert np.isnan(result.rho) and np.isnan(result.mae) and np.isnan(result.rmse)


def test_float32_arithmetic_survives_an_offset(one_device):
    # Multiples of 2^-9 stay exact in float32 at 1e4, so that nothing but the arithmetic can move rho.
    x = np.round(naive.noisy_maps(1, 1000, 22)[:, 0] * 512) / np.float32(512)
    plain = pyedmcl.simplex(x, E=3, device=one_device)
    moved = pyedmcl.simplex(x + np.float32(1e4), E=3, device=one_device)
    assert plain.rho > 0.5
    assert abs(moved.rho - plain.rho) < 1e-4
    np.testing.assert_allclose(moved.predicted - 1e4, plain.predicted, atol=5e-3)


def test_offset_of_float64_data_does_not_cost_accuracy(one_device):
    # Rounding x + 1e4 to float32 as it is would alone move rho by some 1e-3: it has to be centred before.
    x = naive.noisy_maps(1, 1000, 23)[:, 0].astype(np.float64)
    plain, moved = (pyedmcl.simplex(x + offset, E=3, device=one_device) for offset in (0.0, 1e4))
    assert abs(moved.rho - plain.rho) < 1e-4
    np.testing.assert_allclose(moved.predicted - 1e4, plain.predicted, atol=5e-3)
    exact = [pyedmcl.simplex(x + offset, E=3, dtype="float64", device=one_device).rho for offset in (0.0, 1e4)]
    assert abs(exact[1] - exact[0]) < 1e-10


def test_frame(one_device):
    pytest.importorskip("pandas", reason="pandas is not installed")
    result = pyedmcl.simplex(naive.noisy_maps(1, 100, 24)[:, 0], E=3, device=one_device)
    frame = result.to_frame()
    assert len(frame) == 98
    for name in ("time", "observed", "predicted", "variance"):
        np.testing.assert_array_equal(frame[name].to_numpy(), getattr(result, name))


def test_circle(one_device, published_series):
    x = published_series("circle.csv", "x")
    result = pyedmcl.simplex(x, E=3, device=one_device)
    assert result.rho > 0.9999
    assert result.rho == pytest.approx(naive.simplex(x, E=3)["rho"], abs=1e-6)


SERIES = noise(100, 30)
INFINITE = SERIES.copy()
INFINITE[41] = -np.inf


@pytest.mark.parametrize(
    ("lib", "options", "words"),
    [
        (SERIES, {"E": 0}, r"\bE\b"),
        (SERIES, {"E": 3, "tau": -1}, r"\btau\b"),
        (SERIES, {"E": 3, "knn": 0}, r"\bknn\b"),
        (SERIES, {"E": 3, "Tp": 1.5}, r"\bTp\b"),
        (SERIES, {"E": 3, "exclusion_radius": -1}, r"exclusion_radius"),
        (SERIES, {"E": 3, "dtype": "int32"}, r"float32"),
        (SERIES, {"E": 3, "target": SERIES[:-1]}, r"(?s)target.*\b99\b.*\b100\b|target.*\b100\b.*\b99\b"),
        (SERIES, {"E": 3, "target": INFINITE}, r"(?i)target.*\b41\b"),
        (SERIES, {"E": 3, "pred": INFINITE}, r"(?i)pred.*\b41\b"),
        (INFINITE, {"E": 3}, r"(?i)inf.*\b41\b"),
        (np.zeros((100, 2), np.float32), {"E": 3}, r"(?i)one series|1-D|shape|\b2 series"),
        (["north", "south"] * 20, {"E": 3}, r"(?i)numeric|numbers"),
        (noise(20, 31), {"E": 10, "tau": 3}, r"(?s)\b(2[89]|3\d|4[01])\b"),
    ],
)
def test_bad_input_is_refused_with_the_reason(lib, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.simplex(lib, **options)
