"""Recurrence and distance plots as the user gets them: shapes, arguments, pictures, and saved files read back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from picture_helpers import read_png

import pyedmcl
from pyedmcl.errors import InputError, StoreWriteError
from pyedmcl.recurrence.images import DistancePlot, RecurrencePlot
from pyedmcl.reference.recurrence import binned, compared, mean_distances, points_of, recurrence_matrix


def wave(n, seed=0):
    return np.sin(np.arange(n) * 0.2) + 0.3 * np.random.default_rng(seed).standard_normal(n)


def matrix_of(x, y=None, *, m=1, tau=1, radius, strict=True):
    """By the definition: row = point of y, column = point of x."""
    other = x if y is None else y
    return recurrence_matrix(compared(points_of(other, m, tau), points_of(x, m, tau), "euclidean"), radius**2,
                             strict=strict)  # fmt: skip


def test_a_short_series_gives_its_matrix(one_device):
    x = wave(150)
    plot = pyedmcl.recurrence_plot(x, m=3, tau=2, radius=0.9, device=one_device)
    assert (plot.n_rows, plot.n_columns, plot.radius) == (146, 146, 0.9)
    np.testing.assert_array_equal(plot.matrix, matrix_of(x, m=3, tau=2, radius=0.9))
    np.testing.assert_array_equal(plot.density, plot.matrix)
    assert plot.provenance["metric"] == "euclidean" and plot.provenance["devices"]


def test_x_runs_along_the_columns(one_device):
    x, y = wave(120), wave(80, 1)
    plot = pyedmcl.recurrence_plot(x, y, radius=0.2, device=one_device)
    np.testing.assert_array_equal(plot.matrix, matrix_of(x, y, radius=0.2))
    far = pyedmcl.distance_plot(x, y, device=one_device)
    np.testing.assert_allclose(far.matrix, np.abs(y[:, None] - x[None, :]), rtol=1e-5, atol=1e-6)


def test_pixels(one_device):
    x, y = wave(300), wave(150, 1)
    whole = matrix_of(x, y, radius=0.3)
    for pixels, shape in ((60, (30, 60)), ((7, 11), (7, 11)), (1, (1, 1)), (10_000, (150, 300)), (None, (150, 300))):
        plot = pyedmcl.recurrence_plot(x, y, radius=0.3, pixels=pixels, device=one_device)
        assert plot.counts.shape == shape
        np.testing.assert_array_equal(plot.counts, binned(whole.astype(np.int64), shape))
        cells = binned(np.ones(whole.shape), shape)
        np.testing.assert_allclose(plot.density, plot.counts / cells)
    with pytest.raises(InputError, match=r"several of the 150 x 300 cells.*pixels=300"):
        _ = pyedmcl.recurrence_plot(x, y, radius=0.3, pixels=60, device=one_device).matrix


def test_a_long_series_gives_an_image(one_device):
    plot = pyedmcl.recurrence_plot(wave(2500), radius=0.3, device=one_device)
    assert plot.counts.shape == (2000, 2000)
    assert set(np.unique(plot.counts)) <= {0, 1, 2, 3, 4}


def test_black_is_chosen_among_the_pixels_that_are_drawn():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    lines = np.zeros((1999, 1999), np.int64)
    lines[np.add.outer(np.arange(1999), np.arange(1999)) % 16 == 0] = 1  # thin lines, as a rhythm leaves them
    lines[:1000] = 0
    for cells in (1999, 1999 * 3):
        image = RecurrencePlot(lines, cells, cells, 1.0).plot().axes[0].images[0]
        drawn = np.asarray(image.get_array())
        assert max(drawn.shape) <= 600
        assert np.percentile(drawn[drawn > 0], 99) >= 0.9 * image.get_clim()[1]
        np.testing.assert_allclose(drawn[-200:].mean(), 1 / 16 / (cells // 1999) ** 2, rtol=0.05)
    small = RecurrencePlot(lines[1000:1200, :200], 200, 200, 1.0).plot().axes[0].images[0]
    assert small.get_array().shape == (200, 200) and small.get_clim() == (0, 1)


def test_thresholds_and_conventions(one_device):
    x = np.round(wave(200), 1)
    equal = pyedmcl.recurrence_plot(x, radius=0.5, convention="crqa", device=one_device)
    np.testing.assert_array_equal(equal.matrix, matrix_of(x, radius=0.5, strict=False))
    below = pyedmcl.recurrence_plot(x, radius=0.5, device=one_device)
    assert (equal.matrix & ~below.matrix).any()
    ring = pyedmcl.recurrence_plot(x, radius=(0.25, 0.45), threshold="corridor", device=one_device)
    np.testing.assert_array_equal(ring.matrix, matrix_of(x, radius=0.45) & ~matrix_of(x, radius=0.25, strict=False))
    y = wave(200)
    rate = pyedmcl.recurrence_plot(y, radius=0.1, threshold="recurrence_rate", device=one_device)
    assert 0.1 <= rate.density.mean() < 0.1 + 3 / 200
    near = pyedmcl.recurrence_plot(y, m=2, radius=5, threshold="neighbours", device=one_device)
    assert set(near.matrix.sum(axis=0)) == {6}, "five others and the point itself"


def test_several_series_are_one_state(one_device):
    x = np.stack([wave(90), wave(90, 3)], axis=1)
    plot = pyedmcl.recurrence_plot(x, radius=0.5, device=one_device)
    distances = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))
    np.testing.assert_array_equal(plot.matrix, distances < 0.5)


def test_gaps(one_device):
    x = wave(100)
    x[40] = np.nan
    plot = pyedmcl.recurrence_plot(x, m=2, radius=10, device=one_device)
    assert np.flatnonzero(~plot.matrix.any(axis=0)).tolist() == [39, 40]
    far = pyedmcl.distance_plot(x, m=2, device=one_device)
    there = np.delete(np.delete(far.matrix, [39, 40], axis=0), [39, 40], axis=1)
    assert np.isnan(far.matrix[39]).all() and np.isfinite(there).all()
    few = pyedmcl.distance_plot(x, m=2, pixels=9, device=one_device)
    np.testing.assert_allclose(few.means, mean_distances(x, x, (9, 9), m=2), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"radius": 0}, "radius=0"),
        ({"radius": [0.1, 0.2]}, "one radius"),
        ({"radius": float("nan")}, "radius=nan"),
        ({"pixels": 0}, "pixels=0"),
        ({"pixels": (3, 4, 5)}, r"pixels=\(3, 4, 5\)"),
        ({"metric": "hamming"}, "metric='hamming'"),
        ({"m": 60, "tau": 2}, "m=60, tau=2"),
        ({"exact": 1}, "exact=1"),
        ({"convention": "mine"}, "convention='mine'"),
        ({"device": []}, "at least one device"),
        ({"progress": 3}, "progress=3: a function"),
    ],
)
def test_bad_arguments_are_named(change, said, one_device):
    with pytest.raises(InputError, match=said):
        pyedmcl.recurrence_plot(wave(100), **{"radius": 0.5, "device": one_device, **change})


def test_progress_is_told(one_device):
    told = []
    pyedmcl.distance_plot(wave(500), pixels=10, progress=lambda *a: told.append(a), device=one_device)
    assert told[-1] == (500, 500, "rows")
    with pytest.raises(InputError, match="progress='yes': a function"):
        pyedmcl.distance_plot(wave(500), progress="yes", device=one_device)


def test_saved_plot_has_time_to_the_right_and_upwards(tmp_path):
    counts = np.array([[4, 0, 1], [2, 0, 0]])  # row 0 is the lowest line
    plot = RecurrencePlot(counts, 4, 6, 1.0)
    grey = read_png(plot.save(tmp_path / "rp.png", black=1.0).read_bytes())
    np.testing.assert_array_equal(grey, [[128, 255, 255], [0, 255, 191]])
    darker = read_png(plot.save(tmp_path / "rp.png", black=0.5).read_bytes())
    np.testing.assert_array_equal(darker, [[0, 255, 255], [0, 255, 128]])
    assert [entry.name for entry in tmp_path.iterdir()] == ["rp.png"]


def test_saved_distances_are_dark_where_near(tmp_path):
    plot = DistancePlot(np.array([[0.0, 1.0], [2.0, np.nan]]), 2, 2)
    grey = read_png(plot.save(tmp_path / "dp.png", white=2.0).read_bytes())
    np.testing.assert_array_equal(grey, [[255, 255], [0, 128]])
    assert DistancePlot(np.full((2, 2), np.nan), 2, 2).save(tmp_path / "none.png").exists()
    assert DistancePlot(np.zeros((2, 2)), 2, 2).save(tmp_path / "zero.png").exists()


def test_what_cannot_be_saved(tmp_path):
    plot = RecurrencePlot(np.ones((2, 2), np.int64), 2, 2, 1.0)
    with pytest.raises(InputError, match=r"\.png"):
        plot.save(tmp_path / "rp.jpg")
    with pytest.raises(InputError, match="black=0"):
        plot.save(tmp_path / "rp.png", black=0)
    with pytest.raises(InputError, match="white=-1"):
        DistancePlot(np.ones((2, 2)), 2, 2).save(tmp_path / "dp.png", white=-1)
    with pytest.raises(StoreWriteError, match=r"rp\.png"):
        plot.save(tmp_path / "nowhere" / "rp.png")


def needs_matplotlib():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")


def test_plot_with_axes(tmp_path):
    needs_matplotlib()
    counts = np.array([[4, 0, 1], [2, 0, 0]])
    figure = RecurrencePlot(counts, 4, 6, 1.0, {"cross": True}).plot(tmp_path / "rp.png", black=0.5)
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.images[0].get_array(), np.minimum(counts / 4, 0.5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("point of x", "point of y")
    assert ax.get_xlim() == (-0.5, 5.5) and ax.get_ylim() == (-0.5, 3.5), "time runs upwards"
    assert len(figure.axes) == 2, "with a scale"
    assert (tmp_path / "rp.png").read_bytes().startswith(b"\x89PNG")
    single = RecurrencePlot(np.eye(4, dtype=np.int64), 4, 4, 1.0).plot()
    assert len(single.axes) == 1 and single.axes[0].get_xlabel() == "point"
    distances = DistancePlot(np.array([[0.0, 3.0], [np.nan, 1.0]]), 2, 2).plot(white=2.0).axes[0].images[0]
    np.testing.assert_array_equal(distances.get_array().filled(-1), [[0, 2], [-1, 1]])


class Result(SimpleNamespace):
    def __getitem__(self, name):
        return 0.5


def some_result(**lines):
    empty = np.zeros(1, np.int64)
    names = ("diagonal_lines", "vertical_lines", "white_vertical_lines")
    return Result(radius=0.7, lmin=2, vmin=2, wmin=3, counts=SimpleNamespace(n_rows=10, n_columns=10),
                  **{name: lines.get(name, empty) for name in names})  # fmt: skip


def test_histograms_of_lines():
    needs_matplotlib()
    from pyedmcl.plot.recurrence import line_histograms

    long = np.zeros(100_001, np.int64)
    long[1:11], long[-1] = 10, 7
    figure = line_histograms(some_result(diagonal_lines=np.array([0, 9, 5, 0, 2]), vertical_lines=long))
    first, second, third = figure.axes
    bars = {bar.get_x() + 0.5: (bar.get_height(), bar.get_alpha()) for bar in first.patches}
    assert bars == {1: (9, 0.35), 2: (5, 1), 3: (0, 1), 4: (2, 1)}, "below lmin is faint"
    assert len(second.patches) <= 64
    total = sum(bar.get_height() * bar.get_width() for bar in second.patches)
    assert total == pytest.approx(107), "bins keep the number of lines"
    assert third.texts[0].get_text() == "none"
    assert "DET = 0.5" in first.texts[-1].get_text()


def test_measures_over_radius(tmp_path):
    needs_matplotlib()
    from pyedmcl.plot.recurrence import measure_curves

    table = SimpleNamespace(label="radius", time=None, labels=((0.1, 0.2), (0.2, 0.4)),
                            measure=lambda name: np.array([1.0, 2.0]) * len(name))  # fmt: skip
    figure = measure_curves(table, ["RR", "DET"], tmp_path / "m.png")
    one, two = figure.axes
    np.testing.assert_array_equal(two.lines[0].get_data(), [[0.2, 0.4], [3.0, 6.0]])
    assert (one.get_ylabel(), two.get_xlabel()) == ("RR", "radius")
    with pytest.raises(InputError, match="names="):
        measure_curves(table, [])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_distances_that_are_all_zero_or_missing(device, dtype):
    for value in (0.0, 1.0):
        assert (pyedmcl.distance_plot(np.full(9, value), dtype=dtype, device=device).means == 0).all()
    assert np.isnan(pyedmcl.distance_plot(np.full(9, np.nan), dtype=dtype, device=device).means).all()


@pytest.mark.parametrize("kind", ["recurrence_plot", "distance_plot"])
def test_series_are_drawn_along_the_axes(one_device, kind):
    pytest.importorskip("matplotlib")
    pd = pytest.importorskip("pandas")
    x = pd.Series(np.arange(60.0), pd.date_range("2020-01-01", periods=60))
    y = np.arange(40.0) ** 2
    options = {"radius": 3.0} if kind == "recurrence_plot" else {}
    make = getattr(pyedmcl, kind)
    for image, series, wanted in (
        (make(x, m=3, device=one_device, **options), x, (x[:58], x[:58])),
        (make(x.to_numpy(), y, device=one_device, **options), (x, y), (x, y)),
    ):
        axes = image.plot(series=series).axes[0]
        below, beside = axes.child_axes
        np.testing.assert_array_equal(below.lines[0].get_ydata(), wanted[0])
        np.testing.assert_array_equal(beside.lines[0].get_xdata(), wanted[1])
        assert below.get_xlim() == axes.get_xlim() and beside.get_ylim() == axes.get_ylim()
        places = below.lines[0].get_xdata()
        first, last = axes.get_xlim()  # the middle of the first and of the last cell
        np.testing.assert_allclose([places[0] - first, last - places[-1]], (last - first) / len(places) / 2)
    with pytest.raises(InputError, match="series: 30 rows, and the plot has 60 points"):
        image.plot(series=x[:30])
