"""Best embedding dimension: skill per E against the second opinion, one series or many at once."""

from __future__ import annotations

from functools import cache

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError

E_MAX = 6  # a kernel per E and device is compiled: six show what twenty would


def best_by_rule(rho):
    """Highest rho, the smaller E on ties, 1 where there is none."""
    return 1 if np.isnan(rho).all() else int(np.nanargmax(rho)) + 1


@cache
def mixed_series():
    x = naive.noisy_maps(7, 300, 1)
    x[:, 1] = naive.coupled_maps(7, 300, 2)[:, 3]
    x[:, 2] = np.random.default_rng(3).integers(0, 4, 300)
    x[:, 3] = np.sin(np.arange(300) * 0.37)
    x[40:44, 4] = np.nan
    x[:, 5] = 2.5
    x[:, 6] += np.float32(100)
    return x


@pytest.fixture
def table():
    return mixed_series().copy()


@cache
def second_opinion(**options):
    return [naive.embed_dimension(x, E_max=E_MAX, **options)[1] for x in mixed_series().T]


@pytest.mark.parametrize("options", [{}, {"Tp": 3, "exclusion_radius": 5}, {"Tp": -2}], ids=str)
def test_all_series_at_once(one_device, table, options):
    result = pyedmcl.embed_dimension(table, E_max=E_MAX, device=one_device, **options)
    assert result.rho.shape == (7, E_MAX)
    assert np.asarray(result.E).shape == (7,) and np.issubdtype(np.asarray(result.E).dtype, np.integer)
    for i in range(7):
        rho = second_opinion(**options)[i]
        np.testing.assert_allclose(result.rho[i], rho, rtol=0, atol=2e-5, err_msg=f"series {i}")
        assert result.E[i] == best_by_rule(np.asarray(result.rho[i]))
    assert np.isnan(result.rho[5]).all() and result.E[5] == 1, "a constant series has no skill"


def test_alone_or_among_others_is_the_same(one_device, table):
    together = pyedmcl.embed_dimension(table, E_max=E_MAX, device=one_device)
    for i in (0, 2, 4):
        alone = pyedmcl.embed_dimension(table[:, i], E_max=E_MAX, device=one_device)
        assert isinstance(alone.E, (int, np.integer)) and together.E[i] == alone.E
        assert alone.rho.shape == (E_MAX,)
        np.testing.assert_array_equal(alone.rho, together.rho[i])


def test_each_dimension_starts_at_its_own_first_row(one_device, table):
    x = table[:, 0]
    result = pyedmcl.embed_dimension(x, E_max=3, tau=3, device=one_device)
    for E in (1, 2, 3):
        assert result.rho[E - 1] == pytest.approx(naive.simplex(x, E=E, tau=3)["rho"], abs=1e-5)


def test_equals_simplex_of_each_dimension(one_device, table):
    rho = pyedmcl.embed_dimension(table[:, 0], E_max=E_MAX, device=one_device).rho
    single = [pyedmcl.simplex(table[:, 0], E=E, device=one_device).rho for E in range(1, E_MAX + 1)]
    np.testing.assert_allclose(rho, single, rtol=0, atol=2e-6)


def test_float64(device, table):
    x = table[:, :5].astype(np.float64)
    result = pyedmcl.embed_dimension(x, E_max=3, dtype="float64", device=device)
    for i in range(5):
        best, rho = naive.embed_dimension(x[:, i], E_max=3)
        np.testing.assert_allclose(result.rho[i], rho, rtol=0, atol=1e-10)
        assert result.E[i] == best


def test_ties_go_to_the_smaller_dimension(one_device):
    x = np.tile(np.array([0, 1, 2, 3, 4], np.float32), 30)  # every E predicts it to the last bit
    result = pyedmcl.embed_dimension(x, E_max=3, device=one_device)
    np.testing.assert_allclose(result.rho, 1, atol=1e-6)
    assert best_by_rule(np.asarray(result.rho)) == result.E


def test_lorenz(one_device, published_series):
    x = published_series("LorenzData1000.csv", "V1")
    result = pyedmcl.embed_dimension(x, E_max=E_MAX, device=one_device)
    best, rho = naive.embed_dimension(x, E_max=E_MAX)
    np.testing.assert_allclose(result.rho[1:], rho[1:], rtol=0, atol=1e-5)
    # Values of four decimals tie by the hundred at E = 1; which of them is nearer only rounding says.
    assert result.rho[0] == pytest.approx(rho[0], abs=5e-4)
    assert best == result.E


@pytest.mark.parametrize(
    ("options", "words"),
    [({"E_max": 0}, r"\bE_max\b"), ({"tau": 0}, r"\btau\b"), ({"Tp": 0.5}, r"\bTp\b"), ({"knn": 0}, r"\bknn\b"),
     ({"exclusion_radius": -2}, r"exclusion_radius"), ({"E_max": 1000}, r"x: E_max=1000, .*use a smaller E_max")],
)  # fmt: skip
def test_bad_parameters_are_named(table, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.embed_dimension(table, **options)


def test_infinite_value_is_named_by_series_and_row(table):
    bad = table.copy()
    bad[123, 4] = np.inf
    with pytest.raises(InputError, match=r"(?s)x4.*\b123\b"):
        pyedmcl.embed_dimension(bad)


CHOSEN = [
    {"lib_range": (0, 150), "pred_range": (150, 300)},
    {"lib_range": [(0, 70), (120, 200)], "pred_range": [(60, 130), (250, 300)], "Tp": -2, "exclusion_radius": 3},
    {"valid_lib": np.arange(300) % 3 > 0, "knn": 4, "tau": 2},
    {"lib_range": np.arange(300) % 7 > 1, "pred_range": np.arange(300) % 2 == 0, "Tp": 0},
]


@pytest.mark.parametrize("options", CHOSEN, ids=lambda o: "-".join(o))
def test_chosen_rows_are_those_of_simplex(one_device, table, options):
    """Gaps (series 4) and a constant (series 5) included."""
    x = table[:, 3:6].astype(np.float64)
    target = table[:, 0].astype(np.float64) if options.get("Tp") == 0 else None
    found = pyedmcl.embed_dimension(x, target=target, E_max=3, dtype="float64", device=one_device, **options)
    for i in range(3):
        for E in (1, 2, 3):
            one = pyedmcl.simplex(x[:, i], target=target, E=E, dtype="float64", device=one_device, **options)
            np.testing.assert_equal(found.rho[i, E - 1], one.rho)
        assert found.E[i] == best_by_rule(found.rho[i])
    assert np.isnan(found.rho[2]).all()


def test_disjoint_ranges_by_hand(one_device, table):
    """Library and predicted rows of each E by the slow definition, never sharing a target."""
    x = table[:, 0].astype(np.float64)
    found = pyedmcl.embed_dimension(x, E_max=4, tau=2, lib_range=(0, 140), pred_range=(150, 300), dtype="float64",
                                    device=one_device)  # fmt: skip
    for E in range(1, 5):
        first = (E - 1) * 2
        states = np.array([[x[t - 2 * e] for e in range(E)] for t in range(first, 300)])
        library, asked = np.arange(first, 139), np.arange(150, 299)
        predicted = []
        for t in asked:
            d = np.linalg.norm(states[library - first] - states[t - first], axis=1)
            near = np.argsort(d, kind="stable")[:E + 1]
            w = np.exp(-d[near] / d[near[0]])
            predicted.append(w @ x[library[near] + 1] / w.sum())
        assert found.rho[E - 1] == pytest.approx(np.corrcoef(predicted, x[asked + 1])[0, 1], abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"lib_range": (0, 400)}, r"lib_range: the range \(0, 400\)"), ({"pred_range": (7, 7)}, "pred_range"),
     ({"lib_range": (0, 5)}, r"lib_range=\(0, 5\) holds no library row for E=5"), ({"valid_lib": [1, 0]}, "valid_lib"),
     ({"valid_lib": np.zeros(300, bool)}, "valid_lib leaves no library row"),
     ({"target": np.ones(299)}, "target has 299")],
)  # fmt: skip
def test_bad_rows_are_named(table, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.embed_dimension(table, E_max=6, **options)
