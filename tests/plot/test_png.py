"""PNG files as the package writes them by itself."""

from __future__ import annotations

import numpy as np
import pytest
from picture_helpers import read_png

from pyedmcl.plot.figure import png_bytes, save_png


def test_png_is_what_was_given():
    grey = np.random.default_rng(0).integers(0, 256, (7, 13), dtype=np.uint8)
    np.testing.assert_array_equal(read_png(png_bytes(grey)), grey)


def test_png_is_read_by_others(tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed; pip install 'pyedmcl[plot]'")
    grey = np.arange(256, dtype=np.uint8).reshape(8, 32)
    np.testing.assert_array_equal(np.rint(255 * image.imread(save_png(grey, tmp_path / "g.png"))), grey)
