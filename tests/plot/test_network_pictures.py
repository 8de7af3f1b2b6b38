"""Pictures of networks: clusters have a colour and stand together, and nothing covers the series or their names."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cli_helpers import inside

from pyedmcl.crossmap.results import XmapResult
from pyedmcl.errors import InputError
from pyedmcl.plot.pairs import by_forces, causal_network, clusters_of, on_circle

N = 18
NAMES = [f"neuron {i}" for i in range(N)]
OF = {name: "ABC"[i % 3] for i, name in enumerate(NAMES)}


def linked():
    """Three clusters whose members are not side by side, each linked within, and two links between them."""
    rng, rho = np.random.default_rng(2), np.zeros((N, N))
    for i, j in itertools.permutations(range(N), 2):
        if i % 3 == j % 3 and rng.random() < 0.6:
            rho[i, j] = rng.uniform(0.4, 1)
    rho[0, 1] = rho[4, 5] = 0.3
    return rho


def boxes(figure):
    """Of names, nodes and the legend, in dots."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ax, render = figure.axes[0], canvas.get_renderer()
    nodes = [ax.transData.transform(line.get_xydata()) for line in ax.lines]
    legend = ax.get_legend()
    return [text.get_window_extent(render) for text in ax.texts], np.concatenate(nodes), (
        None if legend is None else legend.get_window_extent(render)
    )


@pytest.mark.parametrize("layout", ["circle", "force"])
def test_clusters_are_coloured_and_stand_together(layout):
    figure = causal_network(linked(), NAMES, layout=layout, clusters=OF, top=200)
    lines = figure.axes[0].lines
    assert [line.get_label() for line in lines] == ["A", "B", "C"]
    assert len({line.get_color() for line in lines}) == 3 and all(len(line.get_xdata()) == 6 for line in lines)
    middles = [line.get_xydata().mean(axis=0) for line in lines]
    for own, line in enumerate(lines):
        apart = np.linalg.norm(line.get_xydata()[:, None] - np.array(middles), axis=2)
        assert (apart.argmin(axis=1) == own).all(), "each series is nearest to the middle of its own cluster"


@pytest.mark.parametrize("layout", ["circle", "force"])
def test_nothing_is_covered(layout):
    figure = causal_network(linked(), NAMES, layout=layout, clusters="auto", top=200, title="three clusters")
    names, nodes, legend = boxes(figure)
    assert len(names) == N
    if layout == "force":  # on a circle they are turned
        assert not any(a.overlaps(b) for a, b in itertools.combinations(names, 2))
    assert not any(legend.contains(x, y) for x, y in nodes) and not any(legend.overlaps(name) for name in names)
    width, height = figure.canvas.get_width_height()
    for box in [*names, legend]:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


def test_clusters_are_found_from_links():
    found = clusters_of("auto", NAMES, range(N), linked())
    assert len(set(found)) == 3 and all(len({found[i] for i in range(k, N, 3)}) == 1 for k in range(3))
    assert clusters_of("auto", NAMES, range(N), np.zeros((N, N))) == [""] * N
    lonely = np.zeros((4, 4))
    lonely[0, 1] = 1.0
    assert clusters_of("auto", "abcd", range(4), lonely) == ["cluster 1", "cluster 1", "", ""]
    plain = causal_network(linked(), NAMES)
    assert plain.axes[0].get_legend() is None and len(plain.axes[0].lines) == 1
    assert clusters_of(list("aabb"), ["p", "q", "r", "s"], [1, 3], np.zeros((2, 2))) == ["a", "b"]


def test_places():
    angles = on_circle(["a", "b", "a", ""])
    assert np.ptp(angles[[0, 2]]) < np.ptp(angles[[0, 1]]), "a cluster is side by side"
    even = on_circle([""] * 4)
    np.testing.assert_allclose(np.diff(even), -np.pi / 2)
    assert on_circle([]).shape == (0,) and by_forces([""], np.zeros((1, 1)), np.ones(1)).shape == (1, 2)
    at = by_forces([""] * 40, np.zeros((40, 40)), np.full(40, 0.2))
    assert np.isfinite(at).all() and np.abs(at).max() <= 1 + 1e-6


@pytest.mark.parametrize(("options", "words"), [
    ({"layout": "spiral"}, "layout='spiral': one of 'circle', 'force'"),
    ({"clusters": "some"}, "clusters='some': 'auto'"),
    ({"clusters": ["a"]}, "a label for each of the 18"), ({"clusters": {"x": "a"}}, "no series 'x'"),
    ({"clusters": 5}, "a label for each of the 18"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(options, words):
    with pytest.raises(InputError, match=words):
        causal_network(linked(), NAMES, **options)


def test_the_shell_places_networks(tmp_path):
    XmapResult(linked(), np.ones(N, int), tuple(NAMES)).save(tmp_path / "map.edm")
    done = inside("plot", tmp_path / "map.edm", "-o", tmp_path / "n.png", "--network", "--layout", "force",
                  "--clusters", "HVC=neuron 0,neuron 1;RA=neuron 2")  # fmt: skip
    assert done.returncode == 0 and (tmp_path / "n.png").stat().st_size > 10_000, done.stderr
    for wrong in ("HVC", "A=neuron 0;B=neuron 0", "=neuron 0", "A="):
        done = inside("plot", tmp_path / "map.edm", "-o", tmp_path / "n.png", "--network", "--clusters", wrong)
        said = " ".join(done.stderr.replace("│", " ").split())
        assert done.returncode == 2 and "each once, are needed" in said, done.stderr


def test_a_network_without_a_link_has_no_colours_to_read():
    figure = causal_network(np.zeros((N, N)), NAMES, title="nothing")
    assert len(figure.axes) == 1 and figure.axes[0].get_title().endswith("no link, cause → effect")
    assert len(causal_network(linked(), NAMES).axes) == 2
