"""Rules by which an embedding dimension is taken from skill: the best, or the smallest that is as good."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.embedding.dimension import PARTS, DimensionRule, standard_error
from pyedmcl.errors import InputError, StoreMismatchError
from pyedmcl.simulate import coupled_maps

RNG = np.random.default_rng(0)
VALUES = coupled_maps(n_series=4, n_steps=400).values
VALUES = (VALUES + 0.02 * RNG.standard_normal(VALUES.shape)).astype(np.float32)


def test_rules_by_hand():
    rho = np.array([[0.5, 0.8, 0.82, 0.7], [np.nan] * 4, [0.9, np.nan, 0.9, 0.9]])
    assert DimensionRule.parse("best").choose(rho).tolist() == [3, 1, 1]
    assert DimensionRule.parse(0.03).choose(rho).tolist() == [2, 1, 1]
    assert DimensionRule.parse(0.5).choose(rho).tolist() == [1, 1, 1]
    parts = np.full((3, 4, PARTS), np.nan)
    parts[0, 2] = 0.82 + np.array([-1, 1] * (PARTS // 2)) * 0.1
    error = 0.1 * np.sqrt(PARTS / (PARTS - 1)) / np.sqrt(PARTS)
    assert standard_error(parts[:, 2]) == pytest.approx([error, 0, 0]) and error > 0.02
    assert DimensionRule.parse("one-se").choose(rho, parts).tolist() == [2, 1, 1]


@pytest.mark.parametrize("rule", ["worst", True, -0.1, float("nan"), 2, [0.1], None])
def test_other_rules_are_refused(rule):
    with pytest.raises(InputError, match="E_rule="):
        pyedmcl.embed_dimension(VALUES, E_max=4, E_rule=rule)
    with pytest.raises(InputError, match="E_rule="):
        pyedmcl.ccm(VALUES[:, 0], VALUES[:, 1], E=3, E_rule=rule)


def test_skill_of_parts_is_that_of_their_rows(device):
    found = pyedmcl.embed_dimension(VALUES, E_max=4, E_rule="one-se", device=device)
    plain = pyedmcl.embed_dimension(VALUES, E_max=4, device=device)
    np.testing.assert_array_equal(found.rho, plain.rho)
    edges = np.linspace(3, 399, PARTS + 1).astype(int)
    parts = np.empty((4, PARTS))
    for E in range(1, 5):
        forecast = pyedmcl.simplex(VALUES[:, 0], E=E, device=device)
        for part, (begin, end) in enumerate(itertools.pairwise(edges)):
            rows = (forecast.time > begin) & (forecast.time <= end)
            parts[E - 1, part] = np.corrcoef(forecast.predicted[rows], forecast.observed[rows])[0, 1]
    best = int(np.argmax(plain.rho[0]))
    limit = plain.rho[0, best] - standard_error(parts[best : best + 1])[0]
    assert found.E[0] == 1 + int(np.argmax(plain.rho[0] >= limit)) < plain.E[0]


def test_all_that_find_E_take_the_rule(one_device):
    E = pyedmcl.embed_dimension(VALUES, E_max=4, E_rule="one-se", device=one_device).E
    assert (E <= pyedmcl.embed_dimension(VALUES, E_max=4, device=one_device).E).all()
    options = {"E_max": 4, "E_rule": "one-se", "device": one_device}
    x, y = VALUES[:, 0], VALUES[:, 1]
    assert pyedmcl.xmap(VALUES, **options).E.tolist() == E.tolist()
    sampled = {"lib_sizes": [30, 60], "sample": 5, "seed": 1}
    assert pyedmcl.ccm_matrix(VALUES, **sampled, **options).E.tolist() == E.tolist()
    assert tuple(E[:2]) == pyedmcl.ccm(x, y, E="auto", **sampled, **options).E
    assert pyedmcl.partial_ccm(x, y, given=VALUES[:, 2], n=None, **options).E.tolist() == E[:3].tolist()
    given = pyedmcl.ccm_significance(x, y, E=E[:2].tolist(), n=19, seed=1, device=one_device)
    found = pyedmcl.ccm_significance(x, y, n=19, seed=1, **options)
    np.testing.assert_array_equal(found.surrogates, given.surrogates)
    given = pyedmcl.ccm_lagged(x, y, E=E[:2].tolist(), Tp=[-1, 0], seed=1, device=one_device)
    np.testing.assert_array_equal(pyedmcl.ccm_lagged(x, y, Tp=[-1, 0], seed=1, **options).rho, given.rho)


def test_E_auto_of_a_pair_says_what_it_cannot_do(one_device):
    with pytest.raises(InputError, match="x has 2 columns"):
        pyedmcl.ccm(VALUES[:, :2], VALUES[:, 2], E="auto", device=one_device)
    with pytest.raises(InputError, match="'auto', one integer"):
        pyedmcl.ccm(VALUES[:, 0], VALUES[:, 1], E="best", device=one_device)
    with pytest.raises(InputError, match="leave out target"):
        pyedmcl.embed_dimension(VALUES[:, 0], target=VALUES[:, 1], E_rule="one-se", device=one_device)


def test_a_store_of_another_rule_is_not_continued(one_device, tmp_path):
    options = {"E_max": 4, "out": tmp_path / "map.zarr", "device": one_device}
    pyedmcl.xmap(VALUES, E_rule="one-se", **options)
    with pytest.raises(StoreMismatchError, match="E_rule"):
        pyedmcl.xmap(VALUES, **options)


def test_the_shell_finds_E_of_a_pair(one_device, tmp_path, monkeypatch):
    from pyedmcl.cli.app import app

    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    np.savetxt(tmp_path / "data.csv", VALUES[:, :2], delimiter=",", header="a,b", comments="")
    for words in ("ccm --lib-sizes 30,60 --sample 5", "surrogate-test --x a --y b --n 19"):
        command, *rest = words.split()
        done = CliRunner().invoke(app, [command, str(tmp_path / "data.csv"), *rest, "--json"])
        assert done.exit_code == 0, done.output


def test_a_doubtful_dimension_is_told_of(one_device):
    """At the upper end of its range, or on a plateau; noise, which no E predicts, is let alone."""
    rng = np.random.default_rng(0)
    cycle = np.sin(2 * np.pi * np.arange(300) / 12)
    data = {"season": 5 * cycle + 0.1 * rng.standard_normal(300), "noise": rng.standard_normal(300)}
    with pytest.warns(RuntimeWarning) as told:
        found = pyedmcl.embed_dimension(data, E_max=8, device=one_device)
    assert found.E[0] > 4 and len(told) == 1
    assert f"hardly depends on E for 'season': 'season' takes {found.E[0]} lags, and 2 are" in str(told[0].message)
    hidden = cycle + 0.3 * rng.standard_normal(300)
    for call in (lambda: pyedmcl.embed_dimension({"a": hidden}, E_max=3, device=one_device),
                 lambda: pyedmcl.xmap({"a": hidden, "b": data["noise"]}, E_max=3, device=one_device),
                 lambda: pyedmcl.ccm({"a": hidden}, data["noise"], E="auto", E_max=3, sample=2,
                                     device=one_device)):  # fmt: skip
        with pytest.warns(RuntimeWarning, match="upper end of its range for 'a': more lags than E_max=3"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pyedmcl.embed_dimension(data, E_max=8, E_rule=0.01, device=one_device).E[0] < 4
