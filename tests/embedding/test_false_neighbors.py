"""False nearest neighbours, against the definition and of an attractor whose dimension is known."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.simulate import coupled_maps


def table(n=200, n_series=3):
    return coupled_maps(n_series=n_series, n_steps=n).values.astype(np.float64)


def false_share(x, E, tau, ratio, size):
    """By the definition, in loops over rows."""
    spread = np.nanstd(x)
    rows = [t for t in range(E * tau, len(x)) if not np.isnan(x[t - (E - 1) * tau : t + 1 : tau]).any()]
    states = {t: x[[t - e * tau for e in range(E)]] for t in rows}
    judged = []
    for t in rows:
        distances = {j: np.sqrt(((states[t] - states[j]) ** 2).sum()) for j in rows if j != t}
        j = min(distances, key=lambda row: (distances[row], row))
        apart = abs(x[t - E * tau] - x[j - E * tau])
        if not np.isnan(apart):
            near = distances[j]
            judged.append(apart > ratio * near or np.sqrt(near**2 + apart**2) > size * spread)
    return np.mean(judged)


@pytest.mark.parametrize("gaps", [False, True])
def test_false_neighbours_are_those_of_the_definition(device, gaps):
    x = table(120)
    if gaps:
        x[50, 1] = np.nan
    found = pyedmcl.false_neighbors(x, E_max=4, tau=2, ratio=5.0, size=1.5, device=device, dtype="float64")
    wanted = [[false_share(column, E, 2, 5.0, 1.5) for E in range(1, 5)] for column in x.T]
    np.testing.assert_allclose(found.share, wanted, rtol=1e-12)
    assert pyedmcl.false_neighbors(x[:, 0], E_max=4, device=device).share.shape == (4,)


def test_dimension_of_a_known_attractor(one_device):
    """The Henon map unfolds in two coordinates."""
    x, y, values = 0.1, 0.1, []
    for _ in range(600):
        x, y = 1 - 1.4 * x * x + y, 0.3 * x
        values.append(x)
    henon = np.array(values[100:])
    found = pyedmcl.false_neighbors(henon, E_max=4, device=one_device)
    assert found.dimension() == 2 and found.share[0] > 0.5
    noise = np.random.default_rng(0).standard_normal(500)
    assert pyedmcl.false_neighbors(noise, E_max=4, device=one_device).dimension() == 0
    scaled = pyedmcl.false_neighbors(np.ldexp(henon, 900), E_max=4, device=one_device)
    np.testing.assert_array_equal(scaled.share, found.share)
