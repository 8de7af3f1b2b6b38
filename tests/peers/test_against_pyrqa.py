"""PyRQA 8.1: the same histograms and measures on random series, but for its defects, which the matrix shows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rqa_oracle import expected

import pyedmcl
from pyedmcl.device.runtimes import opencl
from pyedmcl.recurrence.measures import SHORT_NAMES

# PyRQA calls PyOpenCL by names of old.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyrqa", "ignore:overflow encountered")

METRICS = ("euclidean", "maximum", "manhattan")
MEASURES = {
    "recurrence_rate": "RR", "determinism": "DET", "average_diagonal_line": "L", "longest_diagonal_line": "Lmax",
    "divergence": "DIV", "entropy_diagonal_lines": "ENTR", "laminarity": "LAM", "trapping_time": "TT",
    "longest_vertical_line": "Vmax", "entropy_vertical_lines": "VENTR", "average_white_vertical_line": "W",
    "longest_white_vertical_line": "Wmax", "entropy_white_vertical_lines": "WENTR",
    "longest_white_vertical_line_inverse": "WDIV",
}  # fmt: skip


@pytest.fixture(scope="module")
def peer(one_device):
    """``peer(x, y, m=, tau=, radius=, metric=, theiler=)``: PyRQA's result in float64, on the same device."""
    opencl()  # before PyRQA imports PyOpenCL, so that it sees the runtimes that were installed by pip
    pytest.importorskip("pyrqa", reason="PyRQA is not installed: pip install 'pyedmcl[peers]'")
    from pyrqa.analysis_type import Classic, Cross
    from pyrqa.computation import JRQAComputation, RQAComputation
    from pyrqa.metric import EuclideanMetric, MaximumMetric, TaxicabMetric
    from pyrqa.neighbourhood import FixedRadius, RadiusCorridor
    from pyrqa.opencl import OpenCL
    from pyrqa.settings import JointSettings, Settings
    from pyrqa.time_series import TimeSeries

    platform, number = map(int, one_device.split(":"))
    environment = OpenCL(platform_id=platform, device_ids=(number,))
    metrics = dict(zip(METRICS, (EuclideanMetric, MaximumMetric, TaxicabMetric), strict=True))

    def settings(x, y=None, *, m, tau, radius, metric, theiler):
        series = [TimeSeries(s, embedding_dimension=m, time_delay=tau, dtype=np.float64) for s in (x, y)
                  if s is not None]  # fmt: skip
        return Settings(
            series[0] if y is None else tuple(series),
            analysis_type=Classic if y is None else Cross,
            neighbourhood=RadiusCorridor(*radius) if isinstance(radius, tuple) else FixedRadius(radius),
            similarity_measure=metrics[metric],
            theiler_corrector=theiler,
        )

    def run(x, y=None, joint=None, edge=10240, **given):
        if joint is None:
            return RQAComputation.create(settings(x, y, **given), edge_length=edge, opencl=environment).run()
        both = JointSettings(settings(x, **given), settings(joint[0], **joint[1]))
        return JRQAComputation.create(both, edge_length=edge, opencl=environment).run()

    return run


def series(n, seed):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


def compare(ours, theirs, diagonals=True):
    histograms = {
        "vertical_frequency_distribution": ours.vertical_lines,
        "white_vertical_frequency_distribution": ours.white_vertical_lines,
    }
    if diagonals:
        histograms["diagonal_frequency_distribution"] = ours.diagonal_lines
    for name, lines in histograms.items():
        other = getattr(theirs, name)
        np.testing.assert_array_equal(other[: len(lines) - 1], lines[1:], err_msg=name)
        assert not other[len(lines) - 1 :].any(), name
    np.testing.assert_array_equal(theirs.recurrence_points, ours.recurrences)
    for name, short in MEASURES.items():
        lines = "diagonal" in name or name in ("determinism", "divergence")
        if diagonals or not lines:
            # PyRQA rounds numerators to float32; over no lines it has NaN, as here, or an entropy of 0.
            value = getattr(theirs, name)
            if np.isnan(ours[short]):
                assert np.isnan(value) or value == 0, name
            else:
                assert value == pytest.approx(ours[short], rel=1e-6), name


GRID = list(itertools.product(METRICS, [(1, 1), (3, 2), (5, 3)], [0, 1, 6]))


@pytest.mark.parametrize(("metric", "embedding", "theiler"), GRID)
def test_one_series(peer, one_device, metric, embedding, theiler):
    m, tau = embedding
    for seed, radius in enumerate((0.4, 1.6)):
        x = series(151, seed)
        given = {"m": m, "tau": tau, "radius": radius, "metric": metric, "theiler": theiler}
        compare(pyedmcl.rqa(x, device=one_device, **given), peer(x, **given))


@pytest.mark.parametrize(("metric", "embedding", "theiler"), [g for g in GRID if g[2] < 2])
def test_two_series(peer, one_device, metric, embedding, theiler):
    m, tau = embedding
    x, y = series(130, 10), series(101, 11)
    given = {"m": m, "tau": tau, "radius": 1.1, "metric": metric, "theiler": theiler}
    compare(pyedmcl.rqa(x, y, device=one_device, **given), peer(x, y, **given))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("theiler", [0, 1, 6])
def test_joint(peer, one_device, metric, theiler):
    x, y = series(120, 12), series(125, 13)  # 119 points each
    given = {"m": 2, "tau": 1, "radius": 1.5, "metric": metric, "theiler": theiler}
    other = {"m": 3, "tau": 3, "radius": 1.9, "metric": "maximum", "theiler": theiler}
    ours = pyedmcl.joint_rqa(x, y, **given, m_y=3, tau_y=3, radius_y=1.9, metric_y="maximum", device=one_device)
    compare(ours, peer(x, joint=(y, other), **given))


@pytest.mark.parametrize("metric", METRICS)
def test_corridor(peer, one_device, metric):
    x = series(140, 14)
    given = {"m": 2, "tau": 3, "radius": (0.4, 1.3), "metric": metric, "theiler": 1}
    compare(pyedmcl.rqa(x, threshold="corridor", device=one_device, **given), peer(x, **given))


@pytest.mark.parametrize("theiler", [2, 5])
def test_defect_theiler_window_of_two_series(peer, one_device, theiler):
    """PyRQA drops one side of the window only, and which one depends on its tiles; here it is as the matrix says."""
    x, y = series(130, 15), series(120, 16)
    given = {"m": 2, "tau": 1, "radius": 1.1, "metric": "euclidean", "theiler": theiler}
    ours = pyedmcl.rqa(x, y, device=one_device, **given)
    assert ours.counts == expected(x, y, **given)
    theirs = [peer(x, y, edge=edge, **given) for edge in (10240, 50)]
    compare(ours, theirs[0], diagonals=False)
    found = [t.diagonal_frequency_distribution[: len(ours.diagonal_lines) - 1] for t in theirs]
    assert not np.array_equal(found[0], ours.diagonal_lines[1:]), "the defect is gone: drop this exception"


def test_defect_corridor_without_a_window(peer, one_device):
    """PyRQA takes the main diagonal's line from a histogram that does not hold it, and its last bin underflows."""
    x = series(100, 17)
    given = {"m": 2, "tau": 1, "radius": (0.4, 1.3), "metric": "euclidean", "theiler": 0}
    ours = pyedmcl.rqa(x, threshold="corridor", device=one_device, **given)
    assert ours.counts == expected(x, threshold="corridor", **given)
    theirs = peer(x, **given)
    compare(ours, theirs, diagonals=False)
    assert theirs.diagonal_frequency_distribution[-1] > 2**31, "the defect is gone: drop this exception"


def test_every_measure_of_the_peer_is_compared():
    ours_alone = {"TREND", "T1", "T2", "RTE", "RATIO", "CORM"}
    assert set(MEASURES.values()) == set(SHORT_NAMES) - ours_alone
