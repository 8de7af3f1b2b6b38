"""kEDM's xmap and embedding dimension on the project's coupled maps: within 2e-6 in rho."""

from __future__ import annotations

from functools import cache

import naive
import numpy as np
import pytest

import pyedmcl

LENGTH = 700
E_UNIFORM = (3,) * 6
E_MIXED = (1, 3, 10, 3, 1, 10)


@cache
def maps():
    """Six series that never repeat a value: kEDM drops neighbours at distance zero."""
    x = naive.coupled_maps(24, LENGTH, 1)
    distinct = [i for i in range(x.shape[1]) if len(np.unique(x[:, i])) == LENGTH]
    return np.ascontiguousarray(x[:, distinct[:6]])


@cache
def decided(E):
    """(N, N) pairs whose neighbours float32 can tell apart, and whose weights stay above kEDM's floor of 1e-6.

    Where the k-th and the next distance tie within rounding, either neighbour is right.
    """
    x = maps()
    good = np.ones((x.shape[1], x.shape[1]), dtype=bool)
    for dimension in set(E):
        for i in range(x.shape[1]):
            _, d = naive.knn(x[:, i], dimension, k=dimension + 2)
            d = d[dimension - 1 :]
            near = (d[:, -1] - d[:, -2] <= (dimension + 2) * 2.0**-23 * d[:, -2]).any()
            floored = dimension > 1 and np.median(np.exp(-d[:, -2] / d[:, 0])) < 1e-6
            good[i, np.array(E) == dimension] = not (near or floored)
    return good


@pytest.mark.parametrize("E", [E_UNIFORM, E_MIXED], ids=["E3", "mixed"])
def test_second_opinion_is_kedm(kedm, E):
    good = decided(E)
    assert good.mean() > 0.5
    difference = np.abs(kedm.xmap(maps(), list(E)) - naive.xmap(maps(), E))
    assert difference[good].max() < 2e-6


@pytest.mark.parametrize("E", [E_UNIFORM, E_MIXED], ids=["E3", "mixed"])
def test_xmap(one_device, kedm, E):
    good = decided(E)
    assert good.mean() > 0.5
    difference = np.abs(pyedmcl.xmap(maps(), E=E, device=one_device).rho - kedm.xmap(maps(), list(E)))
    assert difference[good].max() < 2e-6


def test_embed_dimension(one_device, kedm):
    x = maps()[:, :3]
    ours = pyedmcl.embed_dimension(x, E_max=6, device=one_device)
    for i in range(3):
        best, rho = naive.embed_dimension(x[:, i], E_max=6)
        assert ours.E[i] == best
        theirs = kedm.edim(np.ascontiguousarray(x[:, i]), E_max=6)
        # kEDM's rho here is one-pass float32: it may prefer another E whose rho is the same to five digits.
        assert rho[best - 1] - rho[theirs - 1] < 1e-5
