"""Pictures: block means, axes, colours and marks as they are in the figure, and files written whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from picture_helpers import look_at

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

from pyedmcl.errors import InputError, StoreWriteError
from pyedmcl.launch.progress import reporting_to
from pyedmcl.plot import heat_map, predictions, skill_against_E
from pyedmcl.plot.figure import save_figure
from pyedmcl.plot.pairs import block_means

PNG = b"\x89PNG\r\n\x1a\n"


def some_map(n, seed=0):
    return np.random.default_rng(seed).uniform(-0.2, 1, (n, n)).astype(np.float32)


class RowsOnly:
    """A map that can only be sliced over rows, as one on the disk; keeps the largest slice that was asked for."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.largest = values, values.shape, values.dtype, 0

    def __getitem__(self, rows):
        part = self.values[rows]
        self.largest = max(self.largest, len(part))
        return part


def slow_means(matrix, size):
    n = -(-len(matrix) // size)
    blocks = [[matrix[i * size:(i + 1) * size, j * size:(j + 1) * size] for j in range(n)] for i in range(n)]
    known = [[block[~np.isnan(block)].astype(float) for block in row] for row in blocks]
    return np.array([[block.mean() if block.size else np.nan for block in row] for row in known])


@pytest.mark.parametrize(("n", "limit", "size"), [(10, 10, 1), (10, 5, 2), (11, 5, 3), (37, 4, 10), (7, 2, 4)])
def test_block_means(n, limit, size):
    matrix = some_map(n)
    matrix[3, 0] = np.nan
    means, found = block_means(matrix, limit)
    assert found == size
    np.testing.assert_allclose(means, slow_means(matrix, size), rtol=1e-12)


def test_block_of_nan_is_nan_and_warns_of_nothing(recwarn):
    matrix = some_map(6)
    matrix[:2, 2:4] = np.nan
    means, _ = block_means(matrix, 3)
    assert np.isnan(means[0, 1]) and np.isfinite(np.delete(means.reshape(-1), 1)).all()
    assert not recwarn.list


def test_large_map_is_read_in_parts(monkeypatch):
    monkeypatch.setattr("pyedmcl.plot.pairs._READ_BYTES", 8 * 200 * 20)
    rows = RowsOnly(some_map(200))
    means, size = block_means(rows, 50)
    assert size == 4 and 0 < rows.largest <= 20
    np.testing.assert_allclose(means, slow_means(rows.values, 4), rtol=1e-6)


def test_rows_are_effects_and_columns_causes():
    rho = some_map(5)
    ax = heat_map(rho, list("abcde")).axes[0]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("effect (library)", "cause (target)")
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(ax.images[0].get_array()[off], rho.astype(np.float64)[off])
    assert ax.images[0].get_array().mask.tolist() == (~off).tolist(), "the diagonal is grey"
    assert [text.get_text() for text in ax.get_yticklabels()] == list("abcde")
    low, high = ax.images[0].get_clim()
    assert (low, high) == (-1, 1)
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "row 0 is at the top, as in the matrix"


def test_many_names_are_left_out():
    ax = heat_map(some_map(60), [f"s{i}" for i in range(60)]).axes[0]
    assert not any(text.get_text().startswith("s") for text in ax.get_yticklabels())


def test_long_names_stay_within_the_picture():
    figure = heat_map(some_map(3), ["a" * 80, "b", "c"])
    assert all(len(text.get_text()) <= 24 for text in figure.axes[0].get_yticklabels())
    look_at(figure)
    many = heat_map(some_map(13), ["a" * 80, *"bcdefghijklm"])
    assert all(len(text.get_text()) <= 16 for text in many.axes[0].get_yticklabels())
    look_at(many)


@pytest.mark.parametrize("name", ["narrow", "Diatoms (cells/ml)"])
def test_labels_beside_the_names_of_a_map_stay_within_the_picture(name):
    figure = heat_map(some_map(4), [name, "b", "c", "d"])
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    left, bottom, right, top = figure.get_tightbbox().extents
    assert left >= 0 and bottom >= 0 and right <= width and top <= height


def test_reduced_map_says_so_and_keeps_the_scale():
    ax = heat_map(some_map(101), [str(i) for i in range(101)], max_cells=50).axes[0]
    assert "mean of 3 x 3 pairs" in ax.get_title()
    assert ax.images[0].get_array().shape == (34, 34)
    assert ax.get_xlim() == (-0.5, 100.5)
    assert tuple(ax.images[0].get_extent()) == (-0.5, 101.5, 101.5, -0.5)


def test_nan_is_grey():
    rho = some_map(4)
    rho[1, 2] = np.nan
    image = heat_map(rho, list("abcd")).axes[0].images[0]
    assert np.argwhere(image.get_array().mask & ~np.eye(4, dtype=bool)).tolist() == [[1, 2]]
    assert len(set(image.cmap(image.get_array())[1, 2, :3])) == 1


def test_true_links_are_framed_at_effect_row_and_cause_column():
    links = np.zeros((4, 4), bool)
    links[3, 1] = True  # 3 drives 1
    (frames,) = heat_map(some_map(4), list("abcd"), links=links).axes[0].collections
    (path,) = frames.get_paths()
    box = path.get_extents()
    assert (box.x0, box.x1, box.y0, box.y1) == (2.5, 3.5, 0.5, 1.5)


@pytest.mark.parametrize(
    ("rho", "names", "options"),
    [
        (np.zeros((3, 2)), list("abc"), {}),
        (np.zeros((3, 3)), list("ab"), {}),
        (np.zeros((3, 3)), list("abc"), {"links": np.zeros((2, 2), bool)}),
        (np.zeros((3, 3)), list("abc"), {"max_cells": 0}),
    ],
)
def test_what_does_not_fit_is_refused(rho, names, options):
    with pytest.raises(InputError):
        heat_map(rho, names, **options)


@pytest.mark.parametrize(("suffix", "start"), [(".png", PNG), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_formats(tmp_path, suffix, start):
    path = tmp_path / f"map{suffix}"
    heat_map(some_map(4), list("abcd"), path)
    assert path.read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_unknown_format_and_missing_folder(tmp_path):
    with pytest.raises(InputError, match=r"\.png"):
        heat_map(some_map(4), list("abcd"), tmp_path / "map.docx")
    with pytest.raises(StoreWriteError, match="folder"):
        heat_map(some_map(4), list("abcd"), tmp_path / "nowhere" / "map.png")


def test_failed_write_keeps_the_old_picture(tmp_path, monkeypatch):
    path = tmp_path / "map.png"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreWriteError, match="No space left"):
        save_figure(heat_map(some_map(4), list("abcd")), path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_picture_of_a_large_map_is_small(tmp_path):
    path = tmp_path / "map.png"
    heat_map(some_map(2500), [str(i) for i in range(2500)], path, max_cells=500)
    assert path.stat().st_size < 3e6


def test_global_state_of_matplotlib_is_left_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    heat_map(some_map(4), list("abcd"))
    assert dict(matplotlib.rcParams) == before


def test_skill_of_few_series_marks_the_best():
    rho = np.array([[0.1, 0.5, 0.4], [0.9, 0.8, np.nan]])
    ax = skill_against_E(SimpleNamespace(rho=rho, E=np.array([2, 1]), names=("x", "y"))).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x (E = 2)", "y (E = 1)"]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [(dot.get_xdata()[0], dot.get_ydata()[0]) for dot in dots] == [(2, 0.5), (1, 0.9)]


def test_skill_of_one_series():
    ax = skill_against_E(SimpleNamespace(rho=np.array([0.1, 0.5]), E=2, names=("x",))).axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.1, 0.5])


def test_skill_of_many_series_counts_dimensions(recwarn):
    rho = some_map(40)[:, :6].astype(np.float64)
    rho[:, 5] = np.nan
    E = np.arange(40) % 5 + 1
    upper, lower = skill_against_E(SimpleNamespace(rho=rho, E=E, names=[str(i) for i in range(40)])).axes
    assert [bar.get_height() for bar in lower.patches] == [8] * 5 + [0]
    (median,) = upper.lines
    np.testing.assert_allclose(median.get_ydata()[:5], np.median(rho[:, :5], axis=0))
    assert np.isnan(median.get_ydata()[5])
    assert not [warning for warning in recwarn.list if issubclass(warning.category, RuntimeWarning)]


def test_skill_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="names"):
        skill_against_E(SimpleNamespace(rho=np.zeros((2, 3)), E=np.ones(2, int), names=("x",)))
    with pytest.raises(InputError, match="1 to 3"):
        skill_against_E(SimpleNamespace(rho=np.zeros((1, 3)), E=np.array([4]), names=("x",)))


def test_predictions(tmp_path):
    n = 600
    rng = np.random.default_rng(0)
    observed = rng.random(n)
    observed[-1] = np.nan
    predicted = observed + 0.01
    result = SimpleNamespace(time=np.arange(n), observed=observed, predicted=predicted, variance=np.full(n, 0.01),
                             rho=0.5, E=3)  # fmt: skip
    course, against = predictions(result, tmp_path / "p.png").axes
    assert len(course.lines[0].get_xdata()) == 200 and course.lines[0].get_xdata()[-1] == n - 1
    np.testing.assert_array_equal(against.lines[0].get_xdata(), observed)
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


def test_a_map_puts_like_series_side_by_side(tmp_path):
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    kind = np.array([0, 1, 0, 1, 0, 1])
    rho = np.where(kind[:, None] == kind, 0.8, 0.1) + 0.01 * rng.random((6, 6))
    marks = np.zeros((6, 6), bool)
    marks[0, 2] = True
    ax = heat_map(rho, list("abcdef"), cluster=True, marks=marks).axes[0]
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert sorted(names) == list("abcdef") and {*names[:3]} in ({*"ace"}, {*"bdf"})
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    shown = {text.get_text(): text.get_position() for text in ax.texts if "*" in text.get_text()}
    assert list(shown.values()) == [(names.index("c"), names.index("a"))]
    with pytest.raises(InputError, match="cluster="):
        heat_map(rho, list("abcdef"), cluster="yes")
    with pytest.raises(InputError, match=r"cluster: the map has 5,001"):
        heat_map(np.broadcast_to(0.0, (5001, 5001)), [f"x{i}" for i in range(5001)], cluster=True)


def test_reading_a_large_map_tells_of_its_rows(monkeypatch):
    monkeypatch.setattr("pyedmcl.plot.pairs._READ_BYTES", 2 * 8 * 6)  # two rows
    told = []
    with reporting_to(lambda *said: told.append(said)):
        block_means(np.eye(6), 3)
    assert told == [(2, 6, "rows"), (4, 6, "rows"), (6, 6, "rows")]
