"""Significance of cross-map skill: tests against surrogates by hand, right for noise and for causes."""

from __future__ import annotations

import warnings

import naive
import numpy as np
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.errors import InputError


def test_ccm_against_surrogates_by_hand(one_device):
    x, y = driven(150, strength=0.1)
    result = pyedmcl.ccm_significance(x, y, E=2, surrogate="phase", n=12, seed=7, device=one_device)
    assert result.links == (("x", "y"), ("y", "x")) and result.surrogates.shape == (2, 12)
    for d, (one, other) in enumerate(((x, y), (y, x))):
        whole = pyedmcl.simplex(one, target=other, E=2, Tp=0, device=one_device)
        assert result.rho[d] == pytest.approx(whole.rho, abs=1e-6)
        # Surrogates of y are number 0 of the seed: those of its own function.
        drawn = pyedmcl.surrogate(other, "phase", n=12, seed=7) if d == 0 else None
        if drawn is not None:
            expected = [pyedmcl.simplex(one, target=row, E=2, Tp=0, device=one_device).rho for row in drawn]
            np.testing.assert_allclose(result.surrogates[d], expected, atol=1e-5)
        reached = (result.surrogates[d] >= result.rho[d]).sum()
        assert result.p_value[d] == (1 + reached) / 13
    np.testing.assert_allclose(result.q_value, pyedmcl.false_discovery(result.p_value))


def test_random_sub_libraries_are_shared(one_device):
    x, y = driven(200)
    result = pyedmcl.ccm_significance(x, y, E=2, n=9, lib_size=40, sample=20, seed=3, device=one_device)
    whole = pyedmcl.ccm(x, y, E=2, lib_sizes=40, sample=20, seed=3, device=one_device)
    np.testing.assert_allclose(result.rho, whole.mean[:, 0])
    drawn = pyedmcl.surrogate(y, "phase", n=9, seed=3)
    one = pyedmcl.ccm(x, drawn[4], E=2, lib_sizes=40, sample=20, seed=3, device=one_device)
    assert result.surrogates[0, 4] == pytest.approx(one.mean[0, 0], abs=1e-6)


def test_a_cause_is_significant_and_noise_is_not(one_device):
    x, y = driven(300)
    result = pyedmcl.ccm_significance(x, y, E=2, n=99, seed=1, device=one_device)
    assert result.p_value[1] == 0.01 and result.q_value[1] <= 0.02
    rng = np.random.default_rng(4)
    p = [pyedmcl.ccm_significance(*rng.standard_normal((2, 80)), E=2, n=19, seed=i, device=one_device).p_value
         for i in range(30)]  # fmt: skip
    assert 0.3 < np.mean(p) < 0.7 and np.min(p) < 0.3


def test_frame_and_picture(one_device, tmp_path):
    x, y = driven(120)
    result = pyedmcl.ccm_significance(x, y, E=2, n=19, surrogate="shuffle", seed=1, device=one_device)
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    assert frame["rho"].tolist() == result.rho.tolist()
    assert frame["surrogates_q95"][1] == np.quantile(result.surrogates[1], 0.95)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert len(result.plot(str(tmp_path / "a.png")).axes) == 2


def test_all_pairs_by_hand(one_device, monkeypatch):
    data = naive.noisy_maps(4, 140, 3)
    options = {"E": [2, 3, 2, 1], "tau": 1, "seed": 5, "device": one_device}
    result = pyedmcl.xmap_significance(data, n=8, surrogate="iaaft", **options)
    rho = pyedmcl.xmap(data, E=[2, 3, 2, 1], device=one_device).rho
    np.testing.assert_array_equal(result.rho.astype(np.float32), rho)
    drawn = pyedmcl.surrogate(data[:, 0], "iaaft", n=8, seed=5)  # series 0 of the seed
    for i in (1, 3):
        skill = np.array([pyedmcl.simplex(data[:, i], target=row, E=2, Tp=0, device=one_device).rho for row in drawn])
        assert result.p_value[i, 0] == (1 + (skill >= result.rho[i, 0]).sum()) / 9
    assert np.isnan(np.diag(result.p_value)).all() and np.isfinite(result.p_value).sum() == 12
    np.testing.assert_allclose(result.q_value, pyedmcl.false_discovery(result.p_value))
    # In blocks of one target each, nothing changes.
    monkeypatch.setattr("pyedmcl.significance.xmap_significance._MOST_TARGETS", 1)
    again = pyedmcl.xmap_significance(data, n=8, surrogate="iaaft", **options)
    np.testing.assert_array_equal(again.p_value, result.p_value)


def test_all_pairs_find_the_chain(one_device):
    x, y = driven(300)
    rng = np.random.default_rng(1)
    data = {"x": x, "y": y, "noise": rng.standard_normal(300), "more": rng.standard_normal(300)}
    told = []
    result = pyedmcl.xmap_significance(data, E=2, n=199, seed=1, device=one_device, progress=lambda *a: told.append(a))
    assert told[-1] == (4, 4, "series")
    found = result.significant(0.1)
    assert found[1, 0] and not found[2:].any() and not found[:, 2:].any()
    with pytest.raises(InputError, match="rate=2"):
        result.significant(2)
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    assert len(frame) == 12 and frame["library"][0] == "y" and frame["target"][0] == "x"
    assert len(result.to_frame(rate=0.1)) == found.sum()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"surrogate": "fourier"}, "surrogate='fourier'"), ({"n": 0}, "n=0"), ({"surrogate": "seasonal"}, "period"),
     ({"E": 0}, "E=0"), ({"seed": "a"}, "seed='a'")],
)  # fmt: skip
def test_bad_input_is_named(options, words):
    x, y = np.random.default_rng(1).standard_normal((2, 60))
    with pytest.raises(InputError, match=words):
        pyedmcl.ccm_significance(x, y, **{"E": 2, "n": 3, **options})
    with pytest.raises(InputError, match=words):
        pyedmcl.xmap_significance(np.column_stack([x, y]), **{"E": 2, "n": 3, **options})


def test_pairs_need_two_series_without_gaps():
    x, y = driven(60)
    with pytest.raises(InputError, match="one series"):
        pyedmcl.xmap_significance(x, E=2)
    y[7] = np.nan
    with pytest.raises(InputError, match="gap in row 7"):
        pyedmcl.xmap_significance(np.column_stack([x, y]), E=2, surrogate="twin")
    with pytest.raises(InputError, match="lib_size: 70 rows"):
        pyedmcl.ccm_significance(x, x + 1, E=2, lib_size=70)


@pytest.mark.parametrize("shared", ["season", "trend", "step", "walk", "nothing"])
def test_what_phase_surrogates_lose_is_told_and_auto_is_the_default(shared, one_device):
    rng, rows = np.random.default_rng(3), np.arange(240)
    both = {
        "season": 2 * np.sin(2 * np.pi * rows / 12.42), "trend": rows / 60, "step": 3.0 * (rows > 100),
        "walk": np.zeros(240), "nothing": np.zeros(240),
    }[shared]  # fmt: skip
    data = both[:, None] + rng.standard_normal((240, 2))
    data = np.cumsum(data, axis=0) if shared == "walk" else data
    asked = {"E": 2, "n": 39, "seed": 1, "device": one_device}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pyedmcl.xmap_significance(data, surrogate="phase", **asked)
        pyedmcl.ccm_significance(*data.T, surrogate="phase", **asked)
    assert sum("does not keep" in str(one.message) for one in caught) == (0 if shared == "nothing" else 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert pyedmcl.xmap_significance(data, **asked).method == "auto"
        assert pyedmcl.ccm_significance(*data.T, **asked).method == "auto"
    assert not any("does not keep" in str(one.message) for one in caught)


def test_gains_of_surrogates_make_a_test_of_convergence(one_device):
    rng = np.random.default_rng(5)
    p = []
    for _ in range(12):  # the trend of sizes alone has p <= 0.05 in four of ten such pairs
        x, y = np.zeros((2, 120))
        for t in range(1, 120):
            x[t], y[t] = 0.9 * x[t - 1] + rng.standard_normal(), 0.9 * y[t - 1] + rng.standard_normal()
        p += pyedmcl.ccm_significance(x, y, E=2, n=19, seed=1, device=one_device).p_gain.tolist()
    assert sum(value <= 0.05 for value in p) <= 4  # 1.2 of 24 expected; 5 or more by chance in 0.6 %
    x, y = driven(300, strength=0.4)
    found = pyedmcl.ccm_significance(x, y, E=2, n=39, seed=1, device=one_device)
    assert found.p_gain.min() <= 0.05 and found.gain[int(found.p_gain.argmin())] > 0.1
    alike = pyedmcl.ccm_significance(x, y, E=2, n=3, lib_size=5, seed=1, device=one_device)
    assert np.isnan(alike.p_gain).all() and np.isnan(alike.gain).all()
