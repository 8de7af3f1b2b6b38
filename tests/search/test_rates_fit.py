"""Rates from timings: the fit."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rates_helpers import CPU, GPU

from pyedmcl.search import rates as rates_fit
from pyedmcl.search.rates import NAME, Rates, Timing, errors, fit, from_values, not_negative, suffices
from pyedmcl.tuning import knowledge

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
SHIPPED = knowledge.shipped


def invented(rates, factor=lambda: 1.0):
    """Timings as these rates predict them."""
    out = []
    for n, E, share, dimension in itertools.product((1 << 10, 1 << 13, 1 << 16), (1, 20), (0.01, 1.0), (2.0, 9.0)):
        for shared in (False, True):
            empty = Timing("invented", n, E, E + 1, share, dimension, shared, 1.0, 1.0, 1.0, 1.0, 1.0)
            out.append(replace(empty, **{s: v * factor() for s, v in empty.predicted(rates).items()}))
    return out


def test_rates_are_found_again():
    known = Rates(*(10.0**-e for e in (4, 9, 12, 11, 9, 12, 3, 8, 4, 8, 11, 8, 7, 10)))
    found = fit(invented(known), CPU)
    for name, value in known.as_dict().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-4), name
    assert max(errors(invented(known), found)) < 1.001


def test_noisy_timings_give_rates_that_predict_them():
    rng = np.random.default_rng(1)
    noisy = invented(CPU, lambda: float(np.exp(rng.normal(0, 0.2))))
    found = fit(noisy, GPU)
    assert min(found.as_dict().values()) >= 0
    assert np.median(errors(noisy, found)) < 1.25


def test_what_was_not_timed_stays_as_it_was():
    some = [replace(t, shared=False, build=None, tree=None) for t in invented(CPU) if not t.shared]
    found = fit(some, GPU)
    assert found.tree_visit == GPU.tree_visit and found.shared_lag == GPU.shared_lag
    assert found.exact_lag == pytest.approx(CPU.exact_lag, rel=1e-3)
    assert suffices(some) and not suffices(some[:2])
    assert not suffices([replace(t, E=1) for t in some]), "what a lag costs is not known"
    assert fit([], GPU) == GPU


def test_no_rate_falls_below_zero():
    a = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert np.allclose(not_negative(a, a @ [2.0, 3.0]), [2, 3])
    # Without the bound the second is -1: then only the first is left, at the mean.
    assert np.allclose(not_negative(a, np.array([3.0, 2.0, 1.0])), [2, 0])
    assert np.allclose(not_negative(a * [1, 1e-9], a @ [2.0, 3.0]), [2, 3e9])
    assert rates_fit.not_negative(np.zeros((2, 1)), np.ones(2)) == [0]


@pytest.mark.parametrize("name", ["cpu", "pocl", "h200"])
def test_shipped_rates_are_the_fit_of_recorded_timings(name):
    timings, device = [], None
    for text in (RESULTS / f"{name}-rates.jsonl").read_text().splitlines():
        fields = json.loads(text)
        device = fields.pop("device"), fields.pop("runtime")
        timings.append(Timing(**fields))
    (shipped,) = [entry for entry in SHIPPED(device[1], NAME) if entry.key.device.name == device[0]]
    rates = from_values(shipped.parameters)
    found = fit(timings, rates)
    assert {n: pytest.approx(v, rel=1e-3) for n, v in found.as_dict().items()} == rates.as_dict()
    assert np.median(errors(timings, rates)) < 1.3
