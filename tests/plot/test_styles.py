"""Every picture takes ax, cmap, figsize, dpi and title, fits on its page, and covers none of its data with words."""

from __future__ import annotations

import importlib
import inspect
import pickle
import struct

import numpy as np
import pytest
from picture_helpers import look_at, overlaps
from result_makers import MAKERS, made

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pyedmcl.convergence.results import CcmMatrixResult
from pyedmcl.crossmap.results import XmapResult
from pyedmcl.errors import InputError
from pyedmcl.functions import RESULTS

PICTURES = [
    (name, method)
    for name in MAKERS
    for method, _ in inspect.getmembers(
        getattr(importlib.import_module(f"pyedmcl.{RESULTS[name]}"), name), inspect.isfunction
    )
    if method == "plot" or method.startswith("plot_")
]
PARTS = ("MultiviewResult", "EmbedResult")  # several parts, or a third dimension: they cannot lie in any axes


def drawing(name, method, device):
    return getattr(made(name, device), method)


def test_most_results_have_a_picture():
    assert len(PICTURES) > 30 and ("SmapResult", "plot_coefficients") in PICTURES


@pytest.mark.parametrize(("name", "method"), PICTURES)
def test_a_picture_fits_its_page_and_hides_no_data(name, method, one_device):
    look_at(drawing(name, method, one_device)())


def test_a_notebook_shows_a_picture_without_pyplot(one_device):
    figure = drawing("XmapResult", "plot", one_device)()
    again = pickle.loads(pickle.dumps(figure))
    for shown in (figure, again):
        assert shown._repr_png_().startswith(b"\x89PNG")
    assert again._repr_png_.args == (again,)


@pytest.mark.parametrize(("name", "method"), PICTURES)
def test_a_picture_takes_a_style(name, method, one_device, tmp_path):
    draw, path = drawing(name, method, one_device), tmp_path / "picture.png"
    assert {"ax", "cmap", "figsize", "dpi", "title"} <= set(inspect.signature(draw).parameters)
    figure = draw(str(path), figsize=(8, 5), dpi=50, title="mine", cmap="magma")
    assert tuple(figure.get_size_inches()) == (8, 5) and figure.axes[0].get_title() == "mine"
    assert struct.unpack(">II", path.read_bytes()[16:24]) == (400, 250)
    for image in (image for ax in figure.axes for image in ax.images):
        assert image.get_cmap().name == "magma"
    page = Figure(figsize=(9, 8))
    FigureCanvasAgg(page)
    left, right = page.subplots(1, 2)
    if name in PARTS:
        with pytest.raises(InputError, match=r"^ax: this picture"):
            draw(ax=left)
        return
    assert draw(ax=left, title="mine") is page and left.get_title() == "mine"
    assert not right.lines and not right.images, "the other axes are not touched"
    page.canvas.draw()


COLUMN = 90 / 25.4  # inches of a column of a journal


@pytest.fixture
def printed():
    """Letters of 7 points, as journals ask for."""
    with matplotlib.rc_context({"font.size": 7}):
        yield


def column(height=75 / 25.4, width=COLUMN):
    page = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(page)
    return page


@pytest.mark.parametrize(("name", "method"), [one for one in PICTURES if one[0] != "EmbedResult"])
@pytest.mark.parametrize("place", ["axes", "part of a figure"])
def test_words_of_a_panel_of_a_column_are_apart(name, method, place, one_device, printed):
    if name == "MultiviewResult" and place == "axes":
        pytest.skip("several parts need a SubFigure, which the other case gives")
    page = column()
    drawing(name, method, one_device)(ax=page.subplots() if place == "axes" else page.subfigures(1, 1))
    assert overlaps(page) == []


def test_twelve_panels_of_any_results_fit_a_page(one_device, printed):
    page = column(240 / 25.4, 2 * COLUMN)
    kinds = ["XmapResult", "XmapSignificance", "CcmMatrixResult", "CcmResult", "LaggedCcmResult", "WindowedCcm",
             "GridChoice", "EmbedDimensionResult", "NonlinearResult", "RecurrencePlot", "LagProfile", "CausalNetwork"]
    for ax, name in zip(page.subplots(4, 3).flat, kinds, strict=True):
        drawing(name, "plot", one_device)(ax=ax)
    assert overlaps(page) == []


@pytest.mark.parametrize("layout", ["circle", "force"])
def test_long_names_of_a_network_are_apart_in_a_column(layout, printed):
    names = tuple(f"a long name of series {number:02d}" for number in range(12))
    rho = np.random.default_rng(1).random((12, 12))
    page = column()
    XmapResult(rho, np.full(12, 3), names).plot_network(ax=page.subplots(), layout=layout, top=20)
    assert overlaps(page) == []


def test_a_picture_of_two_panels_takes_two_axes(one_device):
    page = column()
    both = page.subplots(1, 2)
    assert drawing("SimplexResult", "plot", one_device)(ax=both) is page
    assert all(ax.lines for ax in both) and len(page.axes) == 2
    for wrong in (page.subplots(1, 3), page.subplots(2, 2)):
        with pytest.raises(InputError, match=r"^ax: this picture has 2 panels, and [34] axes were given"):
            drawing("SimplexResult", "plot", one_device)(ax=wrong)
    with pytest.raises(InputError, match="1 panel, and 2 axes"):
        drawing("XmapResult", "plot_network", one_device)(ax=both)


def test_letters_follow_the_size_of_the_page(one_device):
    sizes = {}
    for size in (5, 10):
        with matplotlib.rc_context({"font.size": size}):
            figure = drawing("XmapResult", "plot", one_device)()
            sizes[size] = {text.get_fontsize() for text in figure.axes[0].texts}
    assert sizes[5] == {one / 2 for one in sizes[10]}


@pytest.mark.parametrize("suffix", [".pdf", ".svg"])
def test_pictures_are_vectors(suffix, one_device, tmp_path):
    path = tmp_path / f"map{suffix}"
    made("XmapResult", one_device).plot(str(path))
    assert path.read_bytes().startswith({".pdf": b"%PDF", ".svg": b"<?xml"}[suffix])


@pytest.mark.parametrize(
    "style",
    [{"ax": 5}, {"figsize": 3}, {"figsize": (0, 1)}, {"figsize": "ab"}, {"dpi": 1}, {"dpi": True}, {"title": 5},
     {"cmap": "no such map"}, {"cmap": 7}],
)  # fmt: skip
def test_other_styles_are_refused(style, one_device):
    with pytest.raises(InputError, match=f"^{next(iter(style))}="):
        made("XmapResult", one_device).plot(**style)


def test_the_map_of_convergence_shows_what_is_gained():
    sizes, skill = np.array([10, 20, 30, 40, 50]), np.zeros((5, 3, 3))
    skill[:, 0, 1], skill[:, 1, 0] = np.linspace(0.1, 0.9, 5), np.linspace(0.9, 0.1, 5)
    found = CcmMatrixResult(sizes, tuple(skill), np.ones(3, int), tuple("abc"), 5, 1).plot().axes[0]
    image = np.ma.filled(found.images[0].get_array(), np.nan)
    assert image[0, 1] == pytest.approx(0.8) and image[1, 0] == pytest.approx(-0.8) and np.isnan(image[0, 0])
    assert "gain of skill from 10 to 50 library rows" in found.get_title()
    assert [text.get_text() for text in found.texts if text.get_text().endswith("*")] == ["0.80*"]
