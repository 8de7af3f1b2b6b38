"""Every picture takes ax, cmap, figsize, dpi and title, fits on its page, and covers none of its data with words."""

from __future__ import annotations

import importlib
import inspect
import pickle
import struct

import numpy as np
import pytest
from picture_helpers import look_at
from result_makers import MAKERS, made

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pyedmcl.convergence.results import CcmMatrixResult
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
