"""Every metric of the table, everywhere: kernels, the host's arithmetic, guard bands, thresholds, images, docs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recurrence_parts import problem_of
from rqa_oracle import expected, matrix

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError, InputError
from pyedmcl.export.kernel_source import kernel_source
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import build
from pyedmcl.kernels.texts import read_text
from pyedmcl.recurrence.arguments import METRICS, metric_named
from pyedmcl.recurrence.points import embedding_of, points_of
from pyedmcl.recurrence.problem import guard_band, shift_and_scale
from pyedmcl.recurrence.thresholds import compared_pairs
from pyedmcl.reference import recurrence
from pyedmcl.reference.recurrence import NORMS, compared, network
from pyedmcl.reference.recurrence import points_of as oracle_points

EACH = pytest.mark.parametrize("metric", METRICS)
DOCS = (Path(__file__).resolve().parents[2] / "docs" / "recurrence.md").read_text(encoding="utf-8")


def walk(n, seed):
    x = np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3
    x[n // 3] = np.nan
    return x


def radius_of(metric, x, m, tau, share=0.2):
    """A radius that some cells are within, and some not."""
    points = oracle_points(x, m, tau, metric=metric)
    d = NORMS[metric].distance(compared(points, points, metric))
    return float(np.nanquantile(d, share))


@EACH
@pytest.mark.parametrize("exact", [True, False])
def test_counts_are_those_of_the_matrix(device, metric, exact):
    x, y, m, tau = walk(203, 1), walk(131, 2), 3, 2
    radius = radius_of(metric, x, m, tau)
    options = {"m": m, "tau": tau, "metric": metric, "exact": exact}
    for other in (None, y):
        found = pyedmcl.rqa(x, other, radius=radius, device=device, **options)
        assert found.counts == expected(x, other, radius=radius, **options)
        corridor = {"radius": (radius / 2, radius), "threshold": "corridor"}
        assert pyedmcl.rqa(x, other, device=device, **corridor, **options).counts == expected(
            x, other, **corridor, **options
        )


@EACH
def test_counts_of_given_points_are_those_of_the_matrix(device, metric):
    x = np.stack([walk(150, 3), 10 * walk(150, 4), walk(150, 5)], axis=1)
    radius = radius_of(metric, x, 1, 1)
    found = pyedmcl.rqa(x, radius=radius, metric=metric, embedded=True, device=device)
    assert found.counts == expected(x, radius=radius, metric=metric)


@EACH
def test_windows_and_networks_are_those_of_the_matrix(device, metric):
    x, m, tau = walk(160, 6), 3, 2
    options = {"m": m, "tau": tau, "metric": metric, "radius": radius_of(metric, x, m, tau)}
    for start, found in zip(range(0, 101, 25), pyedmcl.windowed_rqa(x, 60, 25, device=device, **options), strict=True):
        assert found.counts == expected(x[start : start + 60], **options)
    wanted = network(matrix(x, **options), 1)
    np.testing.assert_array_equal(pyedmcl.recurrence_network(x, device=device, **options).degree, wanted["degree"])


@EACH
def test_selected_thresholds_are_order_statistics(device, metric):
    x, m, tau = walk(170, 7), 3, 2
    points = oracle_points(x, m, tau, metric=metric)
    d = compared(points, points, metric)
    options = {"m": m, "tau": tau, "metric": metric, "device": device}
    rated = pyedmcl.rqa(x, radius=0.1, threshold="recurrence_rate", **options)
    cells = int(np.count_nonzero(~np.isnan(d)))
    kept = np.sort(d[~np.isnan(d)])
    k = next(k for k in range(int(0.1 * cells), cells) if k / cells >= 0.1)
    assert rated.counts.points == np.count_nonzero(kept <= kept[k - 1])
    distance = NORMS[metric].distance(kept[k - 1])
    assert 0 <= rated.radius - distance <= 2 * np.spacing(distance), "within it, and not at it"
    near = pyedmcl.rqa(x, radius=7, threshold="neighbours", **options)
    away = np.where(np.eye(len(d), dtype=bool), np.nan, d)
    with np.errstate(invalid="ignore"):
        wanted = (d <= np.sort(away, axis=0)[6]).sum(axis=0)  # NaN is sorted last
    np.testing.assert_array_equal(near.recurrences, wanted)


@EACH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plots_are_those_of_the_matrix(device, metric, dtype):
    x, m, tau, pixels = walk(120, 8), 3, 2, (29, 29)
    options = {"m": m, "tau": tau, "metric": metric, "dtype": dtype, "pixels": pixels, "device": device}
    radius = radius_of(metric, x, m, tau)
    plot = pyedmcl.recurrence_plot(x, radius=radius, **options)
    cells = matrix(x, m=m, tau=tau, metric=metric, radius=radius).astype(np.int64)
    np.testing.assert_array_equal(plot.counts, recurrence.binned(cells, pixels))
    means = recurrence.mean_distances(x, x, pixels, m=m, tau=tau, metric=metric)
    found = pyedmcl.distance_plot(x, **options).means
    np.testing.assert_allclose(found, means, rtol=1e-5, atol=1e-6 * np.nanmax(means))


@EACH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_host_finds_the_bits_of_the_oracle(metric, dtype):
    x, m, tau = walk(90, 9), 3, 2
    points = points_of(x, "x", embedding_of(m=m, tau=tau, embedded=False, metric=metric))
    problem = replace(
        problem_of(points.n), m=points.m, tau=points.tau, metric=metric, dtype=dtype, exact=False,
        embedded=points.embedded, n_features=points.n_features,
    )  # fmt: skip
    i, j = (side.ravel() for side in np.indices((points.n, points.n)))
    wanted = compared(*2 * [oracle_points(x, m, tau, dtype, metric)], metric)
    np.testing.assert_array_equal(compared_pairs(problem, points, points, i, j).reshape(wanted.shape), wanted)


def test_a_metric_may_compare_other_points():
    """Here their magnitudes; what has none counts as a gap."""
    x = np.stack([walk(30, 1), walk(30, 2)], axis=1)
    x[4] = 0
    row = replace(METRICS["manhattan"], prepare=lambda points: np.where(points == 0, np.nan, np.abs(points)))
    for given, m, coordinates in ((x, 2, 4), (x[:, 0], 3, 3)):
        embedding = replace(embedding_of(m=m, tau=3, embedded=False, metric="manhattan"), metric=row)
        points = points_of(given, "x", embedding)
        assert points.embedded and points.coordinates == points.n_features == coordinates
        wanted = np.abs(oracle_points(given, m, 3) if given.ndim == 1 else np.hstack([given[:-3], given[3:]]))
        gaps = np.isnan(wanted).any(axis=1) | (wanted == 0).any(axis=1)
        np.testing.assert_array_equal(points.complete, ~gaps)
        np.testing.assert_array_equal(points.values[~gaps], wanted[~gaps])
        assert points.embedding.described == {"m": m, "tau": 3, "metric": "manhattan", "normalize": None}


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_cosine_is_one_minus_the_cosine(device, unit):
    rng = np.random.default_rng(11)
    x = unit * rng.standard_normal((60, 3)) * rng.uniform(0.1, 9, (60, 1))
    x[7] = 0
    means = pyedmcl.distance_plot(x, metric="cosine", embedded=True, dtype="float64", device=device).matrix
    small = x / unit
    length = np.sqrt((small**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        wanted = 1 - small @ small.T / np.outer(length, length)
    np.testing.assert_allclose(means, wanted, atol=1e-9)
    result = pyedmcl.rqa(x, radius=0.3, metric="cosine", embedded=True, theiler=0, device=device)
    assert result.recurrences[7] == 0 and result.cells == 59**2
    assert result.counts.points == np.count_nonzero(wanted < 0.3)
    every = pyedmcl.rqa(x, radius=2.1, metric="cosine", embedded=True, device=device)
    assert every.recurrence_rate == 1


@EACH
def test_limits_are_what_radii_stand_for(metric):
    radii = np.array([0.1, 0.7, 3.0])
    row = metric_named(metric)
    np.testing.assert_array_equal(row.limit_of(radii), NORMS[metric].limit(radii))
    np.testing.assert_allclose(row.radius_of(row.limit_of(radii)), radii)


@EACH
@pytest.mark.parametrize(("offset", "unit"), [(0.0, 1.0), (1e4, 1.0), (-300.0, 1e-2), (0.0, 1e-18), (5.0, 1e15)])
def test_float32_never_decides_otherwise_than_float64(metric, offset, unit):
    """Random pairs, most of them close to the limit: outside the guard band float32 agrees with float64."""
    row, rng = metric_named(metric), np.random.default_rng(3)
    m, n = 5, 20_000
    a, step = rng.standard_normal((2, n, m))
    to_limit = (row.limit_of(0.7) / row.compared(iter(step.T))) ** (1 / row.degree)
    step *= (to_limit * (1 + rng.standard_normal(n) * 10.0 ** rng.uniform(-9, -1, n)))[:, None]
    x, y = offset + unit * a, offset + unit * (a + step)
    limit = np.array([row.limit_of(0.7) * unit**row.degree])
    scaling = shift_and_scale(x, y)
    low, high = guard_band(limit * scaling.scale**row.degree, row, m, scaling.value_error)
    exact = row.compared(iter((x - y).T))
    narrow_x, narrow_y = (((side - scaling.shift) * scaling.scale).astype(np.float32) for side in (x, y))
    narrow = row.compared(iter((narrow_x - narrow_y).T))
    assert (exact[narrow < low] < limit).all() and (exact[narrow >= high] > limit).all()
    undecided = (narrow >= low) & (narrow < high)
    assert 0 < undecided.mean() < 0.6
    assert np.log2(scaling.largest) <= 0


@EACH
def test_docs_say_what_the_metric_is(metric):
    assert re.search(rf"^\s*\| `{metric}` \| {re.escape(METRICS[metric].meaning)} \|", DOCS, re.MULTILINE)


def test_docs_header_and_oracle_have_the_metrics_of_the_table():
    table = DOCS[DOCS.index("| metric | distance |") :]
    listed = re.findall(r"^\s*\| `(\w+)` \|", table[: table.index("\n*")], re.MULTILINE)
    defined = re.findall(r"^#define TERM_(\w+)", read_text("clkernels", "metric.clh"), re.MULTILINE)
    assert listed == defined == list(NORMS) == list(METRICS)


def test_no_kernel_compiles_for_a_metric_that_the_header_lacks(one_device):
    values = {**problem_of(9).cell, "strict": True, "wg": 8}
    build(open_device(one_device), spec("recurrence_network"), values)
    with pytest.raises(BuildError, match="hamming"):
        build(open_device(one_device), spec("recurrence_network"), {**values, "metric": "hamming"})


@pytest.mark.parametrize("name", ["hamming", "Euclidean", "", None, 2])
def test_an_unknown_metric_is_refused_everywhere(one_device, name):
    executor = open_device(one_device)
    for function, radius in (
        (pyedmcl.rqa, {"radius": 1.0}), (pyedmcl.recurrence_network, {"radius": 1.0}),
        (pyedmcl.recurrence_plot, {"radius": 1.0}), (pyedmcl.distance_plot, {}),
    ):  # fmt: skip
        with pytest.raises(InputError, match="choose one of 'euclidean'"):
            function(walk(50, 1), metric=name, device=executor.info.id, **radius)
    with pytest.raises(InputError, match=f"metric={name!r}"):
        replace(problem_of(9), metric=name)


def test_names_of_other_packages_lead_to_ours():
    with pytest.raises(InputError, match="'Cityblock', which is called 'manhattan' here: choose one of"):
        metric_named("Cityblock")


@EACH
def test_an_exported_kernel_says_what_a_radius_is_compared_as(metric):
    described = kernel_source("recurrence_bits", m=2, metric=metric, target="cpu").description["arguments"]
    limits = next(argument["meaning"] for argument in described if argument["name"] == "limits")
    row = metric_named(metric)
    words = {3.0: "compared: the radius", 6.0: "compared: twice the radius", 9.0: "compared: the square of the radius"}
    assert words[float(row.limit_of(3.0))] in limits
    assert ("divided by their length" in limits) == (row.prepare is not None)


@pytest.mark.parametrize("most", [0.1, 1.0, 3.0])
def test_points_of_the_circle_are_as_far_apart_as_angles(one_device, most):
    """What docs/recurrence.md says of angles."""
    angle = np.random.default_rng(3).uniform(-7, 7, 300)
    apart = np.abs(angle[:, None] - angle) % (2 * np.pi)
    near = np.minimum(apart, 2 * np.pi - apart) < most
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    found = pyedmcl.rqa(circle, radius=2 * np.sin(most / 2), theiler=0, device=one_device)
    np.testing.assert_array_equal(found.counts.columns, near.sum(axis=0))
