"""Recurrence measures against surrogates: values are those of rqa, p-values those of counting."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning, RecurrenceWarning


def series(n=240):
    x = np.empty(n)
    x[0] = 0.3
    for t in range(1, n):
        x[t] = 3.9 * x[t - 1] * (1 - x[t - 1])
    return x + 0.05 * np.random.default_rng(1).standard_normal(n)


@pytest.mark.parametrize("cross", [False, True])
def test_values_and_p_values_are_those_of_each_window_by_itself(device, cross):
    x, y = series(), np.roll(series(), 3) if cross else None
    options = {"radius": 0.2, "radius_unit": "std", "theiler": 2, "device": device}
    names = ["DET", "laminarity", "Lmax"]
    tested = pyedmcl.rqa_significance(x, y, window=100, step=70, measures=names, n=19, seed=5, **options)
    assert tested.starts == (0, 70, 140) and tested.measures == ("DET", "LAM", "Lmax")
    assert tested.surrogates.shape == (3, 3, 19)
    for row, start in enumerate(tested.starts):
        sides = [side[start : start + 100] for side in (x, y) if side is not None]
        alone = pyedmcl.rqa(*sides, **options)
        np.testing.assert_array_equal(tested.value[row], [alone[name] for name in names])
        above = (tested.surrogates[row] >= tested.value[row][:, None]).sum(axis=1)
        below = (tested.surrogates[row] <= tested.value[row][:, None]).sum(axis=1)
        np.testing.assert_allclose(tested.p_value[row], np.minimum(2 * (1 + np.minimum(above, below)) / 20, 1))
    np.testing.assert_array_equal(tested.q_value, pyedmcl.false_discovery(tested.p_value))
    again = pyedmcl.rqa_significance(x, y, window=100, step=70, measures=names, n=19, seed=5, **options)
    np.testing.assert_array_equal(again.surrogates, tested.surrogates)


def test_surrogates_of_the_whole_series_are_those_of_surrogate(one_device):
    x = series()
    tested = pyedmcl.rqa_significance(x, radius=0.2, n=5, surrogate="shuffle", seed=7, device=one_device)
    made = pyedmcl.surrogate(x, "shuffle", n=5, seed=7)
    expected = [pyedmcl.rqa(one, radius=0.2, device=one_device).DET for one in made]
    np.testing.assert_array_equal(tested.surrogates[0, 0], expected)


def test_chaos_differs_and_too_few_surrogates_are_told(one_device):
    with pytest.warns(PyedmclWarning, match="surrogates are too few"):
        tested = pyedmcl.rqa_significance(series(), radius=0.1, n=19, seed=1, device=one_device)
    assert tested.p_value[0, 0] == 0.1 and not tested.significant().any()
    tested = pyedmcl.rqa_significance(series(), radius=0.1, n=99, seed=1, device=one_device)
    assert tested.significant()[0, 0]


def test_values_far_from_normal_are_told(one_device):
    x = np.exp(2 * np.random.default_rng(2).standard_normal(400))
    with pytest.warns(RecurrenceWarning, match="far from normal"):
        pyedmcl.rqa_significance(x, radius=0.5, n=5, seed=1, device=one_device)


@pytest.mark.parametrize(
    ("options", "names"),
    [({"measures": "DET"}, "measures"), ({"measures": ["nothing"]}, "measures"), ({"radius": [0.1, 0.2]}, "radius"),
     ({"step": 5}, "step"), ({"window": 999}, "window"), ({"surrogate": "none"}, "surrogate")],
)  # fmt: skip
def test_refusals(options, names):
    with pytest.raises(InputError, match=f"^{names}="):
        pyedmcl.rqa_significance(series(), **{"radius": 0.1, **options})
