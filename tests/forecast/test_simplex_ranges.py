"""Simplex among several columns, given coordinates, ranges, masks, and forecasts that feed themselves."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError


def columns(n, seed=0):
    x = naive.noisy_maps(3, n, seed).astype(np.float64)
    x[:, 1] = 100 + 7 * x[:, 1]
    x[:, 2] *= 0.01
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("Tp", [1, -2])
def test_given_coordinates(device, dtype, Tp):
    x = columns(160)
    x[[20, 77], [0, 2]] = np.nan
    goal = naive.noisy_maps(2, 160, 5)[:, 1].astype(np.float64)
    goal[90] = np.nan
    result = pyedmcl.simplex(x, target=goal, embedded=True, Tp=Tp, exclusion_radius=2, dtype=dtype, device=device)
    assert result.E == 3
    np.testing.assert_array_equal(result.time, np.arange(160) + Tp)
    expected = naive.predictions(x, goal, range(160), range(160), k=4, Tp=Tp, radius=2)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(result.predicted, expected[0], atol=tolerance)
    np.testing.assert_allclose(result.variance, expected[1], atol=10 * tolerance)
    assert result.rho == pytest.approx(naive.pearson(result.predicted, result.observed), abs=1e-6)


def test_several_embedded_columns_of_another_series(one_device):
    x, other = columns(140)[:, :2], columns(60, 3)[:, :2]
    goal = x[:, 1]
    result = pyedmcl.simplex(x, other, target=goal, E=2, tau=3, knn=6, device=one_device)

    def states(v):
        return np.column_stack([np.concatenate([np.full(e * 3, np.nan), v[: len(v) - e * 3, c]])
                                for c in range(2) for e in range(2)])  # fmt: skip

    expected = naive.predictions(states(x), goal, range(3, 60), range(140), k=6, Tp=1, own=False, asked=states(other))
    np.testing.assert_allclose(result.predicted, expected[0], atol=2e-5 * 50)
    assert np.isnan(result.observed).all()


def test_ranges_and_masks(one_device):
    x = naive.noisy_maps(1, 220, 2)[:, 0].astype(np.float64)
    valid = np.random.default_rng(1).random(220) < 0.7
    lib, pred = [(0, 60), (70, 130)], [(100, 150), (160, 200)]
    result = pyedmcl.simplex(x, E=2, tau=2, Tp=2, lib_range=lib, pred_range=pred, valid_lib=valid, device=one_device)
    library = [j for begin, end in lib for j in range(begin + 2, end - 2) if valid[j]]
    rows = np.array([t for begin, end in pred for t in range(begin, end)])
    states = np.column_stack([x, np.concatenate([np.full(2, np.nan), x[:-2]])])
    expected = naive.predictions(states, x, rows, library, k=3, Tp=2)
    np.testing.assert_array_equal(result.time, rows + 2)
    np.testing.assert_allclose(result.predicted, expected[0], atol=2e-5)
    np.testing.assert_allclose(result.variance, expected[1], atol=1e-4)
    np.testing.assert_array_equal(result.observed, x[rows + 2])


@pytest.mark.parametrize("radius", [0, 9])
def test_forecasts_that_feed_themselves(one_device, radius):
    x = naive.noisy_maps(1, 150, 4)[:, 0].astype(np.float64)
    E, tau, n, steps = 3, 2, 150, 12
    result = pyedmcl.simplex(x, E=E, tau=tau, generate_steps=steps, exclusion_radius=radius, dtype="float64",
                             lib_range=(0, 140), device=one_device)  # fmt: skip
    grown = x.copy()
    for step in range(steps):
        states = np.column_stack([np.concatenate([np.full(e * tau, np.nan), grown[: len(grown) - e * tau]])
                                  for e in range(E)])  # fmt: skip
        one = naive.predictions(states, grown, [n - 1 + step], range(4, 139), k=4, Tp=1, radius=radius)
        assert result.predicted[step] == pytest.approx(one[0, 0], abs=1e-12)
        grown = np.append(grown, result.predicted[step])
    of_paths = np.maximum.accumulate(np.nanmean(result.errors**2, axis=1))
    np.testing.assert_allclose(result.variance, of_paths, rtol=1e-12)
    np.testing.assert_array_equal(result.time, np.arange(n, n + steps))
    assert np.isnan(result.observed).all() and np.isnan(result.rho)


X = naive.noisy_maps(2, 80, 6)


@pytest.mark.parametrize(
    ("lib", "options", "words"),
    [
        (X, {"E": 2}, "target=None"),
        (X, {"target": X[:, 0], "embedded": True, "E": 3}, "E=3"),
        (X[:, 0], {}, "E=None"),
        (X[:, 0], {"E": 2, "lib_range": (0, 90)}, "lib_range"),
        (X[:, 0], {"E": 2, "pred_range": (0, 1)}, "pred_range"),
        (X[:, 0], {"E": 2, "valid_lib": np.zeros(80, bool)}, "valid_lib"),
        (X[:, 0], {"E": 2, "generate_steps": -1}, "generate_steps"),
        (X[:, 0], {"E": 2, "generate_steps": 3, "Tp": 2}, "generate_steps=3.*Tp=2"),
        (X[:, 0], {"E": 2, "generate_steps": 3, "target": X[:, 1]}, "target"),
        (X, {"E": 2, "generate_steps": 3, "target": X[:, 1]}, "generate_steps"),
        (X[:, 0], {"E": 2, "generate_steps": 3, "pred_range": (5, 9)}, "pred_range"),
        (X, {"E": 2, "target": X[:, 0], "pred": X[:, 0]}, "pred has 1 columns and lib 2"),
    ],
)
def test_bad_input_is_named(lib, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.simplex(lib, options.pop("pred", None), **options)
