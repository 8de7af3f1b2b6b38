"""Recurrence quantification: published fixtures, every option against the whole matrix, and results."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from rqa_oracle import expected

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.recurrence.arguments import METRICS
from pyedmcl.recurrence.counts import Counts
from pyedmcl.recurrence.measures import SHORT_NAMES

README = [0.1, 0.5, 1.3, 0.7, 0.8, 1.4, 1.6, 1.2, 0.4, 1.1, 0.8, 0.2, 1.3]
README_MEASURES = {
    "RR": 0.371901, "DET": 0.411765, "L": 2.333333, "Lmax": 3, "DIV": 0.333333, "ENTR": 0.636514, "LAM": 0.4,
    "TT": 2.571429, "Vmax": 4, "VENTR": 0.9557, "W": 2.538462, "Wmax": 6, "WDIV": 0.166667, "WENTR": 0.839796,
}  # fmt: skip
ROESSLER = {
    (200, "accrqa"): (0.046627433, 1.0, 23.884057971, 2.797387695, 0.998786408, 5.816254417),
    (200, "pyrqa"): (0.046627433, 1.0, 21.470588235, 2.761660678, 0.998786408, 5.816254417),
    (200, "recurrenceanalysis"): (0.041529184, 1.0, 21.470588235, 2.761660678, 0.972602740, 3.294663573),
    (200, "crqa"): (0.041308284, 1.0, 21.470588235, 2.761660678, 0.972602740, 3.294663573),
    (5321, "accrqa"): (.033179742435475904, .9990076850939971, 18.805156901028564, 3.606044398273929,
                       .9962745418830672, 6.466163274087544),
    (5321, "recurrenceanalysis"): (.032997598453267066, .999002019619778, 18.69867149758454, 3.6058791945021236,
                                   .9949713833427609, 6.242759979487732),
}  # fmt: skip


@pytest.fixture(scope="module")
def roessler():
    """``roessler(n)``: the first n samples of the published series."""
    integrate = pytest.importorskip("scipy.integrate", reason="scipy is not installed: pip install 'pyedmcl[test]'")

    def flow(state, _):
        x, y, z = state
        return -(y + z), x + 0.25 * y, 0.25 + (x - 4) * z

    start = np.random.default_rng(42).random(3)
    samples = integrate.odeint(flow, start, np.arange(5321 + 1000) * 0.05)[1000:, 0]
    return lambda n: samples[:n]


def walk(n, seed):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


def ties(n, seed):
    """Multiples of 1/4: many distances equal the radius exactly."""
    return np.random.default_rng(seed).integers(0, 9, n) / 4


def same(result, wanted):
    assert result.counts == wanted, result.counts.differences(wanted)


def test_readme_example(device):
    found = pyedmcl.rqa(README, m=2, tau=2, radius=0.65, dtype="float64", device=device)
    for name, value in README_MEASURES.items():
        assert found[name] == pytest.approx(value, abs=6e-7), name


@pytest.mark.parametrize(("dtype", "exact"), [("float64", True), ("float32", True)], ids=["float64", "exact"])
@pytest.mark.parametrize(("n", "convention"), ROESSLER)
def test_roessler_fixtures(device, roessler, n, convention, dtype, exact):
    found = pyedmcl.rqa(
        roessler(n), m=3, tau=6, radius=1.2, convention=convention, dtype=dtype, exact=exact, device=device
    )
    measured = [found[name] for name in ("RR", "DET", "L", "ENTR", "LAM", "TT")]
    # The shorter fixtures are published with nine decimals.
    np.testing.assert_allclose(measured, ROESSLER[n, convention], rtol=0, atol=1e-9 if n > 200 else 1.5e-9)


@pytest.mark.parametrize("y", [None, walk(900, 6)], ids=["alone", "cross"])
@pytest.mark.parametrize("tile", [None, 256, 288])
def test_progress_reaches_all_cells(both_devices, tile, y):
    x, seen = walk(1000, 5), []
    for chosen in (both_devices[0], list(both_devices)):
        seen.clear()
        pyedmcl.rqa(x, y, radius=0.5, tile=tile, progress=lambda *at: seen.append(at), device=chosen)
        every = 1000 * 1001 // 2 if y is None else 1000 * 900
        assert seen[-1] == (every, every, "cells")
        assert [at[0] for at in seen] == sorted(at[0] for at in seen)


@pytest.mark.parametrize("theiler", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_smallest_matrices(device, n, theiler):
    for seed in range(8):  # what an earlier call left in memory differs
        x = ties(n, seed)
        found = pyedmcl.rqa(x, radius=0.75, theiler=theiler, device=device)
        same(found, expected(x, radius=0.75, theiler=theiler))


OPTIONS = [
    {"m": 1, "radius": 0.75},
    {"m": 3, "tau": 2, "radius": 1.1, "theiler": 0},
    {"m": 2, "tau": 7, "radius": 0.9, "theiler": 5, "metric": "maximum"},
    {"m": 4, "tau": 1, "radius": 2.5, "theiler": 3, "metric": "manhattan", "convention": "recurrenceanalysis"},
    {"m": 3, "tau": 3, "radius": 1.0, "theiler": 2, "convention": "crqa", "dtype": "float64"},
    {"m": 2, "tau": 1, "radius": 0.8, "convention": "accrqa", "exact": False},
    {"m": 5, "tau": 3, "radius": (0.5, 2.0), "threshold": "corridor"},
    {"m": 2, "tau": 1, "radius": (0.25, 1.0), "threshold": "corridor", "metric": "maximum", "theiler": 0},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("source", ["walk", "ties", "gaps"])
def test_counts_are_those_of_the_matrix(device, source, options):
    x = ties(211, 1) if source == "ties" else walk(211, 2)
    if source == "gaps":
        x[[0, 60, 61, 150]] = np.nan
    same(pyedmcl.rqa(x, device=device, **options), expected(x, **options))


@pytest.mark.parametrize("options", OPTIONS[:5], ids=range(5))
def test_cross_recurrence_is_that_of_the_matrix(device, options):
    """Series of different lengths; the Theiler window lies on both sides of the main diagonal."""
    x, y = walk(180, 3), walk(133, 4)
    x[40] = np.nan
    found = pyedmcl.rqa(x, y, device=device, **options)
    same(found, expected(x, y, **options))
    lag = (options["m"] - 1) * options.get("tau", 1)
    columns = 133 if options.get("convention") == "recurrenceanalysis" else 180
    assert len(found.recurrences) == columns - lag


@pytest.mark.parametrize("metric_y", [None, "maximum"])
@pytest.mark.parametrize("theiler", [0, 4])
def test_joint_recurrence_is_the_and_of_two_matrices(device, metric_y, theiler):
    x, y = walk(150, 5), walk(153, 6)
    y[20] = np.nan
    given = {"m": 2, "tau": 1, "radius": 1.5, "theiler": theiler}
    theirs = {"m": 3, "tau": 2, "radius": 1.2, "theiler": theiler, "metric": metric_y or "euclidean"}
    found = pyedmcl.joint_rqa(x, y, **given, m_y=3, tau_y=2, radius_y=1.2, metric_y=metric_y, device=device)
    same(found, expected(x, joint=y, joint_options=theirs, **given))
    assert 0 < found.counts.points < pyedmcl.rqa(x, device=device, **given).counts.points


def test_joint_radii_in_any_order(one_device):
    x, y = walk(120, 7), walk(120, 8)
    table = pyedmcl.joint_rqa(x, y, radius=[1.0, 0.5, 2.0], radius_y=[0.7, 0.9, 0.3], device=one_device)
    assert len(table) == 3
    for result, a, b in zip(table, [1.0, 0.5, 2.0], [0.7, 0.9, 0.3], strict=True):
        same(result, expected(x, radius=a, joint=y, joint_options={"radius": b}))
        assert result.radius == a


def test_several_states_are_delayed_together(device):
    x = np.stack([walk(140, 9), walk(140, 10)], axis=1)
    by_hand = np.concatenate([x[:-6], x[3:-3], x[6:]], axis=1)
    found = pyedmcl.rqa(x, m=3, tau=3, radius=1.5, device=device)
    same(found, expected(by_hand, radius=1.5))
    same(pyedmcl.rqa(by_hand, radius=1.5, embedded=True, device=device), found.counts)
    cross = pyedmcl.rqa(x, x[:70], m=3, tau=3, radius=1.5, metric="manhattan", device=device)
    same(cross, expected(by_hand, by_hand[:64], radius=1.5, metric="manhattan"))


def test_radii_share_a_pass_and_keep_their_order(device):
    x, radii = walk(160, 11), [1.0, 0.25, 3.0, 0.25]
    table = pyedmcl.rqa(x, m=2, radius=radii, device=device)
    assert table.label == "radius" and table.labels == tuple(radii)
    for result, radius in zip(table, radii, strict=True):
        assert result.radius == radius
        same(result, expected(x, m=2, radius=radius))
    assert list(table.to_frame().index) == radii
    np.testing.assert_array_equal(table.measure("RR"), [r.recurrence_rate for r in table])
    assert [r.radius for r in table[1:3]] == radii[1:3]


def test_tile_edges_change_nothing(device):
    x = walk(300, 12)
    x[100] = np.nan
    whole = pyedmcl.rqa(x, m=2, radius=1.0, theiler=3, device=device)
    for tile in (64, 128, 4096):
        same(pyedmcl.rqa(x, m=2, radius=1.0, theiler=3, tile=tile, device=device), whole.counts)


def test_several_devices_share_the_work(both_devices):
    x = walk(300, 13)
    same(pyedmcl.rqa(x, radius=0.5, tile=64, device=list(both_devices)), expected(x, radius=0.5))


def test_provenance_names_kernels_and_parameters(both_devices):
    """As watched by the caller, whoever else watches, and whichever thread asks."""
    from pyedmcl.tuning.parameters import source

    forced = {"lanes": 1, "wg": 32}
    for device in (both_devices[0], list(both_devices)):
        with source.watching(), source.using(recurrence_lines=forced):
            found = pyedmcl.rqa(walk(90, 18), m=2, radius=0.7, device=device)
        record = found.provenance
        assert set(record["kernels"]) == set(record["tuning"]) >= {"recurrence_bits", "recurrence_transpose"}
        assert all(len(digest) >= 16 for digest in record["kernels"].values())
        # Devices of different classes fill in different defaults.
        found_lines = record["tuning"]["recurrence_lines"]
        assert 1 <= len(found_lines) <= (1 if isinstance(device, str) else 2)
        for lines in found_lines:
            assert lines["grade"] == "forced" and forced.items() <= lines["parameters"].items()
        assert len(record["devices"]) == len(record["drivers"]) == (1 if isinstance(device, str) else 2)


def test_float32_series_count_as_the_numbers_they_are(device):
    x = walk(150, 14).astype(np.float32)
    same(pyedmcl.rqa(x, m=2, radius=0.7, device=device), expected(x.astype(np.float64), m=2, radius=0.7))


def test_gaps_leave_the_denominators(one_device):
    """Two series side by side, a gap between them: rates are over the cells of complete points."""
    x = np.concatenate([walk(80, 15), [np.nan], walk(60, 16)])
    for convention in ("pyrqa", "recurrenceanalysis"):
        found = pyedmcl.rqa(x, radius=0.8, theiler=3, convention=convention, device=one_device)
        i, j = np.indices((141, 141))
        cells = (i != 80) & (j != 80)
        if convention == "recurrenceanalysis":
            cells &= np.abs(i - j) >= 3
        assert found.cells == cells.sum()
        assert found.recurrence_rate == found.counts.points / cells.sum()
    whites = pyedmcl.rqa(x, radius=0.8, device=one_device).white_vertical_lines
    assert len(whites) < 142, "the column of the gap is no white line"


def test_identity_line_of_accrqa_is_interrupted_by_gaps(one_device):
    x = np.arange(30.0)
    x[10] = np.nan
    found = pyedmcl.rqa(x, radius=0.5, convention="accrqa", device=one_device)
    assert found.diagonal_lines[10] == 1 and found.diagonal_lines[19] == 1 and found.diagonal_lines.sum() == 2
    assert found.longest_diagonal_line == 0 and found.divergence == math.inf
    assert found.determinism == 1.0


def test_minimum_lengths_change_without_recomputing(one_device, monkeypatch):
    x = walk(150, 17)
    found = pyedmcl.rqa(x, m=2, radius=0.7, device=one_device)
    anew = pyedmcl.rqa(x, m=2, radius=0.7, lmin=5, vmin=3, wmin=4, device=one_device)
    monkeypatch.setattr("pyedmcl.recurrence.rqa.count", lambda *_: pytest.fail("computed anew"))
    changed = found.with_minimum(lmin=5, vmin=3, wmin=4)
    assert changed.to_dict() == anew.to_dict() != found.to_dict()
    assert found.with_minimum(vmin=3).lmin == 2
    with pytest.raises(InputError, match="lmin=0"):
        found.with_minimum(lmin=0)


def test_names_of_measures(one_device):
    found = pyedmcl.rqa(README, m=2, tau=2, radius=0.65, device=one_device)
    assert isinstance(found.counts, Counts)
    for short, long in SHORT_NAMES.items():
        value = getattr(found, long)
        for other in (getattr(found, short), found[short], found[long], found.to_dict()[long]):
            assert other == value or (math.isnan(other) and math.isnan(value))
    assert list(found.to_dict(short=True)) == list(SHORT_NAMES)
    assert set(SHORT_NAMES) < set(dir(found))
    assert found.to_frame().loc[0.65, "determinism"] == found.DET
    assert found.provenance["convention"] == "pyrqa" and found.provenance["devices"]
    with pytest.raises(FrozenInstanceError):
        found.lmin = 3
    with pytest.raises(AttributeError, match="no attribute 'DTE'"):
        _ = found.DTE
    with pytest.raises(KeyError, match="no measure 'points'"):
        _ = found["points"]


def test_a_single_value_and_a_constant(one_device):
    found = pyedmcl.rqa(np.full(40, 3.5), m=2, radius=1e-9, device=one_device)
    assert found.recurrence_rate == 1 and found.longest_diagonal_line == 38
    assert found.determinism == 1 - 2 / (39 * 38), "the corners are lines of a single cell"
    nothing = pyedmcl.rqa(np.arange(40.0), radius=0.1, device=one_device)
    assert nothing.counts.points == 40 and nothing.longest_diagonal_line == 0
    assert math.isnan(nothing.determinism) and math.isnan(nothing.average_diagonal_line)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("convention", ["pyrqa", "accrqa"])
@pytest.mark.parametrize("exact", [True, False])
def test_a_radius_beyond_all_numbers_holds_every_cell(device, metric, convention, exact):
    x = walk(70, 20)
    x[11] = np.nan
    options = {"metric": metric, "convention": convention, "exact": exact, "device": device, "tile": 32}
    with np.errstate(all="raise"):
        found = pyedmcl.rqa(x, m=3, tau=2, radius=1e300, **options)
    assert found.recurrence_rate == 1 and found.counts.points == 63 * 63
