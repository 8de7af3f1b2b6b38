"""Pictures of what papers show: series with long names, units and dates. Nothing is cut off or covered by it."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from picture_helpers import look_at

import pyedmcl
from pyedmcl.simulate import coupled_maps

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

ROWS = 150
TABLE = pandas.DataFrame(
    coupled_maps(n_series=9, n_steps=ROWS).values.astype(np.float32),
    columns=[f"phytoplankton biomass {i} [mg C/m3]" for i in range(9)],
    index=pandas.date_range("1999-01-03", periods=ROWS, freq="W"),
)
X, Y, FEW = TABLE.iloc[:, 0], TABLE.iloc[:, 1], TABLE.iloc[:, :3]
SEED = {"seed": 1}
PICTURES = {
    "a map with clusters": lambda d: pyedmcl.xmap(TABLE, E=2, device=d).plot(cluster=True),
    "a map of two": lambda d: pyedmcl.xmap(FEW.iloc[:, :2], E=2, device=d).plot(),
    "a network": lambda d: pyedmcl.xmap(TABLE, E=2, device=d).plot_network(top=20, layout="force"),
    "dimensions": lambda d: pyedmcl.embed_dimension(TABLE, E_max=12, device=d).plot(),
    "dimensions and lags": lambda d: pyedmcl.embedding_scan(FEW, E=[1, 2, 3], tau=[1, 2, 3], device=d).plot(),
    "a forecast": lambda d: pyedmcl.simplex(X, E=2, generate_steps=9, device=d).plot(),
    "slopes": lambda d: pyedmcl.smap(X, E=4, theta=2.0, device=d).plot_coefficients(),
    "views": lambda d: pyedmcl.multiview(TABLE.iloc[:, :4], target=0, D=2, E=2, device=d).plot(),
    "windows of a map": lambda d: pyedmcl.xmap(FEW, E=2, windows=(90, 10), device=d).plot(),
    "windows of a pair": lambda d: pyedmcl.ccm(X, Y, E=2, windows=(90, 30), sample=2, **SEED, device=d).plot(),
    "a pair": lambda d: pyedmcl.ccm(X, Y, E=2, lib_sizes=[20, 60], sample=3, **SEED, device=d).plot(),
    "lags of a pair": lambda d: pyedmcl.ccm_lagged(X, Y, E=2, Tp=range(-9, 9), **SEED, device=d).plot(),
    "a pair and chance": lambda d: pyedmcl.ccm_significance(X, Y, E=2, n=19, **SEED, device=d).plot(),
    "a map and chance": lambda d: pyedmcl.xmap_significance(FEW, E=2, n=19, **SEED, device=d).plot(),
    "information": lambda d: pyedmcl.mutual_information(FEW, lags=5).plot(),
    "recurrence": lambda d: pyedmcl.recurrence_plot(X, Y, radius=0.1, device=d).plot(),
    "windows of recurrence": lambda d: pyedmcl.windowed_rqa(X, window=50, step=10, radius=0.1, device=d).plot(),
}


@pytest.mark.parametrize("what", PICTURES)
@pytest.mark.filterwarnings("ignore:nothing is significant", "ignore:E is at the upper end", "ignore:skill hardly")
def test_nothing_is_cut_off_or_covered(what, one_device):
    look_at(PICTURES[what](one_device))


def test_a_long_legend_leaves_room_for_the_curves(one_device):
    figure = pyedmcl.xmap(TABLE, E=2, windows=(90, 30), device=one_device).plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    assert len(axes.get_legend().get_texts()) == 8
    assert axes.get_window_extent().height / figure.dpi > 2.4  # inches
    asked = pyedmcl.xmap(TABLE, E=2, windows=(90, 30), device=one_device).plot(figsize=(8, 4))
    assert tuple(asked.get_size_inches()) == (8, 4)


def test_names_that_begin_alike_stay_apart(one_device):
    from pyedmcl.plot.figure import short_names

    assert short_names(["algae", "a" * 30], 16) == ["algae", "a" * 15 + "…"]
    genes = [f"gene_with_a_long_name_{i:03d}_of_transcript" for i in range(12)]
    found = short_names([*genes, "other"], 16)
    assert len(set(found)) == 13 and all(len(name) <= 16 for name in found) and found[-1] == "other"
    assert "003" in short_names(genes[:4], 16)[3]
    assert short_names(["same" * 9, "same" * 9 + "x"], 16)[1].endswith("x")
    ax = pyedmcl.xmap(TABLE, E=2, device=one_device).plot().axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()][3].startswith("phytoplankton biomass 3")


def test_names_around_a_circle_leave_the_title_free(one_device):
    figure = pyedmcl.xmap(TABLE, E=2, device=one_device).plot_network(top=20)
    figure.canvas.draw()
    ax, renderer = figure.axes[0], figure.canvas.get_renderer()
    names = [text for text in ax.texts if text.get_text()]
    assert len(names) == 9 and len({text.get_text() for text in names}) == 9
    assert not any(text.get_window_extent(renderer).overlaps(ax.title.get_window_extent(renderer)) for text in names)
