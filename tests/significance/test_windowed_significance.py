"""``xmap_significance(windows=)``: each window is a test by itself, and false discovery rates are over all."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import CHAIN, linked_maps

import pyedmcl
from pyedmcl.errors import InputError

NOISE = np.random.default_rng(4).standard_normal((300, 3))


def in_windows(data, **options):
    return pyedmcl.xmap_significance(data, **{"E": 2, "n": 99, "seed": 5, "windows": (150, 150)} | options)


def test_a_window_is_tested_as_its_rows_alone(one_device):
    found = in_windows(NOISE, device=one_device)
    for number, start in enumerate(found.starts):
        alone = pyedmcl.xmap_significance(NOISE[start : start + 150], E=2, n=99, seed=5 + number, device=one_device)
        np.testing.assert_array_equal(found.p_value[number], alone.p_value)
        np.testing.assert_array_equal(found.rho[number], alone.rho)
    np.testing.assert_array_equal(found.q_value, pyedmcl.false_discovery(found.p_value))
    assert found.provenance["seed"] == found.seed == 5 and found.columns()["q_value"].shape == (12,)


def test_when_a_link_begins_is_told(one_device):
    """A chain a, b, c in the second half only."""
    apart = linked_maps(300, np.zeros_like(CHAIN), 8)
    data = np.concatenate([apart, linked_maps(300, CHAIN, 3, strength=0.4)])
    found = in_windows(data, windows=(300, 300), n=199, device=one_device).significant()
    assert not found[0].any() and found[1][1, 0] and found[1][2, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"windows": (400, 10)}, "longer than the 300"),
        ({"windows": (4, 4), "E": 6}, r"windows=\(4, 4\): rows 0 to 3: "),
        ({"windows": (150, 150), "groups": np.arange(300) // 150}, "groups="),
        ({"windows": 3}, "a pair"),
    ],
)
def test_what_is_refused(options, said, one_device):
    with pytest.raises(InputError, match=said):
        in_windows(NOISE, device=one_device, **options)
