"""Convergent cross mapping by its public names: agreement, summaries, lags, bad input."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.reference import edm as oracle


def test_agrees_with_the_oracle(device):
    x, y = driven(150)
    sizes = [12, 60, 145]
    result = pyedmcl.ccm(x, y, E=2, tau=2, Tp=1, lib_sizes=sizes, sample=18, seed=11, exclusion_radius=2, device=device)
    assert result.rho.shape == (2, 3, 18) and result.links == (("x", "y"), ("y", "x"))
    for d, (one, other) in enumerate(((x, y), (y, x))):
        for (place, size), sample in itertools.product(enumerate(sizes), (0, 17)):
            expected = oracle.ccm_skill(one, other, size, E=2, tau=2, Tp=1, exclusion_radius=2, seed=11, library=d,
                                        target=1 - d, sample=sample)  # fmt: skip
            assert result.rho[d, place, sample] == pytest.approx(expected, abs=2e-5)


def test_converges_where_there_is_a_cause_and_not_where_there_is_none(one_device):
    x, y = driven(600)
    result = pyedmcl.ccm(x, y, E=2, sample=60, seed=1, device=one_device)
    from_effect = result.convergence[1]
    assert result.mean[1, -1] > 0.9  # y has the trace of x
    assert from_effect.trend > 0.9 and from_effect.gain > 0.1
    assert from_effect.overlap < 0.05
    assert result.mean[0, -1] < 0.5
    noise = np.random.default_rng(0).standard_normal(600)
    nothing = pyedmcl.ccm(noise, y, E=2, sample=60, seed=1, device=one_device)
    assert np.abs(nothing.mean).max() < 0.15
    assert abs(nothing.convergence[0].gain) < 0.1


def test_streams_depend_on_nothing_else(one_device):
    x, y = driven(300)
    common = {"E": 2, "seed": 5, "device": one_device}
    whole = pyedmcl.ccm(x, y, lib_sizes=[20, 50, 290], sample=40, **common)
    np.testing.assert_array_equal(pyedmcl.ccm(x, y, lib_sizes=[290, 50], sample=7, **common).rho,
                                  whole.rho[:, [2, 1], :7])  # fmt: skip
    again = pyedmcl.ccm(x, y, lib_sizes=[20], sample=3, E=2, seed=6, device=one_device)
    assert not (again.rho == whole.rho[:, :1, :3]).any()
    # Each dimension on its own gives what both together give.
    mixed = pyedmcl.ccm(x, y, E=(2, 3), lib_sizes=[50], sample=5, seed=5, device=one_device)
    np.testing.assert_array_equal(mixed.rho[0], whole.rho[0, 1:2, :5])
    np.testing.assert_array_equal(mixed.rho[1], pyedmcl.ccm(x, y, E=3, lib_sizes=50, sample=5, seed=5,
                                                            device=one_device).rho[1])  # fmt: skip


def test_the_full_library_is_simplex(one_device):
    x, y = driven(250)
    result = pyedmcl.ccm(x, y, E=3, Tp=1, lib_sizes=247, sample=2, device=one_device)
    for d, (one, other) in enumerate(((x, y), (y, x))):
        expected = pyedmcl.simplex(one, target=other, E=3, Tp=1, device=one_device).rho
        np.testing.assert_allclose(result.rho[d, 0], expected, atol=1e-6)


def test_several_columns_and_given_states(one_device):
    x, y = driven(180)
    z = np.cos(np.arange(180)) * 3 + 50
    state = np.column_stack([x, z])
    result = pyedmcl.ccm(state, y, E=2, lib_sizes=[20, 100], sample=3, seed=2, device=one_device)
    rows = np.column_stack([x[1:], x[:-1], z[1:], z[:-1]])
    given = pyedmcl.ccm(rows, y[1:, None], embedded=True, lib_sizes=[20, 100], sample=3, seed=2, device=one_device)
    np.testing.assert_allclose(result.rho[0], given.rho[0], atol=1e-6)
    assert result.E == (4, 2) and given.E == (4, 1)
    # By definition: distances among the four coordinates.
    drawn = 1 + oracle.sub_library(179, 20, seed=2, library=0, target=1, sample=1)
    predicted = np.full(180, np.nan)
    for t in range(1, 180):
        near = drawn[drawn != t]
        distance = np.sqrt(((rows[near - 1] - rows[t - 1]) ** 2).sum(axis=1))
        order = np.argsort(distance, kind="stable")[:5]
        predicted[t] = (naive.weights(distance[order]) * y[near[order]]).sum()
    assert result.rho[0, 0, 1] == pytest.approx(naive.pearson(predicted, y), abs=2e-5)


def test_gaps_masks_and_ranges(device):
    x, y = driven(220)
    x[40:43], y[100] = np.nan, np.nan
    valid = np.ones(220, bool)
    valid[150:170] = False
    options = {"E": 2, "lib_sizes": [15, 90], "sample": 2, "seed": 4, "device": device}
    result = pyedmcl.ccm(x, y, lib_range=[(0, 90), (95, 200)], valid_lib=valid, **options)
    allowed = np.zeros(220, bool)
    allowed[1:90] = allowed[96:200] = True
    allowed &= valid
    for d, (one, other) in enumerate(((x, y), (y, x))):
        for place, size in enumerate((15, 90)):
            expected = oracle.ccm_skill(one, other, size, E=2, seed=4, library=d, target=1 - d, sample=1,
                                        library_mask=allowed)  # fmt: skip
            assert result.rho[d, place, 1] == pytest.approx(expected, abs=2e-5)


def test_local_linear_fits(device):
    x, y = driven(90)
    result = pyedmcl.ccm(x, y, E=2, lib_sizes=[20, 88], sample=2, seed=3, method="smap", theta=2.0, device=device)
    whole = pyedmcl.smap(y, target=x, E=2, Tp=0, theta=2.0, device=device)
    everything = pyedmcl.ccm(x, y, E=2, lib_sizes=[89], sample=1, method="smap", theta=2.0, device=device)
    assert everything.rho[1, 0, 0] == pytest.approx(whole.rho, abs=1e-5)
    drawn = np.zeros(90, bool)
    drawn[1 + oracle.sub_library(89, 20, seed=3, library=1, target=0, sample=1)] = True
    part = pyedmcl.smap(y, target=x, E=2, Tp=0, theta=2.0, lib_range=drawn, device=device)
    assert result.rho[1, 0, 1] == pytest.approx(part.rho, abs=1e-5)
    assert result.method == "smap"


def test_summaries_and_frame(one_device):
    x, y = driven(150)
    result = pyedmcl.ccm(x, y, E=2, lib_sizes=[10, 80], sample=9, device=one_device)
    np.testing.assert_allclose(result.mean, result.rho.mean(axis=2))
    np.testing.assert_allclose(result.median, np.median(result.rho, axis=2))
    np.testing.assert_allclose(result.quantiles([0.0, 1.0])[..., 1], result.rho.max(axis=2))
    with pytest.raises(InputError, match="q="):
        result.quantiles([1.5])
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    assert list(frame.columns[:4]) == ["cause", "effect", "library", "target"]
    assert list(frame.columns[4:]) == ["lib_size", "mean", "q05", "q25", "median", "q75", "q95"]
    assert len(frame) == 4 and frame["mean"][3] == result.mean[1, 1]
    samples = result.to_frame(samples=True)
    assert len(samples) == 36 and samples["rho"][9 + 4] == result.rho[0, 1, 4]


def test_pictures(one_device, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    x, y = driven(150)
    result = pyedmcl.ccm(x, y, E=2, lib_sizes=[10, 80], sample=9, device=one_device)
    ax = result.plot(str(tmp_path / "a.png")).axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), result.median[0])
    lagged = pyedmcl.ccm_lagged(x, y, E=2, Tp=[1, -1, 0], device=one_device)
    ax = lagged.plot(str(tmp_path / "b.svg")).axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), lagged.rho[0][[1, 2, 0]])
    assert (tmp_path / "a.png").stat().st_size > 1000 and (tmp_path / "b.svg").is_file()


def test_lags(one_device):
    x, y = driven(300)
    y = np.concatenate([np.full(2, y[0]), y[:-2]])  # what x does is seen two steps later
    lagged = pyedmcl.ccm_lagged(x, y, E=2, Tp=range(-5, 6), device=one_device)
    for place in (0, 5, 7):
        Tp = int(lagged.Tp[place])
        expected = pyedmcl.simplex(y, target=x, E=2, Tp=Tp, device=one_device).rho
        assert lagged.rho[1, place] == pytest.approx(expected, abs=1e-6)
    assert lagged.best[1] in (-3, -2) and lagged.best[1] == lagged.Tp[lagged.rho[1].argmax()]
    some = pyedmcl.ccm_lagged(x, y, E=2, Tp=[-2], lib_size=40, sample=6, seed=1, device=one_device)
    whole = pyedmcl.ccm(x, y, E=2, Tp=-2, lib_sizes=40, sample=6, seed=1, device=one_device)
    np.testing.assert_allclose(some.rho[:, 0], whole.mean[:, 0])
    valid = np.arange(300) % 5 > 0
    lagged = pyedmcl.ccm_lagged(x, y, E=2, Tp=[-2], lib_range=(0, 200), valid_lib=valid, device=one_device)
    expected = pyedmcl.simplex(y, target=x, E=2, Tp=-2, lib_range=(0, 200), valid_lib=valid, device=one_device).rho
    assert lagged.rho[1, 0] == pytest.approx(expected, abs=1e-6)


X, Y = driven(60)


def test_without_E_each_series_has_the_one_that_predicts_it_best(one_device):
    found = pyedmcl.ccm(X, Y, lib_sizes=[10, 40], sample=3, seed=1, E_max=4, device=one_device)
    expected = pyedmcl.ccm(X, Y, E="auto", lib_sizes=[10, 40], sample=3, seed=1, E_max=4, device=one_device)
    assert found.E == expected.E
    np.testing.assert_array_equal(found.rho, expected.rho)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"E": (1, 2, 3)}, r"E=\(1, 2, 3\)"),
        ({"E": 0}, r"E=0"),
        ({"tau": -1}, r"tau=-1"),
        ({"Tp": 0.5}, r"Tp=0.5"),
        ({"sample": 0}, "sample=0"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**63}, "seed="),
        ({"exclusion_radius": -1}, "exclusion_radius=-1"),
        ({"knn": 0}, "knn=0"),
        ({"method": "linear"}, "method='linear'.*'simplex', 'smap'"),
        ({"theta": -1}, "theta=-1"),
        ({"theta": [1, 2]}, r"theta=\[1, 2\]"),
        ({"lib_sizes": [3]}, "lib_sizes: 3 rows.*at least 4"),
        ({"lib_sizes": [20, 60]}, "lib_sizes: 60 rows.*'x' library has 59"),
        ({"lib_sizes": [20, 30, 20]}, "lib_sizes: 20 are there twice"),
        ({"lib_sizes": []}, "lib_sizes"),
        ({"lib_sizes": [10.5]}, "lib_sizes=10.5"),
        ({"knn": 60}, "too few"),
        ({"embedded": True}, "embedded=True"),
        ({"valid_lib": np.ones(3, bool)}, "valid_lib"),
        ({"dtype": "float16"}, "float16"),
    ],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.ccm(X, Y, **{"E": 2, "lib_sizes": [20], "sample": 2, **options})


def test_series_must_be_equally_long():
    with pytest.raises(InputError, match="y has 59 steps and x 60"):
        pyedmcl.ccm(X, Y[:-1], E=2)
    with pytest.raises(InputError, match="Tp"):
        pyedmcl.ccm_lagged(X, Y, E=2, Tp=[1, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_samples_that_are_fitted_together_are_those_fitted_one_by_one(one_device, monkeypatch, dtype):
    from pyedmcl.convergence import ccm

    x, y = (series.copy() for series in driven(150))
    x[40:43], y[100] = np.nan, np.nan
    call = {"E": (2, 3), "lib_sizes": [12, 90], "sample": 3, "seed": 2, "Tp": 1, "exclusion_radius": 2,
            "method": "smap", "theta": 2.0, "dtype": dtype, "device": one_device}  # fmt: skip
    together = pyedmcl.ccm(x, y, **call)
    monkeypatch.setattr(ccm, "MOST_COORDINATES", 0)
    one_by_one = pyedmcl.ccm(x, y, **call)
    np.testing.assert_allclose(together.rho, one_by_one.rho, rtol=0, atol=2e-6 if dtype == "float32" else 1e-10)
    assert np.isfinite(together.rho).all()
