"""Multiview embedding: the views of the definition, and better than a single one."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError


@pytest.mark.parametrize("Tp", [1, -1])
def test_multiview(one_device, Tp):
    n = 130
    x = naive.noisy_maps(3, n, 7).astype(np.float64)
    x[:, 1] = 50 + 3 * x[:, 1]
    lib, pred = (0, 80), (70, n)
    result = pyedmcl.multiview(x, 2, E=2, D=2, Tp=Tp, lib_range=lib, pred_range=pred, device=one_device)
    table = pyedmcl.embed(x, E=2)
    rows = np.arange(lib[0] + max(1, -Tp), min(lib[1], lib[1] - Tp))
    asked = np.arange(*pred)
    skill, predictions = {}, {}
    for view in itertools.combinations(range(6), 2):
        states = table.values[:, view]
        inner = naive.predictions(states, x[:, 2], rows, rows, k=3, Tp=Tp)[0]
        skill[view] = naive.pearson(inner, x[rows + Tp, 2])
        predictions[view] = naive.predictions(states, x[:, 2], asked, rows, k=3, Tp=Tp)[0]
    best = sorted(skill, key=lambda view: -skill[view])[:3]
    assert result.n_tried == 15 and result.E == 2
    assert [tuple(table.names[c] for c in view) for view in best] == list(result.views)
    np.testing.assert_allclose(result.view_rho, [skill[view] for view in best], atol=2e-5)
    expected = np.mean([predictions[view] for view in best], axis=0)
    np.testing.assert_allclose(result.predicted, expected, atol=2e-5)
    np.testing.assert_array_equal(result.time, asked + Tp)
    inside = asked + Tp < n
    assert result.rho == pytest.approx(naive.pearson(expected[inside], x[(asked + Tp)[inside], 2]), abs=2e-5)


def test_multiview_beats_a_single_view(one_device):
    rng = np.random.default_rng(3)
    x = naive.coupled_maps(3, 300, 4)
    noisy = x + 0.1 * rng.standard_normal(x.shape)
    result = pyedmcl.multiview(noisy, "x0", E=3, D=3, device=one_device)
    single = pyedmcl.simplex(noisy[:, 0], E=3, device=one_device)
    assert result.n_tried == 84 and len(result.views) == 9
    assert result.rho > single.rho
    without = pyedmcl.multiview(noisy, "x0", E=2, D=2, exclude_target=True, n_views=2, device=one_device)
    assert all(not name.startswith("x0(") for view in without.views for name in view) and len(without.views) == 2
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert list(result.views_frame().columns) == ["coordinate 1", "coordinate 2", "coordinate 3", "rho"]


DATA = naive.noisy_maps(3, 60, 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, "no column 'z'"),
        ({"D": 7, "E": 2}, "D=7"),
        ({"D": 0}, "D=0"),
        ({"n_views": 9}, "n_views=9"),
        ({"E": 0}, "E=0"),
        ({"E": 20, "D": 12}, "views"),
        ({"columns": ["x0"], "target": "x0", "exclude_target": True}, "exclude_target"),
        ({"lib_range": (0, 90)}, "lib_range"),
    ],
)
def test_bad_views_are_named(options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.multiview(DATA, **{"target": "x1", **options})
