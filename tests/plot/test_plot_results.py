"""Pictures of results: what is drawn is what the result holds; nothing else is on the page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

from pyedmcl.convergence.results import CcmMatrixResult
from pyedmcl.crossmap.results import XmapResult
from pyedmcl.embedding.neighbors import KnnResult, embed
from pyedmcl.errors import InputError
from pyedmcl.forecast.multiview import MultiviewResult
from pyedmcl.forecast.skill import SkillResult
from pyedmcl.forecast.smap import NonlinearResult, SmapResult
from pyedmcl.plot.pairs import causal_network
from pyedmcl.significance.significance import CcmSignificance
from pyedmcl.significance.xmap_significance import XmapSignificance

N = 40
RNG = np.random.default_rng(0)


def fits(coordinates=2, thetas=(0.0, 1.0, 3.0)):
    shape = (len(thetas), N)
    observed = RNG.random(N)
    return SmapResult(
        time=np.arange(N), observed=observed, theta=np.array(thetas), predicted=observed + 0.1 * RNG.random(shape),
        variance=np.full(shape, 0.01), coefficients=RNG.standard_normal((*shape, coordinates + 1)),
        singular_values=None, rho=np.array([0.2, 0.9, 0.5]), mae=np.zeros(3), rmse=np.zeros(3),
        names=tuple(f"x(t-{e})" for e in range(coordinates)), E=coordinates,
    )  # fmt: skip


def arrows(figure):
    from matplotlib.patches import FancyArrowPatch

    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def test_local_fits_show_the_best_theta(tmp_path):
    found = fits()
    course, against = found.plot(str(tmp_path / "a.png")).axes
    assert "theta = 1" in course.get_title() and "S-map" in course.get_title()
    np.testing.assert_array_equal(against.lines[0].get_ydata(), found.predicted[1])
    (ax,) = found.plot_skill().axes
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([found.theta, found.rho]))
    assert ax.lines[1].get_xdata()[0] == 1


def test_coefficients_have_a_panel_each():
    found = fits()
    found.coefficients[1, 7, 1] = 1e6
    found.coefficients[1, 3] = np.nan
    panels = found.plot_coefficients().axes
    assert [ax.get_title(loc="left") for ax in panels] == ["C0", "d / d x(t-0)", "d / d x(t-1)"]
    curves = [next(line for line in ax.lines if len(line.get_xdata()) == N) for ax in panels]
    np.testing.assert_array_equal([line.get_ydata() for line in curves], found.coefficients[1].T)
    assert panels[1].get_ylim()[1] < 100, "one steep fit must not flatten the others"
    assert "1 beyond" in panels[1].texts[0].get_text() and not panels[2].texts


def test_many_slopes_become_a_map():
    found = fits(20)
    ax, bar = found.plot_coefficients().axes
    np.testing.assert_array_equal(ax.images[0].get_array(), found.coefficients[1, :, 1:].T)
    low, high = ax.images[0].get_clim()
    assert low == -high and "slope" in bar.get_ylabel()


@pytest.mark.parametrize(
    ("parameter", "label"), [("Tp", "steps ahead, Tp"), ("exclusion_radius", "exclusion radius (steps)")]
)
def test_skill_against_what_was_varied(parameter, label):
    found = SkillResult(parameter, np.array([3, 1, 2]), np.array([0.1, 0.7, np.nan]), np.ones(3), np.ones(3), 2)
    (ax,) = found.plot().axes
    assert ax.get_xlabel() == label
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["best at 1"]
    alike = SkillResult(parameter, np.arange(3), np.array([0.9, 0.901, 0.9]), np.ones(3), np.ones(3), 2)
    low, high = alike.plot().axes[0].get_ylim()
    assert high - low == pytest.approx(0.05), "a thousandth must not look like a fall"


def test_theta_and_no_skill_at_all():
    found = NonlinearResult(np.array([0.0, 2.0]), np.array([0.5, 0.6]), np.ones(2), np.ones(2), 3)
    (ax,) = found.plot().axes
    assert "theta" in ax.get_xlabel() and ax.get_title() == "S-map, E = 3"
    nothing = NonlinearResult(np.array([0.0, 2.0]), np.full(2, np.nan), np.ones(2), np.ones(2), 3)
    assert nothing.plot().axes[0].get_legend() is None


def test_generated_steps_have_no_scatter():
    from pyedmcl.plot import predictions

    made = SimpleNamespace(time=np.arange(5), observed=np.full(5, np.nan), predicted=np.ones(5), variance=np.zeros(5),
                           rho=np.nan, E=2)  # fmt: skip
    (ax,) = predictions(made).axes
    assert ax.get_title() == "simplex projection, E = 2"
    assert "observed" not in [text.get_text() for text in ax.get_legend().get_texts()]


def test_views_are_named_with_their_skill():
    views = tuple((f"x(t-{i})", "y(t-0)") for i in range(20))
    found = MultiviewResult(
        time=np.arange(N), observed=RNG.random(N), predicted=RNG.random(N), variance=np.ones(N), rho=0.5, mae=0.1,
        rmse=0.2, E=2, views=views, view_rho=np.linspace(0.9, 0.1, 20), view_predictions=np.ones((20, N)), n_tried=400,
    )  # fmt: skip
    figure = found.plot()
    *_, bars = figure.get_axes()
    assert [bar.get_width() for bar in bars.patches[:15]] == found.view_rho[:15].tolist()
    assert bars.get_yticklabels()[1].get_text() == "x(t-1), y(t-0)" and "15 of 20" in bars.get_xlabel()


def test_surrogates_name_the_question():
    found = CcmSignificance((("x", "y"), ("y", "x")), np.array([0.5, 0.1]), RNG.random((2, 30)),
                            np.array([0.03, 0.6]), np.array([0.06, 0.6]), None, "phase", 1)  # fmt: skip
    first, second = found.plot().axes
    assert "y drives x?" in first.get_title() and "p = 0.03" in first.get_title()
    assert sum(bar.get_height() for bar in second.patches) == 30 and first.get_ylabel()


def test_paths_and_distances():
    two = embed(np.arange(10.0), E=2).plot().axes[0]
    assert (two.get_xlabel(), two.get_ylabel()) == ("x0(t-0)", "x0(t-1)")
    many = embed(np.arange(30.0), E=4).plot().axes[0]
    assert many.get_zlabel().endswith("(t-2)") and "first 3 of 4" in many.get_title()
    assert embed(np.arange(5.0), E=1).plot().axes[0].get_xlabel() == "time (row)"
    distances = np.array([[np.inf, np.inf], [1.0, 2.0], [0.5, np.inf]])
    near, far = KnnResult(np.zeros((3, 2), np.int32), distances).plot().axes[0].lines
    np.testing.assert_array_equal(near.get_ydata(), [np.nan, 1, 0.5])
    np.testing.assert_array_equal(far.get_ydata(), [np.nan, 2, np.nan])


def test_arrows_go_from_cause_to_effect(tmp_path):
    rho = np.array([[1, 0.9, -0.5], [0.2, 1, np.nan], [0.4, 0, 1]])
    figure = XmapResult(rho, np.ones(3, int), ("a", "b", "c")).plot_network(str(tmp_path / "n.png"))
    at = {text.get_text(): np.array(text.get_position()) / 1.07 for text in figure.axes[0].texts}
    assert len(arrows(figure)) == 3, "the diagonal, NaN and skill of 0 or less are no links"
    strongest = arrows(figure)[-1]  # drawn last: series a (row) is predicted to be the effect of b (column)
    begin, end = strongest._posA_posB
    np.testing.assert_allclose(begin, at["b"], atol=1e-9)
    np.testing.assert_allclose(end, at["a"], atol=1e-9)
    assert strongest.get_linewidth() > arrows(figure)[0].get_linewidth()
    assert len(arrows(XmapResult(rho, np.ones(3, int), ("a", "b", "c")).plot_network(top=1))) == 1


def test_only_significant_or_converging_pairs_become_arrows():
    rho, q = RNG.uniform(0.1, 1, (4, 4)), np.full((4, 4), 0.5)
    q[2, 1] = 0.01
    found = XmapSignificance(rho, q, q, np.ones(4, int), tuple("abcd"), 99, "phase", 1, np.full((4, 4), 99))
    assert len(arrows(found.plot_network())) == 1 and "0.05" in found.plot_network().axes[0].get_title()
    marked = found.plot().axes[0]
    assert marked.get_title().startswith("* significant") and "phase surrogates" in marked.get_title()
    assert [text.get_position() for text in marked.texts if text.get_text().endswith("*")] == [(1, 2)]
    sizes = np.array([10, 20, 30, 40, 50])
    growing = np.zeros((5, 3, 3))
    growing[:, 0, 1], growing[:, 1, 0] = np.linspace(0.1, 0.9, 5), [0.3, 0.5, 0.2, 0.4, 0.31]
    matrix = CcmMatrixResult(sizes, tuple(growing), np.ones(3, int), tuple("abc"), 5, 1)
    assert len(arrows(matrix.plot_network())) == 1
    few = CcmMatrixResult(sizes[:2], tuple(growing[[0, 4]]), np.ones(3, int), tuple("abc"), 5, 1)
    assert len(arrows(few.plot_network())) == 2, "of two sizes the gain is the trend"
    assert "gain of skill from 10 to 50 library rows" in matrix.plot().axes[0].get_title()


@pytest.mark.parametrize(
    ("n", "options", "words"),
    [(3, {"top": 0}, "top=0"), (3, {"top": True}, "top=True"), (3, {"keep": np.ones((2, 2))}, "keep has shape"),
     (4, {}, "shape"), (80, {"top": 400}, "smaller top")],
)  # fmt: skip
def test_networks_that_cannot_be_drawn(n, options, words):
    with pytest.raises(InputError, match=words):
        causal_network(RNG.random((80, 80) if n == 80 else (3, 3)), [str(i) for i in range(n)], **options)


def test_large_networks_keep_linked_series_only():
    rho = np.zeros((100, 100))
    rho[5, 90] = 0.7
    figure = causal_network(rho, [f"s{i}" for i in range(100)])
    assert [text.get_text() for text in figure.axes[0].texts] == ["s5", "s90"]
