"""Recurrence networks: the adjacency bits and triangles of the devices are those of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import DeviceMemoryError, InputError
from pyedmcl.recurrence import network as network_problem
from pyedmcl.reference.recurrence import compared, network, points_of, recurrence_matrix


def series(n, seed=0):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 4


@pytest.mark.parametrize(
    ("n", "m", "tau", "metric", "dtype", "exact", "theiler", "strict"),
    [(97, 1, 1, "euclidean", "float32", True, 1, True), (300, 3, 2, "maximum", "float32", True, 6, True),
     (257, 2, 5, "manhattan", "float32", False, 0, False), (64, 4, 1, "euclidean", "float64", True, 2, False)],
)  # fmt: skip
def test_network_is_that_of_the_matrix(device, n, m, tau, metric, dtype, exact, theiler, strict):
    x = series(n, n)
    x[n // 3] = np.nan
    found = pyedmcl.recurrence_network(
        x, m=m, tau=tau, radius=1.1, metric=metric, dtype=dtype, exact=exact, theiler=theiler, strict=strict,
        device=device,
    )  # fmt: skip
    points = points_of(x, m, tau, "float32" if dtype == "float32" and not exact else "float64")
    radius = points.dtype.type(1.1)
    limit = radius * radius if metric == "euclidean" else radius
    wanted = network(recurrence_matrix(compared(points, points, metric), limit, strict=strict), theiler)
    complete = ~np.isnan(points).any(axis=1)
    assert wanted["closed"].sum() > 0
    np.testing.assert_array_equal(found.degree, wanted["degree"])
    np.testing.assert_array_equal(found.closed, wanted["closed"])
    np.testing.assert_array_equal(found.clustering[complete], wanted["clustering"][complete])
    assert np.isnan(found.clustering[~complete]).all() and not complete.all()
    assert found.transitivity == wanted["transitivity"]
    assert found.mean_clustering == pytest.approx(wanted["clustering"][complete].mean())
    assert found.to_dict()["mean_degree"] == pytest.approx(wanted["degree"][complete].mean())
    assert list(found.to_frame().columns) == ["degree", "clustering"]


def test_a_wanted_density_is_reached_by_the_smallest_radius(one_device):
    x = series(200, 3)
    found = pyedmcl.recurrence_network(x, radius=0.05, threshold="recurrence_rate", device=one_device)
    assert found.density >= 0.05 > found.density - 2 / (200 * 199)


def test_a_regular_lattice_has_the_known_clustering(one_device):
    """Points on a line, each linked to the two neighbours on either side: clustering 1/2 inside."""
    found = pyedmcl.recurrence_network(np.arange(50.0), radius=2.5, device=one_device)
    np.testing.assert_array_equal(found.degree[2:-2], 4)
    np.testing.assert_allclose(found.clustering[4:-4], 0.5)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"threshold": "neighbours", "radius": 3}, "threshold="), ({"radius": [1.0, 2.0]}, "radius="),
     ({"radius": 0.0}, "radius="), ({"radius": 1.0, "theiler": 60}, "theiler=")],
)  # fmt: skip
def test_bad_input(one_device, options, named):
    with pytest.raises(InputError, match=named):
        pyedmcl.recurrence_network(series(50), device=one_device, **options)


def test_a_matrix_that_does_not_fit_is_refused_with_the_numbers(one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "100000")
    with pytest.raises(DeviceMemoryError, match="2,000 points needs 504,000 bytes"):
        pyedmcl.recurrence_network(series(2000), radius=1.0, device=one_device)


def test_several_devices_share_a_network_and_tell_how_far_they_are(both_devices):
    x, seen = series(700, 5), []
    options = {"m": 2, "radius": 0.8, "theiler": 3}
    alone = pyedmcl.recurrence_network(x, device=both_devices[0], **options)
    shared = pyedmcl.recurrence_network(
        x, device=list(both_devices), progress=lambda *report: seen.append(report), **options
    )
    np.testing.assert_array_equal(shared.degree, alone.degree)
    np.testing.assert_array_equal(shared.closed, alone.closed)
    assert alone.closed.sum() > 0
    assert list(shared.provenance["device_ids"]) == list(both_devices)
    assert seen[-1] == (699, 699, "points") and len(seen) > 4, "each block is reported"


def test_links_do_not_depend_on_blocks(one_device, monkeypatch):
    x = series(300, 6)
    whole = pyedmcl.recurrence_network(x, radius=0.7, device=one_device)
    monkeypatch.setattr(network_problem, "_BLOCK_BYTES", 4 * 10 * 7)  # 7 points
    cut = pyedmcl.recurrence_network(x, radius=0.7, device=one_device)
    np.testing.assert_array_equal(cut.degree, whole.degree)
    np.testing.assert_array_equal(cut.closed, whole.closed)
