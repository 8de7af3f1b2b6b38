"""PyRQA's scripts on our adapter: its own tests, and random settings beside the installed PyRQA."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from pyrqa_helpers import METRICS, compare, draw, names_of, run, settings_in, walk
from rqa_oracle import expected

import pyedmcl
from pyedmcl.device.runtimes import opencl
from pyedmcl.errors import InputError

# PyRQA calls PyOpenCL by names of old.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyrqa", "ignore:overflow encountered")

# Tests of PyRQA that pin what the adapter does not copy (docs/pyrqa.md), with the reason; of 8.1 there is none.
PINNED: dict[str, str] = {}


@pytest.fixture(scope="module")
def theirs(one_device):
    opencl()  # before PyRQA imports PyOpenCL, so that it sees the runtimes that were installed by pip
    pytest.importorskip("pyrqa", reason="PyRQA is not installed: pip install 'pyedmcl[peers]'")
    found = names_of("pyrqa")
    platform, number = map(int, one_device.split(":"))
    found.environment = found.OpenCL(platform_id=platform, device_ids=(number,))
    return found


@pytest.fixture(scope="module")
def adapter(one_device):
    found = names_of("pyedmcl.compat.pyrqa")
    platform, number = map(int, one_device.split(":"))
    found.environment = found.OpenCL(platform_id=platform, device_ids=(number,))
    return found


def test_its_own_suite(one_device):
    pytest.importorskip("pyrqa", reason="PyRQA is not installed: pip install 'pyedmcl[peers]'")
    if version("PyRQA") != "8.1.0":
        pytest.skip(f"PyRQA {version('PyRQA')}; the list of pinned tests is for 8.1.0")
    path = os.pathsep.join(filter(None, [str(Path(pyedmcl.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYEDMCL_DEVICE": one_device}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("pyrqa_suite.py"))], capture_output=True,
                          text=True, timeout=280, env=environment)  # fmt: skip
    outcome = {name: word for word, name in re.findall(r"^(PASSED|FAILED|SKIPPED) (\S+)", done.stdout, re.MULTILINE)}
    assert len(outcome) == 28, done.stdout[-3000:] + done.stderr[-3000:]
    failed = {name for name, word in outcome.items() if word != "PASSED"}
    assert failed <= set(PINNED), done.stdout[-6000:]


def test_random_settings(theirs, adapter):
    rng = np.random.default_rng(0)
    for kind, corridor in [*itertools.product(("Classic", "Cross"), (False, True)), ("Cross", False)]:
        x, y, given = walk(120, rng), walk(95, rng), draw(rng, kind, corridor)
        edge = int(rng.integers(30, 90)) if rng.random() < 0.5 else None
        ours = run(adapter, settings_in(adapter, x, y, **given), "RQAComputation", edge_length=edge)
        compare(ours, run(theirs, settings_in(theirs, x, y, **given), "RQAComputation"))


def test_plots(theirs, adapter):
    rng = np.random.default_rng(1)
    for kind, corridor in (("Classic", True), ("Cross", False)):
        x, y, given = walk(70, rng), walk(60, rng), draw(rng, kind, corridor)
        ours, other = (run(package, settings_in(package, x, y, **given), "RPComputation")
                       for package in (adapter, theirs))  # fmt: skip
        assert ours.recurrence_matrix.dtype == other.recurrence_matrix.dtype
        np.testing.assert_array_equal(ours.recurrence_matrix, other.recurrence_matrix)
        np.testing.assert_array_equal(ours.recurrence_matrix_reverse, other.recurrence_matrix_reverse)
        distances = []
        for package in (adapter, theirs):
            made = settings_in(package, x, y, **given)
            made.neighbourhood = package.Unthresholded()
            distances.append(run(package, made, "RPComputation"))
        assert distances[0].recurrence_matrix.dtype == distances[1].recurrence_matrix.dtype
        for name in ("recurrence_matrix", "recurrence_matrix_reverse_normalized"):
            one, two = (getattr(each, name) for each in distances)
            np.testing.assert_allclose(one, two, rtol=0, atol=2e-6 * np.abs(two).max())


def test_plots_are_drawn_in_strips(adapter, monkeypatch):
    x = walk(90, np.random.default_rng(7))
    for made in (adapter.TimeSeries(x, embedding_dimension=3, time_delay=4),
                 adapter.EmbeddedSeries(x.reshape(45, 2))):  # fmt: skip
        for condition in (adapter.FixedRadius(0.8), adapter.Unthresholded()):
            settings = adapter.Settings(made, neighbourhood=condition)
            whole = run(adapter, settings, "RPComputation").recurrence_matrix
            with monkeypatch.context() as patch:
                patch.setattr("pyedmcl.recurrence.image_problem._BLOCK_PIXELS", 700)
                parts = run(adapter, settings, "RPComputation").recurrence_matrix
            np.testing.assert_allclose(parts, whole, rtol=1e-6)
            np.testing.assert_allclose(parts, parts.T, rtol=1e-6)


@pytest.mark.parametrize("kinds", list(itertools.product(["Classic", "Cross"], repeat=2)), ids="-".join)
def test_joint(theirs, adapter, kinds):
    rng = np.random.default_rng(2)
    for corridors in ((False, True), (False, False)):
        sides = []
        for number, (kind, corridor) in enumerate(zip(kinds, corridors, strict=True)):
            m, tau = (2, 1) if number else (3, 2)
            near = (0.2, 1.9) if corridor else 1.6
            n, shorter = 80 + (m - 1) * tau, 80 + (m - 1) * (tau + 1)  # 80 vectors each
            sides.append(((walk(n, rng), walk(shorter, rng)), {
                "kind": kind, "metric": METRICS[number], "near": near, "theiler": 1, "m": m, "tau": tau,
                "dtype": np.float64, "embedded": False}))  # fmt: skip
        both = [package.JointSettings(*(settings_in(package, *series, **given) for series, given in sides))
                for package in (adapter, theirs)]  # fmt: skip
        compare(run(adapter, both[0], "JRQAComputation"), run(theirs, both[1], "JRQAComputation"))
        ours, other = run(adapter, both[0], "JRPComputation"), run(theirs, both[1], "JRPComputation")
        np.testing.assert_array_equal(ours.recurrence_matrix, other.recurrence_matrix)
        assert ours.recurrence_matrix.dtype == other.recurrence_matrix.dtype == np.uint8


def test_texts_and_files(theirs, adapter, tmp_path):
    """The example that PyRQA's documentation begins with, as it is printed and written."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    x = [0.1, 0.5, 1.3, 0.7, 0.8, 1.4, 1.6, 1.2, 0.4, 1.1, 0.8, 0.2, 1.3]
    said, plots = [], []
    for package in (adapter, theirs):
        made = package.Settings(package.TimeSeries(x), neighbourhood=package.FixedRadius(0.65))
        result = run(package, made, "RQAComputation")
        shown = [str(result), re.sub(r"'[\w.]*\.", "'", str(made)), str(package.RadiusCorridor()), str(package.FAN())]
        result.min_diagonal_line_length, result.min_vertical_line_length = 1, 3
        said.append([*shown, str(result), str(package.Unthresholded())])
        path = tmp_path / f"{len(plots)}.png"
        package.ImageGenerator.save_recurrence_plot(run(package, made, "RPComputation").recurrence_matrix_reverse, path)
        made.neighbourhood = package.Unthresholded()
        grey = tmp_path / f"{len(plots)}_grey.png"
        package.ImageGenerator.save_unthresholded_recurrence_plot(
            run(package, made, "RPComputation").recurrence_matrix_reverse_normalized, grey)  # fmt: skip
        plots.append([np.asarray(pillow.open(file)).astype(int) for file in (path, grey)])
    assert said[0] == said[1] and "Recurrence rate (RR): 0.371901" in said[0][0]
    np.testing.assert_array_equal(plots[0][0], plots[1][0])
    assert np.abs(plots[0][1] - plots[1][1]).max() <= 1  # a distance may be rounded the other way


def test_results_have_its_attributes(theirs, adapter):
    for name in ("RQAResult", "RPResult", "TimeSeries", "EmbeddedSeries", "FixedRadius", "RadiusCorridor", "FAN",
                 "Unthresholded", "EuclideanMetric", "ImageGenerator", "OperatorRuntimes"):  # fmt: skip
        wanted = {member for member in dir(getattr(theirs, name)) if not member.startswith("_")}
        assert wanted <= set(dir(getattr(adapter, name))), name
    kernels = re.compile("kernel|operator|base_path")  # of PyRQA's own texts
    for name in ("Settings", "JointSettings"):
        wanted = {member for member in dir(getattr(theirs, name))
                  if not member.startswith("_") and not kernels.search(member)}  # fmt: skip
        assert wanted <= set(dir(getattr(adapter, name))), name
    given = inspect.signature(theirs.RQAResult.__init__).parameters
    assert list(inspect.signature(adapter.RQAResult.__init__).parameters) == list(given)
    for name in ("Settings", "TimeSeries", "EmbeddedSeries", "FixedRadius", "RadiusCorridor", "OpenCL"):
        one, two = (inspect.signature(getattr(package, name)).parameters for package in (adapter, theirs))
        assert list(one) == list(two), name


def test_series_give_their_vectors(theirs, adapter):
    rng = np.random.default_rng(3)
    values = rng.standard_normal(40)
    for made in (lambda p: p.TimeSeries(values, embedding_dimension=3, time_delay=4),
                 lambda p: p.EmbeddedSeries(values.reshape(10, 4), dtype=np.float64)):  # fmt: skip
        one, two = made(adapter), made(theirs)
        assert one.number_of_vectors == two.number_of_vectors
        for name, given in (("get_vectors_as_rows", ()), ("get_sub_vectors_as_rows", (2, 5)),
                            ("get_sub_vectors_as_columns", (2, 5))):  # fmt: skip
            ours, other = getattr(one, name)(*given), getattr(two, name)(*given)
            assert ours.dtype == other.dtype
            np.testing.assert_array_equal(ours, other)
    one, two = (p.TimeSeries(values, embedding_dimension=3, time_delay=4) for p in (adapter, theirs))
    np.testing.assert_array_equal(one.get_sub_series(3, 6), two.get_sub_series(3, 6))
    for name in METRICS:
        metric, other = getattr(adapter, name), getattr(theirs, name)
        assert (metric.name, metric.get_p(), metric.is_symmetric()) == (other.name, other.get_p(), True)
        assert metric.get_distance_vectors(values, values, 3, 1, 7) == pytest.approx(
            other.get_distance_vectors(values, values, 3, 1, 7))  # fmt: skip
        assert metric.get_distance_time_series(values, values, 3, 2, 1, 4, 9) == pytest.approx(
            other.get_distance_time_series(values, values, 3, 2, 1, 4, 9))  # fmt: skip


def test_half_precision_is_rounded_to(adapter):
    x = walk(90, np.random.default_rng(4))
    made = adapter.Settings(adapter.TimeSeries(x, dtype=np.float16), neighbourhood=adapter.FixedRadius(0.7))
    rounded = adapter.Settings(adapter.TimeSeries(x.astype(np.float16), dtype=np.float32),
                               neighbourhood=adapter.FixedRadius(0.7))  # fmt: skip
    compare(run(adapter, made, "RQAComputation"), run(adapter, rounded, "RQAComputation"))


def test_measures_without_lines(adapter):
    made = adapter.Settings(adapter.TimeSeries(np.arange(9.0)), neighbourhood=adapter.FixedRadius(0.5),
                            theiler_corrector=1)  # fmt: skip
    result = run(adapter, made, "RQAComputation")
    assert result.longest_diagonal_line == 0 and result.divergence == np.inf and np.isnan(result.determinism)
    assert result.entropy_diagonal_lines == 0 and result.number_of_diagonal_lines(0) == 0
    assert result.recurrence_rate == pytest.approx(1 / 7)
    assert json.loads(result.to_json())["Longest diagonal line length (L_max)"] == 0
    assert result.indices_by_local_recurrence_rate(0.2).tolist() == list(range(7))
    assert result.matrix_runtimes.total > 0


def test_defect_lengths_in_files(adapter, tmp_path):
    """PyRQA writes each length larger by the minimum length less one."""
    made = adapter.Settings(adapter.TimeSeries(np.zeros(12)), theiler_corrector=0)
    result = run(adapter, made, "RQAComputation")
    result.persist_vertical_frequency_distribution(tmp_path / "lines")
    assert (tmp_path / "lines").read_text().splitlines()[-1] == "10: 10"


def test_defect_theiler_window_of_two_series(adapter):
    rng = np.random.default_rng(5)
    x, y = walk(90, rng), walk(80, rng)
    given = {"m": 2, "tau": 1, "radius": 1.1, "metric": "euclidean", "theiler": 4}
    made = adapter.Settings(tuple(adapter.TimeSeries(s, np.float64, 2, 1) for s in (x, y)), adapter.Cross,
                            neighbourhood=adapter.FixedRadius(1.1), theiler_corrector=4)  # fmt: skip
    lines = run(adapter, made, "RQAComputation").diagonal_frequency_distribution
    wanted = expected(x, y, **given).diagonals[1:]
    np.testing.assert_array_equal(lines[: len(wanted)], wanted)
    assert not lines[len(wanted) :].any()


def test_defect_corridor_without_window(adapter):
    """PyRQA takes 1 from the number of longest lines, of which there is none: the main diagonal is no line here."""
    x = walk(80, np.random.default_rng(6))
    made = adapter.Settings(adapter.TimeSeries(x, np.float64, 2, 1), neighbourhood=adapter.RadiusCorridor(0.2, 0.9),
                            theiler_corrector=0)  # fmt: skip
    result = run(adapter, made, "RQAComputation")
    assert result.diagonal_frequency_distribution[-1] == 0
    assert result.number_of_diagonal_lines_points(1) == result.number_of_recurrence_points


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: p.TimeSeries([1], dtype=np.int32), "UnsupportedDataTypeException", "float16, float32 or float64"),
        (lambda p: p.EmbeddedSeries([[1, 2], [3]]), "InconsistentDimensionalityException", "one dimension"),
        (lambda p: p.Settings(3), "InvalidTimeSeriesInputException", "pair of them"),
        (lambda p: p.Settings((p.TimeSeries([1, 2]), 5)), "InvalidTimeSeriesInputException", "time series y"),
        (lambda p: p.JointSettings(p.Settings(p.TimeSeries(range(9))), p.Settings(p.TimeSeries(range(8)))),
         "InvalidSettingsException", "number_of_vectors_x: 7 and 6"),
        (lambda p: p.RQAComputation.create(p.Settings(p.TimeSeries(range(9)), neighbourhood=p.FAN(3))),
         "UnsupportedNeighbourhoodException", "FixedRadius or RadiusCorridor"),
        (lambda p: p.RQAComputation.create(p.Settings(p.TimeSeries(range(9)), neighbourhood=p.Unthresholded())),
         "UnsupportedNeighbourhoodException", "Unthresholded"),
        (lambda p: p.JRPComputation.create(p.Settings(p.TimeSeries(range(9)))),
         "UnsupportedAnalysisTypeException", "JointSettings"),
        (lambda p: p.OpenCL(platform_id=99), "OpenCLPlatformIndexOutOfBoundsException", "platform_id=99"),
        (lambda p: p.OpenCL(device_ids=(99,)), "OpenCLDeviceIndexOutOfBoundsException", r"device_ids=\(99,\)"),
        (lambda p: p.OpenCL(enable_device_fission=True), "DeviceFissionNotSupportedException", "as a whole"),
        (lambda p: p.Settings((p.TimeSeries([1], np.float32), p.TimeSeries([1], np.float64))).dtype,
         "DeviatingFloatingPointPrecisionException", "float32 of time series x and float64"),
    ],
)  # fmt: skip
def test_exceptions_are_its_own(adapter, make, error, words):
    with pytest.raises(getattr(adapter.exceptions, error), match=words) as caught:
        make(adapter)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"neighbourhood": "FixedRadius", "condition": (-1.0,)}, "radius=-1.0"),
        ({"neighbourhood": "RadiusCorridor", "condition": (2.0, 1.0)}, "inner < outer"),
        ({"theiler_corrector": 100}, "theiler=100"),
        ({"theiler_corrector": -1}, "theiler=-1"),
        ({"analysis_type": "Joint"}, "Classic or Cross"),
        ({"time_series_y": 1}, "Classic takes one series"),
    ],
)
def test_bad_settings_are_named(adapter, change, words):
    made = adapter.Settings(adapter.TimeSeries(np.arange(30.0)))
    if "condition" in change:
        made.neighbourhood = getattr(adapter, change["neighbourhood"])(*change["condition"])
    elif "time_series_y" in change:
        made.time_series_y = adapter.TimeSeries(np.arange(1.0, 31.0))
    else:
        name, value = next(iter(change.items()))
        setattr(made, name, getattr(adapter, value) if isinstance(value, str) else value)
    with pytest.raises(InputError, match=words):
        run(adapter, made, "RQAComputation")


def test_unknown_options_are_named(adapter):
    made = adapter.Settings(adapter.TimeSeries(np.arange(30.0)))
    with pytest.raises(InputError, match="edges=3 is unknown"):
        adapter.RQAComputation.create(made, edges=3)
    others = {"selector": adapter.EpsilonGreedySelector(explore=2), "processing_order": adapter.Bulk, "variants": ()}
    assert run(adapter, made, "RQAComputation", verbose=True, **others).number_of_recurrence_points > 0


@pytest.mark.parametrize(("delay", "radius"), [(0, 0.25), (1, float("inf"))])
def test_a_delay_that_is_not_looked_at_and_a_radius_without_end(delay, radius):
    from pyedmcl.compat.pyrqa.computation import RQAComputation
    from pyedmcl.compat.pyrqa.neighbourhood import FixedRadius
    from pyedmcl.compat.pyrqa.settings import Settings
    from pyedmcl.compat.pyrqa.time_series import TimeSeries

    x = np.round(np.sin(np.arange(60) * 0.3), 1)
    series = TimeSeries(x, embedding_dimension=1, time_delay=delay)
    result = RQAComputation.create(Settings(series, neighbourhood=FixedRadius(radius))).run()
    expected = float((np.abs(x[:, None] - x) < radius).mean())
    assert result.recurrence_rate == pytest.approx(expected, abs=1e-6)
