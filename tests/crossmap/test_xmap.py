"""All-pairs cross mapping against the second opinion; what may not change a single bit; bad input."""

from __future__ import annotations

from functools import cache

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import DeviceNotFoundError, InputError

N = 7
MIXED = [3, 1, 10, 3, 20, 1, 3]
LENGTH = 257


def plain():
    return naive.noisy_maps(N, LENGTH, 1)


def gaps():
    """Gaps at different times, so that each pair has rows of its own."""
    x = naive.noisy_maps(N, LENGTH, 2)
    rng = np.random.default_rng(2)
    for i in (0, 2, 3):
        x[rng.choice(LENGTH, 3, replace=False), i] = np.nan
    x[100:105, 4] = np.nan
    return x


def ties():
    x = naive.noisy_maps(N, LENGTH, 3)
    x[:, :4] = np.random.default_rng(3).integers(0, 4, (LENGTH, 4))
    return x


def constant():
    x = naive.noisy_maps(N, LENGTH, 4)
    x[:, 3] = 0.1
    return x


DATA = {"plain": plain, "gaps": gaps, "ties": ties, "constant": constant}


@cache
def second_opinion(kind, E, Tp=0, exclusion_radius=0):
    return naive.xmap(DATA[kind](), E, Tp=Tp, exclusion_radius=exclusion_radius)


@cache
def of_length(n):
    x = naive.noisy_maps(3, n, n)
    return x, naive.xmap(x, 3)


@pytest.mark.filterwarnings("ignore:constant series")
@pytest.mark.parametrize("E", [3, tuple(MIXED)], ids=["E3", "mixed"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("plain", {}),
        ("plain", {"Tp": 1, "exclusion_radius": 5}),
        ("gaps", {"Tp": 3}),
        ("gaps", {"Tp": -2, "exclusion_radius": 5}),
        ("ties", {}),
        ("constant", {}),
    ],
)
def test_agrees_with_the_second_opinion(device, kind, options, E):
    x = DATA[kind]()
    result = pyedmcl.xmap(x, E=E, device=device, **options)
    assert result.rho.shape == (N, N)
    np.testing.assert_array_equal(result.E, np.broadcast_to(E, N))
    np.testing.assert_allclose(result.rho, second_opinion(kind, E, **options), rtol=0, atol=1e-5)
    if kind == "constant":
        assert np.isnan(result.rho[:, 3]).all(), "nothing can be said of a constant target"


def test_lag_and_neighbour_count(one_device):
    x = naive.noisy_maps(4, 400, 5)
    for E, tau, knn in ((3, 3, None), (3, 1, 64)):
        result = pyedmcl.xmap(x, E=E, tau=tau, knn=knn, device=one_device)
        np.testing.assert_allclose(result.rho, naive.xmap(x, E, tau=tau, k=knn), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [33, 100, 1000, 1601])
def test_ragged_lengths(device, n):
    x, expected = of_length(n)
    np.testing.assert_allclose(pyedmcl.xmap(x, E=3, device=device).rho, expected, rtol=0, atol=1e-5)


def test_rows_are_libraries_and_dimension_is_the_targets(one_device):
    x = plain()[:, :2]
    rho = pyedmcl.xmap(x, E=[1, 3], Tp=1, device=one_device).rho
    for library, target, E in ((0, 1, 3), (1, 0, 1), (0, 0, 1)):
        alone = pyedmcl.simplex(x[:, library], target=x[:, target], E=E, Tp=1, device=one_device).rho
        assert rho[library, target] == pytest.approx(alone, abs=2e-6)


def test_column_order_does_not_change_a_bit(device):
    x = gaps()
    order = np.array([4, 0, 6, 2, 1, 5, 3])
    straight = pyedmcl.xmap(x, E=MIXED, device=device)
    shuffled = pyedmcl.xmap(x[:, order], E=list(np.array(MIXED)[order]), device=device)
    np.testing.assert_array_equal(shuffled.rho, straight.rho[np.ix_(order, order)])


@pytest.mark.parametrize("kept", [[0], [2, 4], [6, 5, 3, 1, 0]], ids=str)
def test_number_of_series_does_not_change_a_bit(device, kept):
    whole = pyedmcl.xmap(gaps(), E=MIXED, device=device)
    part = pyedmcl.xmap(gaps()[:, kept], E=[MIXED[i] for i in kept], device=device)
    np.testing.assert_array_equal(part.rho, whole.rho[np.ix_(kept, kept)])


def test_many_series_hold_the_few(device):
    many = naive.noisy_maps(45, 100, 6)
    whole = pyedmcl.xmap(many, E=3, device=device).rho
    part = pyedmcl.xmap(many[:, 17:20], E=3, device=device).rho
    np.testing.assert_array_equal(part, whole[17:20, 17:20])
    np.testing.assert_allclose(part, naive.xmap(many[:, 17:20], 3), rtol=0, atol=1e-5)


def test_repeated_runs_are_the_same(device):
    first, second = (pyedmcl.xmap(plain(), E=3, device=device).rho for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_float64(device):
    x = gaps()[:, :4].astype(np.float64) + 1e-9
    result = pyedmcl.xmap(x, E=[3, 1, 3, 10], Tp=1, dtype="float64", device=device)
    np.testing.assert_allclose(result.rho, naive.xmap(x, [3, 1, 3, 10], Tp=1), rtol=0, atol=1e-10)


def test_float32_arithmetic_survives_an_offset(one_device):
    x = np.round(plain() * 512) / np.float32(512)  # exact in float32 at 1e4
    still, moved = (pyedmcl.xmap(x + np.float32(offset), E=3, device=one_device).rho for offset in (0, 1e4))
    assert np.nanmax(still) > 0.3
    np.testing.assert_allclose(moved, still, rtol=0, atol=1e-4)


def test_offset_of_float64_data_does_not_cost_accuracy(one_device):
    x = plain().astype(np.float64)
    still, moved = (pyedmcl.xmap(x + offset, E=3, device=one_device).rho for offset in (0.0, 1e4))
    np.testing.assert_allclose(moved, still, rtol=0, atol=1e-4)
    exact = [pyedmcl.xmap(x[:, :2] + offset, E=3, dtype="float64", device=one_device).rho for offset in (0.0, 1e4)]
    np.testing.assert_allclose(exact[1], exact[0], rtol=0, atol=1e-10)


def test_automatic_dimension_is_that_of_embed_dimension(one_device):
    x = naive.noisy_maps(3, 150, 7)
    E = pyedmcl.embed_dimension(x, device=one_device).E
    automatic = pyedmcl.xmap(x, device=one_device)
    np.testing.assert_array_equal(automatic.E, E)
    np.testing.assert_array_equal(automatic.rho, pyedmcl.xmap(x, E=list(E), device=one_device).rho)


def test_driver_is_found(one_device):
    """x drives y, so that y as the library maps x better than x maps y."""
    x, y = 0.4, 0.2
    steps = []
    for _ in range(700):
        x, y = x * (3.8 - 3.8 * x), y * (3.5 - 3.5 * y - 0.3 * x)
        steps.append((x, y))
    rho = pyedmcl.xmap(np.array(steps[100:]), E=3, device=one_device).rho
    assert rho[1, 0] > 0.9
    assert rho[1, 0] - rho[0, 1] > 0.2


def test_names_are_kept(one_device):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x = plain()
    names = ["north", "south", "east", "west", "up", "down", "here"]
    named = pyedmcl.xmap(pandas.DataFrame(x, columns=names), E=3, device=one_device)
    assert list(named.names) == names
    np.testing.assert_array_equal(named.rho, pyedmcl.xmap(x, E=3, device=one_device).rho)


def bad(row, column, value):
    x = plain()
    x[row, column] = value
    return x


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (plain(), {"E": 0}, r"\bE\b"),
        (plain(), {"E": [3, 3]}, rf"(?s)\bE\b.*\b2\b.*\b{N}\b|\bE\b.*\b{N}\b.*\b2\b"),
        (plain(), {"E": [3, 1, 0, 3, 3, 3, 3]}, r"\bE\b.*\b0\b"),
        (plain(), {"E": "best"}, r"(?s)auto"),
        (plain(), {"E": 3, "tau": 0}, r"\btau\b"),
        (plain(), {"E": 3, "knn": 0}, r"\bknn\b"),
        (plain(), {"E": 3, "Tp": 0.5}, r"\bTp\b"),
        (plain(), {"E": 3, "exclusion_radius": -1}, r"exclusion_radius"),
        (plain(), {"E": 3, "dtype": "float16"}, r"float32"),
        (bad(200, 5, np.inf), {"E": 3}, r"(?s)x5.*\b200\b"),
        (bad(0, 2, -np.inf), {"E": 3}, r"(?s)x2.*\b0\b"),
        (plain()[:20], {"E": 10, "tau": 3}, r"\b(2[89]|3\d|4[01])\b"),
        (np.zeros((30, 4, 2), np.float32), {"E": 3}, r"(?i)shape"),
        ({"temperature": [1.0, 2.0] * 20, "station": ["a", "b"] * 20}, {"E": 1}, r"station"),
    ],
)
def test_bad_input_is_refused_with_the_reason(x, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.xmap(x, **options)


def test_unknown_device_lists_those_there(one_device):
    from pyedmcl.device.select import discover

    with pytest.raises(DeviceNotFoundError) as caught:
        pyedmcl.xmap(plain(), E=3, device="no such device")
    assert "no such device" in str(caught.value)
    assert all(info.name in str(caught.value) for info in discover())


def test_constant_predictions_have_no_skill(one_device):
    """Nor has a constant library, whose states all tie."""
    n = 64
    library, target = np.zeros(n, np.float32), np.full(n, 0.7, np.float32)
    target[:2] = 0.1  # no embedded rows: never predicted from
    x = np.stack([library, target, naive.noisy_maps(1, n, 3)[:, 0]], axis=1)
    with pytest.warns(RuntimeWarning, match="constant"):
        rho = pyedmcl.xmap(x, E=2, tau=2, knn=3, device=one_device).rho
    expected = naive.xmap(x.astype(np.float64), 2, tau=2, k=3)
    np.testing.assert_array_equal(np.isnan(rho), np.isnan(expected))


def test_a_radius_beyond_the_series_leaves_no_neighbours(one_device):
    x = plain()
    assert np.isnan(pyedmcl.xmap(x, E=2, exclusion_radius=10**12, device=one_device).rho).all()
