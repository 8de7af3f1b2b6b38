"""Surrogates that a device draws by itself: a network is the same, to the last bit."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.engines import lagged
from pyedmcl.significance import significance
from pyedmcl.simulate import coupled_maps


@pytest.fixture
def on_the_device(monkeypatch):
    """A function that has devices draw, and a list of how many draws each part left to the host."""
    left = []
    draw = lagged.WaveDrawer.draw

    def told(self, *arguments):
        *others, back = arguments
        left.append(0)

        def counted(place, turned):
            left[-1] += len(turned)
            return back(place, turned)

        draw(self, *others, counted)

    def change():
        monkeypatch.setattr(lagged.WaveDrawer, "draw", told)
        monkeypatch.setattr(
            significance, "quirks_for", lambda info: dataclasses.replace(quirks_for(info), draws_waves=True)
        )

    return change, left


def network_of(data, device):
    """The table of a network of which only surrogates are tested."""
    network = pyedmcl.causal_network(
        data, E=3, seed=3, n=99, convergence=False, lags=(-1, 0), partial=False, device=device
    )
    return network.to_frame()


@pytest.mark.parametrize("rounding", [False, True])
def test_a_network_is_that_of_surrogates_of_the_host(device, monkeypatch, on_the_device, rounding):
    change, left = on_the_device
    data = coupled_maps(n_series=4, n_steps=150, seed=2).values
    data[:, 3] += np.linspace(0, 3, 150)  # its surrogates keep the trend
    host = network_of(data, device)
    if rounding:
        monkeypatch.setattr(lagged, "_ROUNDINGS", 1e6)
    change()
    pd.testing.assert_frame_equal(network_of(data, device), host)
    assert left
    assert (sum(left) > 100) == rounding


def test_gaps_stay_gaps(one_device, on_the_device):
    change, left = on_the_device
    data = np.random.default_rng(4).standard_normal((150, 3))  # whose spread stays: others are drawn on the host
    data[20:23, 1] = np.nan
    host = network_of(data, one_device)
    change()
    pd.testing.assert_frame_equal(network_of(data, one_device), host)
    assert left


def test_other_surrogates_and_doubles_are_left_to_the_host(one_device, on_the_device):
    change, left = on_the_device
    change()
    data = coupled_maps(n_series=3, n_steps=100, seed=4).values
    pyedmcl.causal_network(data, E=2, surrogate="shuffle", n=19, device=one_device, seed=1)
    pyedmcl.causal_network(data, E=2, dtype="float64", n=19, device=one_device, seed=1)
    assert not left
