"""Points of more coordinates than a kernel writes out: the same cells in every function, whatever reads them."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from rqa_oracle import expected

import pyedmcl
from pyedmcl.errors import RecurrenceWarning
from pyedmcl.kernels.build import text_for as build_text
from pyedmcl.recurrence import batch_problem, thresholds, windowed
from pyedmcl.recurrence import image_problem as image_sweep
from pyedmcl.recurrence import network as network_problem
from pyedmcl.recurrence.arguments import METRICS
from pyedmcl.reference.recurrence import compared, network

N = 70  # no multiple of a vector: the cells behind the last whole one are computed by other code


class SeenError(Exception):
    pass


def points(d, seed=0):
    return np.random.default_rng(seed).standard_normal((N, d)).cumsum(axis=0)


CASES = [(d, "euclidean") for d in (32, 33, 65, 130)] + [(70, metric) for metric in METRICS if metric != "euclidean"]


@pytest.mark.parametrize(("d", "metric"), CASES)
def test_every_function_finds_the_same_cells(device, d, metric):
    x = points(d)
    directions = x / np.linalg.norm(x, axis=1, keepdims=True) if metric == "cosine" else x
    d2 = compared(directions, directions, "euclidean" if metric == "cosine" else metric)
    limit = float(np.quantile(d2, 0.2))
    radius = {"euclidean": np.sqrt(limit), "cosine": limit / 2}.get(metric, limit)
    options = {"radius": float(radius), "metric": metric, "device": device}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecurrenceWarning)
        one = pyedmcl.rqa(x, **options)
        assert one.counts.points == np.count_nonzero(d2 < limit) or metric in ("euclidean", "cosine")
        assert pyedmcl.rqa_batch([x, x[:50]], **options)[0].counts == one.counts
        assert pyedmcl.rqa_batch([x], exact=False, dtype="float64", **options)[0].counts == one.counts
        assert pyedmcl.rqa_batch([x], [x], theiler=1, **options)[0].counts.points == one.counts.points
        assert pyedmcl.windowed_rqa(x, N, 1, **options)[0].counts == one.counts
        np.testing.assert_array_equal(pyedmcl.recurrence_plot(x, **options).counts.sum(axis=0), one.recurrences)
        links = pyedmcl.recurrence_network(x, **options)
        distances = pyedmcl.distance_plot(x, dtype="float64", metric=metric, device=device).matrix
        rate = pyedmcl.rqa(x, **{**options, "radius": 0.2}, threshold="recurrence_rate")
        near = pyedmcl.rqa(x, **{**options, "radius": 5}, threshold="neighbours")
    assert links.degree.sum() == one.counts.points - N
    found = {"euclidean": np.sqrt(d2), "cosine": d2 / 2}.get(metric, d2)
    np.testing.assert_allclose(distances, found, rtol=1e-7, atol=1e-7 * found.max())
    assert 0.2 <= rate.RR < 0.2 + 2 / N**2 + 1e-12
    assert (near.recurrences == 6).all()


@pytest.mark.parametrize("m", [100])
def test_long_embeddings(device, m):
    x = np.cumsum(np.random.default_rng(1).standard_normal(N + m - 1))
    options = {"m": m, "radius": 4.0 * m**0.5 / 6, "device": device}
    one = pyedmcl.rqa(x, **options)
    assert one.counts == expected(x, m=m, radius=options["radius"])
    assert pyedmcl.rqa_batch([x], **options)[0].counts == one.counts
    assert pyedmcl.windowed_rqa(x, len(x), 1, **options)[0].counts == one.counts
    np.testing.assert_array_equal(pyedmcl.recurrence_plot(x, **options).counts.sum(axis=0), one.recurrences)
    found = pyedmcl.recurrence_network(x, **options)
    windows = np.lib.stride_tricks.sliding_window_view(x, m)
    cells = compared(windows, windows, "euclidean") < options["radius"] ** 2
    np.testing.assert_array_equal(found.degree, network(cells)["degree"])


def test_the_texts_of_kernels_do_not_grow_with_the_coordinates(one_device, monkeypatch):
    """What a compiler takes its time for."""
    lengths = {}

    def noted(executor, spec, values, entry=None):
        text = build_text(spec, values, executor.info)
        lengths.setdefault((spec.name, entry), {})[values.get("m")] = len(text)
        raise SeenError

    for d in (33, 768):
        x = np.zeros((20, d))
        options = {"radius": 0.5, "device": one_device}
        calls = {
            thresholds: partial(pyedmcl.rqa, x, threshold="recurrence_rate", **options),
            network_problem: partial(pyedmcl.recurrence_network, x, **options),
            windowed: partial(pyedmcl.windowed_rqa, x, 10, 5, **options),
            batch_problem: partial(pyedmcl.rqa_batch, [x], **options),
            image_sweep: partial(pyedmcl.recurrence_plot, x, **options),
        }
        for module, call in calls.items():
            with monkeypatch.context() as patch:
                patch.setattr(module, "build", noted)
                with pytest.raises(SeenError):
                    call()
    assert len(lengths) == 5
    assert all(found[768] - found[33] < 50 for found in lengths.values())
